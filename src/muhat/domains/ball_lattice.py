"""The integers of a ball: of records as they are, or in the coordinates of an ellipsoid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from muhat import _check
from muhat._integers import power_of_two, whole_root_up
from muhat._plain import Key
from muhat.domains.ball_kernel import BallKernel
from muhat.domains.ball_sums import BallSums
from muhat.domains.box_kernel import BITS
from muhat.domains.gauges import Gauge
from muhat.domains.integers import Lattice, SumLattice
from muhat.errors import InvalidInput


@dataclass(frozen=True)
class BallLattice(
    SumLattice,
    keys=(
        "exponent",
        "radius",
        "clip_radius",
        "center",
        "whitening",
        Key("axes", optional=True),
        Key("gauge", optional=True),
    ),
):
    """Integer vectors q with Σ q_j² ≤ radius², standing for center + q·2^exponent.

    `clip_radius` is the float radius that records are clipped to, `radius` the integer one that
    contains every record's integers, rounding included.

    With a `gauge` a record first moves into a body about the centre, along its own ray. With
    `whitening` W the integers live in the coordinates y = W(x − center) instead: W is lower
    triangular (row i has i + 1 entries) or dense of shape (r, d), and then there are r sums of
    records of d coordinates. A diagonal W is kept as `axes`, its diagonal.

    >>> BallLattice.around([0.0, 0.0], 1.0).radius == 2**44 + 2
    True
    >>> flat = BallLattice.mapped([0.0, 0.0, 0.0], [[1, 0, -1], [0, 2, 0]])
    >>> flat.record_dim, flat.dim
    (3, 2)
    """

    kind = "ball"
    center: tuple[float, ...]
    clip_radius: float
    whitening: tuple[tuple[float, ...], ...] | None = None
    axes: tuple[float, ...] | None = None
    gauge: Gauge | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _floats("center", self.center))
        object.__setattr__(self, "clip_radius", _check.positive("radius", self.clip_radius))
        axes = None if self.axes is None else _floats("axes", self.axes)
        whitening = None if self.whitening is None else _rows(self.whitening, self.record_dim)
        if axes is not None and whitening is not None:
            raise InvalidInput("a lattice has a whitening or axes, not both.")
        if whitening is not None and _is_diagonal(whitening):
            axes, whitening = tuple(row[-1] for row in whitening), None
        if axes is not None and len(axes) != self.record_dim:
            raise InvalidInput("axes must have one number a coordinate.")
        if self.gauge is not None and self.gauge.dim != self.record_dim:
            raise InvalidInput("the gauge must have as many coordinates as the centre.")
        object.__setattr__(self, "whitening", whitening)
        object.__setattr__(self, "axes", axes)

    @classmethod
    def around(
        cls, center: Sequence[float], radius: float, gauge: Gauge | None = None
    ) -> BallLattice:
        """The lattice of the ball of this centre and radius (any positive float)."""
        return cls(tuple(center), radius, gauge=gauge)

    @classmethod
    def whitened(
        cls,
        center: Sequence[float],
        inverse_factor: Sequence[Sequence[float]],
        gauge: Gauge | None = None,
    ) -> BallLattice:
        """The lattice of {x : ‖W(x − center)‖ ≤ 1} for a lower triangular W.

        Row i of W is read up to its diagonal; a non-zero entry above it is refused.
        """
        rows, dim = [tuple(row) for row in inverse_factor], len(center)
        if len(rows) != dim:
            raise InvalidInput("inverse_factor must have one row a coordinate.")
        for index, row in enumerate(rows):
            if len(row) not in (index + 1, dim) or any(row[index + 1 :]):
                raise InvalidInput("inverse_factor must be square and lower triangular.")
            if row[index] == 0:
                raise InvalidInput("inverse_factor must have no zero on its diagonal.")
        triangle = tuple(row[: index + 1] for index, row in enumerate(rows))
        return cls(tuple(center), 1.0, triangle, gauge=gauge)

    @classmethod
    def scaled(
        cls, center: Sequence[float], axes: Sequence[float], gauge: Gauge | None = None
    ) -> BallLattice:
        """The lattice of {x : ‖axes∘(x − center)‖ ≤ 1}: a diagonal W, one number a coordinate."""
        return cls(tuple(center), 1.0, axes=tuple(axes), gauge=gauge)

    @classmethod
    def mapped(
        cls,
        center: Sequence[float],
        matrix: Sequence[Sequence[float]],
        gauge: Gauge | None = None,
    ) -> BallLattice:
        """The lattice of {y = W(x − center) : ‖y‖ ≤ 1} for any W of shape (r, d)."""
        return cls(tuple(center), 1.0, tuple(tuple(row) for row in matrix), gauge=gauge)

    @property
    def dim(self) -> int:
        return self.record_dim if self.whitening is None else len(self.whitening)

    @property
    def record_dim(self) -> int:
        return len(self.center)

    @property
    def exponent(self) -> int:
        """The grid is 2^exponent, which puts clip_radius/2^exponent in [2^44, 2^45)."""
        return math.frexp(self.clip_radius)[1] - BITS

    @property
    def axis_radius(self) -> float | None:
        return self.clip_radius if self.whitening is None else None

    @property
    def grid(self) -> Fraction:
        """The step 2^exponent."""
        return power_of_two(self.exponent)

    @property
    def radius(self) -> int:
        """R = ⌈(r/g)(1 + (2d + 12)u) + √d/2⌉ + 1 with u = 2⁻⁵³: no honest record lies outside.

        docs/proofs/integers.md shows why.
        """
        steps = Fraction(self.clip_radius) / self.grid
        inflated = steps * (1 + Fraction(2 * self.dim + 12, 1 << 53))
        return math.ceil(inflated + _root_upwards(self.dim) / 2) + 1

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return (self.grid,)

    def largest(self, multipliers: Sequence[int]) -> int:
        return multipliers[0] * self.radius

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        radius = multipliers[0] * self.radius * (2 if replaced else 1)
        # Of all s with ‖s‖₂ ≤ radius: ‖s‖₁ ≤ √d·radius and ‖s‖_∞ ≤ radius.
        return whole_root_up(self.dim * radius**2) if norm == 1 else radius

    def kernel(self, *, squares: bool = False) -> BallKernel:
        return BallKernel(
            self.center,
            self.clip_radius,
            self.exponent,
            self.radius,
            whitening=self.whitening,
            axes=self.axes,
            gauge=self.gauge,
            squares=squares,
        )

    def tiled_sums(self) -> BallSums | None:
        plain = self.gauge is None and self.whitening is None
        if not plain or not BallSums.is_for(self.dim, self.clip_radius):
            return None
        return BallSums(self.center, self.clip_radius, self.exponent, self.radius, self.axes)


@dataclass(frozen=True)
class SquaredBallLattice(Lattice):
    """Σ q_j of every coordinate, then Σ s_j, with s_j the integer nearest to q_j²/2^45.

    As in `box_lattice.py`, up to one rounding of q_j² to a float. The ball's coordinates are
    those of its records up to their scale, so that squares are those of single columns.

    >>> SquaredBallLattice(BallLattice.around([0.0, 0.0], 1.0)).dim
    4
    """

    kind = "squared-ball"
    ball: BallLattice

    def __post_init__(self) -> None:
        if self.ball.whitening is not None:
            raise InvalidInput("squares of a ball are those of its columns: no whitening matrix.")

    @property
    def dim(self) -> int:
        return 2 * self.ball.dim

    @property
    def record_dim(self) -> int:
        return self.ball.record_dim

    @property
    def width(self) -> int:
        return self.record_dim

    def kernel(self) -> BallKernel:
        return self.ball.kernel(squares=True)


def _root_upwards(dim: int) -> Fraction:
    """√dim, exact for squares, else from above within 2^-32."""
    shifted = dim << 64
    root = math.isqrt(shifted)
    return Fraction(root + (root * root != shifted), 1 << 32)


def _floats(name: str, values: Iterable[object]) -> tuple[float, ...]:
    numbers_ = tuple(_check.real(name, value) for value in values)
    if not numbers_:
        raise InvalidInput(f"{name} must have at least one coordinate.")
    return numbers_


def _rows(rows: Sequence[Sequence[float]], columns: int) -> tuple[tuple[float, ...], ...]:
    """A dense matrix, or a lower triangle; a square one with nothing above becomes a triangle."""
    made = tuple(_floats("whitening", row) for row in rows)
    lengths = [len(row) for row in made]
    triangle = list(range(1, columns + 1))
    if not made or lengths not in (triangle, [columns] * len(made)):
        raise InvalidInput("whitening must have one column a coordinate, or be a lower triangle.")
    if len(made) == columns and not any(any(row[i + 1 :]) for i, row in enumerate(made)):
        return tuple(row[: i + 1] for i, row in enumerate(made))
    return made


def _is_diagonal(rows: tuple[tuple[float, ...], ...]) -> bool:
    """Whether a matrix that `_rows` made is a triangle with nothing but its diagonal."""
    return all(len(row) == i + 1 and not any(row[:-1]) for i, row in enumerate(rows))
