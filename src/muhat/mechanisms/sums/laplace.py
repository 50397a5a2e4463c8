"""Independent Laplace noise on every coordinate, for pure privacy.

With scales b_j the release is ε-private if one record moves Σ_j |s_j|/b_j by at most ε.

    laplace         for a box with sides w: b_j ∝ w_j^{1/(p+1)}, which minimises ‖b‖_p
                    (p = 2: error √2·(Σ w_j^{2/3})^{3/2}/ε for the sum); for a simplex, where
                    Σ_j |s_j| ≤ 2, the same scale for every share (error √(8d)/ε)
    plain_laplace   the same scale for every coordinate: the textbook's, for comparison

Proof: docs/proofs/laplace.md.
"""

from __future__ import annotations

import numpy as np

from muhat.domains import Ball, Box, Simplex
from muhat.domains.vectors import Vector
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.calibration import calibrated
from muhat.mechanisms.sums.recipe import Protection, Recipe
from muhat.noise.law import LAWS


def laplace(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Laplace noise with the best scales for a box, or for the shares of a simplex."""
    if isinstance(body.shape, Simplex):
        shares = Body.from_origin(body.shape, p, weights)
        assert shares is not None
        return calibrated("laplace", LAWS["laplace"], shares, protection)
    if not isinstance(body.shape, Box):
        raise InvalidInput(
            "laplace with optimised scales is for a Box or a Simplex; use 'plain-laplace'."
        )
    scales = best_scales(body.shape.half_widths, p, weights)
    return calibrated("laplace", LAWS["laplace"], body.scaled(scales), protection)


def best_scales(half_widths: Vector, p: float, weights: Vector) -> Vector:
    """b_j ∝ w_j^{1/(p+1)} in the weighted sides w, up to a factor."""
    sides = weights * half_widths
    power = 0.0 if np.isinf(p) else 1 / (p + 1)
    return np.asarray((sides / sides.max()) ** power / weights)


def plain_laplace(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Laplace noise of one scale: 2·r·√d/ε for the sum over a ball of radius r."""
    if not isinstance(body.shape, Ball | Box):
        raise InvalidInput("plain-laplace is for a Ball or a Box.")
    scales = np.ones(body.shape.dim)
    return calibrated("plain-laplace", LAWS["laplace"], body.scaled(scales), protection)
