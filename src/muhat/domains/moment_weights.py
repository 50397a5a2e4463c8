"""The smallest ellipsoid around ±x⊗x at unequal weights, |x| ≤ 1, by an oracle.

Changing the signs of coordinates of x leaves the body as it is, so the best M has one block for
the squares and is diagonal beside it; for such an M, with y = (x_1², …, x_d²),

    zᵀM⁻¹z = yᵀG y,    G_ij = (block's inverse)_ij + 1/m_ij for i ≠ j,    y ≥ 0, Σy ≤ 1.

The largest yᵀGy over the simplex is found by climbing and bounded by splitting it: over the hull
of points v_i it is at most the largest v_iᵀG v_j.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from muhat.domains.moment_basis import TensorBasis
from muhat.domains.vectors import Matrix, Vector
from muhat.ellipsoids.oracles import around_oracle
from muhat.ellipsoids.result import SmallestEllipsoid, from_finite
from muhat.ellipsoids.verification import UNIT, gamma

MOST_VARIABLES = 5
TOLERANCE = 1e-3
SLACK = 1e-5
"""How much of the largest value a bound may add."""

CLIMBS = 200
MOST_PARTS = 3_000
PEAKS = 4
POINT_ERROR = 1e-12
"""What a computed x⊗x may be off by, relatively."""


def around_weighted_squares(K: TensorBasis, p: float, weights: Vector) -> SmallestEllipsoid:
    """Around {±x⊗x : |x| ≤ 1} in the basis of order 2."""
    is_square = K.indices[:, 0] == K.indices[:, 1]
    squares, others = np.flatnonzero(is_square), np.flatnonzero(~is_square)
    first, second = K.indices[others].T
    signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=K.record_dim - 1)])
    sizes = np.where(is_square, 1.0, np.sqrt(0.5))  # of the coordinates of x⊗x

    def farthest(A: Matrix) -> tuple[Matrix, float]:
        G = A[np.ix_(squares, squares)]
        G[first, second] += A[others, others]
        G[second, first] += A[others, others]
        peaks, bound = largest_on_simplex(G)
        # What A has beside the blocks: next to nothing, once signs are balanced.
        beside = np.abs(A)
        beside[np.ix_(squares, squares)] = 0.0
        beside[others, others] = 0.0
        points = K.lift(np.vstack([signs * np.sqrt(y) for y in peaks]))
        return points, (bound + float(sizes @ beside @ sizes)) * (1 + gamma(2 * len(A) + 8))

    found = from_finite(around_oracle(farthest, K.dim, p, TOLERANCE, weights))
    return replace(found, floor=found.floor * (1 - POINT_ERROR))


def largest_on_simplex(G: Matrix) -> tuple[Matrix, float]:
    """Points y ≥ 0, Σy = 1, of large yᵀGy, of shape (k, d), and a bound on the largest.

    >>> peaks, bound = largest_on_simplex(np.array([[1.0, 3.0], [3.0, 1.0]]))
    >>> peaks[0].round(6).tolist(), round(bound, 3)
    ([0.5, 0.5], 2.0)
    """
    d = len(G)
    corners = np.eye(d)
    i, j = np.triu_indices(d, 1)
    starts = np.vstack([corners, (corners[i] + corners[j]) / 2, np.full((1, d), 1 / d)])
    Y = 0.9 * starts + 0.1 / d
    # Each step y ∝ y·(Gy) climbs where G ≥ 0 (Baum and Eagon); a constant added changes nothing.
    rising = G - G.min() + UNIT * np.abs(G).max()
    for _ in range(CLIMBS):
        Y = Y * (Y @ rising)
        Y = Y / Y.sum(axis=1)[:, None]
    Y = np.where(Y < 1e-7, 0.0, Y)
    Y = np.vstack([Y / Y.sum(axis=1)[:, None], corners])
    values = np.einsum("ij,jk,ik->i", Y, G, Y)
    order = np.argsort(-values, kind="stable")
    _, distinct = np.unique(Y[order].round(6), axis=0, return_index=True)
    peaks = Y[order][np.sort(distinct)[:PEAKS]]
    best = float(values.max())
    left, looked, parts = best, 0, corners[None]
    while len(parts):
        looked += len(parts)
        between = parts @ G @ parts.transpose(0, 2, 1)
        reach = between.max(axis=(1, 2))
        open_ = reach > best + SLACK * abs(best)
        parts, between, reach = parts[open_], between[open_], reach[open_]
        if looked > MOST_PARTS:
            left = max(left, float(reach.max(initial=best)))
            break
        parts = _split(parts, between)
    error = gamma(4 * d + 16) * float(np.abs(G).max())
    return peaks, max(left, best + SLACK * abs(best)) + error


def _split(parts: Matrix, between: Matrix) -> Matrix:
    """Each simplex (m, d, d) as two, at the middle of the edge that its bound comes from."""
    m, d = parts.shape[:2]
    apart = between.reshape(m, d * d).copy()
    apart[:, :: d + 1] = -np.inf
    i, j = np.divmod(apart.argmax(axis=1), d) if m else (np.zeros(0, np.intp),) * 2
    rows = np.arange(m)
    middle = (parts[rows, i] + parts[rows, j]) / 2
    one, other = parts.copy(), parts.copy()
    one[rows, i] = middle
    other[rows, j] = middle
    return np.concatenate([one, other])
