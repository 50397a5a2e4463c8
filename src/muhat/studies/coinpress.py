"""COINPRESS, the mean of a Gaussian whose covariance is known (Biswas, Dong, Kamath, Ullman 2020).

A baseline for studies, idealised: sums in floats and noise of a seeded generator are **not private
in floating point**. Never release what it returns.

The mean is known to lie in a ball. Each round clips the records to a slightly larger ball,
publishes their noisy mean, and knows from the tails of a Gaussian how far from it the true mean can
be: the next, smaller ball. ρ-zCDP under substitution, n public.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from muhat import _check
from muhat._arrays import Floats

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
