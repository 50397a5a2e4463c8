"""Theorem 2 of Huang, Liang and Yi (2021) about a given centre: a private radius, then the mean.

A quarter of the stage's share finds the radius, three quarters are for the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.domains import Ball, Domain, Points
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.radius_grids import RadiusGrid
from muhat.mechanisms.learning.sharing import Sharing, around
from muhat.mechanisms.learning.steps import Step, Steps
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.noise.spread import Spread

FAILURE = 1e-6
"""β: how often a search may miss its rank by more than its rank error.

The paper leaves it open. A search led beyond all records costs orders of magnitude, which even
one time in a thousand would dominate the root mean square; making it so rare costs next to nothing.
"""


@dataclass(frozen=True)
class PrintedRank(Plain):
    """How many records the paper's text leaves outside: max{√(2d/ρ), τ}.

    τ = 2·√(log₂(du)·ln(log₂(du)/β)/ρ) for whole numbers up to u in d coordinates, with ρ that of
    radius and mean together.
    """

    dim: int
    levels: int

    def beyond(self, rho: float) -> float:
        """max{√(2d/ρ), τ}."""
        rounds = max(math.log2(self.dim * self.levels), 1.0)
        rank_error = 2 * math.sqrt(rounds * math.log(rounds / FAILURE) / rho)
        return max(math.sqrt(2 * self.dim / rho), rank_error)


@dataclass(frozen=True, eq=False)
class ClippingStage(Plain, keys=("share", "grid", "search", "rank", "printed")):
    """A radius and the mean, for a share of the promise; `printed` is the paper's rank, if kept."""

    sharing: Sharing
    share: Fraction
    grid: RadiusGrid
    printed: PrintedRank | None = None

    @property
    def radius_share(self) -> Fraction:
        """A quarter."""
        return self.share / 4

    @property
    def mean_share(self) -> Fraction:
        """Three quarters."""
        return self.share * 3 / 4

    @cached_property
    def search(self) -> NoisySearch:
        """The search for the radius."""
        return self.sharing.search(self.grid.cells, self.radius_share)

    @cached_property
    def beyond(self) -> float:
        """How many records are to lie outside the radius.

        One more record outside saves as much noise as it costs bias at κ·2/μ'; the rank error
        keeps the search among the records.
        """
        sharing = self.sharing
        if self.printed is not None:
            return self.printed.beyond(sharing.step_strength(float(self.share)) ** 2 / 2)
        length = float(sharing.dim) if sharing.pure else mean_length(sharing.dim)
        balance = 2 * length / sharing.step_strength(float(self.mean_share))
        return max(balance, float(self.search.rank_error(1 - FAILURE)))

    @property
    def is_enough(self) -> bool:
        """n > `beyond`: else Theorem 2 releases the public default."""
        return self.sharing.n > self.beyond

    @property
    def rank(self) -> int:
        """The rank searched for; the paper's `≤` finds the one after it."""
        if self.printed is not None:
            return max(math.floor(self.sharing.n - self.beyond), 1) + 1
        return max(self.sharing.n - math.ceil(self.beyond), 1)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What differs from the paper's text although it was asked for, and what does not."""
        lines = []
        if self.printed is not None:
            lines.append(
                "ranks, rank errors and grids are the paper's as printed; all rounds of a search "
                f"are charged, {self.search.rounds} for the radius, where the paper charges log u "
                "and would break the promise"
            )
        if not self.is_enough:
            lines.append(
                "the records are too few, so the public default 0 is released, whatever they "
                "are, at full cost: it says nothing about them"
            )
        return tuple(lines)

    def check(self) -> None:
        """Make every kind of step once."""
        sharing = self.sharing
        sharing.search(self.grid.cells, self.radius_share)
        ball = around(np.zeros(sharing.dim), sharing.largest_radius, sharing.weights)
        sharing.recipe_in(ball, self.mean_share, sharing.weights)

    def run(self, steps: Steps, center: Floats) -> tuple[Floats, Spread, Domain]:
        """Find the radius about the centre, then average."""
        n = self.sharing.n
        steps.transcript.charge(self.radius_share)
        radius = self.grid.find(
            self.search, n, min(self.rank, n), lambda edges: steps.counts(center, edges)
        )
        steps.transcript.steps.append(Step("radius", self.radius_share, radius))
        if radius > 0:
            return steps.mean("mean", center, radius, self.mean_share)
        steps.transcript.charge(self.mean_share)
        steps.transcript.steps.append(Step("mean", self.mean_share, 0.0))
        law = self.sharing.law
        return center.copy(), Spread(law, self.sharing.dim, np.zeros(len(center))), _point(center)


def public_default(sharing: Sharing) -> Learnt:
    """0, whatever the records are, for the whole promise: too few of them to say more."""
    steps = (Step("public default", Fraction(1), 0.0),)
    return Learnt(np.zeros(sharing.dim), None, None, steps)


def in_units(ball: Domain, unit: float, center: Floats) -> Domain:
    """The ball of a stage in other units, about the centre in those."""
    if isinstance(ball, Ball):
        return Ball(ball.radius * unit, len(center), center)
    return _point(center)


def _point(center: Floats) -> Domain:
    """The ball of radius 0."""
    return Points(center[None, :])


def rounded(magnitude: float, step: float) -> str:
    """What is said of values that become whole numbers."""
    return (
        f"values beyond ±{magnitude:g} are clipped to that, missing and non-finite ones count as "
        f"0, and all are rounded to multiples of {step:.3g}"
    )


def mean_length(dim: int) -> float:
    """κ_d = E‖z‖ of d independent standard normals, √2·Γ((d + 1)/2)/Γ(d/2).

    >>> round(mean_length(1), 6), round(mean_length(2), 6)
    (0.797885, 1.253314)
    """
    return math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))
