"""A release as a picture: bars and points with the reach of noise, and of noise and sampling."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from muhat._text import printable
from muhat.errors import InvalidInput
from muhat.release.panels import TOO_FEW, AnswerPanel, Mark, tick_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, NOISE, BODY, BOUND = "#1f2933", "#2f6fde", "#f0a202", "#8d99a6"
BAR = "#a9c5f5"

MOST_PANELS = 24
LONGEST_LABEL = 32
TITLE_LETTERS = 60
ROW, FRAME, WIDTH = 0.24, 1.05, 5.6
"""Inches: of a mark, around all marks of a panel, and of a panel."""


def release_figure(panels: Sequence[AnswerPanel], title: str) -> Figure:
    """Small multiples in two columns, or one panel; what is left out is said below."""
    shown = panels[:MOST_PANELS]
    wide = 1 if len(shown) == 1 else 2
    lines = [shown[start : start + wide] for start in range(0, len(shown), wide)]
    heights = [FRAME + ROW * max(len(panel.marks) for panel in line) for line in lines]
    figure = blank_figure(WIDTH * wide + (1.6 if wide == 1 else 0), sum(heights) + 0.9)
    figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
    grid = figure.add_gridspec(len(lines), wide, height_ratios=heights)
    for row, line in enumerate(lines):
        for column, panel in enumerate(line):
            _draw(figure.add_subplot(grid[row, column]), panel, len(panels) > 1)
    figure.suptitle(textwrap.fill(axis_name(title, 200), 64 * wide), color=INK, fontsize="large")
    _legend(figure, shown)
    if len(panels) > len(shown):
        figure.supxlabel(
            f"The first {len(shown)} of {len(panels)} panels; all numbers are in table().",
            color=INK,
            fontsize="small",
        )
    return figure


def blank_figure(width: float, height: float = 4) -> Figure:
    """An empty figure, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput("a picture needs matplotlib: pip install 'muhat[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def axis_name(name: object, longest: int | None = None) -> str:
    """A name in a picture: dollars are dollars, not mathematics."""
    text = printable(str(name))
    return shortened_label(text, longest).replace("$", r"\$")


def shortened_label(text: str, longest: int | None) -> str:
    """At most so many letters of a name: its beginning and its end."""
    if longest is None or len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 1].rstrip()}…{text[-tail:].lstrip()}"


def plain_numbers(axis: Any) -> None:
    """Ticks of an axis as people write numbers, with nothing in a corner of the picture."""
    from matplotlib.ticker import Formatter, MaxNLocator

    class Plain(Formatter):
        def format_ticks(self, values: Sequence[float]) -> list[str]:
            return tick_words([float(value) for value in values])

        def __call__(self, x: float, pos: int | None = None) -> str:
            return tick_words([x])[0]

    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(Plain())


def _draw(axes: Any, panel: AnswerPanel, titled: bool) -> None:
    low, high = panel.limits()
    axes.set_xlim(low, high)
    count = len(panel.marks)
    axes.set_ylim(count - 0.4, -0.6)
    for place, mark in enumerate(panel.marks):
        _draw_mark(axes, mark, place, panel.bars, (low, high))
    if low < 0 < high:
        axes.axvline(0, color=BOUND, lw=1, zorder=1)
    axes.set_yticks(range(count), [axis_name(mark.label, LONGEST_LABEL) for mark in panel.marks])
    plain_numbers(axes.xaxis)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    if titled:
        title = textwrap.fill(axis_name(panel.title, 120), TITLE_LETTERS)
        axes.set_title(title, loc="left", color=INK, fontsize="medium")
    if panel.left_out:
        axes.set_xlabel(panel.left_out, color=INK, fontsize="small")


def _draw_mark(axes: Any, mark: Mark, place: int, bars: bool, limits: tuple[float, float]) -> None:
    if not mark.told:
        axes.text(
            *(0.01, place, TOO_FEW),
            transform=axes.get_yaxis_transform(),
            va="center",
            style="italic",
            color=BOUND,
            fontsize="small",
        )
        return
    if bars:
        axes.barh(place, mark.value, height=0.62, color=BAR, zorder=2)
    for ends, width in ((mark.population, 1.2), (mark.noise, 4.0)):
        if math.isnan(ends[0]):
            continue
        inside = [min(max(end, limits[0]), limits[1]) for end in ends]
        colour = {"color": NOISE, "solid_capstyle": "butt", "zorder": 3}
        axes.plot(inside, [place, place], lw=width, **colour)
        for end, shown, sign in zip(ends, inside, "<>", strict=True):
            if end != shown:
                axes.plot(shown, place, sign, color=NOISE, ms=5, clip_on=False, zorder=4)
    axes.plot(
        mark.value, place, "o", ms=4.5, mfc="white", mec=INK, mew=1.2, zorder=5, clip_on=False
    )


def _legend(figure: Any, panels: Sequence[AnswerPanel]) -> None:
    from matplotlib.lines import Line2D

    noise = any(panel.has_noise for panel in panels)
    population = any(panel.has_population for panel in panels)
    lines = [Line2D([], [], marker="o", ls="", mfc="white", mec=INK, label="value")]
    if noise:
        lines.append(Line2D([], [], color=NOISE, lw=4, label="95 % interval: noise"))
    if population:
        said = "95 % interval: noise and sampling"
        lines.append(Line2D([], [], color=NOISE, lw=1.2, label=said))
    figure.legend(
        handles=lines, loc="outside lower center", ncols=3, frameon=False, fontsize="small"
    )
