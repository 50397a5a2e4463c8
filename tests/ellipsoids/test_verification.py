"""Proofs in floats: containment is never claimed falsely, floors never exceed the truth."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from muhat.ellipsoids.finite import around_columns
from muhat.ellipsoids.spans import Span, span_of
from muhat.ellipsoids.verification import (
    Unverified,
    dual_floor,
    largest_norm,
    spectral_norm_bound,
    value_of,
    whitening,
)

INF = np.inf


@dataclass(frozen=True, eq=False)
class Verified:
    """F of shape (d, r) with the set inside F·B₂, proved in the coordinates `rows`.

    F[rows] is lower triangular and ‖F[rows]⁻¹s[rows]‖ ≤ 1 for every s of the set, exactly; the
    other rows are the linear extension on the span. `scaling` is what F was multiplied by.
    """

    factor: np.ndarray
    rows: np.ndarray
    scaling: float


def verified(factor: np.ndarray, columns: np.ndarray, *, roundings: int = 0) -> Verified:
    """The ellipsoid factor·B₂, rescaled so that it provably contains the columns.

    `factor` has shape (d, k), `columns` (d, N). A factor that is too small is enlarged, one that
    is too large is shrunk; one that is not finite, singular on the span of the columns or outside
    that span raises Unverified.

    """
    factor, columns = np.asarray(factor, float), np.asarray(columns, float)
    if factor.ndim != 2 or columns.ndim != 2 or len(factor) != len(columns):
        raise Unverified("factor and columns must be matrices with as many rows.")
    if not np.isfinite(factor).all() or not np.isfinite(columns).all():
        raise Unverified("factor and columns must be finite.")
    span = span_of(columns)
    if span.rank == 0:
        return Verified(np.zeros((len(columns), 0)), span.rows, 0.0)
    with np.errstate(all="ignore"):
        # Powers of two, so that nothing overflows and nothing is rounded.
        outer, inner = power_of_two(factor), power_of_two(columns)
        check_span(factor / outer, span)
        found = whitening((factor / outer)[span.rows], span)
        radius = largest_norm(found.matrix, columns / inner, roundings)
        scaled, scaling = found.scaled_factor(radius)
        return Verified(scaled * inner, span.rows, scaling * (inner / outer))


def power_of_two(values: np.ndarray) -> float:
    largest = float(np.abs(values).max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0


def verified_matrix(matrix: np.ndarray, columns: np.ndarray) -> Verified:
    """As `verified`, for M itself: it must be symmetric and positive definite on the span."""
    M, columns = np.asarray(matrix, float), np.asarray(columns, float)
    if M.ndim != 2 or M.shape != (len(columns), len(columns)) or not np.isfinite(M).all():
        raise Unverified("the matrix must be finite, with a row and a column per coordinate.")
    if not np.allclose(M, M.T, rtol=1e-9, atol=0):
        raise Unverified("the matrix is not symmetric.")
    sizes, vectors = np.linalg.eigh(M)
    if sizes[0] < -1e-12 * max(sizes[-1], 0.0) or not sizes[-1] > 0:
        raise Unverified("the matrix is not positive semidefinite.")
    keep = sizes > 1e-13 * sizes[-1]
    return verified(vectors[:, keep] * np.sqrt(sizes[keep]), columns)


def check_span(factor: np.ndarray, span: Span) -> None:
    """Raise Unverified unless the factor's columns lie in the span."""
    if span.rank == span.dim:
        return
    sizes = np.sqrt(np.sum(factor**2, axis=1))
    drift = np.abs(factor - span.extension @ factor[span.rows]).max(axis=1)
    reach = np.abs(span.extension) @ sizes[span.rows]
    if not (drift <= 1e-7 * reach).all():
        raise Unverified("the factor leaves the span of the set.")


def exact_reach(triangle, columns):
    """max ‖L⁻¹s‖² over the columns, in rationals."""
    L = [[Fraction(x) for x in row] for row in triangle.tolist()]
    largest = Fraction(0)
    for column in columns.T.tolist():
        y: list[Fraction] = []
        for i, row in enumerate(L):
            y.append((Fraction(column[i]) - sum(row[j] * y[j] for j in range(i))) / row[i])
        largest = max(largest, sum(value * value for value in y))
    return largest


def is_proved(result, columns):
    """The claim of `Verified`, checked in exact arithmetic."""
    triangle = result.factor[result.rows]
    assert np.array_equal(triangle, np.tril(triangle))
    return exact_reach(triangle, columns[result.rows]) <= 1


