"""The best factorisation of marginals: one block of noisy sums for every residual part.

The strategy asks, for every set A of attributes below one of the tables, for the residual
√c_A·⊗_{i∈A}(I − J/n_i) of the marginal of A; the decoder adds the parts of a table up again.
Under substitution the number of records is public, so the empty set is not asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors
from muhat.workloads.base import Scaled, Workload
from muhat.workloads.cells import writable
from muhat.workloads.factorization import Factorization
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.marginals import Marginals
from muhat.workloads.residual_basis import Axes, Orbits, closure, orbits_of
from muhat.workloads.residual_differences import best_weights_of_differences
from muhat.workloads.residual_optimum import best_weights
from muhat.workloads.residual_tables import assembled, centred, rows_of, summed
from muhat.workloads.stack import Stack

LARGEST_CLOSURE = 1 << 21
"""The most residual parts, counted once for every table they are in."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MarginalFactorization(Factorization):
    """A factorisation of marginal tables in the residual basis.

    - `tables` are the sets of attributes of the answers, in their order; `table_weights` (K,)
      multiply their rows, and `table_deviations` (K,) are the standard deviations of a cell.
    - `subsets` are the sets A of the strategy and `coefficients` their c_A.
    """

    tables: tuple[Axes, ...]
    table_weights: Floats
    table_deviations: Floats
    subsets: tuple[Axes, ...]
    coefficients: Floats

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of categories of every attribute."""
        return self.workload.cells


class ResidualStrategy(LinearMap):
    """√c_A·(⊗_{i∈A}(I − J/n_i) ⊗_{i∉A} 1ᵀ), one block under the other, of shape (r, N)."""

    def __init__(self, cells: tuple[int, ...], subsets: tuple[Axes, ...], weights: Floats) -> None:
        self.cells = cells
        self.subsets = subsets
        self.weights = weights
        self.shape = (sum(rows_of(cells, subsets)), math.prod(cells))

    def apply(self, x: Floats) -> Floats:
        live, counts = self._histogram(x)
        blocks = [
            math.sqrt(weight) * centred(summed(counts, live, axes), len(axes))
            for axes, weight in zip(self.subsets, self.weights, strict=True)
        ]
        tail = x.shape[1:]
        return np.concatenate(
            [np.zeros((0, *tail)), *(block.reshape((-1, *tail)) for block in blocks)]
        )

    def transposed(self, y: Floats) -> Floats:
        writable("the histogram", self.shape[1])
        live, counts = self._histogram(np.zeros((self.shape[1], *y.shape[1:])))
        for axes, weight, block in _blocks(self.cells, self.subsets, self.weights, y):
            kept = [self.cells[axis] if axis in axes else 1 for axis in live]
            residual = math.sqrt(weight) * centred(block, len(axes))
            counts += residual.reshape((*kept, *y.shape[1:]))
        return counts.reshape((self.shape[1], *y.shape[1:]))

    def column_norms(self) -> Floats:
        """Every column has the squared length Σ_A c_A·Π_{i∈A}(1 − 1/n_i)."""
        writable("the column norms", self.shape[1])
        squares = [
            weight * math.prod(1 - 1 / self.cells[axis] for axis in axes)
            for axes, weight in zip(self.subsets, self.weights, strict=True)
        ]
        return np.full(self.shape[1], math.sqrt(math.fsum(squares)))

    def _histogram(self, x: Floats) -> tuple[Axes, Floats]:
        """The cells as an array over the attributes with two categories or more."""
        writable("the histogram", self.shape[1])
        live = tuple(axis for axis, size in enumerate(self.cells) if size > 1)
        return live, x.reshape((*(self.cells[axis] for axis in live), *x.shape[1:]))


class ResidualDecoder(LinearMap):
    """The tables from the strategy's answers, of shape (m, r): least squares, as R has it."""

    def __init__(
        self,
        cells: tuple[int, ...],
        tables: tuple[Axes, ...],
        table_weights: Floats,
        subsets: tuple[Axes, ...],
        weights: Floats,
    ) -> None:
        self.cells = cells
        self.tables = tables
        self.table_weights = table_weights
        self.subsets = subsets
        self.weights = weights
        self.shape = (sum(rows_of(cells, tables)), sum(rows_of(cells, subsets)))

    def apply(self, x: Floats) -> Floats:
        writable("the answers", self.shape[0])
        residuals = {
            axes: centred(block, len(axes)) / math.sqrt(weight)
            for axes, weight, block in _blocks(self.cells, self.subsets, self.weights, x)
        }
        answers = np.zeros((self.shape[0], *x.shape[1:]))
        start = 0
        for axes, weight in zip(self.tables, self.table_weights, strict=True):
            stop = start + math.prod(self.cells[axis] for axis in axes)
            if residuals:
                table = weight * assembled(axes, self.cells, residuals)
                answers[start:stop] = table.reshape((stop - start, *x.shape[1:]))
            start = stop
        return answers

    def transposed(self, y: Floats) -> Floats:
        found = {
            axes: np.zeros((*(self.cells[axis] for axis in axes), *y.shape[1:]))
            for axes in self.subsets
        }
        for axes, weight, table in _blocks(self.cells, self.tables, self.table_weights, y):
            live = tuple(axis for axis in axes if self.cells[axis] > 1)
            block = table.reshape((*(self.cells[axis] for axis in live), *y.shape[1:]))
            for subset in closure(self.cells, [live]):
                if subset in found:
                    rest = math.prod(self.cells[axis] for axis in live if axis not in subset)
                    found[subset] += summed(block, live, subset) * (weight / rest)
        tail = y.shape[1:]
        blocks = [
            (centred(found[axes], len(axes)) / math.sqrt(weight)).reshape((-1, *tail))
            for axes, weight in zip(self.subsets, self.weights, strict=True)
        ]
        return np.concatenate([np.zeros((0, *tail)), *blocks])


