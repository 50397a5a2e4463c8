"""Kronecker products: a query on every attribute at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.workloads.base import Workload
from muhat.workloads.cells import LARGEST_CELLS, product, width_of, writable


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Kron(Workload):
    """W₁ ⊗ W₂ ⊗ …: one answer for every choice of a query of each factor.

    The histogram has the axes of all factors, one after the other.

    >>> from muhat.workloads import prefix
    >>> (Kron([prefix(2), prefix(2)]) @ [1, 2, 3, 4]).reshape(2, 2)
    array([[ 1.,  3.],
           [ 4., 10.]])
    """

    kind = "kron"
    factors: tuple[Workload, ...]
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, factors: Sequence[Workload]) -> None:
        flat: list[Workload] = []
        for factor in factors:
            if not isinstance(factor, Workload):
                raise InvalidInput(
                    f"the factors must be workloads; got {type(factor).__name__}. "
                    "Wrap a matrix in workloads.matrix."
                )
            flat += factor.factors if isinstance(factor, Kron) else [factor]
        if not flat:
            raise InvalidInput("a Kronecker product needs at least one factor; got none.")
        rows = product("the number of answers", [f.shape[0] for f in flat], most=LARGEST_CELLS)
        columns = product("the shape", [f.shape[1] for f in flat], most=LARGEST_CELLS)
        cells = tuple(size for factor in flat for size in factor.cells)
        self._set(factors=tuple(flat), cells=cells, shape=(rows, columns))

    def apply(self, x: Floats) -> Floats:
        return self._one_axis_at_a_time(x, transposed=False)

    def transposed(self, y: Floats) -> Floats:
        return self._one_axis_at_a_time(y, transposed=True)

    def gram(self) -> Floats:
        self._refuse_large_gram()
        return _outer([factor.gram() for factor in self.factors])

    def row_norms(self) -> Floats:
        writable("the row norms", self.shape[0])
        return _outer([factor.row_norms() for factor in self.factors])

    def column_norms(self) -> Floats:
        writable("the column norms", self.shape[1])
        return _outer([factor.column_norms() for factor in self.factors])

    def describe(self) -> str:
        return " × ".join(f"({factor.describe()})" for factor in self.factors)

    def _one_axis_at_a_time(self, array: Floats, *, transposed: bool) -> Floats:
        """Factors that shrink their axis come first, so that little is held in between."""
        inner, outer = (0, 1) if transposed else (1, 0)
        sizes = [factor.shape[inner] for factor in self.factors]
        writable("the product", self.shape[outer] * width_of(array))
        tail = array.shape[1:]
        result = np.asarray(array, dtype=np.float64)
        growth = [factor.shape[outer] / factor.shape[inner] for factor in self.factors]
        for axis in sorted(range(len(sizes)), key=growth.__getitem__):
            factor = self.factors[axis]
            before, after = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
            block = result.reshape(before, sizes[axis], -1)
            columns = np.ascontiguousarray(block.transpose(1, 0, 2)).reshape(sizes[axis], -1)
            moved = factor.transposed(columns) if transposed else factor.apply(columns)
            sizes[axis] = factor.shape[outer]
            moved = moved.reshape(sizes[axis], before, -1).transpose(1, 0, 2)
            result = np.ascontiguousarray(moved).reshape(before * sizes[axis] * after, *tail)
        return result


def _outer(arrays: list[Floats]) -> Floats:
    """The Kronecker product of vectors or of matrices."""
    result = arrays[0]
    for array in arrays[1:]:
        result = np.asarray(np.kron(result, array), dtype=np.float64)
    return result
