"""The three rounds of Huang, Liang and Yi (2021, Theorem 7) in the local model.

    rotate the records by public random signs and a Hadamard matrix
    c ← the medians of the rotated coordinates, by range counting, rotated back     1/4
    r ← the radius about c that leaves √(2dn/ρ) of n people outside, by range counting  3/16
    the mean of the records clipped to the ball (c, r), with normal noise on every device  9/16

Each round asks another group, of the size that the paper's share of ρ stands for: a k-th of the
people with all of ρ tell as much as all of them with a k-th of it. The people of the first round
split the coordinates among them. It is here for comparison; `local_chain` errs far less, as the
medians have hardly any signal. docs/proofs/local-chain.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat.data.grids import UniformGrid
from muhat.data.rotation import Rotation, padded
from muhat.domains import Ball, Reals
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.privacy import Privacy
from muhat.protocols.encodings.range_cells import Distance, RangeLook, Rotated
from muhat.protocols.estimators.range_choice import best_ranges, haar_mix
from muhat.protocols.estimators.range_counts import RangeCounts, several_range_counts
from muhat.protocols.means.bounded_mean import best_randomizer
from muhat.protocols.means.local_chain import GroupedMean, require_unweighted
from muhat.protocols.means.local_chain_schedule import counting_promise, geometric
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.protocols.randomizers.randomizer import MeanRandomizer, Randomizer, Received
from muhat.protocols.randomizers.range_promise import calibrated
from muhat.protocols.randomizers.range_randomizer import MOST_NODES, RangeRandomizer
from muhat.protocols.roles.model import LOCAL
from muhat.protocols.roles.protocol import MOST_USERS, Protocol
from muhat.release.quantile_grids import AnyGrid
from muhat.release.release import Release

PARTS = (Fraction(1, 4), Fraction(3, 16), Fraction(9, 16))
"""Of the people: for the medians, the radius and the mean."""

LEVELS = 1 << 10
"""The paper's u: records are whole numbers from −u to u."""

MEDIAN_CELLS, RADIUS_CELLS, SMALLEST = 1 << 12, 1 << 8, 2.0**-20
"""Cells over the range of a median, radii, and the least of them as a part of the largest."""


