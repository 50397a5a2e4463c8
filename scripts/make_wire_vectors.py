"""Writes docs/wire-vectors.json: what a client in another language must compute, bit for bit.

python scripts/make_wire_vectors.py

docs/wire.md says what every part is. Numbers of more than 53 bits are decimal text, bytes are
hexadecimal text, and the numbers of records are the eight bytes of a float, the most significant
first, so that not-a-number and −0 have a form. All keys are for tests, and known to everybody.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import io
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

import muhat as mh
from muhat import _cbor, protocols
from muhat.noise.entropy import Words
from muhat.protocols import Protocol, SealedProtocol, ServerKey, Signer
from muhat.protocols.randomizers.cap_choice import gain
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.randomizers.interval_randomizer import IntervalRandomizer
from muhat.protocols.randomizers.subset_randomizer import SubsetRandomizer
from muhat.protocols.roles.messages import HEADER_BYTES, pack, write_messages

FILE = Path(__file__).parent.parent / "docs" / "wire-vectors.json"

KEY = ServerKey(bytes(range(32)), "2999-01-01")
SIGNER = Signer(bytes(range(2, 34)))
APPROXIMATE, PURE = mh.ApproxDP(epsilon=1.0, delta=1e-6), mh.PureDP(epsilon=1.5)

CBOR = [
    *(None, True, False, 0, 23, 24, 255, 256, 65536, 1 << 32, (1 << 64) - 1, 1 << 64, 10**25),
    *(-1, -24, -25, -(1 << 64), -(1 << 64) - 1, 0.5, -4.1, 1e-6, 1e300, 5e-324, 2.0**-24, 65504.5),
    *(3.4e38, 1 / 3, 2.0, -0.0, 2.0**63, 2.0**64, "", "a", "é水", "a" * 24, b"", b"\x00\xff"),
    *([], [1, [2, [3]]], {}, {"b": 1, "a": 2, "aa": 3, "": 4, "é": 5}),
]
NOT_CBOR = {
    "nothing": "",
    "two items": "0000",
    "a head that is too long": "1817",
    "a float that is too long": "fa3fc00000",
    "a whole number as a float": "f93c00",
    "minus zero": "f98000",
    "an infinity": "f97c00",
    "not a number": "f97e00",
    "a bignum of one byte": "c24100",
    "a bignum that begins with zero": "c24a00010000000000000000",
    "another tag": "c100",
    "a list of unknown length": "9f00ff",
    "a text of unknown length": "7f6161ff",
    "keys in another order": "a2616200616100",
    "a key twice": "a2616100616100",
    "a key that is no text": "a10000",
    "cut short": "8200",
    "no UTF-8": "61ff",
    "half a character": "63eda080",
    "undefined": "f7",
    "a list that is longer than the bytes": "9b1000000000000000",
    "too deep": "81" * 70 + "00",
}
HOSTILE = [
    *(float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.7e308),
    *(-1.7e308, 16.0, 90.0, 15.999999999999998, 90.00000000000001, 53.0, 41.5, 1 / 3, 2.0**-46),
]


def described() -> dict[str, Protocol]:
    """Rounds that a client of the first kind answers."""
    asked = {"n": 200, "privacy": APPROXIMATE}
    named = {"age": (16, 90), "income": (0, 100_000), "children": (0, 12)}
    narrow = mh.Box([Fraction(1, 3), -1], [Fraction(2, 3), 1e-3])
    local = {"n": 100, "privacy": PURE}
    return {
        "one column": protocols.shuffle_mean(domain=mh.Box([16], [90]), **asked),
        "three columns of a survey": protocols.shuffle_mean(
            domain=mh.Box(*zip(*named.values(), strict=True)), columns=list(named), **asked
        ).surveyed("commuting", version=2, expires="2999-01-01"),
        "bounds that are no floats": protocols.shuffle_mean(
            domain=narrow, **asked, minimum=150, honest=120
        ),
        "large bounds": protocols.shuffle_mean(
            domain=mh.Box([(1 << 70) + 1], [(1 << 70) + (1 << 20)]), **asked
        ),
        "twelve columns with normal noise": protocols.shuffle_mean(
            domain=mh.Box([0] * 12, [1] * 12), n=2000, privacy=APPROXIMATE
        ),
        "one column, local": protocols.local_mean(
            domain=mh.Box([16], [90]), mechanism="cap", **local
        ),
        "few numbers": few_numbers(protocols.local_mean(domain=mh.Box([16], [90]), **local)),
        "categories": protocols.local_mean(domain=mh.Points(np.eye(11)), **local),
        "places": protocols.local_mean(
            domain=mh.Points([[0.0, 0.0], [3.5, 0.25], [-1.0, 2.0]]),
            mechanism="subset",
            **local,
        ),
    }


def few_numbers(protocol: Protocol) -> Protocol:
    """A round with a table that does not rest on how a solver rounds."""
    randomizer = protocol.randomizer
    assert isinstance(randomizer, IntervalRandomizer)
    # Of all places the weights add up to 10 + 5g, and so the means are the places.
    g = gain(randomizer.epsilon) * (1 - Fraction(1, 1 << 16))
    far, near = (float((10 + 5 * g) / (g - 1) / parts) for parts in (6, 4))
    table = {
        "places": 5,
        "first": (0, 0, 2, 1, 3, 4),
        "last": (0, 1, 2, 3, 4, 4),
        "weights": (3, 2, 2, 3, 2, 3),
        "values": np.array([-far, -near, 0.0, 0.0, near, far]),
    }
    return replace(protocol, randomizer=replace(randomizer, **table))


def refused_rounds() -> dict[str, Protocol]:
    """Sound rounds that ask for a randomizer which this kind of client does not have."""
    ball = mh.Ball(1.0, dim=3)
    return {
        "a ball": protocols.shuffle_mean(domain=ball, n=200, privacy=APPROXIMATE),
        "many directions": protocols.local_mean(domain=ball, n=100, privacy=PURE),
        "shares of a whole": protocols.local_mean(domain=mh.Simplex(4), n=100, privacy=PURE),
        "a single message in a crowd": protocols.shuffle_mean(
            domain=mh.Box([16], [90]), n=5000, privacy=APPROXIMATE, most_bytes=32
        ),
        "several rounds": protocols.local_mean(
            domain=mh.Reals(dim=1, magnitude=100.0), n=5000, privacy=PURE
        ),
        "counts": protocols.shuffle_ranges(lower=0, upper=1, cells=6, n=200, privacy=APPROXIMATE),
    }


LIES: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "too little noise": ("one column", ("randomizer", "noise", "parameter"), "1/2"),
    "too few fragments": ("one column", ("randomizer", "noise", "shares"), 4),
    "noise of more people than must answer": (
        "one column", ("randomizer", "noise", "honest"), 190,
    ),
    "another promise of the noise": (
        "one column", ("randomizer", "noise", "promise", "epsilon"), 2,
    ),
    "a promise that the estimator has not": ("one column", ("privacy", "epsilon"), 0.5),
    "a share of the promise": ("one column", ("randomizer", "noise", "share"), "1/2"),
    "numbers that reach farther": (
        "one column", ("randomizer", "encoding", "grid", "multipliers"), [1 << 62],
    ),
    "a finer grid": ("one column", ("randomizer", "encoding", "bits"), 14),
    "too little normal noise": (
        "twelve columns with normal noise", ("randomizer", "noise", "parameter"), "600000",
    ),
    "a louder answer": ("one column, local", ("randomizer", "epsilon"), 1.6),
    "a louder number": ("few numbers", ("randomizer", "epsilon"), 1.6),
    "a number that tells more": ("few numbers", ("randomizer", "weights"), [3, 2, 2, 30, 2, 3]),
    "a louder set": ("categories", ("randomizer", "epsilon"), 1.6),
    "more than all in a set": ("categories", ("randomizer", "chosen"), 11),
    "a round of which nobody has heard": ("one column", ("round",), 2),
    "more who must answer than are asked": ("one column", ("minimum",), 201),
    "another schema": ("one column", ("schema",), "muhat.protocol/1"),
    "a field that nobody knows": ("one column", ("more",), 1),
}  # fmt: skip
"""What is changed in which description, where, and to what."""


ENDED = "three columns of a survey", ("survey", "expires"), "2020-01-01T00:00:00Z"
"""A sound description that nobody answers any more."""


def vectors() -> dict[str, Any]:
    """All of them."""
    rounds = described()
    return {
        "cbor": {
            "written": [{"json": _json(each), "cbor": _cbor.written(each).hex()} for each in CBOR],
            "refused": NOT_CBOR,
        },
        "descriptions": {
            name: {
                "cbor": each.to_cbor().hex(),
                "digest": each.digest,
                "task": each.task,
                "label": each.label.hex(),
                "bytes": each.bytes_per_user,
                "signed": SIGNER.signed(each, KEY.public).hex(),
                "sealed_label": SealedProtocol(each, KEY.public).reports.label.hex(),
                "sealed_bytes": SealedProtocol(each, KEY.public).bytes_per_user,
            }
            for name, each in rounds.items()
        },
        "signer": {"secret": SIGNER.secret.hex(), "public": SIGNER.public},
        "key": {
            "secret": KEY.secret.hex(),
            "public": KEY.public.public.hex(),
            "id": KEY.public.id,
            "expires": KEY.public.expires,
        },
        "not_supported": {
            name: SIGNER.signed(each, KEY.public).hex() for name, each in refused_rounds().items()
        },
        "lies": {name: _signed(_changed(rounds, *lie)).hex() for name, lie in LIES.items()},
        "ended": {"survey": _signed(_changed(rounds, *ENDED)).hex()},
        "forged": _forged(rounds["one column"]),
        "grids": [_grid(name, rounds[name]) for name in _fragmented(rounds)],
        "fragments": [_fragments(name, rounds[name]) for name in _fragmented(rounds)],
        "subsets": [each for name in ("categories", "places") for each in _sets(name, rounds)],
        "signs": _signs("one column, local", rounds),
        "numbers": _numbers("few numbers", rounds),
        "gains": [
            {"epsilon": epsilon, "gain": str(gain(epsilon))} for epsilon in (1e-3, 0.1, 1, 1.5, 20)
        ],
        "packed": _packed(rounds["one column"]),
        "sealed": _sealed_piece(),
        "report": _report("one column", rounds["one column"]),
    }


def text() -> str:
    """The file: a line an entry, so that changes can be read."""
    parts = []
    for name, entry in vectors().items():
        if isinstance(entry, list):
            lines = ",\n".join(json.dumps(each) for each in entry)
            parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
        else:
            lines = ",\n".join(
                f"{json.dumps(key)}: {json.dumps(each)}" for key, each in entry.items()
            )
            parts.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def given(*drawn: Iterable[int]) -> Words:
    """A source of words that hands out these, request by request."""
    requests = iter(drawn)

    def words(count: int) -> NDArray[np.uint64]:
        found = list(next(requests))
        assert len(found) == count, (len(found), count)
        return np.array(found, np.uint64)

    return words


def drawn(name: str, count: int) -> list[int]:
    """Words for a vector, keyed by its name."""
    stream = hashlib.shake_256(f"muhat wire vectors: {name}".encode()).digest(8 * count)
    return [int.from_bytes(stream[at : at + 8], "little") for at in range(0, len(stream), 8)]


def _json(value: Any) -> Any:
    """What JSON has no form for has a name."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > 1 << 53):
        return {"float": _float(value)} if isinstance(value, float) else {"integer": str(value)}
    return value


