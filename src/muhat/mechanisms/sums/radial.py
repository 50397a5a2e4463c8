"""The least pure noise for several columns: stairs in the radius, of an ellipsoid or of a box.

    ellipsoid_stairs   density b^j for t + j − 1 ≤ √(zᵀM⁻¹z) < t + j, b = e^−ε: of a ball no pure
                       noise has less; 3, 15 and 50 % less error than K-norm noise in two
                       dimensions at ε = 2, 4 and 8, and hardly any less from d = ε²/3 on
    box_stairs         the same in the norm of the box

The integers are those of K-norm noise at ε = 1: one person moves them by a step at most.
Proof: docs/proofs/stairs.md.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from muhat.domains import Domain
from muhat.domains.vectors import Vector
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.box_norm import box_norm
from muhat.mechanisms.sums.calibration import SumMechanism
from muhat.mechanisms.sums.ellipsoidal import ellipsoid_norm
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.least_radial import is_worth, least_radial
from muhat.noise.protection import Protection
from muhat.noise.radial_stairs import EuclideanStairs, MaximumStairs, RadialStairs
from muhat.privacy import Privacy

ONE_STEP = Strength(NoiseKind.PURE, Fraction(1))
"""What scales integers so that one person moves them by a unit of noise, which is a step."""


def ellipsoid_stairs(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Stairs in the norm of the smallest ellipsoid."""
    found = ellipsoid_norm(body, p, weights, replace(protection, promise=ONE_STEP))
    return _stairs("ellipsoid-stairs", EuclideanStairs, found, protection)


def box_stairs(body: Body, p: float, weights: Vector, protection: Protection) -> Recipe:
    """Stairs in the norm of the box; their shape is the box, whatever the error."""
    if not body.shape.by_column:
        raise InvalidInput("box-stairs is for a Box.")
    found = box_norm(body, p, weights, replace(protection, promise=ONE_STEP))
    return _stairs("box-stairs", MaximumStairs, found, protection)


def _stairs(name: str, kind: type[RadialStairs], found: Recipe, protection: Protection) -> Recipe:
    # A domain of one point has no rows, and draws no noise.
    law = least_radial(kind, max(found.query.rows, 1), protection.promise)
    if law is None:
        raise InvalidInput(
            f"{name} is for fewer columns or a larger epsilon: here it is K-norm noise up to a "
            f"millionth; use '{found.name}'."
        )
    return replace(found, name=name, law=law, protection=protection)


def _competes(domain: Domain, protection: Protection) -> bool:
    """For several numbers and a whole promise, where it gains."""
    promise = protection.promise
    return domain.dim > 1 and isinstance(promise, Privacy) and is_worth(domain.dim, promise)


ELLIPSOID_STAIRS = SumMechanism(
    "ellipsoid-stairs",
    "stairs in the norm of the smallest ellipsoid",
    EuclideanStairs.name,
    ellipsoid_stairs,
    _competes,
)
BOX_STAIRS = SumMechanism(
    "box-stairs",
    "stairs in the norm of the box",
    MaximumStairs.name,
    box_stairs,
    lambda domain, protection: domain.by_column and _competes(domain, protection),
)
