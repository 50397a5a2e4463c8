"""Approximate differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.conversions import group_delta, pure_delta
from muhat.privacy.gaussian_curve import gaussian_epsilon, gaussian_mu
from muhat.privacy.promise import Privacy
from muhat.privacy.rounding import LEAST_FLOAT, as_typed, float_at_least, ten_digits_at_least


@dataclass(frozen=True)
class ApproxDP(Privacy):
    """(ε, δ)-differential privacy."""

    epsilon: float
    delta: float

    kind: ClassVar[str] = "approx"
    spoken: ClassVar[str] = "approximate"
    suffix: ClassVar[str] = "DP"
    example: ClassVar[str] = "mh.ApproxDP(epsilon=1, delta=1e-6)"
    flags: ClassVar[Mapping[str, str]] = {
        "epsilon": "with --delta approximate",
        "delta": "δ, together with --epsilon",
    }
    numbers: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    grouping: ClassVar[str] = "(k·ε, δ·(e^(kε) − 1)/(e^ε − 1))"
    asked: ClassVar[tuple[str, ...]] = ("delta", "epsilon")
    rules: ClassVar[Mapping[str, str]] = {"pure": "δ = 0"}
    why_not: ClassVar[Mapping[tuple[str, str], str]] = {
        ("approx", "pure"): "an event of probability delta may reveal anything, whatever epsilon "
        "is. Ask the mechanism for PureDP from the start",
        ("approx", "zcdp"): "an event of probability delta may reveal anything, so no rho bounds "
        "the moments of the loss. Ask the mechanism for ZCDP and convert that to ApproxDP",
        ("approx", "gdp"): "one point (epsilon, delta) does not bound the whole trade-off curve. "
        "Ask the mechanism for GDP and convert that to ApproxDP",
    }
    admits_pure: ClassVar[bool] = True
    spends_delta: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _check.probability("delta", self.delta))

    def for_groups(self, size: int) -> ApproxDP:
        """(kε, δ·(e^{kε} − 1)/(e^ε − 1))."""
        delta = group_delta(self.epsilon, self.delta, size)
        if delta >= 1:
            raise InvalidInput(
                f"{self.describe()} says nothing about datasets {size} steps apart: their delta "
                "is 1 or more. Use a smaller epsilon or delta."
            )
        return ApproxDP(epsilon=float_at_least(size * as_typed(self.epsilon)), delta=delta)

    @property
    def leak(self) -> Fraction:
        """δ."""
        return as_typed(self.delta)

    def selecting(self, share: Fraction) -> tuple[ApproxDP, ApproxDP]:
        """The share of both numbers, and the rest of both."""
        return self.part(share), self.part(1 - share)

    @property
    def point(self) -> tuple[float, float]:
        """(ε, δ)."""
        return self.epsilon, self.delta

    def epsilon_at(self, delta: float) -> float:
        """ε, if δ is large enough."""
        return self.epsilon if delta >= self.delta else math.inf

    def delta_at(self, epsilon: float) -> float:
        """δ, if ε is large enough."""
        return self.delta if epsilon >= self.epsilon else 1.0

    def certain_error(self) -> float:
        """(1 − δ)/(1 + e^ε), attained."""
        odds = math.exp(-self.epsilon)
        return (1 - self.delta) * odds / (1 + odds)

    @property
    def normal_mu_squared(self) -> Fraction:
        """The root of the Gaussian curve, rounded down by less than one part in 10¹⁵."""
        return as_typed(gaussian_mu(self.epsilon, self.delta)) ** 2

    def follows_from_pure(self, epsilon: float) -> bool:
        """Randomised response has the largest δ of all ε-DP mechanisms."""
        return pure_delta(epsilon, self.epsilon) <= self.delta

    @property
    def simple_pure(self) -> Fraction:
        """ε itself."""
        return as_typed(self.epsilon)

    @classmethod
    def implied_by(cls, promise: Privacy, **given: float) -> ApproxDP:
        """One point of the promise's curve: at a given δ, or at a given ε."""
        delta, epsilon = given.get("delta"), given.get("epsilon")
        if isinstance(promise, ApproxDP):
            return promise._again(delta=delta, epsilon=epsilon)
        if (delta is None) == (epsilon is None):
            raise InvalidInput(
                "exactly one of delta and epsilon must be given for kind 'approx'; the other one "
                "follows. Example: to('approx', delta=1e-6)."
            )
        if delta is not None:
            delta = _check.probability("delta", delta)
            return cls(epsilon=max(promise.epsilon_at(delta), LEAST_FLOAT), delta=delta)
        epsilon = _check.positive("epsilon", epsilon)
        least = promise.delta_at(epsilon)
        if least >= 1:
            raise InvalidInput(
                f"must be larger for {promise.describe()} to say anything: at {epsilon:g} "
                "delta would be 1 to the last digit",
                parameter="epsilon",
            )
        return cls(epsilon=epsilon, delta=max(least, LEAST_FLOAT))

    def _again(self, *, delta: float | None, epsilon: float | None) -> ApproxDP:
        enough_delta = delta is None or _check.probability("delta", delta) >= self.delta
        enough_epsilon = epsilon is None or _check.positive("epsilon", epsilon) >= self.epsilon
        if enough_delta and enough_epsilon:
            return self
        raise InvalidInput(
            f"{self.describe()} is a promise at one point and implies none with a smaller epsilon "
            "or delta. Ask the mechanism for ZCDP or GDP, which cover every delta."
        )

    @classmethod
    def cost_of(cls, promise: Privacy, currency: str) -> tuple[Fraction, ...]:
        """(ε, 0) of a pure promise."""
        return (*promise.amounts, Fraction(0))

    @classmethod
    def of_noise(cls, strength: float, *, pure: bool, delta: float | None) -> ApproxDP:
        """ε at the δ that is given."""
        assert delta is not None
        if pure:
            # A little δ allows pure noise a little more than ε: `pure_within`, backwards.
            less = math.log1p(-min(delta * (1 + math.exp(-strength)), 0.5))
            return cls(epsilon=ten_digits_at_least(max(strength + less, strength / 2)), delta=delta)
        least = max(gaussian_epsilon(strength, delta), LEAST_FLOAT)
        return cls(epsilon=ten_digits_at_least(least), delta=delta)


def with_delta(promise: object) -> ApproxDP | None:
    """The promise, if it has a δ of its own to spend; of any other object, None."""
    return promise if isinstance(promise, ApproxDP) else None
