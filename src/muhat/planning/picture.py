"""A plan as a picture: what is hidden, by which ellipse, and how close to the best that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat._text import printable
from muhat.domains import Domain
from muhat.ellipsoids import smallest_ellipsoid
from muhat.errors import InvalidInput
from muhat.planning.metric import unit_of
from muhat.release.certificate import Certificate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.planning.sums import NoisySums

INK, NOISE, BODY, BOUND = "#1f2933", "#2f6fde", "#f0a202", "#8d99a6"
MOST_BARS = 40


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


def blank_figure(width: float) -> Figure:
    """An empty figure of four inches' height."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput("a picture needs matplotlib: pip install 'muhat[plot]'.") from None
    return Figure(figsize=(width, 4), layout="constrained")


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
    from matplotlib.patches import Ellipse, Polygon

    domain = plan.domain
    assert domain is not None
    chosen = list(pair)
    body = _outline(domain, pair)
    angle = np.linspace(0, 2 * math.pi, 361)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    ours = smallest_ellipsoid(domain, plan.p, weights=plan.weights)
    rows = np.diag(ours.scales[chosen]) if ours.factor is None else ours.factor[chosen]
    values, vectors = np.linalg.eigh(rows @ rows.T)
    ellipse = circle @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    sphere = 2 * domain.farthest(np.ones(domain.dim))
    axes.add_patch(
        Ellipse(
            (0, 0),
            2 * sphere,
            2 * sphere,
            fill=False,
            ls="--",
            ec=BOUND,
            label="the sphere around it",
        )
    )
    axes.add_patch(Polygon(ellipse, fc=NOISE, alpha=0.25, lw=0, label="our ellipse"))
    axes.add_patch(Polygon(body, fc=BODY, alpha=0.6, lw=0, label="what one record can move"))
    reach = 1.15 * np.maximum(np.abs(ellipse).max(axis=0), np.abs(body).max(axis=0))
    reach = np.where(reach > 0, reach, 1.0)
    axes.set_xlim(-reach[0], reach[0])
    axes.set_ylim(-reach[1], reach[1])
    names = plan.columns or [f"coordinate {j}" for j in range(plan.dim)]
    axes.set_xlabel(_label(names[pair[0]]))
    axes.set_ylabel(_label(names[pair[1]]))
    axes.locator_params(nbins=5)
    axes.legend(
        frameon=False, fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0)
    )


def _outline(domain: Domain, pair: tuple[int, int]) -> NDArray[np.float64]:
    """The projection of K − K onto two coordinates, as a polygon."""
    points = []
    for angle in np.linspace(0, 2 * math.pi, 181):
        direction = np.zeros(domain.dim)
        direction[list(pair)] = math.cos(angle), math.sin(angle)
        span = domain.extreme_point(direction) - domain.extreme_point(-direction)
        points.append(span[list(pair)])
    return np.array(points)


def _draw_noise(axes: Any, plan: NoisySums) -> None:
    """The reach of the noise on every value, relative to the domain."""
    assert plan.spread is not None
    names = [*map(_label, plan.columns or (str(index) for index in range(plan.dim)))][:MOST_BARS]
    reach = plan.spread.half_widths(0.95, joint=False)
    label = "95 % reach of the noise, records"
    if plan.domain is not None:
        records = plan.n if plan.statistic == "sum" and plan.n else 1
        reach = 100 * reach / (2 * plan.domain.half_widths * records)
        label = "95 % reach of the noise, % of the column's range"
    axes.barh(names[::-1], reach[: len(names)][::-1], color=NOISE)
    axes.set_xlabel(label)


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
        (f"bound, {bound.mechanisms}, {bound.datasets} dataset", bound.value, BOUND)
        for bound in certificate.strongest()
        if bound.value is not None
    ]
    for place, (_, size, colour) in enumerate(reversed(bars)):
        axes.barh(place, size, color=colour, height=0.6)
        sign = "≤ " if colour == NOISE and certificate.method == "bound" else ""
        axes.annotate(f" {sign}{size:.3g}", (size, place), va="center", fontsize="small", color=INK)
    axes.set_yticks(range(len(bars)), [label for label, _, _ in reversed(bars)])
    axes.set_xlim(0, 1.2 * max(size for _, size, _ in bars))
    axes.set_xlabel(certificate.metric)
    axes.locator_params(axis="x", nbins=4)


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
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    figure.suptitle(title, color=INK, fontsize="medium")
    return figure


def _label(name: str) -> str:
    """A column's name on an axis: dollars are dollars, not mathematics."""
    return printable(str(name)).replace("$", r"\$")
