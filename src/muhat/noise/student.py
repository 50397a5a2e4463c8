"""Student's t with 3 degrees of freedom as a real number, known to as many bits as asked for.

Let (x, y) be uniform in the unit disk. Then w = y/(1 + x), the slope under which the point is
seen from (−1, 0), has the density 2/(π·(1 + w²)²): it is t₃/√3, with mean 0 and variance 1. So
nothing but fair bits and the comparison x² + y² ≤ 1 is needed, both exact in integers. Proof:
docs/proofs/smooth.md. How far a mean with such noise may lie from the exact one is its spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.norms import RealNumbers
from muhat.noise.spread import check_covariance_size


@dataclass(eq=False)
class RealStudent:
    """One w = t₃/√3, as a point (x, y) of the disk whose coordinates are drawn bit by bit.

    >>> student = RealStudent.draw()
    >>> low, high = student.bounds()
    >>> student.refine()
    >>> finer_low, finer_high = student.bounds()
    >>> low <= finer_low <= finer_high <= high
    True
    """

    _point: RealNumbers
    _source: Words

    @classmethod
    def draw(cls, source: Words = system_words) -> RealStudent:
        """A sample, from the operating system's entropy unless a test replays words."""
        while True:
            point = RealNumbers.uniform(2, source)
            while (accepted := _is_inside(point.floors, point.bits)) is None:
                point.refine(source)
            if accepted:
                return cls(point, source)

    @property
    def bits(self) -> int:
        """How many fractional bits of x and y are known."""
        return self._point.bits

    def refine(self) -> None:
        """Draw 64 more bits of x and of y."""
        self._point.refine(self._source)

    def bounds(self) -> tuple[Fraction, Fraction]:
        """Rationals that enclose w."""
        while self._point.floors[0] == -(1 << self.bits):
            # The bits so far allow x = −1, where w is infinite.
            self.refine()
        x, y = self._point.floors
        near, far = (1 << self.bits) + x, (1 << self.bits) + x + 1
        if y >= 0:
            return Fraction(y, far), Fraction(y + 1, near)
        return Fraction(y, near), Fraction(y + 1, far)


def _is_inside(floors: list[int], bits: int) -> bool | None:
    """Whether x² + y² ≤ 1 for all numbers that begin with these bits; None if that is open.

    A coordinate lies in [a, a + 1]/2^bits, so that its absolute value is between the smaller
    and the larger of |a| and |a + 1|.
    """
    one = 1 << 2 * bits
    ends = [sorted((abs(a), abs(a + 1))) for a in floors]
    if sum(far * far for _, far in ends) <= one:
        return True
    if sum(near * near for near, _ in ends) >= one:
        return False
    return None


def tail(reach: float) -> float:
    """P(|w| > reach) for w = t₃/√3.

    >>> round(tail(0.0), 12), round(tail(1.0), 6)
    (1.0, 0.18169)
    """
    angle = 2 * math.atan2(1.0, reach)
    if angle < 0.01:
        # angle − sin(angle) would cancel; three terms of its series leave less than 1e-13 of it.
        return angle**3 / (6 * math.pi) * (1 - angle**2 / 20 + angle**4 / 840)
    return (angle - math.sin(angle)) / math.pi


def quantile(confidence: float) -> float:
    """The least reach with P(|w| > reach) ≤ 1 − confidence, rounded up.

    >>> round(quantile(0.95), 4)
    1.8374
    """
    excess = 1 - _check.probability("confidence", confidence)
    low, high = 0.0, 1.0
    while tail(high) > excess:
        high *= 2
    for _ in range(WORD_BITS):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > excess else (low, middle)
    return high * (1 + 1e-10)


@dataclass(frozen=True, eq=False)
class StudentSpread(Plain):
    """Independent noise s_j·t₃/√3 with s_j at most `scales`, of shape (d,): a public bound.

    The scale itself depends on the secret number of records and is never told.
    """

    scales: Floats

    @property
    def standard_error(self) -> Floats:
        """Above the standard deviation of each coordinate, of shape (d,)."""
        return self.scales

    @property
    def covariance(self) -> Floats:
        """Above the covariance of the noise, of shape (d, d)."""
        check_covariance_size(len(self.scales))
        return np.diag(self.scales**2)

    def half_widths(self, confidence: float, *, joint: bool) -> Floats:
        """Half the length of an interval that covers at least so often, of shape (d,)."""
        level = confidence ** (1 / len(self.scales)) if joint else confidence
        return self.scales * quantile(level)
