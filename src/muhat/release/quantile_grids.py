"""What a release of quantiles says about the grids that its values lie on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from muhat import _check
from muhat.data.grids import DEFAULT_CELLS, GeometricGrid, UniformGrid
from muhat.errors import InvalidInput


@dataclass(frozen=True)
class RelativeGrid(GeometricGrid, tag="kind"):
    """Values a share apart, from `smallest` to `largest`; records go up to the next of them.

    >>> grid = RelativeGrid.between(1.0, 1e6, 0.01)
    >>> grid.cells, round(grid.value(100), 4)
    (1390, 2.7048)
    """

    kind: ClassVar[str] = "geometric"

    @classmethod
    def between(cls, lower: float, upper: float, relative: float) -> RelativeGrid:
        """The grid between two bounds above 0, with this share between its values."""
        low, high = _check.real("lower", lower), _check.real("upper", upper)
        if not 0 < low < high:
            raise InvalidInput(
                "a relative step needs bounds with 0 < lower < upper; "
                f"got {low:g} and {high:g}. Use resolution for numbers around 0."
            )
        return cls(low, high, 1 + _check.positive("relative", relative))

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = (math.log(self.largest) - math.log(self.smallest)) / math.log(self.ratio)
        if not steps < DEFAULT_CELLS:
            raise InvalidInput(
                f"a relative step of {self.ratio - 1:.3g} makes more than 2^20 steps between "
                f"{self.smallest:g} and {self.largest:g}."
            )

    @property
    def middle(self) -> int:
        """The cell of the middle of the bounds, where missing values go."""
        middle = self.smallest + (self.largest - self.smallest) / 2
        return int(self.codes(np.array([middle]))[0])


AnyGrid = UniformGrid | RelativeGrid


def span(grid: AnyGrid, cell: int) -> tuple[float, float]:
    """The clipped records of a cell lie between these numbers."""
    if isinstance(grid, RelativeGrid):
        return grid.value(max(cell - 1, 0)), grid.value(cell)
    value, half = grid.value(cell), grid.step / 2
    return max(value - half, grid.lower), min(value + half, grid.upper)


def step(grid: AnyGrid) -> float:
    """The step between values: a number, or a share of the value on a geometric grid."""
    return grid.ratio - 1 if isinstance(grid, RelativeGrid) else grid.step


def words(grid: AnyGrid) -> str:
    """A grid as people say it."""
    if isinstance(grid, RelativeGrid):
        ends, size = (grid.smallest, grid.largest), f"{100 * step(grid):.3g} %"
    else:
        ends, size = (grid.lower, grid.upper), f"{grid.step:g}"
    return f"{grid.cells:,} steps of {size} from {ends[0]:g} to {ends[1]:g}"


def shown(grid: AnyGrid, value: float) -> str:
    """A value with the digits that its grid can tell apart."""
    return f"{value:.6g}" if isinstance(grid, RelativeGrid) else f"{value:.10g}"


def read_grid(fields: dict[str, Any]) -> AnyGrid:
    """The grid that `to_dict` described."""
    if fields["kind"] == "geometric":
        return RelativeGrid(fields["smallest"], fields["largest"], fields["ratio"])
    if fields["kind"] == "uniform":
        return UniformGrid(fields["lower"], fields["upper"], fields["step"])
    raise InvalidInput(f"a grid of the kind {fields['kind']!r:.40} is not known.")
