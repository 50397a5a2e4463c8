"""Many samples at once: what two words decide beyond doubt, decided with numpy.

Every sample is the outcome of trials as in `exact`. Here a trial goes through three sieves:

1. One word: its sign and cell (the first bits of u) mostly lie so far inside a strip that the
   trial is accepted wherever x is. One table look-up gives the strip.
2. Two words: a binary search gives the strip of the first 64 bits of u, and a polynomial with
   a proved error decides. Left over are only trials in the tail or within that error.
3. `exact.settle` goes on from the same two words.

The sieves never disagree with `exact`, they only save its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from muhat.noise import exact
from muhat.noise.density import CELL_BITS, WITHIN_BITS, Density
from muhat.noise.entropy import WORD_BITS, Words
from muhat.noise.integers import fits

BLOCK = 1 << 15
"""Trials at a time: all their arrays fit in the cache."""

TAIL_BITS = 40
"""The sieves leave what has a probability below 2^−40 to the big integers."""

UNDECIDED = np.iinfo(np.int64).min
_ONE = np.uint64(1)
_WITHIN = np.uint64(WITHIN_BITS)
_WITHIN_MASK = np.uint64((1 << WITHIN_BITS) - 1)
_CELL_MASK = ~np.uint64((1 << (WORD_BITS - CELL_BITS)) - 1)


@dataclass(frozen=True)
class Table:
    """The strips of a density as 64-bit integers, for K strips.

    thresholds: floor(2^64·S_k/W) for k = 0, …, K, certified. heights: their differences.
    starts: by sign and cell, floor(2^55·t) at x = 0, or UNDECIDED.
    """

    thresholds: NDArray[np.uint64]
    heights: NDArray[np.float64]
    starts: NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """floor(2^55·t) of independent samples t, of shape (size,), and the ones settled exactly.

    `settled` has, by index, the samples that met the big integers: their floor, which may be
    too large for the array, and the words of theirs that are already drawn. All other bits
    of t below the floor are still to be drawn, uniformly.
    """

    floors: NDArray[np.int64]
    settled: dict[int, exact.Sample]


def draw(density: Density, size: int, words: Words) -> Draw:
    """Independent samples of a density."""
    floors = np.empty(size, np.int64)
    settled: dict[int, exact.Sample] = {}
    rejections = [np.empty(0, np.intp)]
    for begin in range(0, size, BLOCK):
        block = floors[begin : begin + BLOCK]
        rejected, samples = attempt(density, words(block.size), words, out=block)
        rejections.append(rejected + begin)
        settled |= {begin + index: sample for index, sample in samples.items()}
    rejected = np.concatenate(rejections)
    if rejected.size:
        again = draw(density, rejected.size, words)
        floors[rejected] = again.floors
        settled |= {int(rejected[index]): sample for index, sample in again.settled.items()}
    return Draw(floors, settled)


def attempt(
    density: Density, first: NDArray[np.uint64], words: Words, out: NDArray[np.int64]
) -> tuple[NDArray[np.intp], dict[int, exact.Sample]]:
    """One trial for each first word; floor(2^55·t) of the accepted ones goes to `out`.

    Returns the indices of the rejected trials and the samples that were settled exactly.
    """
    strips = table(density)
    start = strips.starts.take((first >> _WITHIN).view(np.int64))
    np.add(start, (first & _WITHIN_MASK).view(np.int64), out=out)
    pending = np.flatnonzero(start == UNDECIDED)
    first = first[pending]
    second = words(pending.size)
    accepted, undecided, floor = _second_sieve(density, strips, first, second)
    out[pending] = floor
    settled: dict[int, exact.Sample] = {}
    for index in np.flatnonzero(undecided):
        sample = exact.settle(density, int(first[index]), int(second[index]), words)
        if sample is None:
            continue
        accepted[index] = True
        settled[int(pending[index])] = sample
        if fits(sample.floor):
            out[pending[index]] = sample.floor
    return pending[~accepted], settled


def _second_sieve(
    density: Density, strips: Table, first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """Which trials are accepted, which are undecided, and floor(2^55·t) if accepted."""
    u = (first << _ONE) & _CELL_MASK | second >> np.uint64(CELL_BITS)
    drawn = (first & _WITHIN_MASK).view(np.int64)
    negative = (first >> np.uint64(WORD_BITS - 1)).view(np.int64)
    flip = -negative
    x = ((drawn ^ flip) & np.int64(_WITHIN_MASK)).astype(np.float64) * 2.0**-WITHIN_BITS
    found = strips.thresholds.searchsorted(u, side="right") - 1
    strip = np.minimum(found, strips.heights.size - 1)
    excess = (u - strips.thresholds[strip]).astype(np.float64)
    height = strips.heights[strip]
    limit = height * falling_exponential(density.rise(strip, x))
    # Cutting at 64 bits moves excess and height by less than 1 unit each, the polynomial is
    # within 2^−21, and float rounding is far below both.
    margin = height * 2.0**-20 + 4
    accepted = excess < limit - margin
    beyond = found == strips.heights.size
    undecided = ~accepted & (excess <= limit + margin)
    # At a threshold itself, or in the tail, the strip is not known.
    doubtful = ((u == strips.thresholds[strip]) & (strip > 0)) | beyond
    return accepted & ~doubtful, undecided | doubtful, ((strip ^ flip) << WITHIN_BITS) + drawn


def falling_exponential(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(−y) for 0 ≤ y ≤ 1/4 with an error below 2^−21: the series up to y⁵ alternates."""
    return 1 - y * (1 - y * (1 / 2 - y * (1 / 6 - y * (1 / 24 - y / 120))))


@lru_cache(maxsize=2)
def table(density: Density) -> Table:
    """The sieves' table, from the big-integer stack; every entry is certified."""
    stack = exact.stack(density, exact.PRECISION)
    whole = 1 << WORD_BITS
    levels: list[int] = []
    for lower, upper in zip(stack.lower, stack.upper, strict=True):
        level = lower * whole // stack.total[1]
        if level != upper * whole // stack.total[0]:
            raise ArithmeticError("The strip table needs more precision.")
        levels.append(level)
        if level > whole - (whole >> TAIL_BITS):
            break
    thresholds = np.array(levels, np.uint64)
    heights = np.diff(thresholds).astype(np.float64)
    starts = _starts(thresholds)
    for array in (thresholds, heights, starts):
        array.setflags(write=False)
    return Table(thresholds, heights, starts)


def _starts(thresholds: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The first sieve: cells inside [S_k, S_k + w_{k+1}), which x cannot lead to rejection."""
    width = np.uint64(1 << (WORD_BITS - CELL_BITS))
    cell = np.arange(1 << CELL_BITS, dtype=np.uint64) * width
    found = thresholds.searchsorted(cell, side="right") - 1
    strip = np.minimum(found, thresholds.size - 3)
    height = thresholds[strip + 2] - thresholds[strip + 1]
    # Thresholds are rounded down, so w_{k+1} may be one unit less than their difference; the
    # first comparison keeps the unsigned subtraction from wrapping.
    inside = (height > width) & (cell - thresholds[strip] <= height - width - _ONE)
    inside &= (found == strip) & ((cell > thresholds[strip]) | (strip == 0))
    positive = np.where(inside, strip << WITHIN_BITS, UNDECIDED)
    negative = np.where(inside, ~strip << WITHIN_BITS, UNDECIDED)
    return np.concatenate([positive, negative])
