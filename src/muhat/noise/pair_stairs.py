"""Stairs for a sum and a count together: two whole numbers, the likelier the fewer steps from 0.

A record that comes or goes moves a count by 1 and a sum by at most a step m, either way; where
records are replaced, one for another moves the sum alone, by at most 2m. The weight of (s, k) is
b^j, j the fewest such moves that lead to it from {|s| < t, k = 0}: one person takes it one stair up
or down, so b ≥ e^−ε is ε-private. In the row of a k it is `Stairs` in s:

    come or go    |s| < t + m|k| has b^|k|, every further 2m numbers b² times as much
    replaced too  the same, and b times as much

Of all noise on the pair, linear programs say, it has the least E s² + m²·E k², the error of a mean
at the ends of its bounds. Proof: docs/proofs/stairs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NoReturn

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.noise.exact import Enclosure
from muhat.noise.integers import Integers, as_integers
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import Law, Shape
from muhat.noise.least_stairs import LEAST_EPSILON
from muhat.noise.picks import Picks
from muhat.noise.stairs import MOST_STAIRS, RATIO_BITS, Stairs, falling, geometric, rounded_up
from muhat.privacy import Privacy

LARGEST_STEP = 1 << 45
_FINE = 1 << 12


@dataclass(frozen=True)
class PairStairs(
    Law,
    Plain,
    keys=("name", Key("step", text=True), Key("inner", text=True), "ratio", "replaced"),
):
    """Stairs of a sum's step m, an inner radius t and a ratio b, for records that may be replaced.

    >>> law = PairStairs(1, 1, Fraction(1, 2))
    >>> float(law.sum_square), float(law.count_square)
    (7.6, 8.8)
    """

    step: int
    inner: int
    ratio: Fraction
    replaced: bool = False

    name = "pair-stairs"
    kind = NoiseKind.PURE
    sensitivity_norm = 0.0
    log_concave = False

    def __post_init__(self) -> None:
        shaped = 1 <= self.inner <= 2 * self.step <= 2 * LARGEST_STEP and 0 < self.ratio < 1
        if not shaped or self.ratio.denominator > 1 << 2 * RATIO_BITS:
            raise InvalidInput("stairs of a pair need 1 <= inner <= 2 step, and a ratio below 1.")

    @property
    def most_rows(self) -> int:
        """A sum and its count."""
        return 2

    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """b^moves ≥ e^−ε, rounded up; what is `moved` is counted in moves of one value."""
        allowed = falling(promise)
        return allowed is not None and self.ratio ** math.ceil(moved) >= allowed

    def row(self, count: int) -> Stairs:
        """The noise of the sum beside that of a count."""
        return _row(self, abs(count))

    def mass(self, count: int) -> Fraction:
        """What all sums beside a count weigh, over b^|k|: a line in |k|."""
        row = self.row(count)
        return 2 * row.inner - 1 + 2 * row.step * row.ratio / (1 - row.ratio)

    @cached_property
    def total(self) -> Fraction:
        """What all pairs weigh."""
        return _series(self.mass, self.ratio)

    @cached_property
    def sum_square(self) -> Fraction:
        """E s², exactly."""
        squares = _series(lambda k: self.mass(k) * self.row(k).second_moment, self.ratio)
        return squares / self.total

    @cached_property
    def count_square(self) -> Fraction:
        """E k², exactly."""
        return _series(lambda k: self.mass(k) * k * k, self.ratio) / self.total

    @cached_property
    def unit(self) -> int:
        """A power of two near the scale of the sum's noise: errors are counted in it."""
        return 1 << max(0, round(math.log2(self.step / -math.log(self.ratio))))

    @cached_property
    def count_unit(self) -> float:
        """In which unit the count has the variance that the sum has in its own."""
        return math.sqrt(self.count_square / self.variance(2))

    def sample(self, dim: int) -> Integers:
        if dim != 2:
            raise AssertionError("stairs of a pair are for a sum and its count")
        return as_integers(self.drawn(system_words))

    def drawn(self, words: Words) -> list[int]:
        """A sum and a count: first the count, then the sum beside it."""
        part = int(self._parts.draw(1, words)[0])
        size = 0 if part == 0 else 1 + sum(geometric(self.ratio, words) for _ in range(part))
        count = -size if int(words(1)[0]) & 1 else size
        return [int(self.row(size).drawn(1, words)[0]), count]

    @cached_property
    def _parts(self) -> Picks:
        """Counts weigh b^k·(α + βk), twice from 1 on: α at 0, 2α·b^k as 1 and a geometric number,
        2βk·b^k as 1 and two of them."""
        b, first = self.ratio, self.mass(0)
        once = 2 * first * b / (1 - b)
        ends = [first / self.total, (first + once) / self.total]

        def enclosed(precision: int) -> list[Enclosure]:
            places = [end * (1 << precision) for end in ends]
            return [(math.floor(place), rounded_up(place)) for place in places]

        return Picks(enclosed)

    @property
    def marginal(self) -> NoReturn:
        raise AssertionError("of a pair there is one sum, whose errors are known exactly")

    def mixing(self, dim: int) -> float:
        return 1.0

    def variance(self, dim: int) -> float:
        """E s² in squares of the unit, and E k² in those of its own."""
        return float(self.sum_square) / float(self.unit) ** 2

    @cached_property
    def _rows(self) -> tuple[Floats, Floats]:
        """Counts from 0 on and their chances on both sides: all but 1e−12 of them."""
        reach = min(MOST_STAIRS, math.ceil(32 / -math.log(self.ratio)))
        first, second = float(self.mass(0) / self.total), float(self.mass(1) / self.total)
        sizes = np.arange(reach + 1, dtype=np.float64)
        chances = float(self.ratio) ** sizes * (first + (second - first) * sizes)
        return sizes, chances * np.where(sizes > 0, 2.0, 1.0)

    @cached_property
    def _row_ratio(self) -> float:
        return float(self.row(0).ratio)

    def _above(self, counts: Floats, places: Floats) -> Floats:
        """P(s > place | k), elementwise."""
        b = self._row_ratio
        outer, inner = 4 * self.step * b / (1 - b), self.inner + self.step * counts
        sizes = np.maximum(np.where(places < 0, np.ceil(-places), np.floor(places) + 1), 1.0)
        stair = np.maximum(np.floor((sizes - inner) / (2 * self.step)) + 1, 0.0)
        room = inner + stair * 2 * self.step - sizes
        half = b**stair * (room + outer / 2) / (2 * inner - 1 + outer)
        return np.asarray(np.where(places < 0, 1 - half, half))

    def tail(self, reach: float, dim: int) -> float:
        return float(self.pair_tail(np.array(reach), np.array(1.0), np.array(0.0), dim))

    def joint_tail(self, reach: float, dim: int) -> float:
        count = self.pair_tail(np.array(reach), np.array(0.0), np.array(1.0), dim)
        return min(1.0, self.tail(reach, dim) + float(count))

    def pair_tail(self, reach: Floats, first: Floats, second: Floats, rows: int) -> Floats:
        """Σ_k P(k)·P(|a·s + b·k| > reach | k); what lies beyond the counts is added."""
        counts, chances = self._rows
        shape = np.broadcast_shapes(np.shape(reach), np.shape(first), np.shape(second))
        r, a, b = (np.broadcast_to(x, shape)[..., None] for x in (reach, first, second))
        a, b = np.abs(a) / self.unit, b / self.count_unit
        far = np.maximum(r, 0.0) * (1 + 2.0**-50)
        scale = np.where(a > 0, a, 1.0)
        shifted = [self._above(counts, (far + sign * b * counts) / scale) for sign in (-1, 1)]
        alone = (np.abs(b * counts) > far).astype(np.float64)
        found = np.where(a > 0, shifted[0] + shifted[1], alone) @ chances
        return np.asarray(np.minimum(found + 1e-12, 1.0))


