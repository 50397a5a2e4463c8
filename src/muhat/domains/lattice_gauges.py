"""Public descriptions of the bodies that records are moved into radially before they are rounded.

A gauge says how far out a record lies: 1 on the boundary. The kernel divides x − c by
max(gauge(x − c), 1). Privacy does not rest on it: the ball's integer check comes after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muhat import _check
from muhat.domains.norms import ball_order
from muhat.errors import InvalidInput


@dataclass(frozen=True)
class LpGauge:
    """‖z/h‖_order with 1 ≤ order ≤ ∞ and a half-width h_j > 0 a coordinate.

    >>> LpGauge(1, (2.0, 3.0)).dim
    2
    """

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
        """The number of coordinates of a record."""
        return len(self.half_widths)

    def to_dict(self) -> dict[str, Any]:
        """Floats as hexadecimal text, so that a digest of it is stable."""
        return {
            "kind": "lp",
            "order": self.order.hex(),
            "half_widths": [width.hex() for width in self.half_widths],
        }


@dataclass(frozen=True)
class SchattenGauge:
    """‖σ(Z)‖_order / radius, σ the singular values of z as a matrix of this shape in C order.

    >>> SchattenGauge(1, (2, 3), 1.5).dim
    6
    """

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
        """The number of coordinates of a record: rows · columns."""
        return self.shape[0] * self.shape[1]

    def to_dict(self) -> dict[str, Any]:
        """Integers, and floats as hexadecimal text, so that a digest of it is stable."""
        return {
            "kind": "schatten",
            "order": self.order.hex(),
            "shape": list(self.shape),
            "radius": self.radius.hex(),
        }


@dataclass(frozen=True)
class EllipsoidGauge:
    """‖W·z‖₂ for a lower triangular W: row i has i + 1 entries.

    >>> EllipsoidGauge(((2.0,), (1.0, 3.0))).dim
    2
    """

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
        """The number of coordinates of a record."""
        return len(self.whitening)

    def to_dict(self) -> dict[str, Any]:
        """Floats as hexadecimal text, so that a digest of it is stable."""
        rows = [[value.hex() for value in row] for row in self.whitening]
        return {"kind": "ellipsoid", "whitening": rows}


BlockPart = LpGauge | SchattenGauge | EllipsoidGauge


@dataclass(frozen=True)
class BlockGauge:
    """Consecutive blocks of coordinates, each moved into its own body: a product of bodies.

    Blocks of one coordinate make a box.

    >>> BlockGauge((LpGauge(2, (1.0, 1.0)), LpGauge(1, (5.0,)))).dim
    3
    """

    parts: tuple[BlockPart, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("a product of bodies has at least one part.")

    @property
    def dim(self) -> int:
        """The number of coordinates of a record."""
        return sum(part.dim for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """The parts in order."""
        return {"kind": "blocks", "parts": [part.to_dict() for part in self.parts]}


Gauge = BlockPart | BlockGauge
