"""Differences of many points: the search is exact, and pairs are never all formed."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.ellipsoids.finite import around_columns, around_differences
from muhat.ellipsoids.pairs import Differences, _examine_every_pair

INF = np.inf


def every_difference(points):
    i, j = np.triu_indices(points.shape[1], 1)
    return points[:, i] - points[:, j]


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize("seed", range(4))
def test_differences_agree_with_all_pairs_written_out(seed, p):
    rng = np.random.default_rng(seed)
    points = [
        rng.normal(size=(3, 70)),
        rng.normal(size=(4, 60)) + 1e3,
        rng.integers(0, 2, (6, 40)).astype(float),
        rng.standard_t(1.5, (2, 90)),
    ][seed]
    result, listed = around_differences(points, p), around_columns(every_difference(points), p)
    assert result.converged
    assert result.value == pytest.approx(listed.value, rel=2e-9)
    assert result.active.shape == (result.contacts, 2)


def test_the_exact_search_finds_the_longest_pair():
    rng = np.random.default_rng(1)
    for d, N in [(1, 50), (2, 700), (5, 1500), (3, 9000)]:
        Z = rng.normal(size=(d, N))
        Z -= Z.mean(axis=1)[:, None]
        norms = np.sqrt(np.sum(Z**2, axis=0))
        longest = max(
            float(np.sqrt(np.max(np.sum((Z - Z[:, k : k + 1]) ** 2, axis=0)))) for k in range(N)
        )
        for known in (0.0, 0.5 * longest, longest * (1 - 1e-9)):
            bound, pairs = _examine_every_pair(Z, norms, known)
            assert longest <= bound <= longest * (1 + 1e-12)
            lengths = np.sqrt(np.sum((Z[:, pairs[:, 0]] - Z[:, pairs[:, 1]]) ** 2, axis=0))
            assert lengths.max() == pytest.approx(longest, rel=1e-12)
        bound, pairs = _examine_every_pair(Z, norms, 1.1 * longest)
        assert bound == 1.1 * longest
        assert not len(pairs)


def test_a_hidden_longest_pair_is_not_missed():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(6, 3000))
    points /= np.sqrt(np.sum(points**2, axis=0))
    points[:, 1234] = 0.9 * np.sqrt(1 / 6)
    points[:, 2345] = -1.3 * points[:, 1234]
    body = Differences(points)
    truth = max(np.sqrt(np.sum((points - points[:, [k]]) ** 2, axis=0)).max() for k in range(3000))
    for enough in (0.5, truth * (1 - 1e-9), truth * (1 + 1e-9), 3.0):
        found = body.farthest(np.eye(6), np.zeros(6), 10, enough)
        assert truth <= found.bound
        assert found.bound <= truth * (1 + 1e-12) or found.seen > enough


@pytest.mark.parametrize("p", [2, INF])
def test_ten_thousand_points_contain_all_their_differences(p):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(10, 10_000)) * np.arange(1, 11)[:, None] + 500.0
    result = around_differences(points, p)
    assert result.converged
    whitened = np.linalg.solve(result.factor, points - points[:, :1])
    some = whitened[:, rng.integers(0, 10_000, 200)]
    for z in some.T:
        assert np.sqrt(np.sum((whitened - z[:, None]) ** 2, axis=0)).max() <= 1 + 1e-10
    i, j = result.active.T
    contact = np.sqrt(np.sum((whitened[:, i] - whitened[:, j]) ** 2, axis=0))
    assert np.allclose(contact, 1, atol=1e-4)
    if p == INF:  # the widest coordinate decides, and two points carry it
        assert result.contacts == 1
        assert np.count_nonzero(result.diagonal) == 1


@pytest.mark.slow
def test_a_hundred_thousand_points_are_possible():
    rng = np.random.default_rng(4)
    result = around_differences(rng.normal(size=(10, 100_000)), 2)
    assert result.converged


def test_flat_points_and_repeated_points_work():
    rng = np.random.default_rng(5)
    line = np.outer([1.0, 2.0, -3.0], rng.normal(size=400)) + 10.0
    result = around_differences(line, 2)
    assert result.factor.shape == (3, 1)
    length = np.linalg.norm(line[:, line[0].argmax()] - line[:, line[0].argmin()])
    assert result.value == pytest.approx(length, rel=1e-11)
    repeated = np.repeat(np.eye(3), 50, axis=1)
    assert around_differences(repeated, 2).value == pytest.approx(2.0, rel=2e-9)
