"""Linear queries in strategy space: y = round(b·(G₁ ⊗ G₂ ⊗ …)·x/2^t) + noise, in integers.

x holds the exact counts of the cells, the G are integer matrices, b and t whole numbers. The
answers W·x are decoded from y: W·G⁺·y·2^t/b. Correlated noise is never added to an exact answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._integers import root_up
from muhat.errors import InvalidInput
from muhat.mechanisms.arithmetic.exact_product import Integers
from muhat.mechanisms.queries.linear_query import LinearQuery
from muhat.mechanisms.queries.strategy_factor import (
    IdentityFactor,
    ParityFactor,
    StrategyFactor,
    SumsFactor,
    rounded_factor,
)
from muhat.noise import FRACTION_BITS
from muhat.noise.law import ScaleFamily
from muhat.privacy import Neighbors
from muhat.workloads.base import Scaled, Workload
from muhat.workloads.cells_and_sums import CellsAndSums
from muhat.workloads.factorization import Factorization
from muhat.workloads.identity import Identity
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.parity import Parity
from muhat.workloads.products import KroneckerMap, Multiple

Margins = Mapping[tuple[int, ...], NDArray[np.int64]]

Part = StrategyFactor | Floats

MATRIX_BITS = 50
"""Of several matrices all but the first are rounded to this many bits."""

MOST_MATRICES = 12
"""More of them, at so many bits each, would leave the floats that decode."""

MOST_INFLATION = 1e-3
"""Rounding may add at most this fraction to the noise."""

LARGEST_SCALE = 2.0**60
"""Entries of a matrix stay within 64 bits; what is beyond goes into the multiplier."""

LEAST_SCALE = 1 << 20
"""A strategy of fewer steps than this would cost more than a millionth of the noise."""


@dataclass(frozen=True, eq=False)
class StrategyQuery(LinearQuery, keys=("multiplier", "fraction_bits", "factors", "offset")):
    """The answers to a workload, decoded from noisy integers in strategy space.

    `scales`, of shape (m,), is the scale of the noise on every answer. Under substitution
    `offset` is what a record adds to the answers wherever it is, of which nothing is hidden.
    """

    workload: Workload
    factors: tuple[StrategyFactor, ...]
    multiplier: int
    fraction_bits: int
    scales: Floats
    offset: Floats | None = None

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The tables of counts that are read: one, of all cells."""
        return (tuple(range(len(self.workload.cells))),)

    @property
    def rows(self) -> int:
        """How many integers are released."""
        return math.prod(factor.shape[0] for factor in self.factors)

    @property
    def keeps_total(self) -> bool:
        """Whether they are the counts of the cells."""
        cells = all(isinstance(factor, IdentityFactor) for factor in self.factors)
        return cells and (self.multiplier, self.fraction_bits) == (1, 0)

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on how far neighbours' integers lie apart, in the ℓ₁ or ℓ₂ norm."""
        reach = _reach(self.factors, norm, apart=neighbors is Neighbors.SUBSTITUTE)
        reach *= Fraction(self.multiplier * contributions, 1 << self.fraction_bits)
        # Rounding moves each row by at most ½ on either side.
        rounding = 0 if self.fraction_bits == 0 else self.rows
        return reach + (rounding if norm == 1 else root_up(Fraction(rounding)))

    def encode(self, counts: NDArray[np.int64]) -> Integers:
        """round(b·(G₁ ⊗ G₂ ⊗ …)·x/2^t) in Python integers, of shape (rows,)."""
        values: Integers = counts.reshape([factor.shape[1] for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            moved = factor.apply(np.moveaxis(values, axis, 0))
            values = np.moveaxis(moved, 0, axis)
        half = (1 << self.fraction_bits) >> 1
        return (values.reshape(-1).astype(object) * self.multiplier + half) >> self.fraction_bits

    def decode(self, noisy: Integers, total: int | None) -> Floats:
        """The answers for noisy integers, of shape (m,); `total` is the public number of records.

        A function of the noisy integers alone: each becomes the nearest float first.
        """
        unit = 2.0**self.fraction_bits / self.multiplier
        values = np.array([float(value) for value in noisy]) * unit
        values = values.reshape([factor.shape[0] for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            moved = np.moveaxis(values, axis, 0)
            undone = factor.undo(moved.reshape(len(moved), math.prod(moved.shape[1:])))
            values = np.moveaxis(undone.reshape(factor.shape[1], *moved.shape[1:]), 0, axis)
        cells = values.reshape(-1)
        answers = self.workload @ cells
        if self.offset is None:
            return answers
        assert total is not None
        return np.asarray(answers + self.offset * (total - cells.sum()))

    def release(
        self, margins: Margins, sample: Callable[[int], Integers], total: int | None
    ) -> Floats:
        """The noisy answers, of shape (m,), for the exact counts of all cells."""
        exact = self.encode(margins[self.sets[0]])
        return self.decode(exact + sample(self.rows), total)


def fit_strategy(
    factorization: Factorization,
    law: ScaleFamily,
    *,
    strength_squared: Fraction,
    neighbors: Neighbors,
    contributions: int,
) -> StrategyQuery:
    """The integer strategy that is as large as the promise allows."""
    norm = law.sensitivity_norm
    allowed = strength_squared * (1 << 2 * FRACTION_BITS)
    room = math.sqrt(allowed) / contributions
    deviations = factorization.standard_deviations
    parts = strategy_parts(factorization.strategy)
    if sum(isinstance(part, np.ndarray) for part in parts) > MOST_MATRICES:
        raise InvalidInput(
            f"a Kronecker product has at most {MOST_MATRICES} factors without structure of their "
            "own. Join small ones: workloads.matrix(workloads.kron(…).dense())."
        )
    for shrink in (2.0**-48, 2.0**-40, 2.0**-30, 2.0**-20):
        factors, multiplier, fraction_bits = _filled(
            parts, norm, room * (1 - shrink), apart=neighbors is Neighbors.SUBSTITUTE
        )
        unit = 2.0 ** (FRACTION_BITS + fraction_bits) / multiplier
        for factor in factors:
            if not factor.inflation < MOST_INFLATION:
                raise InvalidInput(
                    "the strategy is too close to one of lower rank for exact arithmetic; remove "
                    "queries that are nearly combinations of others."
                )
            unit *= (1 + factor.inflation) / factor.scale
        query = StrategyQuery(
            factorization.workload,
            factors,
            multiplier,
            fraction_bits,
            deviations * unit,
            factorization.offset,
        )
        if query.sensitivity(norm, neighbors, contributions) ** 2 <= allowed:
            return query
    raise AssertionError("the strategy is more sensitive than its factorisation says")


def strategy_parts(strategy: LinearMap | Floats, scale: float = 1.0) -> list[Part]:
    """The factors of scale·strategy as a Kronecker product: matrices, or integers as they are."""
    match strategy:
        case Identity():
            return [IdentityFactor(strategy.shape[1], 1 / scale)]
        case Parity():
            return [ParityFactor(strategy, 1 / scale)]
        case CellsAndSums():
            return [SumsFactor(strategy, 1 / scale)]
        case Scaled() | Multiple():
            return strategy_parts(strategy.inner, scale * strategy.factor)
        case KroneckerMap():
            first, *others = strategy.factors
            return strategy_parts(first, scale) + [
                part for other in others for part in strategy_parts(other)
            ]
    if isinstance(strategy, np.ndarray):
        return [strategy * scale]
    return [_full_rank(strategy.dense()) * scale]


def _full_rank(strategy: Floats) -> Floats:
    """A strategy with the same inner products of columns, and no row that follows from others."""
    _, sizes, rows = np.linalg.svd(strategy, full_matrices=False)
    rank = int(np.sum(sizes > sizes.max(initial=0.0) * max(strategy.shape) * 2.0**-50))
    if rank == len(strategy):
        return strategy
    return np.asarray(sizes[:rank, None] * rows[:rank])


def _filled(
    parts: Sequence[Part], norm: float, room: float, *, apart: bool
) -> tuple[tuple[StrategyFactor, ...], int, int]:
    """Integer factors, a multiplier and fractional bits that fill the room, and just that."""
    matrices = [(at, part) for at, part in enumerate(parts) if isinstance(part, np.ndarray)]
    trial: list[StrategyFactor] = [
        rounded_factor(part, 2.0**MATRIX_BITS / _peak(part))
        if isinstance(part, np.ndarray)
        else part
        for part in parts
    ]
    reach = float(_reach(trial, norm, apart=apart))
    if reach == 0:
        return tuple(trial), 1, 0
    if not matrices:
        return tuple(trial), int(_enough(room / reach)), 0
    # The first matrix takes the scale that fills the room; the others keep all their bits.
    fraction_bits = MATRIX_BITS * (len(matrices) - 1)
    steps = _enough(room / reach * 2.0 ** (MATRIX_BITS + fraction_bits))
    multiplier = math.ceil(steps / LARGEST_SCALE)
    at, first = matrices[0]
    trial[at] = rounded_factor(first, steps / multiplier / _peak(first))
    return tuple(trial), multiplier, fraction_bits


def _peak(matrix: Floats) -> float:
    """A power of two between the largest entry and twice that: 1 for most strategies.

    Columns that must be near each other may be long, if the number of records is public.
    """
    return math.ldexp(1.0, math.frexp(float(np.abs(matrix).max(initial=0.5)))[1])


def _reach(factors: Sequence[StrategyFactor], norm: float, *, apart: bool) -> Fraction:
    """The largest column of a Kronecker product, or how far two columns are apart at most."""
    if apart and len(factors) == 1:
        return factors[0].column_distance(norm)
    size = Fraction(1)
    for factor in factors:
        size *= factor.column_size(norm)
    if not apart:
        return size
    if norm == 1:
        return 2 * size
    # ‖a − b‖² ≤ 2·(largest square) − 2·(least inner product), which is a product of those of the
    # factors; each lies between its least and the largest square.
    low = high = Fraction(1)
    for factor in factors:
        least, most = factor.least_inner_product(), factor.column_size(norm) ** 2
        low, high = min(low * least, low * most, high * least), high * most
    return root_up(2 * (size**2 - low))


def _enough(scale: float) -> float:
    if not scale >= LEAST_SCALE:
        raise InvalidInput(
            "the promise is too strong for exact arithmetic: the noise would be more than 10^10 "
            "times what one record moves. Choose a larger epsilon, rho or mu."
        )
    return scale
