"""Zero-concentrated differential privacy, but for a failure of probability δ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NoReturn

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.concentrated import ZCDP, Concentrated
from muhat.privacy.conversions import pure_rho
from muhat.privacy.promise import Privacy
from muhat.privacy.rounding import (
    LEAST_FLOAT,
    as_typed,
    float_at_least,
    float_at_most,
    ten_digits_at_least,
)


@dataclass(frozen=True)
class ApproxZCDP(Concentrated, Privacy):
    """δ-approximate ρ-zCDP (Bun and Steinke 2016): ρ-zCDP with probability 1 − δ.

    Neighbouring outputs have the laws (1 − δ)·P + δ·Q and (1 − δ)·P' + δ·Q', where P and P' are as
    ρ-zCDP has them. Both numbers add up. With it groups that nobody knows can be learnt.
    """

    rho: float
    delta: float

    kind: ClassVar[str] = "approx_zcdp"
    spoken: ClassVar[str] = "approximate zCDP"
    suffix: ClassVar[str] = "zCDP"
    example: ClassVar[str] = "mh.ApproxZCDP(rho=0.5, delta=1e-6)"
    flags: ClassVar[Mapping[str, str]] = {
        "rho": "with --delta approximate zCDP",
        "delta": "or with --rho",
    }
    numbers: ClassVar[tuple[str, ...]] = ("rho", "delta")
    grouping: ClassVar[str] = "none"
    rules: ClassVar[Mapping[str, str]] = {
        "pure": "ρ = ε·tanh(ε/2), δ = 0",
        "approx": "ρ = ε·tanh(ε/2), δ",
        "zcdp": "ρ, δ = 0",
        "gdp": "ρ = μ²/2, δ = 0",
    }
    why_not: ClassVar[Mapping[tuple[str, str], str]] = {
        **{
            ("approx_zcdp", other): "an event of probability delta may reveal anything. Use "
            "to('approx', delta=...) with a larger delta"
            for other in ("pure", "zcdp", "gdp", "rdp")
        },
        ("rdp", "approx_zcdp"): "one order says nothing about higher ones. Ask the mechanism for "
        "ZCDP from the start",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _check.positive("rho", self.rho))
        object.__setattr__(self, "delta", _check.probability("delta", self.delta))

    @property
    def leak(self) -> Fraction:
        """δ."""
        return as_typed(self.delta)

    def selecting(self, share: Fraction) -> tuple[ApproxZCDP, ZCDP]:
        """All of δ, which nothing else needs, and a share of ρ; what is left never fails."""
        rho = as_typed(self.rho)
        return (
            ApproxZCDP(rho=float_at_most(share * rho), delta=self.delta),
            ZCDP(rho=float_at_most((1 - share) * rho)),
        )

    def for_groups(self, size: int) -> NoReturn:
        """P differs from one neighbour to the next."""
        raise InvalidInput(
            f"{self.describe()} says nothing that is proved about datasets {size} steps apart. "
            "Use ApproxDP, or plan for as many contributions as the account counts."
        )

    def epsilon_at(self, delta: float) -> float:
        """That of ρ-zCDP at (δ' − δ)/(1 − δ); ∞ for a δ' that is no larger."""
        rest = (as_typed(delta) - self.leak) / (1 - self.leak)
        if rest <= 0 or (least := float_at_most(rest)) <= 0:
            return math.inf
        return ZCDP(self.rho).epsilon_at(least)

    def delta_at(self, epsilon: float) -> float:
        """δ + (1 − δ)·δ' of ρ-zCDP."""
        rest = as_typed(ZCDP(self.rho).delta_at(epsilon))
        return min(1.0, float_at_least(self.leak + (1 - self.leak) * rest))

    def certain_error(self) -> float:
        """1 − δ times that of ρ-zCDP: TV ≤ δ + (1 − δ)·TV'."""
        return max(0.0, (1 - self.delta) * ZCDP(self.rho).certain_error() - 1e-16)

    def least_error(self) -> float:
        """1 − δ times that of normal noise, which is shown without it with probability δ."""
        return (1 - self.delta) * ZCDP(self.rho).least_error()

    @classmethod
    def implied_by(cls, promise: Privacy, **given: float) -> ApproxZCDP | None:
        """Of all Rényi divergences together, or of a point (ε, δ)."""
        cost = cls.cost_of(promise, cls.kind)
        if cost is None:
            return None
        rho, delta = cost
        return cls(rho=float_at_least(rho), delta=max(float_at_least(delta), LEAST_FLOAT))

    @classmethod
    def cost_of(cls, promise: Privacy, currency: str) -> tuple[Fraction, ...] | None:
        """The ρ that is implied with probability 1 − δ, and δ."""
        if promise.implied_rho is not None:
            return promise.implied_rho, Fraction(0)
        if promise.point is None:
            return None
        epsilon, delta = promise.point
        return as_typed(pure_rho(epsilon)), as_typed(delta)

    @classmethod
    def of_noise(cls, strength: float, *, pure: bool, delta: float | None) -> ApproxZCDP:
        """μ²/2 of normal noise, and the δ that is given."""
        assert delta is not None
        return cls(rho=ten_digits_at_least(strength**2 / 2), delta=delta)
