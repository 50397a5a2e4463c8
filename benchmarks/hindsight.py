"""The best ball in hindsight: how little error clipping and normal noise could have.

Not private: it looks at the records. It says what an estimator that must find the ball still pays.
"""

from __future__ import annotations

import math

import numpy as np

from muhat import _check
from muhat._arrays import Floats

RANKS = 48
"""How many radii are tried: those that leave 1, … , half of the records outside."""


def hindsight_error(rows: Floats, rho: float) -> float:
    """The least root mean square ℓ₂ error over balls around the exact mean, for rows (n, d).

    bias(r)² + d·(2r/n)²/(2ρ): the bias of clipping to radius r, and the noise of ρ-zCDP under
    substitution, with nothing spent on finding centre and radius.

    >>> rows = np.array([[-1.0], [1.0]] * 500)
    >>> round(hindsight_error(rows, 0.5), 6)  # nothing is clipped: 2/n
    0.002
    """
    n, dim = rows.shape
    centred = rows - rows.mean(axis=0)
    distances = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    outside = np.unique(np.geomspace(1, max(n // 2, 1), RANKS).astype(int))
    radii = np.sort(distances)[n - outside]
    kept = np.minimum(1.0, radii[:, None] / np.maximum(distances, np.finfo(float).tiny))
    bias_squared = np.sum((kept @ centred / n) ** 2, axis=1)
    noise_squared = dim * (2 * radii / n) ** 2 / (2 * _check.positive("rho", rho))
    return math.sqrt(float(np.min(bias_squared + noise_squared)))
