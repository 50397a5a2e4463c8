"""Quantiles of columns on public grids: a noisy search for each, all for one promise.

J searches share the promise evenly: μ²/J each under normal noise, ε/J each under Laplace noise.
Where missing values are left out, ranks are fractions of the recorded values, whose number is
released with noise, one count a column (`recorded_count.py`).
One pass over the data gives the exact counts for all rounds of all searches; grids too fine for
one table are searched in two or three passes, each within the cells that the last one left.
Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._plain import Plain
from muhat.data.grid_counts import Window, WindowCounts
from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.recorded_count import RecordedCount, count_beside, spent_beside
from muhat.mechanisms.quantiles.search_walk import Comparison, Tally, Walk
from muhat.noise.kinds import Strength
from muhat.noise.law import IndependentFamily
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

TABLE_CELLS = 1 << 22
"""The cells that are counted in one pass, over all searches."""

HALVINGS_A_QUESTION = 5
"""A question for the ends of an interval for so many halvings. They widen the noise by a tenth,
and make most intervals several times shorter, whatever the halvings happened to ask about."""

Counter = Callable[[Sequence[Window]], Sequence[WindowCounts]]


@dataclass(frozen=True)
class Found:
    """What a search found: a cell, and the noisy counts on the way to it."""

    cell: int
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class Answers:
    """What was found, a row a fraction and a column a grid; noisy numbers of recorded values."""

    found: tuple[tuple[Found, ...], ...]
    recorded: tuple[float, ...] | None


def rank_errors(
    searches: Sequence[Sequence[NoisySearch]], confidence: float, *, simultaneous: bool
) -> NDArray[np.int64]:
    """How far ranks may be off, a row a fraction and a column a grid.

    The errors of one column hold together, since its values are put in order and may be each
    other's, so that it has one error; with `simultaneous` those of all columns do.
    """
    rows, columns = len(searches), len(searches[0])
    level = _check.probability("confidence", confidence)
    level **= 1 / (rows * (columns if simultaneous else 1))
    errors = [[search.rank_error(level) for search in row] for row in searches]
    return np.tile(np.max(errors, axis=0), (rows, 1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class QuantileRecipe(Plain):
    """Searches for the quantiles `fractions` of as many columns as there are grids.

    `n` is the public number of records, None if it is secret or not counted yet. `searches` has a
    row a fraction and a column a grid. `counts`, one a grid, release how many values are recorded;
    without them every record has a value.
    """

    grids: tuple[UniformGrid, ...]
    fractions: tuple[Fraction, ...]
    n: int | None
    law: IndependentFamily
    protection: Protection
    searches: tuple[tuple[NoisySearch, ...], ...]
    counts: tuple[RecordedCount, ...] | None = None

    @classmethod
    def of(
        cls,
        grids: Sequence[UniformGrid],
        fractions: Sequence[Fraction],
        n: int | None,
        law: IndependentFamily,
        protection: Protection,
        *,
        recorded: bool = False,
        intervals: bool = False,
    ) -> QuantileRecipe:
        """Searches that share the promise evenly.

        With `recorded` values may be missing: ranks are those of the recorded ones. For short
        `intervals` every search asks one question more for five halvings.
        """
        column = Strength.of(protection.promise, law.kind).part(Fraction(1, len(grids)))
        secret = protection.neighbors is Neighbors.ADD_REMOVE
        searches = []
        for grid in grids:
            rounds = (grid.cells - 1).bit_length()
            further = math.ceil(rounds / HALVINGS_A_QUESTION) if intervals else 0
            questions = len(fractions) * (rounds + further)
            share = Fraction(1, len(fractions))
            if recorded and secret:
                # The count has the share of one round.
                share *= Fraction(questions, questions + 1)
            searches.append(
                [
                    NoisySearch(
                        grid.cells,
                        law,
                        column.part(share).squared,
                        protection.contributions,
                        fraction if secret or recorded else None,
                        recorded and not secret,
                        further,
                    )
                    for fraction in fractions
                ]
            )
        counts = (
            tuple(count_beside(each, column.squared) for each in searches) if recorded else None
        )
        rows = tuple(zip(*searches, strict=True))
        return cls(tuple(grids), tuple(fractions), n, law, protection, rows, counts)

    def __post_init__(self) -> None:
        public = self.protection.neighbors is Neighbors.SUBSTITUTE
        if self.n is not None and not public:
            raise InvalidInput("n is secret where records are added or removed.")
        if any(not 0 < fraction < 1 for fraction in self.fractions):
            raise InvalidInput("must lie strictly between 0 and 1", parameter="q")
        everything = [search for row in self.searches for search in row]
        for search in everything:
            if search.contributions != self.protection.contributions or search.law != self.law:
                raise AssertionError("a search was made for another promise")
            if search.replaced != (public and self.counts is not None):
                raise AssertionError("a search was made for other neighbours")
            if (search.quantile is None) != (public and self.counts is None):
                raise AssertionError("a secret number of records must not decide a rank")
        if any(count.law != self.law for count in self.counts or ()):
            raise AssertionError("a count has noise of another law than the searches beside it")
        if not self._spent.keeps(self.protection.promise):
            raise AssertionError("the searches together spend more than was promised")

    @property
    def _spent(self) -> Strength:
        """What all columns reveal together: they share the promise evenly, as their searches do."""
        kind, columns = self.law.kind, list(zip(*self.searches, strict=True))
        if self.counts is None:
            each = [kind.together([one.strength_squared for one in column]) for column in columns]
            return kind.together([column.squared for column in each])
        return kind.together(list(map(spent_beside, columns, self.counts)))

    def rank(self, fraction: Fraction) -> int | None:
        """⌈q·n⌉, the rank of the quantile; None if it is secret."""
        if self.n is None or self.counts is not None:
            return None
        return max(1, math.ceil(fraction * self.n))

    def run(self, count: Counter) -> Answers:
        """Carry all searches out, and count; `count` is a pass over the data."""
        bits = self._bits(len(self.grids))
        whole = [
            self._window(column, 0, search.rounds, bits)
            for column, search in enumerate(self.searches[0])
        ]
        tables = count(whole)
        tallies = [
            Tally.of(0, window.block_bits, table.before, table.counts)
            for window, table in zip(whole, tables, strict=True)
        ]
        walks: list[tuple[int, Walk]] = []
        for fraction, row in zip(self.fractions, self.searches, strict=True):
            for column, search in enumerate(row):
                walk = search.start(tables[column].total, self.rank(fraction))
                walk.follow(tallies[column], min(bits, search.rounds))
                walks.append((column, walk))
        while under_way := [(column, walk) for column, walk in walks if walk.rounds_left]:
            self._further(under_way, count)
        found = [Found(walk.cell, walk.comparisons) for _, walk in walks]
        width = len(self.grids)
        starts = range(0, len(found), width)
        rows = tuple(tuple(found[start : start + width]) for start in starts)
        if self.counts is None:
            return Answers(rows, None)
        pairs = zip(self.counts, tables, strict=True)
        return Answers(rows, tuple(one.release(table.total) for one, table in pairs))

    def _further(self, walks: Sequence[tuple[int, Walk]], count: Counter) -> None:
        """One more pass, within the intervals that are left."""
        bits = self._bits(len(walks))
        windows = [
            self._window(column, walk.left, walk.rounds_left, bits) for column, walk in walks
        ]
        unique = list(dict.fromkeys(windows))
        tallies = {
            window: Tally.of(window.first, window.block_bits, table.before, table.counts)
            for window, table in zip(unique, count(unique), strict=True)
        }
        for window, (_, walk) in zip(windows, walks, strict=True):
            walk.follow(tallies[window], min(bits, walk.rounds_left))

    @staticmethod
    def _bits(searches: int) -> int:
        """Rounds that one pass serves, so that all tables fit."""
        return max(1, (TABLE_CELLS // searches).bit_length() - 1)

    def _window(self, column: int, left: int, rounds: int, bits: int) -> Window:
        """The interval of 2^rounds cells at `left` in 2^bits blocks, up to the last cell."""
        taken = min(bits, rounds)
        behind = rounds - taken
        blocks = (self.grids[column].cells - 1 - left >> behind) + 1
        return Window(column, left, behind, min(1 << taken, max(blocks, 1)))
