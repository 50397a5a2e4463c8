"""Descriptions changed in every place by somebody who means harm: refused, or harmless."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from forged import copied, places

import muhat as mh
from muhat import protocols
from muhat.protocols import Protocol

PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
OBLIQUE = mh.Ellipsoid(np.array([[2.0, 0.5], [0.5, 1.0]]))

HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 1.5, -0.0, 1e-320, 1e300, 10**25, [], {}, [1], [[1]]),
    *("", "x", "nan", "inf", "1e999", "0x1p+2000", "0x1p-1074", "1/0", "-1/2", "9" * 150, "٣"),
    *("\ud800", "shares", "joint", "cap", "subset", "gaussian", "stairs", "ranges", "local"),
    "shuffle",
    *("FORGOTTEN", float("inf"), {"kind": "pure", "epsilon": 1e9}),
]


def described() -> dict[str, Protocol]:
    ball = mh.Ball(1.0, dim=2)
    named = {"columns": ["a", "b"], "n": 100}
    return {
        "cap": protocols.local_mean(domain=ball, n=100, privacy=mh.PureDP(epsilon=1.0)),
        "subset": protocols.local_mean(
            domain=mh.Simplex(dim=4), n=100, privacy=mh.PureDP(epsilon=1.0)
        ),
        "gaussian": protocols.local_mean(domain=OBLIQUE, privacy=mh.ZCDP(rho=0.5), **named),
        "stairs": protocols.local_mean(
            domain=OBLIQUE, privacy=mh.PureDP(epsilon=1.0), mechanism="stairs", **named
        ),
        "shares": protocols.shuffle_mean(domain=ball, n=200, privacy=PROMISE),
        "box": protocols.shuffle_mean(domain=mh.Box([0], [9]), n=200, privacy=PROMISE),
        "local-ranges": protocols.local_ranges(
            lower=0, upper=1, cells=6, n=100, privacy=mh.PureDP(epsilon=1.0)
        ),
        "shuffle-ranges": protocols.shuffle_ranges(
            lower=0, upper=1, cells=6, n=200, privacy=PROMISE
        ),
    }


def changed(fields: dict[str, Any], place: tuple[Any, ...], value: Any) -> str:
    made, inside = copied(fields, place)
    last = place[-1]
    if value == "FORGOTTEN":
        del inside[last]
    else:
        inside[last] = value
    return json.dumps(made).replace("Infinity", "1e999")


@pytest.mark.parametrize(
    "kind",
    ["cap", "subset", "gaussian", "stairs", "shares", "box", "local-ranges", "shuffle-ranges"],
)
@pytest.mark.filterwarnings("error")
def test_a_description_changed_anywhere_is_refused_or_keeps_what_it_promises(kind):
    protocol = described()[kind]
    fields, answered = json.loads(protocol.to_json()), 0
    for place in places(fields):
        for value in HOSTILE:
            try:
                found = Protocol.from_json(changed(fields, place, value))
                repr(found)
                message = found.client(account=False).randomize([0.1] * found.randomizer.record_dim)
                assert found.server().take([message, b"x"]).accepted == 1
            except mh.InvalidInput:
                continue
            answered += 1
            # Read back it is the same, and its messages promise what it says.
            assert Protocol.from_json(found.to_json()).label == found.label
            assert found.randomizer.privacy == found.privacy
    assert answered


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "[" * 10**6, '{"schema":' * 10**5, "{}", "[]", "null", "1" * 10**5),
        *('{"schema":"muhat.protocol/2"}', '{"schema":NaN}', '{"schema":["muhat.protocol/2"]}'),
        "[" + "{}," * (1 << 21) + "0]",
        " " * (1 << 26) + "{}",
    ],
    ids=lambda text: f"{text[:12]}…{len(text)}",
)
def test_texts_that_are_all_depth_or_all_length_are_refused_at_once(text):
    with pytest.raises(mh.InvalidInput, match=r"^(the text|a description must)"):
        Protocol.from_json(text)


def test_no_promise_makes_a_device_compute_for_long():
    ranges = json.loads(
        protocols.local_quantile(
            lower=0, upper=1, resolution=0.25, n=100, privacy=mh.PureDP(epsilon=1.0)
        ).to_json()
    )
    mix = {"levels": 3, "sets": [[1, 2, 3]], "weights": [1 << 32]}
    ranges["randomizer"].update(mix=mix, chosen=1)
    for epsilon in (1e5, 1e9, 1e300):
        loud = {"kind": "pure", "epsilon": epsilon}
        for promise in ({"kind": "zcdp", "rho": 0.5}, loud):
            ranges["privacy"] = ranges["estimator"]["privacy"] = promise
            ranges["randomizer"].update(privacy=promise, epsilon=epsilon)
            try:
                assert Protocol.from_json(json.dumps(ranges)).client(account=False).randomize(0.3)
            except mh.InvalidInput:
                assert promise != loud
