"""A plan as a picture: what is hidden, by how much noise, and how close to the best that is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.planning.plan import Plan

INK, NOISE, BODY, BOUND = "#1f2933", "#2f6fde", "#f0a202", "#8d99a6"


def plan_figure(plan: Plan) -> Any:
    """Left: the noise on each value. Right: the plan's error beside the lower bounds."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput("a picture needs matplotlib: pip install 'muhat[plot]'.") from None
    if plan.spread is None:
        figure = Figure(figsize=(6, 4), layout="constrained")
        _draw_error_against_n(figure.subplots(), plan)
    else:
        figure = Figure(figsize=(11, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_noise(left, plan)
        _draw_certificate(right, plan)
    figure.suptitle(f"Private {plan.statistic}, {plan.privacy.describe()}", color=INK)
    return figure


def _draw_noise(axes: Any, plan: Plan) -> None:
    """95 % of the noise on two values, or its size on every value relative to the domain."""
    assert plan.spread is not None
    if plan.dim == 2 and plan.domain is not None:
        _draw_two(axes, plan)
        return
    names = list(plan.columns or (str(index) for index in range(plan.dim)))[:40]
    reach = plan.spread.half_widths(0.95, joint=False)
    label = "95 % reach of the noise, records"
    if plan.domain is not None:
        records = plan.n if plan.statistic == "sum" and plan.n else 1
        reach = 100 * reach / (2 * plan.domain.half_widths * records)
        label = "95 % reach of the noise, % of the column's range"
    axes.barh(names[::-1], reach[: len(names)][::-1], color=NOISE)
    axes.set_xlabel(label)
    if plan.dim > len(names):
        axes.set_title(f"the first {len(names)} columns", fontsize="small")


def _draw_two(axes: Any, plan: Plan) -> None:
    from matplotlib.patches import Ellipse

    assert plan.spread is not None
    covariance = plan.spread.covariance
    values, vectors = np.linalg.eigh(covariance)
    angle = math.degrees(math.atan2(vectors[1, -1], vectors[0, -1]))
    for level, alpha in ((0.5, 0.45), (0.95, 0.2)):
        reach = math.sqrt(-2 * math.log(1 - level))
        width, height = 2 * reach * math.sqrt(values[-1]), 2 * reach * math.sqrt(values[0])
        axes.add_patch(
            Ellipse(
                (0, 0),
                width,
                height,
                angle=angle,
                color=NOISE,
                alpha=alpha,
                lw=0,
                label=f"about {level:.0%} of the noise",
            )
        )
    limit = 3.2 * np.sqrt(np.diag(covariance))
    axes.set_xlim(-limit[0], limit[0])
    axes.set_ylim(-limit[1], limit[1])
    names = plan.columns or ("value 0", "value 1")
    axes.set_xlabel(f"noise on {names[0]}")
    axes.set_ylabel(f"noise on {names[1]}")
    axes.axhline(0, color=BOUND, lw=0.6)
    axes.axvline(0, color=BOUND, lw=0.6)
    axes.legend(frameon=False, fontsize="small", loc="upper right")


def _draw_certificate(axes: Any, plan: Plan) -> None:
    """The plan's error, and below it what cannot be beaten."""
    certificate = plan.certificate
    assert certificate is not None
    bars = [(plan.mechanism, certificate.error, NOISE)]
    bars += [(name, error, BODY) for name, error in plan.alternatives]
    bars += [
        (f"bound, {bound.mechanisms}, {bound.datasets} dataset", bound.value, BOUND)
        for bound in certificate.bounds
        if bound.value is not None
    ]
    for place, (_, size, colour) in enumerate(reversed(bars)):
        axes.barh(place, size, color=colour, height=0.6)
        axes.annotate(f" {size:.3g}", (size, place), va="center", fontsize="small", color=INK)
    axes.set_yticks(range(len(bars)), [label for label, _, _ in reversed(bars)])
    axes.set_xlim(0, 1.2 * max(size for _, size, _ in bars))
    axes.set_xlabel(certificate.metric)
    axes.set_title(certificate.verdict(), fontsize="small", color=INK)


def _draw_error_against_n(axes: Any, plan: Plan) -> None:
    """The error of a ratio at the worst mean, for any number of records."""
    records = np.logspace(1, 7, 61)
    axes.loglog(records, [plan.error_at(round(n)) for n in records], color=NOISE)
    axes.set_xlabel("number of records (secret)")
    axes.set_ylabel("error at the worst mean")
    axes.grid(alpha=0.3)