def instance(seed, d=4, N=12):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(d, N)) * 10.0 ** rng.uniform(-3, 3, (d, 1))


CORRUPTIONS = {
    "scaled down": lambda M, rng: M * 1e-9,
    "scaled up": lambda M, rng: M * 1e9,
    "a little small": lambda M, rng: M * (1 - 1e-15),
    "perturbed": lambda M, rng: M * (1 + 1e-3 * _symmetric(rng, len(M))),
    "barely perturbed": lambda M, rng: M * (1 + 1e-15 * _symmetric(rng, len(M))),
    "one direction shrunk": lambda M, rng: _shrunk(M, rng, 0.5),
    "one direction shrunk far": lambda M, rng: _shrunk(M, rng, 1e-6),
    "one direction gone": lambda M, rng: _shrunk(M, rng, 0.0),
    "one coordinate shrunk": lambda M, rng: _one_coordinate(M, 1e-4),
    "replaced by the identity": lambda M, rng: np.eye(len(M)),
    "zero": lambda M, rng: 0 * M,
    "negative": lambda M, rng: -M,
    "indefinite": lambda M, rng: M - np.trace(M) / len(M) * np.eye(len(M)),
    "not symmetric": lambda M, rng: M + np.triu(np.abs(M), 1),
    "a NaN": lambda M, rng: np.where(np.eye(len(M)) == 1, np.nan, M),
    "an infinity": lambda M, rng: np.where(np.eye(len(M)) == 1, INF, M),
    "too few rows": lambda M, rng: M[:-1, :-1],
    "a vector": lambda M, rng: np.diag(M),
    "denormal": lambda M, rng: M * 1e-315,
}


def _symmetric(rng, n):
    A = rng.normal(size=(n, n))
    return A + A.T


def _shrunk(M, rng, factor):
    v = rng.normal(size=len(M))
    v /= np.sqrt(v @ np.linalg.solve(M, v))
    return M - (1 - factor) * np.outer(v, v)


def _one_coordinate(M, factor):
    scale = np.ones(len(M))
    scale[0] = factor
    return scale[:, None] * M * scale


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("seed", range(5))
def test_a_corrupted_matrix_is_repaired_or_refused(name, seed):
    rng = np.random.default_rng(100 + seed)
    columns = instance(seed)
    good = around_columns(columns, [2, 4, INF][seed % 3])
    M = good.factor @ good.factor.T
    try:
        result = verified_matrix(CORRUPTIONS[name](M, rng), columns)
    except Unverified:
        assert name not in ("scaled down", "scaled up", "a little small", "barely perturbed")
        return
    assert is_proved(result, columns)


@pytest.mark.parametrize("seed", range(20))
def test_a_corrupted_factor_is_repaired_or_refused(seed):
    rng = np.random.default_rng(seed)
    columns = instance(seed)
    good = around_columns(columns, [2, 4, INF][seed % 3]).factor
    worse = [
        good * 1e-5,
        good * (1 + 1e-2 * rng.normal(size=good.shape)),
        good @ np.diag([1, 1, 1, 1e-7]),
        good @ rng.normal(size=(4, 6)),
        good * 1e250,
    ]
    for factor in worse:
        result = verified(factor, columns)
        assert is_proved(result, columns)
    singular = good.copy()
    singular[:, 0] = singular[:, 1]
    for factor in (singular[:, 1:], good * np.nan, good[:, :2], good[:2], 0 * good):
        with pytest.raises(Unverified):
            verified(factor, columns)


def test_an_honest_factor_loses_almost_nothing():
    for seed in range(10):
        columns = instance(seed)
        good = around_columns(columns, 2)
        again = verified(good.factor, columns)
        assert again.scaling == pytest.approx(1, abs=1e-12)
        assert is_proved(again, columns)


def test_a_factor_of_another_span_is_refused():
    rng = np.random.default_rng(1)
    basis = rng.normal(size=(4, 2))
    columns = basis @ rng.normal(size=(2, 9))
    assert verified(basis, columns).factor.shape == (4, 2)
    with pytest.raises(Unverified, match="span"):
        verified(basis + 1e-3 * rng.normal(size=(4, 2)), columns)
    with pytest.raises(Unverified):
        verified(basis[:, :1], columns)
    with pytest.raises(Unverified, match="span"):
        verified(rng.normal(size=(4, 4)), columns)
    nothing = verified(basis, np.zeros((4, 3)))
    assert nothing.factor.shape == (4, 0)


