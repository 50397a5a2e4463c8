"""How the privacy of noise is counted, so that steps that follow each other add up.

    kind     noise that one person moves by s of its units is      steps add up in
    normal   s-Gaussian private                                    μ²
    pure     purely s-differentially private                       ε

The strength of noise is that s, μ or ε, and a promise allows so much of it, of each kind. It is
compared by its square, which is rational for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from muhat._plain import Plain
from muhat.privacy import Privacy, as_typed, gaussian_mu_squared, pure_within


class NoiseKind(Enum):
    """In what the strength of noise is counted: μ of normal noise, or ε of pure noise."""

    NORMAL = "normal"
    PURE = "pure"

    @classmethod
    def named_by(cls, promise: Privacy) -> NoiseKind:
        """The kind that a promise is named for: normal noise, if that can keep it."""
        return cls.NORMAL if promise.admits_normal else cls.PURE

    def can_keep(self, promise: Privacy) -> bool:
        """Whether noise of this kind keeps a promise at all: pure noise keeps every promise."""
        return self is NoiseKind.PURE or promise.admits_normal

    @property
    def power(self) -> int:
        """A share s of a promise has s^power of the square of its strength."""
        return 1 if self is NoiseKind.NORMAL else 2

    def strength_of(self, share: float) -> float:
        """The strength of a step that takes a share, as a part of the whole."""
        return math.sqrt(share) if self is NoiseKind.NORMAL else share

    def together(self, squares: Sequence[Fraction]) -> Strength:
        """At least the strength of steps one after another; pure ones should be alike."""
        if self is NoiseKind.NORMAL:
            return Strength(self, sum(squares, Fraction(0)))
        # The root of the sum's square is their number times the root of each.
        return Strength(self, max(squares) * len(squares) ** 2)


@dataclass(frozen=True)
class Strength(Plain):
    """How much noise of a kind reveals, by its square: what a share of a promise comes to.

    >>> from muhat.privacy import ZCDP
    >>> half = Strength.of(ZCDP(rho=0.5), NoiseKind.NORMAL).part(Fraction(1, 2))
    >>> half.squared, half.keeps(ZCDP(rho=0.25)), half.keeps(ZCDP(rho=0.2))
    (Fraction(1, 2), True, False)
    """

    kind: NoiseKind
    squared: Fraction

    @classmethod
    def of(cls, allowed: Privacy | Strength, kind: NoiseKind) -> Strength:
        """The most that noise of a kind may reveal; InvalidInput if none of it keeps the promise.

        A share of one kind says nothing of another: AssertionError.
        """
        if not isinstance(allowed, Strength):
            return cls(kind, _squared(allowed, kind))
        if allowed.kind is not kind:
            raise AssertionError("the noise is of another kind than the share of the promise")
        return allowed

    def part(self, share: Fraction) -> Strength:
        """The strength of a step that takes a share."""
        return Strength(self.kind, self.squared * share**self.kind.power)

    def keeps(self, allowed: Privacy | Strength) -> bool:
        """Whether noise of this strength keeps a promise, or a share of one: exactly."""
        if isinstance(allowed, Strength):
            return allowed.kind is self.kind and self.squared <= allowed.squared
        return self.kind.can_keep(allowed) and self.squared <= _squared(allowed, self.kind)


@lru_cache(maxsize=256)
def _squared(promise: Privacy, kind: NoiseKind) -> Fraction:
    """ε² of the pure noise that keeps the promise, or μ² of normal noise, exactly."""
    if kind is NoiseKind.PURE:
        return as_typed(pure_within(promise)) ** 2
    return gaussian_mu_squared(promise)