@dataclass(frozen=True)
class LocalThreeRounds(GroupedMean):
    """Theorem 7 over n people; `signs` are those of the public rotation.

    `faithful` keeps what is printed: whole numbers, the range counts of Cormode et al., the rank
    n − √(2dn/ρ) found by a binary search, and normal noise. Else the range counts with the least
    error are taken, radii a ratio apart, the rank that suits the people who are left for the
    mean, and the messages with the least error for it.
    """

    signs: tuple[int, ...]
    faithful: bool = False
    columns: tuple[str, ...] | None = None

    kind: ClassVar[str] = "local-three-rounds"

    def __post_init__(self) -> None:
        _check.count("n", self.n, least=16)
        super().__post_init__()
        if len(self.signs) != self.domain.dim or not set(self.signs) <= {1, -1}:
            raise InvalidInput("must be +1 or -1, one for every coordinate", parameter="signs")
        if not isinstance(self.faithful, bool):
            raise InvalidInput("must be true or false", parameter="faithful")
        if self.faithful and self.privacy.rho_within is None:
            raise InvalidInput(
                f"the paper's rounds keep rho-zCDP, not {self.privacy.describe()}; use "
                "mh.ZCDP(rho=...), or faithful=False."
            )
        if self.faithful and self.outside >= 1:
            raise InvalidInput(
                f"must be above 2d/rho, {2 * self.domain.dim / self._rho:.6g}, for the printed "
                "rank",
                parameter="n",
                value=str(self.n),
            )

    @property
    def groups(self) -> tuple[int, int, int]:
        """How many people each round asks."""
        medians, radius = (math.ceil(part * self.n) for part in PARTS[:2])
        return medians, radius, self.n - medians - radius

    @property
    def outside(self) -> float:
        """The part of the people that the radius leaves outside.

        The bias grows with what clipping takes, the noise with the radius: they balance where
        that many are outside.
        """
        if self.faithful:
            return math.sqrt(2 * self.domain.dim / (self._rho * self.n))
        noise = self.ball((0.0,) * self.domain.dim, 1.0).expected_error(self.groups[2])
        return min(noise, 0.5)

    @property
    def _rho(self) -> float:
        assert self.privacy.rho_within is not None
        return float(self.privacy.rho_within)

    @property
    def median_grid(self) -> UniformGrid:
        """A rotated coordinate is at most d times the largest coordinate."""
        dim = self.domain.dim
        reach = dim * self.magnitude
        steps = 2 * dim * LEVELS if self.faithful else MEDIAN_CELLS - 1
        # Whole numbers as fine as the paper's where there are as many nodes to estimate.
        steps = min(steps, MOST_NODES // padded(dim) // 2)
        # A hair more: a step too many would double the leaves of the tree.
        step = 2 * reach / steps * (1.0 if self.faithful else 1 + 1e-9)
        return UniformGrid(-reach, reach, step)

    @property
    def radius_grid(self) -> AnyGrid:
        """No record is farther from a centre of the domain than twice its reach."""
        largest = 2 * math.sqrt(self.domain.dim) * self.magnitude
        if self.faithful:
            unit = self.magnitude / LEVELS
            return UniformGrid(unit, largest, unit)
        return geometric(SMALLEST * largest, largest, RADIUS_CELLS)

    def counting(self, look: RangeLook, grid: AnyGrid) -> RangeRandomizer:
        """What devices run for medians and the radius."""
        if not self.faithful:
            return best_ranges(look, grid, counting_promise(self.privacy))
        mix = haar_mix(grid.cells)
        return RangeRandomizer(look, grid, self.privacy, mix, calibrated(self.privacy, mix, 1))

    def ball(self, center: tuple[float, ...], radius: float) -> MeanRandomizer:
        """What devices run for the mean."""
        domain = Ball(radius, dim=self.domain.dim, center=np.array(center))
        if self.faithful:
            return GaussianRandomizer(domain, self.privacy)
        return best_randomizer(domain, self.privacy)

    def first(self, minimum: int) -> Protocol:
        """The first round; `minimum` is of all n people, and every group has its part of it."""
        users = self.groups[0]
        look = Rotated(self.signs, (0.0,) * self.domain.dim)
        asked = self.counting(look, self.median_grid)
        return Protocol(self, asked, users, self.group_minimum(minimum, users))

    def check_round(self, protocol: Protocol) -> None:
        """Each asks about what the one before has found: see `Estimator`."""
        match protocol.round:
            case 1:
                asked = protocol.randomizer
                look = asked.look if isinstance(asked, RangeRandomizer) else None
                if look != Rotated(self.signs, (0.0,) * self.domain.dim):
                    raise InvalidInput("the round asks for something else than medians.")
            case 2:
                self.require_distances(protocol, read_center(protocol))
            case 3:
                self.require_ball(protocol, read_center(protocol), read_radius(protocol))
            case _:
                raise InvalidInput("must be at most 3", parameter="round")

    def after(self, protocol: Protocol, received: Received) -> Protocol | Release:
        """The next round, or the mean."""
        if protocol.round == 3:
            center, radius = read_center(protocol), read_radius(protocol)
            return self.of_last_group(protocol, received, center, radius)
        counts = several_range_counts(protocol.randomizer, received.nonces, received.payloads)
        if protocol.round == 1:
            center = self._center(counts)
            step: dict[str, Any] = {"step": "medians"}
            following: Randomizer = self.counting(Distance(center), self.radius_grid)
        else:
            center = read_center(protocol)
            radius = self._value(counts[0], 1 - self.outside)
            step = {"step": "radius", "radius": radius}
            following = self.ball(center, radius)
        entry = {**step, "people": received.users, "center": list(center)}
        return protocol.following(following, self.groups[protocol.round], entry)

    def _center(self, counts: Sequence[RangeCounts]) -> tuple[float, ...]:
        medians = [self._value(each, 0.5) for each in counts]
        center: Floats = Rotation(np.array(self.signs, np.float64)).back(medians)
        inside = np.clip(center, -self.magnitude, self.magnitude)
        return tuple(inside.tolist())

    def _value(self, counts: RangeCounts, part: float) -> float:
        """The value of the grid that this part of the people does not exceed."""
        if not self.faithful:
            return counts.quantile(part)
        return counts.grid.value(searched(counts.prefix(), part))

    def describe(self) -> str:
        printed = ", as printed" if self.faithful else ""
        return f"{super().describe()}, by the three rounds of Huang, Liang and Yi{printed}"


def local_three_rounds(
    domain: Reals,
    *,
    n: int,
    privacy: Privacy,
    faithful: bool = False,
    weights: ArrayLike | Mapping[str, float] | None = None,
    columns: Sequence[str] | None = None,
    minimum: int | None = None,
    words: Words = system_words,
) -> Protocol:
    """The first of three rounds; the signs of the rotation are drawn here, and are public.

    >>> import muhat as mh
    >>> protocol = local_three_rounds(mh.Reals(2, 100.0), n=16_000, privacy=mh.ZCDP(rho=0.5))
    >>> protocol.users, protocol.estimator.groups
    (4000, (4000, 3000, 9000))
    """
    n = _check.count("n", n, most=MOST_USERS)
    require_unweighted(weights, domain.dim)
    signs = tuple(int(sign) for sign in Rotation.drawn(domain.dim, words).signs)
    names = None if columns is None else tuple(columns)
    estimator = LocalThreeRounds(domain, privacy, n, signs, faithful, names)
    return estimator.first(LOCAL.least_users(n, minimum))


def searched(prefix: Floats, part: float) -> int:
    """The cell of a quantile by a binary search over noisy counts of the first cells.

    Algorithm 1 of the paper: to the right as long as the part is not above the wanted one.

    >>> searched(np.array([0.0, 0.2, 0.1, 0.7, 1.0]), 0.5)
    2
    """
    left, right = 0, len(prefix) - 2
    while left < right:
        middle = (left + right) // 2
        if prefix[middle + 1] <= part:
            left = middle + 1
        else:
            right = middle
    return left


def read_center(protocol: Protocol) -> tuple[float, ...]:
    """The centre that the first round has found."""
    found = protocol.learnt[0]["center"]
    return tuple(_check.real("a coordinate of the centre", value) for value in found)


def read_radius(protocol: Protocol) -> float:
    """The radius that the second round has found."""
    return _check.positive("radius", protocol.learnt[1]["radius"])
