"""Which coordinates decide the others on the span of a set.

A flat body lies in a subspace that floats cannot represent exactly. So its ellipsoid is stated in
r = rank coordinates, the rows J, where containment can be proved to the last bit; the other
coordinates follow linearly: s = E·s_J, E of shape (d, r), the identity on J.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

RANK_TOLERANCE = 16 * 2.0**-53
LARGEST_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Span:
    """Rows (r,) and extension (d, r) with s ≈ extension·s[rows] on the set."""

    rows: Indices
    extension: Array

    @property
    def rank(self) -> int:
        return len(self.rows)

    @property
    def dim(self) -> int:
        return len(self.extension)


def span_of(columns: Array, sizes: Array | None = None) -> Span:
    """The span of the columns (d, N), up to rounding of each row's size; rows may differ in scale.

    `sizes` (d,) are the sizes of the numbers that the columns are differences of, where that is
    more than the columns themselves: their rounding is not a direction.

    >>> span_of(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).rank
    2
    """
    dim = len(columns)
    rows = np.abs(columns).max(axis=1, initial=0.0)
    used = np.flatnonzero(rows > 0)
    if not len(used):
        return Span(np.zeros(0, np.intp), np.zeros((dim, 0)))
    noise = 1.0 if sizes is None else max(1.0, float((sizes[used] / rows[used]).max()))
    tolerance = min(RANK_TOLERANCE * len(used) * noise, LARGEST_TOLERANCE)
    triangle, order, rank = _pivoted(columns[used] / rows[used, None], tolerance)
    chosen = order[:rank]
    # triangle = [R1 R2] with even[order] ≈ [R1 R2]ᵀQᵀ, so even[rest] = (R1⁻¹R2)ᵀ even[chosen].
    relation = np.linalg.solve(triangle[:rank, :rank], triangle[:rank, rank:]).T
    extension = np.zeros((dim, rank))
    extension[used[chosen]] = np.eye(rank)
    extension[used[order[rank:]]] = relation * rows[used[order[rank:]], None]
    extension[used[order[rank:]]] /= rows[used[chosen]]
    ascending = np.argsort(chosen)
    return Span(used[chosen][ascending], extension[:, ascending])


def _pivoted(even: Array, tolerance: float) -> tuple[Array, Indices, int]:
    """R, the order of the rows and the rank, by QR of evenᵀ with pivoting."""
    from scipy.linalg import qr

    if even.shape[1] > 2 * len(even):
        # The rows of evenᵀ enter only through its triangular factor.
        even = np.asarray(np.linalg.qr(even.T, mode="r")).T
    triangle, order = qr(even.T, mode="r", pivoting=True, check_finite=False)
    pivots = np.abs(np.diag(triangle))
    rank = int(np.sum(pivots > tolerance * pivots[0]))
    return triangle, np.asarray(order, np.intp), rank
