"""Workloads one under the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.workloads.base import LEAST_FACTOR, Workload, same_histogram
from muhat.workloads.cells import LARGEST_CELLS, items, product, width_of, writable


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
        parts, cells = same_histogram(parts)
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

    def describe(self) -> str:
        return "; ".join(
            part.describe() if weight == 1 else f"{weight:g} times {part.describe()}"
            for part, weight in self._weighted()
        )

    def _weighted(self) -> list[tuple[Workload, float]]:
        return list(zip(self.parts, self.weights, strict=True))
