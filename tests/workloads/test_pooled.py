"""Many cells under substitution: weights that begin at those of pools of cells."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.ellipsoids.moment_spectra import Pairs
from muhat.workloads import factorize as factors
from muhat.workloads import kron, pooled, prefix, ranges
from muhat.workloads.factorize import factorize

INF = float("inf")


@pytest.fixture
def small_is_large(monkeypatch):
    """Sixty cells are treated as thousands are: pools of four, and only a few steps."""
    monkeypatch.setattr(pooled, "FEWEST", 8)
    monkeypatch.setattr(factors, "LONGEST_SOLVED", 8)
    monkeypatch.setattr(factors, "LARGEST_PAIRED", 8)
    monkeypatch.setattr(factors, "LARGEST_PAIRED_DENSE", 8)
    monkeypatch.setattr("muhat.workloads.gram_factors.steps_for", lambda size, started: 2)


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize(
    ("W", "limit"), [(prefix(61), 0.06), (ranges(20), 0.45), (kron(prefix(7), prefix(8)), 0.16)]
)
def test_two_steps_from_pools_are_near_the_best(W, limit, p, small_is_large):
    found = factorize(W, p, "substitute")
    R = np.asarray(found.strategy)
    for i in range(R.shape[1]):
        assert np.linalg.norm(R - R[:, [i]], axis=0).max() <= 1 + 1e-12
    offset = np.zeros(len(W.dense())) if found.offset is None else found.offset
    answers = np.asarray(found.decoder) @ R + offset[:, None]
    assert np.allclose(answers, W.dense(), atol=1e-8)
    lengths = np.linalg.norm(np.asarray(found.decoder), axis=1)
    assert (lengths <= found.standard_deviations * (1 + 1e-12)).all()
    assert found.gap < limit


def test_what_two_steps_find_is_between_the_bounds_of_the_optimum(small_is_large, monkeypatch):
    rough = factorize(prefix(40), 2, "substitute")
    monkeypatch.undo()
    best = factorize(prefix(40), 2, "substitute")
    assert rough.floor <= best.value <= best.floor * (1 + 1e-5)
    assert best.floor <= rough.value <= best.value * 1.05


def test_pools_are_quarters_along_the_longest_axes():
    inside, shape = pooled._quarter((10,))
    assert inside.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert shape == (3,)
    inside, shape = pooled._quarter((4, 6))
    assert shape == (2, 3)
    assert inside.reshape(4, 6)[2:, :2].tolist() == [[3, 3], [3, 3]]


def test_weights_of_pools_are_spread_over_their_cells():
    inside = np.array([0, 0, 1, 1, 1])
    spread, u = pooled._spread((np.array([1.0]), np.ones(2)), np.arange(5), inside)
    pairs = Pairs(5)
    assert spread.sum() == pytest.approx(1)
    assert (spread[inside[pairs.first] == inside[pairs.second]] == 0).all()
    assert len(u) == 2


@pytest.mark.slow
def test_a_cell_more_than_a_thousand_is_no_cliff():
    found = factorize(prefix(1025), neighbors="substitute")
    assert found.value / np.sqrt(1025) == pytest.approx(3.7067, rel=2e-3)
    assert found.gap < 0.005
