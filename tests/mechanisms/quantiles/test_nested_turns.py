"""Which quantile is chosen first, and what levels have of a promise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from muhat.mechanisms.quantiles.nested_turns import deviation, level_shares, turns_of

QUARTILES = tuple(Fraction(part, 4) for part in (1, 2, 3))


@pytest.mark.parametrize("many", [1, 2, 3, 4, 9, 32])
def test_every_quantile_has_one_turn_after_those_that_it_lies_between(many) -> None:
    fractions = tuple(Fraction(part, many + 1) for part in range(1, many + 1))
    turns = turns_of(fractions)
    assert sorted(turn.place for turn in turns) == list(range(1, many + 1))
    assert turns[-1].level + 1 == many.bit_length()
    ends, known = (0, *fractions, 1), {0, many + 1}
    for turn in turns:
        assert {turn.below, turn.above} <= known
        known.add(turn.place)
        low, high = ends[turn.below], ends[turn.above]
        assert low + turn.share * (high - low) == ends[turn.place]


def test_the_least_and_the_greatest_record_are_aimed_at_half_a_rank_from_the_ends() -> None:
    turns = turns_of((Fraction(0), Fraction(1, 2), Fraction(1)))
    assert {turn.place: turn.target(8) for turn in turns} == {1: 0.5, 2: 4, 3: 7.5}
    assert [turn.weight for turn in turns] == [Fraction(1, 2), 1, 1]


def test_errors_of_the_quantiles_around_one_are_mixed_into_its_own() -> None:
    # The first quartile is off by its own error and by half of the median's.
    assert deviation(turns_of(QUARTILES), [2.0, 3.0, 1.0]) == pytest.approx(np.hypot(3, 1))


@pytest.mark.parametrize("power", [1, 2])
def test_shares_of_levels_make_the_largest_error_least(power) -> None:
    turns = turns_of(tuple(Fraction(part, 10) for part in range(1, 10)))
    weights = tuple(float(turn.weight) for turn in turns)

    def error(shares: list[float]) -> float:
        each = [
            weight / shares[turn.level] ** (1 / power)
            for weight, turn in zip(weights, turns, strict=True)
        ]
        return deviation(turns, each)

    shares = [float(share) for share in level_shares(turns, weights, power)]
    assert 0.999 < sum(shares) <= 1
    best = error(shares)
    assert best < 0.95 * error([0.25] * 4)
    draw = np.random.default_rng(4)
    for _ in range(200):
        other = np.array(shares) * np.exp(draw.normal(0, 0.05, 4))
        assert error((other / other.sum()).tolist()) > 0.999 * best


def test_quartiles_have_the_shares_that_make_all_three_err_alike() -> None:
    # 1/s = √(1/(1 − s)² + 1/4s²), or with squares that add up 1/s = 1/(1 − s) + 1/4s.
    turns = turns_of(QUARTILES)
    for power, first in ((1, 0.4641), (2, 0.4286)):
        assert float(level_shares(turns, (0.5,) * 3, power)[0]) == pytest.approx(first, abs=2e-4)
