"""Means of recorded values in two steps: what a missing value counts as, then the noise of complete
records.

A small share of ε tells roughly where the mean of every column lies, t, and how many values there
are, N̂ ≤ n. Then a missing value counts as t: one record, replaced by another, moves Σ(x_i − t) over
recorded values by at most the width of the bounds, as if nothing were missing, and the noise is
that of complete records. The mean is t + R̂/N̂ with R̂ the noisy sum. What the noise k of the count
does to it is (R/N)·(k/N), R/N being the error of t: a product of two small numbers.

    error², in half-widths, at the worst mean:   V((1 − s)ε) + 224/(sε)⁴/n²   beside   16/ε²

for one column, s the share of the first step, V the variance of stairs of step 2, about 8/ε². The
best s falls with n, as n^{−1/3}. Two steps are taken where they gain ten per cent. Under (ε, δ) the
second may be cut at all of δ, where that gains one per cent.
Proof: docs/proofs/columns.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat._arrays import Floats
from muhat._integers import round_half_even
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.errors import DataChanged
from muhat.mechanisms.sums.mechanisms import MECHANISMS
from muhat.mechanisms.sums.ratio import Ratio
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.least_stairs import LEAST_GAIN
from muhat.noise.spread import Spread
from muhat.planning.answers import Estimate, mean_of, squares_of
from muhat.planning.columns import column_recipes
from muhat.planning.sums import WORDS, NoisySums
from muhat.planning.terms import Terms
from muhat.release.beside import Recorded
from muhat.release.vector_answer import VectorAnswer

if TYPE_CHECKING:
    from muhat.data import Source
    from muhat.planning.task import Task

SHARES = tuple(Fraction(k, 1024) for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192))
"""Of ε, for the first step."""

COUNT_WORTH = 1.1
"""The number of recorded values, which has much more noise in two steps, is worth ten per cent."""

SECONDS = ("laplace", "staircase", "box-norm", "box-stairs")
"""Pure noise for complete records in a box."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TwoSteps(NoisySums):
    """A mean of recorded values: `recipe` is the first step, for a `share` of ε, `second` more."""

    second: Recipe
    share: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.counts_columns or self.second.query.lattice != _box(self.recipe):
            raise AssertionError("both steps must sum the same integers")

    def keeps(self, terms: Terms) -> bool:
        """Whether both steps were proved for their shares of the promise, which are one."""
        given = (self.recipe.protection, self.second.protection)
        return not terms.is_secret and given in terms.protection.divided(self.share)

    @property
    def name(self) -> str:
        """How the second step's noise is called says which one it is."""
        return f"two-step {self.second.name}"

    @property
    def full_name(self) -> str:
        return self.name

    @property
    def handicap(self) -> float:
        return super().handicap * COUNT_WORTH

    @property
    def words(self) -> str:
        """What is done with which part of ε."""
        part = f"{100 * float(self.share):.2g} %"
        return f"{part} of ε says what a missing value counts as, then {WORDS[self.second.name]}"

    def error_if(self, n: int) -> float:
        """At the worst mean, with nothing missing, to second order."""
        spread = self.second.sum_spread.weighted(self.weights)
        noise, _ = spread.root_mean_square(self.p)
        later = math.sqrt(float(np.sum(self.weights**2 * _products(self.recipe, 1.0))) / 2) / n
        # Independent of each other; beyond p = 2 lengths add up.
        return (math.hypot(noise, later) if self.p == 2 else noise + later) / n

    def standard_error_at(self, n: int, offsets: Floats) -> Floats:
        assert self.domain is not None
        # Of a count that cannot be more than it is, half of the noise is 0.
        half = 0.5 if n == self.n else 1.0
        later = half * _products(self.recipe, offsets / self.domain.half_widths) / n**2
        return np.asarray(np.sqrt(self.second.sum_spread.standard_error**2 + later) / n)

    def decisive(self) -> dict[str, Any]:
        """Those of the first step, and the second."""
        return {**super().decisive(), "second": self.second.to_dict(), "share": str(self.share)}

    def read(self, source: Source) -> VectorAnswer:
        """One pass over the records: both steps use the same exact sums."""
        totals, rows = self._sums(source)
        if self.n is not None and rows != self.n:
            raise DataChanged("the number of rows changed between counting and reading.")
        return self.certified(self._told(self.estimate(totals, rows), self._names(source)))

    def estimate(self, totals: Sequence[int], rows: int) -> Estimate:
        """What both steps tell of exact sums: of values, of squares if they are free, of counts."""
        first, d = self.recipe.run(totals, rows), self.dim
        first[-d:] = [min(number, Fraction(rows)) for number in first[-d:]]
        starts = self._starts(first)
        places = zip(totals[:d], starts, totals[-d:], strict=True)
        second = self.second.run([total - at * number for total, at, number in places], rows)
        return self._read_off(first, starts, second)

    def _starts(self, first: Sequence[Fraction]) -> list[int]:
        """What a missing value counts as, in integers of the lattice: the nearest within bounds."""
        box, d = _box(self.recipe), self.dim
        found = []
        places = zip(first[:d], first[-d:], box.grid, box.lower, box.upper, strict=True)
        for total, number, step, low, high in places:
            mean = total / max(number, Fraction(1)) / step
            found.append(min(max(round_half_even(mean.numerator, mean.denominator), low), high))
        return found

    def _read_off(
        self, first: list[Fraction], starts: list[int], second: list[Fraction]
    ) -> Estimate:
        assert self.domain is not None
        recipe, d, box = self.recipe, self.dim, _box(self.recipe)
        middle = self.domain.center
        lower, upper = self.domain.bounding_box
        places = zip(starts, box.center_units, box.grid, strict=True)
        start = np.array([float((at + units) * step) for at, units, step in places])
        scales = recipe.row_scales[-d:]
        ratio = Ratio(
            np.array([float(total) for total in second]),
            np.array([float(number) for number in first[-d:]]),
            self.second.sum_spread,
            scales,
            lower - middle,
            upper - middle,
            start - middle,
            Spread(recipe.law, recipe.noise_rows, scales),
        )
        number = Recorded(ratio.count, ratio.count_error)
        return Estimate(mean_of(self, ratio), ratio, number, squares_of(self, first))


