"""An unbiased mean on an interval, purely private although the number of records is secret.

The release is f + s(n)·w, rounded onto a public grid: f is the exact mean (the middle of the
interval if there are no records), w = t₃/√3 is Student's t at unit variance, and the standard
error shrinks with the secret n,

    s(n) = (b − a)·( k/(max(n, v) − m) + B·e^{−βn} ),    k = 1/(2·sinh(ε/4)), m ≈ 3/(2ε).

Its tails let Student's noise hide a change of scale as well as one of place. Between neighbours
n and n + 1 the loss is exactly r + 2·arcosh(cosh r + Δ²/(2·s(n)·s(n+1))), r = ln(s(n)/s(n+1)),
Δ the change of f; the constants are chosen, and checked in rationals, so that it stays below ε.

An improvement on Kamath et al. (2024), Theorem E.6: a third less noise for large n, and far less
for small n. Nothing that depends on n may be shown but the value: s(n) is secret too. Proof:
docs/proofs/smooth.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat._integers import power_of_two
from muhat._plain import Key, Plain
from muhat.domains.box_lattice import BoxLattice
from muhat.mechanisms.sums.smooth_printed import PrintedSmoothMean
from muhat.mechanisms.sums.student_mean import (
    MOST_EPSILON,
    PRECISION,
    Number,
    StudentMean,
    ends_of,
    exponent_of,
    grid_of,
)
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import WORD_BITS, Words, system_words

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class SmoothMean(StudentMean):
    """The mean of numbers in `interval`, ε-private where neighbours add or remove a record.

    `scale`, `shift`, `turn`, `rate` and `start` are k, m, v, β and B; `of` chooses them, and
    constants that do not keep the promise are refused. `n_min` says from which number of records
    on errors are stated; the promise holds for every number.

    >>> mean = SmoothMean.of((0, 1), Fraction(1), n_min=1000)
    >>> round(mean.standard_error_at(1000), 6), round(mean.standard_error_at(50), 6)
    (0.001981, 0.040421)
    >>> value = mean.run(total=400, n=1000)
    """

    interval: tuple[Fraction, Fraction]
    epsilon: Fraction
    scale: Fraction
    shift: Fraction
    turn: int
    rate: Fraction
    start: Fraction
    grid: Fraction
    n_min: int | None = None

    @classmethod
    def of(
        cls, interval: tuple[Number, Number], epsilon: Fraction, *, n_min: int | None = None
    ) -> SmoothMean:
        """The constants for a promise ε, in rationals."""
        lower, upper = ends_of(interval, epsilon)
        strength = min(epsilon, MOST_EPSILON)
        hidden = falling_exponential(strength / 2, PRECISION)[1]
        slope, unit = _slope_and_unit(hidden)
        scale = _short(Fraction(math.isqrt(math.ceil(unit * 4**PRECISION)) + 1, 1 << PRECISION))
        shift = _short(Fraction(3, 4) * slope) - _HALF
        turn = max(2, math.ceil(shift + Fraction(24, 5) * slope))
        while not _tail_holds(turn - shift, shift + _HALF, slope, unit):
            turn += 1
        reach = turn - shift
        rate = _short(min(Fraction(3, 10) * strength, Fraction(3) / reach))
        missing = max(_HALF - 1 / reach, Fraction(0))
        square = missing**2 / (falling_exponential(3 * rate, PRECISION)[0] * _room(strength, rate))
        root = Fraction(math.isqrt(math.ceil(square * 4**PRECISION)) + 1, 1 << PRECISION)
        grid = grid_of(upper - lower)
        start = _short(root) if missing else Fraction(0)
        if shift >= 0:
            start = max(start, _short(_start_for_replacement(scale, reach, rate)))
        return cls((lower, upper), epsilon, scale, shift, turn, rate, start, grid, n_min)

    def __post_init__(self) -> None:
        if self.n_min is not None:
            _check.count("n_min", self.n_min)
        if not self._keeps_promise():
            raise AssertionError("the noise is too small for the promise")

    def _keeps_promise(self) -> bool:
        """The inequalities of docs/proofs/smooth.md, in rationals rounded to the safe side."""
        strength = min(self.epsilon, MOST_EPSILON)
        slope, unit = _slope_and_unit(falling_exponential(strength / 2, PRECISION)[1])
        reach = self.turn - self.shift
        missing = max(_HALF - 1 / reach, Fraction(0)) if reach > 0 else _HALF
        room = _room(strength, self.rate)
        return (
            self.grid > 0
            and self.interval[0] < self.interval[1]
            and reach > 0
            and self.scale > 0
            and self.scale**2 >= unit
            and _tail_holds(reach, self.shift + _HALF, slope, unit)
            and 0 < self.rate * reach <= 4
            and room > 0
            and self.start >= 0
            and self.start**2 * falling_exponential(3 * self.rate, PRECISION)[0] * room
            >= missing**2
        )

    @cached_property
    def covers_replacement(self) -> bool:
        """Whether ε holds where a record is replaced, too; proved for some ε only.

        n stays, so s(n) does, and f moves by (b − a)/n at most: s(n) ≥ (b − a)·k/n is enough.
        """
        needed = _start_for_replacement(self.scale, self.turn - self.shift, self.rate)
        return self.shift >= 0 and self.start >= needed

    @property
    def empty(self) -> Fraction:
        """The middle of the interval."""
        return sum(self.interval, Fraction(0)) / 2

    def _deviation(self, n: int, precision: int) -> tuple[Fraction, Fraction]:
        """Encloses s(n)."""
        lasting = self.scale / (max(n, self.turn) - self.shift)
        least, most = falling_exponential(self.rate * n, precision)
        return (
            (lasting + self.start * least) * self.width,
            (lasting + self.start * most) * self.width,
        )


@dataclass(frozen=True)
class SmoothRecipe(Plain, keys=(Key("mechanism", "name"), "lattice", "means", "contributions")):
    """A mean for every coordinate of a box's lattice, which share ε; None if constant."""

    lattice: BoxLattice
    means: tuple[SmoothMean | PrintedSmoothMean | None, ...]
    contributions: int = 1
    name: str = "smooth"

    @classmethod
    def of(
        cls,
        lattice: BoxLattice,
        epsilon: Fraction,
        *,
        contributions: int = 1,
        p: float = 2.0,
        weights: ArrayLike | None = None,
        n_min: int | None = None,
        faithful: bool = False,
    ) -> SmoothRecipe:
        """Shares of ε ∝ (weight·width)^{p/(p+1)}, which minimise the ℓ_p norm of all errors.

        A person with k records is protected as k neighbours in a row: each has ε/k. With
        `faithful` the noise is that of Theorem E.6 as it is printed.
        """
        made = PrintedSmoothMean if faithful else SmoothMean
        ends = [
            ((center + low) * step, (center + high) * step)
            for center, low, high, step in zip(
                lattice.center_units, lattice.lower, lattice.upper, lattice.grid, strict=True
            )
        ]
        factors = np.ones(lattice.dim) if weights is None else np.asarray(weights, np.float64)
        sizes = factors * np.array([float(high - low) for low, high in ends])
        power = 1.0 if math.isinf(p) else p / (p + 1)
        largest = max(float(sizes.max()), 5e-324)
        parts = [max(1, round((size / largest) ** power * 2**53)) if size else 0 for size in sizes]
        each = epsilon / (max(sum(parts), 1) * contributions)
        return cls(
            lattice,
            tuple(
                made.of(pair, part * each, n_min=n_min) if part else None
                for pair, part in zip(ends, parts, strict=True)
            ),
            contributions,
        )

    @property
    def covers_replacement(self) -> bool:
        """Whether the promise holds where records are replaced, too."""
        return all(mean is None or mean.covers_replacement for mean in self.means)

    @property
    def epsilon(self) -> Fraction:
        """What all coordinates promise together, for a person's records."""
        spent = (mean.epsilon for mean in self.means if mean is not None)
        return sum(spent, Fraction(0)) * self.contributions

    def run(
        self, totals: Sequence[int], count: int, source: Words = system_words
    ) -> list[Fraction]:
        """The noisy mean from the lattice's exact integer sums: absolute, not from the centre."""
        values = []
        columns = zip(self.means, totals, self.lattice.center_units, self.lattice.grid, strict=True)
        for mean, total, center, step in columns:
            if mean is None:
                values.append(center * step)
            else:
                values.append(mean.run((total + count * center) * step, count, source))
        return values

    def standard_error_at(self, n: int) -> Floats:
        """The standard error of each coordinate if there were n records, of shape (d,)."""
        return np.array([0.0 if m is None else m.standard_error_at(n) for m in self.means])


