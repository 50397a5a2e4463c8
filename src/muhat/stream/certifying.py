"""How good a counter is, from public parameters alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from muhat import bounds
from muhat.domains import Box
from muhat.domains.norms import p_norm
from muhat.ellipsoids import smallest_ellipsoid
from muhat.noise.error import moment_bound
from muhat.noise.normal import absolute_moment
from muhat.release.certificate import Certificate
from muhat.workloads.toeplitz_floor import prefix_floor

if TYPE_CHECKING:
    from muhat.stream.plan import RunningSums

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


LEAST_BESIDE = 2.0**-200


def certify(sums: RunningSums) -> Certificate:
    """The error of all answers together, and the lower bounds.

    The floor of γ_(p) for running sums of vectors is the floor for running sums times that of the
    body of one event: the dual measures multiply. Several events of a person are at different
    times, so the bound is that of one.
    """
    p = sums.p
    spread = sums.deviations.ravel()
    power = None if math.isinf(p) else absolute_moment(p) * float(p_norm(spread, p))
    error, method = _root_mean_square(spread, p)
    order = "ℓ∞" if math.isinf(p) else f"ℓ{p:g}".translate(SUBSCRIPTS)
    floor = prefix_floor(sums.noise.size, p) * _body_floor(sums)
    return Certificate(
        f"root mean square {order} error of all running sums",
        p,
        error,
        method,
        bounds.unbiased_sum(floor, privacy=sums.privacy),
        power,
    )


def _root_mean_square(spread: NDArray[np.float64], p: float) -> tuple[float, str]:
    """(E‖z‖_p²)^½ of correlated normals: exact at p = 2, else an upper bound."""
    if p == 2:
        return float(np.sqrt(np.sum(spread**2))), "exact"
    return moment_bound(spread, p, absolute_moment), "bound"


def _body_floor(sums: RunningSums) -> float:
    """A floor of Γ_p of what one event can add or take away, on the grid.

    In units of the largest coordinate; those beyond floats beside it are left out, which only
    lowers Γ_p.
    """
    _, unit = math.frexp(max(math.ldexp(g.reach, g.exponent) for g in sums.grids))
    seen = [g for g in sums.grids if math.ldexp(g.reach, g.exponent - unit) > LEAST_BESIDE]
    if len(seen) == 1:
        return math.ldexp(seen[0].reach, seen[0].exponent)
    lower = [math.ldexp(g.lower, g.exponent - unit) for g in seen]
    upper = [math.ldexp(g.upper, g.exponent - unit) for g in seen]
    return math.ldexp(smallest_ellipsoid(Box(lower, upper), sums.p, "symmetric").floor, unit)
