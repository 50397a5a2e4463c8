"""What pictures of a release show: numbers of one unit side by side, with both intervals.

A statistic has one panel, or one for each of its numbers where their units differ: columns,
coefficients, pairs of columns. Pictures and reports draw the same panels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.release.tables import Columns

if TYPE_CHECKING:
    from muhat.release.answer import Answer

MOST_MARKS = 40
"""The most numbers that a panel shows."""

APART = ("column", "coefficient", "pair")
"""The columns of a table whose entries have units of their own."""

FROM_ZERO = ("count", "sum", "queries", "ranges")
"""Statistics whose size is what counts: drawn as bars."""

TOO_FEW = "too few"
QUANTILES = {0.0: "least", 0.5: "median", 1.0: "greatest"}
NO_INTERVAL = (math.nan, math.nan)
LONGEST_INTERVAL = 4.0
"""An interval may be drawn so many times as long as what lies side by side; then it is cut."""


@dataclass(frozen=True)
class Mark:
    """A number and its two intervals; not-a-number is not known, and an end may be infinite."""

    label: str
    value: float
    noise: tuple[float, float] = NO_INTERVAL
    population: tuple[float, float] = NO_INTERVAL

    @property
    def told(self) -> bool:
        """Whether there is a number: not where a group has too few records."""
        return math.isfinite(self.value)


@dataclass(frozen=True)
class AnswerPanel:
    """Numbers of one unit; `total` counts those that are not among its marks, too.

    `facet` is what sets it apart from other panels of the statistic; empty if it is the only one.
    """

    statistic: str
    facet: str
    marks: tuple[Mark, ...]
    bars: bool
    total: int

    @property
    def title(self) -> str:
        """The statistic, and which of its numbers."""
        return f"{self.statistic}: {self.facet}" if self.facet else self.statistic

    @property
    def left_out(self) -> str:
        """How many are not shown, in words; nothing if all are."""
        if self.total == len(self.marks):
            return ""
        return f"The first {len(self.marks):,} of {self.total:,}; all are in the table."

    @property
    def has_noise(self) -> bool:
        """Whether an interval for the records is shown."""
        return any(mark.told and not math.isnan(mark.noise[0]) for mark in self.marks)

    @property
    def has_population(self) -> bool:
        """Whether an interval for a population is shown."""
        return any(mark.told and not math.isnan(mark.population[0]) for mark in self.marks)

    def limits(self) -> tuple[float, float]:
        """The ends of the axis, a little beyond what is shown.

        An interval that is very long beside the others is cut there, an infinite one anyhow.
        """
        told = [mark for mark in self.marks if mark.told]
        values = np.array([mark.value for mark in told] + [0.0] * self.bars)
        if not values.size:
            return 0.0, 1.0
        ends = np.array([[*mark.noise, *mark.population] for mark in told]).reshape(-1, 4)
        ends = np.where(np.isfinite(ends), ends, np.nan)
        longest = LONGEST_INTERVAL * self._extent(values, ends)
        ends = np.clip(ends, values.min() - longest, values.max() + longest)
        low, high = _ends(np.concatenate([values, ends[~np.isnan(ends)]]))
        if low == high:
            size = abs(low) or 1.0
            low, high = low - size / 2, high + size / 2
        beyond = 0.06 * (high - low)
        # A bar begins at the edge if all bars point to one side.
        least = low if self.bars and low == 0 else low - beyond
        return least, high if self.bars and high == 0 else high + beyond

    @staticmethod
    def _extent(values: Floats, ends: Floats) -> float:
        """How far values lie apart, or how long most of their intervals are."""
        low, high = _ends(values)
        lengths = np.concatenate([ends[:, 1] - ends[:, 0], ends[:, 3] - ends[:, 2]])
        known = lengths[~np.isnan(lengths)]
        typical = float(np.median(known)) if known.size else 0.0
        return max(high - low, typical)


def panels_of(name: str, answer: Answer, most: int = MOST_MARKS) -> list[AnswerPanel]:
    """The panels of one answer, of a name."""
    table = answer.table()
    words = list(table)[: list(table).index("value")]
    facets, facet_of = _facets(answer, {word: table[word] for word in words})
    bars = getattr(answer, "statistic", None) in FROM_ZERO
    panels = []
    for place, (facet, apart) in enumerate(facets):
        rows = np.flatnonzero(facet_of == place)
        labels = [word for word in words if word not in apart]
        marks = tuple(_mark(table, labels, row, facet or name) for row in rows[:most].tolist())
        panels.append(AnswerPanel(name, facet if len(facets) > 1 else "", marks, bars, len(rows)))
    return panels


def _facets(
    answer: Answer, words: Columns
) -> tuple[list[tuple[str, Sequence[str]]], NDArray[np.int64]]:
    """The panels' names with the columns that are said by them, and which panel a row is in."""
    apart = next((word for word in APART if word in words), None)
    if apart is not None and not _are_alike(answer, apart):
        return _split([(str(cell), (apart,)) for cell in words[apart].tolist()])
    if getattr(answer, "statistic", None) == "queries" and len(words) > 1:
        # A marginal leaves the attributes empty that it is not about.
        rows = zip(*(column.tolist() for column in words.values()), strict=True)
        absent = [
            tuple(w for w, cell in zip(words, row, strict=True) if cell == "") for row in rows
        ]
        said = {none: " by ".join(w for w in words if w not in none) for none in set(absent)}
        return _split([(said[none] or "all records", none) for none in absent])
    rows_in_all = len(next(iter(words.values()))) if words else 1
    return [("", ())], np.zeros(rows_in_all, np.int64)


