"""The box: an interval a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat.domains.base import Domain, Vector, check_scale, rows, short, vector
from muhat.errors import InvalidInput

Bounds = ArrayLike | Sequence[Fraction]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Box(Domain):
    """{x : lower_j ≤ x_j ≤ upper_j}.

    `bounds` keeps the bounds as exact rationals, so that integers beyond 2⁵³ stay what they are.

    >>> Box([0, 16], [200_000, 90]).support([0, 1])
    90.0
    """

    lower: Vector
    upper: Vector
    center: Vector
    bounds: tuple[tuple[Fraction, Fraction], ...]

    def __init__(self, lower: Bounds, upper: Bounds) -> None:
        low = vector("lower", lower)
        high = vector("upper", upper, dim=low.size)
        exact = tuple(zip(_exact(lower), _exact(upper), strict=True))
        for j, (least, most) in enumerate(exact):
            if least >= most:
                raise InvalidInput(
                    f"lower must be below upper in every coordinate; coordinate {j} has "
                    f"lower={float(least):g} and upper={float(most):g}. "
                    + ("Are they swapped?" if least > most else "A constant needs no release.")
                )
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "bounds", exact)
        center = np.array([float((least + most) / 2) for least, most in exact])
        center.flags.writeable = False
        object.__setattr__(self, "center", center)
        check_scale(self.half_widths)

    @property
    def half_widths(self) -> Vector:
        return np.array([float((most - least) / 2) for least, most in self.bounds])

    def support(self, direction: ArrayLike) -> float:
        theta = vector("direction", direction, dim=self.dim)
        return float(np.sum(np.where(theta > 0, theta * self.upper, theta * self.lower)))

    def clip(self, points: ArrayLike) -> NDArray[np.float64]:
        return np.clip(rows(points, self.dim), self.lower, self.upper)

    def farthest(self, weights: Vector) -> float:
        return float(np.linalg.norm(weights * self.half_widths))

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "box", "bounds": [[str(low), str(high)] for low, high in self.bounds]}

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