def _float(value: float) -> str:
    return struct.pack(">d", value).hex()


def _changed(rounds: dict[str, Protocol], name: str, place: Sequence[Any], value: Any) -> bytes:
    fields = copy.deepcopy(_cbor.read(rounds[name].to_cbor()))
    inside = fields
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return _cbor.written(fields)


def _signed(description: bytes, key: object = None, **more: Any) -> bytes:
    """What a careless signer vouches for."""
    said = {"description": description, "key": KEY.public.to_dict() if key is None else key}
    prefix = b"muhat.signed/2\n"
    secret = Ed25519PrivateKey.from_private_bytes(SIGNER.secret)
    signature = secret.sign(prefix + _cbor.written(said))
    fields = {"schema": "muhat.signed/2", **said, "signature": signature}
    return _cbor.written({**fields, **more})


def _forged(protocol: Protocol) -> dict[str, str]:
    """What a device must not take, although it looks signed."""
    said = protocol.to_cbor()
    key, ended = KEY.public.to_dict(), ServerKey(KEY.secret, "2020-01-01").public.to_dict()
    other = ServerKey(bytes(range(1, 33)), "2999-01-01").public.to_dict()
    good = SIGNER.signed(protocol, KEY.public)
    return {
        "another signature": _signed(said, signature=bytes(64)).hex(),
        "a short signature": _signed(said, signature=bytes(3)).hex(),
        "another key": _signed(said, key={**other}, signature=good[-1:] * 64).hex(),
        "a key put in later": _cbor.written({**_cbor.read(good), "key": other}).hex(),
        "a description put in later": _cbor.written(
            {**_cbor.read(good), "description": said[:-1] + b"\0"}
        ).hex(),
        "a field more": _signed(said, more=1).hex(),
        "another schema": _signed(said, schema="muhat.signed/1").hex(),
        "a key that has ended": _signed(said, key=ended).hex(),
        "a key of 31 bytes": _signed(said, key={**key, "public": key["public"][2:]}).hex(),
        "a description that is text": _signed(protocol.to_json().encode()).hex(),
        "a description that is not canonical": _signed(
            b"\xb8" + bytes([said[0] & 31]) + said[1:]
        ).hex(),
        "cut short": good[:-1].hex(),
        "followed by a byte": (good + b"\0").hex(),
        "not signed": said.hex(),
    }


