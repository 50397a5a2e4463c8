"""Residual queries: exact integers, exact sensitivity, and noise of the size they state."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.mechanisms.queries.residual_fit import absolute_weights, fit_residuals
from muhat.mechanisms.queries.residual_query import ResidualQuery, decoded
from muhat.noise import FRACTION_BITS
from muhat.noise.laws import LAWS
from muhat.privacy import Neighbors
from muhat.workloads import marginals, stack
from muhat.workloads.residuals import factorize_marginal_stack, factorize_marginals

BOTH = [Neighbors.ADD_REMOVE, Neighbors.SUBSTITUTE]
WORKLOADS = [
    marginals((2, 3, 2), order=2),
    marginals((3, 3), sets=[(0,), (0, 1)]),
    marginals((2, 1, 4), sets=[(), (1,), (0, 2)]),
    marginals((2, 2, 2, 2), order=3),
]


def query_for(W, neighbors, *, law="normal", strength=Fraction(1), contributions=1):
    f = factorize_marginals(W, 2, neighbors)
    return fit_residuals(f, LAWS[law], strength, neighbors, contributions)


def counts_for(W, seed=3):
    return np.random.default_rng(seed).poisson(3, W.cells).astype(np.int64)


def margins_of(cells, sets, counts):
    """Exact tables of a histogram, in Python integers where 64 bits might not do."""
    counts = np.asarray(counts).astype(object)
    tables = {}
    for axes in sets:
        gone = tuple(axis for axis in range(len(cells)) if axis not in axes)
        tables[axes] = np.array(counts.sum(axis=gone)).reshape([cells[axis] for axis in axes])
    return tables


def no_noise(k):
    return np.zeros(k, np.int64)


@pytest.mark.parametrize("W", WORKLOADS, ids=str)
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_no_two_neighbours_are_farther_apart_than_the_sensitivity(W, neighbors, norm):
    q = query_for(W, neighbors)
    columns = []
    for cell in np.ndindex(*W.cells):
        one = np.zeros(W.cells, np.int64)
        one[cell] = 1
        columns.append(np.array(q.encode(margins_of(W.cells, q.sets, one)), dtype=object))
    moves = (
        columns
        if neighbors is Neighbors.ADD_REMOVE
        else [a - b for a, b in itertools.combinations(columns, 2)]
    )
    if norm == 2:
        farthest = math.isqrt(max(int(move @ move) for move in moves))
    else:
        size = sum if norm == 1 else max
        farthest = max(size(abs(int(entry)) for entry in move) for move in moves)
    bound = q.sensitivity(norm, neighbors, 1)
    assert farthest <= bound
    if norm == 2 or neighbors is Neighbors.ADD_REMOVE:
        assert bound <= farthest * (1 + Fraction(1, 10**9)) + 1
    assert q.sensitivity(norm, neighbors, 3) == 3 * bound


@pytest.mark.parametrize("W", WORKLOADS, ids=str)
@pytest.mark.parametrize("neighbors", BOTH)
def test_release_without_noise_is_exact(W, neighbors):
    q = query_for(W, neighbors)
    x = counts_for(W)
    answers = q.release(margins_of(W.cells, q.sets, x), no_noise)
    np.testing.assert_allclose(answers, W @ x.ravel(), atol=1e-11)
    assert q.rows == len(q.encode(margins_of(W.cells, q.sets, x)))


@pytest.mark.parametrize("bits", [10, 40, 61, 70])
def test_answers_depend_on_the_noisy_integers_alone(bits):
    generator = np.random.default_rng(bits)
    multiplier = int(generator.integers(1, 1 << 10)) << (bits - 10)
    w = generator.integers(-(10**6), 10**6, 50)
    z = generator.integers(-(1 << 60), 1 << 60, 50)
    shift = generator.integers(-3, 4, 50)
    moved = z.astype(object) - multiplier * shift.astype(object)
    same = decoded(w + shift, moved, multiplier)
    np.testing.assert_array_equal(decoded(w, z, multiplier), same)


def test_huge_counts_stay_exact():
    W = marginals((3, 4), order=1)
    q = query_for(W, Neighbors.ADD_REMOVE)
    x = np.full((3, 4), 2**61, dtype=np.int64)
    x[0, 0] += 1
    margins = margins_of(W.cells, q.sets, x)
    assert margins[(0,)][0] == 4 * 2**61 + 1
    encoded = q.encode(margins)
    position = q.subsets.index((0,))
    start = sum(math.prod(W.cells[a] for a in axes) for axes in q.subsets[:position])
    assert encoded[start] == q.multipliers[position] * 2
    assert encoded[start + 1] == -q.multipliers[position]
    answers = q.release(margins, no_noise)
    assert answers[1] == pytest.approx(4.0 * 2**61)


def fake_normal(seed):
    generator = np.random.default_rng(seed)
    return lambda k: np.rint(generator.normal(size=k) * 2.0**FRACTION_BITS).astype(np.int64)


def spread_is_as_stated(W, q, stated, runs=1000):
    """Whether the empirical variance of every answer is within 5.5 standard errors.

    In 1,000 runs the variance of a normal is known to √(2/1000); the chance of 5.5 standard
    errors is below 1e-7 an answer, and below 1e-6 for the tens of answers here together.
    """
    x = counts_for(W)
    margins = margins_of(W.cells, q.sets, x)
    sample = fake_normal(17)
    errors = np.array([q.release(margins, sample) for _ in range(runs)])
    errors -= W @ x.ravel()
    public = stated == 0
    np.testing.assert_allclose(errors[:, public], 0, atol=1e-9)
    ratio = np.mean(errors[:, ~public] ** 2, axis=0) / stated[~public] ** 2
    return bool((np.abs(ratio - 1) <= 5.5 * math.sqrt(2 / runs)).all())


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("W", WORKLOADS[:3], ids=str)
def test_simulated_errors_have_the_stated_deviations(W, neighbors):
    q = query_for(W, neighbors, strength=Fraction(1, 4))
    stated = q.scales
    assert spread_is_as_stated(W, q, stated)
    f = factorize_marginals(W, 2, neighbors)
    np.testing.assert_allclose(stated, 2 * f.standard_deviations, rtol=1e-6)


def test_a_wrong_multiplier_is_caught():
    W = WORKLOADS[0]
    q = query_for(W, Neighbors.ADD_REMOVE)
    wrong = replace(q, multipliers=tuple(int(1.3 * m) for m in q.multipliers))
    stated = wrong.scales
    assert spread_is_as_stated(W, wrong, stated)
    assert not spread_is_as_stated(W, q, stated)


def test_real_noise_is_added_to_every_table():
    W = WORKLOADS[0]
    q = query_for(W, Neighbors.SUBSTITUTE)
    x = counts_for(W)
    law = LAWS["normal"]
    answers = q.release(margins_of(W.cells, q.sets, x), law.sample)
    scaled = (answers - W @ x.ravel()) / q.scales
    # A normal variable is beyond 6 with a chance of 2e-9, or within 1e-9 with one of 8e-10.
    assert (np.abs(scaled) < 6).all()
    assert (np.abs(scaled) > 1e-9).all()
    for table in W.tables(answers):
        assert table.sum() == pytest.approx(x.sum())


@pytest.mark.parametrize("law", ["normal", "laplace", "euclidean-norm", "maximum-norm"])
@pytest.mark.parametrize("neighbors", BOTH)
def test_multipliers_use_the_whole_promise(law, neighbors):
    W = marginals((5, 2, 9), order=2)
    strength = Fraction(1, 9)
    q = query_for(W, neighbors, law=law, strength=strength, contributions=2)
    moved = q.sensitivity(LAWS[law].sensitivity_norm, neighbors, 2)
    allowed = strength * (1 << 2 * FRACTION_BITS)
    assert moved**2 <= allowed
    assert moved**2 >= allowed * Fraction(999, 1000)


def test_coupled_noise_is_drawn_once():
    W = WORKLOADS[0]
    q = query_for(W, Neighbors.ADD_REMOVE, law="euclidean-norm")
    calls = []

    def sample(k):
        calls.append(k)
        return LAWS["euclidean-norm"].sample(k)

    q.release(margins_of(W.cells, q.sets, counts_for(W)), sample)
    assert calls == [q.rows]


@pytest.mark.parametrize("neighbors", BOTH)
def test_absolute_noise_has_weights_of_its_own(neighbors):
    W = marginals((10, 2, 30), order=2)
    f = factorize_marginals(W, 2, neighbors)

    def error_per_sensitivity(weights):
        sizes = [math.prod(W.cells[axis] for axis in axes) for axes in f.subsets]
        multipliers = [int(2**50 * c**0.5 / n) for c, n in zip(weights, sizes, strict=True)]
        q = ResidualQuery(W.cells, W.sets, (1.0,) * 3, f.subsets, tuple(multipliers))
        return np.linalg.norm(q.scales) * float(q.sensitivity(1.0, neighbors, 1))

    best = error_per_sensitivity(absolute_weights(f))
    for seed in range(5):
        factor = np.random.default_rng(seed).uniform(0.7, 1.3, len(f.subsets))
        assert error_per_sensitivity(absolute_weights(f) * factor) >= best


def test_weighted_tables_come_out_multiplied():
    W = stack([marginals((2, 3), sets=[(0,), (0, 1)]), -2 * marginals((2, 3), sets=[(0,)])])
    f = factorize_marginal_stack(W)
    q = fit_residuals(f, LAWS["normal"], Fraction(1), Neighbors.ADD_REMOVE, 1)
    x = counts_for(W)
    answers = q.release(margins_of(W.cells, q.sets, x), fake_normal(1))
    np.testing.assert_allclose(answers[8:], -2 * answers[:2])
    np.testing.assert_allclose(q.scales, f.standard_deviations, rtol=1e-6)


def test_attributes_beyond_any_histogram_are_released():
    W = marginals((10,) * 30, sets=[(0, 1), (1, 29), (5,)])
    q = query_for(W, Neighbors.SUBSTITUTE)
    codes = np.random.default_rng(0).integers(0, 10, (50, 30))
    margins = {}
    for axes in q.sets:
        margins[axes] = np.zeros([10] * len(axes), np.int64)
        np.add.at(margins[axes], tuple(codes[:, axis] for axis in axes), 1)
    answers = q.release(margins, no_noise, 50)
    np.testing.assert_allclose(W.tables(answers)[1], margins[(1, 29)], atol=1e-10)


def test_bad_input_is_refused():
    W = WORKLOADS[0]
    q = query_for(W, Neighbors.SUBSTITUTE)
    x = counts_for(W)
    margins = margins_of(W.cells, q.sets, x)
    with pytest.raises(InvalidInput, match="number of records is public"):
        q.sensitivity(2.0, Neighbors.ADD_REMOVE, 1)
    with pytest.raises(InvalidInput, match="margins must hold a table over"):
        q.release({}, no_noise)
    with pytest.raises(InvalidInput, match="whole numbers"):
        q.encode({axes: table.astype(float) for axes, table in margins.items()})
    with pytest.raises(InvalidInput, match="too strong for exact arithmetic"):
        query_for(W, Neighbors.ADD_REMOVE, strength=Fraction(1, 10**34))
    f = factorize_marginals(W)
    with pytest.raises(InvalidInput, match="factorisation is for"):
        fit_residuals(f, LAWS["normal"], Fraction(1), Neighbors.SUBSTITUTE, 1)


def test_a_query_must_be_complete():
    with pytest.raises(AssertionError):
        ResidualQuery((2, 2), ((0, 1),), (1.0,), ((), (0,), (0, 1)), (1, 1, 1))
    with pytest.raises(AssertionError):
        ResidualQuery((2,), ((0,),), (1.0,), ((), (0,)), (1, 0))


def test_the_digest_names_every_integer():
    q = query_for(WORKLOADS[0], Neighbors.ADD_REMOVE)
    fields = json.loads(json.dumps(q.to_dict()))
    assert [int(m) for m in fields["multipliers"]] == list(q.multipliers)
    assert [tuple(axes) for axes in fields["subsets"]] == list(q.subsets)