def _split(
    keys: list[tuple[str, tuple[str, ...]]],
) -> tuple[list[tuple[str, Sequence[str]]], NDArray[np.int64]]:
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return list(places), np.array([places[key] for key in keys], np.int64)


def _are_alike(answer: Answer, apart: str) -> bool:
    """Whether all columns, or pairs of them, have one unit."""
    if apart == "pair":
        return getattr(answer, "statistic", None) == "correlation"
    domain = getattr(answer, "domain", None)
    if apart != "column" or domain is None:
        return False
    sizes, centers = np.asarray(domain.half_widths), np.asarray(domain.center)
    return bool((sizes == sizes[0]).all() and (centers == centers[0]).all())


def _mark(table: Columns, labels: Sequence[str], row: int, otherwise: str) -> Mark:
    said = [_words(name, table[name][row]) for name in labels]
    return Mark(
        ", ".join(said) or otherwise,
        float(table["value"][row]),
        _pair(table, row, "lower", "upper"),
        _pair(table, row, "population_lower", "population_upper"),
    )


def _words(name: str, cell: Any) -> str:
    if name == "quantile" and isinstance(cell, float):
        return QUANTILES.get(cell, f"quantile {cell:g}")
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def _pair(table: Columns, row: int, lower: str, upper: str) -> tuple[float, float]:
    if lower not in table:
        return NO_INTERVAL
    return float(table[lower][row]), float(table[upper][row])


def _ends(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def ticks_between(low: float, high: float, most: int = 5) -> list[float]:
    """At most so many round numbers between the ends of an axis.

    >>> ticks_between(0, 3500), ticks_between(-0.11, 0.23)
    ([0.0, 1000.0, 2000.0, 3000.0], [-0.1, 0.0, 0.1, 0.2])
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    for step in (power, 2 * power, 2.5 * power, 5 * power, 10 * power):
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first < most:
            break
    # Steps and quotients of round numbers are rounded again, so that 3·0.1 is 0.3.
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def tick_words(ticks: Sequence[float]) -> list[str]:
    """Ticks with as many digits as all of them need: 0.05, 0.10; 1,500; 2e-07.

    >>> tick_words([0.0, 0.05, 0.1]), tick_words([0, 2500]), tick_words([0, 2e-7])
    (['0.00', '0.05', '0.10'], ['0', '2,500'], ['0', '2e-07'])
    """
    largest = max((abs(tick) for tick in ticks), default=0.0)
    if largest >= 1e7 or 0 < largest < 1e-3:
        return [f"{tick:.6g}" if tick else "0" for tick in ticks]
    slack = 1e-6 * min((abs(b - a) for a, b in pairwise(ticks)), default=largest)
    decimals = next(
        (d for d in range(12) if all(abs(round(tick, d) - tick) <= slack for tick in ticks)), 12
    )
    words = (f"{round(tick, decimals) + 0.0:,.{decimals}f}" for tick in ticks)
    return [word.replace("-", "−") for word in words]
