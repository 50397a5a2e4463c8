"""The public side of recentring: which step may spend how much, and where it looks.

All radii are *places* on one public scale, 4096 edges a fixed ratio apart, so that one pass over
the records, counted by that scale, serves every search around the same centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.domains import Domain
from muhat.mechanisms.learning.last_radius import (
    ASIDE_PLACES,
    EDGES,
    MANY_DIM,
    SMALLEST,
    LastRadius,
    Places,
)
from muhat.mechanisms.learning.pure_mean import WORTH, PureMean
from muhat.mechanisms.learning.sharing import Sharing, least_number, short_fraction
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.rank_choice import RankChoice
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.protection import Protection

SHRUNK = 0.75
"""A new centre that leaves more than this of the radius ends the search for better ones."""

MOST_ROUNDS = 60

LEAST_LEFT = Fraction(1, 10)
"""The share that is kept for the mean before another round is begun."""

NOISE_RADIUS = 1.5
"""Records that lie closer together than the noise of a centre are within so many times its root
mean square of it."""

CLOSE = 0.15
"""A centre whose noise is below this part of the radius needs no better one."""

QUESTION_BEYOND, QUESTION_NOISE = Fraction(3, 10), 0.1
"""Whether noise is all that is left is asked of seven tenths of the records, with noise of a
tenth of them."""

ASIDE_SHARE, LOPSIDED = Fraction(1, 50), 2.0
"""What it costs to learn where the records beyond the radius pull, and how many times its noise
that must be for the centre to move."""

LEAST_LEARNING = Fraction(26, 100)
"""What is left for all steps but a mean with pure noise: a curve of counts, and a little more."""

THICK, THINNEST = 2.5, 1.02
"""A centre may move if the last radius is so many times the inner one; a shell is told from the
ball within if it is so many times the second."""

PURE_WORTH = 0.66
"""Pure noise in all steps must be at most so much of normal noise on a ball of the same radius: the
last radius is often larger, and there is no shell that could be shrunk."""

LEAN, LEAN_MANY = math.sqrt(0.5), math.sqrt(0.3)
"""A shell is given such a part of what would be best if all of it were needed, less in many
dimensions, where shrinking works better."""


@dataclass(frozen=True)
class Limits(Plain):
    """What suits a law of noise: parts of the records, and how much a step may take.

    `beyond` is the part of the records that a radius leaves outside.
    """

    beyond: Fraction
    radius_least: float
    radius_most: float
    center_least: float
    center_most: float


NORMAL_LIMITS = Limits(Fraction(1, 5), 0.0, 0.07, 0.02, 0.10)
PURE_LIMITS = Limits(Fraction(2, 5), 0.01, 0.10, 0.02, 0.10)


@dataclass(frozen=True, eq=False)
class Schedule(
    Sharing,
    keys=(
        "magnitude",
        "weights",
        "n",
        "protection",
        "kind",
        "limits",
        "first_share",
        "center_share",
        "crude_share",
        Key("likely_share", "last.likely_share"),
        Key("most_share", "last.most_share"),
        "outside_share",
        Key("hopeless", "is_hopeless"),
        Key("pure_mean", optional=True),
    ),
):
    """Everything about the chain that is decided before any data is seen.

    With a `pure_mean` the last step has pure noise, and the others have all of δ.
    """

    pure_mean: PureMean | None = None

    def __post_init__(self) -> None:
        pure = self.pure_mean
        if pure is not None and not (self.last.on_line and pure.chain == self.protection):
            raise AssertionError(
                "pure noise is for the mean on a line, of the promise of the chain"
            )

    def pure_mean_of(
        self, whole: Protection, spent: Fraction = Fraction(0), *, counted: bool = False
    ) -> PureMean | None:
        """Pure noise on the mean, where that is less, after what was spent of the whole promise.

        What it leaves is enough for the steps of the common path, and two rounds more.
        """
        if self.pure or not self.last.on_line or self.is_hopeless:
            return None
        rounds = 2 * (self.center_share + self.first_share)
        learning = max(1 - self.likely_final_share + rounds, LEAST_LEARNING)
        found = PureMean.leaving(whole, learning, spent, counted)
        most = WORTH * self.mean_noise(float(self.likely_final_share))
        return found if found is not None and found.deviation <= most else None

    @property
    def limit(self) -> Fraction:
        return Fraction(1) if self.pure_mean is None else self.pure_mean.limit

    def mean_noise(self, share: float) -> float:
        return super().mean_noise(share) if self.pure_mean is None else self.pure_mean.deviation

    def last_recipe(self, ball: Domain, share: Fraction) -> Recipe:
        if self.pure_mean is None:
            return super().last_recipe(ball, share)
        return self.pure_mean.recipe(ball, self.weights)

    def recorded_in(self, ball: Domain, share: Fraction) -> Recipe:
        if self.pure_mean is None:
            return super().recorded_in(ball, share)
        return self.pure_mean.recorded(ball, self.weights)

    @property
    def limits(self) -> Limits:
        """How much each step may take."""
        return PURE_LIMITS if self.pure else NORMAL_LIMITS

    @cached_property
    def last(self) -> LastRadius:
        """The last radius: where it is looked for, and for which share."""
        return LastRadius(self)

    @cached_property
    def edges(self) -> Floats:
        """The public radii, ascending, a fixed ratio apart."""
        return np.geomspace(self.largest_radius * SMALLEST, self.largest_radius, EDGES)

    def place_of(self, radius: float) -> int:
        """The first place on the scale that is no smaller."""
        return min(int(np.searchsorted(self.edges, radius)), EDGES - 1)

    @cached_property
    def radius_places(self) -> Places:
        """Where the first search for a radius looks: the whole scale, coarsely."""
        step = 32 if self.pure else 16
        return np.arange(step - 1, EDGES, step)

    def nearer_places(self, noise: int, place: int) -> Places:
        """Where a search looks around a new centre: from the place of its noise to the radius.

        No more places than the first search has; a radius still smaller is found a round later.
        """
        if self.pure:
            return self.radius_places
        step = 16 if self.dim < MANY_DIM else 4
        return np.arange(place, noise, -step)[: len(self.radius_places)][::-1]

    def finder(
        self, cells: int, share: Fraction, weights: tuple[int, ...] | None = None
    ) -> NoisySearch:
        """What finds a cell by rank for a share of the promise, with the noise of its kind.

        Under pure noise cells may have weights.
        """
        asked = (cells, self.search_law, self.strength_squared(share))
        contributions = self.protection.contributions
        if self.pure:
            return RankChoice(*asked, contributions, weights=weights)
        return NoisySearch(*asked, contributions)

    @property
    def beyond(self) -> int:
        """How many records a radius leaves outside."""
        return int(self.limits.beyond * self.n)

    def radius_share(self, cells: int) -> Fraction:
        """Of a search for a radius: all but surely within the records beyond it, if affordable."""
        part = float(self.limits.beyond) * self.n
        rounds = max((cells - 1).bit_length(), 1)
        reach = 2 * math.log(1000 * cells) if self.pure else 4 * math.sqrt(rounds)
        wanted = self.share_of(reach / part)
        return short_fraction(min(max(wanted, self.limits.radius_least), self._radius_most))

    @cached_property
    def _radius_most(self) -> float:
        """What a search for a radius may take; the curve of counts must still be affordable."""
        if self.pure_mean is None:
            return self.limits.radius_most
        left = self.limit - self.last.most_share - self.outside_share - self.question_share
        return min(self.limits.radius_most, float(left) * (1 - 2.0**-40))

    @cached_property
    def first_share(self) -> Fraction:
        """Of the first search for a radius."""
        return self.radius_share(len(self.radius_places))

    @cached_property
    def question_share(self) -> Fraction:
        """Of the question whether a new centre's noise is all that is left; none if pure.

        Under pure noise a search costs hardly more than the question.
        """
        if self.pure:
            return Fraction(0)
        return short_fraction(min(self.share_of(1 / (QUESTION_NOISE * self.n)), 0.01))

    @property
    def question_beyond(self) -> int:
        """How many records it leaves outside."""
        return int(QUESTION_BEYOND * self.n)

    @cached_property
    def center_share(self) -> Fraction:
        """Of a new centre.

        A share s adds s to the square of the last noise, relatively, and (f/s^½)² by the centre's
        own noise, f = 2√d/nμ: the sum is least at s = f. A centre that is farther off makes a pull
        beyond the radius, too, so a fiftieth is spent at least, less in few dimensions. Under pure
        noise: a quarter of the radius, if that is cheap.
        """
        limits = self.limits
        if self.pure:
            wanted = max(self.share_of(8 * self.spread / self.n), limits.center_least)
        else:
            least = limits.center_least * min(1.0, self.dim / 8)
            wanted = max(self.noise(1.0, 1.0), least)
        return short_fraction(min(wanted, limits.center_most))

    @cached_property
    def crude_share(self) -> Fraction:
        """Of a centre while noise is all that is left: noise of a quarter of the radius."""
        if self.pure:
            return self.center_share
        wanted = max(self.share_of(8 * self.spread / self.n), float(self.center_share) / 4)
        return min(short_fraction(wanted), self.center_share)

    def noise_place(self, radius: float, share: Fraction) -> int:
        """Where records would be that lie closer together than the noise of a centre."""
        return self.place_of(NOISE_RADIUS * self.noise(radius, float(share)))

    @cached_property
    def reserved(self) -> Fraction:
        """What no round may touch: the last steps at their dearest, and a part for the mean."""
        return self.least_final_share + self.last.most_share + self.most_aside + self.outside_share

    @property
    def most_aside(self) -> Fraction:
        """What it costs at most to move the centre aside."""
        if self.pure or self.last.on_line:
            return Fraction(0)
        return ASIDE_SHARE + self.last.far_share(ASIDE_PLACES)

    def affords_round(self, spent: Fraction, share: Fraction) -> bool:
        """Whether a centre for a share, and a search around it, leave what is reserved."""
        return spent + share <= self._most_before

    @cached_property
    def _most_before(self) -> Fraction:
        return 1 - self.reserved - self.question_share - self.first_share

    @property
    def least_final_share(self) -> Fraction:
        """What is left for the mean itself, whatever path is taken."""
        return LEAST_LEFT if self.pure_mean is None else 1 - self.limit

    @property
    def likely_final_share(self) -> Fraction:
        """What is left for the mean after two searches for a radius, the common path."""
        middle = EDGES // 2
        noise = self.noise_place(float(self.edges[middle]), self.center_share)
        second = self.radius_share(len(self.nearer_places(noise, middle)))
        learning = self.first_share + self.center_share + self.question_share + second
        return 1 - learning - self.last.likely_share - self.outside_share

    @property
    def is_hopeless(self) -> bool:
        """Whether the last radius would have to leave all records outside."""
        return self.last.is_hopeless

    @property
    def is_enough(self) -> bool:
        """Whether n is large enough for every step to work almost surely.

        A search for a radius stays among the records 999 times out of 1000, a new centre is
        within half a radius of the mean, and the last radius leaves most records inside.
        """
        coarse = self.finder(len(self.radius_places), self.first_share)
        return (
            coarse.rank_error(0.999) <= self.limits.beyond * self.n
            and self.noise(1.0, float(self.crude_share)) <= 0.5
            and 4 * self.last.most_outside <= self.n
        )

    def shell_share(self, inner: float, outer: float, left: Fraction) -> Fraction | None:
        """Of the mean of what lies between two radii; None if it is not taken apart.

        Shares in proportion to the thickness would have the noise of the whole ball if the shell
        were always needed. It seldom is, so it gets a little less.
        """
        if self.pure or outer < THINNEST * inner:
            return None
        part = (LEAN if self.dim < MANY_DIM else LEAN_MANY) * (outer - inner)
        return short_fraction(float(left) * part / (part + inner))

    @cached_property
    def least_n(self) -> int:
        """The least number of records that is enough; noise on the mean is chosen for each."""
        return least_number(lambda n: replace(self, n=n, pure_mean=None).is_enough)


def with_least_noise(sharing: Sharing) -> Sharing:
    """The same steps, with pure noise where that is less on the common path.

    Under (ε, δ) that is so in a few dimensions. On a line the mean alone has it (`pure_mean.py`).
    """
    if sharing.pure or sharing.dim == 1:
        return sharing
    fields = (sharing.magnitude, sharing.weights, sharing.n, sharing.protection)
    pure, normal = (Schedule(*fields, kind) for kind in (NoiseKind.PURE, NoiseKind.NORMAL))
    if not pure.is_enough:
        return sharing
    noise, most = (each.noise(1.0, float(each.likely_final_share)) for each in (pure, normal))
    return replace(sharing, kind=NoiseKind.PURE) if noise <= PURE_WORTH * most else sharing
