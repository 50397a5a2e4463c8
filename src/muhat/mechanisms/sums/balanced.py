"""Balanced noise on counts of points or the parts of a whole: what one gains another loses.

    error √(4(2m − 1)(m − 1)/(m + 1))/ε for the sum of parts of m corners at equal weights, where
    Laplace noise taken off the public total has √(8(m − 1))/ε: 16 % less for 4, 7 % for 10; for
    counts of records, each at one of m points, that of geometric noise, given the public total

Parts are integers of their lattice as they are, and sums of points Σ_k (count of k)·x_k. Proof:
docs/proofs/balanced.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from muhat._arrays import Floats
from muhat._integers import whole_root_down
from muhat.domains import Domain
from muhat.domains.integers import TableLattice
from muhat.domains.vectors import Vector
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.calibration import SumMechanism
from muhat.mechanisms.sums.parts_query import PartsQuery
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.balanced import MOST_CELLS, Balanced, least_balanced
from muhat.noise.balanced_laplace import LARGEST_RATE, BalancedLaplace
from muhat.noise.discrete import LEAST_RATE
from muhat.noise.kinds import NoiseKind
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors, Privacy

SCALE_BITS, MOST_ROUNDED = 48, 24
"""Noise on parts has so many bits, and sums lose that many of 44 at most."""

_PRECISION = 128


def balanced(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Noise on the counts of points, or on the parts of a simplex, that adds up to nothing."""
    found = None if body.is_clipped else _corners(body.shape)
    replaced = protection.neighbors is Neighbors.SUBSTITUTE
    if found is None or not replaced:
        raise InvalidInput(
            f"balanced is for a Simplex of 3 to {MOST_CELLS} corners, or as many Points whose "
            "every coordinate is one of two numbers, where records are replaced."
        )
    law, query = _noise(*found, protection)
    if law is None:
        raise InvalidInput(
            "balanced is for an epsilon that is neither tiny nor huge; use 'laplace'."
        )
    _, corners = found
    center = corners.mean(axis=0)
    return Recipe("balanced", law, query, protection, (corners - center).T, center)


def _noise(
    lattice: TableLattice, corners: Floats, protection: Protection
) -> tuple[Balanced | BalancedLaplace | None, PartsQuery]:
    """The least noise on counts, or on parts that are rounded so far that it fits 64 bits."""
    size = len(corners)

    def moved(query: PartsQuery) -> Fraction:
        return query.sensitivity(1.0, protection.neighbors, protection.contributions)

    query = PartsQuery(lattice, size)
    if not lattice.part_bits:
        return least_balanced(protection.promise, math.ceil(moved(query)), size), query
    squared = protection.strength_squared(NoiseKind.PURE) * (1 << 2 * _PRECISION)
    epsilon = Fraction(whole_root_down(squared), 1 << _PRECISION)
    if not epsilon:
        return None, query
    scale = math.log2(moved(query) / epsilon)
    rounded = min(max(0, math.ceil(scale) - SCALE_BITS), MOST_ROUNDED)
    query = PartsQuery(lattice, size, rounded)
    rate = epsilon / moved(query)
    inside = LEAST_RATE <= rate <= LARGEST_RATE
    return BalancedLaplace(size, rate) if inside else None, query


def _corners(domain: Domain) -> tuple[TableLattice, Floats] | None:
    """The lattice of a domain and its corners (m, d); None where this noise is not for it.

    The laws of sums of parts are known where they count alike: a coordinate of points has two
    values, a coordinate of a simplex is a part.
    """
    lattice, corners = domain.corner_lattice(), domain.vertices()
    if lattice is None or corners is None or not 3 <= len(corners) <= MOST_CELLS:
        return None
    few = all(len(np.unique(column)) <= 2 for column in corners.T)
    return (lattice, corners) if few else None


def _competes(domain: Domain, protection: Protection) -> bool:
    """For a whole promise, and records that are replaced."""
    replaced = protection.neighbors is Neighbors.SUBSTITUTE
    if not replaced or not isinstance(protection.promise, Privacy):
        return False
    found = _corners(domain)
    return found is not None and _noise(*found, protection)[0] is not None


BALANCED = SumMechanism(
    "balanced",
    "noise that adds up to nothing, as changes of counts and shares do",
    Balanced.name,
    balanced,
    _competes,
)
