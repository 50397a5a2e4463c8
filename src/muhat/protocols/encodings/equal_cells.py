"""Equal cells between two public bounds, and the cell that a number lies in.

A cell holds its lower edge and not its upper one, but for the last cell, which holds both. Edges
are the nearest floats to exact ones, and a number goes to its cell by comparisons with them alone:
what is on an edge is on the same side of it on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat.errors import InvalidInput
from muhat.privacy import as_typed
from muhat.protocols.encodings.range_cells import RangeLook

MOST_CELLS = 1 << 12

_CLOSE = 1e-6
"""Of a cell: what was meant to be an edge, but for rounding."""


@dataclass(frozen=True)
class EqualCells(RangeLook):
    """`cells` of the same width from `lower` to `upper`, which mean the decimals they print as.

    Numbers outside go to the first and the last cell, missing ones to that of the middle. As a
    *look* (`range_cells`) its number of a record is the cell.

    >>> cells = EqualCells(0.0, 1.0, 10)
    >>> cells.codes(np.array([-5.0, 0.0, 0.3, 0.31, 1.0, np.nan])).tolist()
    [0, 0, 3, 3, 9, 5]
    >>> cells.edges[3], cells.edge("low", 0.1 + 0.2)
    (np.float64(0.3), 3)
    """

    lower: float
    upper: float
    cells: int

    kind: ClassVar[str] = "cells"
    dim: ClassVar[int] = 1
    numbers: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _check.real(name, getattr(self, name)))
        if not self.lower < self.upper:
            raise InvalidInput(
                "must be below upper", parameter="lower", value=f"{self.lower:g} and {self.upper:g}"
            )
        if not math.isfinite(self.upper - self.lower):
            raise InvalidInput("lower and upper must not be further apart than the largest float.")
        cells = _check.count("cells", self.cells, least=2, most=MOST_CELLS)
        object.__setattr__(self, "cells", cells)
        if not (np.diff(self.edges) > 0).all():
            raise InvalidInput(
                "must be few enough for floats to tell their edges apart",
                parameter="cells",
                value=f"{cells} between {self.lower!r} and {self.upper!r}",
            )

    @cached_property
    def edges(self) -> Floats:
        """The edges of all cells, of shape (cells + 1,), ascending."""
        first, last = as_typed(self.lower), as_typed(self.upper)
        below, above = first.denominator, last.denominator
        start, end = first.numerator * above, last.numerator * below
        whole = below * above * self.cells
        # A quotient of integers is the float next to the exact edge.
        inner = [(start * (self.cells - i) + end * i) / whole for i in range(1, self.cells)]
        return np.array([self.lower, *inner, self.upper])

    def codes(self, numbers: Floats) -> Integers:
        """The cell of every number, of any shape."""
        cells = np.searchsorted(self.edges[1:-1], numbers, side="right")
        return np.where(np.isfinite(numbers), cells, self.cells // 2).astype(np.int64)

    def values(self, records: Floats, drawn: Integers) -> Floats:
        """The cell of every record, of shape (rows,): see `range_cells`."""
        return self.codes(records[:, 0]).astype(np.float64)

    def edge(self, name: str, number: object) -> int:
        """How many cells lie below an edge; InvalidInput with its neighbours if it is none."""
        value = _check.real(name, number)
        edges = self.edges
        place = int(np.argmin(np.abs(edges - value)))
        if abs(value - edges[place]) > _CLOSE * (self.upper - self.lower) / self.cells:
            after = int(np.searchsorted(edges, value))
            near = [f"{edges[i]:.10g}" for i in (after - 1, after) if 0 <= i <= self.cells]
            raise InvalidInput(
                f"must be an edge of the cells, {' or '.join(near)}",
                parameter=name,
                value=f"{value:g}",
                hint="Nothing is known about parts of a cell.",
            )
        return place

    def describe(self) -> str:
        """The cells as people say it."""
        return f"{self.cells:,} cells from {self.lower:g} to {self.upper:g}"
