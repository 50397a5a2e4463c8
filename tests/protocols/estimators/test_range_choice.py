"""The scheme with the least predicted error: against all others, and against simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from tree_mixes import tree_mix

from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.privacy import ZCDP, PureDP, pure_within
from muhat.protocols.encodings.range_cells import Coordinates
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.estimators.range_choice import (
    best_mix,
    best_ranges,
    haar_mix,
    predicted_error,
)
from muhat.protocols.estimators.range_counts import range_counts
from muhat.protocols.randomizers.frequency import SubsetResponse
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer

ERRORS = 6.2
"""Standard errors: 6e-10 a comparison, below 1e-6 for all of them."""


def best(cells: int, promise: PureDP | ZCDP) -> RangeRandomizer:
    return best_ranges(Coordinates(1), UniformGrid(0.0, cells - 1.0, 1.0), promise)


def average(cells: int, mix: LevelMix, response: SubsetResponse) -> float:
    """n times the mean variance of prefixes, without what sampling takes away."""
    difficulty = (CellTree(cells).slopes[:, 1:-1] ** 2).mean(axis=1)
    return float(np.sum(difficulty / mix.averages)) / response.information


@pytest.mark.parametrize("cells", [3, 8, 64, 100, 1024])
@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0, 4.0])
def test_no_tree_no_wavelet_and_no_flat_histogram_is_better(cells, epsilon):
    chosen = best(cells, PureDP(epsilon=epsilon))
    least = average(cells, chosen.mix, chosen.response)
    levels = CellTree(cells).levels
    for bits in (1, 2, 3):
        mixes = [tree_mix(cells, 2**step, bits) for step in range(bits, levels + 1)]
        mixes += [tree_mix(cells, 2**step, bits, even=True) for step in range(bits, levels + 1)]
        mixes += [haar_mix(cells)] if bits == 1 else []
        for mix, size in itertools.product(mixes, range(1, 2 ** (bits - 1) + 1)):
            response = SubsetResponse(bits, size, epsilon)
            assert least <= 1.003 * average(cells, mix, response)


def test_which_number_of_bits_wins_and_by_how_much():
    """Against Haar with Hadamard response at its best, u = 1024."""
    gains = {}
    for epsilon in (0.2, 0.5, 1.0, 2.0, 4.0):
        chosen = best(1024, PureDP(epsilon=epsilon))
        wavelet = average(1024, best_mix(1024, 1), SubsetResponse(1, 1, epsilon))
        gain = wavelet / average(1024, chosen.mix, chosen.response)
        gains[epsilon] = (chosen.mix.bits, chosen.response.chosen, round(gain, 2))
    assert gains == {
        0.2: (1, 1, 1.0),
        0.5: (3, 3, 1.06),
        1.0: (2, 1, 1.27),
        2.0: (3, 1, 2.38),
        4.0: (5, 1, 11.3),
    }


@pytest.mark.parametrize(("cells", "bits"), [(16, 2), (16, 3), (50, 2), (50, 4)])
def test_the_mix_is_the_optimum_over_all_sets(cells, bits):
    tree = CellTree(cells)
    difficulty = (tree.slopes[:, 1:-1] ** 2).mean(axis=1)
    sets = list(itertools.combinations(range(tree.levels), bits))
    columns = np.zeros((len(sets), tree.levels))
    for row, each in zip(columns, sets, strict=True):
        row[list(each)] = 2.0 ** np.arange(bits)

    def error(logits: np.ndarray) -> float:
        chances = np.exp(logits - logits.max())
        return float(np.sum(difficulty / (chances / chances.sum() @ columns)))

    least = minimize(error, np.zeros(len(sets)), method="L-BFGS-B").fun
    found = float(np.sum(difficulty / best_mix(cells, bits).averages))
    assert least * (1 - 1e-3) <= found <= least * (1 + 1e-3)


def test_the_wavelet_has_the_error_of_its_formula():
    """Even levels: about h²/12 times the variance of a bit on average, h²/9 at worst.

    Level h − i adds 1/12 + 4^-i/24 to the mean of m², and (1 ± 2^-(i+1))²/9 at the worst cut, whose
    bits alternate.
    """
    levels, n = 14, 10**6
    cells, finer = 1 << levels, np.arange(levels)
    response = SubsetResponse(1, 1, 1.0)
    grid = UniformGrid(0.0, cells - 1.0, 1.0)
    wavelet = RangeRandomizer(Coordinates(1), grid, PureDP(epsilon=1.0), haar_mix(cells), response)
    error = predicted_error(wavelet, n)
    mean = np.sum(1 / 12 + 4.0**-finer / 24) * cells / (cells - 1)
    worst = np.sum((1 + (-1.0) ** finer / 2.0 ** (finer + 1)) ** 2) / 9
    scale = levels * response.variance
    assert n * error.average**2 == pytest.approx(scale * mean - 1 / 6, rel=1e-4)
    assert n * error.worst**2 == pytest.approx(scale * worst - 2 / 9, rel=1e-4)
    assert mean == pytest.approx(levels / 12, rel=0.06)
    assert worst == pytest.approx(levels / 9, rel=0.08)


@pytest.mark.parametrize("rho", [0.01, 0.1, 0.5, 2.0])
def test_a_concentrated_promise_gains_from_the_public_draws(rho):
    chosen = best(1024, ZCDP(rho=rho))
    pure = best(1024, PureDP(epsilon=pure_within(ZCDP(rho=rho))))
    gain = (predicted_error(pure, 1).average / predicted_error(chosen, 1).average) ** 2
    assert gain > 1.8


@pytest.mark.parametrize(("cells", "epsilon"), [(64, 1.0), (100, 0.5), (37, 2.5)])
def test_the_predicted_error_is_that_of_simulation(cells, epsilon):
    """Even records; the mean square over prefixes is known to about 3 %."""
    n, trials = 2000, 500
    chosen = best(cells, PureDP(epsilon=epsilon))
    records = (np.arange(n) % cells).astype(float)[:, None]
    shares = np.bincount(np.arange(n) % cells, minlength=cells) / n
    truth = np.concatenate([[0.0], np.cumsum(shares)])
    rng, squares = np.random.default_rng(8), []
    for _ in range(trials):
        nonces = rng.integers(0, 256, (n, 16), np.uint8)
        counts = range_counts(chosen, nonces, chosen.randomize(records, nonces))
        squares.append(((counts.prefix() - truth)[1:-1] ** 2).mean())
    spread = np.std(squares) / math.sqrt(trials)
    predicted = predicted_error(chosen, n).average ** 2
    assert abs(np.mean(squares) - predicted) < ERRORS * spread
    assert spread < 0.045 * predicted
    # The one-bit wavelet's error, or twice the records, would be told apart.
    assert abs(np.mean(squares) - predicted / 2) > 2 * ERRORS * spread


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "n"), [(64, 10**4), (64, 10**5), (1024, 10**4), (1024, 10**5)])
def test_quantiles_are_as_accurate_as_the_prefixes(cells, n):
    """ε = 1: the rank of a quantile is off by no more than prefixes are, up to 25 %."""
    chosen = best(cells, PureDP(epsilon=1.0))
    rng, misses = np.random.default_rng(cells + n), []
    records = np.clip(np.rint(rng.normal(0.4 * cells, 0.1 * cells, n)), 0, cells - 1)[:, None]
    counts = np.bincount(records[:, 0].astype(int), minlength=cells)
    below = np.concatenate([[0.0], np.cumsum(counts) / n])
    for _ in range(60):
        nonces = rng.integers(0, 256, (n, 16), np.uint8)
        found = range_counts(chosen, nonces, chosen.randomize(records, nonces))
        for q in (0.1, 0.25, 0.5, 0.75, 0.9):
            cell = found.quantile_cell(q)
            misses.append(max(below[cell] - q, q - below[cell + 1], 0.0))
    rank_error = math.sqrt(np.mean(np.square(misses)))
    predicted = predicted_error(chosen, n).average
    assert 0.1 * predicted < rank_error < 1.25 * predicted


def test_trees_that_are_none_are_refused():
    for branches, bits in ((3, 1), (1, 1), (2, 2), (4, 0)):
        with pytest.raises(InvalidInput):
            tree_mix(64, branches, bits)
    with pytest.raises(InvalidInput):
        best_mix(64, 7)
