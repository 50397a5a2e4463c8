"""The three rounds of Huang, Liang and Yi (2021, Theorem 7) in the local model.

    rotate the records by public random signs and a Hadamard matrix
    c ← the medians of the rotated coordinates, by range counting, rotated back     1/4
    r ← the radius about c that leaves √(2dn/ρ) of n people outside, by range counting  3/16
    the mean of the records clipped to the ball (c, r), with normal noise on every device  9/16

Each round asks another group, of the size that the paper's share of ρ stands for: a k-th of the
people with all of ρ tell as much as all of them with a k-th of it. The people of the first round
share the coordinates. It is here for comparison; `local_chain` errs far less, as the medians have
hardly any signal. docs/proofs/local-chain.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat.data.grids import UniformGrid
from muhat.data.rotation import Rotation, padded
from muhat.domains import Ball, Reals
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.planning.caution import warn_of_large_delta
from muhat.privacy import Neighbors, Privacy
from muhat.protocols.encodings.range_cells import Distance, Look, Rotated
from muhat.protocols.estimators.own_spread import of_people
from muhat.protocols.estimators.range_choice import best_ranges, haar_mix
from muhat.protocols.estimators.range_counts import RangeCounts
from muhat.protocols.means.local_chain import last_group, range_randomizer, require_unweighted
from muhat.protocols.means.local_chain_schedule import counting_promise, geometric
from muhat.protocols.means.local_mean import best_randomizer
from muhat.protocols.means.one_round import (
    column_names,
    mean_randomizer,
    numbered,
    require_magnitude,
    turnout,
)
from muhat.protocols.protocol import MOST_USERS, Protocol, least_users
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.protocols.randomizers.randomizer import MeanRandomizer, Randomizer
from muhat.protocols.randomizers.range_promise import calibrated
from muhat.protocols.randomizers.range_randomizer import MOST_NODES, RangeRandomizer
from muhat.release.quantile_grids import AnyGrid
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.protocols.roles.collector import Received

SHARES = (Fraction(1, 4), Fraction(3, 16), Fraction(9, 16))
"""Of the people: for the medians, the radius and the mean."""

LEVELS = 1 << 10
"""The paper's u: records are whole numbers from −u to u."""

MEDIAN_CELLS, RADIUS_CELLS, SMALLEST = 1 << 12, 1 << 8, 2.0**-20
"""Cells over the range of a median, radii, and the least of them as a part of the largest."""


@dataclass(frozen=True)
class LocalThreeRounds:
    """Theorem 7 over n people; `signs` are those of the public rotation.

    `faithful` keeps what is printed: whole numbers, the range counts of Cormode et al., the rank
    n − √(2dn/ρ) found by a binary search, and normal noise. Else the range counts with the least
    error are taken, radii a ratio apart, the rank that suits the people who are left for the
    mean, and the messages with the least error for it.
    """

    domain: Reals
    privacy: Privacy
    n: int
    signs: tuple[int, ...]
    faithful: bool = False
    columns: tuple[str, ...] | None = None

    kind: ClassVar[str] = "local-three-rounds"
    model: ClassVar[str] = "local"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _check.count("n", self.n, least=16))
        require_magnitude(self.domain)
        object.__setattr__(self, "columns", column_names(self.columns, self.domain.dim))
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
    def magnitude(self) -> float:
        """What bounds every coordinate."""
        assert self.domain.magnitude is not None
        return self.domain.magnitude

    @property
    def groups(self) -> tuple[int, int, int]:
        """How many people each round asks."""
        medians, radius = (math.ceil(share * self.n) for share in SHARES[:2])
        return medians, radius, self.n - medians - radius

    @property
    def outside(self) -> float:
        """The share of the people that the radius leaves outside.

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

    def counting(self, look: Look, grid: AnyGrid) -> RangeRandomizer:
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
        least = max(1, -(-minimum * users // self.n))
        return Protocol(self, self.counting(look, self.median_grid), users, least)

    def after(self, protocol: Protocol, received: Received) -> Protocol | Release:
        """The next round, or the mean."""
        if protocol.round == 3:
            return self._release(protocol, received)
        asked = range_randomizer(protocol)
        counts = asked.estimates(received.nonces, received.payloads)
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

    def _value(self, counts: RangeCounts, share: float) -> float:
        """The value of the grid that this share of the people does not exceed."""
        if not self.faithful:
            return counts.quantile(share)
        return counts.grid.value(searched(counts.prefix(), share))

    def _release(self, protocol: Protocol, received: Received) -> Release:
        asked, users = mean_randomizer(protocol.randomizer), received.users
        center, radius = read_center(protocol), float(protocol.learnt[1]["radius"])
        own = of_people(asked, received, radius)
        return Release(
            statistic="mean",
            value=asked.mean(received.nonces, received.payloads),
            columns=self.columns or numbered(self.domain.dim),
            mechanism=self.kind,
            privacy=self.privacy,
            neighbors=Neighbors.SUBSTITUTE,
            n=users,
            contributions=1,
            missing="center",
            domain=Ball(radius, dim=self.domain.dim, center=np.array(center)),
            noise=own.used,
            certificate=None,
            assumptions=(*last_group(self.n), own.describe(), *turnout(protocol, users)),
            plan_digest=protocol.digest,
            ledger_head=None,
        )

    def describe(self) -> str:
        """What is estimated, in a sentence."""
        printed = ", as printed" if self.faithful else ""
        return (
            f"the mean of {self.n} people's records, wherever they lie in {self.domain!r}, by the "
            f"three rounds of Huang, Liang and Yi{printed}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The description."""
        return {
            "domain": self.domain.to_dict(),
            "privacy": privacy.to_dict(self.privacy),
            "n": self.n,
            "signs": list(self.signs),
            "faithful": self.faithful,
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The estimator described."""
        return cls(
            Reals.from_fields(fields["domain"]),
            privacy.from_dict(fields["privacy"]),
            fields["n"],
            tuple(map(int, fields["signs"])),
            fields["faithful"],
            fields["columns"],
        )


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
    warn_of_large_delta(privacy, n, stacklevel=3)
    require_unweighted(weights, domain.dim)
    signs = tuple(int(sign) for sign in Rotation.drawn(domain.dim, words).signs)
    names = None if columns is None else tuple(columns)
    estimator = LocalThreeRounds(domain, privacy, n, signs, faithful, names)
    return estimator.first(least_users(n, minimum))


def searched(prefix: Floats, share: float) -> int:
    """The cell of a quantile by a binary search over noisy shares of the first cells.

    Algorithm 1 of the paper: to the right as long as the share is not above the wanted one.

    >>> searched(np.array([0.0, 0.2, 0.1, 0.7, 1.0]), 0.5)
    2
    """
    left, right = 0, len(prefix) - 2
    while left < right:
        middle = (left + right) // 2
        if prefix[middle + 1] <= share:
            left = middle + 1
        else:
            right = middle
    return left


def read_center(protocol: Protocol) -> tuple[float, ...]:
    """The centre that the first round has found."""
    found = protocol.learnt[0]["center"]
    return tuple(_check.real("a coordinate of the centre", value) for value in found)