def two_steps(task: Task, names: Sequence[str]) -> list[TwoSteps]:
    """The mean in two steps, with the best of the named noises for complete records."""
    asked, terms = task.asked, task.terms
    bounded = asked.domain.by_column and asked.clip is None and asked.domain.half_widths.all()
    dropped = asked.missing == "drop" and asked.statistic == "mean"
    if not (bounded and dropped) or terms.hides_n:
        return []
    known = [MECHANISMS[name] for name in names]
    if asked.mechanism is not None:
        # Laplace noise and that of the box are asked for on sums and counts together.
        known = [each for each in known if not each.beside_columns]
    pure = [each.name for each in known if each.kind is NoiseKind.PURE and each.name in SECONDS]
    if not pure:
        return []

    def error(recipe: Recipe) -> float:
        return recipe.sum_spread.weighted(asked.weights).root_mean_square(asked.p)[0]

    best = min(task.recipes(task.body, pure), key=error)
    share = _share(column_recipes(task, ["laplace"])["laplace"], best, terms.n or 1)
    (first, second), *cut = [
        (first, MECHANISMS[best.name].make(task.body, asked.p, asked.weights, rest))
        for first, rest in task.protection.divided(share)
    ]
    for other, least in cut:
        if error(least) <= LEAST_GAIN * error(second):
            first, second = other, least
    return [
        TwoSteps(
            terms=terms,
            statistic="mean",
            columns=asked.columns,
            premises=asked.premises(),
            domain=asked.domain,
            p=asked.p,
            weights=asked.weights,
            missing=asked.missing,
            recipe=column_recipes(task, ["laplace"], first)["laplace"],
            second=second,
            share=share,
        )
    ]


def _share(first: Recipe, complete: Recipe, n: int) -> Fraction:
    """The best share for the first step, from what both would have with the whole ε."""
    noise = float(np.sum(complete.sum_spread.standard_error**2))
    later = float(np.sum(_products(first, 1.0))) / 2 / n**2
    return min(SHARES, key=lambda s: noise / float(1 - s) ** 2 + later / float(s) ** 4)


def _products(first: Recipe, place: float | Floats) -> Floats:
    """E (s − τ·k)²k² for the Laplace noise s of a sum and k of its count: 4b²c² + 24τ²c⁴.

    b and c are their scales; the mean τ lies so many half-widths from the middle of its bounds.
    """
    box = _box(first)
    sides = zip(box.extent, box.grid, strict=True)
    far = place * np.array([float(extent * step) / 2 for extent, step in sides])
    counts = first.row_scales[-len(far) :]
    return np.asarray(4 * (first.scales * counts) ** 2 + 24 * far**2 * counts**4)


def _box(first: Recipe) -> BoxLattice:
    lattice = first.query.lattice
    assert isinstance(lattice, ColumnsLattice)
    return lattice.box
