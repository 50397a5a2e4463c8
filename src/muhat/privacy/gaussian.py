"""Gaussian differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from muhat import _check
from muhat.privacy.gaussian_curve import gaussian_delta, gaussian_epsilon, pure_mu
from muhat.privacy.promise import Privacy
from muhat.privacy.rounding import (
    as_typed,
    float_at_least,
    root_at_least,
    root_at_most,
    ten_digits_at_least,
)


@dataclass(frozen=True)
class GDP(Privacy):
    """μ-Gaussian differential privacy: as hard to tell apart as N(0, 1) and N(μ, 1)."""

    mu: float

    kind: ClassVar[str] = "gdp"
    spoken: ClassVar[str] = "GDP"
    suffix: ClassVar[str] = "GDP"
    example: ClassVar[str] = "mh.GDP(mu=1)"
    flags: ClassVar[Mapping[str, str]] = {"mu": "μ of Gaussian differential privacy"}
    numbers: ClassVar[tuple[str, ...]] = ("mu",)
    grouping: ClassVar[str] = "k·μ"
    why_not: ClassVar[Mapping[tuple[str, str], str]] = {
        ("gdp", "pure"): "the privacy loss of Gaussian noise is not bounded. "
        "Use to('approx', delta=...)",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _check.positive("mu", self.mu))

    @classmethod
    def amount_of(cls, number: Fraction) -> Fraction:
        """μ², with the sign of the number."""
        return number * abs(number)

    @classmethod
    def number_at_least(cls, amount: Fraction) -> float:
        """The root of μ², rounded up."""
        return root_at_least(amount)

    @classmethod
    def number_at_most(cls, amount: Fraction) -> float:
        """The root of μ², rounded down."""
        return root_at_most(amount)

    def for_groups(self, size: int) -> GDP:
        """kμ."""
        return GDP(mu=float_at_least(size * as_typed(self.mu)))

    @property
    def implied_rho(self) -> Fraction:
        """μ²/2, exactly."""
        return self.amounts[0] / 2

    @property
    def implied_mu(self) -> float:
        """μ itself."""
        return self.mu

    def epsilon_at(self, delta: float) -> float:
        """The point of the Gaussian curve."""
        return gaussian_epsilon(self.mu, delta)

    def delta_at(self, epsilon: float) -> float:
        """The point of the Gaussian curve."""
        return gaussian_delta(self.mu, epsilon)

    def certain_error(self) -> float:
        """Φ(−μ/2), attained."""
        return 0.5 * math.erfc(self.mu / math.sqrt(8))

    @property
    def normal_mu_squared(self) -> Fraction:
        """μ², exactly."""
        return self.amounts[0]

    def follows_from_pure(self, epsilon: float) -> bool:
        """2Φ⁻¹(e^ε/(1 + e^ε)) ≤ μ."""
        return pure_mu(epsilon) <= self.mu

    @classmethod
    def implied_by(cls, promise: Privacy, **given: float) -> GDP | None:
        """Of a whole trade-off curve."""
        return None if promise.implied_mu is None else cls(mu=promise.implied_mu)

    @classmethod
    def of_noise(cls, strength: float, *, pure: bool, delta: float | None) -> GDP:
        """μ of normal noise."""
        return cls(mu=ten_digits_at_least(strength))
