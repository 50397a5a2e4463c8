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
    verdict = "" if plan.certificate is None else f"\n{plan.certificate.verdict()}"
    title = f"Private {plan.statistic}, {plan.privacy.describe()}{verdict}"
    figure.suptitle(title, color=INK, fontsize="medium")
    return figure


def _draw_noise(axes: Any, plan: Plan) -> None:
    """95 % of the noise on two values, or its size on every value relative to the domain."""
    assert plan.spread is not None
    if plan.dim == plan.spread.rows == 2:
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
    """The sets that hold half of the noise and 95 % of it, in the shape of its law."""
    from matplotlib.patches import Polygon
    from scipy.special import chdtri, gammaincinv

    spread = plan.spread
    assert spread is not None
    angle = np.linspace(0, 2 * math.pi, 721)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    unit = circle / np.linalg.norm(circle, spread.law.sensitivity_norm, axis=1)[:, None]
    factor = np.diag(spread.scales) if spread.factor is None else spread.factor
    for level, alpha in ((0.95, 0.2), (0.5, 0.45)):
        # ‖z‖ has the law χ₂ for normal noise, and Gamma(2) for density ∝ exp(−‖z‖).
        normal = spread.law.name == "normal"
        reach = math.sqrt(chdtri(2, 1 - level)) if normal else float(gammaincinv(2, level))
        edge = reach * unit[:, : factor.shape[1]] @ factor.T
        axes.add_patch(Polygon(edge, color=NOISE, alpha=alpha, lw=0, label=f"{level:.0%}"))
    axes.autoscale_view()
    axes.margins(0.15)
    names = plan.columns or ("value 0", "value 1")
    axes.set_xlabel(f"noise on {names[0]}")
    axes.set_ylabel(f"noise on {names[1]}")
    axes.axhline(0, color=BOUND, lw=0.6)
    axes.axvline(0, color=BOUND, lw=0.6)
    axes.legend(framealpha=0.8, fontsize="small", loc="upper right", title="of the noise")


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
    axes.locator_params(axis="x", nbins=4)


def _draw_error_against_n(axes: Any, plan: Plan) -> None:
    """The error of a ratio at the worst mean, for any number of records."""
    records = np.logspace(1, 7, 61)
    axes.loglog(records, [plan.error_at(round(n)) for n in records], color=NOISE)
    axes.set_xlabel("number of records (secret)")
    axes.set_ylabel("error at the worst mean")
    axes.grid(alpha=0.3)
