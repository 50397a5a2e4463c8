"""The smallest ellipsoid around ±x^{⊗ℓ} at unequal weights, |x| ≤ 1, by an oracle.

Changing the signs of coordinates of x leaves the body as it is, so the best M has one block for
each parity: moments x^α and x^β share one where α − β is even. For such an M, with
y = (x_1², …, x_d²), zᵀM⁻¹z is a form of degree ℓ in y ≥ 0, Σy ≤ 1; of order 2

    zᵀM⁻¹z = yᵀG y,    G_ij = (block's inverse)_ij + 1/m_ij for i ≠ j.

The largest G(y, …, y) over the simplex is found by climbing and bounded by splitting it: over the
hull of points v_i it is at most the largest G(v_i, …, v_j).
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np

from muhat._arrays import Floats
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.vectors import Matrix, Vector
from muhat.ellipsoids.oracles import around_oracle
from muhat.ellipsoids.result import SmallestEllipsoid, from_finite
from muhat.ellipsoids.verification import UNIT, gamma

MOST_VARIABLES, MOST_MOMENTS = 5, 40
TOLERANCE = 1e-3
SLACK = {2: 1e-5}
LARGER_SLACK = 1e-4
"""How much of the largest value a bound may add, of order 2 and beyond."""

CLIMBS = 200
MOST_PARTS = 3_000
PEAKS = 4
POINT_ERROR = 1e-12
"""What a computed x^{⊗ℓ} may be off by, relatively."""


def has_weighted_powers(K: TensorBasis) -> bool:
    """Whether there are few enough moments for the search."""
    return K.order > 1 and K.record_dim <= MOST_VARIABLES and K.dim <= MOST_MOMENTS


def around_weighted_powers(K: TensorBasis, p: float, weights: Vector) -> SmallestEllipsoid:
    """Around {±x^{⊗ℓ} : |x| ≤ 1}."""
    exponents = np.array([np.bincount(row, minlength=K.record_dim) for row in K.indices])
    alike = ((exponents[:, None] - exponents) % 2 == 0).all(axis=2)
    first, second = np.nonzero(alike)
    # Where y^{(α+β)/2} stands among the multisets, and the part of its coefficient.
    places = {tuple(row): place for place, row in enumerate(exponents.tolist())}
    halves = (exponents[first] + exponents[second]) // 2
    target = np.array([places[tuple(row)] for row in halves.tolist()])
    part = np.sqrt(K.multiplicities[first] * K.multiplicities[second]) / K.multiplicities[target]
    signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=K.record_dim - 1)])
    sizes = K.tables[1]

    def farthest(A: Matrix) -> tuple[Matrix, float]:
        held = np.asarray(part * A[first, second], np.float64)
        coefficients: Vector = np.bincount(target, held, minlength=K.dim).astype(np.float64)
        G = coefficients[K.places].reshape((K.record_dim,) * K.order)
        peaks, bound = largest_on_simplex(G)
        # What A has beside the blocks: next to nothing, once signs are balanced.
        beside = np.where(alike, 0.0, np.abs(A))
        points = K.lift(np.vstack([signs * np.sqrt(y) for y in peaks]))
        return points, (bound + float(sizes @ beside @ sizes)) * (1 + gamma(4 * len(A) + 32))

    found = from_finite(around_oracle(farthest, K.dim, p, TOLERANCE, weights))
    return replace(found, floor=found.floor * (1 - POINT_ERROR))


def largest_on_simplex(G: Floats) -> tuple[Matrix, float]:
    """Points y ≥ 0, Σy = 1, of large G(y, …, y), of shape (k, d), and a bound on the largest.

    G is a symmetric tensor of shape (d, …, d).

    >>> peaks, bound = largest_on_simplex(np.array([[1.0, 3.0], [3.0, 1.0]]))
    >>> peaks[0].round(6).tolist(), round(bound, 3)
    ([0.5, 0.5], 2.0)
    """
    d, order = len(G), G.ndim
    corners = np.eye(d)
    i, j = np.triu_indices(d, 1)
    starts = np.vstack([corners, (corners[i] + corners[j]) / 2, np.full((1, d), 1 / d)])
    Y = 0.9 * starts + 0.1 / d
    # Each step y ∝ y·(gradient) climbs where G ≥ 0 (Baum and Eagon); a constant added changes
    # nothing.
    rising = G - G.min() + UNIT * np.abs(G).max()
    for _ in range(CLIMBS):
        Y = Y * _contracted(rising, Y, order - 1)
        Y = Y / Y.sum(axis=1)[:, None]
    Y = np.where(Y < 1e-7, 0.0, Y)
    Y = np.vstack([Y / Y.sum(axis=1)[:, None], corners])
    values = _contracted(G, Y, order)
    by_value = np.argsort(-values, kind="stable")
    _, distinct = np.unique(Y[by_value].round(6), axis=0, return_index=True)
    peaks = Y[by_value][np.sort(distinct)[:PEAKS]]
    best = float(values.max())
    slack = SLACK.get(order, LARGER_SLACK) * abs(best)
    left, looked, parts = best, 0, corners[None]
    while len(parts):
        looked += len(parts)
        between = _between(G, parts)
        reach = between.max(axis=1)
        open_ = reach > best + slack
        parts, between, reach = parts[open_], between[open_], reach[open_]
        if looked > MOST_PARTS:
            left = max(left, float(reach.max(initial=best)))
            break
        parts = _split(parts, between, order)
    error = gamma(2 * order * d + 16) * float(np.abs(G).max())
    return peaks, max(left, best + slack) + error


def _contracted(G: Floats, Y: Matrix, times: int) -> Floats:
    """G(y, …, y, ·) for every row y of Y, so many of them in."""
    held = np.broadcast_to(G, (len(Y), *G.shape))
    for _ in range(times):
        held = np.einsum("k...i,ki->k...", held, Y)
    return np.asarray(held)


def _between(G: Floats, parts: Floats) -> Matrix:
    """G(v_i, …, v_j) of the corners of each simplex (m, d, d), of shape (m, d^order)."""
    m, d = parts.shape[:2]
    held = np.broadcast_to(G, (m, *G.shape)).reshape(m, -1)
    for _ in range(G.ndim):
        # The first axis is taken up and comes back as the last.
        moved = np.swapaxes(held.reshape(m, d, -1), 1, 2)
        held = (moved @ parts.transpose(0, 2, 1)).reshape(m, -1)
    return np.asarray(held)


def _split(parts: Floats, between: Matrix, order: int) -> Floats:
    """Each simplex (m, d, d) as two, at the middle of an edge that its bound comes from."""
    m, d = parts.shape[:2]
    apart = between.copy()
    apart[:, :: sum(d**k for k in range(order))] = -math.inf  # one corner alone is no edge
    place = apart.argmax(axis=1) if m else np.zeros(0, np.intp)
    digits = place[:, None] // d ** np.arange(order) % d
    rows, i, j = np.arange(m), digits.min(axis=1), digits.max(axis=1)
    middle = (parts[rows, i] + parts[rows, j]) / 2
    one, other = parts.copy(), parts.copy()
    one[rows, i] = middle
    other[rows, j] = middle
    return np.concatenate([one, other])
