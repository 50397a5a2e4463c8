"""What every workload can say about itself, and what sums and multiples of workloads are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.workloads.cells import items
from muhat.workloads.linear_map import BLOCK, LARGEST_DENSE, LinearMap

LARGEST_PROBE = 1 << 16
"""Sums of at most this many cells are checked not to cancel to nothing."""

LEAST_FACTOR = 1e-150
"""Squares of factors, and of one over them, stay floats."""

LARGEST_WORK = 1 << 34
"""The most entries of a sum that are visited for its norms."""


class Workload(Plain, LinearMap, tag="workload", exact=True):
    """Linear queries on a histogram x of N cells: the answers are W·x, of shape (m,).

    `cells` is the shape of the histogram, whose product is N; cells are counted in C order.
    `V + W` adds matrices of one shape, `2 * W` multiplies all answers.
    """

    kind: ClassVar[str]
    cells: tuple[int, ...]

    def gram(self) -> Floats:
        """WᵀW, of shape (N, N), without building W; refused where it would not fit."""
        self._refuse_large_gram()
        return self.transposed(self.apply(np.eye(self.shape[1])))

    @abstractmethod
    def describe(self) -> str:
        """The workload in a few words: "all 32,896 ranges of 256 cells"."""

    def _refuse_large_gram(self) -> None:
        N = self.shape[1]
        if N * N > LARGEST_DENSE:
            raise InvalidInput(f"a Gram matrix of {N} × {N} is not built.")

    def _set(self, **fields: Any) -> None:
        """Set fields of a frozen workload while it is made; arrays become read-only."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __add__(self, other: Any) -> Workload:
        return SumOfWorkloads([self, other]) if isinstance(other, Workload) else NotImplemented

    def __sub__(self, other: Any) -> Workload:
        return (
            SumOfWorkloads([self, Scaled(-1.0, other)])
            if isinstance(other, Workload)
            else NotImplemented
        )

    def __mul__(self, factor: Any) -> Workload:
        return Scaled(float(factor), self) if isinstance(factor, Real) else NotImplemented

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SumOfWorkloads(Workload):
    """W₁ + W₂ + …, matrices of one shape added entry by entry."""

    kind = "sum"
    parts: tuple[Workload, ...]
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, parts: Sequence[Workload]) -> None:
        parts, cells = same_histogram(parts)
        if len({part.shape for part in parts}) > 1:
            shapes = ", ".join(str(part.shape) for part in parts)
            raise InvalidInput(
                f"only workloads of one shape are added; got {shapes}. "
                "To ask all of their queries, use workloads.stack."
            )
        flat = tuple(
            inner
            for part in parts
            for inner in (part.parts if isinstance(part, SumOfWorkloads) else (part,))
        )
        self._set(parts=flat, cells=cells, shape=parts[0].shape)
        if max(self.shape) <= LARGEST_PROBE:
            probe = np.sin(np.arange(1, self.shape[1] + 1, dtype=np.float64))
            if not self.apply(probe).any():
                raise InvalidInput("the sum must ask for something; its parts cancel to 0.")

    def apply(self, x: Floats) -> Floats:
        total = self.parts[0].apply(x)
        for part in self.parts[1:]:
            total = total + part.apply(x)
        return total

    def transposed(self, y: Floats) -> Floats:
        total = self.parts[0].transposed(y)
        for part in self.parts[1:]:
            total = total + part.transposed(y)
        return total

    def row_norms(self) -> Floats:
        squares = np.zeros(self.shape[0])
        for _, block in self._columns():
            squares += np.einsum("ij,ij->i", block, block)
        return np.sqrt(squares)

    def column_norms(self) -> Floats:
        norms = np.empty(self.shape[1])
        for start, block in self._columns():
            norms[start : start + block.shape[1]] = np.sqrt(np.einsum("ij,ij->j", block, block))
        return norms

    def describe(self) -> str:
        return " + ".join(f"({part.describe()})" for part in self.parts)

    def _columns(self) -> Iterable[tuple[int, Floats]]:
        """The matrix in blocks of columns."""
        rows, columns = self.shape
        if rows * columns > LARGEST_WORK:
            raise InvalidInput(f"the norms of a sum of {rows} × {columns} are not computed.")
        width = max(1, BLOCK // max(rows, columns))
        for start in range(0, columns, width):
            units = np.eye(columns, min(width, columns - start), -start)
            yield start, self.apply(units)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Scaled(Workload):
    """c·W: every answer multiplied by a number other than 0.

    >>> from muhat.workloads import identity
    >>> (2 * identity(2)) @ [1, 2]
    array([2., 4.])
    """

    kind = "scaled"
    factor: float
    inner: Workload
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, factor: float, inner: Workload) -> None:
        factor = _check.real("the factor", factor)
        if isinstance(inner, Scaled):
            factor, inner = factor * inner.factor, inner.inner
        if not LEAST_FACTOR <= abs(factor) <= 1 / LEAST_FACTOR:
            raise InvalidInput(
                f"the factor must not be 0, and be between 1e-150 and 1e150; got {factor:g}."
            )
        self._set(factor=factor, inner=inner, cells=inner.cells, shape=inner.shape)

    def apply(self, x: Floats) -> Floats:
        return self.factor * self.inner.apply(x)

    def transposed(self, y: Floats) -> Floats:
        return self.factor * self.inner.transposed(y)

    def gram(self) -> Floats:
        return self.factor**2 * self.inner.gram()

    def row_norms(self) -> Floats:
        return abs(self.factor) * self.inner.row_norms()

    def column_norms(self) -> Floats:
        return abs(self.factor) * self.inner.column_norms()

    def describe(self) -> str:
        return f"{self.factor:g} times {self.inner.describe()}"


def same_histogram(parts: object) -> tuple[tuple[Workload, ...], tuple[int, ...]]:
    """The parts and the shape of their histogram; a flat one takes the shape of the others."""
    checked: list[Workload] = []
    for part in items("parts", "a list of workloads", parts):
        if not isinstance(part, Workload):
            raise InvalidInput(
                "must be workloads",
                parameter="parts",
                value=type(part).__name__,
                hint="Wrap a matrix in workloads.matrix.",
            )
        checked.append(part)
    if not checked:
        raise InvalidInput("must hold at least one workload", parameter="parts", value="none")
    shapes = {part.cells for part in checked if len(part.cells) > 1} or {checked[0].cells}
    cells = next(iter(shapes))
    if len(shapes) > 1 or any(part.shape[1] != math.prod(cells) for part in checked):
        listed = ", ".join(str(part.cells) for part in checked)
        raise InvalidInput(f"the parts must share one histogram; their cells are {listed}.")
    return tuple(checked), cells
