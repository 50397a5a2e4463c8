"""KnownVar and UnkVar, means of one column in the local model (Gaboardi, Rogers, Sheffet 2019).

Baselines for studies, idealised: shares of answers in floats and noise of a seeded generator are
**not private in floating point**. Never release what they return. They are our own reading of the
published algorithms, with group sizes that are fixed parts of the people: those of the proofs are
larger than all the people there are, for a small ε.

KnownVar: half of the people tell, with flipped bits, in which of many bins of width σ they are; the
other half send their value, clipped to an interval around the fullest bin, with noise.
UnkVar: a quarter finds the median by a binary search, a quarter the quantile one deviation above
it, everybody by one randomised answer; the rest as before, with the interval that follows.
Both are told a bound on |μ|, and answer within it.

Many columns: as in Huang, Liang and Yi everybody answers for every column, each with the small ε
that advanced composition leaves (`composed`); or everybody answers for one column (`divided`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.random import Generator

from muhat._arrays import Floats

FAILURE = 0.05
"""The probability with which the interval may miss a record."""

MEDIAN_WITHIN, UPPER_WITHIN = 0.098, 0.052
"""A binary search ends when the share is so near the wanted one."""

LEAST_SCALE, LARGEST_SCALE = 0.1, 10.0
"""The public bounds on σ for UnkVar."""


@dataclass(frozen=True)
class Promise:
    """(ε, δ) for one column of one person; δ = 0 has Laplace noise, else it is normal."""

    epsilon: float
    delta: float = 0.0


Column = Callable[[Floats, Promise, float, Generator], float]
"""(values, promise, bound on |μ|, generator) → the mean."""


def advanced_composition(epsilon: float, delta: float, columns: int) -> Promise:
    """What is left for each column if all of them together keep (ε, δ).

    k mechanisms that keep (ε₀, δ₀) keep (ε₀ √(2k ln(1/δ′)) + k ε₀ (e^ε₀ − 1), kδ₀ + δ′); half of
    δ is δ′.

    >>> advanced_composition(1.0, 1e-9, 1)
    Promise(epsilon=1.0, delta=1e-09)
    >>> f"{advanced_composition(1.0, 1e-9, 8).epsilon:.4f}"
    '0.0528'
    """
    if columns == 1:
        return Promise(epsilon, delta)
    slope = math.sqrt(2 * columns * math.log(2 / delta))
    low, high = 0.0, epsilon / slope
    for _ in range(60):
        middle = (low + high) / 2
        whole = middle * slope + columns * middle * math.expm1(middle)
        low, high = (middle, high) if whole <= epsilon else (low, middle)
    return Promise(low, delta / (2 * columns))


def composed(
    rows: Floats, epsilon: float, delta: float, bound: float, column: Column, generator: Generator
) -> Floats:
    """Everybody answers for every column, which share the promise by advanced composition."""
    promise = advanced_composition(epsilon, delta, rows.shape[1])
    return np.array([column(values, promise, bound, generator) for values in rows.T])


def divided(
    rows: Floats, epsilon: float, bound: float, column: Column, generator: Generator
) -> Floats:
    """Everybody answers for one column, with the whole of a pure ε."""
    dim = rows.shape[1]
    return np.array(
        [column(rows[j::dim, j], Promise(epsilon), bound, generator) for j in range(dim)]
    )


def known_var(values: Floats, promise: Promise, bound: float, generator: Generator) -> float:
    """The mean of values with variance 1.

    >>> generator = np.random.default_rng(0)
    >>> found = known_var(generator.normal(7, 1, 40_000), Promise(1.0), 20.0, generator)
    >>> bool(abs(found - 7) < 0.5)
    True
    """
    half = len(values) // 2
    center = _fullest_bin(values[:half], promise.epsilon, bound, generator)
    reach = 2 + math.sqrt(2 * math.log(8 * len(values) / FAILURE))
    found = _noisy_mean(values[half:], center, reach, promise, generator)
    return float(np.clip(found, -bound, bound))


def unk_var(values: Floats, promise: Promise, bound: float, generator: Generator) -> float:
    """The mean of values whose variance is learnt first."""
    quarter = len(values) // 4
    first, second, rest = values[:quarter], values[quarter : 2 * quarter], values[2 * quarter :]
    search = (promise.epsilon, bound, generator)
    median = _searched(first, 0.5, MEDIAN_WITHIN, *search)
    upper = _searched(second, NormalDist().cdf(1), UPPER_WITHIN, *search)
    scale = min(max(upper - median, LEAST_SCALE), LARGEST_SCALE)
    reach = scale * (0.5 + 2 * math.sqrt(2 * math.log(8 * len(values) / FAILURE)))
    found = _noisy_mean(rest, median, reach, promise, generator)
    return float(np.clip(found, -bound, bound))


def _fullest_bin(values: Floats, epsilon: float, bound: float, generator: Generator) -> float:
    """The middle of the bin with the largest noisy count; everybody flips a bit for every bin."""
    edge = math.ceil(bound)
    bins = np.clip(np.floor(values).astype(np.int64) + edge, 0, 2 * edge - 1)
    counts = np.bincount(bins, minlength=2 * edge)
    # Two bits differ between two records.
    kept = 1 / (1 + math.exp(-epsilon / 2))
    told = generator.binomial(counts, kept) + generator.binomial(len(values) - counts, 1 - kept)
    return int(np.argmax(told)) - edge + 0.5


def _searched(
    values: Floats, share: float, within: float, epsilon: float, bound: float, generator: Generator
) -> float:
    """A quantile by a binary search; every step asks another group whether they are below."""
    steps = math.ceil(math.log2(8 * bound / LEAST_SCALE))
    size = len(values) // steps
    low, high = -bound, bound + LARGEST_SCALE
    kept = 1 / (1 + math.exp(-epsilon))
    middle = (low + high) / 2
    for step in range(steps):
        middle = (low + high) / 2
        below = int((values[step * size : (step + 1) * size] < middle).sum())
        told = generator.binomial(below, kept) + generator.binomial(size - below, 1 - kept)
        found = (told / size - (1 - kept)) / (2 * kept - 1)
        if abs(found - share) <= within / 2:
            break
        low, high = (low, middle) if found > share else (middle, high)
    return middle


def _noisy_mean(
    values: Floats, center: float, reach: float, promise: Promise, generator: Generator
) -> float:
    """The mean of clipped values, each of which has noise."""
    clipped, n = np.clip(values, center - reach, center + reach), len(values)
    if promise.delta:
        deviation = 2 * reach * math.sqrt(2 * math.log(2 / promise.delta)) / promise.epsilon
        noise = generator.normal(0, deviation / math.sqrt(n))
    else:
        noise = generator.laplace(0, 2 * reach / promise.epsilon, n).mean()
    return float(clipped.mean() + noise)
