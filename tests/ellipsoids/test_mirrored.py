"""Pairs that look the same from both ends have the numbers of all pairs, from half the columns."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.ellipsoids.mirrored import MirroredPairs, centred, is_mirrored
from muhat.ellipsoids.moment_spectra import Explicitly, Pairs, TotalOfRows
from muhat.workloads import Prefix, Ranges


def both(workload, n):
    gram = centred(workload.gram())
    squares, V = np.linalg.eigh(gram)
    rows = TotalOfRows((V[:, 1:] * np.sqrt(squares[1:])).T)
    return MirroredPairs(gram), Explicitly(Pairs(n), rows, n - 1)


@pytest.mark.parametrize("n", [2, 3, 8, 9, 24, 31])
@pytest.mark.parametrize("kind", [Prefix, Ranges])
def test_half_the_columns_say_what_all_of_them_say(n, kind):
    folded, whole = both(kind(n), n)
    w = np.random.default_rng(n).uniform(0.1, 1, folded.count)
    w /= w.sum()
    every = folded.every(w)
    upper = np.triu_indices(n, 1)
    found, known = folded.evaluate(w, np.ones(1)), whole.evaluate(every[upper], np.ones(1))
    assert found.floor == pytest.approx(known.floor, rel=1e-12)
    assert np.allclose(found.h, known.h, rtol=1e-12)
    table = np.zeros((n, n))
    table[upper] = known.g
    assert np.allclose(found.g, table[folded.first, folded.second], rtol=1e-9)
    R, S = found.strategy(), known.strategy()
    assert R.shape == S.shape
    assert np.allclose(R.T @ R, S.T @ S, rtol=1e-9, atol=1e-9 * np.abs(S.T @ S).max())
    assert np.allclose(folded.laplacian(w), Pairs(n).laplacian(every[upper]), atol=1e-15)
    assert found.even() is None


@pytest.mark.parametrize("n", [6, 7])
def test_weights_of_all_pairs_and_of_pairs_with_their_images_are_one(n):
    folded, _ = both(Prefix(n), n)
    w = np.random.default_rng(0).uniform(0.1, 1, folded.count)
    assert folded.every(w).sum() == pytest.approx(2 * w.sum())
    assert np.allclose(folded.together(folded.every(w)[np.triu_indices(n, 1)]), w)
    uneven = np.random.default_rng(1).uniform(0.1, 1, n * (n - 1) // 2)
    assert folded.together(uneven).sum() == pytest.approx(uneven.sum())


def test_what_is_not_the_same_from_both_ends_is_told():
    assert is_mirrored(centred(Prefix(50).gram()))
    assert not is_mirrored(Prefix(50).gram())
    weights = np.arange(1, 6)[:, None] * np.tril(np.ones((5, 5)))
    assert not is_mirrored(centred(weights.T @ weights))
