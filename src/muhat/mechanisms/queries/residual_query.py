"""Marginals by residuals, in exact integers: what is released, and the way to the answers.

n_i·I − J is an integer matrix, so for every set A of attributes below one of the tables

    y_A = m_A·w_A + z_A,    w_A = ⊗_{i∈A}(n_i·I − J)·(marginal of A),    z = round(2^54·noise)

is a vector of integers, with a public multiplier m_A. The answers are a function of y alone: it
is read as y = m·q + r with 0 ≤ r < m, that is q = w + ⌊z/m⌋ and r = z mod m, which never needs
more than 64 bits although y does. Then y/m is projected onto the range of ⊗(n_i·I − J), which
removes noise that no histogram could have caused, and the residuals are added up.

Proof: docs/proofs/queries.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.queries import residual_sensitivity
from muhat.mechanisms.queries.linear_query import LinearQuery
from muhat.noise import FRACTION_BITS
from muhat.privacy import Neighbors
from muhat.workloads.cells import writable
from muhat.workloads.factorization import Factorization
from muhat.workloads.residual_basis import Axes, closure
from muhat.workloads.residual_tables import assembled, centred, rows_of, summed
from muhat.workloads.residuals import ResidualDecoder

Integers = NDArray[Any]

SAFE = 1 << 62
"""What cannot pass it is computed in 64-bit integers, all else in Python integers."""


@dataclass(frozen=True, eq=False)
class ResidualQuery(LinearQuery, exact=True):
    """The integers m_A·w_A for the sets A in `subsets`, and the tables they give.

    `tables` are the sets of attributes of the answers, in their order, whose cells are
    multiplied by `table_weights`. If the empty set is not among the subsets, the number of
    records is public, and taken from the data. `blockwise` says that the coordinates of the
    noise are independent, so that it may be drawn for one block after the other.
    """

    cells: tuple[int, ...]
    tables: tuple[Axes, ...]
    table_weights: tuple[float, ...]
    subsets: tuple[Axes, ...]
    multipliers: tuple[int, ...]
    blockwise: bool = False

    method = "residuals"

    def __post_init__(self) -> None:
        needed = set(closure(self.cells, self.tables)) - {()}
        if set(self.subsets) - {()} != needed or len(set(self.subsets)) != len(self.subsets):
            raise AssertionError("a residual query needs every subset of its tables, once")
        if len(self.multipliers) != len(self.subsets) or min(self.multipliers, default=1) < 1:
            raise AssertionError("every subset needs a multiplier of at least 1")

    @cached_property
    def sets(self) -> tuple[Axes, ...]:
        """The tables that must be given: those that are not part of another."""
        first: dict[Axes, Axes] = {}
        for axes, live in zip(self.tables, self._live, strict=True):
            first.setdefault(live, axes)
        return tuple(axes for live, axes in first.items() if live not in self._below)

    @property
    def public_total(self) -> bool:
        """Whether the number of records is taken from the data without noise."""
        return () not in self.subsets

    @cached_property
    def rows(self) -> int:
        """How many integers are released."""
        return sum(rows_of(self.cells, self.subsets))

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖y − y'‖ over all neighbours, in the ℓ₁, ℓ₂ or ℓ_∞ norm."""
        if self.public_total and neighbors is not Neighbors.SUBSTITUTE:
            raise InvalidInput("the number of records is public only if records are replaced.")
        measures = {
            1.0: residual_sensitivity.absolute,
            2.0: residual_sensitivity.euclidean,
            math.inf: residual_sensitivity.largest,
        }
        moved = measures[norm](self.cells, self.subsets, self.multipliers, neighbors)
        return contributions * moved

    def encode(self, margins: Mapping[Axes, NDArray[Any]]) -> list[int]:
        """m_A·w_A without noise, one block after the other, as Python integers."""
        margins = checked_margins(self.cells, self.sets, margins)
        return [
            multiplier * int(entry)
            for axes, multiplier in zip(self.subsets, self.multipliers, strict=True)
            for entry in self._exact(axes, margins).flat
        ]

    def release(
        self,
        margins: Mapping[Axes, NDArray[Any]],
        sample: Callable[[int], NDArray[Any]],
        total: int | None = None,
    ) -> Floats:
        """The noisy answers, of shape (m,), in the order of the workload's rows.

        `sample(k)` gives k integers round(2^54·noise). `total` is the number of records, where
        it is public; it is counted if it is left out.
        """
        margins = checked_margins(self.cells, self.sets, margins)
        joint = None if self.blockwise or not self.rows else sample(self.rows)
        places = np.concatenate([[0], np.cumsum(rows_of(self.cells, self.subsets))])
        position = {axes: index for index, axes in enumerate(self.subsets)}

        def residual(axes: Axes) -> Floats:
            start, stop = (int(place) for place in places[position[axes] : position[axes] + 2])
            noise = sample(stop - start) if joint is None else joint[start:stop]
            multiplier = self.multipliers[position[axes]]
            noisy = decoded(self._exact(axes, margins), noise, multiplier)
            return centred(noisy, len(axes)) / noisy.size

        shared: dict[Axes, Floats] = {}
        if self.public_total:
            if total is None:
                total = int(widened(next(iter(margins.values()))).sum())
            shared[()] = np.array(float(total))
        last = self._used_once
        shared |= {axes: residual(axes) for axes in self.subsets if axes not in last}
        answers = np.empty(sum(rows_of(self.cells, self.tables)))
        start = 0
        for axes, weight in zip(self.tables, self.table_weights, strict=True):
            live = tuple(axis for axis in axes if self.cells[axis] > 1)
            own = {live: residual(live)} if live in last else {}
            table = assembled(axes, self.cells, shared | own)
            np.multiply(table.ravel(), weight, out=answers[start : start + table.size])
            start += table.size
        return answers

    @cached_property
    def table_scales(self) -> Floats:
        """The scale of the noise on a cell of each table, of shape (number of tables,)."""
        size = [float(cells) for cells in self.cells]
        part = {
            axes: math.prod(1 - 1 / size[axis] for axis in axes)
            / (math.ldexp(multiplier, -FRACTION_BITS) * math.prod(size[axis] for axis in axes)) ** 2
            for axes, multiplier in zip(self.subsets, self.multipliers, strict=True)
        }
        squares = [
            math.fsum(
                part.get(axes, 0.0)
                * math.prod(size[axis] for axis in table if axis not in axes) ** -2
                for axes in closure(self.cells, [table])
            )
            for table in self.tables
        ]
        return np.sqrt(squares) * np.abs(self.table_weights)

    def decoded_by(self, factorization: Factorization) -> ResidualDecoder:
        """Its own decoder: multipliers are whole numbers, which the factorisation's are not."""
        return self.decoder

    def unit(self, factorization: Factorization) -> float:
        """1: its decoder knows the scale."""
        return 1.0

    @property
    def decoder(self) -> ResidualDecoder:
        """What takes noise of unit scale on the strategy to the answers, c_A = (m_A·Πn/2^54)²."""
        lengths = [
            math.ldexp(multiplier, -FRACTION_BITS) * math.prod(self.cells[axis] for axis in axes)
            for axes, multiplier in zip(self.subsets, self.multipliers, strict=True)
        ]
        weights = np.array(self.table_weights)
        return ResidualDecoder(
            self.cells, self.tables, weights, self.subsets, np.array(lengths) ** 2
        )

    @property
    def scales(self) -> Floats:
        """The scale of the noise on every answer, of shape (m,): deviations at unit variance."""
        rows = rows_of(self.cells, self.tables)
        writable("the answers", sum(rows))
        return np.repeat(self.table_scales, rows)

    @cached_property
    def _live(self) -> tuple[Axes, ...]:
        """The attributes of every table that have two categories or more."""
        return tuple(tuple(axis for axis in axes if self.cells[axis] > 1) for axes in self.tables)

    @cached_property
    def _below(self) -> set[Axes]:
        """The proper subsets of tables."""
        lower = {
            axes[:place] + axes[place + 1 :] for axes in self._live for place in range(len(axes))
        }
        return set(closure(self.cells, sorted(lower))) if lower else set()

    @cached_property
    def _used_once(self) -> set[Axes]:
        """Subsets that belong to one table alone: their noise is drawn when its turn comes."""
        return {
            axes
            for axes, number in Counter(self._live).items()
            if axes and number == 1 and axes not in self._below
        }

    @cached_property
    def _sources(self) -> dict[Axes, Axes]:
        """The smallest table, of those that are given, from which each subset is summed."""
        sources: dict[Axes, Axes] = {}
        sizes = dict(zip(self.sets, rows_of(self.cells, self.sets), strict=True))
        for axes in sorted(self.sets, key=lambda axes: (sizes[axes], axes)):
            for subset in closure(self.cells, [axes]):
                sources.setdefault(subset, axes)
        return sources

    def _exact(self, axes: Axes, margins: Mapping[Axes, Integers]) -> Integers:
        """w_A, in 64 bits where that is proved to be enough."""
        source = self._sources[axes]
        given = widened(margins[source])
        table = np.asarray(summed(given, source, axes)).reshape([self.cells[axis] for axis in axes])
        if table.dtype != object:
            # |n·t − Σt| ≤ n·Σ|t| along an axis, and Σ|t| over all cells grows at most 2n times.
            reach = int(np.abs(table).sum()) * math.prod(2 * self.cells[axis] for axis in axes)
            if reach >= SAFE:
                table = table.astype(object)
        for axis, name in enumerate(axes):
            table = table * self.cells[name] - table.sum(axis=axis, keepdims=True)
        return table


