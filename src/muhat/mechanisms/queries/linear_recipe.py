"""A mechanism for linear queries, ready to run: an integer query, a law of noise, a promise.

As a recipe for sums, it proves itself when it is made: the exact sensitivity of its query, in the
norm of its law, is hidden by the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.linear_query import LinearQuery
from muhat.mechanisms.queries.residual_fit import fit_residuals
from muhat.mechanisms.queries.residual_query import ResidualQuery
from muhat.mechanisms.queries.strategy_factor import IdentityFactor
from muhat.mechanisms.queries.strategy_query import Margins, StrategyQuery, fit_strategy
from muhat.mechanisms.queries.streaming import PrefixQuery
from muhat.mechanisms.queries.table_marginals import TableMarginals
from muhat.noise.balanced import least_balanced
from muhat.noise.laplace_sums import NoiseSums
from muhat.noise.law import CombinedLaw, IndependentFamily, Law, ScaleFamily
from muhat.noise.least_stairs import least_stairs
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors
from muhat.workloads.base import Scaled
from muhat.workloads.factorization import Factorization
from muhat.workloads.identity import Identity
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.prefix import Prefix
from muhat.workloads.products import Multiple
from muhat.workloads.residuals import MarginalFactorization
from muhat.workloads.toeplitz import SquareRootStrategy

WEAKEST = 1 << 200
"""μ or ε: beyond it noise would be less than 10^-60 of what one record moves."""

MOST_COEFFICIENTS = 1 << 24
"""Sums of Laplace noise are looked at one by one up to this many coefficients in all."""

_BLOCK_ROWS = 256
_SHRUNK = 1 - Fraction(1, 1 << 30)
"""Room for the rounding of a strategy that is made a little smaller."""


@dataclass(frozen=True, eq=False)
class LinearRecipe(Plain, keys=("law", "query", "protection", "absent")):
    """Noise of a law on the integers of a query, for a promise that it keeps.

    `name` says which law, and on which strategy. With `absent` a record may be in no cell, so that
    one that is replaced may also come or go.
    """

    name: str
    factorization: Factorization
    law: CombinedLaw
    query: LinearQuery
    protection: Protection
    absent: bool = False

    def __post_init__(self) -> None:
        if self.absent and self.factorization.neighbors is Neighbors.SUBSTITUTE:
            raise AssertionError("how many records have a cell is no public number")
        moved = _moved(self.query, self.law.sensitivity_norm, self.protection, self.absent)
        replaced = self.protection.neighbors is Neighbors.SUBSTITUTE and not self.absent
        keeps_total = replaced and self.query.keeps_total
        self.protection.check(self.law, moved, self.query.rows, keeps_total=keeps_total)

    @classmethod
    def of(
        cls,
        factorization: Factorization,
        law: IndependentFamily,
        protection: Protection,
        *,
        absent: bool = False,
        method: str | None = None,
    ) -> LinearRecipe:
        """The integer version of a factorisation, as large as the promise allows.

        Where records may be `absent` the factorisation is for adding and removing them. `method`
        is one of the `methods` of marginals.
        """
        strength_squared = protection.strength_squared(law.kind)
        if strength_squared > WEAKEST**2:
            raise InvalidInput(
                "the promise is too weak for exact arithmetic: the noise would be less than "
                "10^-60 of what one record moves. Choose a smaller epsilon, rho or mu."
            )
        arguments = {
            "strength_squared": strength_squared,
            "neighbors": factorization.neighbors,
            "contributions": protection.contributions,
            **({} if method is None else {"method": method}),
        }
        query = _query(factorization, law, arguments)
        moved = _moved(query, law.sensitivity_norm, protection, absent) ** 2 / law.unit**2
        if absent and moved > strength_squared:
            # A record that moves from a cell to another may move more than one that goes.
            shrunk = strength_squared**2 / moved * _SHRUNK
            query = _query(factorization, law, {**arguments, "strength_squared": shrunk})
        name = f"{law.name} noise, {query.method or factorization.method}"
        return cls(name, factorization, law, query, protection, absent)

    @classmethod
    def on_cells(
        cls, factorization: Factorization, protection: Protection, *, absent: bool = False
    ) -> LinearRecipe | None:
        """Noise on the counts of all cells as they are, the least for a histogram.

        For answers from cells. A record that comes or goes moves one cell, and stairs hide it. One
        that is replaced moves two: their total stays what it is, and noise that adds up to nothing
        hides that best, unless a record may be `absent`. None where Laplace noise is as good.
        """
        strategy = factorization.strategy
        factor, size = _cells_factor(strategy) or 1.0, strategy.shape[1]
        query = StrategyQuery(
            factorization.workload,
            (IdentityFactor(size),),
            1,
            0,
            factorization.standard_deviations * factor,
            factorization.offset,
        )
        moved = math.ceil(_moved(query, 1.0, protection, absent))
        replaced = factorization.neighbors is Neighbors.SUBSTITUTE
        least = least_balanced if replaced else least_stairs
        law: CombinedLaw | None = least(protection.promise, moved, size)
        if law is None:
            return None
        query = replace(query, scales=query.scales * law.unit)
        name = f"{law.name} noise, {factorization.method}"
        return cls(name, factorization, law, query, protection, absent)

    @property
    def decoder(self) -> LinearMap | Floats | None:
        """What takes the noise to the answers, up to `unit`; None where no matrix is at hand."""
        return self.query.decoded_by(self.factorization)

    @property
    def unit(self) -> float:
        """The scale of the noise that the decoder takes to the answers."""
        return self.query.unit(self.factorization)

    @property
    def has_exact_intervals(self) -> bool:
        """Whether the law of every answer is known: that of a variable, or of a sum of like ones.

        Otherwise intervals of stairs would be long, and what their noise gains lost again.
        """
        known = self.sums is not None and self.sums.have_laws
        return self.factorization.is_diagonal or known

    @cached_property
    def sums(self) -> NoiseSums | None:
        """The noise on every answer as a sum of Laplace variables, or of whole numbers.

        None for normal noise, where every answer has a variable of its own, and where the
        coefficients are too many to look at.
        """
        if self.law.stable or self.factorization.is_diagonal:
            return None
        decoder = self.decoder
        if decoder is None:
            return self.query.laplace_sums()
        if math.prod(decoder.shape) > MOST_COEFFICIENTS:
            return None
        return self.law.sums(block * self.unit for block in _rows(decoder))

    def total_noise(self, weights: Floats) -> tuple[float, NoiseSums | None]:
        """The scale of the noise on weightsᵀ·answers, the number of records, and its sum."""
        decoder = self.decoder
        if decoder is None:
            return self.query.total_noise()
        if isinstance(decoder, np.ndarray):
            row = decoder.T @ weights * self.unit
        else:
            row = decoder.transposed(weights) * self.unit
        return float(np.linalg.norm(row)), self.law.sums([row[None]])

    def run(self, margins: Margins, total: int | None) -> Floats:
        """The noisy answers for exact counts, of shape (m,)."""
        return self.query.release(margins, self.law.sample, total)


def _moved(query: LinearQuery, norm: float, protection: Protection, absent: bool) -> Fraction:
    """How far neighbours' integers lie apart at most, in the norm of a law."""
    relations = {protection.neighbors, Neighbors.ADD_REMOVE} if absent else {protection.neighbors}
    return max(
        query.sensitivity(norm, relation, protection.contributions) for relation in relations
    )


