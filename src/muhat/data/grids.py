"""Public grids: numbers into ordered cells, each by itself, and cells back into numbers.

A grid is made from public arguments. It puts a number into a cell by element-wise operations
that round the same way everywhere, and never swaps two numbers: what a search finds among the
cells holds for the records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import Plain
from muhat._words import Parameter
from muhat.errors import InvalidInput
from muhat.privacy import as_typed

Cells = NDArray[np.int64]

MOST_CELLS = 1 << 30
DEFAULT_CELLS = 1 << 20


@dataclass(frozen=True)
class UniformGrid(Plain, tag="kind", keys=("lower", "upper", "step", "cells")):
    """The numbers lower, lower + step, …, upper; every other number goes to the nearest of them.

    Numbers outside go to the ends. The bounds and the step mean the decimals they print as, so
    a step of 0.01 is a hundredth.

    >>> grid = UniformGrid(0.0, 1.0, 0.25)
    >>> grid.cells, grid.codes(np.array([-3.0, 0.3, 0.9, 7.0])).tolist(), grid.value(3)
    (5, [0, 1, 4, 4], 0.75)
    """

    kind: ClassVar[str] = "uniform"
    lower: float
    upper: float
    step: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _check.real(name, getattr(self, name)))
        if not self.lower < self.upper:
            raise InvalidInput(
                "must be below ",
                Parameter("upper"),
                parameter="lower",
                value=f"{self.lower:g} and {self.upper:g}",
            )
        if not math.isfinite(self.upper - self.lower):
            raise InvalidInput("lower and upper must not be further apart than the largest float.")
        object.__setattr__(self, "step", _check.positive("resolution", self.step))
        if self.cells > MOST_CELLS:
            raise InvalidInput(
                f"resolution {self.step:g} makes more than 2^30 steps between {self.lower:g} and "
                f"{self.upper:g}; use at least {(self.upper - self.lower) / (MOST_CELLS - 2):.3g}."
            )

    @classmethod
    def between(cls, lower: float, upper: float, step: float | None = None) -> UniformGrid:
        """The grid between two bounds; by default with the finest round step below 2^20 cells."""
        if step is not None:
            return cls(lower, upper, step)
        return cls(
            lower, upper, _round_step(_check.real("lower", lower), _check.real("upper", upper))
        )

    @cached_property
    def cells(self) -> int:
        """⌈(upper − lower)/step⌉ + 1."""
        width = as_typed(self.upper) - as_typed(self.lower)
        return math.ceil(width / as_typed(self.step)) + 1

    @property
    def middle(self) -> int:
        """The cell of the centre, where missing values go."""
        return int(self.codes(np.array([self.lower + (self.upper - self.lower) / 2]))[0])

    def codes(self, high: Floats, low: Floats | None = None) -> Cells:
        """The nearest point of the grid for every number high + low."""
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            places = high - self.lower
            if low is not None:
                places += low
            places /= self.step
            np.rint(places, out=places)
            # fmax takes 0 for what is not a number: casting that would depend on the machine.
            np.fmax(places, 0.0, out=places)
            np.fmin(places, self.cells - 1.0, out=places)
            return places.astype(np.int64)

    def value(self, cell: int) -> float:
        """lower + cell·step, at most upper."""
        exact = as_typed(self.lower) + cell * as_typed(self.step)
        return float(min(exact, as_typed(self.upper)))


@dataclass(frozen=True)
class GeometricGrid(Plain, tag="kind", keys=("smallest", "largest", "ratio", "cells")):
    """Magnitudes by ratio: cell 0 holds [0, smallest], cell i what is up to smallest·ratio^i.

    The last cell holds all that is larger. A cell stands for its upper edge, so that the value
    found is never below the magnitudes in its cell (but for those beyond the grid).

    >>> grid = GeometricGrid(smallest=1.0, largest=10.0, ratio=2.0)
    >>> grid.edges.tolist()
    [1.0, 2.0, 4.0, 8.0, 10.0]
    >>> grid.codes(np.array([0.0, 1.0, 1.5, 8.0, 9.0, 99.0])).tolist()
    [0, 0, 1, 3, 4, 4]
    """

    kind: ClassVar[str] = "geometric"
    smallest: float
    largest: float
    ratio: float

    def __post_init__(self) -> None:
        for name in ("smallest", "largest", "ratio"):
            object.__setattr__(self, name, _check.positive(name, getattr(self, name)))
        if self.smallest > self.largest:
            raise InvalidInput("must not be above largest", parameter="smallest")
        if self.ratio <= 1 + 1e-7:
            raise InvalidInput("must be well above 1", parameter="ratio", value=repr(self.ratio))

    @cached_property
    def edges(self) -> Floats:
        """The upper edge of every cell, of shape (cells,), strictly increasing."""
        edges = [self.smallest]
        while edges[-1] < self.largest:
            # One multiplication at a time: the same floats on every machine.
            edges.append(
                min(max(edges[-1] * self.ratio, math.nextafter(edges[-1], math.inf)), self.largest)
            )
        return np.array(edges)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.edges)

    def codes(self, high: Floats, low: Floats | None = None) -> Cells:
        """The cell of every magnitude, by exact comparisons with the edges."""
        magnitudes = high if low is None else high + low
        return np.searchsorted(self.edges[:-1], magnitudes, side="left").astype(np.int64)

    def value(self, cell: int) -> float:
        """The upper edge of a cell."""
        return float(self.edges[cell])


def _round_step(lower: float, upper: float) -> float:
    """The least of 1, 2, 5 times a power of ten that makes at most 2^20 cells."""
    least = (as_typed(upper) - as_typed(lower)) / (DEFAULT_CELLS - 1)
    if least <= 0:
        return 1.0  # the grid refuses the bounds
    exponent = math.floor(math.log10(least.numerator) - math.log10(least.denominator)) - 1
    powers = (Fraction(10) ** (exponent + further) for further in range(4))
    step = next(digit * power for power in powers for digit in (1, 2, 5) if digit * power >= least)
    return max(float(step), 5e-324)
