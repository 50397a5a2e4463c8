"""Mistakes of Nikolov and Tang 2024 (NT24), by numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from muhat.bounds.unbiased import paper_mean
from muhat.domains import Ball, Box, LpBall
from muhat.ellipsoids import gamma, smallest_ellipsoid
from muhat.planning import plan_mean
from muhat.privacy import ZCDP
from muhat.privacy.conversions import zcdp_epsilon
from muhat.privacy.gaussian_curve import gaussian_epsilon, gaussian_mu
from muhat.studies.mistakes import READ_AGAIN, Numbers, mistake
from muhat.workloads import marginals, matrix
from muhat.workloads.factorize import factorize


@mistake(
    "NT24",
    "Theorem 31, proof: c < 2",
    says="some neighbour moves the mean by c·w(θ)/n for every c < 2",
    means="for every c < 1/2, as Lemma 28 has it",
    sign="≥",
    source=READ_AGAIN,
)
def theorem_31_constant() -> Numbers:
    others = np.linspace(-1, 1, 2001)
    farthest = float(np.max(np.abs(others - 0.0)))
    return Numbers(farthest, 2 * 2.0, 0.5 * 2.0, "K = [−1, 1], first record 0, n times the shift")


@mistake(
    "NT24",
    "Theorem 31, proof: χ²",
    says="χ² = 2^(D₂) − 1",
    means="χ² = e^(D₂) − 1, as D₂ ≤ ε² is in nats",
    sign="=",
)
def theorem_31_divergence() -> Numbers:
    y = np.linspace(-12, 14, 200_001)
    density = np.exp(-(y**2) / 2) / math.sqrt(2 * math.pi)
    ratio = np.exp(y - 0.5)
    exact = float(np.trapezoid(density * (ratio - 1) ** 2, y))
    return Numbers(exact, 2.0**1 - 1, math.e - 1, "N(1, 1) against N(0, 1), D₂ = 1")


@mistake(
    "NT24",
    "Lemma 14(4)",
    says="tr_p(M) ≤ d^(1/q − 1/p)·tr_q(M) for p ≤ q",
    means="the exponent is 1/p − 1/q",
    sign="≤",
    source=READ_AGAIN,
)
def lemma_14() -> Numbers:
    diagonal, d = np.ones(4), 4
    one, two = float(diagonal.sum()), float(np.linalg.norm(diagonal))
    return Numbers(one, d**-0.5 * two, d**0.5 * two, "M = I, d = 4, p = 1, q = 2")


@mistake(
    "NT24",
    "Theorem 7",
    says="the error is at least c·d^(ℓ/2+ℓ/p)/(2√2·ℓ)^ℓ, whatever n",
    means="divided by n·ε (both numbers with c = 1)",
    sign="≥",
)
def theorem_7() -> Numbers:
    d, n, epsilon, delta = 16, 10**9, 0.1, 1e-12
    body = factorize(marginals((2,) * d, order=1), 2, "substitute").value
    exact = body / (n * gaussian_mu(epsilon, delta))
    printed = d / (2 * math.sqrt(2))
    return Numbers(
        exact, printed, printed / (n * epsilon), "Gaussian noise, d = 16, ℓ = 1, p = 2, n = 10⁹"
    )


@mistake(
    "NT24",
    "Definition 20, Theorem 22",
    says="Γ_p(K) is a supremum over the Borel regular measures on K",
    means="over those of mass 1, as a compact set of them must be",
    sign="=",
    kind="unsaid",
)
def theorem_22() -> Numbers:
    exact = gamma(Box([-1.0], [1.0]), body="shifted")
    points = np.array([-1.0, 1.0])

    def dual(masses: NDArray[np.float64]) -> float:
        return math.sqrt(float(masses @ points**2))

    heavy, fair = np.array([2.0, 2.0]), np.array([0.5, 0.5])
    return Numbers(exact, dual(heavy), dual(fair), "K = [−1, 1], mass 2 on each end")


@mistake(
    "NT24",
    "Section 2.4: W₂·B₂",
    says="(W₁+W₂)B₁ ⊆ W₁B₁ + W₂B₂ gives the triangle inequality",
    means="W₁B₁ + W₂B₁ does; Γ of W₂B₂ is too large",
    sign="≤",
    kind="loose",
    source=READ_AGAIN,
)
def section_2_4() -> Numbers:
    row = np.ones((1, 16))
    octahedron = gamma(row @ LpBall(p=1, radius=1.0, dim=16), body="shifted")
    round_one = gamma(row @ Ball(radius=1.0, dim=16), body="shifted")
    exact = factorize(matrix(row)).value
    return Numbers(exact, round_one, octahedron, "γ of W₁ + W₂, W₁ = 0, W₂ a row of 16 ones")


@mistake(
    "NT24",
    "Lemmas 25 and 27 in Theorem 31",
    says="the error is at least Γ(K)/(2n·√(e^(2ρ) − 1))",
    means="h ≤ w and one neighbour lose almost a factor 4: Γ(K−K)/(n·√V(ρ)), V(ρ) → 2ρ",
    sign="≥",
    kind="loose",
)
def theorem_31_loss() -> Numbers:
    domain, privacy = Ball(radius=1.0, dim=10), ZCDP(rho=0.01)
    certificate = plan_mean(domain=domain, n=1000, privacy=privacy).certificate
    assert certificate is not None
    ratio = certificate.ratio_to("unbiased", "every")
    assert ratio is not None
    floor = smallest_ellipsoid(domain, body="shifted").floor
    (paper,) = paper_mean(floor, n=1000, privacy=privacy)
    assert paper.value is not None
    best = certificate.error / ratio
    return Numbers(
        certificate.error, paper.value, best, "ball, d = 10, n = 1000, ρ = 0.01, every dataset"
    )


@mistake(
    "NT24",
    "Lemma 12",
    says="ρ-zCDP is (ρ + 2√(ρ·ln(1/δ)), δ)-DP",
    means="the best Rényi order gives less",
    sign="≤",
    kind="loose",
)
def lemma_12() -> Numbers:
    rho, delta = 0.1, 1e-6
    printed = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    exact = gaussian_epsilon(math.sqrt(2 * rho), delta)
    return Numbers(exact, printed, zcdp_epsilon(rho, delta), "ε of normal noise, ρ = 0.1, δ = 10⁻⁶")


@mistake(
    "NT24",
    "definition of marginals",
    says="the query of the bits β is ∏|x_i − β_i|",
    means="∏(1 − |x_i − β_i|): β = 1 should select x = 1",
    sign="=",
)
def marginal_queries() -> Numbers:
    bits = np.array([1, 1, 1, 0])
    exact = float(np.mean(bits == 1))
    printed, meant = float(np.mean(np.abs(bits - 1))), float(np.mean(1 - np.abs(bits - 1)))
    return Numbers(exact, printed, meant, "records 1, 1, 1, 0; the share with x = 1")


MISTAKES = (
    theorem_31_constant,
    theorem_31_divergence,
    lemma_14,
    theorem_7,
    theorem_22,
    marginal_queries,
    section_2_4,
    theorem_31_loss,
    lemma_12,
)
