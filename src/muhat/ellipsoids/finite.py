"""The smallest ellipsoid around a finite set, an oracle's body, or differences of points.

    Γ_p(S)² = min tr_{p/2}(M)   over M with sᵀM⁻¹s ≤ 1 for all s in S

`value` is √tr_{p/2} of an M that is proved to contain S, `floor` is proved to be at most Γ_p(S);
both hold for the floats given, rounding included (`verification`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat.ellipsoids.generation import (
    GeneratedBody,
    GeneratedOutcome,
    smallest_around,
    weighted_slip,
)
from muhat.ellipsoids.pairs import Differences
from muhat.ellipsoids.point_sets import PointSet
from muhat.ellipsoids.spans import Array, Indices
from muhat.ellipsoids.threads import one_thread
from muhat.ellipsoids.verification import dual_floor
from muhat.errors import InvalidInput

LEAST_TOLERANCE = 1e-12
LEAST_SIZE, LARGEST_SIZE = 1e-150, 1e150
NEGLIGIBLE = (1e-5, 1e-7, 1e-9, 1e-11, 0.0)
LARGEST_ELIMINATION = 1500
"""Points and moments beyond which fewer points are not worth the time."""


@dataclass(frozen=True, eq=False)
class FiniteResult:
    """{s : ‖y‖ ≤ 1, s = F·y} ⊇ S, with a certificate.

    - `factor` F (d, r), r the rank of S; `rows` (r,) are coordinates that decide the others on
      the span of S. F[rows] is lower triangular, ‖F[rows]⁻¹(s − shift)[rows]‖ ≤ 1 is proved for
      every s, and the other rows of F are the linear extension.
    - `value` ≥ Γ_p(S) ≥ `floor`, weights of the coordinates included.
    - `active` labels the points that carry the dual weights `weights` (k,): indices (k,) of
      columns, pairs (k, 2) for differences; `points` (d, k) are those points themselves, and
      `diagonal` (d,) is D of the dual. Their dual value is `floor`.
    - `converged`: whether the gap asked for was reached.
    """

    factor: Array
    rows: Indices
    value: float
    floor: float
    weights: Array
    active: Indices
    points: Array
    diagonal: Array
    iterations: int
    converged: bool
    shift: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def gap(self) -> float:
        """value/floor − 1: how far, at most, the value is above the least possible."""
        if self.value == 0:
            return 0.0
        return self.value / self.floor - 1 if self.floor > 0 else np.inf

    @property
    def contacts(self) -> int:
        """N*: the number of points (pairs) that carry the dual."""
        return len(self.weights)

    def __repr__(self) -> str:
        return (
            f"FiniteResult(dim={len(self.factor)}, rank={self.factor.shape[1]}, "
            f"value={self.value:.6g}, floor={self.floor:.6g}, gap={self.gap:.1e}, "
            f"contacts={self.contacts}, converged={self.converged})"
        )


def around_columns(
    columns: ArrayLike, p: float = 2, tol: float = 1e-9, *, weights: ArrayLike | None = None
) -> FiniteResult:
    """The smallest ellipsoid around conv{±columns}; columns of shape (d, N).

    Γ_p of the columns of a workload matrix is its factorisation norm γ_(p).

    >>> result = around_columns([[1, 0], [1, 1]])
    >>> f"{result.value:.8f}"  # the golden ratio
    '1.61803399'
    """
    matrix, scale = _points("columns", columns)
    return around_body(PointSet(matrix), p, tol, weights, scale)


def around_shifted(
    points: ArrayLike, p: float = 2, tol: float = 1e-9, *, weights: ArrayLike | None = None
) -> FiniteResult:
    """The papers' Γ_p(K) of K = conv(points), (d, N): the ellipsoid may be centred anywhere.

    >>> result = around_shifted([[0, 4], [0, 3]])
    >>> f"{result.value:.8f}", result.shift.round(6).tolist()
    ('2.50000000', [2.0, 1.5])
    """
    matrix, scale = _points("points", points)
    return around_body(PointSet(matrix, shifted=True), p, tol, weights, scale)


def around_differences(
    points: ArrayLike, p: float = 2, tol: float = 1e-9, *, weights: ArrayLike | None = None
) -> FiniteResult:
    """The smallest ellipsoid around {x_i − x_j} of points (d, N); pairs are never all formed.

    >>> result = around_differences(np.eye(5))
    >>> f"{result.value:.8f}"  # √(2(d − 1))
    '2.82842712'
    """
    matrix, scale = _points("points", points)
    return around_body(Differences(matrix), p, tol, weights, scale)


def around_body(
    body: GeneratedBody, p: float, tol: float, weights: ArrayLike | None, scale: float
) -> FiniteResult:
    """The smallest ellipsoid around scale·(a body that can be searched)."""
    p, tol = _check.norm_order(p), check_tolerance(tol)
    omega, unit = coordinate_weights(weights, body.span.dim)
    with one_thread(), np.errstate(all="ignore"):
        outcome = smallest_around(body, p, tol, omega) if body.span.rank else None
        return finish(body, outcome, p, tol, omega, scale, unit)


def finish(
    body: GeneratedBody,
    outcome: GeneratedOutcome | None,
    p: float,
    tol: float,
    omega: Array,
    scale: float,
    unit: float,
) -> FiniteResult:
    """Prune the support if that costs nothing, and undo the scalings by powers of two."""
    if outcome is None:
        return _nothing(body, omega, scale)
    points, weights, floor = outcome.points, outcome.weights, outcome.floor
    least = min(floor * (1 - 0.2 * tol), outcome.value)
    if outcome.converged:
        least = max(least, outcome.value / (1 + tol))
    diagonal = outcome.diagonal
    for negligible in NEGLIGIBLE:
        slim = few_points(
            points[body.span.rows],
            weights,
            body.span.rank,
            negligible=negligible,
            shifted=body.shifted,
        )
        # What is left of coordinates that do not matter would need points of their own.
        matter = np.where(diagonal**2 > negligible * diagonal.max() ** 2, diagonal, 0.0)
        slim_floor = dual_floor(
            omega[:, None] * points,
            slim,
            matter,
            p,
            shifted=body.shifted,
            roundings=body.roundings + 1,
            slip=weighted_slip(body, omega),
        )
        if slim_floor >= least:
            weights, diagonal, floor = slim, matter, min(slim_floor, outcome.value)
            break
    used = np.flatnonzero(weights > 0)
    return FiniteResult(
        factor=outcome.factor * scale,
        rows=body.span.rows,
        value=outcome.value * scale * unit,
        floor=floor * scale * unit,
        weights=weights[used] / weights[used].sum(),
        active=outcome.labels[used],
        points=points[:, used] * scale,
        diagonal=diagonal,
        iterations=outcome.iterations,
        converged=bool(outcome.converged),
        shift=outcome.shift * scale,
    )


def _nothing(body: GeneratedBody, omega: Array, scale: float) -> FiniteResult:
    """A singleton, or zero alone: no ellipsoid is needed."""
    dim = len(omega)
    shift = body.half_widths()[0] * scale if body.shifted else np.zeros(dim)
    none = np.zeros(0)
    return FiniteResult(
        factor=np.zeros((dim, 0)),
        rows=np.zeros(0, np.intp),
        value=0.0,
        floor=0.0,
        weights=none,
        active=np.zeros(0, np.intp),
        points=np.zeros((dim, 0)),
        diagonal=np.zeros(dim),
        iterations=0,
        converged=True,
        shift=shift,
    )


def check_tolerance(tol: object) -> float:
    """A gap that floats can prove, or InvalidInput."""
    number = _check.positive("tol", tol)
    if number <= LEAST_TOLERANCE:
        raise InvalidInput(
            f"must be greater than {LEAST_TOLERANCE:g}, less cannot be proved in floats",
            parameter="tol",
            value=f"{number:g}",
        )
    return number


def finite_matrix(name: str, values: ArrayLike) -> Array:
    """A finite matrix with at least one row and one column, or InvalidInput."""
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("must be a matrix of numbers", parameter=name) from None
    if matrix.ndim != 2 or not matrix.size:
        raise InvalidInput(
            "must have shape (d, N) with d and N of at least 1",
            parameter=name,
            value=str(matrix.shape),
        )
    if not np.isfinite(matrix).all():
        raise InvalidInput("must be finite; there is a NaN or an infinity", parameter=name)
    largest = float(np.abs(matrix).max())
    if largest > 0 and not LEAST_SIZE <= largest <= LARGEST_SIZE:
        raise InvalidInput(
            f"must be of a size from {LEAST_SIZE:g} to {LARGEST_SIZE:g}", parameter=name
        )
    return matrix


def _points(name: str, values: ArrayLike) -> tuple[Array, float]:
    """The matrix divided by a power of two near its size, and that power."""
    matrix = finite_matrix(name, values)
    largest = float(np.abs(matrix).max())
    if largest == 0:
        return matrix, 1.0
    scale = float(np.ldexp(1.0, int(np.frexp(largest)[1])))
    return matrix / scale, scale


def coordinate_weights(weights: ArrayLike | None, dim: int) -> tuple[Array, float]:
    if weights is None:
        return np.ones(dim), 1.0
    try:
        omega = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("must be numbers, one a coordinate", parameter="weights") from None
    if omega.shape != (dim,) or not np.isfinite(omega).all() or not (omega > 0).all():
        raise InvalidInput(f"must be {dim} finite numbers greater than 0", parameter="weights")
    unit = float(np.ldexp(1.0, int(np.frexp(omega.max())[1])))
    return omega / unit, unit


def few_points(
    points: Array, weights: Array, rank: int, *, negligible: float, shifted: bool = False
) -> Array:
    """Weights (N,) of smaller support with nearly the same moments of the points (r, N).

    Weights w on points s_i enter the dual only through Σ w_i s_i s_iᵀ and Σ w_i (with a shift, also
    Σ w_i s_i). These are r(r+1)/2 + 1 numbers (+ r), so as many points suffice (Carathéodory);
    their number is N*, the size of the smallest dataset to which a worst-case bound applies.

    Weights below `negligible` of the largest are dropped first. What the result is worth must be
    evaluated again.
    """
    kept = np.flatnonzero(weights > negligible * weights.max())
    moments = rank * (rank + 1) // 2 + 1 + (rank if shifted else 0)
    slim = np.zeros(len(weights))
    if len(kept) <= moments or max(len(kept), moments) > LARGEST_ELIMINATION:
        slim[kept] = weights[kept]
        return np.asarray(slim / slim.sum())
    features = _moments(points[:, kept], shifted)
    slim[kept] = _eliminate(features, weights[kept])
    return np.asarray(slim / slim.sum())


def _moments(points: Array, shifted: bool) -> Array:
    """The moments of each point as a column, in whitened coordinates so that scales are alike."""
    if shifted:
        points = points - points.mean(axis=1)[:, None]
    squares, V = np.linalg.eigh(points @ points.T)
    X = (V / np.sqrt(np.maximum(squares, 1e-24 * squares[-1]))).T @ points
    i, j = np.triu_indices(len(X))
    parts = [X[i] * X[j], np.ones((1, X.shape[1]))]
    return np.vstack([*parts, X] if shifted else parts)


def _eliminate(features: Array, weights: Array) -> Array:
    """Walk along null vectors of the features, each time until a weight is 0."""
    w = weights / weights.sum()
    # Columns √w-scaled: null vectors then move heavy points, not rounding errors.
    _, sizes, Vt = np.linalg.svd(features * np.sqrt(w), full_matrices=True)
    rank = int(np.sum(sizes > 1e-12 * sizes[0]))
    null = (Vt[rank:] * np.sqrt(w)).T
    alive: Indices = np.arange(len(w))
    while null.shape[1]:
        direction = null[:, 0] / np.abs(null[:, 0]).max()
        ratios = np.full(len(alive), np.inf)
        falls = direction[alive] < 0
        if not falls.any():
            direction, falls = -direction, direction[alive] > 0
        ratios[falls] = w[alive][falls] / -direction[alive][falls]
        first = int(np.argmin(ratios))
        gone = alive[first]
        w = np.maximum(w + ratios[first] * direction, 0)
        w[gone] = 0
        alive = np.delete(alive, first)
        pivot = int(np.argmax(np.abs(null[gone])))
        if null[gone, pivot] == 0:
            break
        null = null - np.outer(null[:, pivot], null[gone] / null[gone, pivot])
        null = np.delete(null, pivot, axis=1)
        null[gone] = 0
    return np.asarray(w)
