"""A description says everything, is read back to the same thing, and does not lie."""

from __future__ import annotations

import json

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols import Protocol

DOMAINS = [
    mh.Ball(2.0, dim=3),
    mh.Box([0, 0], [1, 5]),
    mh.Simplex(dim=4),
    mh.Points(np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])),
    mh.Ellipsoid(np.array([[2.0, 0.5], [0.5, 1.0]])),
    mh.Zonotope(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])),
]
PROMISES = [
    mh.PureDP(epsilon=1.0),
    mh.ZCDP(rho=0.5),
    mh.GDP(mu=1.0),
    mh.ApproxDP(epsilon=1, delta=1e-6),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_descriptions_survive_json_for_every_domain_and_promise(domain, promise):
    protocol = protocols.local_mean(domain=domain, n=100, privacy=promise)
    again = Protocol.from_json(protocol.to_json())
    assert again.to_json() == protocol.to_json()
    assert again.label == protocol.label
    server = again.server()
    server.take(protocol.client().randomize_many(np.zeros((60, protocol.randomizer.record_dim))))
    release = server.finish()
    assert release.privacy == promise
    assert release.value.shape == (domain.dim,)
    assert mh.Release.from_json(release.to_json()).value.tolist() == release.value.tolist()


def test_a_description_in_words_says_what_matters():
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=500, privacy=mh.PureDP(epsilon=1))
    text = repr(protocol)
    for words in ("local model", "pure 1-DP" if "pure 1-DP" in text else "1", "500", "bytes"):
        assert words in text


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "muhat.protocol/2"},
        {"model": "shuffle"},
        {"privacy": {"kind": "zcdp", "rho": 0.1}},
        {"round": 0},
        {"round": 1000},
        {"users": -5},
        {"users": "many"},
        {"minimum": 10**9},
        {"randomizer": {"kind": "nothing"}},
        {"randomizer": {"kind": "gaussian"}},
        {"randomizer": 7},
        {"estimator": None},
        {"estimator": {"kind": "__import__"}},
        {"learnt": 3},
    ],
)
def test_a_description_that_is_wrong_is_refused(change):
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=500, privacy=mh.ZCDP(rho=0.5))
    fields = {**json.loads(protocol.to_json()), **change}
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "NaN", "{" * 100_000, '{"schema":1}'])
def test_what_is_no_description_is_refused(text):
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(text)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0}, "n must be"),
        ({"n": 10, "minimum": 11}, "minimum"),
        ({"n": 10, "minimum": 0}, "minimum"),
        ({"n": 10, "p": 1}, "p must be"),
        ({"n": 10, "columns": ["a"]}, "columns must be 2 different names"),
        ({"n": 10, "domain": "ball"}, "domain must say"),
        ({"n": 10, "privacy": 1.0}, "privacy"),
    ],
)
def test_wrong_arguments_are_refused_with_a_hint(arguments, words):
    usual = {"domain": mh.Ball(1.0, dim=2), "privacy": mh.ZCDP(rho=0.5)}
    with pytest.raises(mh.InvalidInput, match=words):
        protocols.local_mean(**{**usual, **arguments})
