"""Where the means of the columns lie: private medians, and how far a mean may be from them.

If E|X − μ|^λ ≤ ψ^λ, a part p of the distribution lies beyond μ + tψ only if t ≤ m(p)/p (`tails`),
which is Cantelli's inequality p ≤ 1/(1 + t²) at λ = 2. The private median lies between the records
of the ranks ⌈n/2⌉ ± τ except with a small probability, so it lies beyond μ + tψ only if ⌈n/2⌉ − τ
of n independent records do; Chernoff's inequality bounds how often, and the same holds below. How
rare failures should be is not asked here: reaches are worked out for many probabilities at once.

Proof: docs/proofs/tails.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.data.grids import UniformGrid
from muhat.errors import DataChanged
from muhat.mechanisms.learning.tails import log_largest_part
from muhat.mechanisms.quantiles.quantile import QuantileRecipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.laws import independent_law
from muhat.noise.protection import Protection

if TYPE_CHECKING:
    from muhat.data import Source
    from muhat.data.grid_counts import Window, WindowCounts

MOST_CELLS = 1 << 29
"""Steps of a column's grid; beyond, the grid is coarser than the scale and the reach larger."""

FARTHEST = 1e9
"""Scales from the median beyond which a mean is not looked for."""

FAILURES = tuple(10.0**-power for power in range(1, 31))
"""Probabilities of a failure for which reaches are worked out."""

_SAFE = 1 + 1e-9

LEAST_PART = 1e-300
"""Smaller parts of a distribution are taken for this one."""

_HALVINGS = 60

_HALF_STEP = 0.5 + 1e-6
"""Half a step of the grid, and more than what floats lose in 2^30 steps of it."""


@dataclass(frozen=True, eq=False)
class Location(Plain, keys=("medians", "reaches")):
    """A search for the median of every column, and how far from it the mean lies at most.

    `known`, of shape (levels, d), are the reaches of every column but for the probabilities
    FAILURES, over records and noise; as many as these records tell. `strays`, of shape (2,
    levels, d), bound E[|found − μ|^k; the search failed] at every level. `level` is the one used.
    """

    medians: QuantileRecipe
    magnitude: float
    known: Floats
    strays: Floats
    level: int = 0

    @classmethod
    def of(
        cls,
        magnitude: float,
        scales: Floats,
        order: float,
        n: int,
        protection: Protection,
        kind: NoiseKind,
    ) -> Location | None:
        """The search between ±magnitude for columns of these scales ψ; None if n is too small."""
        grids = [_grid(magnitude, float(scale)) for scale in scales]
        law = independent_law(kind)
        medians = QuantileRecipe.of(grids, [Fraction(1, 2)], n, law, protection)
        known = []
        for failure in FAILURES:
            reaches = _reaches(medians, order, scales, failure)
            if reaches is None:
                break
            known.append(np.minimum(reaches, 2 * magnitude))
        if not known:
            return None
        strays = np.array([_strays(np.array(known), magnitude, power) for power in (1, 2)])
        return cls(medians, magnitude, np.array(known), strays)

    @property
    def reaches(self) -> Floats:
        """How far every mean is from what is found, but for `failed` each; of shape (d,)."""
        return np.asarray(self.known[self.level])

    @property
    def failed(self) -> float:
        """The probability that the search of one column fails, at most."""
        return FAILURES[self.level]

    @property
    def failure(self) -> float:
        """The probability that the search of any column fails, at most."""
        return self.failed * len(self.reaches)

    def at(self, level: int) -> Location:
        """The same search with its reaches for another probability."""
        return replace(self, level=level)

    def astray(self, power: int) -> Floats:
        """E[|found − μ|^power; the search failed] of every column, at most, for power 1 or 2."""
        return np.asarray(self.strays[power - 1, self.level])

    def run(self, source: Source) -> Floats:
        """A point within reach of the mean, a column each; of shape (d,)."""
        from muhat.data.grid_counts import count_windows

        n, grids = self.medians.n, self.medians.grids

        def count(windows: Sequence[Window]) -> list[WindowCounts]:
            tables = count_windows(source, grids, windows)
            if any(table.total != n for table in tables):
                raise DataChanged("the number of rows changed between two passes.")
            return tables

        (found,) = self.medians.run(count).found
        cells = zip(grids, found, strict=True)
        return np.array([grid.value(each.cell) for grid, each in cells])


