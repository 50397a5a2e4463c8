"""A record's integers are those of the plan, and devices that would find others refuse."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.data.engine import record_integers
from muhat.protocols import Protocol
from muhat.protocols.encodings.record_numbers import check_axes, exact_numbers, traced_axes
from muhat.records.columns import Batch

HOSTILE = [0.0, 0.3, -7.5, 1e308, -1e308, 5e-324, np.inf, np.nan]
OBLIQUE = mh.Zonotope(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))
DOMAINS = [
    mh.Ball(3.0, dim=2, center=[1, -1]),
    mh.Box([0, -5], [1, 5]),
    mh.Simplex(dim=2),
    mh.Points(np.array([[0.0, 0.0], [1.0, 0.5], [0.2, 2.0]])),
    OBLIQUE,
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_integers_do_not_depend_on_the_records_beside_them(domain):
    plan = mh.plan_mean(domain=domain, n=1, privacy=mh.GDP(mu=1.0))
    query = plan.recipe.query
    records = np.array(list(product(HOSTILE, repeat=query.lattice.record_dim)))
    together = exact_numbers(query, records)
    for record, numbers in zip(records, together, strict=True):
        (alone,) = record_integers(query.lattice, Batch(1, matrix=record[None])).tolist()
        assert list(query.answer(alone, 1)) == list(numbers)


def test_axes_are_told_where_they_are_not_the_coordinates_own():
    plans = [mh.plan_mean(domain=each, n=1, privacy=mh.GDP(mu=1.0)) for each in DOMAINS]
    traced = [traced_axes(plan) for plan in plans]
    assert [each is None for each in traced[:2]] == [True, True]
    assert len(traced[-1]) == 2
    for plan, axes in zip(plans, traced, strict=True):
        check_axes(plan, axes)
        if axes is not None:
            check_axes(plan, [value * (1 + 1e-12) for value in axes])
            wrong = (None, [], [-value for value in axes], [*axes, 0.0], [axes[0] + 0.1, *axes[1:]])
        else:
            wrong = ([0.0, 0.0],)
        for other in wrong:
            with pytest.raises(mh.InvalidInput, match="other axes"):
                check_axes(plan, other)


@pytest.mark.parametrize("model", ["local", "shuffle"])
def test_a_device_that_finds_axes_a_hair_away_sends_messages_of_the_same_protocol(model):
    promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    if model == "local":
        protocol = protocols.local_mean(domain=OBLIQUE, n=100, privacy=mh.ZCDP(rho=0.5))
    else:
        protocol = protocols.shuffle_mean(domain=OBLIQUE, n=100, privacy=promise)
    fields = json.loads(protocol.to_json())
    home = fields["randomizer"] if model == "local" else fields["randomizer"]["encoding"]
    home["axes"] = [value * (1 + 2e-15) for value in home["axes"]]
    elsewhere = Protocol.from_json(json.dumps(fields))
    assert json.loads(elsewhere.to_json()) == fields
    home["axes"] = [-value for value in home["axes"]]
    with pytest.raises(mh.InvalidInput, match="other axes"):
        Protocol.from_json(json.dumps(fields))
