"""The Newton system of the smallest ellipsoid's dual, solved by a factorisation or by iterations.

With (D Σ D)^½ = V diag(c) Vᵀ and Z = diag(c)^{-1}VᵀDY diag(w)^½ the Hessian in relative changes u
of w and α of D² is −Σ_ab R_ab² K_ab, K_ab = c_a c_b/(c_a + c_b), R = Vᵀdiag(α)V − Z diag(u)Zᵀ.

Where there are not many columns it is written out: the kernel K, divided by its diagonal, depends
on log c_a − log c_b alone and has a small numerical rank, so the Hessian is a sum of a few
entrywise squares of Gram matrices. For N columns in r dimensions that takes about N²(22r + N/3)
operations. With B = [Vᵀ Z] the product of the Hessian and a vector v is diag(Bᵀ(K ∘ B diag(v)Bᵀ)B),
4r²N operations, and conjugate gradients, scaled by the diagonal, need 20 to 40 of these: columns
that carry weight lie in different directions, so the scaled Hessian is near the identity but for
one large eigenvalue. Where they need more, the matrix is written out after all.

With a free shift v, Σ is centred at the weighted mean, and the Hessian gains one term of rank d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from muhat.ellipsoids.spans import Array

KERNEL_TOLERANCE = 1e-5
LEAST_COLUMNS = 500  # fewer are written out in no time
ITERATIONS = 120
RESIDUAL = 1e-4  # of the right-hand side, in the norm of the inverse diagonal


@dataclass(frozen=True)
class DualPoint:
    """M and its derivatives at (w, e)."""

    shift: Array
    V: Array
    c: Array
    whitened: Array  # M^{-½}(s_i − v), up to a rotation, of shape (r, N)
    g: Array
    m: Array  # D_j²·M_jj

    @property
    def total(self) -> float:
        return float(self.c.sum())


@dataclass
class DualVariables:
    """Weights w and e with the slacks that belong to them."""

    w: Array
    z: Array  # → 1 − g
    e: Array
    zeta: Array  # → λ − M_jj, at p = ∞ only
    level: float  # λ


class NewtonSystem:
    """The system at a point, made once and solved for several right-hand sides.

    `q` is the order conjugate to p/2: ∞ at p = 2, where there is no e, and 1 at p = ∞.
    """

    def __init__(self, x: DualVariables, point: DualPoint, q: float, shifted: bool) -> None:
        self.x, self.point = x, point
        self.flat, self.endless, self.shifted = bool(np.isinf(q)), q == 1, shifted
        self.rows = 0 if self.flat else len(x.e)
        Z = point.whitened * np.sqrt(x.w) / np.sqrt(point.c)[:, None]
        self.B = Z if self.flat else np.hstack([point.V.T, Z])
        diagonal = np.empty(self.B.shape[1])
        diagonal[self.rows :] = x.w * x.z
        if self.endless:
            diagonal[: self.rows] = x.e * x.zeta
        elif not self.flat:
            diagonal[: self.rows] = (q - 1) * point.m
        self.diagonal = diagonal + 1e-300
        self._factorised: Callable[[Array], Array] | None = None
        if not (self._is_large and not shifted):
            self._factorised = self._written_out()
        if not self.flat:
            # The border of the system keeps Σe = 1.
            border = np.zeros(len(diagonal))
            border[: self.rows] = x.e if self.endless else point.m
            self.border = self.solve(border)
            self.pivot = float(x.e @ self.border[: self.rows])

    @property
    def _is_large(self) -> bool:
        """Whether iterations are likely to take fewer operations than a factorisation."""
        rank, count = len(self.B), int(self.B.shape[1])
        by_iterations = 240.0 * rank**2
        return count >= LEAST_COLUMNS and by_iterations < count * (22 * rank + 100 + count / 3)

    def direction(
        self, target: float, cross_w: Array | float, cross_e: Array | float
    ) -> tuple[Array, Array, Array, Array, float]:
        """Relative steps of w and D², and steps of z, ζ and λ, towards products = target."""
        x, point, rows, endless = self.x, self.point, self.rows, self.endless
        rhs = np.empty(rows + len(x.w))
        rhs[rows:] = target - x.w * (1 - point.g) - cross_w
        if endless:
            rhs[:rows] = x.e * x.level - point.m - target + cross_e
        elif rows:
            rhs[:rows] = -point.m * np.log(point.m / (x.level * x.e))
        step = self.solve(rhs)
        dlevel = 0.0
        if rows:
            dlevel = -float(x.e @ step[:rows]) / self.pivot
            step = step + dlevel * self.border
        if not np.isfinite(step).all():
            raise FloatingPointError("the Newton step is not finite")
        u, a = step[rows:], -step[:rows]
        dz = (target - cross_w) / x.w - x.z - x.z * u
        dzeta = (target - cross_e) / x.e - x.zeta - x.zeta * a if endless else np.zeros(0)
        return u, a, dz, dzeta, dlevel

    def solve(self, rhs: Array) -> Array:
        """H⁻¹·rhs, by iterations as long as these converge."""
        if self._factorised is None:
            found = self._by_iterations(rhs)
            if found is not None:
                return found
            self._factorised = self._written_out()
        return self._factorised(rhs)

    def _written_out(self) -> Callable[[Array], Array]:
        """The Cholesky factor of H as a function."""
        from scipy.linalg import cho_factor, cho_solve

        B, x = self.B, self.x
        H = np.zeros((B.shape[1], B.shape[1]))
        for kernel in _kernel_factors(self.point.c):
            gram = (B.T * kernel) @ B
            gram *= gram
            H += gram
        if self.shifted:
            moved = self.point.whitened * x.w
            H[self.rows :, self.rows :] += (2 / x.w.sum()) * (moved.T @ moved)
        H[np.diag_indices(len(H))] += self.diagonal
        cholesky = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        return lambda rhs: np.asarray(cho_solve(cholesky, rhs, check_finite=False))

    def _by_iterations(self, rhs: Array) -> Array | None:
        """Conjugate gradients from 0, or None if they do not come near.

        Products are in single precision, far more exact than the residual that is asked for.
        """
        B, c = self.B.astype(np.float32), self.point.c.astype(np.float32)
        kernel = c[:, None] * c / (c[:, None] + c)
        squares = B**2
        scales = 1 / (np.einsum("ai,ai->i", squares, kernel @ squares) + self.diagonal)
        found, left = np.zeros(len(rhs)), rhs
        scaled = scales * left
        direction, size = scaled, float(left @ scaled)
        enough = RESIDUAL**2 * size
        for _ in range(ITERATIONS):
            moved = kernel * ((B * direction.astype(np.float32)) @ B.T)
            product = np.einsum("ai,ai->i", B, moved @ B) + self.diagonal * direction
            length = size / float(direction @ product)
            found, left = found + length * direction, left - length * product
            scaled = scales * left
            before, size = size, float(left @ scaled)
            if size <= enough:
                return np.asarray(found)
            direction = scaled + (size / before) * direction
        return None


def _kernel_factors(c: Array) -> Iterator[Array]:
    """Vectors k with c_a c_b/(c_a + c_b) ≈ Σ k_a k_b: pivoted Cholesky of sech(½ log c_a/c_b)."""
    logs, left = np.log(c), np.ones(len(c))
    found: list[Array] = []
    while left.max() > KERNEL_TOLERANCE:
        pivot = int(left.argmax())
        column = 1 / np.cosh((logs - logs[pivot]) / 2)
        for factor in found:
            column = column - factor * factor[pivot]
        column = column / np.sqrt(left[pivot])
        found.append(column)
        left = np.maximum(left - column**2, 0)
        left[pivot] = 0
        yield column * np.sqrt(c / 2)