def factorize_marginals(
    W: Marginals,
    p: float = 2,
    neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
    tol: float = 1e-9,
) -> MarginalFactorization:
    """The best factorisation of marginals, for p ≥ 2 and either kind of neighbours.

    >>> from muhat.workloads import marginals
    >>> f = factorize_marginals(marginals((10,) * 30, order=3))
    >>> round(f.value / f.workload.shape[0] ** 0.5, 3), f.gap < 1e-9
    (49.463, True)
    """
    return _factorize(W, W.sets, np.ones(len(W.sets)), p, neighbors, tol)


def factorize_marginal_stack(
    W: Stack | Scaled,
    p: float = 2,
    neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
    tol: float = 1e-9,
) -> MarginalFactorization:
    """The same for marginals with weights: a stack whose parts are marginals, maybe scaled."""
    tables = list(weighted_tables(W))
    weights = np.array([weight for _, weight in tables])
    return _factorize(W, tuple(axes for axes, _ in tables), weights, p, neighbors, tol)


def weighted_tables(W: Workload, weight: float = 1.0) -> Iterator[tuple[Axes, float]]:
    """The tables of a stack of marginals and the weights of their rows, in the rows' order."""
    if isinstance(W, Marginals):
        yield from ((axes, weight) for axes in W.sets)
    elif isinstance(W, Scaled):
        yield from weighted_tables(W.inner, weight * W.factor)
    elif isinstance(W, Stack):
        for part, factor in zip(W.parts, W.weights, strict=True):
            yield from weighted_tables(part, weight * factor)
    else:
        raise InvalidInput(f"only marginals have tables; got {W.describe()}.")


def is_marginal(W: Workload) -> bool:
    """Whether the workload is marginals, maybe stacked and with weights."""
    if isinstance(W, Scaled):
        return is_marginal(W.inner)
    if isinstance(W, Stack):
        return all(is_marginal(part) and part.cells == W.cells for part in W.parts)
    return isinstance(W, Marginals)


def _factorize(
    W: Workload,
    tables: tuple[Axes, ...],
    table_weights: Floats,
    p: float,
    neighbors: Neighbors | str,
    tol: float,
) -> MarginalFactorization:
    p = _check.norm_order(p)
    tol = max(_check.positive("tol", tol), 1e-11)
    neighbors = Neighbors.parse(neighbors)
    if sum(1 << sum(W.cells[axis] > 1 for axis in axes) for axes in tables) > LARGEST_CLOSURE:
        raise InvalidInput(
            f"the tables have more than {LARGEST_CLOSURE:,} subsets of attributes. "
            "Ask for fewer tables, or for tables with fewer attributes."
        )
    orbits = orbits_of(W.cells, tables, np.abs(table_weights))
    total = neighbors is Neighbors.SUBSTITUTE
    if total and len(orbits.parts) == 1:
        weights, value, floor = np.zeros(0), 0.0, 0.0
    else:
        optimum = (
            best_weights_of_differences(orbits, p, tol)
            if total
            else best_weights(orbits, (orbits.part_count * orbits.part_cost)[None], p, tol)
        )
        weights, value, floor = optimum.weights, optimum.value, optimum.floor
    inverse = 1 / weights
    if total:
        inverse = np.concatenate([[0.0], inverse])
    deviations = np.sqrt(orbits.variances(inverse))[orbits.table_orbit]
    subsets = closure(W.cells, tables)[total:]
    coefficients = _spread(orbits, subsets, weights, skipped=int(total))
    rows = rows_of(W.cells, tables)

    def for_every_row(numbers: Floats) -> Floats:
        """A number for every cell of every table, from one a table."""
        writable("a number for every answer", W.shape[0])
        return np.repeat(numbers, rows)

    return MarginalFactorization(
        workload=W,
        p=p,
        neighbors=neighbors,
        strategy=ResidualStrategy(W.cells, subsets, coefficients),
        decoder=ResidualDecoder(W.cells, tables, table_weights, subsets, coefficients),
        deviations=lambda: for_every_row(deviations),
        value=value,
        floor=floor,
        method="residuals",
        # A record adds its share of every table: weight/(cells of the table).
        common=(lambda: for_every_row(table_weights / np.array(rows, float))) if total else None,
        tables=tables,
        table_weights=table_weights,
        table_deviations=deviations,
        subsets=subsets,
        coefficients=coefficients,
    )


def _spread(orbits: Orbits, subsets: Sequence[Axes], weights: Floats, *, skipped: int) -> Floats:
    """The weight of every subset, from those of the orbits after the first `skipped`."""
    place = {part: index for index, part in enumerate(orbits.parts[skipped:])}
    return weights[[place[orbits.part_of(axes)] for axes in subsets]]


def _blocks(
    cells: tuple[int, ...], sets: Sequence[Axes], weights: Floats, y: Floats
) -> Iterator[tuple[Axes, float, Floats]]:
    """The blocks of y, each as a table over its set of attributes."""
    start = 0
    for axes, weight in zip(sets, weights, strict=True):
        shape = tuple(cells[axis] for axis in axes)
        stop = start + math.prod(shape)
        yield axes, float(weight), y[start:stop].reshape((*shape, *y.shape[1:]))
        start = stop
