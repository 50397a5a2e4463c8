"""A plan as a picture: what is hidden, by which ellipse, and how close to the best that is."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.ellipsoids import smallest_ellipsoid
from muhat.errors import InvalidInput
from muhat.noise.laws import independent_law
from muhat.privacy import Neighbors
from muhat.release.certificate import Certificate, unit_of
from muhat.release.picture import BODY as BODY
from muhat.release.picture import BOUND as BOUND
from muhat.release.picture import INK as INK
from muhat.release.picture import LONGEST_LABEL, axis_name, plain_numbers
from muhat.release.picture import NOISE as NOISE
from muhat.release.picture import blank_figure as blank_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.planning.linear_answers import LinearAnswers
    from muhat.planning.sums import NoisySums


MOST_BARS = 40
UNLIKE = 20.0
"""Lengths that differ by more than this do not show in one scale."""

WIDEST_SPHERE = 2.0
"""A sphere so many times as wide as what is inside is drawn whole, a wider one in part."""


def plan_figure(plan: NoisySums, coordinates: Sequence[int | str] | None = None) -> Figure:
    """Left: body, sphere and ellipse in two coordinates. Right: the error beside its bounds."""
    pair = _pair(plan, coordinates)
    verdict = "" if plan.certificate is None else f"\n{plan.certificate.verdict()}"
    title = f"Private {plan.statistic}, {plan.privacy.describe()}{verdict}"
    if plan.spread is None:
        number = "number of recorded values" if plan.n is not None else SECRET
        weighted, unit = unit_of(plan.weights, plan.domain)
        label = f"{weighted}error at the worst mean{unit}"
        return error_against_n(plan.error_if, label, title, number)
    figure = blank_figure(11)
    left, right = figure.subplots(1, 2)
    if pair is None:
        _draw_noise(left, plan)
    else:
        _draw_shapes(left, plan, pair)
    assert plan.certificate is not None
    draw_certificate(right, plan.certificate, plan.name, plan.alternatives)
    figure.suptitle(title, color=INK, fontsize="medium")
    return figure


def _pair(plan: NoisySums, coordinates: Sequence[int | str] | None) -> tuple[int, int] | None:
    """The two coordinates to draw, by number or by name; the first two if none are chosen."""
    if coordinates is None:
        return (0, 1) if plan.domain is not None and plan.dim >= 2 else None
    names = list(plan.columns or [])
    chosen = [
        names.index(which) if isinstance(which, str) and which in names else which
        for which in coordinates
    ]
    if len(chosen) != 2 or not all(isinstance(j, int) and 0 <= j < plan.dim for j in chosen):
        raise InvalidInput(
            f"must be two columns of the plan, by name or number below {plan.dim}",
            parameter="coordinates",
        )
    return int(chosen[0]), int(chosen[1])


def _draw_shapes(axes: Any, plan: NoisySums, pair: tuple[int, int]) -> None:
    """What one record can move, the sphere that is commonly used, and our ellipse."""
    from matplotlib.patches import Polygon

    domain, chosen = plan.domain, list(pair)
    assert domain is not None
    scales, unit = _drawn_units(plan, chosen)
    angle = np.linspace(0, 2 * math.pi, 361)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    ours = smallest_ellipsoid(domain, plan.p, weights=plan.weights)
    rows = np.diag(ours.scales[chosen]) if ours.factor is None else ours.factor[chosen]
    values, vectors = np.linalg.eigh(rows @ rows.T)
    ellipse = circle @ (vectors * np.sqrt(np.maximum(values, 0.0))).T * scales
    body = _outline(domain, pair, scales)
    # All directions alike, in the units that errors are measured in.
    radius = 2 * domain.farthest(plan.weights) / plan.weights[chosen]
    sphere = circle * radius * scales
    reach = np.maximum(np.abs(ellipse).max(axis=0), np.abs(body).max(axis=0))
    reach = 1.08 * np.where(reach > 0, reach, 1.0)
    width = np.abs(sphere).max(axis=0)
    if (width <= WIDEST_SPHERE * reach).all():
        reach = np.maximum(reach, 1.04 * width)
    # Of a sphere far outside nothing is seen but two lines.
    if (width <= UNLIKE * reach).all() and (np.abs(sphere) <= reach).all(axis=1).any():
        line = Polygon(sphere, fill=False, ls="--", ec=BOUND, zorder=3)
        line.set_label("the sphere around it")
        axes.add_patch(line)
    axes.add_patch(Polygon(ellipse, fc=NOISE, alpha=0.25, lw=0, label="our ellipse"))
    axes.add_patch(Polygon(body, fc=BODY, alpha=0.6, lw=0, label="what one record can move"))
    axes.set_xlim(-reach[0], reach[0])
    axes.set_ylim(-reach[1], reach[1])
    if max(reach) <= UNLIKE * min(reach):
        axes.set_aspect("equal")
    names = plan.columns or [f"coordinate {j}" for j in range(plan.dim)]
    for axis, j in zip((axes.xaxis, axes.yaxis), pair, strict=True):
        axis.set_label_text(f"change of {axis_name(names[j], LONGEST_LABEL)}{unit}")
        plain_numbers(axis)
    axes.legend(
        frameon=False, fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0)
    )


def _drawn_units(plan: NoisySums, pair: list[int]) -> tuple[Floats, str]:
    """What two coordinates are multiplied by in the picture, so that one does not hide the other.

    Columns of unlike units are drawn in widths of their bounds, as their errors are measured.
    """
    assert plan.domain is not None
    widths = 2 * np.asarray(plan.domain.half_widths)[pair]
    _, unit = unit_of(plan.weights, plan.domain)
    if not unit and max(widths) <= UNLIKE * min(widths):
        return np.ones(2), ""
    return 1 / np.where(widths > 0, widths, 1.0), ",\nin widths of its bounds"


def _outline(domain: Domain, pair: tuple[int, int], scales: Floats) -> Floats:
    """The projection of K − K onto two coordinates, each times its scale, as a polygon."""
    points = []
    for angle in np.linspace(0, 2 * math.pi, 181):
        direction = np.zeros(domain.dim)
        direction[list(pair)] = scales * (math.cos(angle), math.sin(angle))
        span = domain.extreme_point(direction) - domain.extreme_point(-direction)
        points.append(scales * span[list(pair)])
    return np.array(points)


def _draw_noise(axes: Any, plan: NoisySums) -> None:
    """The reach of the noise on every value, relative to the domain."""
    assert plan.spread is not None
    names = [
        axis_name(name, LONGEST_LABEL)
        for name in (plan.columns or tuple(map(str, range(plan.dim))))[:MOST_BARS]
    ]
    reach = plan.spread.half_widths(0.95, joint=False)
    label = "95 % reach of the noise, records"
    if plan.domain is not None:
        records = plan.n if plan.statistic == "sum" and plan.n else 1
        reach = 100 * reach / (2 * plan.domain.half_widths * records)
        label = "95 % reach of the noise, % of the column's range"
    axes.barh(range(len(names)), reach[: len(names)], height=0.6, color=NOISE)
    axes.set_yticks(range(len(names)), names)
    middle, half = (len(names) - 1) / 2, max(len(names), 3) / 2
    axes.set_ylim(middle + half, middle - half)
    axes.set_xlabel(label)
    plain_numbers(axes.xaxis)


def draw_certificate(
    axes: Any,
    certificate: Certificate,
    mechanism: str,
    alternatives: Sequence[tuple[str, float]],
) -> None:
    """The plan's error, and below it what cannot be beaten."""
    bars = [(mechanism, certificate.error, NOISE)]
    bars += [(name, error, BODY) for name, error in alternatives]
    bars += [
        (f"bound, {bound.mechanisms}, {bound.where}", bound.value, BOUND)
        for bound in certificate.strongest()
        if bound.value is not None
    ]
    for place, (_, size, colour) in enumerate(reversed(bars)):
        axes.barh(place, size, color=colour, height=0.6)
        sign = "≤ " if colour == NOISE and certificate.method == "bound" else ""
        axes.annotate(f" {sign}{size:.3g}", (size, place), va="center", fontsize="small", color=INK)
    axes.set_yticks(range(len(bars)), [label for label, _, _ in reversed(bars)])
    axes.set_xlim(0, 1.3 * max(size for _, size, _ in bars))
    axes.set_xlabel(textwrap.fill(certificate.metric, 44))
    plain_numbers(axes.xaxis)


