"""Public descriptions of the bodies that records are moved into radially before they are rounded.

A gauge says how far out a record lies: 1 on the boundary. The kernel divides x − c by
max(gauge(x − c), 1). Privacy does not rest on it: the ball's integer check comes after.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from muhat import _check
from muhat._plain import Plain
from muhat.domains.integers import ClipFunction
from muhat.domains.norms import ball_order
from muhat.domains.vectors import LARGEST_OFFSET
from muhat.errors import InvalidInput
from muhat.records.columns import Column, FloatArray
from muhat.records.exact import read
from muhat.records.norms import chunks, norms, singular_values, total

GaugeFunction = Callable[[Sequence[FloatArray]], FloatArray]


class Gauge(Plain, ABC, tag="kind", exact=True):
    """How far out a record lies."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of coordinates of a record."""

    @property
    @abstractmethod
    def parts(self) -> tuple[BlockPart, ...]:
        """The gauges of consecutive blocks of coordinates: itself, if there is one block."""

    def functions(self, scale: float) -> list[tuple[slice, GaugeFunction]]:
        """Blocks of coordinates, and the gauge of each, as `BlockPart.function` says."""
        functions, start = [], 0
        for part in self.parts:
            functions.append((slice(start, start + part.dim), part.function(scale)))
            start += part.dim
        return functions


class BlockPart(Gauge):
    """The gauge of one body."""

    @property
    def parts(self) -> tuple[BlockPart, ...]:
        return (self,)

    @abstractmethod
    def function(self, scale: float) -> GaugeFunction:
        """The gauge of scale·z from the coordinates of scale·z: one array each, an entry a record.

        Up to 1 it may be an upper bound, at most 2^10 times too large: records inside are not
        moved. Not-a-number and infinity are possible answers for records that are not finite, or
        huge.
        """


@dataclass(frozen=True)
class LpGauge(BlockPart):
    """‖z/h‖_order with 1 ≤ order ≤ ∞ and a half-width h_j > 0 a coordinate.

    >>> LpGauge(1, (2.0, 3.0)).dim
    2
    """

    kind = "lp"
    order: float
    half_widths: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", ball_order(self.order))
        widths = tuple(_check.positive("half_widths", width) for width in self.half_widths)
        if not widths:
            raise InvalidInput("half_widths must have at least one coordinate.")
        object.__setattr__(self, "half_widths", widths)

    @property
    def dim(self) -> int:
        return len(self.half_widths)

    def function(self, scale: float) -> GaugeFunction:
        widths = [width * scale for width in self.half_widths]

        def function(moved: Sequence[FloatArray]) -> FloatArray:
            result = np.empty(len(moved[0]))
            for part in chunks(len(result), self.dim):
                pairs = zip(moved, widths, strict=True)
                result[part] = norms([values[part] / width for values, width in pairs], self.order)
            return result

        return function


@dataclass(frozen=True)
class SchattenGauge(BlockPart):
    """‖σ(Z)‖_order / radius, σ the singular values of z as a matrix of this shape in C order.

    >>> SchattenGauge(1, (2, 3), 1.5).dim
    6
    """

    kind = "schatten"
    order: float
    shape: tuple[int, int]
    radius: float

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple | list) or len(self.shape) != 2:
            raise InvalidInput(f"shape must be (rows, columns); got {self.shape!r:.40}.")
        object.__setattr__(self, "order", ball_order(self.order))
        sides = tuple(_check.count("shape", side) for side in self.shape)
        object.__setattr__(self, "shape", sides)
        object.__setattr__(self, "radius", _check.positive("radius", self.radius))

    @property
    def dim(self) -> int:
        return self.shape[0] * self.shape[1]

    def function(self, scale: float) -> GaugeFunction:
        radius = self.radius * scale
        # ‖σ‖_p ≤ ‖σ‖_2 for p ≥ 2, and ‖σ‖_p ≤ ‖σ‖_1 ≤ √k·‖σ‖_2 for k singular values.
        growth = 1.0 if self.order >= 2 else math.sqrt(min(self.shape))

        def function(moved: Sequence[FloatArray]) -> FloatArray:
            result = np.empty(len(moved[0]))
            for part in chunks(len(result), self.dim):
                result[part] = norms([values[part] for values in moved], 2) / radius
            if self.order == 2:
                return result
            result *= growth
            # Records that are inside by this bound stay where they are: no more need be known.
            unsure = np.flatnonzero(~(result <= 1.0))
            for part in chunks(len(unsure), self.dim):
                rows = unsure[part]
                sizes = singular_values([values[rows] for values in moved], self.shape)
                result[rows] = norms(sizes, self.order) / radius
            return result

        return function


