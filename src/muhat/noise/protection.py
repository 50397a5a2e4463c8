"""What a promise, a relation between neighbours and the records of a person ask of noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from muhat._plain import Plain
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import Law
from muhat.privacy import ApproxDP, Neighbors, Privacy, as_typed
from muhat.privacy.rounding import float_at_most


@dataclass(frozen=True)
class Protection(Plain):
    """What a mechanism must guarantee, whatever it computes.

    `promise` is a whole promise, or the share of one that a step takes: noise of the kind that
    shares are counted in, so strong at most.
    """

    promise: Privacy | Strength
    neighbors: Neighbors
    contributions: int

    def strength_squared(self, kind: NoiseKind) -> Fraction:
        """μ², or ε², of the noise of a kind that just keeps the promise."""
        return Strength.of(self.promise, kind).squared

    def part(self, kind: NoiseKind, share: Fraction) -> Protection:
        """What a step must guarantee that takes a share, all steps having noise of one kind."""
        return replace(self, promise=Strength.of(self.promise, kind).part(share))

    def divided(self, share: Fraction) -> list[tuple[Protection, Protection]]:
        """What two steps must guarantee: pure noise for a share of ε, and what is left for other.

        Both may be pure; or all of a δ that is promised is for the second, (ε − sε, δ) after sε.
        """
        pure = NoiseKind.PURE
        found = [(self.part(pure, share), self.part(pure, 1 - share))]
        point = None if isinstance(self.promise, Strength) else self.promise.point
        if point is not None and point[1]:
            epsilon = as_typed(point[0])
            small = Strength(pure, (share * epsilon) ** 2)
            rest = ApproxDP(epsilon=float_at_most((1 - share) * epsilon), delta=point[1])
            found.append((replace(self, promise=small), replace(self, promise=rest)))
        return found

    def apart(self, kind: NoiseKind) -> Protection:
        """The same where no two records of a person lie in one group.

        Each group is then protected against one of them, and k groups share what there is.
        """
        one = self.part(kind, Fraction(1, self.contributions))
        return replace(one, contributions=1)

    def check(self, law: Law, moved: Fraction, rows: int, *, keeps_total: bool = False) -> None:
        """The proof of a mechanism: its noise hides what moves its integers so far at most.

        `keeps_total`: they add up to the same for all neighbours.
        """
        if law.balanced and not keeps_total:
            raise AssertionError("noise that adds up to nothing hides no change of a total")
        if law.most_rows is not None and rows > law.most_rows:
            raise AssertionError("what the law keeps is proved for fewer numbers")
        if not law.keeps(self.promise, moved):
            raise AssertionError(
                "the query is more sensitive than the promise allows, or the noise of another kind"
            )
