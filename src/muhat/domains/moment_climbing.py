"""Floors for moments x^{⊗ℓ} of few dimensions, from points of the body that climbing finds.

Whatever points a measure is on, its second moment bounds Γ_p from below; that the points found are
the farthest is a hope, and nothing rests on it.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.vectors import Matrix, Vector
from muhat.ellipsoids.floors import spread_directions
from muhat.ellipsoids.oracles import around_oracle
from muhat.ellipsoids.result import from_finite

MOST_MOMENTS = 40
MOST_ENTRIES = 5_000
"""Entries of the full tensor, for the largest that is climbed on."""

TOLERANCE = 1e-3
STARTS_A_VARIABLE = 6
CLIMBS = {2: 12}
MORE_CLIMBS = 60
"""Steps of a climb, of order 2 and beyond."""

TAKEN = 8
POINT_ERROR = 1e-12
"""What a computed x^{⊗ℓ} may be off by, relatively."""


def climbed_floor(K: TensorBasis, body: str, p: float, weights: Vector) -> float:
    """At most Γ_p of K − K ("difference") or K ∪ −K ("symmetric"); 0 where K is too large."""
    if K.dim > MOST_MOMENTS or K.record_dim**K.order > MOST_ENTRIES or K.order < 2:
        return 0.0
    climb = _Climb(K, pairs=body == "difference")
    found = from_finite(around_oracle(climb.farthest, K.dim, p, TOLERANCE, weights))
    return found.floor * (1 - POINT_ERROR)


class _Climb:
    """Points x^{⊗ℓ}, or differences of two, where a quadratic form is large.

    The form is convex, so the point that is farthest along its gradient has a larger value.
    """

    def __init__(self, K: TensorBasis, *, pairs: bool) -> None:
        self.K, self.pairs = K, pairs
        d = K.record_dim
        axes = np.eye(d)
        i, j = np.triu_indices(d, 1)
        more = spread_directions(d)[: STARTS_A_VARIABLE * d]
        x = np.vstack([axes, (axes[i] + axes[j]) / 2**0.5, (axes[i] - axes[j]) / 2**0.5, more])
        x = x / np.sqrt(np.sum(x**2, axis=1))[:, None]
        if pairs:
            # Of each x one pair with the one before, and one with 0.
            self.x = np.vstack([x, x, axes[i]])
            self.y = np.vstack([np.roll(x, 1, axis=0), np.zeros_like(x), axes[j]])
        else:
            self.x, self.y = x, np.zeros_like(x)
        self.known = np.zeros((0, K.dim))

    def farthest(self, A: Matrix) -> Matrix:
        """The best points found, of shape (k, dim), those of other forms among them."""
        x, y = self.x, self.y
        for _ in range(CLIMBS.get(self.K.order, MORE_CLIMBS)):
            x, y = self._moved(A, x, y)
        points = np.vstack([self._points(x, y), self.known])
        values = np.einsum("ij,jk,ik->i", points, A, points)
        _, distinct = np.unique(np.abs(points).round(9), axis=0, return_index=True)
        best = distinct[np.argsort(-values[distinct], kind="stable")[:TAKEN]]
        self.known = np.vstack([self.known, points[best[best < len(x)]]])
        return np.asarray(points[best])

    def _points(self, x: Matrix, y: Matrix) -> Matrix:
        return self.K.lift(x) - self.K.lift(y)

    def _moved(self, A: Matrix, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
        """Points farther along the gradient of the form, where it is not 0."""
        K, d = self.K, self.K.record_dim
        slope = self._points(x, y) @ A / np.sqrt(K.multiplicities)
        unfolded = slope[:, K.places].reshape(len(x), d, -1)
        if K.order == 2:
            sizes, vectors = np.linalg.eigh(unfolded)
            top, bottom = vectors[:, :, -1], vectors[:, :, 0]
            if self.pairs:
                above, below = sizes[:, -1] > 0, sizes[:, 0] < 0
                return top * above[:, None], bottom * below[:, None]
            return np.where((sizes[:, -1] >= -sizes[:, 0])[:, None], top, bottom), y
        # A multiple of x that makes the slope convex: then it never falls.
        steep = (K.order - 1) * np.sqrt(np.sum(unfolded**2, axis=(1, 2)))[:, None]
        return _along(unfolded, x, steep), _along(-unfolded, y, steep)


def _along(unfolded: Floats, x: Matrix, steep: Matrix) -> Matrix:
    """One step of the power iteration for each row of x; 0 stays."""
    gradient = unfolded.reshape(len(x), -1)
    while gradient.shape[1] > x.shape[1]:
        gradient = np.sum(gradient.reshape(len(x), x.shape[1], -1) * x[:, :, None], axis=1)
    moved = gradient + steep * x
    lengths = np.sqrt(np.sum(moved**2, axis=1))[:, None]
    return np.asarray(
        np.where(np.any(x != 0, axis=1, keepdims=True), moved / np.maximum(lengths, 1e-300), 0.0)
    )
