"""κ(A), the width of the body conv{±columns} in its narrowest direction.

    κ(A) = min over ‖θ‖₂ = 1 of 2·max_j |(Aᵀθ)_j| = 2/max{‖θ‖₂ : ‖Aᵀθ‖_∞ ≤ 1}

(Zou, Liu and Upadhyay 2025, eq. 3; their Lemma 2.14 says 2 for prefix sums, where it is
2/√(4n − 3)). It is 0 if the rows are linearly dependent. In general it is the largest of
exponentially many numbers, so where no closed form is known and there are too many vertices, what
is returned is an interval.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.threads import one_thread
from muhat.ellipsoids.verification import gamma, spectral_norm_bound
from muhat.errors import InvalidInput
from muhat.workloads import Identity, Kron, Marginals, Parity, Prefix, Scaled, Workload
from muhat.workloads.cells import LARGEST_VECTOR

LARGEST_MATRIX = 1 << 20
MOST_VERTICES = 1 << 15
MOST_EXACT = 500
BATCH = 1 << 12
SEARCH_STEPS, SEARCH_WIDTH = 20, 32

_DOWN, _UP = 1 - 1e-12, 1 + 1e-12


@dataclass(frozen=True)
class MinimumWidth:
    """κ lies between `lower` and `upper`, both proved; `method` says how they were found."""

    lower: float
    upper: float
    method: str

    @property
    def exact(self) -> bool:
        """Whether the two ends agree to nine digits."""
        return math.isfinite(self.upper) and self.upper - self.lower <= 1e-9 * self.upper

    def __float__(self) -> float:
        return self.lower

    def __repr__(self) -> str:
        if self.exact:
            return f"<κ = {self.upper:.6g}, {self.method}>"
        return f"<κ between {self.lower:.6g} and {self.upper:.6g}, {self.method}>"


def minimum_width(W: Workload) -> MinimumWidth:
    """The width κ of conv{±columns of W} in its narrowest direction, as a certified interval.

    >>> from muhat.workloads import prefix
    >>> minimum_width(prefix(3))  # 2/√(4n − 3)
    <κ = 0.666667, closed form>
    """
    if not isinstance(W, Workload):
        raise InvalidInput(
            f"W must be a workload; got {type(W).__name__}. Wrap a matrix in workloads.matrix."
        )
    rows, columns = W.shape
    if rows > columns or (isinstance(W, Marginals) and len(W.sets) > 1):
        return MinimumWidth(0.0, 0.0, "the rows are linearly dependent")
    if isinstance(W, Prefix):
        return _closed(2 / math.sqrt(4 * W.n - 3))
    if isinstance(W, Identity):
        return _closed(2 / math.sqrt(W.shape[0]))
    if isinstance(W, Parity):
        return _closed(2.0)
    if isinstance(W, Marginals):
        return _closed(2 / math.sqrt(W.shape[0]))
    if isinstance(W, Scaled):
        inner, factor = minimum_width(W.inner), abs(W.factor)
        return MinimumWidth(inner.lower * factor * _DOWN, inner.upper * factor * _UP, inner.method)
    if isinstance(W, Kron):
        return _of_product(W)
    if rows * columns > LARGEST_MATRIX:
        return MinimumWidth(0.0, _first_row(W), "too large to search")
    with one_thread():
        return _of_matrix(W.dense())


def _closed(value: float) -> MinimumWidth:
    return MinimumWidth(value * _DOWN, value * _UP, "closed form")


def _of_product(W: Kron) -> MinimumWidth:
    """Products of narrow directions from above; from below, κ of one factor at a time.

    ‖AᵀΘB‖_∞ ≥ (κ_A/2)·max_j ‖(ΘB)_j‖₂ ≥ (κ_A/2)·‖ΘB‖_F/√N_B ≥ (κ_A/2)·σ_min(B)/√N_B·‖Θ‖_F.
    """
    widths = [minimum_width(factor) for factor in W.factors]
    upper = 2 * math.prod(width.upper / 2 for width in widths) * _UP
    evens = [_even_width(factor) for factor in W.factors]
    lower = max(
        math.prod(
            width.lower / 2 if i == chosen else even
            for i, (width, even) in enumerate(zip(widths, evens, strict=True))
        )
        for chosen in range(len(widths))
    )
    return MinimumWidth(2 * lower * _DOWN, upper, "factor by factor")


def _even_width(W: Workload) -> float:
    """A lower bound on σ_min(W)/√N, which is one on κ/2."""
    rows, columns = W.shape
    if rows > columns:
        return 0.0
    if isinstance(W, Identity):
        return _DOWN / math.sqrt(columns)
    if isinstance(W, Parity):
        return _DOWN
    if isinstance(W, Prefix):
        return _DOWN / (2 * math.sin((2 * W.n - 1) * math.pi / (4 * W.n + 2)) * math.sqrt(W.n))
    if isinstance(W, Scaled):
        return abs(W.factor) * _even_width(W.inner) * _DOWN
    if rows * columns > LARGEST_MATRIX:
        return 0.0
    with one_thread():
        return _right_inverse_bound(W.dense())


def _first_row(W: Workload) -> float:
    """The width along the first answer."""
    rows, columns = W.shape
    if columns > LARGEST_VECTOR:
        return math.inf
    unit = np.zeros(rows)
    unit[0] = 1.0
    return 2 * float(np.max(np.abs(W.transposed(unit)))) * _UP


def _of_matrix(A: Floats) -> MinimumWidth:
    scale = 2.0 ** math.floor(math.log2(float(np.max(np.abs(A)))))  # rounds nothing
    columns = _distinct_columns(A / scale)
    dim, number = columns.shape
    if number < dim:
        return MinimumWidth(0.0, 0.0, "the rows are linearly dependent")
    found: MinimumWidth | None = None
    if math.comb(number, dim) << (dim - 1) <= MOST_VERTICES:
        found = _by_vertices(columns)
    if found is None:
        lower = 2 * max(_right_inverse_bound(columns), _subset_bound(columns))
        found = MinimumWidth(lower, _by_search(columns), "search, and a right inverse")
    return MinimumWidth(found.lower * scale * _DOWN, found.upper * scale * _UP, found.method)


def _distinct_columns(A: Floats) -> Floats:
    """The columns that are not 0, one of each pair that differs by a sign at most."""
    used = A[:, np.any(A != 0, axis=0)]
    leading = used[np.argmax(used != 0, axis=0), np.arange(used.shape[1])]
    return np.ascontiguousarray(np.unique(used * np.sign(leading), axis=1))


def _by_vertices(A: Floats) -> MinimumWidth | None:
    """All vertices of {θ : ‖Aᵀθ‖_∞ ≤ 1}: dim columns meet ±1 in each. None if one is unclear.

    With M the chosen columns as rows and R the computed inverse, MR = I − E, ‖E‖_∞ ≤ r < 1, the
    solution of Mθ = s is within |R|·1·r/(1 − r) of R·s, so no vertex is missed by rounding.
    """
    dim, number = A.shape
    halves = list(itertools.product((1.0, -1.0), repeat=dim - 1))
    signs = np.array([(1.0, *rest) for rest in halves]).T
    longest, narrowest, unclear = 0.0, math.inf, 0
    subsets = itertools.combinations(range(number), dim)
    while batch := list(itertools.islice(subsets, max(1, BATCH // signs.shape[1]))):
        M = np.ascontiguousarray(A.T[np.array(batch)])
        with np.errstate(all="ignore"):
            _, volumes = np.linalg.slogdet(M)
        regular = np.isfinite(volumes)
        inverses = np.zeros_like(M)
        inverses[regular] = np.linalg.inv(M[regular])
        residual = np.abs(np.eye(dim) - M @ inverses)
        residual += gamma(dim + 2) * (np.abs(M) @ np.abs(inverses) + np.eye(dim))
        defect = residual.sum(axis=2).max(axis=1) * (1 + gamma(dim + 2))
        clear = regular & (defect < 1e-3)
        for index in np.flatnonzero(~clear):
            unclear += 1
            if unclear > MOST_EXACT or not _singular(M[index]):
                return None
        R, slack = inverses[clear], defect[clear] / (1 - defect[clear]) * 1.01 + gamma(dim + 2)
        if not len(R):
            continue
        theta = R @ signs
        blur = np.abs(R).sum(axis=2) * slack[:, None]
        reach = np.abs(A.T @ theta)
        margin = (np.abs(A.T) @ blur[:, :, None]) + gamma(dim + 2) * (np.abs(A.T) @ np.abs(theta))
        inside = (reach <= 1 + 2 * margin).all(axis=1)
        lengths = np.sqrt(np.sum(theta**2, axis=1))
        radii = lengths + np.sqrt(np.sum(blur**2, axis=1))[:, None]
        widths = (reach + 2 * margin).max(axis=1) / lengths
        longest = max(longest, float(np.max(radii[inside], initial=0.0)))
        narrowest = min(narrowest, float(np.min(widths[inside], initial=math.inf)))
    if longest == 0:
        return MinimumWidth(0.0, 0.0, "the rows are linearly dependent")
    return MinimumWidth(2 / longest * _DOWN, 2 * narrowest * _UP, "all vertices")


def _singular(M: Floats) -> bool:
    """Whether a matrix of floats is singular, in exact arithmetic."""
    rows = [[Fraction(value) for value in row] for row in M.tolist()]
    for column in range(len(rows)):
        found = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if found is None:
            return True
        rows[column], rows[found] = rows[found], rows[column]
        pivot = rows[column]
        for row in rows[column + 1 :]:
            ratio = row[column] / pivot[column]
            row[:] = [value - ratio * above for value, above in zip(row, pivot, strict=True)]
    return False


def _right_inverse_bound(A: Floats) -> float:
    """A lower bound on κ/2: if AB = I − E and ‖E‖ ≤ r, ‖Bᵀ‖·‖Aᵀθ‖ ≥ (1 − r)‖θ‖.

    ‖Bᵀy‖₂ ≤ ‖y‖_∞ times the smaller of √N·‖B‖₂ and the length of the row sums of |Bᵀ|.
    """
    dim, number = A.shape
    inverse = np.asarray(np.linalg.pinv(A), dtype=np.float64)
    residual = np.abs(np.eye(dim) - A @ inverse)
    residual += gamma(number + 2) * (np.abs(A) @ np.abs(inverse) + np.eye(dim))
    defect = float(np.sqrt(np.sum(residual**2))) * (1 + gamma(dim * dim + 8))
    if not defect < 0.5:
        return 0.0
    sums = np.abs(inverse).sum(axis=0)
    size = min(math.sqrt(number) * spectral_norm_bound(inverse), float(np.sqrt(np.sum(sums**2))))
    return (1 - defect) / size * _DOWN


def _subset_bound(A: Floats) -> float:
    """The same for the best-conditioned columns alone: fewer columns make a narrower body."""
    from scipy.linalg import qr

    dim, number = A.shape
    if number == dim:
        return 0.0
    _, _, order = qr(A, mode="economic", pivoting=True)
    return _right_inverse_bound(np.ascontiguousarray(A[:, order[:dim]]))


def _by_search(A: Floats) -> float:
    """The width in the narrowest direction found: every direction is an upper bound on κ."""
    inverse = np.linalg.pinv(A).T
    narrow, _, _ = np.linalg.svd(A, full_matrices=False)
    directions = np.concatenate([np.eye(len(A)), narrow], axis=1)
    best = math.inf
    for _ in range(SEARCH_STEPS):
        lengths = np.sqrt(np.sum(directions**2, axis=0))
        directions = directions[:, lengths > 0] / lengths[lengths > 0]
        reach = np.abs(A.T @ directions) + gamma(len(A) + 8) * (np.abs(A.T) @ np.abs(directions))
        widths = 2 * reach.max(axis=0)
        best = min(best, float(widths.min()))
        directions = directions[:, np.argsort(widths, kind="stable")[:SEARCH_WIDTH]]
        # Longer inside {‖Aᵀθ‖_∞ ≤ 1}: the gradient of ‖θ‖² over sign patterns of Aᵀθ.
        patterns = np.where(inverse.T @ directions >= 0, 1.0, -1.0)
        directions = inverse @ patterns
    return best * (1 + gamma(2 * len(A) + 8))
