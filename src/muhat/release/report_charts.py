"""Panels as HTML: a label and a strip of SVG a mark, which stretch and turn dark with the page.

Places are per cent of a strip's width, so letters keep their size on a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from muhat._text import escaped_html
from muhat.release.panels import TOO_FEW, AnswerPanel, Mark, tick_words, ticks_between

MIDDLE = 'y1="50%" y2="50%"'

SHORT = 12
"""Labels of so many letters stand beside their strips on a telephone too."""

KEYS = {
    "value": '<circle cx="12" cy="50%" r="4" class="dot"/>',
    "95 % interval: noise": f'<line x1="1" x2="23" {MIDDLE} class="noise"/>',
    "95 % interval: noise and sampling": f'<line x1="1" x2="23" {MIDDLE} class="both"/>',
}
"""What the legend shows."""


def charts(panels: Sequence[AnswerPanel]) -> str:
    """All panels of a statistic, and what is drawn in them."""
    drawn = [
        True,
        any(panel.has_noise for panel in panels),
        any(panel.has_population for panel in panels),
    ]
    legend = "".join(
        f'<span class="key"><svg width="24" height="24" aria-hidden="true">{shape}</svg>{words}'
        "</span>"
        for (words, shape), there in zip(KEYS.items(), drawn, strict=True)
        if there
    )
    pictures = "".join(map(_chart, panels))
    return f"<figure>{pictures}<figcaption>{legend}</figcaption></figure>"


def _chart(panel: AnswerPanel) -> str:
    """Its title, a strip a mark, the axis."""
    low, high = panel.limits()
    ticks = ticks_between(low, high)

    def place(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    lines = "".join(
        f'<line class="{"zero" if tick == 0 and low < 0 else "grid"}" x1="{place(tick)}" '
        f'x2="{place(tick)}" y1="0" y2="100%"/>'
        for tick in ticks
    )
    rows = "".join(
        f'<div class="mark">{escaped_html(mark.label)}</div>'
        f'<svg class="strip" aria-hidden="true">{lines}{_shapes(mark, panel, (low, high))}</svg>'
        for mark in panel.marks
    )
    numbers = "".join(
        f'<text x="{place(tick)}" y="14"{_anchor((tick - low) / (high - low))}>{words}</text>'
        for tick, words in zip(ticks, tick_words(ticks), strict=True)
    )
    said = [mark.label for mark in panel.marks] == [panel.facet]
    title = f"<h3>{escaped_html(panel.facet)}</h3>" if panel.facet and not said else ""
    more = f'<p class="quiet">{panel.left_out}</p>' if panel.left_out else ""
    short = " short" * all(len(mark.label) <= SHORT for mark in panel.marks)
    return (
        f'{title}<div class="chart{short}">{rows}<div class="mark"></div>'
        f'<svg class="axis" aria-hidden="true">{numbers}</svg></div>{more}'
    )


def _anchor(part: float) -> str:
    """A number near the end of an axis stays within the page."""
    if part > 0.96:
        return ' class="last"'
    return ' class="first"' if part < 0.04 else ""


def _shapes(mark: Mark, panel: AnswerPanel, limits: tuple[float, float]) -> str:
    low, high = limits
    if not mark.told:
        return f'<text class="few" x="4" y="50%">{TOO_FEW}</text>'

    def percent(value: float) -> float:
        return 100 * (min(max(value, low), high) - low) / (high - low)

    shapes = []
    if panel.bars:
        start, end = percent(0.0), percent(mark.value)
        shapes.append(f'<line class="bar" x1="{start:.2f}%" x2="{end:.2f}%" {MIDDLE}/>')
    for ends, kind in ((mark.population, "both"), (mark.noise, "noise")):
        if math.isnan(ends[0]):
            continue
        first, last = map(percent, ends)
        shapes.append(f'<line class="{kind}" x1="{first:.2f}%" x2="{last:.2f}%" {MIDDLE}/>')
        shapes += [_arrow(0.0, 1)] * (ends[0] < low) + [_arrow(100.0, -1)] * (ends[1] > high)
    shapes.append(f'<circle class="dot" cx="{percent(mark.value):.2f}%" cy="50%" r="4"/>')
    return "".join(shapes)


def _arrow(percent: float, inwards: int) -> str:
    """That an interval goes on beyond the edge."""
    path = f"M{7 * inwards},-5 L0,0 L{7 * inwards},5 Z"
    return f'<svg x="{percent:.0f}%" y="50%" overflow="visible"><path d="{path}"/></svg>'
