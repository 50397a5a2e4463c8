"""Means of records in a Euclidean ball: what muhat achieves, and what nobody can beat.

The place where pure and approximate privacy part: the error grows like d under pure privacy and
like √d under the others. Constants are explicit where they are proved; where only a rate is known
there is no number. Proofs: docs/proofs/ball.md and bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from muhat import _check
from muhat._plain import Plain
from muhat.bounds.domains import unbiased
from muhat.bounds.lower_bound import LowerBound, rounded_down
from muhat.bounds.packing import packing_error
from muhat.bounds.table import BoundTable
from muhat.bounds.volumes import volume_error
from muhat.domains import Ball
from muhat.privacy import (
    Privacy,
    PureDP,
    check_promise,
    gaussian_mu_squared,
    pure_within,
)
from muhat.privacy.rounding import root_at_least

LARGEST_DIMENSION = 1_000_000

CONSTANT = "the centre, always"
"""It reads no record and is at most a radius off: what noise must beat to be of use."""

MOST_LETTERS = 10_000
"""Of the code words; the bound of a ball in fewer dimensions holds in more."""

_CITATION = "Bassily, Smith and Thakurta 2014; Steinke and Ullman 2015"
_OURS = "docs/proofs/ball.md"
_SUBSTITUTION = "n is public and neighbours replace one record."
_WHERE = "Records lie in a Euclidean ball."
_WHOM = {"any": "any mechanism", "unbiased": "unbiased", "additive": "additive noise"}


@dataclass(frozen=True)
class Achieved(Plain):
    """What a mechanism achieves on the ball.

    Attributes:
        mechanism: its name in `plan_mean`, or CONSTANT.
        error: (E‖answer − mean‖₂²)^½, the same for every dataset; of a constant on the worst one.
        promise: what it promises, in words.
    """

    mechanism: str
    error: float
    promise: str

    @property
    def is_constant(self) -> bool:
        """Whether it answers the centre always."""
        return self.mechanism == CONSTANT


@dataclass(frozen=True, repr=False)
class BallBounds(BoundTable):
    """Errors (E‖answer − mean‖₂²)^½ on a ball: achieved ones, and lower bounds.

    Attributes:
        achieved: what muhat's mechanisms achieve, and a constant, the best first.
        bounds: for any mechanism first, then for unbiased ones.
    """

    n: int
    dim: int
    radius: float
    privacy: Privacy
    achieved: tuple[Achieved, ...]
    bounds: tuple[LowerBound, ...]

    @property
    def upper(self) -> float:
        """The least error achieved."""
        return self.achieved[0].error

    @property
    def lower(self) -> float:
        """The largest proved bound that holds for any mechanism."""
        return max(b.value for b in self.bounds if b.mechanisms == "any" and b.value is not None)

    @property
    def ratio(self) -> float:
        """How far the best is from what nobody can beat, at most; ∞ if nothing is known."""
        return self.upper / self.lower if self.lower > 0 else math.inf

    def _title(self) -> str:
        return (
            f"Mean in a ball of radius {self.radius:g} · {self.privacy.describe()} · "
            f"n = {self.n} · dimension {self.dim}"
        )

    def _rows(self) -> list[list[str]]:
        rows = [["mechanism or theorem", "error", "of", "on", "constant"]]
        for entry in self.achieved:
            whose = ("anybody", "some dataset") if entry.is_constant else ("muhat", "every dataset")
            rows.append([entry.mechanism, f"{entry.error:.4g}", *whose, "exact"])
        for bound in self.bounds:
            number = "rate only"
            if bound.value is not None:
                number = f"≥ {rounded_down(bound.value)}"
            elif "rate" not in bound.assumptions[-1]:
                number = "not applicable"
            on = f"{bound.datasets} dataset"
            rows.append([bound.theorem, number, _WHOM[bound.mechanisms], on, bound.source])
        return rows

    def _notes(self) -> list[str]:
        useless = []
        if self.achieved[0].is_constant:
            useless = [
                "A constant, the centre of the ball, has no larger error than any noise here: with "
                "so few records nothing is learnt from them. Unbiased means may still be averaged."
            ]
        if math.isinf(self.ratio):
            return [*useless, "No bound for any mechanism says more than 0 here."]
        return [
            *useless,
            f"{self.achieved[0].mechanism} is within a factor of {self.ratio * 1.0005:.3g} of what "
            f"any {self.privacy.describe()} mechanism can achieve on all datasets.",
        ]


def ball(n: int, dim: int, radius: float, privacy: Privacy) -> BallBounds:
    """What is achieved and what is impossible for the mean of n records in a ball, n public.

    Errors are root mean square Euclidean errors against the mean of the records. Achieved, with
    the radius L and d dimensions: Laplace noise 2√2·Ld/(nε), K-norm noise 2L√(d(d+1))/(nε),
    Gaussian noise 2L√d/(nμ) with μ = √(2ρ) for ρ-zCDP and the root of the Gaussian curve for
    (ε, δ)-DP.

    >>> found = ball(n=10_000, dim=100, radius=1.0, privacy=PureDP(epsilon=1.0))
    >>> [entry.mechanism for entry in found.achieved]
    ['ellipsoid-norm', 'plain-laplace', 'the centre, always']
    >>> found[1].sentence()
    'Every 1-DP (pure) mechanism has error at least 0.003642 on some dataset.'
    """
    n, dim, radius = _checked(n, dim, radius, privacy)
    general = any_mean(n, dim, radius, privacy)
    limited = unbiased(Ball(radius=radius, dim=dim), n=n, privacy=privacy)
    achieved = sorted(_achieved(n, dim, radius, privacy), key=lambda entry: entry.error)
    return BallBounds(n, dim, radius, privacy, tuple(achieved), (*general, *limited))


def any_mean(n: int, dim: int, radius: float, privacy: Privacy) -> tuple[LowerBound, ...]:
    """Lower bounds on the error of any private mean of n records in a ball, biased or not.

    For pure privacy a packing of code words, which is on E‖answer − mean‖₂ and best for d = 1,
    and the rate of Bassily, Smith and Thakurta; for all promises a comparison of volumes.
    """
    n, dim, radius = _checked(n, dim, radius, privacy)
    promise = privacy.describe()

    def bound(
        value: float | None, theorem: str, source: str, citation: str, *more: str
    ) -> LowerBound:
        assumptions = (_SUBSTITUTION, _WHERE, *more)
        return LowerBound(value, "any", "some", theorem, source, assumptions, promise, citation)

    volumes = radius * volume_error(n, dim, privacy)
    if privacy.implied_epsilon is not None:
        # In high dimensions volumes are better, and the integers of the code words long.
        words = radius * packing_error(n, min(dim, MOST_LETTERS), privacy.implied_epsilon)
        rate = "Only the rate is known: L·min{1, d/(nε)} up to a constant."
        return (
            bound(words, "B7, an explicit packing", "derived", _OURS),
            bound(volumes, "B7 by volumes", "derived", _OURS),
            bound(None, "BST14 Lemma 5.1 and Theorem 5.4", "paper", _CITATION, rate),
        )
    if privacy.point is not None:
        # The rates of BST14 and SU15 for (ε, δ) stand with the bounds for unbiased mechanisms.
        return (bound(volumes, "B7 by volumes, (ε, δ)", "derived", _OURS),)
    return (bound(volumes, f"B7 by entropy, {privacy.spoken}", "derived", _OURS),)


def _checked(n: int, dim: int, radius: float, privacy: Privacy) -> tuple[int, int, float]:
    check_promise(privacy)
    dim = _check.count("dim", dim, most=LARGEST_DIMENSION)
    return _check.count("n", n), dim, _check.positive("radius", radius)


def _achieved(n: int, dim: int, radius: float, privacy: Privacy) -> list[Achieved]:
    """Pure mechanisms keep (ε, δ) too; which is better depends on d and δ."""
    found = [Achieved(CONSTANT, radius, "nothing is read")]
    if privacy.admits_pure:
        epsilon = pure_within(privacy) if privacy.point is None else privacy.point[0]
        scale = 2 * radius / (n * epsilon)
        promise = PureDP(epsilon=epsilon).describe()
        found += [
            Achieved("ellipsoid-norm", scale * math.sqrt(dim) * math.sqrt(dim + 1), promise),
            Achieved("plain-laplace", scale * math.sqrt(2) * dim, promise),
        ]
    if privacy.admits_normal:
        mu = root_at_least(gaussian_mu_squared(privacy))
        error = 2 * radius * math.sqrt(dim) / (n * mu)
        found.append(Achieved("gaussian", error, privacy.describe()))
    return found
