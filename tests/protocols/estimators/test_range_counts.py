"""Shares of ranges from people's answers: no bias, the variance that was predicted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_mixes import tree_mix

from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.privacy import PureDP
from muhat.protocols.encodings.range_cells import Coordinates, Distance
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.estimators.range_choice import (
    best_mix,
    best_ranges,
    haar_mix,
    predicted_error,
)
from muhat.protocols.estimators.range_counts import RangeCounts, range_counts, several_range_counts
from muhat.protocols.estimators.range_errors import prefix_variance, range_variance
from muhat.protocols.randomizers.frequency import SubsetResponse
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.release.quantile_grids import RelativeGrid

ERRORS = 6.2
"""Standard errors: 6e-10 a comparison, below 1e-6 for all of this file."""

RNG = np.random.default_rng(11)


def uniform_grid(cells: int) -> UniformGrid:
    return UniformGrid(0.0, cells - 1.0, 1.0)


def made(cells: int, mix: LevelMix, response: SubsetResponse) -> RangeRandomizer:
    promise = PureDP(epsilon=response.epsilon)
    return RangeRandomizer(Coordinates(1), uniform_grid(cells), promise, mix, response)


def nonces(rows: int) -> np.ndarray:
    return RNG.integers(0, 256, (rows, 16), np.uint8)


def counted(randomizer: RangeRandomizer, records: np.ndarray) -> RangeCounts:
    drawn = nonces(len(records))
    return range_counts(randomizer, drawn, randomizer.randomize(records[:, None], drawn))


def repeated_errors(
    randomizer: RangeRandomizer, records: np.ndarray, trials: int
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of all prefixes, (trials, u − 1), and the shares of the records' cells."""
    cells = randomizer.grid.cells
    shares = np.bincount(records.astype(int), minlength=cells) / len(records)
    truth = np.concatenate([[0.0], np.cumsum(shares)])
    errors = [counted(randomizer, records).prefix() - truth for _ in range(trials)]
    return np.array(errors)[:, 1:-1], shares


POPULATIONS = {
    "even": np.arange(1000) % 20,
    "one cell": np.full(1000, 13),
    "two cells": np.where(np.arange(1000) % 3, 4, 17),
    "bell": np.clip(np.rint(np.random.default_rng(2).normal(7, 2, 1000)), 0, 19),
}
SCHEMES = [
    (best_mix(20, 1), SubsetResponse(1, 1, 1.0)),
    (best_mix(20, 2), SubsetResponse(2, 1, 1.0)),
    (best_mix(20, 3), SubsetResponse(3, 3, 0.7)),
    (best_mix(20, 4), SubsetResponse(4, 1, 3.0)),
    (tree_mix(20, 4, 2), SubsetResponse(2, 1, 1.5)),
]


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize(("mix", "response"), SCHEMES)
def test_prefixes_have_no_bias_and_the_exact_variance(mix, response, population):
    """19 prefixes for bias; the mean square over all of them for the variance.

    A hundredth is for levels that are drawn a little more or less often than expected.
    """
    randomizer = made(20, mix, response)
    trials = 300
    errors, shares = repeated_errors(randomizer, POPULATIONS[population].astype(float), trials)
    variance = prefix_variance(randomizer.tree, mix, response, 1000 * mix.chances, shares)[1:-1]
    assert (np.abs(errors.mean(axis=0)) < ERRORS * np.sqrt(variance / trials)).all()
    squares = (errors**2 / variance).mean(axis=1)
    assert abs(squares.mean() - 1) < ERRORS * squares.std() / np.sqrt(trials) + 0.01


def test_a_wrong_attenuation_and_a_wrong_variance_are_caught():
    mix, response = SCHEMES[1]
    randomizer, wrong = made(20, mix, response), made(20, mix, SubsetResponse(2, 1, 0.8))
    records = POPULATIONS["one cell"].astype(float)
    truth = np.repeat([0.0, 1.0], [14, 7])
    drawn = [nonces(1000) for _ in range(200)]
    errors = np.array(
        [range_counts(wrong, each, randomizer.randomize(records[:, None], each)).prefix() - truth
         for each in drawn]
    )[:, 1:-1]  # fmt: skip
    far = np.abs(errors.mean(axis=0)) / (errors.std(axis=0) / np.sqrt(200))
    assert far.max() > 2 * ERRORS
    errors, shares = repeated_errors(randomizer, POPULATIONS["even"].astype(float), 1600)
    one_bit = prefix_variance(
        randomizer.tree, SCHEMES[0][0], SCHEMES[0][1], 1000 * SCHEMES[0][0].chances, shares
    )[1:-1]
    squares = (errors**2 / one_bit).mean(axis=1)
    assert abs(squares.mean() - 1) > 1.3 * ERRORS * squares.std() / 40


