"""Workloads one under the other, added, and multiplied by numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.workloads.base import Workload
from muhat.workloads.cells import LARGEST_CELLS, items, product, width_of, writable
from muhat.workloads.linear_map import BLOCK

LARGEST_PROBE = 1 << 16
"""Sums of at most this many cells are checked not to cancel to nothing."""

LEAST_FACTOR = 1e-150
"""Squares of factors, and of one over them, stay floats."""

LARGEST_WORK = 1 << 34
"""The most entries of a sum that are visited for its norms."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Stack(Workload):
    """The queries of several workloads on one histogram, the rows of each times its weight.

    A weight says how much an error in those answers matters: the answers of part i come out
    multiplied by weights[i].

    >>> from muhat.workloads import identity, prefix
    >>> Stack([identity(2), prefix(2)], [1, 10]) @ [1, 2]
    array([ 1.,  2., 10., 30.])
    """

    kind = "stack"
    parts: tuple[Workload, ...]
    weights: tuple[float, ...]
    cells: tuple[int, ...] = field(init=False)
    offsets: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, parts: Sequence[Workload], weights: Sequence[float] | None = None) -> None:
        parts, cells = _same_histogram(parts)
        if weights is None:
            weights = [1.0] * len(parts)
        checked = tuple(
            _check.positive(f"weights[{part}]", weight)
            for part, weight in enumerate(items("weights", "a list of numbers", weights))
        )
        for weight in checked:
            if not LEAST_FACTOR <= weight <= 1 / LEAST_FACTOR:
                raise InvalidInput(
                    "must be between 1e-150 and 1e150", parameter="weights", value=f"{weight:g}"
                )
        if len(checked) != len(parts):
            raise InvalidInput(
                f"must be {len(parts)}, one for each part",
                parameter="weights",
                value=str(len(checked)),
            )
        offsets = [0]
        for part in parts:
            offsets.append(offsets[-1] + part.shape[0])
        rows = product("the number of answers", offsets[-1:], most=LARGEST_CELLS)
        shape = (rows, parts[0].shape[1])
        self._set(parts=parts, weights=checked, cells=cells, offsets=tuple(offsets), shape=shape)

    def apply(self, x: Floats) -> Floats:
        writable("the answers", self.shape[0] * width_of(x))
        return np.concatenate([weight * part.apply(x) for part, weight in self._weighted()])

    def transposed(self, y: Floats) -> Floats:
        total = np.zeros((self.shape[1], *y.shape[1:]))
        for (part, weight), start in zip(self._weighted(), self.offsets[:-1], strict=True):
            total += weight * part.transposed(y[start : start + part.shape[0]])
        return total

    def gram(self) -> Floats:
        self._refuse_large_gram()
        total = np.zeros((self.shape[1],) * 2)
        for part, weight in self._weighted():
            total += weight**2 * part.gram()
        return total

    def row_norms(self) -> Floats:
        writable("the row norms", self.shape[0])
        return np.concatenate([weight * part.row_norms() for part, weight in self._weighted()])

    def column_norms(self) -> Floats:
        writable("the column norms", self.shape[1])
        squares = np.zeros(self.shape[1])
        for part, weight in self._weighted():
            squares += (weight * part.column_norms()) ** 2
        return np.sqrt(squares)

    def to_dict(self) -> dict[str, Any]:
        return {
            "workload": self.kind,
            "parts": [part.to_dict() for part in self.parts],
            "weights": [weight.hex() for weight in self.weights],
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Stack:
        from muhat.workloads import from_dict

        weights = [float.fromhex(weight) for weight in fields["weights"]]
        return cls([from_dict(part) for part in fields["parts"]], weights)

    def describe(self) -> str:
        return "; ".join(
            part.describe() if weight == 1 else f"{weight:g} times {part.describe()}"
            for part, weight in self._weighted()
        )

    def _weighted(self) -> list[tuple[Workload, float]]:
        return list(zip(self.parts, self.weights, strict=True))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SumOfWorkloads(Workload):
    """W₁ + W₂ + …, matrices of one shape added entry by entry."""

    kind = "sum"
    parts: tuple[Workload, ...]
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, parts: Sequence[Workload]) -> None:
        parts, cells = _same_histogram(parts)
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

    def to_dict(self) -> dict[str, Any]:
        return {"workload": self.kind, "parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> SumOfWorkloads:
        from muhat.workloads import from_dict

        return cls([from_dict(part) for part in fields["parts"]])

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

    def to_dict(self) -> dict[str, Any]:
        return {
            "workload": self.kind,
            "factor": self.factor.hex(),
            "inner": self.inner.to_dict(),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Scaled:
        from muhat.workloads import from_dict

        return cls(float.fromhex(fields["factor"]), from_dict(fields["inner"]))

    def describe(self) -> str:
        return f"{self.factor:g} times {self.inner.describe()}"


def _same_histogram(parts: object) -> tuple[tuple[Workload, ...], tuple[int, ...]]:
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
