"""The sum and the number of records together, when the number is secret.

Adding or removing one record x moves (Σ(x_i − c), n) by ±(x − c, 1). With E the smallest
ellipsoid around K, and c its centre, that lies in the ellipsoid blockdiag(E/s, 1/(1−s)) for any
split s in (0, 1), so normal noise of that covariance divided by μ² is μ-GDP, and the K-norm noise
of that ellipsoid is purely private (theory: secret n). Two answers are read off the pair:

    mean   c + A/N̂, a ratio; s = a/(a + R) gives the least error at the worst mean, where
           a = √tr E and R is the distance from c to the farthest record
    sum    A + N̂·c, unbiased; s = a/(a + ‖c‖)

Proof: docs/proofs/joint.md.
"""

from __future__ import annotations

import numpy as np

from muhat.domains import Domain
from muhat.domains.norms import p_norm
from muhat.domains.vectors import Vector
from muhat.ellipsoids import smallest_ellipsoid
from muhat.ellipsoids.result import norm
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.calibration import calibrated, counted
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.laws import elliptic_law, independent_law
from muhat.noise.protection import Protection

LEAST_SHARE = 2.0**-40
"""The sum and the count each keep a share that exact arithmetic can serve."""


def joint(
    body: Body,
    p: float,
    weights: Vector,
    protection: Protection,
    kind: NoiseKind,
    *,
    share: float,
) -> Recipe:
    """The pair (Σ(x_i − c), n), with the share s of the squared budget for the sum."""
    counted, law = 1 - bounded_share(share), elliptic_law(kind)
    return calibrated("joint", law, body, protection, p=p, weights=weights, count_share=counted)


def bounded_share(share: float) -> float:
    """A share that leaves something to both."""
    return min(max(share, LEAST_SHARE), 1 - LEAST_SHARE)


def share_for_mean(body: Body, p: float, weights: Vector) -> float:
    """The split that minimises the error of the ratio at the worst mean."""
    size = smallest_ellipsoid(body.shape, p, "shifted", weights=weights).value
    return size / (size + farthest_from(body.shape, body.center, weights)) if size else 0.5


def share_for_sum(body: Body, p: float, weights: Vector) -> float:
    """The split that minimises the error of A + N̂·c: nearly 1 if c is nearly 0."""
    size = smallest_ellipsoid(body.shape, p, "shifted", weights=weights).value
    return size / (size + norm(weights * body.center, p)) if size else 0.5


def farthest_from(domain: Domain, center: Vector, weights: Vector) -> float:
    """An upper bound on ‖diag(weights)·(x − c)‖₂ over x in K, for any point c."""
    corners = domain.vertices()
    if corners is not None:
        return float(p_norm((corners - center) * weights, 2).max())
    return domain.farthest(weights) + norm(weights * (domain.center - center), 2)


def farthest_point(domain: Domain, center: Vector, weights: Vector) -> Vector:
    """A point of K far from c by ‖diag(weights)·(x − c)‖₂: of all corners, or of a few ends."""
    corners = domain.vertices()
    if corners is None:
        heavy = np.zeros(domain.dim)
        heavy[np.argmax(weights * domain.half_widths)] = 1.0
        ways = (weights, -weights, heavy, -heavy)
        corners = np.array([domain.extreme_point(way) for way in ways])
    far = p_norm((corners - center) * weights, 2)
    return np.asarray(corners[np.argmax(far)])


def count_only(protection: Protection, kind: NoiseKind) -> Recipe:
    """The number of records alone."""
    law = independent_law(kind)
    return counted(law.mechanism, law, protection)