SECRET = "number of records (secret)"


def error_against_n(
    error: Callable[[int], float], label: str, title: str, number: str = SECRET
) -> Figure:
    """The error for any number of records, where that is secret, or of values."""
    figure = blank_figure(6)
    axes = figure.subplots()
    records = np.logspace(1, 7, 61)
    axes.loglog(records, [error(round(n)) for n in records], color=NOISE)
    axes.set_xlabel(number)
    axes.set_ylabel(textwrap.fill(label, 32))
    axes.grid(alpha=0.3)
    lines = "\n".join(textwrap.fill(line, 64) for line in title.splitlines())
    figure.suptitle(lines, color=INK, fontsize="medium")
    return figure


MOST_POINTS = 2_000


def answers_figure(plan: LinearAnswers) -> Figure:
    """Left: the standard error of every answer. Right: the error beside its bounds."""
    figure = blank_figure(11)
    left, right = figure.subplots(1, 2)
    _draw_errors(left, plan)
    draw_certificate(right, plan.certificate, plan.name, plan.alternatives)
    title = (
        f"Private answers to {plan.workload.describe()}, {plan.privacy.describe()}\n"
        f"{plan.certificate.verdict()}"
    )
    figure.suptitle(title, color=INK, fontsize="medium")
    return figure


def _draw_errors(axes: Any, plan: LinearAnswers) -> None:
    """Our errors, and those of noise on every cell, added up."""
    ours = plan.standard_error
    places = np.unique(np.linspace(0, len(ours) - 1, MOST_POINTS).astype(int))
    style = {"drawstyle": "steps-mid", "lw": 1.5}
    axes.plot(places, ours[places], color=NOISE, label="this plan", **style)
    cells = _on_every_cell(plan)
    if cells is not None:
        axes.plot(places, cells[places], color=BOUND, ls="--", label="noise on every cell", **style)
    axes.set_ylim(0, None)
    axes.set_xlabel("answer")
    axes.set_ylabel("standard error")
    axes.locator_params(nbins=6)
    axes.legend(frameon=False, fontsize="small")


def _on_every_cell(plan: LinearAnswers) -> Any:
    """Standard errors if the noisy histogram itself were released; None if that is not known."""
    kind = plan.recipe.law.kind
    if kind is None:
        return None
    law = independent_law(kind)
    strength = float(plan.recipe.protection.strength_squared(kind)) ** 0.5
    moved = 1.0
    if plan.neighbors is Neighbors.SUBSTITUTE:
        # Two cells change by one: √2 in the ℓ₂ norm, 2 in the ℓ₁ norm.
        moved = 2 ** (1 / law.sensitivity_norm)
    try:
        lengths = plan.workload.row_norms()
    except InvalidInput:
        return None
    return lengths * moved * plan.contributions / strength * law.variance(1) ** 0.5
