"""Descriptions of every kind, of first rounds and later ones, changed by somebody who means harm.

A device or a server that reads one gets a protocol or InvalidInput, at once; a server that closes
the round gets a result or InvalidInput, whatever the description and the messages say.
`test_hostile_descriptions` tries every value in every place of five kinds; here some of them are
tried in every place of all the others.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from forged import copied, places

import muhat as mh
from keyed_entropy import drawn_once
from muhat import protocols
from muhat._arrays import Bytes
from muhat.protocols import Protocol
from muhat.protocols.counts.ranges import ShuffleRanges
from muhat.protocols.encodings.equal_cells import EqualCells
from muhat.protocols.estimators.block_tree import BlockTree
from muhat.protocols.means.local_chain import LocalChain
from muhat.protocols.means.shuffle_chain import ShuffleChain
from muhat.protocols.means.shuffle_chain_state import ChainState
from muhat.protocols.roles.messages import pack
from muhat.protocols.roles.model import Turnout

MIXED = mh.ApproxDP(epsilon=3.0, delta=1e-6)
PURE = mh.PureDP(epsilon=3.0)
REALS = mh.Reals(dim=2, magnitude=100.0)
PEOPLE = 60

HOSTILE: list[Any] = [
    *(None, True, 0, -1, 1, 7, 1.5, 1e-320, 5e-324, 1e300, float("inf"), 1 << 40, 10**25),
    *([], {}, [1], [[[[1]]]], [0] * 500, {"kind": "pure", "epsilon": 1e9}),
    *("", "x", "nan", "1e999", "0x1p+2000", "0x1p-1074", "1/0", "-1/2", "1/3", "9" * 150, "\ud800"),
    *("shares", "joint", "cap", "ranges", "local", "shuffle", "laplace", "rotated", "distance"),
    *("cells", "tree", "near", "last", "pull", "aside", "mean", "center", "radius"),
]

FORGOTTEN, ADDED, DOUBLED, NESTED = object(), object(), object(), object()
CHANGES = [*HOSTILE, FORGOTTEN, ADDED, DOUBLED, NESTED]

KINDS = [
    *("local-chain", "local-chain again", "local-chain mean", "local-three-rounds"),
    *("local-three-rounds again", "local-quantile", "shuffle-chain", "shuffle-chain again"),
    *(
        "shuffle-chain aside",
        "shuffle-quantile",
        "shuffle-quantile again",
        "local-ranges",
        "shuffle-ranges",
    ),
    "shuffle-ranges in blocks",
]


def after(protocol: Protocol) -> Protocol:
    people = np.random.default_rng(5).normal(3.0, 1.0, (protocol.users, 2))
    server = protocol.server()
    server.take(protocol.crowd().randomize_many(people[:, : protocol.randomizer.record_dim]))
    return server.finish()


@drawn_once
def described() -> dict[str, Protocol]:
    """Few people, so that rounds are closed at once; too few for good estimates."""
    chain = LocalChain(REALS, PURE, 300).first(2)
    later = after(after(chain))
    last = later
    while last.learnt[-1]["next"] != "mean":
        last = after(last)
    three = protocols.local_mean(
        domain=REALS, n=64, privacy=PURE, mechanism="local-three-rounds", minimum=2
    )
    mixed = ShuffleChain(REALS, MIXED, PEOPLE).first(Turnout(PEOPLE))
    pulled = ChainState("pull", (0.0, 1.0), 1.0, 0.5, 3.0, 0.1)
    entry = {"stage": "last", "share": "1/50", "people": PEOPLE, "next": pulled.to_dict()}
    asks = mixed.estimator._asks(pulled, Fraction(1, 50), PEOPLE)
    few = protocols.shuffle_quantile(
        [0.25, 0.75], lower=0, upper=1000, resolution=1e-3, n=PEOPLE, privacy=MIXED
    )
    blocks = ShuffleRanges(EqualCells(0, 100, 13), MIXED, PEOPLE)
    found = (chain, later, last, three, after(three))
    found += (
        protocols.local_quantile(lower=0, upper=100, n=50, privacy=PURE),
        mixed,
        after(mixed),
        Protocol(mixed.estimator, asks, PEOPLE, PEOPLE, 2, (entry,)),
        few,
        after(few),
        protocols.local_ranges(lower=0, upper=100, cells=13, n=50, privacy=PURE),
        protocols.shuffle_ranges(lower=0, upper=100, cells=13, n=PEOPLE, privacy=MIXED),
        Protocol(blocks, blocks._asks(BlockTree(13, (1, 2, 8)), PEOPLE), PEOPLE, PEOPLE),
    )
    return dict(zip(KINDS, found, strict=True))


def changed(fields: dict[str, Any], place: tuple[Any, ...], change: Any) -> str:
    made, inside = copied(fields, place)
    last = place[-1]
    value = inside[last]
    if change is FORGOTTEN:
        del inside[last]
    elif change is ADDED:
        inside[last] = {**value, "more": 1} if isinstance(value, dict) else [value, value]
    elif change is DOUBLED:
        inside[last] = value * 2 if isinstance(value, int | float | list) else [value]
    elif change is NESTED:
        for _ in range(200):
            value = {"domain": "translate", "inner": value, "offset": []}
        inside[last] = value
    else:
        inside[last] = change
    return json.dumps(made).replace("Infinity", "1e999")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error")
def test_a_round_changed_anywhere_is_refused_or_keeps_what_it_promises(kind):
    protocol = described()[kind]
    fields, answered, closed = json.loads(protocol.to_json()), 0, 0
    turns = itertools.cycle(CHANGES)
    for place in places(fields):
        told = place[0] == "learnt"
        for change in itertools.islice(turns, 17 if told and protocol.model == "local" else 7):
            try:
                found = Protocol.from_json(changed(fields, place, change))
                repr(found)
                device, server = found.client(account=False), found.server()
                message = device.randomize([0.1] * found.randomizer.record_dim)
                assert server.take([message, b"x"]).accepted == 1
            except mh.InvalidInput:
                continue
            answered += 1
            assert found.randomizer.privacy == protocol.randomizer.privacy
            assert found.privacy == protocol.privacy
            if told and found.minimum <= PEOPLE:
                records = np.full((found.minimum, found.randomizer.record_dim), 3.0)
                server.take(found.crowd().randomize_many(records))
                try:
                    server.finish().to_json()
                    closed += 1
                except mh.InvalidInput:
                    continue
    assert answered
    assert closed or not protocol.learnt


@pytest.mark.parametrize(
    ("kind", "way", "value"),
    [
        ("local-chain mean", (0,), {}),
        ("local-chain mean", (0, "step"), FORGOTTEN),
        ("local-chain mean", (-1, "center"), ["1/0", 0]),
        ("local-three-rounds again", (0, "center"), 1.0),
        ("local-three-rounds again", (0, "center"), ["1/0", 0]),
        ("shuffle-chain again", (0, "next"), 7),
        ("shuffle-chain again", (0, "next"), "inf"),
        ("shuffle-chain again", (0, "next", "noise"), [1]),
        ("shuffle-chain again", (0, "next", "center"), [0.0] * 500),
    ],
    ids=lambda value: None if value is FORGOTTEN else repr(value)[:40],
)
def test_what_no_round_can_have_told_is_refused_where_it_is_read(kind, way, value):
    fields = json.loads(described()[kind].to_json())
    place = ("learnt", len(fields["learnt"]) - 1 if way[0] == -1 else way[0], *way[1:])
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(changed(fields, place, value))


def false_payloads(protocol: Protocol, turn: int, rng: np.random.Generator) -> Bytes:
    """Messages that no device would send: all the same, all at an end, or sums at one."""
    people, randomizer = protocol.minimum, protocol.randomizer
    if parts := getattr(randomizer, "parts", ()):
        made = []
        for part in parts:
            q = part.noise.modulus
            ends = np.array([0, 1, q // 2 - 1, q // 2, q - 1], np.uint64)
            shares = np.zeros((people, part.numbers, part.noise.fragments), np.uint64)
            chosen = rng.choice(ends, part.numbers) if turn % 2 else ends[turn // 2 % len(ends)]
            shares[0, :, 0] = chosen
            made.append(part.packed(shares))
        return np.concatenate(made, axis=1)
    drawn = rng.integers(0, 256, (1000, randomizer.payload_bytes), dtype=np.uint8)
    drawn[:2] = [[0], [255]]
    possible = drawn[randomizer.valid(drawn)]
    rows = np.zeros(people, int) if turn % 2 else rng.integers(0, len(possible), people)
    return possible[rows]


def false_nonces(people: int, turn: int, rng: np.random.Generator) -> Bytes:
    """Random ones, or those that all speak of the first, or the last, of whatever there is."""
    nonces = rng.integers(0, 256, (people, 16), dtype=np.uint8)
    if turn % 3:
        nonces[:, :8] = 255 * (turn % 3 - 1)
    return nonces


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error")
def test_whatever_people_send_a_server_gives_a_finite_result(kind):
    protocol, rng = described()[kind], np.random.default_rng(11)
    for turn in range(10):
        payloads = false_payloads(protocol, turn, rng)
        nonces = false_nonces(len(payloads), turn, rng)
        server = protocol.server()
        assert server.take(pack(protocol.label, nonces, payloads)).accepted == protocol.minimum
        result = server.finish()
        repr(result)
        result.to_json()  # which has no room for NaN and infinities
