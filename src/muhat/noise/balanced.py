"""Balanced noise: whole numbers that are the likelier the nearer to 0, and add up to nothing.

    P(z) ∝ b^(|z₁| + … + |z_d|)   for whole z with z₁ + … + z_d = 0

It is geometric noise on d counts, given that it adds up to 0. Where a record is replaced one count
loses what another gains, so nothing but such differences has to be hidden, and this noise has less
variance than any that is hidden by leaving the public total out of geometric noise: of two counts
it is the geometric noise of one. Counts with this noise are whole, and add up to what they should.

Everything is rational, and drawn exactly. Proof: docs/proofs/balanced.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.noise.integers import Integers
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laplace_sums import CUT, NoiseSums
from muhat.noise.law import CombinedLaw
from muhat.noise.marginals import Marginal
from muhat.noise.stair_sums import chernoff, law_of_sum
from muhat.noise.stairs import RATIO_BITS, Stairs, falling, geometric, rounded_up
from muhat.privacy import Privacy

MOST_CELLS = 1 << 10
"""Beyond it balanced noise has less variance than noise of its own on every count by 1/400."""

LEAST_RATIO = 2.0**-24
"""Below it, at ε > 33 for one record, floats would not tell how rarely a count moves."""

MOST_RATIO = math.exp(-(2.0**-12))

_ROUNDING = 2.0**-36
"""More than floats lose of probabilities that are divided by one of 2^-19 or more."""

_BEYOND = 2.0**-60
_LIKE = 1e-9


@dataclass(frozen=True, eq=False)
class BalancedSums(NoiseSums):
    """Sums of some of the cells, one an answer: `peaks` times that of so many of them.

    What all cells have in common counts nothing, so a row of two numbers, u on some of the cells
    and v on the others, is |u − v| times the sum of those, or of the others.
    """

    peaks: Floats
    parts: NDArray[np.int64]
    cells: int
    ratio: float
    unit: int

    def __post_init__(self) -> None:
        if self.peaks.ndim != 1 or not (self.peaks >= 0).all() or np.isinf(self.peaks).any():
            raise InvalidInput("the peaks of noise are finite numbers of at least 0.")
        known = 2 <= self.cells <= MOST_CELLS and LEAST_RATIO <= self.ratio <= MOST_RATIO
        within = ((self.parts >= 1) & (2 * self.parts <= self.cells)).all()
        if not (known and within and self.parts.shape == self.peaks.shape and self.unit >= 1):
            raise InvalidInput("sums of balanced noise are of up to half of its cells.")

    @classmethod
    def of(cls, blocks: Iterable[Floats], law: Balanced) -> Self | None:
        """The sums whose coefficients are the rows of matrices; None if one has three numbers."""
        peaks, parts = [], []
        for block in blocks:
            low, high = block.min(axis=1), block.max(axis=1)
            apart = high - low
            apart[apart <= _LIKE * np.abs(block).max(axis=1)] = 0.0
            up = block - low[:, None] > apart[:, None] / 2
            nearest = np.where(up, high[:, None], low[:, None])
            if (np.abs(block - nearest) > _LIKE * np.abs(block).max()).any():
                return None
            number = np.minimum(up.sum(axis=1), law.cells - up.sum(axis=1))
            peaks.append(apart * (1 + _LIKE))
            parts.append(np.where(apart > 0, number, 1))
        return cls(
            np.concatenate(peaks), np.concatenate(parts), law.cells, float(law.ratio), law.unit
        )

    def reaches(self, miss: float) -> Floats:
        reach = {
            part: _reach(self.ratio, self.cells, part, miss)
            for part in np.unique(self.parts).tolist()
        }
        units = np.array([reach[part] for part in self.parts.tolist()])
        return np.asarray(self.peaks / self.unit * units)


@dataclass(frozen=True)
class Balanced(CombinedLaw, Plain, keys=("name", "cells", "ratio")):
    """Geometric noise of a ratio on some cells, given that it adds up to nothing.

    >>> law = Balanced(2, Fraction(1, 2))  # (z, −z), z geometric of the ratio ¼
    >>> round(law.variance(2) * law.unit**2 / 2, 6), round(2 * 4 / 9, 6)
    (0.888889, 0.888889)
    """

    cells: int
    ratio: Fraction

    name = "balanced"
    kind = NoiseKind.PURE
    balanced = True
    sensitivity_norm = 1.0
    sums_class = BalancedSums

    def __post_init__(self) -> None:
        if not 2 <= self.cells <= MOST_CELLS or not LEAST_RATIO <= self.ratio <= MOST_RATIO:
            raise InvalidInput(
                f"balanced noise is for 2 to {MOST_CELLS} cells and a ratio from "
                f"{LEAST_RATIO:.2g} to {MOST_RATIO:.5g}."
            )

    @cached_property
    def cell(self) -> Stairs:
        """The geometric noise that is drawn until it adds up to nothing."""
        return Stairs(1, 1, self.ratio)

    @property
    def unit(self) -> int:
        return self.cell.unit

    @property
    def most_rows(self) -> int:
        return self.cells

    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """As geometric noise: b^moved ≥ e^−ε, for integers whose total does not move."""
        return self.cell.keeps(promise, moved)

    def sample(self, dim: int) -> Integers:
        if dim != self.cells:
            raise AssertionError("balanced noise is for all cells together")
        return self.drawn(system_words)

    def drawn(self, words: Words) -> Integers:
        """All cells but the last are drawn, and kept as often as the last allows."""
        free = self.cells - 1
        tries = 1 + math.isqrt(free)
        while True:
            for drawn in self.cell.drawn(tries * free, words).reshape(tries, free):
                last = -int(drawn.sum())
                if geometric(self.ratio, words) >= abs(last):
                    return np.append(drawn, last)

    def foreseen(self, count: int, dim: int, start: int) -> tuple[Floats, Floats]:
        """All cells but the last, weighted by how often the last one would be kept."""
        free, weights = self.cell.foreseen(count, self.cells - 1, start)
        last = -free.sum(axis=1)
        kept = float(self.ratio) ** np.abs(last * self.unit)
        return np.column_stack([free, last]), weights * kept

    def variance(self, dim: int) -> float:
        """That of every direction in which the total stays, in squares of the unit."""
        each = _part(float(self.ratio), self.cells, 1)
        places = np.arange(len(each), dtype=np.float64)
        one = 2 * float(places**2 @ each)
        return one * self.cells / (self.cells - 1) / float(self.unit) ** 2

    def mixing(self, dim: int) -> float:
        return self.variance(dim) / self.cell.variance(1)

    @property
    def marginal(self) -> Marginal:
        return self.cell.marginal

    def tail(self, reach: float, dim: int) -> float:
        each = _part(float(self.ratio), self.cells, 1)
        return 2 * float(each[math.floor(reach * self.unit * (1 + 2.0**-50)) + 1 :].sum())

    def joint_tail(self, reach: float, dim: int) -> float:
        return min(1.0, self.cells * self.tail(reach, dim))

    def combined_moment(self, order: float, terms: Floats) -> Floats:
        """That of geometric noise, which adds up to nothing with a known probability."""
        free = self.cell.combined_moment(order, terms)
        return np.asarray(free * _balance(float(self.ratio), self.cells) ** (-1 / order))

    def sums(self, rows: Iterable[Floats]) -> BalancedSums | None:
        return BalancedSums.of(rows, self)

    def combined_half_widths(
        self, scales: Floats, sums: NoiseSums | None, confidence: float, *, joint: bool
    ) -> Floats:
        miss = (1 - confidence) / (len(scales) if joint else 1)
        if sums is not None:
            return sums.reaches(miss)
        free = 1 - miss * _balance(float(self.ratio), self.cells)
        return scales * self.cell.combined_quantile(free, 1, joint=False)


def least_balanced(promise: Privacy | Strength, moved: int, rows: int) -> Balanced | None:
    """The least balanced noise for counts that move so far together; None if they are too many.

    >>> from muhat.privacy import PureDP
    >>> law = least_balanced(PureDP(epsilon=2.0), 2, 2)
    >>> round(law.variance(2) ** 0.5 * law.unit, 3)  # √2 times that of one count
    0.851
    """
    allowed = falling(promise, moved) if moved else None
    if allowed is None or not 2 <= rows <= MOST_CELLS:
        return None
    ratio = Fraction(rounded_up(allowed * (1 << RATIO_BITS)), 1 << RATIO_BITS)
    return Balanced(rows, ratio) if LEAST_RATIO <= ratio <= MOST_RATIO else None


@lru_cache(maxsize=4096)
def _part(ratio: float, cells: int, part: int) -> Floats:
    """P(|S| = ±j) for j from 0 on, S the sum of so many of the cells.

    The others add up to −S, so it is in proportion to P(free S = j)·P(free rest = j).
    """
    rest = cells - part
    half = math.ceil(chernoff(((0, max(part, rest)),), _BEYOND, ratio)) + 1
    both = law_of_sum(part, half, ratio) * law_of_sum(rest, half, ratio)
    both = np.maximum(both, 0.0)
    found = np.asarray(both / (both[0] + 2 * both[1:].sum()))
    found[0] /= 2
    found.setflags(write=False)
    return found


@lru_cache(maxsize=256)
def _balance(ratio: float, cells: int) -> float:
    """The probability with which geometric noise adds up to nothing."""
    half = math.ceil(chernoff(((0, cells),), _BEYOND, ratio)) + 1
    return float(law_of_sum(cells, half, ratio)[0]) * (1 - 1e-9)


@lru_cache(maxsize=4096)
def _reach(ratio: float, cells: int, part: int, miss: float) -> float:
    """t with P(|S| > t) ≤ miss for the sum S of so many of the cells."""
    law = _part(ratio, cells, part)
    held = 2 * np.cumsum(law)
    enough = 1 - held + miss * CUT + _ROUNDING <= miss
    if enough.any():
        return float(np.argmax(enough))
    return chernoff(((0, part),), miss * _balance(ratio, cells), ratio)