@pytest.mark.parametrize(
    ("branches", "bits", "even"), [(2, 1, True), (4, 1, False), (4, 2, False), (16, 1, True)]
)
def test_pooled_differences_are_generalised_least_squares_over_the_tree(branches, bits, even):
    """The information of hierarchical histograms, as a matrix of cells, gives the same variances.

    A level with K nodes, hashed to b bits by a random map onto them, tells (2^b − 1)·information
    times K/(K − 1) of every contrast of its nodes.
    """
    cells, mix = 16, tree_mix(16, branches, bits, even=even)
    response = SubsetResponse(bits, 1, 1.0)
    step = branches.bit_length() - 1
    depths = [*range(step, 4, step), 4]
    # The chance of a level follows from how often its last levels are asked about.
    columns = np.zeros((len(depths), 4))
    for row, depth in zip(columns, depths, strict=True):
        row[:depth] = 2.0 ** np.arange(depth) * (2**bits - 1) / (2**depth - 1)
    chances = np.linalg.lstsq(columns.T, mix.averages, rcond=None)[0]
    assert chances.sum() == pytest.approx(1)
    if even:
        np.testing.assert_allclose(chances, 1 / len(depths), rtol=1e-6)
    information = np.zeros((cells, cells))
    for chance, depth in zip(chances, depths, strict=True):
        nodes = np.arange(cells) >> (4 - depth)
        same = (nodes[:, None] == nodes).astype(float)
        known = (2**bits - 1) * response.information * 2**depth / (2**depth - 1)
        information += chance * known * (same - 2.0**-depth)
    prefixes = np.tri(cells + 1, cells, -1)
    contrasts = prefixes - prefixes.mean(axis=1, keepdims=True)
    least_squares = np.einsum(
        "ij,jk,ik->i", contrasts, np.linalg.pinv(information, hermitian=True), contrasts
    )
    even_shares = np.full(cells, 1 / cells)
    found = prefix_variance(CellTree(cells), mix, response, mix.chances, even_shares)
    below = np.arange(cells + 1) / cells
    np.testing.assert_allclose(found, least_squares - below * (1 - below), atol=1e-9, rtol=1e-6)


def test_without_noise_the_shares_are_exact():
    mix = LevelMix(3, ((1, 2, 3),), (1 << 32,))
    records = np.array([0, 0, 0, 3, 3, 7, 5, 5, 5, 5], float)
    counts = counted(made(8, mix, SubsetResponse(3, 1, 60.0)), records)
    exact = np.bincount(records.astype(int), minlength=8) / 10
    np.testing.assert_allclose(counts.histogram(), exact, atol=1e-9)
    np.testing.assert_allclose(counts.density(), exact, atol=1e-9)
    assert [counts.quantile(q) for q in (0.0, 0.25, 0.45, 0.8, 0.95)] == [0.0, 0.0, 3.0, 5.0, 7.0]
    assert counts.histogram()[3:6].sum() == pytest.approx(0.6)
    assert counts.standard_error().max() < 1e-6


def test_what_comes_out_depends_on_the_set_of_messages_alone():
    randomizer = best_ranges(Coordinates(1), uniform_grid(100), PureDP(epsilon=1.0))
    records = RNG.uniform(0, 99, (3000, 1))
    drawn = nonces(3000)
    payloads = randomizer.randomize(records, drawn)
    order = RNG.permutation(3000)
    one = range_counts(randomizer, drawn, payloads)
    other = range_counts(randomizer, drawn[order], payloads[order])
    assert (one.differences == other.differences).all()
    assert (one.prefix() == other.prefix()).all()


def test_several_numbers_are_estimated_side_by_side():
    """Every estimate is that of the messages about its number alone."""
    grid = uniform_grid(16)
    several = best_ranges(Coordinates(3, (2, 0)), grid, PureDP(epsilon=1.0))
    alone = best_ranges(Coordinates(1), grid, PureDP(epsilon=1.0))
    records = RNG.uniform(0, 15, (5000, 3))
    drawn = nonces(5000)
    payloads = several.randomize(records, drawn)
    both = several_range_counts(several, drawn, payloads)
    first = drawn.view("<u4")[:, 0] < 1 << 31
    for counts, chosen in zip(both, (first, ~first), strict=True):
        assert counts.users == chosen.sum()
        expected = range_counts(alone, drawn[chosen], payloads[chosen])
        assert (counts.prefix() == expected.prefix()).all()


def range_error(counts, first, last):
    """The standard error of a range's part of the people, for records that are spread evenly."""
    even = np.full(counts.grid.cells, 1 / counts.grid.cells)
    ends = np.array([first]), np.array([last + 1])
    known = counts.tree, counts.mix, counts.response, counts.messages
    return float(np.sqrt(range_variance(*known, even, *ends))[0])


