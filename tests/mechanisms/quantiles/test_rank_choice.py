"""The exponential mechanism over ranks: its exact law, its privacy, its rank error."""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.rank_choice import RankChoice, draw, rank_losses
from muhat.noise import FRACTION_BITS

PRECISION = 200


@functools.cache
def exponential_bounds(power: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around exp(−power), by the series of exp(power/2^k) and squaring."""
    halvings = max(0, math.ceil(power).bit_length())
    small = power / 2**halvings
    total, term = Fraction(1), Fraction(1)
    for count in range(1, 40):
        term = term * small / count
        total += term
    low, high = rounded(1 / (total + 2 * term), 1 / total)
    for _ in range(halvings):
        low, high = rounded(low * low, high * high)
    return low, high


def rounded(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Both with a short denominator, in the safe direction."""
    unit = 1 << PRECISION
    return Fraction(math.floor(low * unit), unit), Fraction(math.ceil(high * unit), unit)


def law(choice: RankChoice, counts: list[int], rank: int) -> list[tuple[Fraction, Fraction]]:
    """Rational bounds on the probability of every cell."""
    rate = Fraction(choice.multiplier, 1 << FRACTION_BITS)
    weights = [exponential_bounds(rate * loss) for loss in rank_losses(np.array(counts), rank)]
    least, most = (sum(bound[side] for bound in weights) for side in (0, 1))
    return [rounded(low / most, high / least) for low, high in weights]


class Replay:
    """Words given beforehand, then ones that do not matter."""

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def __call__(self, count: int) -> np.ndarray:
        given = [self._words.pop(0) if self._words else 1 << 63 for _ in range(count)]
        return np.array(given, np.uint64)


def test_the_loss_is_the_number_of_records_that_would_have_to_move() -> None:
    for counts in product(range(4), repeat=3):
        total = sum(counts)
        for rank in range(1, total + 1):
            records = np.repeat(np.arange(3), counts)
            losses = rank_losses(np.array(counts), rank)
            assert losses[records[rank - 1]] == 0
            for cell, loss in enumerate(losses):
                needed = min(
                    moved for moved in range(total + 1) if can_hold(records, cell, rank, moved)
                )
                assert loss == needed


def can_hold(records: np.ndarray, cell: int, rank: int, moved: int) -> bool:
    """Whether so many records can move so that the cell has the record of the rank."""
    below, upto = int((records < cell).sum()), int((records <= cell).sum())
    return below - moved < rank <= upto + moved


def test_every_uniform_number_gives_the_cell_of_the_exact_law() -> None:
    choice = RankChoice(5, Fraction(1))
    counts, rank = [3, 0, 5, 1, 2], 4
    bounds = law(choice, counts, rank)
    tops = [sum(high for _, high in bounds[: cell + 1]) for cell in range(5)]
    share = [0] * 5
    steps = 1 << 10
    for number in range(steps):
        cell = choice.find(np.array(counts), rank, words=Replay(number << 54))
        assert cell == min(bisect_right(tops, Fraction(number, steps)), 4)
        share[cell] += 1
    for (low, high), times in zip(bounds, share, strict=True):
        assert float(low) - 1 / steps <= times / steps <= float(high) + 1 / steps
    # A rate that is twice as large gives another cell for one number in ten.
    wrong = RankChoice(5, Fraction(4))
    differ = [
        wrong.find(np.array(counts), rank, words=Replay(number << 54))
        != choice.find(np.array(counts), rank, words=Replay(number << 54))
        for number in range(0, steps, 8)
    ]
    assert sum(differ) > 0.1 * len(differ)


def test_a_number_at_the_edge_between_two_cells_gets_more_bits() -> None:
    # Two equal weights: the first word of ½ decides nothing for the enclosures, the next ones do.
    assert draw([7, 7], 3, Replay(1 << 63, 1)) == 1
    assert draw([7, 7], 3, Replay((1 << 63) - 1, (1 << 64) - 1, 5)) == 0
    # e^-100000 is nothing at the first precision; no uniform number is lost there.
    assert draw([0, 100_000], 0, Replay((1 << 64) - 1)) == 0


def neighbours(counts: list[int]) -> list[list[int]]:
    """All counts with one record replaced."""
    found = []
    for source, target in product(range(len(counts)), repeat=2):
        if counts[source] and source != target:
            other = list(counts)
            other[source] -= 1
            other[target] += 1
            found.append(other)
    return found


def worst_ratio(choice: RankChoice, counts: list[int], rank: int, *, upper: bool) -> Fraction:
    """The largest ratio of probabilities between neighbours, rounded up or down."""
    mine = law(choice, counts, rank)
    return max(
        first[1] / second[0] if upper else first[0] / second[1]
        for other in neighbours(counts)
        for first, second in zip(law(choice, other, rank), mine, strict=True)
    )


HARD = [1, *[0] * 20, 1, 1, 1]
"""If the first record moves to the end, twenty cells lose weight and one gains."""


def test_no_probability_changes_by_more_than_the_promise() -> None:
    epsilon = Fraction(7, 10)
    limit = 1 / exponential_bounds(epsilon)[1]
    for counts in ([3, 1, 4, 1], [0, 9, 0, 0], [1, 1, 1, 1], [40, 0, 0, 40], HARD):
        choice = RankChoice(len(counts), epsilon**2)
        assert epsilon * (1 - Fraction(1, 10**12)) < choice.privacy_loss <= epsilon
        for rank in (2, sum(counts)):
            assert worst_ratio(choice, counts, rank, upper=True) <= limit
    # It comes close; without the 2 in η = ε/2k the promise would be broken, and this would show.
    tight = worst_ratio(RankChoice(len(HARD), epsilon**2), HARD, 2, upper=False)
    assert float(tight) > 0.9 * float(limit)
    broken = worst_ratio(RankChoice(len(HARD), 4 * epsilon**2), HARD, 2, upper=False)
    assert float(broken) > 1.5 * float(limit)


def test_a_person_with_more_records_has_more_noise() -> None:
    one, three = RankChoice(9, Fraction(1)), RankChoice(9, Fraction(1), 3)
    assert three.multiplier == one.multiplier // 3
    assert three.rank_error(0.99) > 2.9 * one.rank_error(0.99)


@pytest.mark.parametrize("spread", [0, 3])
def test_the_rank_error_holds_at_its_confidence(spread: int) -> None:
    # 2000 draws at confidence 0.9: 5.5 standard errors are 0.037, and the bound is never tight.
    choice = RankChoice(64, Fraction(1, 100))
    counts = np.zeros(64, np.int64)
    counts[20 : 21 + spread] = 100
    counts[40] = 300
    rank, error = 60, choice.rank_error(0.9)
    records = np.repeat(np.arange(64), counts)
    low = records[max(rank - error, 1) - 1] if rank - error >= 1 else 0
    high = records[rank + error - 1] if rank + error <= len(records) else 63
    found = [choice.find(counts, rank) for _ in range(2000)]
    inside = np.mean([low <= cell <= high for cell in found])
    assert inside >= 0.9 - 0.037
    astray = RankChoice(64, Fraction(1, 10**6))
    wild = [astray.find(counts, rank) for _ in range(500)]
    assert np.mean([low <= cell <= high for cell in wild]) < 0.8


def test_bad_arguments_are_refused() -> None:
    choice = RankChoice(4, Fraction(1))
    with pytest.raises(InvalidInput, match="4 entries"):
        choice.find(np.array([1, 2]), 1)
    with pytest.raises(InvalidInput, match="rank"):
        choice.find(np.array([1, 2, 3, 4]), 0)
    with pytest.raises(InvalidInput, match="drowns"):
        RankChoice(4, Fraction(1, 1 << 120))
    assert choice.to_dict()["cells"] == 4
