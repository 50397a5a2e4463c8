"""The counts of all intervals of cells."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.base import Workload
from muhat.workloads.cells import LARGEST_CELLS, product, size, width_of, writable


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ranges(Workload):
    """x_s + … + x_e for all s ≤ e < n: n(n+1)/2 rows, by start and then by end.

    >>> Ranges(3) @ [1, 2, 4]
    array([1., 3., 7., 2., 6., 4.])
    """

    kind = "ranges"
    n: int
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, n: int) -> None:
        n = size("n", n)
        rows = product("the number of ranges", [n * (n + 1) // 2], most=LARGEST_CELLS)
        self._set(n=n, cells=(n,), shape=(rows, n))

    def apply(self, x: Floats) -> Floats:
        """Differences of prefix sums: exact for integers whose sums are below 2^53."""
        writable("the answers", self.shape[0] * width_of(x))
        sums = np.zeros((self.n + 1, *x.shape[1:]))
        np.cumsum(x, axis=0, out=sums[1:])
        answers = np.empty((self.shape[0], *x.shape[1:]))
        offset = 0
        for start in range(self.n):
            stop = offset + self.n - start
            np.subtract(sums[start + 1 :], sums[start], out=answers[offset:stop])
            offset = stop
        return answers

    def transposed(self, y: Floats) -> Floats:
        """For every start, sums from the far end: no differences, so nothing cancels."""
        totals = np.zeros((self.n, *y.shape[1:]))
        offset = 0
        for start in range(self.n):
            stop = offset + self.n - start
            totals[start:] += np.cumsum(y[offset:stop][::-1], axis=0)[::-1]
            offset = stop
        return totals

    def gram(self) -> Floats:
        """(WᵀW)_ij = (min(i, j) + 1)(n − max(i, j)): the intervals that hold both cells."""
        self._refuse_large_gram()
        index = np.arange(self.n, dtype=np.float64)
        starts, ends = np.minimum.outer(index, index) + 1, self.n - np.maximum.outer(index, index)
        return np.asarray(starts * ends)

    def row_norms(self) -> Floats:
        writable("the row norms", self.shape[0])
        lengths = np.sqrt(np.arange(1, self.n + 1, dtype=np.float64))
        return np.concatenate([lengths[: self.n - start] for start in range(self.n)])

    def column_norms(self) -> Floats:
        writable("the column norms", self.n)
        index = np.arange(self.n, dtype=np.float64)
        return np.sqrt((index + 1) * (self.n - index))

    def describe(self) -> str:
        return f"all {self.shape[0]:,} ranges of {self.n:,} cells"
