"""Cells of several ranks at once: their law is the one that is written down."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from joint_losses import doubled_losses
from scipy.stats import chi2

from muhat.mechanisms.quantiles.joint_draw import chosen_together
from muhat.mechanisms.quantiles.joint_paths import PathStep, Tables, window
from muhat.noise import FRACTION_BITS
from muhat.noise.entropy import system_words

UNIT = 1 << FRACTION_BITS
PRECISION = 192


def law(counts: list[int], ranks: list[int], end: int, half_rate: float) -> dict:
    """The weight of all cells in order."""
    losses = doubled_losses(counts, ranks, end)
    return {cells: math.exp(-half_rate * loss) for cells, loss in losses.items()}


def test_weights_of_all_paths_add_up_to_those_of_all_cells() -> None:
    draw = np.random.default_rng(1)
    for _ in range(150):
        counts = draw.integers(0, draw.integers(1, 5), draw.integers(1, 6)).tolist()
        total = sum(counts)
        end = max(1, total + int(draw.integers(-2, 3)))
        many = min(int(draw.integers(1, 5)), end)
        ranks = sorted(draw.choice(np.arange(1, end + 1), many, replace=False).tolist())
        rate = float(draw.choice([0.05, 0.3, 1.0]))
        whole = sum(law(counts, ranks, end, rate).values())
        half_rate = int(rate * UNIT)
        wide = window(many, len(counts), half_rate, abs(total - end), 4)
        steps = [PathStep.of(np.cumsum(counts), rank, wide) for rank in ranks]
        low, high = (
            sum(tables.ended(state) for state in tables.states(many - 1))
            for tables in (Tables(steps, total, end, half_rate, PRECISION, up) for up in (0, 1))
        )
        assert low <= high
        assert low / 2**PRECISION == pytest.approx(whole, rel=1e-12)
        assert high / 2**PRECISION == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize(
    ("counts", "ranks", "end", "rate"),
    [
        ([2, 0, 3, 0, 1], [1, 3, 5], 6, 0.3),
        ([0, 4, 0, 0, 1], [2, 4], 6, 0.2),
        ([3, 0, 0, 2], [1, 2, 4], 4, 0.25),
        ([0, 0, 0], [1, 2], 3, 0.3),
    ],
)
def test_cells_are_drawn_from_their_law(counts, ranks, end, rate) -> None:
    draws, up_to = 800, np.cumsum(counts)
    found = Counter(
        tuple(chosen_together(up_to, ranks, end, int(rate * UNIT))) for _ in range(draws)
    )
    weights = law(counts, ranks, end, rate)
    assert set(found) <= set(weights)
    assert p_value(found, weights, draws) > 1e-6 / 4
    if any(counts):
        # The same draws are none of twice the rate.
        assert p_value(found, law(counts, ranks, end, 2 * rate), draws) < 1e-12


def p_value(found: Counter, weights: dict, draws: int) -> float:
    """That of a χ² test, where all that is rare is one."""
    whole = sum(weights.values())
    often = [cells for cells in weights if draws * weights[cells] >= 8 * whole]
    expected = [draws * weights[cells] / whole for cells in often]
    seen = [found[cells] for cells in often]
    expected, seen = [*expected, draws - sum(expected)], [*seen, draws - sum(seen)]
    pairs = [(one, other) for one, other in zip(seen, expected, strict=True) if other > 1e-6]
    return float(chi2.sf(sum((a - b) ** 2 / b for a, b in pairs), len(pairs) - 1))


def test_a_number_at_the_very_end_gets_more_bits_and_wider_windows() -> None:
    ones = [2**64 - 1] * 3

    def words(count: int) -> np.ndarray:
        given = [ones.pop() if ones else int(system_words(1)[0]) for _ in range(count)]
        return np.array(given, np.uint64)

    up_to = np.cumsum(np.arange(1000) % 3)
    cells = chosen_together(up_to, [100, 500, 900], 1000, UNIT // 8, words)
    assert not ones
    assert cells == sorted(cells)
    assert 0 <= cells[0] <= cells[-1] < 1000


def test_cells_lie_near_their_ranks_where_records_are_many_and_some_are_equal() -> None:
    counts = np.zeros(5000, np.int64)
    counts[::7] = 3
    counts[2100] = 900
    up_to = np.cumsum(counts)
    total = int(up_to[-1])
    ranks = [total * part // 10 for part in range(1, 10)]
    cells = chosen_together(up_to, ranks, total, UNIT)
    for rank, cell in zip(ranks, cells, strict=True):
        assert up_to[cell - 1] - 60 <= rank <= up_to[cell] + 60
