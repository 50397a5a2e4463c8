"""How far sums of independent stairs of step 1 reach.

Of k variables with like coefficients the sum is a whole number, times the coefficient, and its law
is the k-fold convolution, by a Fourier transform whose period is so long that Chernoff's bound on
what lies beyond it is small beside the misses that are asked for, and is counted as missed. For
other coefficients it is Chernoff's bound itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from muhat._arrays import Floats
from muhat.noise.laplace_sums import CUT, STEP, LaplaceSums, Shape

LONGEST = 1 << 20
"""Half of the longest period that is transformed."""

_RATES = np.linspace(0.005, 0.995, 199)
_ROUNDING = 2.0**-40
"""Far more than a transform of numbers that add up to 1 loses."""


def log_moment(rates: Floats, ratio: float) -> Floats:
    """ln E exp(λz) = −ln(1 − V(cosh λ − 1)), V = 2b/(1 − b)², of geometric noise of a ratio b.

    For rates λ below −ln b.
    """
    return np.asarray(-np.log1p(-4 * ratio * (np.sinh(rates / 2) / (1 - ratio)) ** 2))


@dataclass(frozen=True, eq=False)
class StairSums(LaplaceSums):
    """Sums Σ_j a_j·z_j, one an answer, of stairs z/unit that fall by a ratio or faster.

    E exp(λΣ) = Π E exp(λa_j·z) grows with every |a_j|, so coefficients may be rounded up as those
    of Laplace noise are. Proof: docs/proofs/stairs.md.
    """

    ratio: float
    unit: int

    @classmethod
    def of(cls, rows: Iterable[Floats], ratio: float, unit: int) -> Self:
        """The sums whose coefficients are the rows of matrices."""
        alike = LaplaceSums.of_rows(rows)
        return cls(alike.peaks, alike.shapes, alike.which, ratio, unit)

    def reaches(self, miss: float) -> Floats:
        units = np.array([_unit_reach(shape, miss, self.ratio) for shape in self.shapes])
        return np.asarray(self.peaks / self.unit * units[self.which])

    @property
    def have_laws(self) -> bool:
        """Whether every sum has like coefficients."""
        return all(len(shape) == 1 for shape in self.shapes)


@lru_cache(maxsize=4096)
def _unit_reach(shape: Shape, miss: float, ratio: float) -> float:
    """t with P(|S| > t) ≤ miss for a largest coefficient of 1."""
    if len(shape) > 1:
        return chernoff(shape, miss, ratio)
    number, lost = shape[0][1], miss * CUT
    half = math.ceil(chernoff(shape, lost, ratio)) + 1
    if half > LONGEST:
        return chernoff(shape, miss, ratio)
    within = law_of_sum(number, half, ratio)
    held = within[0] + 2 * np.concatenate([[0.0], np.cumsum(within[1:])])
    # What is farther than the period is counted with what is near, and is lost at most; floats too.
    enough = 1 - held + lost + _ROUNDING <= miss
    return float(np.argmax(enough)) if enough.any() else chernoff(shape, miss, ratio)


def law_of_sum(number: int, half: int, ratio: float) -> Floats:
    """P(S = j) for j from 0 to `half`, and what lies whole periods of 2·half + 1 away."""
    halves = math.pi * np.arange(half + 1) / (2 * half + 1)
    # (1 − b)²/(1 − 2b·cos 2h + b²), of which nothing cancels where b is near 1.
    waves = np.exp(-number * np.log1p(4 * ratio * (np.sin(halves) / (1 - ratio)) ** 2))
    return np.fft.irfft(waves, 2 * half + 1)[: half + 1]


def chernoff(shape: Shape, miss: float, ratio: float) -> float:
    """t with P(|S| > t) ≤ miss for a largest coefficient of 1."""
    rates = _RATES * -math.log(ratio)
    exponent = np.full(len(rates), math.log(2 / miss))
    for step, number in shape:
        exponent += number * log_moment(rates * STEP**-step, ratio)
    return float((exponent / rates).min()) * (1 + 1e-9)
