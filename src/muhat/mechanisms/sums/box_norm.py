"""The box's own K-norm mechanism, for pure privacy.

Density ∝ exp(−ε·max_j |z_j|/w_j) on the sum: one record of a box with sides w moves it by at
most 1 in that norm. Its error for the sum is √((d+1)(d+2)/3)·‖w‖₂/ε at p = 2: the best of the
three for many columns of like width. Proof: docs/proofs/norms.md.
"""

from __future__ import annotations

from muhat.domains.vectors import Vector
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.calibration import SumMechanism, calibrated
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection


def box_norm(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """The K-norm mechanism of a box; its shape is the box, whatever the error."""
    if not body.shape.by_column:
        raise InvalidInput("box-norm is for a Box.")
    sides = body.shape.half_widths
    return calibrated("box-norm", LAWS["maximum-norm"], body.scaled(sides), protection)


BOX_NORM = SumMechanism(
    "box-norm",
    "K-norm noise of the box",
    "maximum-norm",
    box_norm,
    lambda domain, protection: domain.by_column,
    beside_columns=True,
)