def _rows(decoder: LinearMap | Floats) -> Iterator[Floats]:
    """The rows of a matrix, some at a time."""
    if isinstance(decoder, np.ndarray):
        yield decoder
        return
    rows = decoder.shape[0]
    for start in range(0, rows, _BLOCK_ROWS):
        chosen = np.arange(start, min(start + _BLOCK_ROWS, rows))
        one = np.zeros((rows, len(chosen)))
        one[chosen, np.arange(len(chosen))] = 1
        yield decoder.transposed(one).T


def methods(factorization: Factorization, law: Law) -> tuple[str | None, ...]:
    """The ways to noisy marginals that a law allows; where p = 2 the scales tell the better one."""
    several = isinstance(factorization, MarginalFactorization) and law.sensitivity_norm == 1
    ways = (ResidualQuery.method, TableMarginals.method)
    return ways if several and factorization.p > 2 else (None,)


def is_on_cells(factorization: Factorization) -> bool:
    """Whether the strategy is to count the cells as they are."""
    return _cells_factor(factorization.strategy) is not None


def _cells_factor(strategy: LinearMap | Floats) -> float | None:
    """f, if a strategy is f times the cells."""
    if isinstance(strategy, Scaled) and isinstance(strategy.inner, Identity):
        return strategy.factor
    return 1.0 if isinstance(strategy, Identity) else None


def needs_normal_noise(factorization: Factorization) -> bool:
    """Whether the strategy is that of a long prefix, whose noise is correlated in time."""
    strategy = factorization.strategy
    return isinstance(
        strategy.inner if isinstance(strategy, Multiple) else strategy, SquareRootStrategy
    )


def _query(
    factorization: Factorization, law: ScaleFamily, arguments: dict[str, Any]
) -> LinearQuery:
    if isinstance(factorization, MarginalFactorization):
        return fit_residuals(factorization, law, **arguments)
    strategy = factorization.strategy
    if needs_normal_noise(factorization):
        if not law.stable:
            raise InvalidInput(
                "a prefix this long has normal noise alone: use ApproxDP, ZCDP or GDP."
            )
        workload = factorization.workload
        factor = workload.factor if isinstance(workload, Scaled) else 1.0
        if not isinstance(workload.inner if isinstance(workload, Scaled) else workload, Prefix):
            raise AssertionError("running sums answer a prefix, or a multiple of it")
        return PrefixQuery.fit(strategy.shape[1], factor=factor, **arguments)
    return fit_strategy(factorization, law, **arguments)
