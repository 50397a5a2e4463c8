"""A description says everything, is read back to the same thing, and does not lie."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh
from muhat import _cbor, protocols
from muhat.protocols import Protocol
from muhat.protocols.randomizers.fragment_randomizer import Mixed
from muhat.protocols.randomizers.randomizer import PrivateAlone, Randomizer

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
    server.take(protocol.crowd().randomize_many(np.zeros((60, protocol.randomizer.record_dim))))
    release = server.finish()
    assert release.privacy == promise
    assert release.value.shape == (domain.dim,)
    assert mh.Release.from_json(release.to_json()).value.tolist() == release.value.tolist()


def test_a_description_in_words_says_what_matters():
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=500, privacy=mh.PureDP(epsilon=1))
    text = repr(protocol)
    for words in ("local model", "1-DP (pure)", "500, and at least 250", "29 bytes", "nobody"):
        assert words in text


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "muhat.protocol/1"},
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
        {"learnt": [{}]},
        {"round": 2},
        {"round": 2, "learnt": [7]},
        {"users": 500.5},
    ],
)
def test_a_description_that_is_wrong_is_refused(change):
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=500, privacy=mh.ZCDP(rho=0.5))
    fields = {**json.loads(protocol.to_json()), **change}
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps(fields))


def test_whole_numbers_may_be_written_as_floats_and_are_whole_numbers_again():
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=500, privacy=mh.ZCDP(rho=0.5))
    fields = json.loads(protocol.to_json())
    fields.update(users=500.0, minimum=250.0, round=1.0)
    fields["estimator"]["n"] = 500.0
    assert Protocol.from_json(json.dumps(fields)).to_json() == protocol.to_json()


@pytest.mark.parametrize("depth", [10, 50, 400, 800, 1200])
@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "1"])
def test_what_earlier_rounds_have_told_may_be_anything_that_can_be_written_again(depth, number):
    first = protocols.shuffle_quantile(
        lower=0, upper=10, resolution=1, n=200, privacy=mh.ApproxDP(epsilon=1.0, delta=1e-6)
    )
    told = '{"share":"0","windows":[[0,10]],"a":' + '{"a":' * depth + number + "}" * depth + "}"
    text = first.to_json().replace('"learnt":[]', f'"learnt":[{told}]')
    text = text.replace('"round":1', '"round":2')
    try:
        assert Protocol.from_json(text).client(account=False).randomize(3.0)
    except mh.InvalidInput:
        assert number != "1" or depth > 50


def test_descriptions_and_messages_have_a_largest_size(monkeypatch):
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=500, privacy=mh.ZCDP(rho=0.5))
    text = protocol.to_json()
    monkeypatch.setattr("muhat.protocols.roles.protocol.LONGEST", len(text) - 1)
    for attempt in (protocol.to_json, lambda: Protocol.from_json(text)):
        with pytest.raises(mh.InvalidInput, match="description must be at most"):
            attempt()
    monkeypatch.setattr("muhat.protocols.roles.protocol.LONGEST", 30)
    with pytest.raises(mh.InvalidInput, match=r"at most 30 bytes .* 36"):
        replace(protocol)


def test_a_tree_of_shares_too_large_for_any_device_is_refused_at_once():
    shuffled = protocols.shuffle_mean(
        domain=mh.Ball(1.0, dim=2), n=200, privacy=mh.ApproxDP(epsilon=1, delta=1e-6)
    )
    fields = json.loads(shuffled.to_json())
    tree = {"kind": "tree", "cells": 1 << 20, "blocks": [2, 4], "dim": 1, "scale": 1}
    fields["randomizer"]["encoding"] = tree
    fields["randomizer"]["noise"].update(parameter="1/100", shares=256, modulus_bits=62)
    with pytest.raises(mh.InvalidInput, match="bytes long"):
        Protocol.from_json(json.dumps(fields))


def test_every_kind_of_randomizer_is_private_alone_or_made_of_shares():
    # A kind that is new must say what it is.
    found, waiting = {}, [Randomizer]
    while waiting:
        each = waiting.pop()
        waiting += each.__subclasses__()
        if "kind" in vars(each):
            found[each.kind] = each
    alone = {"cap", "interval", "gaussian", "stairs", "ranges", "subset"}
    assert set(found) == {*alone, "shares", "joint"}
    for kind, made in found.items():
        assert issubclass(made, Mixed) == (kind in ("shares", "joint"))
        assert issubclass(made, PrivateAlone) == (kind not in ("shares", "joint"))


def test_a_description_that_contradicts_itself_is_refused():
    protocol = protocols.local_mean(
        domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.PureDP(epsilon=1.0)
    )
    fields = json.loads(protocol.to_json())
    fields["estimator"]["domain"] = mh.Ball(1.0, dim=5).to_dict()
    with pytest.raises(mh.InvalidInput, match="another domain"):
        Protocol.from_json(json.dumps(fields))


def test_a_later_round_of_what_has_one_is_refused_where_it_is_read():
    protocol = protocols.local_mean(
        domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.PureDP(epsilon=1.0)
    )
    fields = {**json.loads(protocol.to_json()), "round": 2, "learnt": [{}]}
    with pytest.raises(mh.InvalidInput, match="there is one round"):
        Protocol.from_json(json.dumps(fields))


def test_many_dimensions_need_no_matrix():
    for promise in (mh.PureDP(epsilon=1.0), mh.ZCDP(rho=0.5)):
        protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=3000), n=4, privacy=promise)
        assert protocol.randomizer.spread(4).factor is None
    oblique = np.array([[1.0, 0.5], [0.0, 1.0]]) @ mh.Box([0, 0], [1, 1])
    for promise in (mh.PureDP(epsilon=1.0), mh.ZCDP(rho=0.5)):
        randomizer = protocols.local_mean(domain=oblique, n=4, privacy=promise).randomizer
        spread = randomizer.spread(4)
        np.testing.assert_allclose(spread.covariance, randomizer.covariance(4))
        np.testing.assert_allclose(spread.standard_error**2, np.diag(spread.covariance))


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


def test_a_description_has_one_digest_and_one_task_whichever_form_it_came_in():
    protocol = protocols.shuffle_mean(domain=mh.Box([0], [9]), n=500, privacy=PROMISES[3])
    surveyed = protocol.surveyed("commuting", version=2, expires="2999-01-01")
    for each in (protocol, surveyed):
        data = each.to_cbor()
        assert each.digest == hashlib.sha256(data).hexdigest()
        as_text, as_bytes = Protocol.from_json(each.to_json()), Protocol.from_cbor(data)
        assert (as_text.digest, as_text.task) == (as_bytes.digest, as_bytes.task)
        assert (as_text.digest, as_text.task) == (each.digest, each.task)
    assert protocol.task != surveyed.task


def test_bytes_that_are_not_the_one_form_of_a_description_are_refused():
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=500, privacy=mh.ZCDP(rho=0.5))
    fields = _cbor.read(protocol.to_cbor())
    assert Protocol.from_cbor(_cbor.written(fields)) == protocol
    for change in ({"more": 1}, {"survey": {"name": "a", "version": 1, "expires": "2999-01-01"}}):
        with pytest.raises(mh.InvalidInput, match="not written as its own fields"):
            Protocol.from_cbor(_cbor.written({**fields, **change}))
    for wrong in (b"", protocol.to_json().encode(), protocol.to_cbor() + b"\0"):
        with pytest.raises(mh.InvalidInput):
            Protocol.from_cbor(wrong)
