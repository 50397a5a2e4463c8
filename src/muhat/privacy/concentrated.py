"""Zero-concentrated differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from muhat import _check
from muhat.privacy.conversions import pure_rho, zcdp_delta, zcdp_epsilon
from muhat.privacy.promise import Privacy
from muhat.privacy.rounding import as_typed, float_at_least, root_below, ten_digits_at_least


class Concentrated:
    """What noise keeps a promise of ρ, also where it may fail besides: such noise never does."""

    rho: float

    @property
    def normal_mu_squared(self) -> Fraction:
        """2ρ, exactly."""
        return 2 * as_typed(self.rho)

    def follows_from_pure(self, epsilon: float) -> bool:
        """ε·tanh(ε/2) ≤ ρ; in doubt, no."""
        return pure_rho(epsilon) <= self.rho

    @property
    def simple_pure(self) -> Fraction:
        """√(2ρ), rounded down."""
        return root_below(2 * as_typed(self.rho))

    @property
    def rho_within(self) -> Fraction:
        """ρ itself."""
        return as_typed(self.rho)


@dataclass(frozen=True)
class ZCDP(Concentrated, Privacy):
    """ρ-zero-concentrated differential privacy: D_α ≤ αρ for every α > 1."""

    rho: float

    kind: ClassVar[str] = "zcdp"
    spoken: ClassVar[str] = "zCDP"
    suffix: ClassVar[str] = "zCDP"
    example: ClassVar[str] = "mh.ZCDP(rho=0.5)"
    flags: ClassVar[Mapping[str, str]] = {"rho": "ρ of zero-concentrated differential privacy"}
    numbers: ClassVar[tuple[str, ...]] = ("rho",)
    grouping: ClassVar[str] = "k²·ρ"
    rules: ClassVar[Mapping[str, str]] = {"pure": "ρ = ε·tanh(ε/2)", "gdp": "ρ = μ²/2"}
    why_not: ClassVar[Mapping[tuple[str, str], str]] = {
        ("zcdp", "pure"): "zCDP bounds the moments of the privacy loss, not the loss itself. "
        "Use to('approx', delta=...)",
        ("zcdp", "gdp"): "zCDP allows mechanisms that are easier to tell apart than Gaussians with "
        "mu = sqrt(2 rho). Ask the mechanism for GDP from the start",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _check.positive("rho", self.rho))

    def for_groups(self, size: int) -> ZCDP:
        """k²ρ."""
        return ZCDP(rho=float_at_least(size**2 * as_typed(self.rho)))

    @property
    def implied_rho(self) -> Fraction:
        """ρ itself."""
        return as_typed(self.rho)

    def epsilon_at(self, delta: float) -> float:
        """By the Rényi bounds of the best order."""
        return zcdp_epsilon(self.rho, delta)

    def delta_at(self, epsilon: float) -> float:
        """By the Rényi bounds of the best order."""
        return zcdp_delta(self.rho, epsilon)

    def certain_error(self) -> float:
        """By TV ≤ min(√(ρ/2), √(1 − e^−ρ)), as the Kullback–Leibler divergence is at most ρ."""
        variation = math.sqrt(min(self.rho / 2, -math.expm1(-self.rho)))
        return max(0.0, (1 - variation) / 2 - 1e-16)

    def least_error(self) -> float:
        """That of normal noise with μ = √(2ρ), Φ(−√(ρ/2)), and perhaps still less."""
        return 0.5 * math.erfc(math.sqrt(2 * self.rho) / math.sqrt(8))

    @classmethod
    def implied_by(cls, promise: Privacy, **given: float) -> ZCDP | None:
        """Of all Rényi divergences together."""
        rho = promise.implied_rho
        return None if rho is None else cls(rho=float_at_least(rho))

    @classmethod
    def cost_of(cls, promise: Privacy, currency: str) -> tuple[Fraction, ...] | None:
        """The ρ that is implied."""
        return None if promise.implied_rho is None else (promise.implied_rho,)

    @classmethod
    def of_noise(cls, strength: float, *, pure: bool, delta: float | None) -> ZCDP:
        """μ²/2 of normal noise."""
        return cls(rho=ten_digits_at_least(strength**2 / 2))
