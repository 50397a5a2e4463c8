"""A set of statistics as a picture: what each takes of the promise, and how far off it will be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muhat.planning.picture import INK, NOISE, blank_figure
from muhat.planning.planned import PlannedStatistic
from muhat.release.display import significant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_SIZE = 1_000
LINE_HEIGHT = 0.34


def set_figure(statistics: Sequence[PlannedStatistic]) -> Figure:
    """A bar a statistic, with its standard error beside it."""
    figure = blank_figure(max(2.4, 1.2 + LINE_HEIGHT * len(statistics)))
    axes = figure.subplots()
    places = range(len(statistics))
    shares = [100 * each.share for each in statistics]
    axes.barh(places, shares, color=NOISE, height=0.6)
    axes.set_yticks(places, [each.name for each in statistics])
    axes.invert_yaxis()
    for place, share, each in zip(places, shares, statistics, strict=True):
        axes.annotate(
            _error_words(each),
            (share, place),
            (5, 0),
            textcoords="offset points",
            va="center",
            color=INK,
            fontsize="small",
        )
    axes.set_xlim(0, 1.45 * max(shares, default=1.0))
    axes.set_xlabel("per cent of the promise")
    return figure


def _error_words(each: PlannedStatistic) -> str:
    if each.error is None:
        return "the data decide the error"
    if each.of_group:
        return f"± {significant(each.error / SHOWN_SIZE)} for a group of {SHOWN_SIZE:,}"
    return f"± {significant(each.error)}{' ranks' * each.in_ranks}"
