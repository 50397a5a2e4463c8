"""The corners of a zonotope A·[−1, 1]^k, searched for the one that is farthest out.

For few generators all 2^(k−1) pairs of corners are looked at, as sums u + v of the corners of two
halves: |u + v|² = |u|² + |v|² + 2⟨u, v⟩ is one product of matrices. In up to four dimensions
many generators are searched by directions: with B = W·A the longest corner is the largest
width h(θ) = Σ|⟨θ, b_i⟩| over unit vectors θ. Simplicial cones of directions are split until each
lies on one side of every generator, where one corner gives h, or cannot reach the longest corner
known: h is convex, so on the cone of unit vectors θ_i that are at most δ apart

    h ≤ max h(θ_i)/√(1 − ½(1 − 1/r)δ²).
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import signs
from muhat.ellipsoids.generation import FoundEllipsoid, spread_out
from muhat.ellipsoids.spans import Array, Span, span_of
from muhat.ellipsoids.verification import TINY, UNIT, gamma

MOST_LISTED = 20
"""Generators up to which their 2^(k−1) pairs of corners are looked at."""

MOST_DIRECTED = {1: 10_000, 2: 2_000, 3: 500, 4: 100}
"""And by the rank of the generators, up to which directions are searched."""

MOST_CONES = 1 << 18
AT_ONCE = 1 << 22
"""Numbers held at a time while cones are split."""

ENOUGH = 1e-11
"""How far below the longest corner known a cone is left alone."""


def is_searched(count: int, rank: int) -> bool:
    """Whether so many generators of that rank can be searched for the farthest corner."""
    return count <= max(MOST_LISTED, MOST_DIRECTED.get(rank, 0))


class ZonotopeCorners:
    """The corners of A·[−1, 1]^k, A of shape (d, k) without columns of zeros.

    A corner is its signs, and its label the signs that are above zero, as bits.
    """

    shifted = False
    complete = False

    def __init__(self, generators: Array) -> None:
        self.generators = generators
        k = generators.shape[1]
        self.sizes = np.abs(generators).sum(axis=1) * (1 + gamma(k))
        self.span: Span = span_of(generators)
        # A corner is a sum of k numbers: its entries are right up to this much.
        self.roundings, self.slip = 1, gamma(k) * self.sizes

    def start(self, p: float, weights: Array) -> FoundEllipsoid:
        """The corners along the axes, and along the generators themselves."""
        even = self.generators / np.where(self.sizes > 0, self.sizes, 1.0)[:, None]
        lengths = np.sqrt(np.sum(even**2, axis=0))
        directions = np.hstack([np.eye(len(even)), even / lengths])
        return self._found(np.sign(directions.T @ even), np.inf, np.inf)

    def farthest(self, W: Array, shift: Array, wanted: int, enough: float) -> FoundEllipsoid:
        B = W @ self.generators
        size = np.sqrt(np.sum((np.abs(W) @ np.abs(self.generators)) ** 2, axis=0)).sum()
        # The product errs by γ_d|W||A|, the sums of k terms by γ_k, the squares by γ_r.
        slack = 4 * gamma(W.shape[1] + B.shape[1] + len(W) + 16) * float(size) + TINY
        if B.shape[1] <= MOST_LISTED:
            chosen, longest = _every_corner(B, 12 * wanted)
        else:
            chosen, longest = _every_direction(B, 12 * wanted, enough)
        Z = B @ chosen.T
        lengths = np.sqrt(np.sum(Z**2, axis=0))
        order = np.argsort(-lengths)
        order = order[lengths[order] > 1]
        seen = float(lengths.max(initial=0.0))
        outside = spread_out(Z, order, wanted)
        return self._found(chosen[outside], (longest + slack) * (1 + 8 * UNIT), seen)

    def half_widths(self) -> tuple[Array, Array]:
        return np.zeros(len(self.sizes)), self.sizes

    def _found(self, chosen: Array, bound: float, seen: float) -> FoundEllipsoid:
        """The corners of these signs, of shape (m, k); of two opposite ones the same."""
        positive = np.where(chosen[:, :1] < 0, -chosen, chosen) >= 0
        labels = np.unique(positive, axis=0)
        corners = self.generators @ np.where(labels, 1.0, -1.0).T
        return FoundEllipsoid(np.asarray(labels, np.intp), corners, bound, seen)


def _every_corner(B: Array, wanted: int) -> tuple[Array, float]:
    """Signs (m, k) of the longest corners of B·[−1, 1]^k, and the length of the longest."""
    k = B.shape[1]
    half = (k - 1) // 2
    first, second = signs(half, 1), signs(k - 1 - half, 1)
    assert first is not None
    assert second is not None
    # One corner of each opposite pair: the sign of the last generator is fixed.
    U, V = first @ B[:, :half].T, second @ B[:, half:-1].T + B[:, -1]
    squares = 2 * (U @ V.T) + np.sum(U**2, axis=1)[:, None] + np.sum(V**2, axis=1)
    flat = squares.ravel()
    many = min(wanted, flat.size)
    best = np.argpartition(flat, flat.size - many)[-many:]
    i, j = np.unravel_index(best, squares.shape)
    chosen = np.column_stack([first[i], second[j], np.ones(many)])
    return chosen, float(np.sqrt(max(flat.max(), 0.0)))


def _every_direction(B: Array, wanted: int, enough: float) -> tuple[Array, float]:
    """The same for many generators in few dimensions."""
    r = len(B)
    axes = signs(r, r)
    assert axes is not None
    cones = axes[axes[:, -1] > 0][:, :, None] * np.eye(r)  # one orthant of each opposite pair
    best, chosen = 0.0, np.zeros((0, B.shape[1]))
    left = 0.0  # what is not looked into reaches no farther
    asked = 0
    while len(cones):
        asked += len(cones)
        kept = []
        for start in range(0, len(cones), max(1, AT_ONCE // B.size)):
            some = cones[start : start + max(1, AT_ONCE // B.size)]
            along = some @ B
            # The corner that a cone's middle sees, which is the only one if no generator is split.
            middle = np.where(along.sum(axis=1) >= 0, 1.0, -1.0)
            lengths = np.sqrt(np.sum((middle @ B.T) ** 2, axis=1))
            best = max(best, float(lengths.max()))
            far = np.flatnonzero(lengths > 1)
            far = far[np.argsort(-lengths[far])][:wanted]
            chosen = np.vstack([chosen, middle[far]])
            crossed = (along.max(axis=1) > 0) & (along.min(axis=1) < 0)
            split = np.any(crossed, axis=1)
            apart = np.sum((some[:, :, None] - some[:, None]) ** 2, axis=3).max(axis=(1, 2))
            least = np.sqrt(np.maximum(1 - 0.5 * (1 - 1 / r) * apart, 0.0))
            reach = np.abs(along).sum(axis=2).max(axis=1) / np.maximum(least, 1e-300)
            kept.append((some[split], reach[split]))
        cones = np.concatenate([some for some, _ in kept])
        reach = np.concatenate([reach for _, reach in kept])
        hopeful = reach > best * (1 + ENOUGH)
        left = max(left, best * (1 + ENOUGH))
        cones, reach = cones[hopeful], reach[hopeful]
        if asked > MOST_CONES or best > enough:
            left = max(left, float(reach.max(initial=0.0)))
            break
        cones = _bisected(cones)
    lengths = np.sum((chosen @ B.T) ** 2, axis=1)
    return chosen[np.argsort(-lengths)[:wanted]], max(best, left)


def _bisected(cones: Array) -> Array:
    """Each cone of unit vectors (m, r, r) as two, split at the middle of its longest edge."""
    m, r = cones.shape[:2]
    lengths = np.sum((cones[:, :, None] - cones[:, None]) ** 2, axis=3).reshape(m, r * r)
    i, j = np.divmod(lengths.argmax(axis=1), r)
    rows = np.arange(m)
    middle = cones[rows, i] + cones[rows, j]
    middle /= np.sqrt(np.sum(middle**2, axis=1))[:, None]
    first, second = cones.copy(), cones.copy()
    first[rows, i] = middle
    second[rows, j] = middle
    return np.concatenate([first, second])
