"""Noise shaped by the smallest ellipsoid around the sensitivity body.

For the sum of n records of K under substitution the body is K − K. With M the smallest
ellipsoid around it for the error in question (`muhat.ellipsoids`),

    gaussian         Σx + N(0, M/μ²)                             is μ-GDP,
    ellipsoid_norm   Σx + z, density ∝ exp(−ε·√(zᵀM⁻¹z))         is purely ε-private,
                     and with σ > ε in the place of ε (ε, δ)-private for some δ,

because one record moves the sum by s with sᵀM⁻¹s ≤ 1. (Nikolov–Tang 2024, Theorem 15, with the
difference body; for pure privacy the K-norm mechanism of Hardt–Talwar.) Proofs:
docs/proofs/gaussian.md, docs/proofs/norms.md.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from muhat.domains import Domain
from muhat.domains.vectors import Vector
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.calibration import SumMechanism, calibrated
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import LAWS
from muhat.noise.norm_at_delta import NormAtDelta, strength_at_delta
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors, Privacy

FEWEST_COLUMNS = 24
"""Of a box; in fewer columns its own noise is less than that of the ball around it."""


def gaussian(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Normal noise with the covariance that has the least ℓ_p error."""
    return calibrated("gaussian", LAWS["normal"], body, protection, p=p, weights=weights)


def shifted_gaussian(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Nikolov and Tang's Theorem 15 as it is printed, for comparison: normal noise 4·A·Aᵀ/μ².

    A·B₂ is the smallest ellipsoid around K, wherever it is centred, in which two records are 2
    apart. For a K that is not symmetric it errs more than `gaussian`, up to √2 times.
    """
    name = "shifted-gaussian"
    if body.is_clipped or protection.neighbors is not Neighbors.SUBSTITUTE:
        raise InvalidInput(f"{name} is for a public number of records of a domain.")
    block = body.shape.mapped_block(p, weights, body.shape.preimage())
    whole = replace(body, blocks=(block,))
    return calibrated(name, LAWS["normal"], whole, protection, p=p, weights=weights)


def ellipsoid_norm(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """The K-norm mechanism of the smallest ellipsoid: (d+1)·M/ε² is its covariance."""
    law = LAWS["euclidean-norm"]
    return calibrated("ellipsoid-norm", law, body, protection, p=p, weights=weights)


def ellipsoid_norm_delta(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """The same noise, as much of it as its own δ takes: less than ε does in 4 to 64 dimensions."""
    name, promise = "ellipsoid-norm-delta", protection.promise

    def pure(strength: Fraction) -> Recipe:
        scaled = replace(protection, promise=Strength(NoiseKind.PURE, strength**2))
        return calibrated(name, LAWS["euclidean-norm"], body, scaled, p=p, weights=weights)

    # Of what δ allows the rows decide: flat sets have fewer than dimensions, some lattices more.
    rows = pure(Fraction(1)).query.rows
    strength = strength_at_delta(rows, promise) if isinstance(promise, Privacy) else None
    if strength is None:
        raise InvalidInput(f"{name} is for approximate privacy, in 4 to 64 dimensions.")
    return replace(pure(strength), law=NormAtDelta(rows), protection=protection)


def _has_delta(domain: Domain, protection: Protection) -> bool:
    """For bodies of as many rows as dimensions, where some δ is allowed."""
    promise = protection.promise
    if domain.by_column and domain.dim < FEWEST_COLUMNS:
        return False
    solid = domain.is_symmetric and domain.log_half_volume() is not None
    return (
        (domain.is_round or solid)
        and isinstance(promise, Privacy)
        and strength_at_delta(domain.dim, promise) is not None
    )


GAUSSIAN = SumMechanism(
    "gaussian",
    "normal noise shaped by the smallest ellipsoid",
    "normal",
    gaussian,
    lambda domain, protection: True,
    beside_columns=True,
    beside_ball=True,
)
SHIFTED_GAUSSIAN = SumMechanism(
    "shifted-gaussian",
    "normal noise of twice the smallest ellipsoid around the records",
    "normal",
    shifted_gaussian,
    lambda domain, protection: False,
)
ELLIPSOID_NORM = SumMechanism(
    "ellipsoid-norm",
    "K-norm noise of the smallest ellipsoid",
    "euclidean-norm",
    ellipsoid_norm,
    lambda domain, protection: True,
    beside_ball=True,
)
ELLIPSOID_NORM_DELTA = SumMechanism(
    "ellipsoid-norm-delta",
    "K-norm noise of the smallest ellipsoid, at its own δ",
    NormAtDelta.name,
    ellipsoid_norm_delta,
    _has_delta,
)

ELLIPSOIDAL = {each.kind: each for each in (GAUSSIAN, ELLIPSOID_NORM)}
"""The mechanism of each kind of noise."""
