"""Devices that run JavaScript: their messages are taken, and tell what those of Python tell.

Randomness of what is compared is keyed, in both languages, so that a run repeats. Bounds are 5.5
standard errors, and 10⁻⁶ on either side for χ².
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import muhat as mh
from muhat import _cbor, protocols
from muhat.protocols import Protocol, SealedProtocol, ServerKey, Signer
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.roles.messages import HEADER_BYTES, read_messages

CLIENT = Path(__file__).parents[2] / "js"
KEY = ServerKey(bytes(range(32)), "2999-01-01")
SIGNER = Signer(bytes(range(2, 34)))
PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
DEVICES = 2000
CHANCE = 1e-6

pytestmark = [
    pytest.mark.javascript,
    pytest.mark.skipif(shutil.which("node") is None, reason="needs Node 20 or newer on the path"),
    pytest.mark.skipif(
        not (CLIENT / "node_modules").is_dir(), reason="make test-js installs what js/ needs"
    ),
]


def run(script: str, said: dict[str, Any]) -> bytes:
    done = subprocess.run(
        ["node", str(CLIENT / "tests" / script)],
        input=json.dumps(said).encode(),
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


def messages(protocol: Protocol, records: Any, key: str, sealed: bool = False) -> list[bytes]:
    """What devices in JavaScript send for these records."""
    said = {
        "signed": SIGNER.signed(protocol, KEY.public).hex(),
        "signer": SIGNER.public,
        "records": np.asarray(records, float).tolist(),
        "sealed": sealed,
        "key": key,
    }
    return list(read_messages(io.BytesIO(run("answers.js", said))))


def refusals(descriptions: list[bytes]) -> list[str | None]:
    """Why devices in JavaScript do not take these, or None where they do."""
    signed = [signed_by_a_fool(each).hex() for each in descriptions]
    found: list[str | None] = json.loads(
        run("taken.js", {"signer": SIGNER.public, "signed": signed})
    )
    return found


def signed_by_a_fool(description: bytes) -> bytes:
    said = {"description": description, "key": KEY.public.to_dict()}
    signature = SIGNER._private.sign(b"muhat.signed/2\n" + _cbor.written(said))
    return _cbor.written({"schema": "muhat.signed/2", **said, "signature": signature})


def noise_of(protocol: Protocol, sent: list[bytes]) -> np.ndarray:
    """What devices whose records are the centre have sent as their numbers: (devices, columns)."""
    randomizer = protocol.randomizer
    assert isinstance(randomizer, FragmentRandomizer)
    payloads = np.frombuffer(b"".join(each[HEADER_BYTES:] for each in sent), np.uint8)
    fragments = randomizer.unpacked(payloads.reshape(len(sent), -1))
    q = randomizer.noise.modulus
    numbers = (fragments.sum(axis=2) & np.uint64(q - 1)).astype(np.int64)
    return np.where(numbers >= q // 2, numbers - q, numbers)


def is_chi_square(value: float, freedom: int) -> bool:
    low, high = chi2.ppf(CHANCE, freedom), chi2.isf(CHANCE, freedom)
    return bool(low < value < high)


BOX = mh.Box([16, 0], [90, 100_000])
ONE_OF = np.eye(5)
ASKED = {
    "shuffled box": lambda: protocols.shuffle_mean(domain=BOX, n=DEVICES, privacy=PROMISE),
    "shuffled, normal noise": lambda: protocols.shuffle_mean(
        domain=mh.Box([0] * 12, [1] * 12), n=DEVICES, privacy=PROMISE
    ),
    "local column": lambda: protocols.local_mean(
        domain=mh.Box([16], [90]), n=DEVICES, privacy=mh.PureDP(epsilon=1.5)
    ),
    "local categories": lambda: protocols.local_mean(
        domain=mh.Points(ONE_OF), n=DEVICES, privacy=mh.PureDP(epsilon=2.0)
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_mean_of_javascript_s_messages_is_that_of_the_records(name):
    protocol = ASKED[name]()
    rng = np.random.default_rng(5)
    domain = protocol.estimator.domain
    if isinstance(domain, mh.Points):
        records = ONE_OF[rng.choice(5, DEVICES, p=[0.5, 0.2, 0.15, 0.1, 0.05])]
    else:
        records = rng.beta(2, 5, (DEVICES, domain.dim)) * (domain.upper - domain.lower)
        records += domain.lower
    server = protocol.server()
    sent = messages(protocol, records, name)
    assert {len(each) for each in sent} == {protocol.bytes_per_user}
    assert server.take(sent).accepted == DEVICES
    release = server.finish()
    error = np.abs(release.value - records.mean(axis=0)) / release.standard_error
    assert (error < 5.5).all()
    # Records that are all at one end would be noticed by far.
    planted = np.abs(release.value - records.max(axis=0)) / release.standard_error
    assert (planted > 11).any()


def test_parts_of_laplace_noise_add_up_to_the_noise_of_the_description():
    people = 25
    protocol = protocols.shuffle_mean(domain=BOX, n=people, minimum=people, privacy=PROMISE)
    noise = protocol.randomizer.noise
    assert (noise.law, noise.honest) == ("laplace", people)
    parts = noise_of(protocol, messages(protocol, [BOX.center] * DEVICES, "laplace parts"))
    sums = parts.reshape(-1, people, 2).sum(axis=1)
    # rate·|k| is exponential up to the rate, which is below 0.002: 2·rate·Σ|k| is χ².
    assert noise.parameter < 2e-3
    found, freedom = 2 * float(noise.parameter) * np.abs(sums).sum(), 2 * sums.size
    assert is_chi_square(found, freedom)
    assert not is_chi_square(2 * found, freedom)
    assert not is_chi_square(found / 2, freedom)


def test_parts_of_normal_noise_have_the_variance_of_the_description():
    protocol = ASKED["shuffled, normal noise"]()
    noise = protocol.randomizer.noise
    assert noise.law == "gaussian"
    middle = [[0.5] * 12] * DEVICES
    parts = noise_of(protocol, messages(protocol, middle, "normal parts"))
    found = float((parts.astype(float) ** 2).sum() / noise.parameter)
    assert is_chi_square(found, parts.size)
    assert not is_chi_square(1.1 * found, parts.size)


def test_sealed_reports_go_through_shuffler_and_server():
    protocol = protocols.shuffle_mean(domain=BOX, n=20, privacy=PROMISE)
    sealed = SealedProtocol(protocol, KEY.public)
    reports = messages(protocol, [[41, 3e4]] * 20, "sealed", sealed=True)
    shuffler, server = sealed.shuffler(), sealed.server(KEY)
    assert shuffler.take(reports).accepted == 20
    assert server.take(shuffler.mixed()).accepted == 20
    assert server.finish().n == 20


def test_what_python_describes_is_taken_and_what_keeps_a_little_less_is_not():
    sound, wrong = [], []
    for people in (25, 900, 30_000, 3_000_000):
        for epsilon, columns in ((0.3, 1), (1.0, 3), (4.0, 20)):
            protocol = protocols.shuffle_mean(
                domain=mh.Box([0] * columns, [7] * columns),
                n=people,
                privacy=mh.ApproxDP(epsilon=epsilon, delta=1e-8),
            )
            sound.append(protocol.to_cbor())
            noise = protocol.randomizer.noise
            more = "9999/10000" if noise.law == "gaussian" else "10001/10000"
            for change in (
                {"parameter": str(noise.parameter * type(noise.parameter)(more))},
                {"shares": noise.fragments - 1},
            ):
                fields = _cbor.read(protocol.to_cbor())
                fields["randomizer"]["noise"] |= change
                with pytest.raises(mh.InvalidInput):
                    Protocol.from_cbor(_cbor.written(fields))
                wrong.append(_cbor.written(fields))
    assert refusals(sound) == [None] * len(sound)
    assert None not in refusals(wrong)
