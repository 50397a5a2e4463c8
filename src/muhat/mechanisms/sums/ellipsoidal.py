"""Noise shaped by the smallest ellipsoid around the sensitivity body.

For the sum of n records of K under substitution the body is K − K. With M the smallest
ellipsoid around it for the error in question (`muhat.ellipsoids`),

    gaussian         Σx + N(0, M/μ²)                             is μ-GDP,
    ellipsoid_norm   Σx + z, density ∝ exp(−ε·√(zᵀM⁻¹z))         is purely ε-private,

because one record moves the sum by s with sᵀM⁻¹s ≤ 1. (Nikolov–Tang 2024, Theorem 15, with the
difference body; for pure privacy the K-norm mechanism of Hardt–Talwar.) Proofs:
docs/proofs/gaussian.md, docs/proofs/norms.md.
"""

from __future__ import annotations

from muhat.domains.vectors import Vector
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.calibration import SumMechanism, calibrated
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection


def gaussian(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Normal noise with the covariance that has the least ℓ_p error."""
    return calibrated("gaussian", LAWS["normal"], body, protection, p=p, weights=weights)


def ellipsoid_norm(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """The K-norm mechanism of the smallest ellipsoid: (d+1)·M/ε² is its covariance."""
    law = LAWS["euclidean-norm"]
    return calibrated("ellipsoid-norm", law, body, protection, p=p, weights=weights)


GAUSSIAN = SumMechanism(
    "gaussian",
    "normal noise shaped by the smallest ellipsoid",
    "normal",
    gaussian,
    lambda domain, promise: True,
    beside_columns=True,
    beside_ball=True,
)
ELLIPSOID_NORM = SumMechanism(
    "ellipsoid-norm",
    "K-norm noise of the smallest ellipsoid",
    "euclidean-norm",
    ellipsoid_norm,
    lambda domain, promise: True,
    beside_ball=True,
)

ELLIPSOIDAL = {each.kind: each for each in (GAUSSIAN, ELLIPSOID_NORM)}
"""The mechanism of each kind of noise."""