@pytest.mark.slow
def test_the_error_of_a_range_is_that_of_repeated_estimates():
    randomizer = best_ranges(Coordinates(1), uniform_grid(16), PureDP(epsilon=1.0))
    records, trials = (np.arange(1600) % 16).astype(float), 600
    ranges = [(0, 3), (4, 11), (5, 6), (9, 9), (1, 14)]
    runs = [counted(randomizer, records) for _ in range(trials)]
    prefix_errors = runs[0].standard_error()
    for first, last in ranges:
        found = np.array([run.prefix()[last + 1] - run.prefix()[first] for run in runs])
        errors = found - (last - first + 1) / 16
        predicted = np.mean([range_error(run, first, last) for run in runs])
        # A variance from 600 normal errors is known to 5.8 %; what sampling takes away is 1 %.
        assert abs(errors.var() / predicted**2 - 1) < ERRORS * np.sqrt(2 / trials) + 0.03
        # The two ends of a range share most of their noise: apart they would say far more.
        apart = prefix_errors[first] ** 2 + prefix_errors[last + 1] ** 2
        if first > 0 and last - first < 3:
            assert apart > 1.6 * predicted**2


def test_standard_errors_from_messages_are_those_of_the_true_shares():
    randomizer = best_ranges(Coordinates(1), uniform_grid(64), PureDP(epsilon=1.0))
    records = np.clip(np.rint(np.random.default_rng(4).normal(20, 3, 20_000)), 0, 63)
    counts = counted(randomizer, records)
    shares = np.bincount(records.astype(int), minlength=64) / len(records)
    exact = prefix_variance(
        randomizer.tree, randomizer.mix, randomizer.response, counts.messages, shares
    )
    np.testing.assert_allclose(counts.standard_error()[1:-1], np.sqrt(exact[1:-1]), rtol=0.05)
    assert counts.standard_error()[0] == counts.standard_error()[-1] == 0


def test_no_message_at_all_gives_even_shares_without_a_number_for_the_error():
    randomizer = best_ranges(Coordinates(1), uniform_grid(10), PureDP(epsilon=1.0))
    counts = range_counts(randomizer, nonces(0), np.zeros((0, 1), np.uint8))
    assert counts.users == 0
    assert 0 <= counts.quantile(0.5) <= 9
    assert np.isinf(counts.standard_error()[1:-1]).all()
    assert range_error(counts, 2, 5) == np.inf
    assert (np.diff(counts.monotone()) >= 0).all()


@given(
    cells=st.integers(2, 70),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-3, 1.0, 1e3, 1e300]),
    q=st.floats(0, 1),
)
def test_prefixes_are_monotone_and_quantiles_lie_on_the_grid_whatever_the_noise(
    cells, seed, scale, q
):
    mix = haar_mix(cells)
    differences = scale * np.random.default_rng(seed).standard_normal(1 << mix.levels)
    counts = RangeCounts(
        uniform_grid(cells), mix, SubsetResponse(1, 1, 1.0), np.ones(mix.levels), differences
    )
    monotone = counts.monotone()
    assert monotone[0] == 0
    assert monotone[-1] == 1
    assert (np.diff(monotone) >= 0).all()
    cell = counts.quantile_cell(q)
    assert 0 <= cell < cells
    assert monotone[cell + 1] >= q
    assert cell == 0 or monotone[cell] < q
    assert counts.quantile(q) == cell


def test_hostile_answers_move_a_prefix_by_their_bounded_weight():
    """1 % of messages that all say the same cannot move a prefix further than their weight."""
    randomizer = best_ranges(Coordinates(1), uniform_grid(64), PureDP(epsilon=1.0))
    records = RNG.uniform(0, 63, (20_000, 1))
    drawn = nonces(20_000)
    drawn[:200] = drawn[0]
    drawn[:200, 0] = np.arange(200)
    payloads = randomizer.randomize(records, drawn)
    honest, hostile = payloads.copy(), payloads.copy()
    hostile[:200] = 3
    moved = (
        range_counts(randomizer, drawn, hostile).prefix()
        - range_counts(randomizer, drawn, honest).prefix()
    )
    least = randomizer.response.attenuation * (randomizer.mix.averages.min() * 20_000 * 0.8)
    assert np.abs(moved).max() < 200 * 2 * 0.5 * 3 / least


def test_radii_on_a_geometric_grid_have_quantiles():
    center, n = (3.0, -1.0), 40_000
    records = np.array(center) + RNG.normal(size=(n, 2))
    radial = best_ranges(Distance(center), RelativeGrid(0.01, 100.0, 1.25), PureDP(epsilon=2.0))
    drawn = nonces(n)
    counts = range_counts(radial, drawn, radial.randomize(records, drawn))
    radii = np.linalg.norm(records - center, axis=1)
    tolerance = ERRORS * predicted_error(radial, n).worst
    for q in (0.25, 0.5, 0.9):
        found = counts.quantile(q)
        assert (radii <= found).mean() > q - tolerance
        assert (radii <= found / 1.25).mean() < q + tolerance


def test_questions_that_make_no_sense_are_refused():
    randomizer = best_ranges(Coordinates(1), uniform_grid(10), PureDP(epsilon=1.0))
    counts = range_counts(randomizer, nonces(3), np.zeros((3, 1), np.uint8))
    for q in (-0.1, 1.1, np.nan, "x"):
        with pytest.raises(InvalidInput):
            counts.quantile(q)
    assert "3 messages, 10 cells" in repr(counts)