def _reaches(
    medians: QuantileRecipe, order: float, scales: Floats, failure: float
) -> Floats | None:
    """How far every mean is from its private median, but for this probability each."""
    n = medians.n
    assert n is not None
    found: dict[int, float | None] = {}
    for search in medians.searches[0]:
        # Searches of as many rounds have the same noise.
        if search.rounds not in found:
            # Half of the failures for the noise, a quarter for either side of the records. One
            # record is left out, so that its size says nothing about the failures of the others.
            outside = (n + 1) // 2 - search.rank_error_but_for(failure / 2) - 1
            found[search.rounds] = tail_reach(outside, n - 1, order, failure / 4)
    steps = [_HALF_STEP * grid.step for grid in medians.grids]
    reaches = [found[search.rounds] for search in medians.searches[0]]
    known = [reach for reach in reaches if reach is not None]
    if len(known) < len(reaches):
        return None
    return np.asarray((np.array(known) * scales + np.array(steps)) * _SAFE)


def _strays(known: Floats, magnitude: float, power: int) -> Floats:
    """E[|found − μ|^power; beyond the reach] at every level, at most; of shape (levels, d).

    Beyond each reach the next one holds but for a smaller probability, beyond the last of them
    nothing but ±magnitude does.
    """
    farther = np.vstack([known[1:], np.full_like(known[:1], 2 * magnitude)])
    chances = np.array(FAILURES[: len(known)])
    shells = chances - np.append(chances[1:], 0.0)
    parts = shells[:, None] * farther**power
    return np.asarray(np.cumsum(parts[::-1], axis=0)[::-1] * _SAFE)


def tail_reach(outside: int, n: int, order: float, failure: float) -> float | None:
    """A t for which `outside` of n records lie beyond μ + tψ with this probability at most.

    The largest part p of a distribution of which so many records are that rare, and then t with
    p·t = m(p): no more than p lies beyond μ + tψ. None if t would be above a billion.

    >>> round(tail_reach(400, 1000, 2.0, 1e-9), 3)
    1.513
    """
    if outside < 1:
        return None
    wanted = -math.log(failure)
    low, high = math.log(LEAST_PART), math.log(outside / n)
    if rarity(outside, n, math.exp(low)) < wanted:
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rare = rarity(outside, n, math.exp(middle)) >= wanted
        low, high = (middle, high) if rare else (low, middle)
    reach = log_largest_part(low, order) - low
    return math.exp(reach) * _SAFE if reach < math.log(FARTHEST) else None


def rarity(events: int, n: int, part: float) -> float:
    """r for which P(at least so many of n events of the probability `part`) ≤ e^{−r}.

    Chernoff's inequality: n·KL(events/n ‖ part), rounded down; 0 if so many are not rare.
    """
    share, part = events / n, max(part, LEAST_PART)
    if not part < share:
        return 0.0
    # Logarithms of 1 + x keep the digits where the two are close and n is large.
    divergence = share * math.log1p((share - part) / part)
    if share < 1:
        divergence += (1 - share) * math.log1p((part - share) / (1 - part))
    return max(0.0, n * divergence / _SAFE)


def _grid(magnitude: float, scale: float) -> UniformGrid:
    """Steps of half a scale, or as fine as cells allow; two at least."""
    step = max(scale / 2, 2 * magnitude / MOST_CELLS)
    return UniformGrid(-magnitude, magnitude, min(step, magnitude))
