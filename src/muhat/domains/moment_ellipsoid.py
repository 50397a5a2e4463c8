"""The smallest ellipsoid around moment tensors {x^{⊗ℓ} : ‖x‖ ≤ 1}, by symmetry.

Rotations leave the body as it is, and split the symmetric tensors into the harmonic ones of
degree ℓ, ℓ−2, …, so at p = 2 the best M is Σ m_k·P_k with P_k the projection on the k-th. The
operator |x|²·Δ on polynomials is symmetric in our basis and is 2k(2ℓ − 2k + d − 2) there.

A point x of the sphere has the part c_k = ‖P_k·x^{⊗ℓ}‖², and a pair x, y at the angle θ has
2c_k(1 − G_k(cos θ)), G_k the Gegenbauer polynomial of degree ℓ − 2k with G_k(1) = 1. What is left
is a problem in ⌊ℓ/2⌋ + 1 numbers: weights on the point and on the pairs. Of even order, the body
with a free shift has two kinds of points, on the sphere and 0, and moves along the one tensor
that rotations leave alone, the last of the parts.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from muhat.domains.moment_basis import TensorBasis
from muhat.domains.vectors import Matrix, Vector
from muhat.ellipsoids.floors import dual_floor
from muhat.ellipsoids.result import CLOSED_FORM_ERROR, SmallestEllipsoid, with_factor
from muhat.ellipsoids.verification import gamma
from muhat.errors import InvalidInput

LARGEST_DIM = 3_000
ANGLES = 20_001
COARSE_STEPS = 300
STEPS = 20_000


def around_tensors(K: TensorBasis, body: str, p: float, weights: Vector) -> SmallestEllipsoid:
    """Around K − K, K ∪ −K, or K with a free shift: exact at p = 2 and equal weights."""
    check_size(K)
    every, drift = _projections(K)
    present = np.array([bool(P.any()) for P in every])  # one dimension has one harmonic tensor
    projections = [P for P, is_present in zip(every, present, strict=True) if is_present]
    dims = np.array([round(np.trace(P)) for P in projections])
    parts = np.array([P[0, 0] for P in projections])  # of e_1^{⊗ℓ}, the first coordinate
    shift = None
    if body == "shifted" and not K.order % 2:
        sizes, moments, w = _shifted_design(parts, dims)
        shift = w * projections[-1][:, 0]
    else:
        sizes, moments = _design(parts[:, None] * _squared_lengths(K, body)[present], dims)
    root = np.tensordot(np.sqrt(sizes), projections, axes=1)
    # Projections that are off by drift change M by that much of its largest size.
    error = 2 * drift * float(sizes.max() / sizes.min()) + CLOSED_FORM_ERROR
    # moments are those of a measure on the body, so they bound Γ_p from below for every p.
    floor = dual_floor(np.tensordot(moments, projections, axes=1), p, weights, 2 * drift)
    return replace(with_factor(root, floor, p, weights, error=error), shift=shift)


def check_size(K: TensorBasis) -> None:
    """Refuse tensors that are too many for a matrix."""
    if K.dim > LARGEST_DIM:
        raise InvalidInput(
            f"tensors of {K.dim} coordinates are too many for their ellipsoid; at most "
            f"{LARGEST_DIM} are possible."
        )


def _projections(K: TensorBasis) -> tuple[list[Matrix], float]:
    """P_k for k = 0, …, ⌊ℓ/2⌋: projections on the harmonic tensors of degree ℓ − 2k.

    And a bound on how far they are from the exact ones, in the spectral norm: what the computed
    eigenvectors leave over, by the sin Θ theorem of Davis and Kahan.
    """
    degree, d = K.order, K.record_dim
    place = {tuple(row): index for index, row in enumerate(K.indices.tolist())}
    root = np.sqrt(K.multiplicities)
    operator = np.zeros((K.dim, K.dim))
    for row, column in place.items():
        for i, times in Counter(row).items():
            if times < 2:
                continue
            rest = list(row)
            rest.remove(i)
            rest.remove(i)
            for k in range(d):
                target = place[tuple(sorted([*rest, k, k]))]
                operator[target, column] += times * (times - 1) * root[column] / root[target]
    operator = (operator + operator.T) / 2
    values, vectors = np.linalg.eigh(operator)
    levels = [2 * k * (2 * degree - 2 * k + d - 2) for k in range(degree // 2 + 1)]
    nearest = np.argmin(np.abs(values[:, None] - np.array(levels)), axis=1)
    found = [vectors[:, nearest == k] @ vectors[:, nearest == k].T for k in range(len(levels))]
    left = operator @ vectors - vectors * np.array(levels, float)[nearest]
    skew = vectors.T @ vectors - np.eye(K.dim)
    rounding = gamma(2 * K.dim + 64) * float(np.sqrt(np.sum(operator**2)) + 1) * math.sqrt(K.dim)
    apart = min(np.diff(sorted(levels)), default=1)
    drift = 2 * (float(np.sqrt(np.sum(left**2))) + rounding) / float(max(apart, 1))
    return found, drift + 2 * float(np.sqrt(np.sum(skew**2))) + gamma(K.dim + 4)


def _squared_lengths(K: TensorBasis, body: str) -> Matrix:
    """How much of each part a point of the body has, one column a point."""
    count = K.order // 2 + 1
    apex = np.ones((count, 1))
    if K.order % 2:
        return apex * (4.0 if body == "difference" else 1.0)
    if body == "symmetric":
        return apex
    from scipy.special import eval_gegenbauer

    cosines = np.cos(np.linspace(0, np.pi, ANGLES))
    pairs = np.empty((count, ANGLES))
    for k in range(count):
        degree = K.order - 2 * k
        if K.record_dim == 2:
            zonal = np.cos(degree * np.arccos(cosines))
        elif K.record_dim == 1:
            zonal = cosines**degree
        else:
            alpha = K.record_dim / 2 - 1
            zonal = eval_gegenbauer(degree, alpha, cosines) / eval_gegenbauer(degree, alpha, 1.0)
        pairs[k] = 2 * (1 - zonal)
    return np.hstack([apex, pairs])


def _shifted_design(parts: Vector, dims: NDArray[np.int64]) -> tuple[Vector, Vector, float]:
    """The same for K with a free shift, and the weight w on the sphere; 0 has 1 − w."""
    from scipy.optimize import minimize_scalar

    def moments(w: float) -> Vector:
        e = w * parts / dims
        e[-1] *= 1 - w  # the variance, the rest has mean 0
        return np.asarray(e)

    def value(w: float) -> float:
        return float(np.sum(dims * np.sqrt(moments(w))))

    best = minimize_scalar(
        lambda w: -value(w), bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-14}
    )
    w = float(best.x)
    m = np.sqrt(moments(w)) * value(w)
    sphere, zero = parts.copy(), np.zeros_like(parts)
    sphere[-1] *= (1 - w) ** 2
    zero[-1] = parts[-1] * w**2
    reach = max(float(np.sum(sphere / m)), float(np.sum(zero / m)))
    return np.asarray(m * reach * (1 + 1e-12)), moments(w), w


def _design(moved: Matrix, dims: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """m_k with Σ moved_k/m_k ≤ 1 for every column and a small Σ dims·m, and the dual's moments.

    The first column is a point, the others are pairs at rising angles.
    """
    _, reach, _ = _weighted(moved, dims, COARSE_STEPS)
    # What holds the ellipsoid is few: the point, and angles where the reach has a peak.
    left, right = np.append(-np.inf, reach[:-1]), np.append(reach[1:], -np.inf)
    peaks = (reach >= left) & (reach >= right) & (reach > 0.99 * reach.max())
    peaks[0] = True
    m, _, e = _weighted(moved[:, peaks], dims, STEPS)
    reach = (1 / m) @ moved
    # Between the angles of the grid the reach, a polynomial in cos θ, exceeds its largest value
    # there by less than (its second derivative in θ)·step²/8 ≤ degree²·reach·step²/2.
    slack = 1 + 1e-12 if moved.shape[1] == 1 else 1 + (2 * len(dims)) ** 2 * (np.pi / ANGLES) ** 2
    return np.asarray(m * reach.max() * slack), e


def _weighted(moved: Matrix, dims: NDArray[np.int64], steps: int) -> tuple[Vector, Vector, Vector]:
    """m, how far each column reaches out of it, and the moments of the weights behind it.

    The dual: weights w on the columns, e_k = (moved·w)_k/dims_k, value Σ dims·√e; each step
    multiplies a weight by the square of how far its column reaches out of the ellipsoid.
    """
    w = np.full(moved.shape[1], 1 / moved.shape[1])
    dims_ = dims.astype(float)
    for _ in range(steps):
        e = np.maximum(moved @ w / dims_, 1e-300)
        value = float(np.sum(dims_ * np.sqrt(e)))
        m = np.sqrt(e) * value
        reach = (1 / m) @ moved
        if reach.max() <= 1 + 1e-13:
            break
        w *= reach**2
        w /= w.sum()
    return np.asarray(m), np.asarray(reach), np.asarray(e)