@dataclass(frozen=True)
class EllipsoidGauge(BlockPart):
    """‖W·z‖₂ for a lower triangular W: row i has i + 1 entries.

    >>> EllipsoidGauge(((2.0,), (1.0, 3.0))).dim
    2
    """

    kind = "ellipsoid"
    whitening: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        rows = tuple(
            tuple(_check.real("whitening", value) for value in row) for row in self.whitening
        )
        if not rows or any(len(row) != index + 1 for index, row in enumerate(rows)):
            raise InvalidInput("whitening must be a lower triangle: row i has i + 1 entries.")
        object.__setattr__(self, "whitening", rows)

    @property
    def dim(self) -> int:
        return len(self.whitening)

    def function(self, scale: float) -> GaugeFunction:
        return _mapped_norm(self.whitening, scale, 2)


@dataclass(frozen=True)
class FacetGauge(BlockPart):
    """max |⟨n, z⟩| over rows n: a body between pairs of parallel facets, {z : |⟨n, z⟩| ≤ 1}.

    >>> FacetGauge(((1.0, 0.0), (0.5, 0.5))).dim
    2
    """

    kind = "facets"
    normals: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        rows = tuple(tuple(_check.real("normals", value) for value in row) for row in self.normals)
        if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
            raise InvalidInput("normals must be rows of the same number of entries.")
        object.__setattr__(self, "normals", rows)

    @property
    def dim(self) -> int:
        return len(self.normals[0])

    def function(self, scale: float) -> GaugeFunction:
        return _mapped_norm(self.normals, scale, math.inf)


def _mapped_norm(matrix: Sequence[Sequence[float]], scale: float, order: float) -> GaugeFunction:
    """‖T·z‖_order from scale·z; a row of T may end early, with zeros."""
    rows = [[weight / scale for weight in row] for row in matrix]

    def function(moved: Sequence[FloatArray]) -> FloatArray:
        result = np.empty(len(moved[0]))
        for part in chunks(len(result), max(len(moved), len(rows))):
            some = [values[part] for values in moved]
            mapped = [
                total(values * weight for values, weight in zip(some, row, strict=False))
                for row in rows
            ]
            result[part] = norms(mapped, order)
        return result

    return function


@dataclass(frozen=True)
class BlockGauge(Gauge):
    """Consecutive blocks of coordinates, each moved into its own body: a product of bodies.

    Blocks of one coordinate make a box.

    >>> BlockGauge((LpGauge(2, (1.0, 1.0)), LpGauge(1, (5.0,)))).dim
    3
    """

    kind = "blocks"
    blocks: tuple[BlockPart, ...]

    def __post_init__(self) -> None:
        if not self.blocks:
            raise InvalidInput("a product of bodies has at least one part.")

    @property
    def parts(self) -> tuple[BlockPart, ...]:
        return self.blocks

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.blocks)


@dataclass(frozen=True)
class GaugeClip(Plain, keys=("kind", "center", "gauge"), exact=True):
    """Along the ray from the centre: c + z/max(gauge(z), 1) with z = x − c, block by block."""

    kind = "gauge"
    center: tuple[float, ...]
    gauge: Gauge

    @property
    def record_dim(self) -> int:
        """The number of columns it reads."""
        return len(self.center)

    @property
    def clipped_dim(self) -> int:
        """The number of coordinates it gives."""
        return len(self.center)

    def clip_function(self) -> ClipFunction:
        """What moves blocks of records."""
        functions = self.gauge.functions(1.0)

        def function(columns: Sequence[Column]) -> list[FloatArray]:
            moved = []
            for column, center in zip(columns, self.center, strict=True):
                # Halves, because x − c itself can overflow.
                moved.append(read(column, center) * 0.5 - center * 0.5)
            clipped: list[FloatArray] = []
            for block, gauge in functions:
                far = np.maximum(norms(moved[block], np.inf), LARGEST_OFFSET)
                near = [2.0 * (values * (LARGEST_OFFSET / far)) for values in moved[block]]
                shrink = np.maximum(gauge(near), 1.0)
                for values, center in zip(near, self.center[block], strict=True):
                    clipped.append(center + values / shrink)
            return clipped

        return function
