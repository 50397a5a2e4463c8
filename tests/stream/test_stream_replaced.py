"""Events that are replaced: the noise is that of the width, wherever the bounds lie."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.privacy import gaussian_mu_squared
from muhat.stream.grid import EventGrid

PROMISE = mh.ZCDP(rho=0.5)
WEAK = mh.GDP(mu=2.0**20)


def counter_of(lower=100, upper=101, horizon=10, privacy=PROMISE, **options):
    return mh.stream.prefix_counter(
        horizon, privacy, lower, upper, neighbors="substitute", **options
    )


@pytest.mark.parametrize("memory", ["full", "few-buffers"])
def test_far_bounds_have_the_noise_of_near_ones(memory):
    near, far = counter_of(0, 1, memory=memory), counter_of(memory=memory)
    assert (near.standard_errors == far.standard_errors).all()
    assert near.certificate.ratio == far.certificate.ratio
    added = mh.stream.prefix_counter(10, PROMISE, 100, 101, memory=memory)
    assert np.allclose(added.standard_errors, 101 * far.standard_errors, rtol=1e-6)


@pytest.mark.parametrize("memory", ["full", "few-buffers"])
def test_the_sum_is_of_the_events_themselves(memory):
    counter = counter_of(100, 104, privacy=WEAK, memory=memory)
    assert counter.value == 0
    first = counter.push(103)
    rest = counter.push_many([99, None, 1e308, -1e308, math.nan])
    assert np.allclose([first, *rest], np.cumsum([103, 100, 102, 104, 100, 102]), atol=1e-3)
    assert counter.value == rest[-1]


def test_numbers_far_from_the_origin_keep_their_differences():
    counter = counter_of(10**12, 10**12 + 1, privacy=WEAK)
    answers = counter.push_many([10**12, 10**12 + 0.5, 10**12 + 1])
    assert np.allclose(answers - 10**12 * np.arange(1, 4), [0, 0.5, 1.5], atol=1e-3)


def test_scalars_and_arrays_go_to_the_same_grid_points():
    grid = EventGrid.between(Fraction(7, 3), Fraction(5), -36, replaced=True)
    values = np.concatenate([np.linspace(2, 6, 999), [math.nan, math.inf, 1e308, -1e308, 5e-324]])
    placed = grid.place_all(values)
    assert placed.tolist() == [grid.place(float(value)) for value in values]
    assert placed.max() - placed.min() == grid.reach
    assert EventGrid.from_list(grid.to_list()) == grid


@pytest.mark.parametrize("contributions", [1, 2])
def test_no_replaced_event_moves_the_strategy_farther_than_promised(contributions):
    """‖F·D⁻¹·(q − q′)‖² ≤ μ² in rationals, for all steps of a person and both ends."""
    size = 6
    counter = counter_of(
        -7, 3, horizon=size, contributions=contributions, memory="few-buffers"
    )  # whose noise is described as that of long streams
    noise, grid = counter._plan.noise, counter._plan.grids[0]
    root = [Fraction(math.comb(2 * k, k), 4**k) for k in range(size)]
    weights = [int(weight) for weight in noise.weights(0)]
    allowed, farthest = gaussian_mu_squared(PROMISE), Fraction(0)
    width = grid.upper - grid.lower
    for steps in itertools.combinations(range(size), contributions):
        moved = [
            sum(root[t - j] * Fraction(width, weights[j]) for j in steps if j <= t)
            for t in range(size)
        ]
        farthest = max(farthest, sum(entry**2 for entry in moved))
    assert allowed / 2 < farthest <= allowed


def test_noise_for_half_the_width_is_refused():
    mechanism = counter_of(-1, 1)._plan
    (grid,), noise = mechanism.grids, mechanism.noise
    halved = replace(noise, reaches=(max(abs(grid.lower), abs(grid.upper)),))
    with pytest.raises(mh.InvalidInput, match="noise was made for"):
        replace(mechanism, noise=halved)
    added = replace(grid, origin=None)
    with pytest.raises(mh.InvalidInput, match="noise was made for"):
        replace(mechanism, noise=halved, grids=(added,))


def test_vectors_are_replaced_coordinate_by_coordinate():
    counter = counter_of([0, 50], [1, 51], privacy=WEAK)
    assert np.allclose(counter.push([0.5, 60]), [0.5, 51], atol=0.01)
    assert np.allclose(counter.push_many([[1, 50]])[0], [1.5, 101], atol=0.01)
    plain = counter_of([0, 50], [1, 51])
    assert np.allclose(plain.standard_errors[:, 0], plain.standard_errors[:, 1])
    assert 1 <= plain.certificate.ratio < 1.04


def test_a_ledger_of_replaced_records_pays_for_replaced_events(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "budget.db", budget=PROMISE, neighbors="substitute")
    with pytest.raises(mh.InvalidInput, match="neighbors must be"):
        mh.stream.prefix_counter(10, PROMISE, neighbors="add-remove", ledger=ledger)
    counter = mh.stream.prefix_counter(10, PROMISE, 100, 101, ledger=ledger)
    assert counter.standard_errors.max() < 2
    assert "one event replaced" in counter.describe()
    assert "every step has an event" in counter.describe()
    (entry,) = ledger.entries()
    assert entry.plan_digest


@pytest.mark.parametrize("memory", ["full", "few-buffers"])
def test_a_saved_counter_goes_on_from_its_origin(tmp_path, memory):
    counter = counter_of(100, 104, privacy=WEAK, memory=memory)
    counter.push(103)
    counter.save(tmp_path / "state")
    again = mh.stream.restore(tmp_path / "state")
    assert again.value == counter.value
    assert abs(again.push(101) - 204) < 1e-2
    assert "replaced" in again.describe()


def test_bounds_of_no_width_and_unknown_relations_are_refused():
    with pytest.raises(mh.InvalidInput):
        counter_of(1, 1)
    with pytest.raises(mh.InvalidInput, match="neighbors"):
        mh.stream.plan_prefix_counter(10, PROMISE, neighbors="others")
