"""Quantiles of columns on public grids: a noisy search or a choice for each, for one promise.

J searches share the promise evenly: μ²/J each under normal noise, ε/J each under Laplace noise.
Where missing values are left out, ranks are fractions of the recorded values, whose number is
released with noise, one count a column (`recorded_count.py`). The ends 0 and 1 are the ranks 1 from
below and from above, and need no number of records at all.
With groups there are such searches and counts for each of them, on its own records. Each has the
whole promise, as far as one person cannot move two groups: that is decided by q, and a median is as
exact in a group as without.
One pass over the data gives the exact counts for all rounds of all searches; grids too fine for
one table are searched in two or three passes, each within the cells that the last one left, and
choices, which need all cells, are made a few groups a pass.
Instead of the halvings of all searches there may be choices by rank, each for what the halvings
would have spent, or one joint choice a column, or choices one inside the other, for what those of
all its searches would have.
Proofs: docs/proofs/quantiles.md, docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, product

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._plain import Key, Plain
from muhat.data.grid_counts import Window, WindowCounts
from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.choice import MOST_STATES, Choice, ColumnChoice, Placed
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.quantile_shares import ENDS, QuantileShares
from muhat.mechanisms.quantiles.recorded_count import RecordedCount, spent_beside
from muhat.mechanisms.quantiles.sampling import clear_of_population
from muhat.mechanisms.quantiles.search_walk import PLACING, Comparison, Tally, Walk
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import IndependentFamily
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

TABLE_CELLS = 1 << 22
"""The cells that are counted in one pass, over all searches."""

MOST_PASSES = 16
"""Choices among all cells of many groups or columns read the data so often at most."""

Counter = Callable[[Sequence[Window]], Sequence[WindowCounts]]
Searching = Generator[Sequence[Window], Sequence[WindowCounts], "tuple[Answers, ...]"]
Place = tuple[int, int]
"""A group, and a column of it."""
Walking = Generator[Sequence[Window], Sequence[WindowCounts], list[tuple[Place, int, Walk]]]


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
    other's, or are chosen at once, so that it has one error; with `simultaneous` those of all
    columns do.
    """
    rows, columns = len(searches), len(searches[0])
    apart = rows / searches[0][0].together
    level = _check.probability("confidence", confidence)
    level **= 1 / (apart * (columns if simultaneous else 1))
    errors = [[search.rank_error(level) for search in row] for row in searches]
    return np.tile(np.max(errors, axis=0), (rows, 1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class QuantileRecipe(
    Plain,
    keys=(
        "grids",
        "fractions",
        "n",
        "law",
        "protection",
        "searches",
        "counts",
        Key("groups", optional=True),
    ),
):
    """Searches for the quantiles `fractions` of as many columns as there are grids.

    `n` is the public number of records, None if it is secret or not counted yet. `searches` has a
    row a fraction and a column a grid. `counts`, one a grid, release how many values are recorded;
    without them every record has a value. With `groups` every record lies in one of so many, or
    in none, and all searches and counts are made in each.
    """

    grids: tuple[UniformGrid, ...]
    fractions: tuple[Fraction, ...]
    n: int | None
    law: IndependentFamily
    protection: Protection
    searches: tuple[tuple[NoisySearch, ...], ...]
    counts: tuple[RecordedCount, ...] | None = None
    groups: int | None = None

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
        groups: int | None = None,
        finder: type[NoisySearch] = NoisySearch,
    ) -> QuantileRecipe:
        """Searches that share the promise evenly, or what the `finder` has in their place.

        With `recorded` values may be missing: ranks are those of the recorded ones, which are
        counted. `groups` have a secret number of records each, and are counted, too. For short
        `intervals` every search asks one question more for five halvings. A `Choice` is among
        all cells at once: InvalidInput if they are too many to be counted in a few passes. A
        `ColumnChoice` is of all quantiles of a column; for a `JointChoice` a secret number of
        records is counted.
        """
        sharing = QuantileShares(
            fractions, law, protection, finder, recorded, intervals, groups is not None, n
        )
        rows, counts = sharing.among(grids)
        return cls(tuple(grids), tuple(fractions), n, law, protection, rows, counts, groups)

    def __post_init__(self) -> None:
        public = self.protection.neighbors is Neighbors.SUBSTITUTE
        if self.n is not None and not public:
            raise InvalidInput("n is secret where records are added or removed.")
        if any(not 0 <= fraction <= 1 for fraction in self.fractions):
            raise InvalidInput("must lie between 0 and 1", parameter="q")
        if self.groups is not None:
            _check.count("the number of groups", self.groups)
            if self.counts is None:
                raise AssertionError("groups are counted, since how large they are is secret")
        for fraction, row in zip(self.fractions, self.searches, strict=True):
            known = fraction in ENDS or (public and self.counts is None)
            for search in row:
                if search.contributions != self.protection.contributions or search.law != self.law:
                    raise AssertionError("a search was made for another promise")
                if search.replaced != (public and self.counts is not None):
                    raise AssertionError("a search was made for other neighbours")
                if search.quantile != (None if known else fraction):
                    raise AssertionError("a secret number of records must not decide a rank")
        if self.chooses:
            self._check_choices()
        if self.chooses_together:
            self._check_together(public)
        if any(count.law != self.law for count in self.counts or ()):
            raise AssertionError("a count has noise of another law than the searches beside it")
        if not self._spent.keeps(self.protection.promise):
            raise AssertionError("the searches together spend more than was promised")

    @property
    def chooses(self) -> bool:
        """Whether choices are in place of searches."""
        return isinstance(self.searches[0][0], Choice)

    @property
    def chooses_together(self) -> bool:
        """Whether all quantiles of a column are chosen together."""
        return isinstance(self.searches[0][0], ColumnChoice)

    def _check_together(self, public: bool) -> None:
        """Every column has one choice, of its own quantiles and records."""
        parts = [part for row in self.searches for part in row if isinstance(part, ColumnChoice)]
        if (
            sum(part.states(self.n) for part in parts) // len(self.fractions) * (self.groups or 1)
            > MOST_STATES
        ):
            raise InvalidInput("the choices would have to look at too many ranks.")
        if len(parts) != len(self.fractions) * len(self.grids):
            raise AssertionError("a column is chosen together, or not at all")
        moves = 2 if public else 1
        if any(part.moves != moves or not part.fits(self.fractions, self.n) for part in parts):
            raise AssertionError("a choice was made for other quantiles or other neighbours")
        for column, row in enumerate(zip(*self.searches, strict=True)):
            count = None if self.counts is None else self.counts[column]
            if any(isinstance(part, ColumnChoice) and part != part.beside(count) for part in row):
                raise AssertionError("a choice is for another number of records")

    def _check_choices(self) -> None:
        """Their cells are counted in one pass; counted in μ² they are zero-concentrated alone."""
        if len(self._places) > MOST_PASSES * self._at_once or not self._at_once:
            raise InvalidInput(
                "the grids have too many cells to choose among all of them at once; give a "
                "coarser resolution."
            )
        promise = self.protection.promise
        if self.law.kind is NoiseKind.NORMAL and (
            isinstance(promise, Strength)
            or promise.rho_within is None
            or self._spent.squared > 2 * promise.rho_within
        ):
            raise AssertionError("a choice keeps no Gaussian promise")

    @property
    def _places(self) -> list[Place]:
        """Every group, and every column of it."""
        return [
            (group, column)
            for group in range(self.groups or 1)
            for column in range(len(self.grids))
        ]

    @property
    def _at_once(self) -> int:
        """At how many places one pass counts: all, unless choices need all their cells."""
        if not self.chooses:
            return len(self._places)
        return TABLE_CELLS >> max(search.rounds for search in self.searches[0])

    @property
    def _spent(self) -> Strength:
        """What all columns reveal together: they share the promise evenly, as their searches do."""
        kind, columns = self.law.kind, list(zip(*self.searches, strict=True))
        if self.counts is None:
            each = [kind.together([one.strength_squared for one in column]) for column in columns]
            return kind.together([column.squared for column in each])
        groups = self.groups is not None
        pairs = zip(columns, self.counts, strict=True)
        return kind.together([spent_beside(*pair, groups=groups) for pair in pairs])

    def rank(self, fraction: Fraction) -> int | None:
        """max(1, ⌈q·n⌉), the rank of the quantile; None if it is secret."""
        if fraction == 0:
            return 1
        if self.n is None or self.counts is not None:
            return None
        return max(1, math.ceil(fraction * self.n))

    def _start(self, row: int, place: Place, total: int, known: float | None) -> Walk:
        """A search among `total` records, of which about so many are `known` to all."""
        fraction, search = self.fractions[row], self.searches[row][place[1]]
        rank = self.rank(fraction)
        walk = search.start(total, rank, above=0 if fraction == 1 and rank is None else None)
        if search.further and known is not None and fraction not in ENDS:
            count = None if self.counts is None else self.counts[place[1]]
            clear = clear_of_population(search, float(fraction), 1 - PLACING, known, count)
            walk.clear = (*walk.clear, clear)
        return walk

    def run(self, count: Counter) -> Answers:
        """Carry all searches out, and count; `count` is a pass over the data."""
        (answers,) = self.run_groups(count)
        return answers

    def run_groups(self, count: Counter) -> tuple[Answers, ...]:
        """Carry the searches of all groups out together, so that they share passes."""
        searching = self.searching()
        try:
            windows = next(searching)
            while True:
                windows = searching.send(count(windows))
        except StopIteration as done:
            answers: tuple[Answers, ...] = done.value
            return answers

    def searching(self) -> Searching:
        """The searches of all groups, pass by pass: asks for counts of windows, and is told."""
        found: dict[tuple[Place, int], Found] = {}
        recorded: dict[Place, float] = {}
        places, many = self._places, self._at_once
        for first in range(0, len(places), many):
            walks = yield from self._walked(places[first : first + many], recorded)
            for place, row, walk in walks:
                found[place, row] = Found(walk.cell, walk.comparisons)
        answers = []
        for group in range(self.groups or 1):
            mine = [(group, column) for column in range(len(self.grids))]
            rows = tuple(
                tuple(found[place, row] for place in mine) for row in range(len(self.fractions))
            )
            counted = tuple(recorded[place] for place in mine if recorded)
            answers.append(Answers(rows, counted or None))
        return tuple(answers)

    def _walked(self, places: Sequence[Place], recorded: dict[Place, float]) -> Walking:
        """All searches at some places; adds how many values are recorded there."""
        bits = self._bits(len(places))
        whole = [
            self._window(place, 0, self.searches[0][place[1]].rounds, bits) for place in places
        ]
        found_whole = yield whole
        tables = dict(zip(places, found_whole, strict=True))
        if self.counts is not None:
            for place in places:
                recorded[place] = self.counts[place[1]].release(tables[place].total)
        walks: list[tuple[Place, int, Walk]] = []
        for _, mine in groupby(places, key=lambda place: place[0]):
            for row, place in product(range(len(self.searches)), list(mine)):
                known = recorded.get(place, self.n)
                walks.append((place, row, self._start(row, place, tables[place].total, known)))
        tallies = {
            place: Tally.of(0, window.block_bits, tables[place].before, tables[place].counts)
            for place, window in zip(places, whole, strict=True)
        }
        if self.chooses_together:
            self._choose(walks, tallies, recorded)
        for place, _, walk in walks:
            walk.follow(tallies[place], min(bits, walk.rounds_left))
        while under_way := [(place, walk) for place, _, walk in walks if walk.rounds_left]:
            yield from self._further(under_way)
        return walks

    def _choose(
        self,
        walks: Sequence[tuple[Place, int, Walk]],
        tallies: dict[Place, Tally],
        recorded: dict[Place, float],
    ) -> None:
        """Tell every walk its cell: those of one column and group are chosen together."""
        for place, tally in tallies.items():
            parts = [row[place[1]] for row in self.searches]
            part = min(
                (part for part in parts if isinstance(part, ColumnChoice)),
                key=lambda part: part.halving_moved,
            )
            cells = part.chosen(tally.up_to, self.fractions, recorded.get(place, self.n))
            for where, row, walk in walks:
                if where == place and isinstance(walk, Placed):
                    walk.chosen = cells[row]

    def _further(
        self, walks: Sequence[tuple[Place, Walk]]
    ) -> Generator[Sequence[Window], Sequence[WindowCounts], None]:
        """One more pass, within the intervals that are left."""
        bits = self._bits(len(walks))
        windows = [self._window(place, walk.left, walk.rounds_left, bits) for place, walk in walks]
        unique = list(dict.fromkeys(windows))
        found = yield unique
        tallies = {
            window: Tally.of(window.first, window.block_bits, table.before, table.counts)
            for window, table in zip(unique, found, strict=True)
        }
        for window, (_, walk) in zip(windows, walks, strict=True):
            walk.follow(tallies[window], min(bits, walk.rounds_left))

    @staticmethod
    def _bits(searches: int) -> int:
        """Rounds that one pass serves, so that all tables fit."""
        return max(1, (TABLE_CELLS // searches).bit_length() - 1)

    def _window(self, place: Place, left: int, rounds: int, bits: int) -> Window:
        """The interval of 2^rounds cells at `left` in 2^bits blocks, up to the last cell."""
        group, column = place
        taken = min(bits, rounds)
        behind = rounds - taken
        blocks = (self.grids[column].cells - 1 - left >> behind) + 1
        return Window(column, left, behind, min(1 << taken, max(blocks, 1)), group)
