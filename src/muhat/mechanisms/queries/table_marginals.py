"""Marginals by noise on the tables themselves, for noise that is measured in the ℓ₁ norm.

A record is in one cell of each table, so y_S = m_S·x_S + z_S moves by Σ_S m_S in the ℓ₁ norm,
where residuals would move 2^|A| times as far. Tables that overlap tell about each other: the
residual of a set A is the mean of what all tables above A say, weighted by how surely they say
it, and the tables are added up again from the residuals, which makes them consistent.

Proof: docs/proofs/queries.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.linear_query import LinearQuery
from muhat.mechanisms.queries.residual_query import Integers, checked_margins, decoded
from muhat.noise import FRACTION_BITS
from muhat.noise.laplace_sums import LaplaceSums, Shape, shape_of
from muhat.privacy import Neighbors
from muhat.workloads.cells import writable
from muhat.workloads.factorization import Factorization
from muhat.workloads.residual_basis import Axes
from muhat.workloads.residual_tables import TableFamily, rows_of

MOST_SIMULATED = 512
"""So many answers have a matrix from the noise to them."""


@dataclass(frozen=True, eq=False)
class TableMarginals(LinearQuery, exact=True):
    """The integers m_S·x_S for every table S, with noise of independent coordinates.

    `tables` are the sets of attributes of the answers, in their order, whose cells are
    multiplied by `table_weights`. With `public_total` the number of records needs no noise.
    """

    cells: tuple[int, ...]
    tables: tuple[Axes, ...]
    table_weights: tuple[float, ...]
    multipliers: tuple[int, ...]
    public_total: bool

    method = "tables"

    @property
    def sets(self) -> tuple[Axes, ...]:
        """The tables that must be given."""
        return tuple(dict.fromkeys(self.tables))

    @property
    def rows(self) -> int:
        """How many integers are released."""
        return sum(rows_of(self.cells, self.tables))

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """‖y − y'‖₁ for neighbours: Σm_S, twice that if a record is replaced, k times for k."""
        if norm != 1:
            raise InvalidInput("noise on tables is measured in the ℓ₁ norm.")
        if self.public_total and neighbors is not Neighbors.SUBSTITUTE:
            raise InvalidInput("the number of records is public only if records are replaced.")
        if neighbors is Neighbors.ADD_REMOVE:
            return Fraction(contributions * sum(self.multipliers))
        moving = zip(rows_of(self.cells, self.tables), self.multipliers, strict=True)
        return Fraction(2 * contributions * sum(m for rows, m in moving if rows > 1))

    def encode(self, margins: Mapping[Axes, NDArray[Any]]) -> list[int]:
        """m_S·x_S without noise, one table after the other, as Python integers."""
        given = checked_margins(self.cells, self.sets, margins)
        return [
            multiplier * int(count)
            for axes, multiplier in zip(self.tables, self.multipliers, strict=True)
            for count in given[axes].flat
        ]

    def release(
        self,
        margins: Mapping[Axes, NDArray[Any]],
        sample: Callable[[int], NDArray[Any]],
        total: int | None = None,
    ) -> Floats:
        """The noisy answers, of shape (m,), in the order of the workload's rows.

        `sample(k)` gives k integers round(2^54·noise); it is called for one table after the
        other. `total` is the number of records, where it is public.
        """
        given = checked_margins(self.cells, self.sets, margins)
        known = None
        if self.public_total:
            first = given[self.sets[0]]
            known = float(int(first.sum(dtype=object)) if total is None else total)
        answers = np.empty(self.rows)
        start = 0
        agreed = self._family.agreeing(self._noisy(given, sample), self._precisions, known)
        for weight, table in zip(self.table_weights, agreed, strict=True):
            np.multiply(table.ravel(), weight, out=answers[start : start + table.size])
            start += table.size
        return answers

    @cached_property
    def table_scales(self) -> Floats:
        """The scale of the noise on a cell of each table, of shape (number of tables,).

        The residual of A has the covariance ⊗_{i∈A}(I − J/n_i)/c_A with c_A = Σ_S m_S²/Π_{S∖A} n.
        """
        shares = self._family.shares(self._precisions)
        squares = [
            math.fsum(
                math.prod(1 - 1 / self.cells[axis] for axis in subset)
                / shares[subset]
                * math.prod(self.cells[axis] for axis in axes if axis not in subset) ** -2.0
                for subset in self._family.subsets[axes]
                if subset or not self.public_total
            )
            for axes in self._family.sets
        ]
        return np.sqrt(squares) * np.abs(self.table_weights)

    @property
    def scales(self) -> Floats:
        """The scale of the noise on every answer, of shape (m,): deviations at unit variance."""
        rows = rows_of(self.cells, self.tables)
        writable("the answers", sum(rows))
        return np.repeat(self.table_scales, rows)

    def decoded_by(self, factorization: Factorization) -> Floats | None:
        """The matrix of few answers, whose norm beyond p = 2 is simulated; None for many.

        A matrix of many would be large, and what it says of single answers is known without it.
        """
        if factorization.p == 2 or self.rows > MOST_SIMULATED:
            return None
        sizes = rows_of(self.cells, self.tables)
        starts = np.cumsum([0, *sizes])
        scales = np.repeat([2.0**FRACTION_BITS / m for m in self.multipliers], sizes)
        known = 0.0 if self.public_total else None
        found = np.empty((self.rows, self.rows))
        for place, scale in enumerate(scales):
            told = np.zeros(self.rows)
            told[place] = scale
            tables = [
                told[start : start + size].reshape(shape)
                for start, size, shape in zip(starts, sizes, self._family.shapes, strict=False)
            ]
            agreed = self._family.agreeing(iter(tables), self._precisions, known)
            weighed = zip(self.table_weights, agreed, strict=True)
            found[:, place] = np.concatenate([weight * table.ravel() for weight, table in weighed])
        return found

    def unit(self, factorization: Factorization) -> float:
        """1: the matrix knows the scale."""
        return 1.0

    def laplace_sums(self) -> LaplaceSums:
        """The noise on every answer as a sum of Laplace variables; alike for a table's cells.

        Cell s of table S has Σ_A weight_A·Π_{i∈A}(1[t_i = s_i] − 1/n_i), A ⊆ S ∩ T, of what cell t
        of table T was told: it depends on which attributes of S ∩ T agree.
        """
        shares = self._family.shares(self._precisions)
        found = [
            self._shape(axes, weight, shares)
            for axes, weight in zip(self._family.sets, self.table_weights, strict=True)
        ]
        rows = rows_of(self.cells, self.tables)
        repeated = [one for one, times in zip(found, rows, strict=True) for _ in range(times)]
        return LaplaceSums.of_shapes(
            [peak for peak, _ in repeated], [shape for _, shape in repeated]
        )

    def total_noise(self) -> tuple[float, LaplaceSums]:
        """The scale of the noise on the number of records that the tables agree on, and its sum."""
        shares = self._family.shares(self._precisions)
        peak, shape = self._shape((), 1.0, shares)
        return shares[()] ** -0.5, LaplaceSums.of_shapes([peak], [shape])

    def _shape(
        self, axes: Axes, weight: float, shares: Mapping[Axes, float]
    ) -> tuple[float, Shape]:
        """The largest coefficient of a cell of one table, and the others beside it."""
        sizes, numbers = [], []
        known = zip(self._family.sets, self._precisions, self.multipliers, strict=True)
        for other, precision, multiplier in known:
            common = [axis for axis in axes if axis in other]
            coefficients = np.zeros((2,) * len(common))
            for chosen in np.ndindex(*coefficients.shape):
                subset = tuple(axis for axis, taken in zip(common, chosen, strict=True) if taken)
                if not subset and self.public_total:
                    continue
                apart = [axis for table in (axes, other) for axis in table if axis not in subset]
                shrink = math.prod(self.cells[axis] for axis in apart)
                coefficients[chosen] = precision / (shares[subset] * shrink)
            alike = np.ones((), np.int64)
            for place, axis in enumerate(common):
                size = self.cells[axis]
                # From attributes outside and inside of A to those that differ and agree.
                change = np.array([[1.0, -1 / size], [1.0, 1 - 1 / size]])
                coefficients = np.moveaxis(np.tensordot(change, coefficients, (1, place)), 0, place)
                alike = np.multiply.outer(alike, np.array([size - 1, 1]))
            alike = alike * math.prod(self.cells[axis] for axis in other if axis not in common)
            sizes.append(
                np.abs(coefficients).ravel() * (abs(weight) * 2.0**FRACTION_BITS / multiplier)
            )
            numbers.append(alike.ravel())
        every = np.concatenate(sizes)
        return float(every.max()), shape_of(every, np.concatenate(numbers))

    @cached_property
    def _family(self) -> TableFamily:
        return TableFamily(self.cells, self.tables)

    @property
    def _precisions(self) -> list[float]:
        """1/(squared scale of the noise) in every table."""
        return [math.ldexp(multiplier, -FRACTION_BITS) ** 2 for multiplier in self.multipliers]

    def _noisy(
        self, margins: Mapping[Axes, Integers], sample: Callable[[int], NDArray[Any]]
    ) -> Iterator[Floats]:
        for axes, shape, multiplier in zip(
            self.tables, self._family.shapes, self.multipliers, strict=True
        ):
            exact = margins[axes].reshape(shape)
            yield decoded(exact, sample(exact.size), multiplier)
