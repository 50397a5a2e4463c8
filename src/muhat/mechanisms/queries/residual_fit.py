"""The multipliers of a residual query, as large as a promise allows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.residual_query import ResidualQuery
from muhat.mechanisms.queries.residual_sensitivity import block_length
from muhat.mechanisms.queries.table_marginals import TableMarginals
from muhat.noise.kinds import Strength
from muhat.noise.law import ScaleFamily
from muhat.privacy import Neighbors
from muhat.workloads.residual_basis import Axes, orbits_of
from muhat.workloads.residual_certificate import weighted_norm
from muhat.workloads.residual_differences import without_total
from muhat.workloads.residual_optimum import best_weights
from muhat.workloads.residual_tables import rows_of
from muhat.workloads.residuals import MarginalFactorization

LEAST_MULTIPLIER = 1 << 10
"""Rounding a multiplier down costs less than a thousandth of the noise."""

SHRINKING = (2.0**-38, 2.0**-30, 2.0**-24, 2.0**-20, 2.0**-16)
"""Room for rounding, given away before multipliers are cut: the least that is enough. Lengths are
rounded up to whole numbers, which matters where a person has millions of records."""


def fit_residuals(
    factorization: MarginalFactorization,
    law: ScaleFamily,
    strength_squared: Fraction,
    neighbors: Neighbors,
    contributions: int,
    method: str | None = None,
) -> ResidualQuery | TableMarginals:
    """The query whose sensitivity, in units of the noise, is at most √strength_squared.

    For noise measured in the ℓ₂ norm the parts have the weights of the factorisation. In the ℓ₁
    norm they have weights of their own, and noise on the tables themselves often has the smaller
    error: that of the `method` is returned, or, if it is None or too coarse, the one of the smaller
    ℓ_p norm of scales.
    """
    if factorization.neighbors is not neighbors:
        raise InvalidInput(
            f"the factorisation is for neighbors={factorization.neighbors.value!r}; "
            f"got {neighbors.value!r}."
        )
    for shrink in SHRINKING:
        room = math.sqrt(strength_squared) * law.unit / contributions * (1 - shrink)
        query = _best(factorization, law, room, method)
        moved = query.sensitivity(law.sensitivity_norm, neighbors, contributions)
        if law.keeps(Strength(law.kind, strength_squared), moved):
            return query
    raise AssertionError("the query is more sensitive than the promise allows")


def _best(
    factorization: MarginalFactorization, law: ScaleFamily, room: float, method: str | None
) -> ResidualQuery | TableMarginals:
    """The query of the least error whose integers move by no more than the room."""
    sides = 2 if factorization.neighbors is Neighbors.SUBSTITUTE else 1
    if law.sensitivity_norm == 2:
        weights = factorization.coefficients
    elif law.sensitivity_norm == 1:
        weights = absolute_weights(factorization)
    else:
        sizes = [[factorization.cells[axis] for axis in axes] for axes in factorization.subsets]
        lengths = [sides * math.prod(1 - 1 / size for size in each) for each in sizes]
        weights = np.array(lengths) ** -2.0
    queries: list[ResidualQuery | TableMarginals | None] = [
        _residuals(factorization, room, weights, law)
    ]
    if law.sensitivity_norm == 1:
        queries.append(_tables(factorization, room / sides))
    possible = [query for query in queries if query is not None]
    possible = [query for query in possible if query.method == method] or possible
    if not possible:
        raise InvalidInput(
            "the promise is too strong for exact arithmetic: the noise on a cell would be more "
            "than 10^10 times what one record moves. Choose a larger epsilon, rho or mu, or ask "
            "for smaller tables."
        )
    return min(possible, key=lambda query: _error(factorization, query))


def _residuals(
    factorization: MarginalFactorization, room: float, weights: Floats, law: ScaleFamily
) -> ResidualQuery | None:
    """m_A = room·√c_A/Π n_i, rounded down, or None if that is too coarse."""
    cells = factorization.cells
    multipliers = [
        room * math.sqrt(weight) / math.prod(cells[axis] for axis in axes)
        for axes, weight in zip(factorization.subsets, weights, strict=True)
    ]
    if min(multipliers, default=math.inf) < LEAST_MULTIPLIER:
        return None
    return ResidualQuery(
        cells,
        factorization.tables,
        tuple(factorization.table_weights.tolist()),
        factorization.subsets,
        tuple(int(multiplier) for multiplier in multipliers),
        blockwise=law.independent,
    )


def _tables(factorization: MarginalFactorization, room: float) -> TableMarginals | None:
    """m_S ∝ (cells of S)^{1/(p+1)}, the best for tables that tell nothing about each other."""
    cells, p = factorization.cells, factorization.p
    rows = np.array(rows_of(cells, factorization.tables), np.float64)
    importance = np.abs(factorization.table_weights)
    shares = np.ones(len(rows)) if math.isinf(p) else rows ** (1 / (p + 1))
    shares = shares * importance ** (1.0 if math.isinf(p) else p / (p + 1))
    multipliers = (room * shares / shares.sum()).tolist()
    if min(multipliers) < LEAST_MULTIPLIER:
        return None
    return TableMarginals(
        cells,
        factorization.tables,
        tuple(factorization.table_weights.tolist()),
        tuple(int(multiplier) for multiplier in multipliers),
        public_total=factorization.neighbors is Neighbors.SUBSTITUTE,
    )


def _error(factorization: MarginalFactorization, query: ResidualQuery | TableMarginals) -> float:
    """‖scales‖_p, up to a factor that both kinds of query share."""
    rows = np.array(rows_of(factorization.cells, factorization.tables), np.float64)
    return weighted_norm(query.table_scales, rows, factorization.p)


def absolute_weights(factorization: MarginalFactorization) -> Floats:
    """c_A with Σ_A √c_A·(ℓ₁ length of a block) = 1 and the least error of this p."""
    cells, subsets = factorization.cells, factorization.subsets
    if not subsets:
        return np.zeros(0)
    orbits = orbits_of(cells, factorization.tables, np.abs(factorization.table_weights))
    if () not in subsets:
        orbits = without_total(orbits)
    members: dict[Axes, Axes] = {orbits.part_of(axes): axes for axes in subsets}
    lengths = [
        block_length(cells, members[part], factorization.neighbors)
        / math.prod(cells[axis] for axis in members[part])
        for part in orbits.parts
    ]
    budget = orbits.part_count * np.array(lengths)
    found = best_weights(orbits, budget[None], factorization.p, 1e-6, power=0.5).weights
    place = {part: index for index, part in enumerate(orbits.parts)}
    return found[[place[orbits.part_of(axes)] for axes in subsets]]