def _start_for_replacement(scale: Fraction, reach: Fraction, rate: Fraction) -> Fraction:
    """The least B, rounded up, for which k/J + B·e^{−βn} ≥ k/n for all n from 1 to J.

    n·e^{−βn} is concave up to 2/β, and falls beyond.
    """
    turn = 2 / rate
    ends = [(Fraction(1), Fraction(1)), (min(turn, reach), min(turn, reach))]
    if reach > turn:
        ends.append((reach, turn))
    return max(
        scale * (1 - line / reach) / (n * falling_exponential(rate * n, PRECISION)[0])
        for n, line in ends
    )


def _slope_and_unit(hidden: Fraction) -> tuple[Fraction, Fraction]:
    """Upper bounds on p = ½·coth(ε/4) and q = 1/(4·sinh²(ε/4)), from one on e^{−ε/2}."""
    return (1 + hidden) / (2 - 2 * hidden), hidden / (1 - hidden) ** 2


def _tail_holds(reach: Fraction, lead: Fraction, slope: Fraction, unit: Fraction) -> bool:
    """P(1/reach) ≥ 0 for the falling polynomial P of the proof, so P(u) ≥ 0 for all u below."""
    if reach <= 0 or lead < 0 or lead * lead > 2 * lead * slope + unit:
        return False
    u = 1 / reach
    first = 2 * lead - slope + (lead * lead - 2 * lead * slope - unit) * u
    return first >= (slope * lead * lead + 2 * lead * unit) * u**2 + unit * lead**2 * u**3


def _room(epsilon: Fraction, rate: Fraction) -> Fraction:
    """A lower bound on 2·(cosh((ε − β)/2) − cosh β), positive only if β < ε/3."""
    if not 0 <= 3 * rate < epsilon:
        return Fraction(0)
    high = falling_exponential((epsilon - rate) / 2, PRECISION)[1]
    least = falling_exponential(rate, PRECISION)[0]
    # x + 1/x falls on (0, 1), so each sum of exponentials is bounded at one end.
    return (high + 1 / high) - (least + 1 / least)


def _short(value: Fraction) -> Fraction:
    """A number of 64 significant bits, not below the value ≥ 0."""
    if not value:
        return value
    step = power_of_two(exponent_of(value) - WORD_BITS)
    return math.ceil(value / step) * step
