"""The dual of the smallest ellipsoid around finitely many columns, by a primal-dual Newton method.

For the columns s_i of Y, weights w ≥ 0, e ≥ 0 with Σe = 1, and D = diag(e)^{1/2q}, q = p/(p − 2),

    F(w, e) = 2·tr((D Σ D)^½) − Σw,    Σ = Σ_i w_i s_i s_iᵀ

is jointly concave, and its maximum is Γ_p². At any (w, e) the matrix M = D⁻¹(D Σ D)^½D⁻¹ gives the
gradient: g_i = s_iᵀM⁻¹s_i for w_i, D_j²M_jj for log D_j². So the conditions of optimality are
w_i(1 − g_i) = 0 and, at p = ∞, e_j(λ − M_jj) = 0; at p < ∞ e_j ∝ D_j²M_jj. Both products are
driven to 0 together, with Mehrotra's predictor and corrector.

With a free shift Σ is centred at the weighted mean. The equations are those of `newton_system`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat.ellipsoids.newton_system import DualPoint, DualVariables, NewtonSystem
from muhat.ellipsoids.spans import Array

WARM_STEPS = 2
WARM_BARRIER = 0.3
BARRIER_OVER_RESIDUAL = 0.03  # a barrier that outruns the residual loses the path
SLACK_RESIDUAL = 0.2
TO_BOUNDARY = 0.99
LARGEST_GROWTH = 4.0
LARGEST_LOG_STEP = 2.0
PATIENCE = 20
THIN = 1e-9  # directions below this are drowned by rounding


Start = tuple[Array, Array]


@dataclass(frozen=True)
class Dual:
    """Weights (N,), the diagonal of D (d,), a factor (d, r) of M, and what they are worth.

    `value` and `floor` are plain floats without margins: a proof needs `verification`.
    """

    weights: Array
    diagonal: Array
    factor: Array
    shift: Array
    value: float
    floor: float
    iterations: int


def trace_norm(diagonal: Array, order: float) -> float:
    """‖diagonal‖_order of numbers that are not negative, without overflow."""
    largest = float(diagonal.max(initial=0.0))
    if largest == 0 or np.isinf(order):
        return largest
    return float(largest * np.sum((diagonal / largest) ** order) ** (1 / order))


def dual_order(p: float) -> float:
    """q = p/(p − 2), the order conjugate to p/2."""
    if p == 2:
        return np.inf
    return 1.0 if np.isinf(p) else p / (p - 2)


def solve_dual(
    columns: Array,
    p: float,
    tol: float,
    *,
    shifted: bool = False,
    limit: int = 100,
    start: Start | None = None,
) -> Dual:
    """Weights and D whose gap is about `tol`, or the best found; columns of shape (d, N).

    `start` are weights (N,) and a D (d,) that are nearly the best already. The columns must not
    all be zero (all be equal, with a shift). Raises FloatingPointError or LinAlgError where
    floats give out before the first step.
    """
    with np.errstate(all="ignore"):
        return _Solver(columns, p, tol, shifted, limit).run(start)


class _Solver:
    def __init__(self, columns: Array, p: float, tol: float, shifted: bool, limit: int) -> None:
        self.shifted, self.p, self.tol, self.limit, self.q = shifted, p, tol, limit, dual_order(p)
        self.flat, self.endless = p == 2, bool(np.isinf(p))
        self.origin = columns.mean(axis=1) if shifted else np.zeros(len(columns))
        moved = columns - self.origin[:, None]
        self.used_rows = np.flatnonzero(np.abs(moved).max(axis=1) > 0)
        moved = moved[self.used_rows]
        lengths = np.sqrt(np.sum(moved**2, axis=0))
        self.used_columns = np.flatnonzero(lengths > 0) if not shifted else np.arange(len(lengths))
        self.dim, self.count = columns.shape
        self.scale = float(lengths.max())
        self.Y, self.rank = _without_thin_directions(moved[:, self.used_columns] / self.scale)

    def run(self, start: Start | None) -> Dual:
        x, point = self._start() if start is None else self._near(*start)
        best: tuple[float, Array, Array, DualPoint] | None = None
        age = steps = 0
        for steps in range(self.limit + 1):
            value, floor = self._bounds(x.w, x.e, point)
            gap = value / floor - 1
            if best is None or gap < best[0]:
                best, age = (gap, x.w, x.e, point), 0
            age += 1
            if gap <= self.tol or age > PATIENCE or steps == self.limit:
                break
            try:
                x = self._step(x, point)
                point = self._evaluate(x.w, self._diagonal(x.e))
                if not self.endless:
                    x.level = point.total
            except (np.linalg.LinAlgError, FloatingPointError):
                break
        assert best is not None
        return self._finish(*best[1:], steps + WARM_STEPS + 1)

    def _diagonal(self, e: Array) -> Array:
        return np.ones(len(e)) if self.flat else np.asarray(e ** (1 / (2 * self.q)))

    def _evaluate(self, w: Array, D: Array) -> DualPoint:
        shift = self.Y @ w / w.sum() if self.shifted else np.zeros(len(D))
        X = self.Y - shift[:, None] if self.shifted else self.Y
        V, c = _left_singular(D[:, None] * X * np.sqrt(w), self.rank)
        if not c[-1] > 0:
            raise FloatingPointError("the weights have lost a direction")
        whitened = (V.T * D / np.sqrt(c)[:, None]) @ X
        return DualPoint(shift, V, c, whitened, np.sum(whitened**2, axis=0), V**2 @ c)

    def _bounds(self, w: Array, e: Array, point: DualPoint) -> tuple[float, float]:
        D2 = self._diagonal(e) ** 2
        value = point.g.max() * trace_norm(point.m / D2, self.p / 2)
        floor = point.total / np.sqrt(w.sum() * trace_norm(D2, self.q))
        return float(np.sqrt(value)), float(floor)

    def _start(self) -> tuple[DualVariables, DualPoint]:
        """Two multiplicative steps w ← w·g², e ← D²M_jj, then slacks of a moderate barrier."""
        d, N = self.Y.shape
        w, e = np.full(N, 1 / N), np.full(d, 1 / d)
        point = self._evaluate(w, self._diagonal(e))
        for _ in range(WARM_STEPS):
            w = w * point.g**2
            w = np.maximum(w / w.sum(), 1e-6 / N)
            if not self.flat:
                e = np.maximum(point.m / point.m.sum(), 1e-13)
                e = e / e.sum()
            point = self._evaluate(w, self._diagonal(e))
        # F is largest along the ray of w where Σ w_i g_i = Σ w_i.
        w = w * (point.total / w.sum()) ** 2
        point = self._evaluate(w, self._diagonal(e))
        level = point.total
        z = np.maximum(1 - point.g, 0.1 * w.sum() / N / w)
        zeta = np.maximum(level - point.m / e, 0.1 * level / d / e)
        return DualVariables(w, z, e, zeta, level), point

    def _near(self, weights: Array, diagonal: Array) -> tuple[DualVariables, DualPoint]:
        """From good weights, with a barrier that is worth a part of their gap.

        On the central path w_i(1 − g_i) is the barrier: weights are at least that, slacks too.
        """
        w, D = weights[self.used_columns], diagonal[self.used_rows]
        w = np.maximum(w / w.sum(), 1e-12 / len(w))
        e = np.full(len(D), 1 / len(D)) if self.flat else np.maximum(D ** (2 * self.q), 1e-30)
        e = e / e.sum()
        D = self._diagonal(e)
        point = self._evaluate(w, D)
        w = w * (point.total / w.sum()) ** 2
        value, floor = self._bounds(w, e, self._evaluate(w, D))
        part = WARM_BARRIER * (value / floor - 1)
        w = np.maximum(w, part * w.sum() / len(w))
        point = self._evaluate(w, D)
        level = point.total
        z = np.maximum(1 - point.g, part * w.sum() / len(w) / w)
        zeta = np.maximum(level - point.m / e, part * level / len(e) / e)
        return DualVariables(w, z, e, zeta, level), point

    def _step(self, x: DualVariables, point: DualPoint) -> DualVariables:
        w, z, e, zeta = x.w, x.z, x.e, x.zeta
        d, N = self.Y.shape
        pairs = N + d if self.endless else N
        residual = float(np.abs(w * (1 - point.g - z)).sum())
        slack = np.zeros(d)
        if self.endless:
            slack = x.level - point.m / e - zeta
            residual += float(np.abs(e * slack).sum())
        elif not self.flat:
            residual += float(np.abs(point.m * np.log(point.m / (x.level * e))).sum())
        barrier = float(w @ z + (e @ zeta if self.endless else 0)) / pairs

        newton = NewtonSystem(x, point, self.q, self.shifted)
        u, a, dz, dzeta, _ = newton.direction(0.0, 0.0, 0.0)
        primal = _to_boundary(u, *([a] if self.endless else []))
        dual = _to_boundary(dz / z, *([dzeta / zeta] if self.endless else []))
        reached = float((w * (1 + primal * u)) @ (z + dual * dz))
        if self.endless:
            reached += float((e * (1 + primal * a)) @ (zeta + dual * dzeta))
        ratio = min(1.0, max(reached / pairs / barrier, 0.0))
        target = max(
            ratio**3 * barrier,
            min(barrier, BARRIER_OVER_RESIDUAL * residual / pairs),
            1e-3 * self.tol * point.total / pairs,
        )
        if (np.abs(slack) > SLACK_RESIDUAL * zeta).any():
            # Where e_j and the weights vanish together M_jj is a ratio of the two: stay central.
            target = barrier

        u, a, dz, dzeta, dlevel = newton.direction(
            target, w * u * dz, e * a * dzeta if self.endless else 0.0
        )
        primal = _to_boundary(u, *([a] if self.endless else []), margin=TO_BOUNDARY)
        dual = _to_boundary(dz / z, *([dzeta / zeta] if self.endless else []), margin=TO_BOUNDARY)
        primal = min(primal, LARGEST_GROWTH / max(float(np.abs(u).max()), LARGEST_GROWTH))
        if self.endless:
            e = e * (1 + primal * a)
            zeta = zeta + dual * dzeta
        elif not self.flat:
            largest = float(np.abs(self.q * a).max())
            primal = min(primal, LARGEST_LOG_STEP / max(largest, LARGEST_LOG_STEP))
            e = np.maximum(e * np.exp(self.q * primal * a), 1e-30)
        level = x.level + dual * dlevel
        return DualVariables(w * (1 + primal * u), z + dual * dz, e / e.sum(), zeta, level)

    def _finish(self, w: Array, e: Array, point: DualPoint, iterations: int) -> Dual:
        D = self._diagonal(e)
        value, floor = self._bounds(w, e, point)
        weights = np.zeros(self.count)
        weights[self.used_columns] = w / w.sum()
        diagonal = np.zeros(self.dim)
        diagonal[self.used_rows] = D
        factor = np.zeros((self.dim, self.rank))
        size = np.sqrt(point.g.max()) * self.scale
        factor[self.used_rows] = point.V * np.sqrt(point.c) / D[:, None] * size
        shift = self.origin.copy()
        shift[self.used_rows] += point.shift * self.scale
        return Dual(
            weights, diagonal, factor, shift, value * self.scale, floor * self.scale, iterations
        )


def _left_singular(A: Array, rank: int) -> tuple[Array, Array]:
    """The first left singular vectors and values; accurate for small values too."""
    from scipy.linalg import svd

    if A.shape[1] > 2 * len(A):
        A = np.asarray(np.linalg.qr(A.T, mode="r")).T
    try:
        V, c, _ = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        V, c, _ = svd(A, full_matrices=False, lapack_driver="gesvd")
    return V[:, :rank], c[:rank]


def _without_thin_directions(Y: Array) -> tuple[Array, int]:
    """Y of exact numerical rank, and that rank: directions that rounding would drown are cut.

    They cost nothing in the value, and the ellipsoid is widened to cover them when it is verified.
    """
    rows = np.abs(Y).max(axis=1)
    V, c = _left_singular(Y / rows[:, None], min(Y.shape))
    rank = int(np.sum(c > THIN * c[0]))
    if rank == len(rows):
        return Y, rank
    V = V[:, :rank]
    return np.asarray(rows[:, None] * (V @ (V.T @ (Y / rows[:, None])))), rank


def _to_boundary(*relative: Array, margin: float = 1.0) -> float:
    """The largest step ≤ 1 that keeps 1 + step·relative ≥ 0, times the margin if it is cut."""
    least = min(float(values.min(initial=0.0)) for values in relative)
    return min(1.0, margin / -least) if least < 0 else 1.0
