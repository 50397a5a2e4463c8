"""The steps that methods for unbounded records are made of: charge, read, add noise, note down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.domains.lattice import Lattice
from muhat.errors import DataChanged
from muhat.mechanisms.learning.sharing import Sharing, around
from muhat.mechanisms.sums.ratio import Ratio
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.spread import Spread

if TYPE_CHECKING:
    from muhat.data import Source
    from muhat.data.distances import Frame


class Reader(Protocol):
    """Passes over the records; what they return is data, never to be shown."""

    rows: int

    def distance_counts(self, center: Floats, edges: Floats) -> Sequence[int]:
        """How many records have their distance from the centre in each cell."""

    def line_counts(self, center: float, edges: Floats) -> Sequence[int]:
        """How many records on a line have their weighted offset from the centre in each cell."""

    def excess(self, center: Floats, inner: float, lattice: Lattice) -> Sequence[int]:
        """The exact sums, in weighted coordinates, of what lies beyond an inner radius."""

    def sums(self, lattice: Lattice) -> Sequence[int]:
        """The exact sums of the records' integers."""

    def filling(self, values: Floats) -> Reader:
        """The same records with these values, of shape (d,), where any are missing."""


@dataclass(frozen=True)
class Step:
    """One step of a method: what it was, the share of the promise it took, what came out."""

    name: str
    share: Fraction
    radius: float


@dataclass
class Transcript:
    """The steps taken, in order; their shares never exceed 1, nor a limit before the last one."""

    steps: list[Step] = field(default_factory=list)
    limit: Fraction = Fraction(1)

    @property
    def spent(self) -> Fraction:
        """The sum of all shares, exactly."""
        return sum((step.share for step in self.steps), Fraction(0))

    def charge(self, share: Fraction, *, last: bool = False) -> None:
        """Refuse a step that would exceed the promise; called before its noise is drawn."""
        if share <= 0 or self.spent + share > (1 if last else self.limit):
            raise AssertionError("the steps would exceed the promise")


class Steps:
    """A method under way: every step takes its share before its noise is drawn."""

    def __init__(self, sharing: Sharing, reader: Reader) -> None:
        self.sharing = sharing
        self.reader = reader
        self.transcript = Transcript(limit=sharing.limit)

    @property
    def spent(self) -> Fraction:
        """The share of the promise that the steps so far have taken."""
        return self.transcript.spent

    def counts(self, center: Floats, edges: Floats) -> NDArray[np.int64]:
        """How many records have their distance from the centre in each cell: not private."""
        return np.array(self.reader.distance_counts(center, edges), np.int64)

    def line_counts(self, center: float, edges: Floats) -> NDArray[np.int64]:
        """How many records on a line have their offset in each cell: not private."""
        return np.array(self.reader.line_counts(center, edges), np.int64)

    def search(
        self, name: str, counts: NDArray[np.int64], edges: Floats, share: Fraction, above: int
    ) -> float:
        """The edge that leaves about so many of the counted records above it."""
        self.transcript.charge(share)
        search = self.sharing.search(len(edges), share)
        found = float(edges[search.find(counts, self.sharing.n - above)])
        self.transcript.steps.append(Step(name, share, found))
        return found

    def mean(
        self, name: str, center: Floats, radius: float, share: Fraction
    ) -> tuple[Floats, Spread, Domain]:
        """The noisy mean of the records clipped to a ball, its noise, and the ball."""
        self.transcript.charge(share)
        ball = around(center, radius, self.sharing.weights)
        recipe = self.sharing.recipe_in(ball, share, self.sharing.weights)
        return self._mean(recipe, Step(name, share, radius), ball)

    def last_mean(self, center: Floats, radius: float) -> tuple[Floats, Spread, Domain]:
        """The same, for all that is left."""
        share = 1 - self.spent
        self.transcript.charge(share, last=True)
        ball = around(center, radius, self.sharing.weights)
        recipe = self.sharing.last_recipe(ball, share)
        return self._mean(recipe, Step("mean", share, radius), ball)

    def _mean(self, recipe: Recipe, step: Step, ball: Domain) -> tuple[Floats, Spread, Domain]:
        sharing = self.sharing
        lattice = recipe.query.lattice
        assert lattice is not None
        assert recipe.center is not None
        totals = self.reader.sums(lattice)
        noisy = [total / sharing.n for total in recipe.run(totals, sharing.n)]
        self.transcript.steps.append(step)
        spread = Spread(recipe.law, recipe.query.rows, recipe.scales, recipe.factor)
        return recipe.center + recipe.to_domain(noisy), spread.shrunk(sharing.n), ball

    def last_ratio(self, center: Floats, radius: float) -> Ratio:
        """The noisy sum of the records clipped to a ball, seen from its centre, and their number.

        For records of which some may be missing, and all that is left.
        """
        share = 1 - self.spent
        self.transcript.charge(share, last=True)
        ball = around(center, radius, self.sharing.weights)
        recipe = self.sharing.recorded_in(ball, share)
        lattice = recipe.query.lattice
        assert lattice is not None
        *sums, number = recipe.run(self.reader.sums(lattice), self.reader.rows)
        self.transcript.steps.append(Step("mean", share, radius))
        return Ratio(
            recipe.to_domain(sums),
            np.array([float(number)]),
            recipe.sum_spread,
            recipe.row_scales[-1:],
            -ball.half_widths,
            ball.half_widths,
            np.zeros(len(center)),
        )


class SourceReader:
    """Passes over a source; the number of rows must be the same in each.

    `rows` is that number, of which nothing may be shown if it is not the sharing's n.
    """

    def __init__(self, source: Source, sharing: Sharing, rows: int | None = None) -> None:
        self._source = source
        self._sharing = sharing
        self.rows = sharing.n if rows is None else rows

    def distance_counts(self, center: Floats, edges: Floats) -> list[int]:
        """How many records have their distance from the centre in each cell."""
        from muhat.data.distances import distance_counts

        counts = distance_counts(self._source, self._frame(center), edges)
        self._check_rows(sum(counts))
        return counts

    def line_counts(self, center: float, edges: Floats) -> list[int]:
        """How many records on a line have their weighted offset from the centre in each cell."""
        from muhat.data.distances import line_counts

        counts = line_counts(self._source, self._frame(np.array([center])), edges)
        self._check_rows(sum(counts))
        return counts

    def excess(self, center: Floats, inner: float, lattice: Lattice) -> Sequence[int]:
        """The exact sums, in weighted coordinates, of what lies beyond an inner radius."""
        from muhat.data.distances import excess_sums

        sums = excess_sums(self._source, self._frame(center), inner, lattice)
        self._check_rows(sums.rows)
        return sums.total

    def sums(self, lattice: Lattice) -> Sequence[int]:
        """The exact sums of the records' integers."""
        from muhat.data.distances import bounded_sums

        sums = bounded_sums(self._source, lattice, self._sharing.magnitude)
        self._check_rows(sums.rows)
        return sums.total

    def filling(self, values: Floats) -> SourceReader:
        """The same records with these values, of shape (d,), where any are missing."""
        from muhat.data.rotation import Preparation, PreparedSource

        sharing = self._sharing
        preparation = Preparation(sharing.dim, sharing.magnitude, fill=values)
        return SourceReader(PreparedSource(self._source, preparation), sharing, self.rows)

    def _frame(self, center: Floats) -> Frame:
        from muhat.data.distances import Frame

        return Frame(center, self._sharing.weights, self._sharing.magnitude)

    def _check_rows(self, rows: int) -> None:
        if rows != self.rows:
            raise DataChanged("the number of rows changed between two passes.")
