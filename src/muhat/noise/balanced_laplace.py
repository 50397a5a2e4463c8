"""Balanced noise of any scale: whole numbers, P(z) ∝ e^(−rate·‖z‖₁) among those that add up to 0.

For parts of a whole that are counted in small steps. It is Hardt and Talwar's noise of the norm
whose unit ball is the difference body of a simplex, on a grid so fine that its moments and tails
are those of Laplace noise given that it adds up to nothing. Proof: docs/proofs/balanced.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise import marginals
from muhat.noise.discrete import LEAST_RATE, discrete_laplace, geometric
from muhat.noise.entropy import Words, system_words
from muhat.noise.integers import Integers
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import Law
from muhat.privacy import Privacy

LARGEST_RATE = Fraction(1, 1 << 30)
"""Up to it a step is less than a thousand-millionth of the noise."""

MOST_PARTS = 1 << 10

_STEP_ERROR = 2.0**-28
"""A step of every part: twice what steps change of a density, relatively."""


@dataclass(frozen=True)
class BalancedLaplace(Law, Plain, keys=("name", "parts", "rate")):
    """Laplace noise on some parts, given that it adds up to nothing.

    >>> law = BalancedLaplace(2, Fraction(1, 1 << 40))  # (z, −z), z of half the scale
    >>> law.variance(2) * law.unit**2 * law.rate**2 / 2
    0.5
    """

    parts: int
    rate: Fraction

    name = "balanced-laplace"
    kind = NoiseKind.PURE
    balanced = True
    sensitivity_norm = 1.0
    marginal = marginals.LAPLACE

    def __post_init__(self) -> None:
        if not 2 <= self.parts <= MOST_PARTS or not LEAST_RATE <= self.rate <= LARGEST_RATE:
            raise InvalidInput(
                f"balanced noise is for 2 to {MOST_PARTS} parts and a rate from 2^-50 to 2^-30."
            )

    @cached_property
    def unit(self) -> int:
        """A power of two near the scale 1/rate."""
        return 1 << round(-math.log2(self.rate))

    @property
    def most_rows(self) -> int:
        return self.parts

    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """moved·rate ≤ ε in rationals, for integers whose total does not move."""
        return Strength(self.kind, (moved * self.rate) ** 2).keeps(promise)

    def sample(self, dim: int) -> Integers:
        if dim != self.parts:
            raise AssertionError("balanced noise is for all parts together")
        return self.drawn(system_words)

    def drawn(self, words: Words) -> Integers:
        """All parts but the last are drawn, and kept as often as the last allows."""
        free = self.parts - 1
        tries = 1 + math.isqrt(free)
        while True:
            for drawn in discrete_laplace(self.rate, tries * free, words).reshape(tries, free):
                last = -sum(drawn.tolist())
                if int(geometric(self.rate, 1, words)[0]) >= abs(last):
                    return np.array([*drawn.tolist(), last], dtype=object)

    def foreseen(self, count: int, dim: int, start: int) -> tuple[Floats, Floats]:
        """All parts but the last, weighted by how often the last one would be kept."""
        free = self.marginal.fixed(count, self.parts - 1, start)
        last = -free.sum(axis=1)
        drawn = np.column_stack([free, last]) / float(self.unit * self.rate)
        return drawn, np.exp(-np.abs(last))

    def variance(self, dim: int) -> float:
        """(2d − 1)/(d + 1) in every direction in which the total stays, in squares of 1/rate."""
        d = self.parts
        return (2 * d - 1) / (d + 1) / float(self.unit * self.rate) ** 2

    def mixing(self, dim: int) -> float:
        return self.variance(dim) / 2

    @cached_property
    def _gammas(self) -> Floats:
        """How often |z₁| is of the law Γ(k + 1, 2): ∝ (2n − 2 − k)!/(n − 1 − k)!, n = d − 1."""
        n = self.parts - 1
        k: Floats = np.arange(1.0, n)
        found = np.cumprod(np.append(1.0, (n - k) / (2 * n - 1 - k)))
        return np.asarray(found / found.sum())

    def tail(self, reach: float, dim: int) -> float:
        """P(|z₁| > √(1 − 1/d)·reach), the length of a part in the directions that are left."""
        from scipy.special import gammaincc

        t = reach * math.sqrt(1 - 1 / self.parts) * float(self.unit * self.rate)
        weights = self._gammas
        found = float(weights @ gammaincc(np.arange(1.0, len(weights) + 1), 2 * t))
        return min(1.0, found * (1 + self.parts * _STEP_ERROR))

    def joint_tail(self, reach: float, dim: int) -> float:
        return min(1.0, self.parts * self.tail(reach, dim))