def test_a_hopelessly_conditioned_factor_is_refused_or_proved():
    rng = np.random.default_rng(2)
    for power in range(2, 40):
        factor = (
            rng.normal(size=(5, 5)) @ np.diag([1, 1, 1, 1, 2.0**-power]) @ rng.normal(size=(5, 5))
        )
        columns = rng.normal(size=(5, 7))
        try:
            result = verified(factor, columns)
        except Unverified:
            continue
        assert is_proved(result, columns)


def test_the_margin_is_needed():
    """Without the error terms the bound is at times below the truth: the proof is not idle."""
    below = 0
    for seed in range(60):
        columns = instance(seed, 5, 30)
        white = whitening(np.random.default_rng(seed).normal(size=(5, 5)), span_of(columns))
        bare = np.sqrt(np.sum((white.matrix @ columns) ** 2, axis=0)).max()
        truth = exact_reach(white.triangle, columns)
        proved = largest_norm(white.matrix, columns) / (1 - white.defect)
        assert Fraction(proved) ** 2 >= truth
        below += Fraction(float(bare)) ** 2 < truth
    assert below > 0


@pytest.mark.parametrize("p", [2, 2.5, 7, INF])
def test_values_are_rounded_up_and_floors_down(p):
    for seed in range(6):
        columns = instance(seed, 3, 6)
        rng = np.random.default_rng(seed)
        weights, diagonal = rng.random(6), rng.random(3)
        with mpmath.workdps(50):
            order = mpmath.mpf(p) / 2
            factor = mpmath.matrix(columns.tolist())
            squares = [sum(factor[i, j] ** 2 for j in range(6)) for i in range(3)]
            size = _norm(squares, order)
            assert value_of(columns, p) >= mpmath.sqrt(size)
            assert value_of(columns, p) <= mpmath.sqrt(size) * (1 + mpmath.mpf(10) ** -13)
            for shifted in (False, True):
                truth = _dual_value(columns, weights, diagonal, p, shifted)
                floor = dual_floor(columns, weights, diagonal, p, shifted=shifted)
                assert truth * (1 - mpmath.mpf(10) ** -12) <= floor <= truth


def _norm(values, order):
    if order == INF:
        return max(values)
    return sum(value**order for value in values) ** (1 / mpmath.mpf(order))


def _dual_value(columns, weights, diagonal, p, shifted):
    """tr((DΣD)^½)/(‖D²‖_q Σw)^½ in 50 digits."""
    w = [mpmath.mpf(x) for x in weights]
    Y = mpmath.matrix(columns.tolist())
    d, N = Y.rows, Y.cols
    mean = [sum(Y[i, k] * w[k] for k in range(N)) / sum(w) if shifted else 0 for i in range(d)]
    A = mpmath.matrix(d, N)
    for i in range(d):
        for k in range(N):
            A[i, k] = mpmath.mpf(diagonal[i]) * (Y[i, k] - mean[i]) * mpmath.sqrt(w[k])
    total = sum(mpmath.svd_r(A, compute_uv=False))
    order = INF if p == 2 else 1 if p == INF else mpmath.mpf(p) / (mpmath.mpf(p) - 2)
    size = _norm([mpmath.mpf(x) ** 2 for x in diagonal], order)
    return total / mpmath.sqrt(size * sum(w))


def test_a_floor_needs_nothing_of_its_weights():
    columns = instance(3)
    best = around_columns(columns, 4)
    rng = np.random.default_rng(0)
    for _ in range(100):
        weights = rng.random(12) ** 4 * (rng.random(12) < 0.5)
        assert dual_floor(columns, weights, rng.random(4), 4) <= best.value
    assert dual_floor(columns, np.zeros(12), np.ones(4), 4) == 0
    assert dual_floor(columns, np.full(12, np.nan), np.ones(4), 4) == 0
    assert dual_floor(columns, np.ones(12), np.zeros(4), 4) == 0
    assert dual_floor(columns, np.ones(12), -np.ones(4), 4) == 0


def test_spectral_norms_are_bounded_from_above():
    rng = np.random.default_rng(4)
    for shape in [(1, 1), (3, 7), (8, 2), (6, 6)]:
        A = rng.normal(size=shape)
        with mpmath.workdps(40):
            truth = max(mpmath.svd_r(mpmath.matrix(A.tolist()), compute_uv=False))
        assert truth <= spectral_norm_bound(A) <= truth * (1 + mpmath.mpf(10) ** -12)