def _fragmented(rounds: dict[str, Protocol]) -> list[str]:
    return [name for name, each in rounds.items() if each.randomizer.kind == "shares"]


def _fragment_randomizer(protocol: Protocol) -> FragmentRandomizer:
    assert isinstance(protocol.randomizer, FragmentRandomizer)
    return protocol.randomizer


def _grid(name: str, protocol: Protocol) -> dict[str, Any]:
    """Hostile numbers in every column, and the exact integers of each."""
    encoding: Any = _fragment_randomizer(protocol).encoding
    box = encoding.domain
    rows = [[x] * box.dim for x in HOSTILE]
    rows += [box.lower.tolist(), box.upper.tolist(), box.center.tolist()]
    exact = encoding._exact_numbers(np.array(rows)).tolist()
    return {
        "description": name,
        "records": [[_float(x) for x in row] for row in rows],
        "exact": [[str(v) for v in row] for row in exact],
    }


def _fragments(name: str, protocol: Protocol) -> dict[str, Any]:
    """One record: its exact integers, rounded by given words, with given noise, split by others."""
    randomizer = _fragment_randomizer(protocol)
    encoding: Any = randomizer.encoding
    record = encoding.domain.lower + 0.3 * (encoding.domain.upper - encoding.domain.lower)
    r, m = randomizer.numbers, randomizer.noise.fragments
    rounding, splitting = drawn(f"{name}, rounding", r), drawn(f"{name}, splitting", r * (m - 1))
    noise = [int(word % 2001) - 1000 for word in drawn(f"{name}, noise", r)]
    rounded = encoding.integers(record[None, :], given(rounding))
    numbers = rounded + np.array([noise], np.int64)
    uniform = np.array(splitting, np.uint64).reshape(1, r, m - 1)
    fragments = randomizer.completed(numbers.view(np.uint64), uniform)
    return {
        "description": name,
        "record": [_float(x) for x in record.tolist()],
        "rounding_words": [str(word) for word in rounding],
        "rounded": [str(number) for number in rounded[0].tolist()],
        "noise": [str(each) for each in noise],
        "splitting_words": [str(word) for word in splitting],
        "payload": randomizer.packed(fragments).tobytes().hex(),
    }


