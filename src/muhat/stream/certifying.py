"""How good a counter is, and how it is shown; public parameters only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat import bounds
from muhat._text import joined
from muhat.domains import Box
from muhat.domains.norms import p_norm
from muhat.ellipsoids import smallest_ellipsoid
from muhat.noise.error import moment_bound
from muhat.noise.law import absolute_moment
from muhat.planning.picture import INK, NOISE, blank_figure
from muhat.privacy import cautions
from muhat.release.certificate import Certificate
from muhat.release.display import significant, table
from muhat.workloads.toeplitz_floor import prefix_floor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.stream.counter import PrefixCounter
    from muhat.stream.plan import StreamPlan

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


LEAST_BESIDE = 2.0**-200


def certify(plan: StreamPlan) -> Certificate:
    """The error of all answers together, and the lower bounds.

    The floor of γ_(p) for running sums of vectors is the floor for running sums times that of the
    body of one event: the dual measures multiply. Several events of a person are at different
    times, so the bound is that of one.
    """
    p = plan.p
    spread = plan.deviations.ravel()
    power = None if math.isinf(p) else absolute_moment(p) * float(p_norm(spread, p))
    error, method = _root_mean_square(spread, p)
    order = "ℓ∞" if math.isinf(p) else f"ℓ{p:g}".translate(SUBSCRIPTS)
    floor = prefix_floor(plan.noise.size, p) * _body_floor(plan)
    return Certificate(
        f"root mean square {order} error of all running sums",
        p,
        error,
        method,
        bounds.unbiased_sum(floor, privacy=plan.privacy),
        power,
    )


def _root_mean_square(spread: NDArray[np.float64], p: float) -> tuple[float, str]:
    """(E‖z‖_p²)^½ of correlated normals: exact at p = 2, else an upper bound."""
    if p == 2:
        return float(np.sqrt(np.sum(spread**2))), "exact"
    return moment_bound(spread, p, absolute_moment), "bound"


def _body_floor(plan: StreamPlan) -> float:
    """A floor of Γ_p of what one event can add or take away, on the grid.

    In units of the largest coordinate; those beyond floats beside it are left out, which only
    lowers Γ_p.
    """
    _, unit = math.frexp(max(math.ldexp(g.reach, g.exponent) for g in plan.grids))
    seen = [g for g in plan.grids if math.ldexp(g.reach, g.exponent - unit) > LEAST_BESIDE]
    if len(seen) == 1:
        return math.ldexp(seen[0].reach, seen[0].exponent)
    lower = [math.ldexp(g.lower, g.exponent - unit) for g in seen]
    upper = [math.ldexp(g.upper, g.exponent - unit) for g in seen]
    return math.ldexp(smallest_ellipsoid(Box(lower, upper), plan.p, "symmetric").floor, unit)


def counter_text(counter: PrefixCounter[Any]) -> str:
    """A counter for the terminal: what it promises and how large its noise is, and no data."""
    return _text(counter._plan, [["pushed", f"{counter.pushed:,}"]])


def plan_text(plan: StreamPlan) -> str:
    """A plan for the terminal."""
    return _text(plan, [])


def _text(plan: StreamPlan, state: list[list[str]]) -> str:
    people = plan.contributions
    unit = "one event added or removed" if people == 1 else f"{people} events of a person"
    lines = [
        ["counter", f"running sums of up to {plan.horizon:,} events"],
        *state,
        ["promise", f"{plan.privacy.describe()}, {unit}"],
        *(["caution", sentence] for sentence in cautions(plan.privacy)),
    ]
    shown = plan.grids[:8]
    rows = [["push", *("standard error" for _ in shown)]]
    for place, _ in plan.errors():
        errors = plan.deviations[place - 1, : len(shown)]
        rows.append([f"{place:,}", *(significant(float(error)) for error in errors)])
    certified = plan.certificate.describe().splitlines()
    return joined([*table(lines), "", *table(rows), "", *certified])


def plan_figure(plan: StreamPlan) -> Figure:
    """The standard error of the answer after every push."""
    figure = blank_figure(6)
    axes = figure.subplots()
    places = np.unique(np.geomspace(1, plan.horizon, 400).astype(np.int64))
    axes.semilogx(places, plan.deviations[places - 1].max(axis=1), color=NOISE, lw=1.5)
    axes.set_xlabel("pushes")
    axes.set_ylabel("standard error of the running sum")
    axes.set_ylim(bottom=0)
    title = f"Running sums of {plan.horizon:,} events, {plan.privacy.describe()}"
    figure.suptitle(title, color=INK, fontsize="medium")
    return figure
