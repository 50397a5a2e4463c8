"""COINPRESS when the covariance is unknown: learn it first, then the mean of the whitened records.

A baseline for studies, idealised: **not private in floating point**, as in `coinpress`.

A matrix A is known for which the covariance AΣAᵀ of the transformed records is at most the
identity. Each round clips them, publishes their noisy second moment, and divides by its root,
widened by what sampling and noise may hide: the next A, under which the records are rounder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from muhat import _check
from muhat._arrays import Floats
from muhat.studies.coinpress import coinpress_mean, gaussian_radius, shares


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
