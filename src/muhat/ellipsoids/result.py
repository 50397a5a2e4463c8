"""The result of a search for the smallest ellipsoid: a body proved to contain, and a floor."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.finite import FiniteResult
from muhat.ellipsoids.verification import FUNCTION_ERROR, gamma
from muhat.errors import InvalidInput

LARGEST_MATRIX = 20_000
LARGEST_MOMENT = 2_000

NORM_ERROR = 2 * FUNCTION_ERROR
"""The relative error of `norm`: two powers, and a sum that is rounded once."""

CLOSED_FORM_ERROR = 16 * FUNCTION_ERROR
"""The relative error of a closed form: a handful of powers, norms and quotients."""


@dataclass(frozen=True, eq=False)
class SmallestEllipsoid:
    """{s : sᵀM⁻¹s ≤ 1} with M = F·Fᵀ, or M = diag(scales²) where `factor` is None.

    `scales` are the square roots of M's diagonal, of shape (d,); `factor` is F, of shape (d, k);
    k < d if the body is flat. `value` is √tr_{p/2}(M) in the weighted norm, `floor` is at most
    Γ_p of the body. `contacts` is the number of pairs of points at which the ellipsoid is held,
    None if it is not known. `shift` is where the ellipsoid is centred around a body with a free
    shift, None if that is the body's own centre. `moment`, of shape (d, d), is the second moment
    of a measure on the body, where a solver found one; `is_exact` says that M is the optimum
    itself, up to rounding.
    """

    scales: Floats
    factor: Floats | None
    value: float
    floor: float
    contacts: int | None = None
    shift: Floats | None = None
    moment: Floats | None = None
    is_exact: bool = False

    def __post_init__(self) -> None:
        # Results are shared between those who ask for the same ellipsoid.
        for array in (self.scales, self.factor, self.shift, self.moment):
            if array is not None:
                array.flags.writeable = False

    @property
    def gap(self) -> float:
        """value/floor − 1: how far, at most, the value is above the least possible."""
        if self.floor > 0:
            return self.value / self.floor - 1
        return 0.0 if self.value == 0 else math.inf

    @property
    def diagonal(self) -> Floats:
        """The diagonal of M."""
        return np.asarray(self.scales**2)

    @property
    def matrix(self) -> Floats:
        """M itself, of shape (d, d)."""
        if len(self.scales) > LARGEST_MATRIX:
            raise InvalidInput(
                f"a matrix of {len(self.scales)} × {len(self.scales)} is not built; "
                "use `diagonal` instead."
            )
        return np.diag(self.diagonal) if self.factor is None else self.factor @ self.factor.T

    @property
    def root(self) -> Floats:
        """F, of shape (d, k), built if it is diagonal."""
        return np.diag(self.scales) if self.factor is None else self.factor

    def scaled(self, size: float) -> SmallestEllipsoid:
        """The smallest ellipsoid around size·S, about the body's own centre."""
        return replace(
            self,
            scales=self.scales * size,
            factor=None if self.factor is None else self.factor * size,
            value=self.value * size,
            floor=self.floor * size,
            shift=None,
            moment=None if self.moment is None else self.moment * size**2,
        )

    def __repr__(self) -> str:
        return (
            f"SmallestEllipsoid(dim={len(self.scales)}, value={self.value:.6g}, "
            f"floor={self.floor:.6g}, gap={self.gap:.1e})"
        )


def norm(values: Floats, p: float) -> float:
    """‖values‖_p of one vector, right up to NORM_ERROR: the sum is exact but for its last bit."""
    sizes = np.abs(values)
    largest = float(sizes.max(initial=0.0))
    if largest == 0 or math.isinf(p):
        return largest
    total = math.fsum(((sizes / largest) ** p).tolist())
    return largest * (math.sqrt(total) if p == 2 else total ** (1 / p))


def with_factor(
    factor: Floats,
    floor: float,
    p: float,
    weights: Floats,
    *,
    contacts: int | None = None,
    scales: Floats | None = None,
    error: float = 0.0,
    is_exact: bool = False,
) -> SmallestEllipsoid:
    """The result for M = F·Fᵀ: its value is computed, its floor is given.

    F and the floor are right up to a relative `error`: both are moved outwards by it, and by the
    errors of the value itself, so that value ≥ Γ ≥ floor holds for the numbers returned.
    `scales`, at least the lengths of F's rows, may be given where they are known better.
    """
    if scales is None:
        lengths = np.sqrt(np.sum(factor**2, axis=1))
        scales = np.asarray(lengths * (1 + gamma(factor.shape[1] + 4)))
    outwards = 1 + error
    grown = np.asarray(scales * outwards)
    value = norm(weights * grown, p) * (1 + NORM_ERROR)
    return SmallestEllipsoid(
        grown,
        factor * outwards,
        value,
        min(value, floored(floor, error)),
        contacts,
        is_exact=is_exact,
    )


def with_scales(
    scales: Floats,
    floor: float,
    p: float,
    weights: Floats,
    *,
    contacts: int | None = None,
    error: float = 0.0,
    is_exact: bool = False,
) -> SmallestEllipsoid:
    """The result for a diagonal M, as `with_factor`."""
    grown = np.asarray(scales * (1 + error))
    value = norm(weights * grown, p) * (1 + NORM_ERROR)
    least = min(value, floored(floor, error))
    return SmallestEllipsoid(grown, None, value, least, contacts, is_exact=is_exact)


def floored(floor: float, error: float = 0.0) -> float:
    """A floor that came from `norm`, with a further relative error, rounded down."""
    return max(0.0, floor * (1 - error - NORM_ERROR))


def from_finite(result: FiniteResult, *, shifted: bool = False) -> SmallestEllipsoid:
    """The solver's result, verified there; with `shifted`, centred where the solver says."""
    scales = np.linalg.norm(result.factor, axis=1)
    moment = None
    if len(scales) <= LARGEST_MOMENT and len(result.weights):
        points = result.points
        if shifted:
            points = points - (points @ result.weights)[:, None]
        moment = (points * result.weights) @ points.T
    return SmallestEllipsoid(
        scales,
        result.factor,
        result.value,
        result.floor,
        result.contacts,
        result.shift if shifted else None,
        moment,
    )