def _sets(name: str, rounds: dict[str, Protocol]) -> Iterable[dict[str, Any]]:
    """One record: the word of the coin that keeps its corner, and the keys of the others."""
    randomizer = rounds[name].randomizer
    assert isinstance(randomizer, SubsetRandomizer)
    others = randomizer.size - 1
    records = [randomizer.corners.points[0], randomizer.corners.points[-1] * 1.1]
    for number, record in enumerate(records):
        coin, *keys = drawn(f"{name} {number}", 1 + others)
        for word in (coin, 0, (1 << 64) - 1):
            words = given([0], [word], keys)
            payload = randomizer.randomize(record[None, :], np.zeros((1, 16), np.uint8), words)
            yield {
                "description": name,
                "record": [_float(x) for x in record.tolist()],
                "coin_word": str(word),
                "keys": [str(key) for key in keys],
                "payload": payload.tobytes().hex(),
            }


def _signs(name: str, rounds: dict[str, Protocol]) -> list[dict[str, Any]]:
    """One record: the words for any sign, for how far it is from the middle, for the favour."""
    randomizer, found = rounds[name].randomizer, []
    assert isinstance(randomizer, CapRandomizer)
    for record in (16.0, 35.0, 53.0, 80.0, 1e9, float("nan"), float("-inf")):
        for favour in (0, (1 << 64) - 1):
            anyone, place = drawn(f"{name} {record} {favour}", 2)
            words = given([anyone], [place], [favour])
            payload = randomizer.randomize(np.array([[record]]), np.zeros((1, 16), np.uint8), words)
            found.append(
                {
                    "description": name,
                    "record": [_float(record)],
                    "anyone_word": str(anyone),
                    "place_word": str(place),
                    "favour_word": str(favour),
                    "payload": payload.tobytes().hex(),
                }
            )
    return found


