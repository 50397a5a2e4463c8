"""The variance of an estimated range: every message enumerated, and repeated estimates."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from muhat.data.grids import UniformGrid
from muhat.privacy import PureDP
from muhat.protocols.encodings.range_cells import Coordinates
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.estimators.range_choice import best_mix, best_ranges, range_difficulty
from muhat.protocols.estimators.range_counts import range_counts
from muhat.protocols.estimators.range_errors import prefix_variance, range_variance, squares_of
from muhat.protocols.randomizers.frequency import SubsetResponse

ERRORS = 6.2
"""Standard errors: 6e-10 a comparison, below 1e-6 for all of this file."""

RNG = np.random.default_rng(12)


def all_ranges(cells: int) -> tuple[np.ndarray, np.ndarray]:
    starts, ends = np.array(list(itertools.combinations(range(cells + 1), 2))).T
    return starts, ends


def parity(number: int) -> int:
    return number.bit_count() & 1


def enumerated(tree: CellTree, levels, response, people, shares, start, end) -> float:
    """n·(E z² − (E z)²) − F(1 − F)/n over all rows, records and answers, one by one."""
    h, bits = tree.levels, len(levels)
    buckets = 1 << bits
    keep = math.exp(response.epsilon) / (math.exp(response.epsilon) + buckets - 1)
    choices = [
        [(free << 1 | 1) << (h - level) for free in range(1 << level - 1)] for level in levels
    ]
    known = {level: response.attenuation * people * 2**rank for rank, level in enumerate(levels)}
    moments, drawn = np.zeros(2), list(itertools.product(*choices))
    for rows in drawn:
        pieces = np.zeros(buckets)
        for character in range(1, buckets):
            parts = [bit for bit in range(bits) if character >> bit & 1]
            level, row = levels[parts[-1]], 0
            for part in parts:
                row ^= rows[part]
            for cut, sign in ((end, 1), (start, -1)):
                way = int(tree.nodes[level - 1, cut]) << (h - level + 1)
                slope = tree.slopes[level - 1, cut]
                pieces[character] += sign * slope * (-1) ** parity(row & way) / known[level]
        for cell, share in enumerate(shares):
            leaf = int(tree.leaves(np.array([cell]))[0])
            bucket = sum(parity(row & leaf) << bit for bit, row in enumerate(rows))
            for answer in range(buckets):
                chance = keep if answer == bucket else (1 - keep) / (buckets - 1)
                z = sum(pieces[each] * (-1) ** parity(each & answer) for each in range(1, buckets))
                moments += share * chance / len(drawn) * np.array([z, z * z])
    inside = shares[start:end].sum()
    return people * (moments[1] - moments[0] ** 2) - inside * (1 - inside) / people


@pytest.mark.parametrize("levels", [(2,), (1, 2), (2, 3), (1, 3), (1, 2, 3)])
@pytest.mark.parametrize("cells", [8, 6])
def test_the_variance_is_that_of_all_messages(levels, cells):
    tree, people = CellTree(cells), 500.0
    mix, response = LevelMix(3, (levels,), (1 << 32,)), SubsetResponse(len(levels), 1, 1.2)
    shares = RNG.dirichlet(np.full(cells, 0.5))
    starts, ends = all_ranges(cells)
    found = range_variance(tree, mix, response, np.array([people]), shares, starts, ends)
    finite = np.isfinite(found)
    assert finite.any()
    # A level that nobody speaks about leaves ranges unknown, and no others.
    silent = [level - 1 for level in (1, 2, 3) if level not in levels]
    assert (finite == (squares_of(tree, starts, ends)[silent] == 0).all(axis=0)).all()
    for start, end, variance in zip(starts[finite], ends[finite], found[finite], strict=True):
        exact = enumerated(tree, levels, response, people, shares, start, end)
        assert variance == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("cells", "bits", "chosen"), [(20, 1, 1), (20, 3, 3), (64, 4, 1)])
def test_a_range_from_the_first_cell_or_to_the_last_is_a_prefix(cells, bits, chosen):
    tree, mix, response = CellTree(cells), best_mix(cells, bits), SubsetResponse(bits, chosen, 1.0)
    shares, edges = RNG.dirichlet(np.full(cells, 0.3)), np.arange(cells + 1)
    asked = (tree, mix, response, 1000 * mix.chances, shares)
    prefix = prefix_variance(*asked)
    np.testing.assert_allclose(range_variance(*asked, 0 * edges, edges), prefix, atol=1e-12)
    np.testing.assert_allclose(range_variance(*asked, edges, 0 * edges + cells), prefix, atol=1e-12)


@pytest.mark.parametrize("cells", [5, 16, 20])
def test_the_difficulty_of_ranges_is_their_mean_square(cells):
    tree = CellTree(cells)
    squares = squares_of(tree, *all_ranges(cells))
    np.testing.assert_allclose(range_difficulty(tree), squares.mean(axis=1))


def test_what_is_best_for_ranges_is_better_for_them_than_what_is_best_for_prefixes():
    grid, promise = UniformGrid(0.0, 63.0, 1.0), PureDP(epsilon=1.0)
    ranges = best_ranges(Coordinates(1), grid, promise, two_sided=True)
    prefixes = best_ranges(Coordinates(1), grid, promise)
    even = np.full(64, 1 / 64)
    ranges_error, prefixes_error = (
        range_variance(each.tree, each.mix, each.response, 1e4 * each.mix.chances, even,
                       *all_ranges(64)).mean()
        for each in (ranges, prefixes)
    )  # fmt: skip
    assert 0.95 < ranges_error / prefixes_error < 0.98


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_repeated_estimates_have_this_variance(epsilon):
    """Records in three cells, where the formula for even records is far off if ε is large.

    210 ranges for bias; the mean square over all of them for the variance, a hundredth of which
    is for levels that are drawn a little more or less often than expected.
    """
    cells, people, trials = 20, 1000, 1000
    promise = PureDP(epsilon=epsilon)
    randomizer = best_ranges(
        Coordinates(1), UniformGrid(0.0, cells - 1.0, 1.0), promise, two_sided=True
    )
    records = np.repeat([3.0, 4.0, 17.0], [500, 300, 200])[:, None]
    shares = np.bincount(records[:, 0].astype(int), minlength=cells) / people
    starts, ends = all_ranges(cells)
    truth = np.concatenate([[0.0], np.cumsum(shares)])
    errors = []
    for _ in range(trials):
        nonces = RNG.integers(0, 256, (people, 16), np.uint8)
        prefix = range_counts(randomizer, nonces, randomizer.randomize(records, nonces)).prefix()
        errors.append((prefix - truth)[ends] - (prefix - truth)[starts])
    errors, whole = np.array(errors), (starts > 0) | (ends < cells)
    errors, starts, ends = errors[:, whole], starts[whole], ends[whole]
    tree, mix, response = randomizer.tree, randomizer.mix, randomizer.response
    asked = (tree, mix, response, people * mix.chances)
    variance = range_variance(*asked, shares, starts, ends)
    assert (np.abs(errors.mean(axis=0)) < ERRORS * np.sqrt(variance / trials)).all()

    def off(predicted: np.ndarray, chosen: np.ndarray) -> float:
        squares = (errors**2 / predicted)[:, chosen].mean(axis=1)
        return (abs(squares.mean() - 1) - 0.01) / (squares.std() / np.sqrt(trials))

    assert off(variance, starts >= 0) < ERRORS
    # Ends that were independent would have far more of it.
    prefix = prefix_variance(*asked, shares)
    assert off(prefix[starts] + prefix[ends], ends - starts < 4) > 2 * ERRORS
    even = range_variance(*asked, np.full(cells, 1 / cells), starts, ends)
    assert epsilon < 4 or off(even, even > 1.3 * variance) > 4 * ERRORS