@dataclass(frozen=True)
class PairSum(Shape, Plain, keys=("name", "law", "first", "second")):
    """One number that is made of both: first·s + second·k in their units, first² + second² = 1."""

    law: PairStairs
    first: float
    second: float

    name = "pair-sum"
    log_concave = False

    def __post_init__(self) -> None:
        if not math.isclose(math.hypot(self.first, self.second), 1.0, rel_tol=1e-9):
            raise InvalidInput("what a number is made of has a length of 1.")

    @property
    def marginal(self) -> NoReturn:
        raise AssertionError("of a pair there is one sum, whose errors are known exactly")

    def mixing(self, dim: int) -> float:
        return 1.0

    def variance(self, dim: int) -> float:
        """That of each, in its unit: s and k have no covariance."""
        return self.law.variance(2)

    def tail(self, reach: float, dim: int) -> float:
        return float(
            self.law.pair_tail(np.array(reach), np.array(self.first), np.array(self.second), 2)
        )

    def joint_tail(self, reach: float, dim: int) -> float:
        return self.tail(reach, dim)


@lru_cache(maxsize=1024)
def _row(law: PairStairs, size: int) -> Stairs:
    ratio = law.ratio if law.replaced else law.ratio**2
    return Stairs(2 * law.step, law.inner + law.step * size, ratio)


def _series(weight: Callable[[int], Fraction], ratio: Fraction) -> Fraction:
    """Σ b^|k|·f(|k|) over all whole k, f of degree 3 at most: Σ b^k·C(k, i) = b^i/(1 − b)^{i+1}."""
    values, whole = [Fraction(weight(k)) for k in range(4)], Fraction(0)
    first = values[0]
    for i in range(4):
        whole += values[0] * ratio**i / (1 - ratio) ** (i + 1)
        values = [after - before for before, after in pairwise(values)]
    return 2 * whole - first


@lru_cache(maxsize=64)
def least_pair(
    promise: Privacy | Strength, step: int, moves: int, replaced: bool
) -> PairStairs | None:
    """The stairs of a pair with the least E s² + m²·E k² that hide so many moves; None for none.

    >>> from muhat.privacy import PureDP
    >>> law = least_pair(PureDP(epsilon=1.0), 1 << 40, 1, False)
    >>> round(float(law.sum_square / (1 << 80) + law.count_square), 3)
    7.672
    """
    allowed = falling(promise, moves)
    if allowed is None or allowed > math.exp(-LEAST_EPSILON) or not 1 <= step <= LARGEST_STEP:
        return None
    ratio = Fraction(rounded_up(allowed * (1 << RATIO_BITS)), 1 << RATIO_BITS)
    fine = min(step, _FINE)

    def error(inner: int) -> Fraction:
        law = PairStairs(fine, inner, ratio, replaced)
        return law.sum_square + fine**2 * law.count_square

    low, high = 1, 2 * fine
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= error(middle + 1) else (middle + 1, high)
    return PairStairs(step, max(1, low * step // fine), ratio, replaced)
