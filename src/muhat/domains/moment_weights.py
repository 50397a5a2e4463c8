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
from itertools import combinations, product

import numpy as np

from muhat._arrays import Floats
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.vectors import Matrix, Vector
from muhat.ellipsoids.finite import around_shifted
from muhat.ellipsoids.oracles import around_oracle
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    SmallestEllipsoid,
    from_finite,
    with_factor,
)
from muhat.ellipsoids.verification import UNIT, gamma, inverse_root

MOST_VARIABLES, MOST_MOMENTS = 5, 40
TOLERANCE = 1e-3
SLACK = {2: 1e-5}
LARGER_SLACK = 1e-4
"""How much of the largest value a bound may add, of order 2 and beyond."""

ROUNDS = 40
"""Of points beside which others are looked for."""

LARGEST_DRIFT = 1e-6
CLIMBS = 200
MOST_PARTS = 3_000
PEAKS = 4
POINT_ERROR = 1e-12
"""What a computed x^{⊗ℓ} may be off by, relatively."""


def has_weighted_powers(K: TensorBasis) -> bool:
    """Whether there are few enough moments for the search."""
    return K.order > 1 and K.record_dim <= MOST_VARIABLES and K.dim <= MOST_MOMENTS


class _Forms:
    """zᵀAz as a form in y of degree ℓ, and points √y of the body."""

    def __init__(self, K: TensorBasis) -> None:
        self.K, d = K, K.record_dim
        exponents = np.array([np.bincount(row, minlength=d) for row in K.indices])
        self.exponents = exponents
        self.alike = ((exponents[:, None] - exponents) % 2 == 0).all(axis=2)
        self.even = (exponents % 2 == 0).all(axis=1)
        self._first, self._second = np.nonzero(self.alike)
        # Where y^{(α+β)/2} stands among the multisets, and the part of its coefficient.
        places = {tuple(row): place for place, row in enumerate(exponents.tolist())}
        halves = (exponents[self._first] + exponents[self._second]) // 2
        self._target = np.array([places[tuple(row)] for row in halves.tolist()])
        sizes = K.multiplicities
        self._part = np.sqrt(sizes[self._first] * sizes[self._second]) / sizes[self._target]
        self._signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=d - 1)])

    def of(self, A: Matrix) -> Floats:
        """The tensor of the form, of shape (d, …, d); of what blocks of one parity hold of A."""
        K, held = self.K, np.asarray(self._part * A[self._first, self._second], np.float64)
        coefficients: Vector = np.bincount(self._target, held, minlength=K.dim).astype(np.float64)
        return np.asarray(coefficients[K.places].reshape((K.record_dim,) * K.order))

    def linear(self, slope: Vector) -> Floats:
        """⟨slope, z⟩ of even order as such a form, on Σy = 1; of what even moments hold of it."""
        K, half = self.K, TensorBasis(self.K.order // 2, self.K.record_dim)
        # √m(2β)·y^β stands m(β) times in the tensor of half the order.
        held = (slope * np.sqrt(K.multiplicities))[self.even] / half.multiplicities
        inner = held[half.places].reshape((K.record_dim,) * half.order)
        outer = np.multiply.outer(inner, np.ones(inner.shape))
        ways = list(combinations(range(K.order), half.order))
        moved = [np.moveaxis(outer, range(half.order), way) for way in ways]
        return np.asarray(sum(moved) / len(ways))

    def lifted(self, peaks: Matrix) -> Matrix:
        """x^{⊗ℓ} for x = ±√y in every coordinate."""
        return self.K.lift(np.vstack([self._signs * np.sqrt(y) for y in peaks]))


def around_weighted_powers(K: TensorBasis, p: float, weights: Vector) -> SmallestEllipsoid:
    """Around {±x^{⊗ℓ} : |x| ≤ 1}."""
    forms, sizes = _Forms(K), K.tables[1]

    def farthest(A: Matrix) -> tuple[Matrix, float]:
        peaks, bound = largest_on_simplex(forms.of(A))
        # What A has beside the blocks: next to nothing, once signs are balanced.
        beside = np.where(forms.alike, 0.0, np.abs(A))
        bound += float(sizes @ beside @ sizes)
        return forms.lifted(peaks), bound * (1 + gamma(4 * len(A) + 32))

    found = from_finite(around_oracle(farthest, K.dim, p, TOLERANCE, weights))
    return replace(found, floor=found.floor * (1 - POINT_ERROR))


def around_moved_powers(K: TensorBasis, p: float, weights: Vector) -> SmallestEllipsoid | None:
    """Around {x^{⊗ℓ} : |x| ≤ 1} with a free shift, for an even order.

    The smallest ellipsoid of some points, and the points that lie farthest out of it, by turns. A
    means over signs of what is found has blocks, and its centre even moments alone; between 0 and
    the sphere (z − c)ᵀA(z − c) is convex, and on the sphere a form in y. None where floats cannot
    tell that it contains.
    """
    forms, sizes = _Forms(K), K.tables[1]
    points = np.vstack([np.zeros((1, K.dim)), forms.lifted(forms.exponents / K.order)])
    best, floor = None, 0.0
    for _ in range(ROUNDS):
        inner = around_shifted(points.T, p, TOLERANCE / 4, weights=weights)
        floor = max(floor, inner.floor * (1 - POINT_ERROR))
        A = np.where(forms.alike, np.linalg.inv(inner.factor @ inner.factor.T), 0.0)
        A = (A + A.T) / 2
        c = np.where(forms.even, inner.shift, 0.0)
        center = float(c @ A @ c)
        peaks, bound = largest_on_simplex(forms.of(A) + forms.linear(-2 * A @ c) + center)
        far = sizes + np.abs(c)
        reach = max(bound, center) + gamma(8 * len(A) + 64) * float(far @ np.abs(A) @ far)
        found = _around_form(A, reach, floor, p, weights)
        if found is not None and (best is None or found.value < best.value):
            best = replace(found, shift=c)
        if reach <= 1 + TOLERANCE:
            break
        points = np.vstack([points, forms.lifted(peaks)])
    return None if best is None else replace(best, floor=min(floor, best.value))


def _around_form(
    A: Matrix, reach: float, floor: float, p: float, weights: Vector
) -> SmallestEllipsoid | None:
    """{z : zᵀAz ≤ reach}; None where floats cannot tell that it contains."""
    rounding = gamma(len(A) ** 2 + 64)
    found = inverse_root(A, rounding)
    if found is None or not found[1] < LARGEST_DRIFT:
        return None
    factor, drift = found
    grown = factor * math.sqrt(reach)
    return with_factor(grown, floor, p, weights, error=drift + rounding + CLOSED_FORM_ERROR)


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
