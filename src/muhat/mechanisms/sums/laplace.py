"""Independent Laplace noise on every coordinate, for pure privacy.

With scales b_j the release is ε-private if one record moves Σ_j |s_j|/b_j by at most ε.

    laplace         for a box with sides w: b_j ∝ w_j^{1/(p+1)}, which minimises ‖b‖_p
                    (p = 2: error √2·(Σ w_j^{2/3})^{3/2}/ε for the sum); for a simplex, where
                    Σ_j |s_j| ≤ 2, the same scale for every part (error √(8d)/ε)
    plain_laplace   the same scale for every coordinate: the textbook's, for comparison

Proof: docs/proofs/laplace.md.
"""

from __future__ import annotations

import numpy as np

from muhat.domains.vectors import Vector
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.calibration import SumMechanism, calibrated
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection


def laplace(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Laplace noise with the best scales for a box, or for the parts of a simplex."""
    scales = body.shape.laplace_scales(p, weights)
    if scales is None:
        raise InvalidInput(
            "laplace with optimised scales is for a Box or a Simplex; use 'plain-laplace'."
        )
    plain = body if body.is_plain else Body.from_origin(body.shape, p, weights)
    assert plain is not None
    return calibrated("laplace", LAWS["laplace"], plain.scaled(scales), protection)


def plain_laplace(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Laplace noise of one scale: 2·r·√d/ε for the sum over a ball of radius r."""
    if not body.is_plain:
        raise InvalidInput("plain-laplace is for a Ball or a Box.")
    scales = np.ones(body.shape.dim)
    return calibrated("plain-laplace", LAWS["laplace"], body.scaled(scales), protection)


LAPLACE = SumMechanism(
    "laplace",
    "Laplace noise, the best scale for each column",
    "laplace",
    laplace,
    lambda domain, promise: domain.laplace_scales(2.0, np.ones(domain.dim)) is not None,
    beside_columns=True,
)
PLAIN_LAPLACE = SumMechanism(
    "plain-laplace",
    "Laplace noise of one scale",
    "laplace",
    plain_laplace,
    lambda domain, promise: False,
)
