"""Mistakes of Huang, Liang and Yi 2021 (HLY21) about means, by numbers."""

from __future__ import annotations

import math

import numpy as np

from muhat.studies.mistakes import READ_AGAIN, Numbers, mistake


@mistake(
    "HLY21",
    "Lemma 3, proof",
    says="the noise has variance 2C²/(ρn)",
    means="2C²/(ρn²), as in (2)",
    sign="=",
    source=READ_AGAIN,
)
def lemma_3() -> Numbers:
    n, rho, clip = 1000, 0.5, 1.0
    exact = (2 * clip / n) ** 2 / (2 * rho)
    return Numbers(
        exact, 2 * clip**2 / (rho * n), 2 * clip**2 / (rho * n**2), "n = 1000, ρ = 0.5, C = 1"
    )


@mistake(
    "HLY21",
    "introduction: GS",
    says="the mean has sensitivity √(du)/n",
    means="√d·u/n",
    sign="=",
    source=READ_AGAIN,
)
def sensitivity() -> Numbers:
    n, d, u = 1000, 4, 100
    exact = float(np.linalg.norm(np.full(d, u) - np.zeros(d))) / n
    return Numbers(exact, math.sqrt(d * u) / n, math.sqrt(d) * u / n, "n = 1000, d = 4, u = 100")


@mistake(
    "HLY21",
    "Section 3.2: the best rank",
    says="clip √(2d/ρ) records, though the mean has 3ρ/4",
    means="√(2d/ρ'), ρ' = 3ρ/4",
    sign="≤",
    kind="loose",
)
def best_rank() -> Numbers:
    d, rho, n = 100, 0.5, 1000
    norms = np.linspace(0, 1, n)
    noise = math.sqrt(2 * d / (0.75 * rho))

    def error(clipped: float) -> float:
        radius = norms[n - 1 - math.floor(clipped)]
        return float(np.maximum(norms - radius, 0).sum() + radius * noise) / n

    least = min(error(clipped) for clipped in range(n))
    return Numbers(
        least,
        error(math.sqrt(2 * d / rho)),
        error(noise),
        "least error, d = 100, ρ = 0.5, n = 1000",
    )


@mistake(
    "HLY21",
    "Section 3.3: rotated records",
    says="PrivQuant searches the coordinates after the rotation HD, with no new domain given",
    means="they lie in ±d·u, which Theorem 3's log(du) pays for",
    sign="≤",
    kind="unsaid",
)
def rotated() -> Numbers:
    two = np.array([[1, 1], [1, -1]])
    hadamard = np.kron(two, two)
    turned = hadamard @ np.ones(4)
    return Numbers(
        float(np.abs(turned).max()), 1.0, 4.0, "d = 4, x = (u, u, u, u); largest coordinate ÷ u"
    )


MISTAKES = (lemma_3, sensitivity, best_rank, rotated)
