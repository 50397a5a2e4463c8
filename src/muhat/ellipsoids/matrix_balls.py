"""The smallest ellipsoid around matrices of bounded Schatten norm, whatever the weights of entries.

Changing the signs of rows and columns leaves {X : ‖σ(X)‖_r ≤ 1} as it is, so the best M is
diagonal, and how far it reaches is an assignment problem: with q = r/(r − 2), c ≥ 0,

    max Σ c_ij X_ij² = max over matchings π of ‖(c_ij)_{ij ∈ π}‖_q      (docs/proofs/ellipsoids.md)

By the dual of that, M = diag(t^{−1/q}) contains the ball for every t_ij = α_i + β_j with α, β ≥ 0
and Σα + Σβ = 1; the least Σ(w²M)^{p/2} is a smooth convex problem in α and β. For r ≤ 2 the best
M is the identity.
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.result import CLOSED_FORM_ERROR, SmallestEllipsoid, norm, with_scales
from muhat.ellipsoids.verification import gamma

STEPS = 4_000
ENOUGH = 1e-10
STRIDE = 1.8
"""Of a step that never loses, 1: longer ones are faster, and what they reach is evaluated."""

LEAST_PART = 1e-14
"""Of a row or column, so that no entry of M is infinite."""


def around_matrices(
    shape: tuple[int, int], order: float, p: float, weights: Floats
) -> SmallestEllipsoid:
    """Around {X : ‖σ(X)‖_order ≤ 1}, row after row; weights of shape (rows·columns,)."""
    if order <= 2:
        return with_scales(
            np.ones(len(weights)), norm(weights, p), p, weights, error=CLOSED_FORM_ERROR
        )
    q = 1.0 if math.isinf(order) else order / (order - 2)
    w = weights.reshape(shape) / weights.max()
    error = gamma(4 * sum(shape) + 16) + CLOSED_FORM_ERROR
    if math.isinf(p):
        squares, floor = _largest(w, q)
    else:
        squares, floor = _least(w, p, q)
    scales = np.sqrt(squares).ravel()
    return with_scales(scales, floor * float(weights.max()), p, weights, error=error)


def _largest(w: Floats, q: float) -> tuple[Floats, float]:
    """M and a floor at p = ∞: one matching holds all of it, Γ² = max ‖(w²)_π‖_q, M = Γ²/w²."""
    from scipy.optimize import linear_sum_assignment

    costs = w ** (2 * q)
    rows, columns = linear_sum_assignment(costs, maximize=True)
    size = norm(w[rows, columns] ** 2, q)
    return size / w**2, math.sqrt(size)


def _least(w: Floats, p: float, q: float) -> tuple[Floats, float]:
    """M and a floor for p < ∞, the parts α and β by multiplicative steps.

    Σ w^p t^{−κ} with κ = p/2q; splitting t^{−κ} between α_i and β_j by convexity, the best next
    α_i is α_i·G_i^{1/(κ+1)} up to a factor, G_i the sum of w^p t^{−κ−1} over its row.
    """
    kappa = p / (2 * q)
    rows, columns = w.shape
    alpha, beta = np.full(rows, 0.5 / rows), np.full(columns, 0.5 / columns)
    log_w = np.log(w)
    for step in range(STEPS):
        t = alpha[:, None] + beta
        # w^p t^{−κ−1}, relative to its largest entry: powers of any p stay in range.
        logs = p * log_w - (kappa + 1) * np.log(t)
        B = np.exp(logs - logs.max())
        across, down = B.sum(axis=1), B.sum(axis=0)
        largest = max(across.max(), down.max())
        if step % 10 == 0 and (across @ alpha + down @ beta) >= largest * (1 - ENOUGH):
            break
        alpha *= (across / largest) ** (STRIDE / (kappa + 1))
        beta *= (down / largest) ** (STRIDE / (kappa + 1))
        total = alpha.sum() + beta.sum()
        alpha = np.maximum(alpha / total, LEAST_PART)
        beta = np.maximum(beta / total, LEAST_PART)
    total = math.fsum([*alpha.tolist(), *beta.tolist()])
    t = (alpha[:, None] + beta) / total
    squares = t ** (-1 / q)
    # A doubly substochastic B is a mean of matchings, and on each of those x² = t^{1 − 1/q} lies
    # in the ball, so E = B·t^{1 − 1/q} is a second moment; D² ∝ (w²M)^{p/2 − 1} goes with it.
    logs = p * log_w - (kappa + 1) * np.log(t)
    B = np.exp(logs - logs.max())
    moment = B / max(B.sum(axis=1).max(), B.sum(axis=0).max()) * t ** (1 - 1 / q)
    sizes = w * np.sqrt(squares)
    D = (sizes / sizes.max()) ** (p / 2 - 1)
    # ‖D²‖_{p/(p − 2)} is a norm of sizes too.
    length = 1.0 if p == 2 else norm((sizes / sizes.max()).ravel(), p) ** (p / 2 - 1)
    return squares, math.fsum((D * w * np.sqrt(moment)).ravel().tolist()) / length
