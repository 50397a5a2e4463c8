"""Figures of studies: panels side by side, in colours that everybody can tell apart."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from muhat.errors import InvalidInput
from muhat.studies.study import Panel

INK, QUIET = "#1f2933", "#8d99a6"
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#1f2933",
    "#882255",
)
"""Okabe and Ito's, without yellow, and wine; lines differ in their markers as well."""

MARKERS = "osD^vPX*"
MARKS_A_LINE = 18
"""More of them, on a line of many points, would hide it and what lies below."""

PANEL_INCHES = (4.6, 4.2)
"""Small, so that letters are large enough where a telephone makes a panel as wide as itself."""

PANELS_A_ROW = 2
TITLE_LETTERS = 48
LEGEND_BELOW = 36 / 72
"""Inches: ticks and the label of the axis are above, however high the panel is."""


@dataclass(frozen=True)
class Line:
    """A line of a panel: where, which colour and marker (`look`), which dashes.

    `look=None` is a thin grey line without markers, for what is only compared with. A None among
    the y values is a gap.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    look: int | None = 0
    dash: str = "-"
    hollow: bool = False


def lines(
    title: str,
    of: Sequence[Line],
    *,
    x: str,
    y: str,
    scale: str = "loglog",
    level: float | None = None,
    categories: Sequence[str] | None = None,
    columns: int = 2,
) -> Panel:
    """A panel of lines with its legend below, where it hides nothing.

    Args:
        title: of the panel.
        of: the lines.
        x, y: the axes' labels, with units.
        scale: "loglog", "semilogx", "semilogy" or "plot".
        level: where a thin horizontal line is drawn.
        categories: names of the places 0, 1, … on the x axis, instead of numbers.
        columns: of the legend.
    """

    def draw(axes: Any) -> None:
        draws = getattr(axes, scale)
        for number, line in enumerate(of):
            heights = [math.nan if value is None else value for value in line.y]
            # What the legend names first lies on top, where lines meet.
            look = {**_look(line), "zorder": 3 - number / len(of)}
            draws(line.x, heights, label=line.label, linestyle=line.dash, **look)
        if level is not None:
            axes.axhline(level, color=QUIET, linewidth=1)
        if scale in ("loglog", "semilogx"):
            plain_ticks(axes.xaxis)
        if scale in ("loglog", "semilogy"):
            plain_ticks(axes.yaxis)
        if categories is not None:
            axes.set_xticks(range(len(categories)), categories)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(alpha=0.25)
        legend_below(axes, columns)

    return Panel(title, draw)


def legend_below(axes: Any, columns: int) -> None:
    """A legend under the x axis and its label."""
    from matplotlib.transforms import ScaledTranslation

    down = ScaledTranslation(0, -LEGEND_BELOW, axes.figure.dpi_scale_trans)
    axes.legend(
        fontsize="small",
        frameon=False,
        ncols=columns,
        loc="upper center",
        bbox_to_anchor=(0.46, 0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0,
        columnspacing=1.2,
        handlelength=2.4,
    )


def _look(line: Line) -> dict[str, Any]:
    if line.look is None:
        return {"color": QUIET, "linewidth": 1.2}
    look = {
        "color": COLOURS[line.look % len(COLOURS)],
        "marker": MARKERS[line.look % len(MARKERS)],
        "markersize": 4.5,
        "linewidth": 1.5,
        "markevery": math.ceil(len(line.x) / MARKS_A_LINE),
    }
    # Rings around the marks of a line above them.
    return {**look, "markerfacecolor": "white", "markersize": 6} if line.hollow else look


def plain_ticks(axis: Any) -> None:
    """1, 2, 5, 10, … on a logarithmic axis of less than three decades, whose labels would clash."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    axis.set_minor_formatter(NullFormatter())
    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    if decades > 3:
        return
    steps = (1, 2, 5) if decades > 1 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    places = [step * 10.0**power for power in powers for step in steps]
    axis.set_major_locator(FixedLocator([place for place in places if low <= place <= high]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def figure_of(panels: Sequence[Panel], columns: int = PANELS_A_ROW) -> Any:
    """A matplotlib figure with the panels in rows of two, or of so many."""
    wide = min(columns, len(panels))
    high = math.ceil(len(panels) / wide)
    width, height = PANEL_INCHES
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(wide * width, high * height))
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.12)
    places = figure.subplots(high, wide, squeeze=False).flatten()
    for place, panel in zip(places, panels, strict=False):
        unbroken = panel.title.replace(" = ", "\u00a0=\u00a0")
        title = textwrap.fill(unbroken, TITLE_LETTERS)
        place.set_title(title, fontsize="medium", color=INK, loc="left")
        panel.draw(place)
        place.spines[["top", "right"]].set_visible(False)
    for place in places[len(panels) :]:
        place.remove()
    return figure


def svg_of(figure: Any) -> str:
    """The figure as SVG with its letters as outlines: the same on every machine."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.hashsalt": "muhat", "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def png_of(figure: Any) -> bytes:
    """The figure as PNG, 150 dots an inch."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150, metadata={"Software": None})
    return out.getvalue()


def require_matplotlib() -> None:
    """Refuse to draw without it."""
    if find_spec("matplotlib") is None:
        raise InvalidInput("a study draws with matplotlib: pip install 'muhat[study]'.")
