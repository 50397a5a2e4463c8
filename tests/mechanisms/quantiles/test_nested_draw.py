"""Cells that divide records again and again: their law is the one that is written down."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from nested_law import nested_law
from scipy.stats import chi2

from muhat.mechanisms.quantiles.nested_draw import chosen_in_turn, division
from muhat.mechanisms.quantiles.nested_turns import turns_of
from muhat.noise import FRACTION_BITS
from muhat.noise.entropy import system_words

UNIT = 1 << FRACTION_BITS


def p_value(found: Counter, law: dict, draws: int) -> float:
    """That of a χ² test, where all that is rare is one."""
    often = [cells for cells in law if draws * law[cells] >= 8]
    expected = [draws * law[cells] for cells in often]
    seen = [found[cells] for cells in often]
    expected, seen = [*expected, draws - sum(expected)], [*seen, draws - sum(seen)]
    pairs = [(one, other) for one, other in zip(seen, expected, strict=True) if other > 1e-6]
    return float(chi2.sf(sum((a - b) ** 2 / b for a, b in pairs), len(pairs) - 1))


@pytest.mark.parametrize(
    ("counts", "fractions", "rate"),
    [
        ([2, 0, 3, 0, 1], ("1/4", "1/2", "3/4"), 0.6),
        ([0, 7, 0, 0, 1], ("1/3", "2/3"), 0.5),
        ([3, 0, 0, 2], ("0", "1/2", "1"), 0.7),
        ([0, 0, 0], ("1/5", "1/2"), 0.3),
    ],
)
def test_cells_are_drawn_from_their_law(counts, fractions, rate) -> None:
    draws, quantiles = 1500, tuple(map(Fraction, fractions))
    turns, up_to = turns_of(quantiles), np.cumsum(counts)
    rates = [int(rate * (1 + at) * UNIT) for at in range(len(turns))]
    found = Counter(tuple(chosen_in_turn(up_to, turns, rates)) for _ in range(draws))

    def law(times: float, *, lots: bool = True) -> dict:
        def weigh(at: int, off: Fraction) -> float:
            return math.exp(-times * rate * (1 + at) * float(off))

        return nested_law(counts, quantiles, weigh, lots=lots)

    assert set(found) <= set(law(1))
    assert p_value(found, law(1), draws) > 1e-6 / 4
    if any(counts):
        # The same draws are none of three times the rate, or of ranks that do not share a cell.
        assert p_value(found, law(3), draws) < 1e-12
        assert p_value(found, law(1, lots=False), draws) < 1e-12


def test_every_uniform_number_gives_the_rank_of_the_exact_law() -> None:
    counts, rate, steps = [3, 0, 5, 1, 2], 0.4, 1 << 10
    up_to, target = np.cumsum(counts), Fraction(11, 3)
    ranks = []
    for number in range(steps):
        given = [number << 54]

        def words(count: int, given: list[int] = given) -> np.ndarray:
            return np.array([given.pop() if given else 1 << 63 for _ in range(count)], np.uint64)

        cell, rank = division(up_to, target, int(rate * UNIT), words)
        assert (up_to[cell - 1] if cell else 0) <= rank <= up_to[cell]
        ranks.append(rank)
    weights = np.zeros(12)
    for cell, count in enumerate(counts):
        for rank in range(up_to[cell] - count, up_to[cell] + 1):
            weights[rank] += math.exp(-rate * abs(rank - float(target))) / (count + 1)
    share = np.bincount(ranks, minlength=12) / steps
    assert np.abs(share - weights / weights.sum()).max() <= 2 / steps


def test_a_number_at_the_very_end_gets_more_bits_and_more_ranks() -> None:
    ones = [2**64 - 1] * 3

    def words(count: int) -> np.ndarray:
        given = [ones.pop() if ones else int(system_words(1)[0]) for _ in range(count)]
        return np.array(given, np.uint64)

    up_to = np.cumsum(np.arange(3000) % 3)
    cell, rank = division(up_to, Fraction(1500), UNIT // 4, words)
    assert not ones
    assert up_to[cell - 1] <= rank <= up_to[cell]


def test_cells_ascend_and_lie_near_their_ranks_where_some_records_are_equal() -> None:
    counts = np.zeros(5000, np.int64)
    counts[::7] = 3
    counts[2100] = 900
    up_to = np.cumsum(counts)
    total = int(up_to[-1])
    turns = turns_of(tuple(Fraction(part, 10) for part in range(1, 10)))
    cells = chosen_in_turn(up_to, turns, [UNIT] * 9)
    assert cells == sorted(cells)
    for part, cell in enumerate(cells, 1):
        assert up_to[cell - 1] - 80 <= part * total / 10 <= up_to[cell] + 80
