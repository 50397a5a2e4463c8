"""Answers to queries are a function of noisy integers, and no neighbour moves those too far.

If every release is a function of v + z alone, v the exact integers of the data and z the noise,
then whatever comes out of one dataset comes out of its neighbour with z + v − v', bit for bit.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hostile import Served, noise_is

import muhat as mh
from muhat.mechanisms.queries.residual_query import ResidualQuery
from muhat.mechanisms.queries.strategy_query import StrategyQuery
from muhat.mechanisms.queries.streaming import PrefixQuery, RunningNoise
from muhat.mechanisms.queries.table_marginals import TableMarginals
from muhat.noise import FRACTION_BITS, rounded_laplace, rounded_normal

W = mh.workloads
WORKLOADS = {
    "dense": W.prefix(6),
    "every interval": W.ranges(4),
    "wide matrix": W.matrix([[1, 2, 0, -1, 3], [0.5, 0, 1, 1, 1]]),
    "deficient matrix": W.matrix([[1, 1, 0], [2, 2, 0], [0, 0, 1]]),
    "identity": W.identity(5),
    "parity": W.parity(3, 2),
    "Kronecker": W.kron(W.prefix(2), W.ranges(2)),
    "Kronecker with identity": W.kron(W.identity(2), W.prefix(3)),
    "Kronecker with parity": W.kron(W.parity(2, 1), W.prefix(2)),
    "Kronecker with marginals": W.kron(W.marginals((2, 2), order=1), W.prefix(2)),
    "marginals": W.marginals((2, 3), order=[1, 2]),
    "marginals without overlap": W.marginals((2, 3), order=1),
    "weighted marginals": W.stack(
        [W.marginals((2, 3), order=1), W.marginals((2, 3), order=0)], [3, 1]
    ),
    "stack": W.stack([W.identity(4), W.prefix(4)], [1, 3]),
    "multiple": -0.3 * W.prefix(4),
    "one cell": W.identity(1),
}
PROMISES = {"normal": mh.ZCDP(rho=0.3), "laplace": mh.PureDP(epsilon=0.7)}
RELATIONS = ("add-remove", "substitute")


def histograms(workload, neighbors, moved=1, most=9):
    """A histogram and a neighbour of it; low bits show best where counts are small."""
    one = np.random.default_rng(5).integers(3, most, workload.shape[1])
    other = one.copy()
    other[0] += moved
    if neighbors == "substitute":
        other[-1] -= moved
    return one, other


def exact_integers(plan, histogram):
    """The blocks of integers that noise is added to, in the order in which it is drawn."""
    query = plan.recipe.query
    counts = histogram.reshape(plan.workload.cells)
    margins = {
        axes: counts.sum(axis=tuple(i for i in range(counts.ndim) if i not in axes))
        for axes in query.sets
    }
    if isinstance(query, StrategyQuery):
        return [query.encode(margins[query.sets[0]]).tolist()]
    if isinstance(query, TableMarginals):
        return [query.encode(margins)]
    assert isinstance(query, ResidualQuery)
    flat, start, blocks = query.encode(margins), 0, {}
    for axes in query.subsets:
        size = math.prod(query.cells[axis] for axis in axes)
        blocks[axes] = flat[start : start + size]
        start += size
    last = query._used_once
    order = [axes for axes in query.subsets if axes not in last]
    order += [axes for axes in query._live if axes in last]
    return [blocks[axes] for axes in order]


def shifted(noise, ours, theirs):
    """z + v − v'."""
    flat = [
        a - b
        for one, other in zip(ours, theirs, strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    return [int(z) + difference for z, difference in zip(noise, flat, strict=True)]


def released(monkeypatch, call, noise):
    """The JSON of a release with this noise, all of which is used."""
    with monkeypatch.context() as patch:
        served = Served(noise)
        noise_is(patch, served)
        text = call().to_json()
        assert served.is_empty
    return text


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("law", PROMISES)
@pytest.mark.parametrize("name", WORKLOADS)
def test_what_comes_out_of_one_histogram_comes_out_of_its_neighbour(
    monkeypatch, name, law, neighbors
):
    workload = WORKLOADS[name]
    plan = mh.plan_queries(workload, privacy=PROMISES[law], neighbors=neighbors)
    laws = {"normal": rounded_normal, "laplace": rounded_laplace}
    sample = laws.get(plan.recipe.law.name, plan.recipe.law.sample)
    for moved, most in ((1, 9), (-1, 9), (3, 10**6)):
        one, other = histograms(workload, neighbors, moved, most)
        ours, theirs = exact_integers(plan, one), exact_integers(plan, other)
        for _ in range(3):
            noise = sample(sum(map(len, ours))).tolist()
            first = released(monkeypatch, lambda one=one: plan.release(one), noise)
            again = released(
                monkeypatch, lambda other=other: plan.release(other), shifted(noise, ours, theirs)
            )
            assert first == again


def test_noise_on_the_exact_answers_would_be_caught():
    """Floats hide the difference in fewer than one draw of a hundred: 20 draws never do."""
    workload = WORKLOADS["dense"]
    plan = mh.plan_queries(workload, privacy=PROMISES["normal"])
    one, other = histograms(workload, "add-remove")
    (ours,), (theirs,) = exact_integers(plan, one), exact_integers(plan, other)
    decoder = plan.factorization.decoder * plan.recipe.unit * 2.0**-FRACTION_BITS
    differences = 0
    for _ in range(20):
        noise = rounded_normal(len(ours))
        moved = np.array(shifted(noise.tolist(), [ours], [theirs]), float)
        first = workload @ one + decoder @ noise.astype(float)
        differences += bool(np.any(workload @ other + decoder @ moved != first))
    assert differences > 10


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_a_long_prefix_is_a_function_of_its_integers(monkeypatch, neighbors):
    plan = mh.plan_queries(W.prefix(4100), privacy=PROMISES["normal"], neighbors=neighbors)
    query = plan.recipe.query
    assert isinstance(query, PrefixQuery)
    one, other = histograms(plan.workload, neighbors, 2)
    step = 1 << -query.noise.exponents[0]
    noise = query.noise.draw()
    texts = []
    for histogram, drawn in (
        (one, noise),
        (other, noise + (step * np.cumsum(one - other))[:, None]),
    ):
        monkeypatch.setattr(RunningNoise, "draw", lambda self, *source, drawn=drawn: drawn)
        texts.append(plan.release(histogram).to_json())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("dim", [1, 2])
def test_a_stream_is_a_function_of_its_integers(monkeypatch, dim):
    lower, upper = (-1, 3) if dim == 1 else ([-1, 0], [3, 5])
    one = np.random.default_rng(3).uniform(-2, 6, (12, dim))
    other = one.copy()
    other[4] = 0
    noise, answers = None, []
    for rows in (one, other):
        with monkeypatch.context() as patch:
            if noise is not None:
                patch.setattr(RunningNoise, "draw", lambda self, noise=noise: noise)
            counter = mh.stream.prefix_counter(12, PROMISES["normal"], lower, upper)
        plan = counter._plan
        sums = np.cumsum(
            [[g.place(x) for g, x in zip(plan.grids, row, strict=True)] for row in rows], 0
        )
        if noise is None:
            noise, first = counter._engine.noise.copy(), sums
        else:
            counter._engine._keep(noise + first - sums)
        pushed = [counter.push(row[0] if dim == 1 else row) for row in rows]
        answers.append(np.array(pushed).tobytes())
    assert answers[0] == answers[1]


@pytest.mark.parametrize("law", PROMISES)
def test_means_of_groups_are_a_function_of_their_integers(monkeypatch, law):
    plan = mh.plan_mean(domain={"x": (0, 8)}, n=None, privacy=PROMISES[law])
    query = plan.recipe.query
    one = pd.DataFrame({"g": ["a", "b", "a", "c"], "x": [1.25, 7.0, 3.1, 4.0]})
    other = pd.concat([one, pd.DataFrame({"g": ["b"], "x": [6.6]})])

    def integers(frame):
        from muhat.data.categories import categories_of
        from muhat.data.groups import open_groups

        groups = categories_of({"g": ["a", "b"]}, missing="drop")
        sums = open_groups(frame, "x", "g", groups, dim=1).sums(query.lattice)
        return [
            query.answer(total, rows) for total, rows in zip(sums.total, sums.rows, strict=True)
        ]

    def means(frame):
        return mh.mean(
            frame, domain={"x": (0, 8)}, privacy=PROMISES[law], by="g", groups=["a", "b"]
        )

    ours, theirs = integers(one), integers(other)
    assert ours[0] == theirs[0]
    assert ours[1] != theirs[1]
    noise = rounded_normal(sum(map(len, ours))).tolist()
    first = released(monkeypatch, lambda: means(one), noise)
    assert released(monkeypatch, lambda: means(other), shifted(noise, ours, theirs)) == first


def differences(workload, neighbors, records):
    """All ways in which `records` records can come, go or be replaced, as changes of counts."""
    cells = workload.shape[1]
    together = [
        np.bincount(chosen, minlength=cells)
        for chosen in itertools.combinations_with_replacement(range(cells), records)
    ]
    if neighbors == "add-remove":
        signs = itertools.product((1, -1), repeat=records)
        single = np.eye(cells, dtype=int)
        ways = {
            tuple(sum(sign * single[cell] for sign, cell in zip(chosen, cells_, strict=True)))
            for chosen in signs
            for cells_ in itertools.combinations_with_replacement(range(cells), records)
        }
        return [np.array(way) for way in ways]
    return [new - old for new, old in itertools.product(together, together)]


@pytest.mark.parametrize("contributions", [1, 2, 3])
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("law", PROMISES)
@pytest.mark.parametrize(
    "name",
    [
        "dense",
        "deficient matrix",
        "identity",
        "Kronecker",
        "parity",
        "marginals",
        "marginals without overlap",
        "stack",
    ],
)
def test_no_neighbour_moves_the_integers_farther_than_declared(name, law, neighbors, contributions):
    workload = (
        WORKLOADS[name]
        if contributions == 1 or WORKLOADS[name].shape[1] < 6
        else W.kron(W.prefix(2), W.prefix(2))
    )
    plan = mh.plan_queries(
        workload, privacy=PROMISES[law], neighbors=neighbors, contributions=contributions
    )
    norm = plan.recipe.law.sensitivity_norm
    declared = plan.recipe.query.sensitivity(norm, plan.neighbors, contributions)
    assert declared**2 <= plan.recipe.protection.strength_squared(plan.recipe.law.kind) * (
        1 << 2 * FRACTION_BITS
    )
    base = np.random.default_rng(1).integers(10, 1000, workload.shape[1])
    before = list(itertools.chain(*exact_integers(plan, base)))
    farthest = Fraction(0)
    for change in differences(workload, neighbors, contributions):
        after = itertools.chain(*exact_integers(plan, base + change))
        moved = [a - b for a, b in zip(after, before, strict=True)]
        if norm == 1:
            size = Fraction(sum(map(abs, moved))) ** 2
        else:
            size = Fraction(sum(entry * entry for entry in moved))
        assert size <= declared**2
        farthest = max(farthest, size)
    # What is declared is not needlessly large either, or the test would see nothing.
    assert farthest >= declared**2 / 9 or declared == 0


def test_a_release_says_nothing_of_its_noise_twice():
    plan = mh.plan_queries(W.prefix(4), privacy=mh.ZCDP(rho=1))
    texts = {json.dumps(plan.release(np.ones(4, int)).to_dict()["value"]) for _ in range(20)}
    assert len(texts) == 20
