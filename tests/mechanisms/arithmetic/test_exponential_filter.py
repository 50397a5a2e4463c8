"""A filter of exponentials: near to its sums, the same in any blocks, never beyond its words."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from muhat.mechanisms.arithmetic.exponential_filter import (
    COLUMN,
    ExponentialFilter,
    inverse_filter,
)
from muhat.noise.real_normal import FIRST_BITS, RealNormals
from muhat.workloads.buffered import INVERSE_BITS, ExponentialSum, buffered_root

WHOLE = 1 << INVERSE_BITS
TERMS = ExponentialSum((0, WHOLE // 1000, WHOLE // 3), (WHOLE // 50, WHOLE // 9, WHOLE // 2))


def exact(values: list[int], t: int) -> Fraction:
    """Σ_{s<t} h(t − s)·z_s in units of 2^−55."""
    decays = [1 - Fraction(rest, WHOLE) for rest in TERMS.rests]
    weights = [Fraction(weight, WHOLE) for weight in TERMS.weights]
    h = [sum(w * x**k for w, x in zip(weights, decays, strict=True)) for k in range(t + 1)]
    return sum((h[t - s] * values[s] for s in range(t)), Fraction(0))


def test_it_is_off_by_less_than_it_says():
    floors = RealNormals.draw(3 * COLUMN).floors
    past, _ = ExponentialFilter(TERMS).after([0, 0, 0], floors)
    lasting = 3 * COLUMN * sum(Fraction(weight, WHOLE) for weight in TERMS.weights)
    allowed = (Fraction(1, 1 << 48) + lasting / (1 << 56)) * (1 << FIRST_BITS)
    for t in (0, 1, COLUMN - 1, COLUMN, COLUMN + 1, 2 * COLUMN + 7, 3 * COLUMN - 1):
        assert abs(int(past[t]) - exact(floors.tolist(), t)) <= allowed


def test_blocks_of_any_length_give_the_same():
    floors = RealNormals.draw(8 * COLUMN).floors
    chosen = inverse_filter(buffered_root(10**6))
    at_once, end = chosen.after([0] * len(chosen.weights), floors)
    state, parts = [0] * len(chosen.weights), []
    for start, stop in ((0, 1), (1, 5), (5, 8)):
        part, state = chosen.after(state, floors[start * COLUMN : stop * COLUMN])
        parts.append(part)
    assert (np.concatenate(parts) == at_once).all()
    assert state == end


def test_what_would_leave_the_words_is_noticed():
    chosen = inverse_filter(buffered_root(100))
    with pytest.raises(ArithmeticError, match="thirty"):
        chosen.after([0] * len(chosen.weights), np.full(COLUMN, 200 << FIRST_BITS, np.int64))


def test_too_many_exponentials_are_refused():
    with pytest.raises(ArithmeticError, match="limbs"):
        ExponentialFilter(ExponentialSum((0,) * 13, (0,) * 13))
