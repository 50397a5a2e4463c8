"""A mechanism, ready to run: an integer query, a law of noise, and the way back to the domain.

A recipe proves itself when it is made: the exact sensitivity of its query, in the norm of its
law, is at most √strength_squared units of the noise. That inequality is the promise; nothing
else in the plan can break it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.domains import Ball, Box, Domain, Ellipsoid
from muhat.domains.lattice import BallLattice, BoxLattice, Lattice
from muhat.errors import InvalidInput
from muhat.mechanisms.integer_query import IntegerQuery, fit
from muhat.noise import FRACTION_BITS
from muhat.noise.law import Law
from muhat.privacy import Neighbors, Privacy, PureDP, as_typed, gaussian_mu_squared

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Protection:
    """What a recipe must guarantee, whatever it computes.

    `strength_squared` is μ² for normal noise and ε² for pure noise.
    """

    neighbors: Neighbors
    strength_squared: Fraction
    contributions: int

    @classmethod
    def of(cls, promise: Privacy, neighbors: Neighbors, contributions: int) -> Protection:
        """What a promise asks of the noise."""
        return cls(neighbors, _strength_squared(promise), contributions)


@dataclass(frozen=True, eq=False)
class Recipe:
    """Exact sums in, noisy sums out.

    `transform` maps the lattice's coordinates to the domain's, of shape (d, d), where they
    differ (the whitened coordinates of an ellipsoid).
    """

    name: str
    law: Law
    query: IntegerQuery
    protection: Protection
    transform: Floats | None = None

    def __post_init__(self) -> None:
        moved = self.query.sensitivity(
            self.law.sensitivity_norm, self.protection.neighbors, self.protection.contributions
        )
        allowed = self.protection.strength_squared * (1 << 2 * FRACTION_BITS)
        if moved**2 > allowed:
            raise AssertionError("the query is more sensitive than the promise allows")

    def run(self, totals: Sequence[int], count: int) -> list[Fraction]:
        """The noisy sums in the lattice's coordinates, the noisy count last if it is released."""
        noise = self.law.sample(self.query.rows)
        answer = self.query.answer(totals, count)
        return [
            (value + int(shift)) * unit
            for value, shift, unit in zip(answer, noise, self.query.units(), strict=True)
        ]

    @cached_property
    def row_scales(self) -> Floats:
        """The noise's scale in each row of the query, in the lattice's coordinates."""
        return np.array([float(unit * (1 << FRACTION_BITS)) for unit in self.query.units()])

    @property
    def sum_scales(self) -> Floats:
        """The noise's scale in each row of the sums, without the count."""
        counted = self.query.count_multiplier is not None
        return self.row_scales[:-1] if counted else self.row_scales

    @cached_property
    def factor(self) -> Floats | None:
        """F with noise on the sums = F·(noise of unit scale), or None if F is diagonal."""
        return None if self.transform is None else self.transform * self.sum_scales

    @cached_property
    def scales(self) -> Floats:
        """The scale of the noise on each coordinate of the sum, in the domain's coordinates."""
        if self.factor is None:
            return self.sum_scales
        return np.asarray(np.linalg.norm(self.factor, axis=1))

    def to_domain(self, coordinates: Sequence[Fraction]) -> Floats:
        """A vector of the lattice's coordinates in the domain's, relative to the centre."""
        values = np.array([float(value) for value in coordinates])
        return values if self.transform is None else self.transform @ values

    def to_dict(self) -> dict[str, Any]:
        """All that decides the release, in integers, for the plan's digest."""
        query = self.query
        return {
            "mechanism": self.name,
            "law": self.law.name,
            "lattice": None if query.lattice is None else query.lattice.to_dict(),
            "multipliers": [str(multiplier) for multiplier in query.row_multipliers],
            "fraction_bits": query.fraction_bits,
            "from_zero": query.from_zero,
            "contributions": self.protection.contributions,
            "neighbors": self.protection.neighbors.value,
        }


@lru_cache(maxsize=256)
def _strength_squared(promise: Privacy) -> Fraction:
    """μ² of the normal noise that keeps the promise, or ε² of pure noise, exactly."""
    if isinstance(promise, PureDP):
        return as_typed(promise.epsilon) ** 2
    return gaussian_mu_squared(promise)


@dataclass(frozen=True, eq=False)
class Body:
    """What a record may add to the sums: the shape to hide, and the integers that hide in it.

    `shape` is the set whose smallest ellipsoid shapes the noise; `lattice`, `transform` and
    `from_zero` say how records become integers and come back.
    """

    shape: Domain
    lattice: Lattice
    transform: Floats | None = None
    from_zero: bool = False

    @classmethod
    def of(cls, domain: Domain) -> Body:
        """Records of a domain, measured from its centre."""
        if isinstance(domain, Box):
            lower, upper = zip(*domain.bounds, strict=True)
            return cls(domain, BoxLattice.around(lower, upper))
        if isinstance(domain, Ball):
            return cls(domain, BallLattice.around(domain.center.tolist(), domain.radius))
        if isinstance(domain, Ellipsoid):
            inverse = domain.inverse_factor.tolist()
            lattice = BallLattice.whitened(domain.center.tolist(), inverse)
            return cls(domain, lattice, domain.factor)
        raise InvalidInput(f"records of {type(domain).__name__} cannot be summed.")

    @classmethod
    def from_origin(cls, box: Box) -> Body:
        """Records of a box, measured from 0: the smallest box around K ∪ −K is to be hidden."""
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        return cls(Box(-reach, reach), cls.of(box).lattice, from_zero=True)

    def proportions(self, scales: Floats) -> list[float]:
        """Multipliers, up to a common factor, that give noise of these scales on the sums.

        The one multiplier of a ball goes with the scale of its first coordinate.
        """
        if isinstance(self.lattice, BallLattice):
            return [2.0**self.lattice.exponent / float(scales[0])]
        return [
            2.0**exponent / float(scale)
            for exponent, scale in zip(self.lattice.exponents, scales, strict=True)
        ]


def calibrated(
    name: str,
    law: Law,
    body: Body | None,
    scales: Floats | None,
    protection: Protection,
    *,
    count_scale: float | None = None,
) -> Recipe:
    """The recipe whose noise has these scales, up to the factor that just keeps the promise.

    With a `count_scale` the number of records is released too; without a body, it alone.
    """
    proportions = [] if body is None or scales is None else body.proportions(scales)
    if count_scale is not None:
        proportions.append(1 / count_scale)
    query = fit(
        None if body is None else body.lattice,
        proportions,
        with_count=count_scale is not None,
        from_zero=body is not None and body.from_zero,
        norm=law.sensitivity_norm,
        neighbors=protection.neighbors,
        strength_squared=protection.strength_squared,
        contributions=protection.contributions,
    )
    return Recipe(name, law, query, protection, None if body is None else body.transform)
