"""What Nikolov and Tang prove about Γ_p, checked on our numbers (NT24, arXiv:2301.13850)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import muhat as mh
from muhat.ellipsoids import smallest_ellipsoid

INF = math.inf


def factorisation_norm(A: np.ndarray) -> float:
    """min ‖L‖_F·‖R‖_{1→2} over A = L·R, by descent on R's Gram matrix: no ellipsoid anywhere.

    With columns of R of length 1, R = C·diag(1/‖c_j‖), the best L is A·R⁻¹.
    """
    n = A.shape[1]

    def error(entries: np.ndarray) -> float:
        C = entries.reshape(n, n)
        C = C / np.linalg.norm(C, axis=0)
        return float(np.sum(np.linalg.solve(C.T, A.T) ** 2))

    starts = [np.eye(n), np.eye(n) + 0.3 * np.tri(n)]
    found = [minimize(error, start.ravel(), options={"maxiter": 2_000}).fun for start in starts]
    return math.sqrt(min(found))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_theorem_19_gamma_of_the_columns_is_the_factorisation_norm(n):
    A = np.tri(n)
    gamma = mh.gamma(mh.Points(A.T), 2, "symmetric")
    assert gamma == pytest.approx(factorisation_norm(A), rel=1e-4)
    if n == 2:
        assert gamma == pytest.approx((1 + math.sqrt(5)) / 2, rel=1e-8)


@pytest.mark.parametrize("p", [2, 3, INF])
def test_theorem_22_primal_and_dual_meet(p):
    points = mh.Points(np.random.default_rng(20).normal(size=(15, 4)))
    for body in ("difference", "symmetric", "shifted"):
        assert smallest_ellipsoid(points, p, body).gap < 1e-8


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_theorem_6_moment_tensors_grow_as_the_paper_says(order, p):
    """Γ_p of the full tensor's error is of the order (d/ℓ)^{ℓ/p}, up to a factor of ℓ alone."""
    ratios = []
    for d in (2, 4, 8, 12):
        K = mh.MomentTensor(order=order, dim=d)
        e = smallest_ellipsoid(K, p, weights=K.tensor_weights(p))
        rate = (d / order) ** (order / p)
        assert e.floor / 2 >= 0.2 * rate
        ratios.append(e.value / rate)
    assert max(ratios) / min(ratios) < 2.5


def marginals(bits: int, ways: int) -> np.ndarray:
    """All ℓ-way marginal queries on {0, 1}^m, one record a row: products over sets of ℓ bits."""
    rows = []
    for record in itertools.product((0, 1), repeat=bits):
        answers = [
            all(record[i] == b for i, b in zip(chosen, values, strict=True))
            for chosen in itertools.combinations(range(bits), ways)
            for values in itertools.product((0, 1), repeat=ways)
        ]
        rows.append(answers)
    return np.array(rows, float)


@pytest.mark.parametrize("bits", [3, 4, 5])
def test_theorem_7_marginals_have_the_closed_form(bits):
    """One- and two-way marginals of m bits: Γ_2 = Σ_j C(m,j)·√(Σ_{k≥j} 2^{−k}·C(m−j, k−j))."""
    for ways in ([1], [2], [1, 2]):
        points = np.hstack([marginals(bits, k) for k in ways])
        found = mh.gamma(mh.Points(points), 2, "shifted")
        expected = sum(
            math.comb(bits, j)
            * math.sqrt(sum(2.0**-k * math.comb(bits - j, k - j) for k in ways if k >= j))
            for j in range(1, bits + 1)
        )
        assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("p", [2, 4, INF])
def test_lemma_25_a_covariance_that_dominates_the_widths_contains_the_body(p):
    """If √(θᵀCθ) ≥ c·w_K(θ) for all θ, K − K fits into √C/c, so √tr_{p/2}(C) ≥ c·Γ_p(K − K)."""
    rng = np.random.default_rng(21)
    points = rng.normal(size=(12, 3))
    gamma = mh.gamma(mh.Points(points), p)
    pairs = (points[:, None] - points[None]).reshape(-1, 3)
    for _ in range(50):
        root = rng.normal(size=(3, 3))
        C = root @ root.T
        # The largest c is where the ellipsoid of C/c² first touches a difference.
        c = 1 / math.sqrt(np.einsum("ij,jk,ik->i", pairs, np.linalg.inv(C), pairs).max())
        assert np.linalg.norm(np.sqrt(np.diag(C)), p) >= c * gamma * (1 - 1e-9)
        for theta in rng.normal(size=(20, 3)):
            width = np.ptp(points @ theta)
            assert math.sqrt(theta @ C @ theta) >= c * width * (1 - 1e-9)
