"""The box: an interval a column."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat._arrays import signs, vector
from muhat._words import Parameter
from muhat.domains.base import Domain
from muhat.domains.blocks import Block
from muhat.domains.box_lattice import BoxLattice
from muhat.domains.flat import Factors, factors_of
from muhat.domains.gauges import BlockGauge, Gauge, LpGauge
from muhat.domains.integers import Clip
from muhat.domains.vectors import Matrix, Vector, check_scale, records, short
from muhat.ellipsoids import SmallestEllipsoid, smallest_ellipsoid
from muhat.ellipsoids.combined import SIZE
from muhat.ellipsoids.symmetric_bodies import around_lp_ball
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors

Bounds = ArrayLike | Sequence[Fraction]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Box(Domain, keys=("bounds",)):
    """{x : lower_j ≤ x_j ≤ upper_j}. Records outside move to the nearest point.

    Where lower_j = upper_j the column is a constant, known without any data. `bounds` keeps the
    bounds as exact rationals, so that integers beyond 2⁵³ stay what they are.

    >>> Box([0, 16], [200_000, 90]).support([0, 1])
    90.0
    """

    kind = "box"
    clips_to_nearest = True
    by_column = True
    has_squares = True
    lower: Vector
    upper: Vector
    center: Vector
    half_widths: Vector
    bounds: tuple[tuple[Fraction, Fraction], ...]

    def __init__(self, lower: Bounds, upper: Bounds) -> None:
        low = vector("lower", lower)
        high = vector("upper", upper, dim=low.size)
        exact = tuple(zip(_exact(lower), _exact(upper), strict=True))
        for j, (least, most) in enumerate(exact):
            if least > most:
                raise InvalidInput(
                    *(Parameter("lower"), " must not be above ", Parameter("upper")),
                    f" in any coordinate; coordinate {j} has {float(least):g} and {float(most):g}. "
                    "Are they swapped?",
                )
        self._set(
            lower=low,
            upper=high,
            bounds=exact,
            center=np.array([float((least + most) / 2) for least, most in exact]),
            half_widths=np.array([float((most - least) / 2) for least, most in exact]),
        )
        check_scale(self.half_widths[[least < most for least, most in exact]])

    @property
    def is_flat(self) -> bool:
        """Whether some columns are constants."""
        return not self.half_widths.all()

    def only(self, columns: slice | NDArray[np.bool_]) -> Box:
        """The box of some of its columns."""
        chosen = [self.bounds[j] for j in np.arange(self.dim)[columns]]
        return Box([low for low, _ in chosen], [high for _, high in chosen])

    def factors(self) -> Factors:
        return factors_of(self, self.only) if self.is_flat else super().factors()

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        return self.lower, self.upper

    def reach(self, directions: Matrix) -> Vector:
        return np.asarray(np.abs(directions) @ self.half_widths)

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        return np.where(theta > 0, self.upper, self.lower)

    def support(self, direction: ArrayLike) -> float:
        theta = vector("direction", direction, dim=self.dim)
        return float(np.sum(np.where(theta > 0, theta * self.upper, theta * self.lower)))

    def clip(self, points: ArrayLike) -> Matrix:
        return np.clip(records(points, self.center), self.lower, self.upper)

    def farthest(self, weights: Vector) -> float:
        return float(np.linalg.norm(weights * self.half_widths))

    def vertices(self) -> Matrix | None:
        corners = signs(self.dim, self.dim)
        return None if corners is None else np.where(corners > 0, self.upper, self.lower)

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        return around_lp_ball(self.half_widths, math.inf, p, weights).scaled(SIZE[body])

    def block(self, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        lower, upper = zip(*self.bounds, strict=True)
        axes = smallest_ellipsoid(self, p, "shifted", weights=weights).scales
        lattice = BoxLattice.around(lower, upper)
        return Block(lattice, axes, np.array(lattice.center))

    def block_from_zero(self, p: float, weights: Vector) -> Block:
        block = self.block(p, weights, Neighbors.ADD_REMOVE)
        if self.is_centered:
            return block
        axes = smallest_ellipsoid(self.both_sides(), p, "shifted", weights=weights).scales
        return replace(block, axes=axes, from_zero=True)

    def both_sides(self) -> Domain:
        if self.is_flat:
            return reduce(operator.mul, [part.both_sides() for part, _ in self.factors()])
        reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
        return Box(-reach, reach)

    @property
    def has_l1(self) -> bool:
        return not self.is_flat

    def l1_block(self, block: Block, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        return replace(block, axes=self.laplace_scales(p, weights))

    def laplace_scales(self, p: float, weights: Vector) -> Vector:
        """b_j ∝ w_j^{1/(p+1)} in the weighted sides w: the best of independent Laplace noise."""
        sides = weights * self.half_widths
        power = 0.0 if np.isinf(p) else 1 / (p + 1)
        return np.asarray((sides / sides.max()) ** power / weights)

    def inner_axes(self) -> Vector | None:
        return None if self.is_flat else self.half_widths

    def log_half_volume(self) -> float | None:
        if self.is_flat:
            return None
        return float(np.sum(np.log(self.half_widths) - 1e-13)) + self.dim * math.log(2)

    def exact_gauge(self) -> Gauge | None:
        if self.is_flat:
            return None
        return BlockGauge(tuple(LpGauge(1, (width,)) for width in self.half_widths.tolist()))

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        if offset is not None or not self.is_flat:
            return super().clips(offset)
        return tuple(clip for part, _ in self.factors() for clip in part.clips())

    @classmethod
    def built(cls, bounds: tuple[tuple[Fraction, Fraction], ...]) -> Self:
        lower, upper = zip(*bounds, strict=True)
        return cls(lower, upper)

    def __repr__(self) -> str:
        return f"Box(lower={short(self.lower)}, upper={short(self.upper)})"


def _exact(values: Bounds) -> tuple[Fraction, ...]:
    """The numbers as rationals; a float keeps its exact binary value."""
    items: Iterable[Any] = values.tolist() if isinstance(values, np.ndarray) else values  # type: ignore[assignment]
    try:
        return tuple(
            Fraction(item) if isinstance(item, int | Fraction) else Fraction(float(item))
            for item in items
        )
    except TypeError:
        return (Fraction(values) if isinstance(values, int) else Fraction(float(values)),)  # type: ignore[arg-type]
