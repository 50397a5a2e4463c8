"""Running totals of the cells in their order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.base import Workload
from muhat.workloads.cells import size, writable


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Prefix(Workload):
    """The sums x₀ + … + x_i for i < n: the lower triangle of ones.

    >>> Prefix(4) @ [1, 2, 3, 4]
    array([ 1.,  3.,  6., 10.])
    """

    kind = "prefix"
    n: int
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, n: int) -> None:
        n = size("n", n)
        self._set(n=n, cells=(n,), shape=(n, n))

    def apply(self, x: Floats) -> Floats:
        writable("the answers", self.n)
        return np.cumsum(x, axis=0, dtype=np.float64)

    def transposed(self, y: Floats) -> Floats:
        writable("the histogram", self.n)
        return np.cumsum(y[::-1], axis=0, dtype=np.float64)[::-1]

    def gram(self) -> Floats:
        """(WᵀW)_ij = n − max(i, j): the sums that hold both cells."""
        self._refuse_large_gram()
        index = np.arange(self.n, dtype=np.float64)
        return self.n - np.maximum.outer(index, index)

    def row_norms(self) -> Floats:
        writable("the row norms", self.n)
        return np.sqrt(np.arange(1, self.n + 1, dtype=np.float64))

    def column_norms(self) -> Floats:
        return self.row_norms()[::-1]

    def describe(self) -> str:
        return f"the {self.n:,} prefix sums of {self.n:,} cells"
