"""A round's part of a promise (ε, δ) that several rounds keep together.

The rounds share what normal noise could do alone. With μ the largest for which μ-Gaussian privacy
is (ε, δ)-private, up to a 128th of δ that is for the mixing, a round with the share w has

    μ_w² = w·μ²                  for normal noise, which adds up in squares,
    ε_w with pure_mu(ε_w) = μ_w  for pure noise, as every ε-private mechanism is μ-Gaussian private,
    η_w = w·(δ/128)/(1 + e^ε)    for what mixed fragments tell beyond the sums,
    τ_w = w·ε·2^-30              for what discrete noise lacks to be normal (a factor of e^{±τ}).

With Σ w ≤ 1 all rounds together are (ε, δ)-private, also if a round is chosen by what others have
told. A round that is alone may spend ε purely, and all of δ on the mixing. Proof:
docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from muhat.errors import InvalidInput
from muhat.noise.enclosures import falling_exponential
from muhat.privacy import GDP, ApproxDP, as_typed, gaussian_mu, pure_within, with_delta
from muhat.privacy.rounding import float_at_most

MIXING = Fraction(1, 128)
"""The part of δ that mixing may spend: each further fragment of a number needs far less."""

CLOSENESS = Fraction(1, 1 << 30)
"""The part of ε that the difference between discrete and normal noise may spend."""

LARGEST_EPSILON = 64.0
LARGEST_DENOMINATOR = 1 << 64


@dataclass(frozen=True)
class Allowance:
    """A share of the squared budget of a promise; all of it unless stated.

    >>> half = Allowance(ApproxDP(epsilon=1.0, delta=1e-6), Fraction(1, 2))
    >>> f"{float(half.mu_squared):.4f} {float(half.pure):.4f}"
    '0.0280 0.1335'
    """

    promise: ApproxDP
    share: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if with_delta(self.promise) is None:
            raise InvalidInput("mixed fragments need ApproxDP: some δ is spent on the mixing.")
        if self.promise.epsilon > LARGEST_EPSILON:
            raise InvalidInput(
                f"must be at most {LARGEST_EPSILON:g}: more is no promise", parameter="epsilon"
            )
        share = Fraction(self.share)
        if not 0 < share <= 1 or share.denominator > LARGEST_DENOMINATOR:
            raise InvalidInput("must be a fraction above 0 and at most 1", parameter="share")
        object.__setattr__(self, "share", share)

    def part(self, share: Fraction) -> Allowance:
        """A share of this allowance."""
        return Allowance(self.promise, self.share * Fraction(share))

    @property
    def is_whole(self) -> bool:
        """Whether the round is the only one."""
        return self.share == 1

    @property
    def mu_squared(self) -> Fraction:
        """μ² of the round's normal noise."""
        return self.share * _whole_mu_squared(self.promise)

    @property
    def pure(self) -> Fraction:
        """ε of the round, if it is purely private."""
        if self.is_whole:
            return as_typed(self.promise.epsilon)
        return _pure_of_mu_squared(self.mu_squared)

    @property
    def closeness(self) -> Fraction:
        """How far, as the logarithm of a factor, the noise may be from normal noise."""
        return self.share * as_typed(self.promise.epsilon) * CLOSENESS

    def distance(self, law: str) -> float:
        """How much mixed fragments may tell beyond the sums, in total variation, rounded down."""
        part = Fraction(1) if self.is_whole and law == "laplace" else self.share * MIXING
        least, _ = falling_exponential(as_typed(self.promise.epsilon), 256)
        return float_at_most(part * as_typed(self.promise.delta) * least / (1 + least))


@lru_cache(maxsize=256)
def _whole_mu_squared(promise: ApproxDP) -> Fraction:
    """The largest μ² for (ε − 2τ, e^−τ·(1 − 1/128)·δ), τ = 2^-30·ε, rounded down."""
    epsilon, delta = promise.amounts
    tau = epsilon * CLOSENESS
    left = delta * (1 - MIXING) * (1 - tau)
    return as_typed(gaussian_mu(float_at_most(epsilon - 2 * tau), float_at_most(left))) ** 2


@lru_cache(maxsize=256)
def _pure_of_mu_squared(mu_squared: Fraction) -> Fraction:
    root = Fraction(math.isqrt(int(mu_squared * (1 << 240))), 1 << 120)
    return as_typed(pure_within(GDP(mu=float_at_most(root))))
