"""The mechanisms for sums of bounded records, listed: of equals the first is taken, the simplest.

A new one is a module of its own and a line here.
"""

from __future__ import annotations

from muhat.domains import Domain
from muhat.mechanisms.sums.balanced import BALANCED
from muhat.mechanisms.sums.box_norm import BOX_NORM
from muhat.mechanisms.sums.calibration import SumMechanism
from muhat.mechanisms.sums.ellipsoidal import (
    ELLIPSOID_NORM,
    ELLIPSOID_NORM_DELTA,
    GAUSSIAN,
    SHIFTED_GAUSSIAN,
)
from muhat.mechanisms.sums.laplace import LAPLACE, PLAIN_LAPLACE
from muhat.mechanisms.sums.radial import BOX_STAIRS, ELLIPSOID_STAIRS
from muhat.mechanisms.sums.staircase import STAIRCASE
from muhat.noise.kinds import NoiseKind
from muhat.noise.protection import Protection

MECHANISMS = {
    each.name: each
    for each in (
        GAUSSIAN,
        LAPLACE,
        BALANCED,
        STAIRCASE,
        BOX_NORM,
        ELLIPSOID_NORM,
        ELLIPSOID_NORM_DELTA,
        BOX_STAIRS,
        ELLIPSOID_STAIRS,
        PLAIN_LAPLACE,
        SHIFTED_GAUSSIAN,
    )
}


def competing(kind: NoiseKind, domain: Domain, protection: Protection) -> list[SumMechanism]:
    """The mechanisms with noise of a kind that are planned with for a domain."""
    every = MECHANISMS.values()
    return [each for each in every if each.kind is kind and each.competes(domain, protection)]
