"""The sum and the number of records together, when the number is secret.

Adding or removing one record x moves (Σ(x_i − c), n) by ±(x − c, 1). With E the smallest
ellipsoid around K − c, that lies in the ellipsoid blockdiag(E/s, 1/(1−s)) for any split s in
(0, 1), so normal noise of that covariance divided by μ² is μ-GDP, and the K-norm noise of that
ellipsoid is purely private (theory: secret n). Two answers are read off the pair:

    mean   c + A/N̂, a ratio; s = a/(a + R) gives the least error at the worst mean, where
           a = √tr E and R is the distance from c to the farthest record
    sum    A + N̂·c, unbiased; s = a/(a + ‖c‖)

Proof: docs/proofs/joint.md.
"""

from __future__ import annotations

import math

from muhat.domains import Domain
from muhat.domains.base import Vector
from muhat.ellipsoids import smallest_ellipsoid
from muhat.ellipsoids.result import norm
from muhat.mechanisms.body import Body, calibrated
from muhat.mechanisms.recipe import Protection, Recipe
from muhat.noise.law import LAWS


def joint(
    body: Body, p: float, weights: Vector, protection: Protection, *, pure: bool, share: float
) -> Recipe:
    """The pair (Σ(x_i − c), n), with the share s of the squared budget for the sum."""
    law = LAWS["euclidean-norm" if pure else "normal"]
    axes = body.axes / math.sqrt(share)
    return calibrated("joint", law, body, axes, protection, count_scale=1 / math.sqrt(1 - share))


def share_for_mean(domain: Domain, p: float, weights: Vector) -> float:
    """The split that minimises the error of the ratio at the worst mean."""
    size = smallest_ellipsoid(domain, p, "shifted", weights=weights).value
    return size / (size + domain.farthest(weights))


def share_for_sum(domain: Domain, p: float, weights: Vector) -> float:
    """The split that minimises the error of A + N̂·c; 1 if c = 0."""
    size = smallest_ellipsoid(domain, p, "shifted", weights=weights).value
    return size / (size + norm(weights * domain.center, p))


def count_only(protection: Protection, *, pure: bool) -> Recipe:
    """The number of records alone."""
    name, law = ("laplace", LAWS["laplace"]) if pure else ("gaussian", LAWS["normal"])
    return calibrated(name, law, None, None, protection, count_scale=1.0)
