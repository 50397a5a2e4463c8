"""Pure differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NoReturn

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.conversions import pure_delta, pure_rho
from muhat.privacy.gaussian_curve import pure_mu
from muhat.privacy.promise import Privacy
from muhat.privacy.rounding import as_typed, float_at_least, ten_digits_at_least


@dataclass(frozen=True)
class PureDP(Privacy):
    """ε-differential privacy."""

    epsilon: float

    kind: ClassVar[str] = "pure"
    spoken: ClassVar[str] = "pure"
    suffix: ClassVar[str] = "DP"
    example: ClassVar[str] = "mh.PureDP(epsilon=1)"
    flags: ClassVar[Mapping[str, str]] = {"epsilon": "ε: alone it is pure"}
    numbers: ClassVar[tuple[str, ...]] = ("epsilon",)
    grouping: ClassVar[str] = "k·ε"
    admits_normal: ClassVar[bool] = False
    admits_pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))

    def describe(self) -> str:
        """The promise in words: "1-DP (pure)"."""
        return f"{super().describe()} (pure)"

    def for_groups(self, size: int) -> PureDP:
        """Likelihood ratios multiply: kε."""
        return PureDP(epsilon=float_at_least(size * as_typed(self.epsilon)))

    @property
    def implied_epsilon(self) -> float:
        """ε itself."""
        return self.epsilon

    @property
    def implied_rho(self) -> Fraction:
        """ε·tanh(ε/2)."""
        return as_typed(pure_rho(self.epsilon))

    @property
    def implied_mu(self) -> float:
        """2Φ⁻¹(e^ε/(1 + e^ε))."""
        return pure_mu(self.epsilon)

    @property
    def point(self) -> tuple[float, float]:
        """(ε, 0)."""
        return self.epsilon, 0.0

    def epsilon_at(self, delta: float) -> float:
        """ε, whatever δ is."""
        return self.epsilon

    def delta_at(self, epsilon: float) -> float:
        """That of randomised response, which is the worst mechanism."""
        return pure_delta(self.epsilon, epsilon)

    def certain_error(self) -> float:
        """1/(1 + e^ε), attained by randomised response."""
        odds = math.exp(-self.epsilon)
        return odds / (1 + odds)

    @property
    def normal_mu_squared(self) -> NoReturn:
        """None is small enough."""
        raise InvalidInput(
            "must be ZCDP, GDP or ApproxDP for Gaussian noise",
            parameter="privacy",
            value="PureDP",
            hint=(
                "No Gaussian mechanism is purely private: allow a small delta, "
                "ApproxDP(epsilon=..., delta=1e-9)."
            ),
        )

    def follows_from_pure(self, epsilon: float) -> bool:
        """A smaller ε is a stronger promise."""
        return epsilon <= self.epsilon

    @property
    def simple_pure(self) -> Fraction:
        """ε itself."""
        return as_typed(self.epsilon)

    @classmethod
    def implied_by(cls, promise: Privacy, **given: float) -> PureDP | None:
        """Of a bounded privacy loss."""
        epsilon = promise.implied_epsilon
        return None if epsilon is None else cls(epsilon=epsilon)

    @classmethod
    def of_noise(cls, strength: float, *, pure: bool, delta: float | None) -> PureDP:
        """ε of the noise, which is always pure."""
        return cls(epsilon=ten_digits_at_least(strength))
