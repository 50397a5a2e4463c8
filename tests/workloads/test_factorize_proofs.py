"""The proofs behind a factorisation: exact arithmetic as the judge, and planted errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from muhat.ellipsoids.verification import Unverified
from muhat.privacy import Neighbors
from muhat.workloads import kron, matrix, prefix, ranges, stack
from muhat.workloads.assembly import assemble, helmert
from muhat.workloads.gram_factors import gram_roundings, weighted_gram
from muhat.workloads.proofs import (
    of_unit_sensitivity,
    right_inverse,
    row_lengths,
    sensitivity,
    squared_rows,
    value_of,
)


def gaussian(rows, columns, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns))


def squared_length(column):
    return sum(Fraction(float(entry)) ** 2 for entry in column)


def exact_solution(matrix, right):
    """X with X·matrix = right, in rationals; matrix square."""
    n = len(matrix)
    rows = [
        [Fraction(float(matrix[j, i])) for j in range(n)]
        + [Fraction(float(right[j, i])) for j in range(len(right))]
        for i in range(n)
    ]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for r in range(n):
            if r != i and rows[r][i]:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [[rows[i][n + j] for i in range(n)] for j in range(len(right))]


@pytest.mark.parametrize("seed", range(20))
def test_a_strategy_of_unit_sensitivity_is_so_in_exact_arithmetic(seed):
    R = gaussian(4, 9, seed) * 10.0 ** gaussian(1, 1, seed + 50)[0, 0]
    single, apart = of_unit_sensitivity(R, pairs=False), of_unit_sensitivity(R, pairs=True)
    longest = max(squared_length(column) for column in single.T)
    farthest = max(
        sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(x, y, strict=True))
        for x in apart.T
        for y in apart.T
    )
    assert 1 - Fraction(1, 10**12) < longest <= 1
    assert 1 - Fraction(1, 10**12) < farthest <= 1


def test_a_strategy_that_is_too_sensitive_is_repaired():
    R = np.eye(4)
    R[2] *= 1 + 1e-9
    assert sensitivity(R, pairs=False) > 1 + 5e-10
    assert sensitivity(of_unit_sensitivity(R, pairs=False), pairs=False) <= 1


def test_many_columns_are_never_compared_in_full():
    R = np.ones((1, 9000))
    assert sensitivity(R, pairs=True) == pytest.approx(2)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("thin", [1.0, 1e-4])
def test_standard_deviations_are_above_the_exact_ones(seed, thin):
    A = gaussian(5, 4, seed)
    R = gaussian(4, 4, seed + 100)
    R[0] *= thin
    f = assemble(matrix(A), 2, Neighbors.ADD_REMOVE, R, 0.0, "planted")
    exact = exact_solution(f.strategy, A)
    for deviation, row in zip(f.standard_deviations, exact, strict=True):
        square = sum(entry**2 for entry in row)
        assert square <= Fraction(float(deviation)) ** 2 <= square * (1 + Fraction(1, 10**6))
    total = sum(entry**2 for row in exact for entry in row)
    assert Fraction(f.value) ** 2 >= total


@pytest.mark.parametrize("seed", range(4))
def test_under_substitution_they_are_above_the_exact_ones_too(seed):
    A, N = gaussian(3, 5, seed), 5
    f = assemble(matrix(A), 2, Neighbors.SUBSTITUTE, gaussian(4, N, seed + 9), 0.0, "planted")
    joint = exact_solution(np.vstack([f.strategy, np.ones((1, N))]), A)
    for deviation, offset, row in zip(f.standard_deviations, f.offset, joint, strict=True):
        assert sum(entry**2 for entry in row[:-1]) <= Fraction(float(deviation)) ** 2
        assert abs(float(row[-1]) - offset) < 1e-12


def test_a_singular_strategy_is_not_verified():
    for R in (np.ones((2, 2)), np.ones((2, 3)), np.ones((3, 2)), np.zeros((2, 3))):
        with pytest.raises(Unverified):
            right_inverse(R)


def test_a_thin_strategy_is_widened_to_where_the_rows_are():
    A = gaussian(3, 6)
    R = np.diag([1.0, 1.0, 1e-13]) @ A
    f = assemble(matrix(A), 2, Neighbors.ADD_REMOVE, R, 0.0, "planted")
    assert np.linalg.cond(f.strategy) < 1e7
    assert np.abs(f.decoder @ f.strategy - A).max() < 1e-11


def test_helmert_s_rows_are_orthonormal_and_add_up_to_nothing():
    H = helmert(6)
    assert np.allclose(H @ H.T, np.eye(5))
    assert np.allclose(H.sum(axis=1), 0)


@pytest.mark.parametrize(
    "W",
    [
        prefix(7),
        ranges(7),
        matrix(gaussian(20, 7)),
        stack([ranges(7), prefix(7)], [0.3, 2]),
        -2 * ranges(7),
        kron(matrix([[1.0, -1.0]]), prefix(5)),
    ],
)
def test_row_lengths_and_weighted_grams_agree_with_the_dense_matrix(W):
    A, N = W.dense(), W.shape[1]
    Y = gaussian(N, 4, 1)
    exact = np.linalg.norm(A @ Y, axis=1)
    assert np.allclose(np.sqrt(squared_rows(W, Y)), exact)
    bounds = row_lengths(W, Y)
    assert (bounds >= exact * (1 - 1e-15)).all()
    assert bounds == pytest.approx(exact, rel=1e-10, abs=1e-10)
    u = np.abs(gaussian(len(A), 1, 2))[:, 0]
    assert np.allclose(weighted_gram(W, u), (A.T * u) @ A)


def test_roundings_of_gram_matrices_are_counted():
    assert gram_roundings(ranges(9)) == 0
    assert gram_roundings(matrix([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])) == 0
    assert gram_roundings(matrix([[0.5], [0.25]])) == 4
    assert gram_roundings(stack([ranges(3), prefix(3)])) == 5
    assert gram_roundings(3 * ranges(9)) == 3
    assert gram_roundings(kron(ranges(3), prefix(3))) == 2
    assert gram_roundings(prefix(3) + prefix(3)) > 6
    assert gram_roundings(ranges(9), weighted=True) == 20
    assert gram_roundings(matrix([[1.0], [2.0]]), weighted=True) >= 2


def test_values_are_rounded_up():
    deviations = np.array([0.1] * 10)
    assert Fraction(value_of(deviations, 2)) ** 2 >= 10 * Fraction(0.1) ** 2
    assert value_of(deviations, np.inf) >= 0.1