def checked_margins(
    cells: Sequence[int], sets: Sequence[Axes], margins: Mapping[Axes, NDArray[Any]]
) -> dict[Axes, Integers]:
    """The tables of counts that are needed, or InvalidInput."""
    found: dict[Axes, Integers] = {}
    for axes in sets:
        shape = tuple(cells[axis] for axis in axes)
        table = margins.get(axes)
        if table is None or np.shape(table) != shape:
            raise InvalidInput(f"margins must hold a table over {axes}, of shape {shape}.")
        if table.dtype != object and table.dtype.kind not in "iu":
            raise InvalidInput(f"margins must be whole numbers; got {table.dtype}.")
        found[axes] = table
    return found


def decoded(exact: Integers, noise: NDArray[Any], multiplier: int) -> Floats:
    """(m·w + z)/m in floats, computed from the quotient and the remainder of y by m."""
    shape, exact, noise = exact.shape, exact.reshape(-1), noise.reshape(-1)
    if multiplier >= SAFE:
        noise = noise.astype(object)
    divisor: Any = multiplier if noise.dtype == object else np.int64(multiplier)
    quotient = noise // divisor
    remainder = noise - quotient * divisor
    if object in (exact.dtype, quotient.dtype) or _reach(exact, quotient) >= SAFE:
        exact, quotient = exact.astype(object), quotient.astype(object)
    whole = (exact + quotient).astype(np.float64)
    return np.asarray(whole + remainder.astype(np.float64) / float(multiplier)).reshape(shape)


def _reach(*arrays: Integers) -> int:
    return sum(max(int(array.max(initial=0)), -int(array.min(initial=0))) for array in arrays)


def widened(counts: Integers) -> Integers:
    """The same integers, in a type in which their sum cannot overflow."""
    if counts.dtype != object and _reach(counts) * counts.size < SAFE:
        return counts.astype(np.int64, copy=False)
    return counts.astype(object)
