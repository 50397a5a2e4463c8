"""A mean on an interval with Student noise whose scale follows the secret number of records.

The release is f + s(n)·w, rounded onto a public grid: f is the exact mean (a public point of the
interval if there are no records), w = t₃/√3 is Student's t at unit variance, and the standard error
s(n) is a public function of the secret n. Which s keep a promise: docs/proofs/smooth.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction

from muhat import _check
from muhat._integers import power_of_two
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.noise.student import RealStudent

Number = float | Fraction

PRECISION = 512
"""Bits to which exponentials are enclosed where a promise or an error is worked out."""

GRID_BITS = 60
"""The grid is at most 2^-60 of the interval: far below what rounding a record may do."""

LEAST_EPSILON = Fraction(1, 1 << 40)
MOST_EPSILON = Fraction(64)
"""Beyond it a promise is kept by the noise of 64."""

_SAFE = 1 + 1e-12
_HALF = Fraction(1, 2)


class StudentMean(Plain):
    """The mean of numbers in `interval`, ε-private where neighbours add or remove a record.

    `n_min` says from which number of records on errors are stated; the promise holds for every
    number.
    """

    interval: tuple[Fraction, Fraction]
    epsilon: Fraction
    grid: Fraction
    n_min: int | None

    @property
    @abstractmethod
    def empty(self) -> Fraction:
        """f if there are no records: a public point of the interval."""

    @property
    @abstractmethod
    def covers_replacement(self) -> bool:
        """Whether ε holds where a record is replaced, too."""

    @abstractmethod
    def _deviation(self, n: int, precision: int) -> tuple[Fraction, Fraction]:
        """Encloses s(n)."""

    @property
    def width(self) -> Fraction:
        """b − a."""
        return self.interval[1] - self.interval[0]

    def run(self, total: Fraction | int, n: int, source: Words = system_words) -> Fraction:
        """The grid point nearest to f + s(n)·w, for the exact sum of n numbers in the interval.

        How long it takes depends on the random bits, and on n only through the length of a few
        integers.
        """
        exact = Fraction(total) / n if n else self.empty
        student = RealStudent.draw(source)
        while True:
            # One round of 64 bits decides all but one case in 2^40 or so, whatever n is.
            student.refine()
            least, most = self._deviation(n, student.bits)
            low, high = student.bounds()
            low *= least if low >= 0 else most
            high *= most if high >= 0 else least
            nearest = math.floor((exact + low) / self.grid + _HALF)
            if nearest == math.floor((exact + high) / self.grid + _HALF):
                return nearest * self.grid

    def standard_error_at(self, n: int) -> float:
        """The standard error if there were n records, rounded up: a public function of n.

        Never to be called with the number of records in the data.
        """
        n = _check.count("n", n, least=0)
        return float(self._deviation(n, PRECISION)[1] + self.grid / 2) * _SAFE


def ends_of(interval: tuple[Number, Number], epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """The two ends, in rationals, or InvalidInput if there is no such mean."""
    lower, upper = (Fraction(end) for end in interval)
    if not lower < upper:
        raise InvalidInput("an interval must have its lower end below its upper end.")
    if not epsilon >= LEAST_EPSILON:
        raise InvalidInput("must be at least 2^-40 for each value released", parameter="epsilon")
    return lower, upper


def grid_of(width: Fraction) -> Fraction:
    """The public grid that values are rounded to."""
    return power_of_two(exponent_of(width) - GRID_BITS)


def exponent_of(value: Fraction) -> int:
    """An e with 2^(e−1) < value < 2^(e+1)."""
    return value.numerator.bit_length() - value.denominator.bit_length()
