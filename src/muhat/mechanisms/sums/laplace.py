"""Independent Laplace noise on every coordinate, for pure privacy.

With scales b_j the release is ε-private if one record moves Σ_j |s_j|/b_j by at most ε.

    laplace         for a box with sides w: b_j ∝ w_j^{1/(p+1)}, which minimises ‖b‖_p
                    (p = 2: error √2·(Σ w_j^{2/3})^{3/2}/ε for the sum); for a simplex the same
                    scale for every part but the one of the largest weight, and then onto the
                    public total (error √(8(d − 1))/ε at equal weights); for an ℓ₁ ball of
                    half-widths h, b = 2h/ε, which is its own K-norm noise; the parts of a product
                    of these share ε
    plain_laplace   the same scale for every coordinate: the textbook's, for comparison

Proof: docs/proofs/laplace.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muhat.domains.vectors import Vector
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.calibration import SumMechanism, calibrated
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection


def laplace(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Laplace noise with the best scales, where one record moves a known ℓ₁ norm."""
    # Records that are clipped to another domain have the integers of that one.
    if not body.is_clipped:
        parts = zip(body.shape.factors(), body.blocks, strict=True)
        blocks = [
            K.l1_block(block, p, weights[at], protection.neighbors) for (K, at), block in parts
        ]
        body = replace(body, blocks=tuple(blocks))
    return calibrated("laplace", LAWS["laplace"], body, protection, p=p, weights=weights)


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
    lambda domain, protection: domain.has_l1,
    beside_columns=True,
)
PLAIN_LAPLACE = SumMechanism(
    "plain-laplace",
    "Laplace noise of one scale",
    "laplace",
    plain_laplace,
    lambda domain, protection: False,
)
