"""Every cell of the histogram by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.base import Workload
from muhat.workloads.cells import size, sizes, writable


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Identity(Workload):
    """The histogram itself, of n cells or of a shape.

    >>> Identity((2, 3)).shape
    (6, 6)
    """

    kind = "identity"
    cells: tuple[int, ...]
    shape: tuple[int, int] = field(init=False)

    def __init__(self, cells: int | tuple[int, ...]) -> None:
        shape = sizes("cells", cells) if isinstance(cells, tuple | list) else (size("n", cells),)
        self._set(cells=shape, shape=(math.prod(shape),) * 2)

    def apply(self, x: Floats) -> Floats:
        return np.array(x, dtype=np.float64)

    def transposed(self, y: Floats) -> Floats:
        return np.array(y, dtype=np.float64)

    def gram(self) -> Floats:
        self._refuse_large_gram()
        return np.eye(self.shape[1])

    def row_norms(self) -> Floats:
        writable("the row norms", self.shape[0])
        return np.ones(self.shape[0])

    def column_norms(self) -> Floats:
        writable("the column norms", self.shape[1])
        return np.ones(self.shape[1])

    def describe(self) -> str:
        return f"a histogram of {self.shape[1]:,} cells"
