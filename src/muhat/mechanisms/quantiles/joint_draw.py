"""Cells of several ranks at once, drawn from the exact law ∝ exp(−2h·Λ/2^54).

The loss Λ and the sums of weights are those of `joint_paths.py`. States are drawn from the last one
to the first. Sums are enclosed, and uniform numbers get as many bits as it takes to fall between
two of them: then precision is doubled, and so are the windows around the ranks, the weight of all
that lies beyond them being bounded. No float takes part. Proof: docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from muhat.mechanisms.quantiles.joint_paths import (
    EMPTY,
    LAST,
    START,
    PathState,
    PathStep,
    Tables,
    window,
)
from muhat.mechanisms.quantiles.rank_choice import enclosed_index
from muhat.mechanisms.quantiles.search_walk import Counts
from muhat.noise import FRACTION_BITS
from muhat.noise.discrete import uniform_below
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.exact import exponential

_FIRST_BITS = 2 * WORD_BITS


class Uniforms:
    """Uniform numbers of [0, 1), each by its first bits; the same ones again with more of them."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._drawn: list[tuple[int, int]] = []

    def bits(self, index: int, least: int) -> tuple[int, int]:
        """The first bits of a number, at least so many: their value and how many they are."""
        if index == len(self._drawn):
            self._drawn.append((0, 0))
        value, known = self._drawn[index]
        while known < least:
            value, known = value << WORD_BITS | int(self._words(1)[0]), known + WORD_BITS
        self._drawn[index] = value, known
        return value, known


def chosen_together(
    up_to: Counts, ranks: Sequence[int], end: int, half_rate: int, words: Words = system_words
) -> list[int]:
    """Cells for ascending ranks, with probability exactly ∝ exp(−2·half_rate·Λ/2^54).

    >>> chosen_together(np.array([0, 2, 2, 2, 6]), [1, 4], 6, 1 << 62)
    [1, 4]
    """
    uniforms = Uniforms(words)
    times = 1
    while True:
        path = _path(up_to, ranks, end, half_rate, times, uniforms)
        if path is not None:
            return [cell for state, many in path for cell in _cells(up_to, state, many, words)]
        times *= 2


def _path(
    up_to: Counts,
    ranks: Sequence[int],
    end: int,
    half_rate: int,
    times: int,
    uniforms: Uniforms,
) -> list[tuple[PathState, int]] | None:
    """States in order, and how many quantiles each stands for; None if all is too coarse."""
    total, most, precision = int(up_to[-1]), len(ranks), times * _FIRST_BITS
    wide = window(most, len(up_to) / (total + 1), half_rate, abs(total - end), times)
    steps = [PathStep.of(up_to, rank, wide) for rank in ranks]
    low, high = (Tables(steps, total, end, half_rate, precision, up) for up in (0, 1))
    farthest = half_rate * 2 * (2 * wide - 2 - abs(total - end))
    lists = math.comb(len(up_to) + most - 1, most)
    beyond = lists * exponential(farthest, FRACTION_BITS, precision)[1]
    if all(len(step.edge) > total for step in steps):
        beyond = 0
    drawn = 0

    def pick(lower: list[int], upper: list[int], over: int = 0) -> int | None:
        nonlocal drawn
        drawn += 1
        below, above = [*accumulate(lower, initial=0)], [*accumulate(upper, initial=0)]
        value, bits = uniforms.bits(drawn - 1, precision)
        return enclosed_index(value, bits, [*below, below[-1]], [*above, above[-1] + over])

    found: list[tuple[PathState, int]] = []
    j = most - 1
    options = low.states(j)
    index = pick([low.ended(one) for one in options], [high.ended(one) for one in options], beyond)
    while index is not None:
        state, many = options[index], 1
        if state.place == EMPTY:
            more = pick(low.choices(j, state.rank), high.choices(j, state.rank))
            if more is None:
                return None
            many = more + 1
        if state.place == START:
            # Every quantile up to here has its own cell.
            found += [(PathState(steps[i].target, LAST), 1) for i in range(j, -1, -1)]
            return found[::-1]
        found.append((state, many))
        j -= many
        if j < 0:
            return found[::-1]
        options = low.states(j)
        index = pick(
            [low.came(j + 1, state, one) for one in options],
            [high.came(j + 1, state, one) for one in options],
        )
    return None


def _cells(up_to: Counts, state: PathState, many: int, words: Words) -> list[int]:
    """The cells of a state, ascending: one, or `many` empty ones, uniform among all such lists."""
    begin = int(np.searchsorted(up_to, state.rank, "left"))
    behind = int(np.searchsorted(up_to, state.rank, "right"))
    if state.place != EMPTY:
        return [begin if state.place == LAST else behind]
    first = begin + (state.rank > 0)
    # Ascending lists with repetitions are sets of `many` different numbers, less 0, 1, ….
    numbers: set[int] = set()
    for last in range(behind - first - 1, behind - first - 1 + many):
        one = uniform_below(last + 1, words)
        numbers.add(last if one in numbers else one)
    return [first + number - before for before, number in enumerate(sorted(numbers))]
