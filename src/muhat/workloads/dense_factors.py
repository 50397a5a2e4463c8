"""Factorisations of explicit matrices with hardly more rows than cells, or of lower rank.

Equal columns are one column (equal up to sign, for add/remove): they are solved for once, and the
strategy treats them alike to the last bit. A column of zeros needs no noise and gets none; under
substitution it is a point like the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.ellipsoids.finite import FiniteResult, around_columns, around_differences
from muhat.ellipsoids.moment_floors import (
    floor_of,
    gram_floor,
    pair_floor,
    spread_floor,
)
from muhat.ellipsoids.moment_spectra import Columns, FewRows, ManyRows, Pairs, Rows, TotalOfRows
from muhat.ellipsoids.multiplicative import ascend
from muhat.ellipsoids.spans import Span, span_of
from muhat.ellipsoids.verification import dual_floor, gamma
from muhat.workloads.solution import CLIMB, INTERIOR, Solution, steps_for

SMALL, FEW_PAIRED = 128, 28
"""Up to here the interior point method is as fast, and reaches any tolerance."""

SOME_PAIRED = 64
"""Up to here it is worth its time if multiplicative steps did not do well."""

LARGEST_INTERIOR_ROWS, LARGEST_INTERIOR_COLUMNS = 300, 1200
LARGEST_PAIRED = 1024
LARGEST_WALKED_ROWS = 64
"""Differences of many points in so few dimensions are searched for the farthest ones."""

LARGEST_TALL = 1500
FINEST, ROUGH = 1e-9, 1e-4


def solve_dense(matrix: Floats, p: float, tol: float, *, pairs: bool) -> Solution | None:
    """The best strategy for the columns (differences of columns) of a matrix (m, N) of size 1.

    None if nothing needs to be hidden: under substitution, all columns are equal.
    """
    chosen, place, signs = distinct_columns(matrix, signed=not pairs)
    A = np.ascontiguousarray(matrix[:, chosen])
    span = span_of(A - A[:, :1], np.abs(A).max(axis=1)) if pairs else span_of(A)
    if span.rank == 0:
        return None
    found = (_solve_pairs if pairs else _solve_columns)(A, span, p, tol)
    spread = found.strategy[:, place] * signs
    return Solution(spread, found.value, found.floor, found.method)


def distinct_columns(
    matrix: Floats, *, signed: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Columns that stand for all, which of them each column is, and its sign.

    With `signed`, a column and its negative are one.

    >>> distinct_columns(np.array([[1.0, -1.0, 0.0, 1.0]]), signed=True)[1:]
    (array([0, 0, 1, 0]), array([ 1., -1.,  1.,  1.]))
    """
    rows = np.ascontiguousarray(matrix.T) + 0.0  # −0 and 0 are one number
    signs = np.ones(len(rows))
    if signed:
        first = rows[np.arange(len(rows)), np.argmax(rows != 0, axis=1)]
        signs = np.where(first < 0, -1.0, 1.0)
        rows = rows * signs[:, None] + 0.0
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, chosen, place = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(chosen)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    chosen, place = chosen[order], rank[place.ravel()]
    # The column that stands for a class is taken as it is, so the signs are relative to it.
    return chosen, place, signs * signs[chosen][place]


def _solve_columns(A: Floats, span: Span, p: float, tol: float) -> Solution:
    rows, columns = A.shape
    if max(rows, columns) <= SMALL:
        return _interior(around_columns(A, p, FINEST), A)
    if columns > 2 * rows and rows <= LARGEST_INTERIOR_ROWS:
        return _interior(around_columns(A, p, max(tol, FINEST)), A)
    found = _climb(A, span.rank, p, tol, pairs=False)
    small = rows <= LARGEST_INTERIOR_ROWS and columns <= LARGEST_INTERIOR_COLUMNS
    if found is None or (small and found.gap > tol):
        return _interior(around_columns(A, p, max(tol, FINEST)), A).better_of(found)
    return found


def _solve_pairs(A: Floats, span: Span, p: float, tol: float) -> Solution:
    rows, columns = A.shape
    moved = A - A.mean(axis=1)[:, None]
    if columns <= FEW_PAIRED:
        return _interior(around_differences(A, p, FINEST), moved)
    if columns > LARGEST_PAIRED or (columns > 4 * rows and rows <= LARGEST_WALKED_ROWS):
        return _interior(around_differences(A, p, max(tol, FINEST)), moved)
    found = _climb(A, span.rank, p, tol, pairs=True)
    if found is None or (columns <= SOME_PAIRED and found.gap > max(tol, ROUGH)):
        return _interior(around_differences(A, p, max(tol, FINEST)), moved).better_of(found)
    return found


def _interior(result: FiniteResult, A: Floats) -> Solution:
    from scipy.linalg import solve_triangular

    triangle = result.factor[result.rows]
    strategy = solve_triangular(triangle, A[result.rows], lower=True, check_finite=False)
    return Solution(strategy, result.value, result.floor, INTERIOR)


def _climb(A: Floats, rank: int, p: float, tol: float, *, pairs: bool) -> Solution | None:
    """Multiplicative steps; None where floats give out."""
    count = A.shape[1]
    points = Pairs(count) if pairs else Columns(count)
    moved = A - A.mean(axis=1)[:, None] if pairs else A
    try:
        ascent = ascend(points, _rows(moved, p), rank, p, 0.9 * tol, limit=steps_for(min(A.shape)))
    except FloatingPointError:
        return None
    u = np.ones(len(A)) if p == 2 else ascent.row_weights
    if isinstance(points, Pairs):
        trace = _pair_trace(A, points.laplacian(ascent.weights), u)
        floor = floor_of(trace, ascent.weights, ascent.row_weights, p)
    else:
        floor = dual_floor(A, ascent.weights, np.sqrt(u), p)
    return Solution(ascent.strategy, ascent.value, floor, CLIMB)


def _rows(A: Floats, p: float) -> Rows:
    """The rows of A, in the smaller of its two dimensions."""
    few = len(A) <= A.shape[1]
    if p == 2:
        return TotalOfRows(A if few else np.asarray(np.linalg.qr(A, mode="r")))
    if few:
        return FewRows(A)
    span = span_of(A.T)
    B = np.ascontiguousarray(A[:, span.rows])
    return ManyRows(
        len(A),
        lambda u: (B.T * u) @ B,
        lambda X: np.sum((B @ X) ** 2, axis=1),
        np.ascontiguousarray(span.extension.T),
    )


def _pair_trace(A: Floats, laplacian: Floats, u: Floats) -> float:
    if len(A) <= max(A.shape[1], LARGEST_TALL):
        return pair_floor(A, laplacian, u)
    degrees = np.diag(laplacian)
    v = degrees / degrees.sum()
    moved = A - (A @ v)[:, None]
    trace = gram_floor((moved.T * u) @ moved, v, len(A) + 8)
    size = float(np.linalg.norm(np.sqrt(u)[:, None] * (np.abs(moved) @ v)[:, None]))
    center = float(np.linalg.norm(np.sqrt(u) * (moved @ v))) + gamma(sum(A.shape) + 16) * size
    return spread_floor(trace, center, v)