def _numbers(name: str, rounds: dict[str, Protocol]) -> list[dict[str, Any]]:
    """One record: the words for its place and for the number."""
    randomizer, found = rounds[name].randomizer, []
    for record in (16.0, 34.5, 40.0, 53.0, 90.0, 1e9, float("nan"), float("-inf")):
        for turn in range(3):
            place, number = drawn(f"{name} {record} {turn}", 2)
            words = given([place], [number])
            payload = randomizer.randomize(np.array([[record]]), np.zeros((1, 16), np.uint8), words)
            found.append(
                {
                    "description": name,
                    "record": [_float(record)],
                    "place_word": str(place),
                    "number_word": str(number),
                    "payload": payload.tobytes().hex(),
                }
            )
    return found


def _packed(protocol: Protocol) -> dict[str, Any]:
    nonce, size = bytes(range(16)), protocol.randomizer.payload_bytes
    payload = bytes(index % 251 for index in range(size))
    rows = [np.frombuffer(part, np.uint8)[None, :] for part in (nonce, payload)]
    (message,) = pack(protocol.label, *rows)
    stream = io.BytesIO()
    write_messages(stream, [message, b"", b"\x01\x02"])
    return {
        "label": protocol.label.hex(),
        "nonce": nonce.hex(),
        "payload": payload.hex(),
        "message": message.hex(),
        "stream": {
            "messages": [message.hex(), "", "0102"],
            "bytes": stream.getvalue().hex(),
        },
    }


def _sealed_piece() -> dict[str, str]:
    """One piece, sealed with a given ephemeral key as RFC 9180 says, and opened by the library."""
    piece, info, ephemeral = bytes(range(8)), b"MS\x01\x01wirewire\x00\x00", bytes(range(64, 96))
    sealed = seal(piece, info, ephemeral)
    assert KEY.unseal(sealed, info) == piece
    public = X25519PrivateKey.from_private_bytes(ephemeral).public_key().public_bytes_raw()
    return {
        "piece": piece.hex(),
        "info": info.hex(),
        "ephemeral_secret": ephemeral.hex(),
        "ephemeral_public": public.hex(),
        "sealed": sealed.hex(),
    }


def _report(name: str, protocol: Protocol) -> dict[str, str]:
    """A whole report, with ephemeral keys of its own, that a server opens."""
    reports = SealedProtocol(protocol, KEY.public).reports
    message = bytes.fromhex(_packed(protocol)["message"])
    payload = bytes.fromhex(_fragments(name, protocol)["payload"])
    message = message[:HEADER_BYTES] + payload
    whole = np.frombuffer(message, np.uint8)[None, :]
    (pieces,) = protocol.randomizer.pieces(whole[:, 12:28], whole[:, 28:])
    number, report = bytes(range(100, 116)), reports.label
    report += number
    for place, (piece, group) in enumerate(zip(pieces, reports.groups, strict=True)):
        ephemeral = hashlib.sha256(f"ephemeral {place}".encode()).digest()
        report += seal(piece.tobytes(), reports.label + group.to_bytes(2, "big"), ephemeral)
    opened, complete = reports.opened(np.frombuffer(report[HEADER_BYTES:], np.uint8)[None, :], KEY)
    assert complete == [True]
    assert (opened[0] == pieces).all()
    return {
        "description": name,
        "message": message.hex(),
        "number": number.hex(),
        "report": report.hex(),
    }


def seal(piece: bytes, info: bytes, ephemeral: bytes) -> bytes:
    """HPKE in base mode with this ephemeral key, which only a test may choose: RFC 9180 § 4–6.1.

    What it makes is opened by the library before it is written down.
    """
    secret = X25519PrivateKey.from_private_bytes(ephemeral)
    public, theirs = secret.public_key().public_bytes_raw(), KEY.public.public
    kem = b"KEM" + (0x20).to_bytes(2, "big")
    hpke = b"HPKE" + b"".join(part.to_bytes(2, "big") for part in (0x20, 1, 1))
    shared = secret.exchange(X25519PublicKey.from_public_bytes(theirs))
    extracted = _extract(kem, b"", b"eae_prk", shared)
    shared = _expand(kem, extracted, b"shared_secret", public + theirs, 32)
    context = b"\0" + _extract(hpke, b"", b"psk_id_hash", b"")
    context += _extract(hpke, b"", b"info_hash", info)
    scheduled = _extract(hpke, shared, b"secret", b"")
    key = _expand(hpke, scheduled, b"key", context, 16)
    nonce = _expand(hpke, scheduled, b"base_nonce", context, 12)
    return public + AESGCM(key).encrypt(nonce, piece, b"")


def _extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + secret, "sha256")


def _expand(suite: bytes, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
    said = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info + b"\x01"
    return hmac.digest(key, said, "sha256")[:length]


if __name__ == "__main__":
    FILE.write_text(text())
