"""COINPRESS, the mean of a Gaussian whose covariance is known (Biswas, Dong, Kamath, Ullman 2020).

A baseline for studies, idealised: sums in floats and noise of a seeded generator are **not private
in floating point**. Never release what it returns.

The mean is known to lie in a ball. Each round clips the records to a slightly larger ball,
publishes their noisy mean, and knows from the tails of a Gaussian how far from it the true mean can
be: the next, smaller ball. ρ-zCDP under substitution, n public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from muhat import _check
from muhat._arrays import Floats


@dataclass(frozen=True)
class CovarianceEstimate:
    """Σ̂, and the last matrix A with AΣAᵀ at most the identity; both of shape (d, d)."""

    covariance: Floats
    whitening: Floats


def coinpress_covariance(
    rows: Floats, rho: float, *, largest: float, rounds: int, generator: Generator
) -> CovarianceEstimate:
    """The covariance of rows of shape (n, d) with mean 0, whose eigenvalues are at most `largest`².

    The noise is a symmetric matrix with independent entries; two records of norm γ move the second
    moment by at most √2·γ²/n in Frobenius norm. Its expected spectral norm and that of the
    sampling error stand in for the tails of the paper's proof, and eigenvalues above the known
    bound 1 count as 1 (in many dimensions all are, and A would only grow wider): both make a
    better baseline.
    """
    n, dim = rows.shape
    whole = _check.positive("rho", rho)
    whitening = np.eye(dim) / _check.positive("largest", largest)
    clip = gaussian_radius(dim)
    sampling = 2 * math.sqrt(dim / n) + dim / n
    for share in shares(rounds):
        deviation = clip**2 / (n * math.sqrt(share * whole))
        inverse = np.linalg.inv(whitening)
        moment = _clipped_moment(rows @ whitening.T, clip)
        moment += deviation * _symmetric_noise(dim, generator)
        covariance = inverse @ moment @ inverse.T
        widened = moment + (sampling + 2 * math.sqrt(dim) * deviation) * np.eye(dim)
        whitening = _inverse_root(widened, min(sampling, 1.0)) @ whitening
    return CovarianceEstimate(covariance, whitening)


def coinpress_whitened_mean(
    rows: Floats,
    rho: float,
    *,
    radius: float,
    largest: float,
    covariance_rounds: int,
    rounds: int = 10,
    generator: Generator,
) -> Floats:
    """The mean of rows of unknown covariance: half of ρ for the covariance, half for the mean.

    The covariance is that around 0, as in the experiments with centred data; a mean far from 0
    makes it larger and the result noisier, not wrong.
    """
    estimate = coinpress_covariance(
        rows, rho / 2, largest=largest, rounds=covariance_rounds, generator=generator
    )
    whitening = estimate.whitening
    farthest = radius * float(np.linalg.norm(whitening, 2))
    mean = coinpress_mean(
        rows @ whitening.T, rho / 2, radius=farthest, rounds=rounds, generator=generator
    )
    return np.asarray(np.linalg.solve(whitening, mean))


def _clipped_moment(rows: Floats, radius: float) -> Floats:
    norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", rows, rows), np.finfo(float).tiny))
    clipped = rows * np.minimum(1.0, radius / norms)[:, None]
    return np.asarray(clipped.T @ clipped / len(rows))


def _symmetric_noise(dim: int, generator: Generator) -> Floats:
    upper = np.triu(generator.standard_normal((dim, dim)))
    return np.asarray(upper + np.triu(upper, 1).T)


def _inverse_root(matrix: Floats, least: float) -> Floats:
    """matrix^(−½) with the eigenvalues brought between `least` and 1."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.sqrt(np.clip(values, least, 1.0))) @ vectors.T)


TAIL = 0.01
"""The probability with which each bound on a Gaussian may fail.

The paper's proof takes TAIL/n for the records; its experiments, and those that compare with them,
do not.
"""

DEVIATIONS = 3.0
"""Of a standard normal variable: beyond which its tail is ignored."""


def coinpress_mean(
    rows: Floats,
    rho: float,
    *,
    radius: float,
    rounds: int,
    generator: Generator,
    scale: float = 1.0,
) -> Floats:
    """The mean of rows of shape (n, d), in so many rounds, that starts with a ball around 0.

    `radius` bounds the norm of the mean, and `scale`² every eigenvalue of the covariance; both are
    public. If the second is false the clipping is too close, and the result biased.

    >>> rows = np.random.default_rng(0).standard_normal((4000, 8)) + 10
    >>> mean = coinpress_mean(
    ...     rows, 0.5, radius=1e3, rounds=4, generator=np.random.default_rng(1)
    ... )
    >>> bool(np.linalg.norm(mean - rows.mean(axis=0)) < 0.02)
    True
    """
    unit = _check.positive("scale", scale)
    whole = _check.positive("rho", rho)
    within = _check.positive("radius", radius) / unit
    n, dim = rows.shape
    center = np.zeros(dim)
    records = rows if unit == 1.0 else rows / unit
    norms_squared = np.einsum("ij,ij->i", records, records)
    tail = gaussian_radius(dim)
    for share in shares(rounds):
        clip = clip_radius(within, tail)
        deviation = 2 * clip / (n * math.sqrt(2 * share * whole))
        exact = _clipped_mean(records, norms_squared, center, clip)
        center = exact + deviation * generator.standard_normal(dim)
        within = tail * math.sqrt(1 / n + deviation**2)
    return np.asarray(unit * center)


def shares(rounds: int) -> list[float]:
    """The parts of ρ that the rounds take: three quarters for the last, the rest shared equally.

    >>> shares(3)
    [0.125, 0.125, 0.75]
    """
    before = _check.count("rounds", rounds) - 1
    return [0.25 / before] * before + [0.75] if before else [1.0]


def gaussian_radius(dim: int, tail: float = TAIL) -> float:
    """A standard normal vector is longer with at most this probability.

    √(d + 2√(d·ln(1/β)) + 2·ln(1/β)), Laurent and Massart's bound.
    """
    log = -math.log(tail)
    return math.sqrt(dim + 2 * math.sqrt(dim * log) + 2 * log)


def clip_radius(within: float, tail: float) -> float:
    """How far from the centre of the ball a record can be, if the mean is in the ball.

    ‖x − c‖² = ‖x − μ‖² + 2⟨x − μ, μ − c⟩ + ‖μ − c‖², and the product in the middle is a normal
    variable of deviation ‖μ − c‖. The triangle inequality is sharper in few dimensions.
    """
    by_product = math.sqrt(tail**2 + 2 * DEVIATIONS * within + within**2)
    return min(by_product, tail + within)


def _clipped_mean(rows: Floats, norms_squared: Floats, center: Floats, radius: float) -> Floats:
    """The mean of the rows clipped to a ball: two products with a vector, and no copy of the rows.

    The differences of squares cancel, which a baseline can bear: rows of norm 10⁵ lose 10⁻⁶.
    """
    distances_squared = norms_squared - 2 * (rows @ center) + center @ center
    distances = np.sqrt(np.maximum(distances_squared, np.finfo(float).tiny))
    kept = np.minimum(1.0, radius / distances)
    return np.asarray(center + (kept @ rows - kept.sum() * center) / len(rows))
