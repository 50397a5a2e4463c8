"""Quantiles of columns on public grids: a noisy search for each, all for one promise.

J searches share the promise evenly: μ²/J each under normal noise, ε/J each under Laplace noise.
One pass over the data gives the exact counts for all rounds of all searches; grids too fine for
one table are searched in two or three passes, each within the cells that the last one left.
Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muhat.data.grid_counts import Window, WindowCounts
from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.mechanisms.noisy_search import Comparison, NoisySearch, Walk
from muhat.mechanisms.recipe import Protection
from muhat.noise.law import Law
from muhat.privacy import Neighbors

TABLE_CELLS = 1 << 22
"""The cells that are counted in one pass, over all searches."""

Counter = Callable[[Sequence[Window]], Sequence[WindowCounts]]


@dataclass(frozen=True)
class Found:
    """What a search found: a cell, and the noisy counts on the way to it."""

    cell: int
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, eq=False)
class QuantileRecipe:
    """Searches for the quantiles `fractions` of as many columns as there are grids.

    `n` is the public number of records, None if it is secret. `searches` has a row a fraction and
    a column a grid.
    """

    grids: tuple[UniformGrid, ...]
    fractions: tuple[Fraction, ...]
    n: int | None
    law: Law
    protection: Protection
    searches: tuple[tuple[NoisySearch, ...], ...]

    @classmethod
    def of(
        cls,
        grids: Sequence[UniformGrid],
        fractions: Sequence[Fraction],
        n: int | None,
        law: Law,
        protection: Protection,
    ) -> QuantileRecipe:
        """Searches that share the promise evenly."""
        number = len(grids) * len(fractions)
        # μ² adds up over searches, and so does ε.
        parts = number if law.sensitivity_norm == 2 else number**2
        searches = tuple(
            tuple(
                NoisySearch(
                    grid.cells,
                    law,
                    protection.strength_squared / parts,
                    protection.contributions,
                    fraction if n is None else None,
                )
                for grid in grids
            )
            for fraction in fractions
        )
        return cls(tuple(grids), tuple(fractions), n, law, protection, searches)

    def __post_init__(self) -> None:
        if (self.n is None) != (self.protection.neighbors is Neighbors.ADD_REMOVE):
            raise InvalidInput("n is secret if and only if records are added or removed.")
        if any(not 0 < fraction < 1 for fraction in self.fractions):
            raise InvalidInput("q must lie strictly between 0 and 1.")
        everything = [search for row in self.searches for search in row]
        if self.law.sensitivity_norm == 2:
            spent = sum((search.strength_squared for search in everything), Fraction(0))
        else:
            # All have the same share, so the root of the sum's square is their number.
            spent = max(search.strength_squared for search in everything) * len(everything) ** 2
        if spent > self.protection.strength_squared:
            raise AssertionError("the searches together spend more than was promised")
        for search in everything:
            if (search.quantile is None) != (self.n is not None):
                raise AssertionError("a secret number of records must not decide a rank")
            if search.contributions != self.protection.contributions or search.law != self.law:
                raise AssertionError("a search was made for another promise")

    def rank(self, fraction: Fraction) -> int | None:
        """⌈q·n⌉, the rank of the quantile; None if n is secret."""
        return None if self.n is None else max(1, math.ceil(fraction * self.n))

    def run(self, count: Counter) -> tuple[tuple[Found, ...], ...]:
        """Carry all searches out; `count` is a pass over the data. A row a fraction."""
        bits = self._bits(len(self.grids))
        whole = [
            self._window(column, 0, search.rounds, bits)
            for column, search in enumerate(self.searches[0])
        ]
        tables = count(whole)
        walks: list[tuple[int, Walk]] = []
        for fraction, row in zip(self.fractions, self.searches, strict=True):
            for column, (search, table) in enumerate(zip(row, tables, strict=True)):
                walk = search.start(table.total, self.rank(fraction))
                walk.descend(table.before, table.counts, min(bits, search.rounds))
                walks.append((column, walk))
        while under_way := [(column, walk) for column, walk in walks if walk.rounds_left]:
            self._further(under_way, count)
        found = [Found(walk.cell, walk.comparisons) for _, walk in walks]
        width = len(self.grids)
        rows = range(0, len(found), width)
        return tuple(tuple(found[start : start + width]) for start in rows)

    def _further(self, walks: Sequence[tuple[int, Walk]], count: Counter) -> None:
        """One more pass, within the intervals that are left."""
        bits = self._bits(len(walks))
        windows = [
            self._window(column, walk.left, walk.rounds_left, bits) for column, walk in walks
        ]
        unique = list(dict.fromkeys(windows))
        tables = dict(zip(unique, count(unique), strict=True))
        for window, (_, walk) in zip(windows, walks, strict=True):
            table = tables[window]
            walk.descend(table.before, table.counts, min(bits, walk.rounds_left))

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

    def to_dict(self) -> dict[str, Any]:
        """All that decides the release, for its digest."""
        return {
            "mechanism": "noisy-search",
            "grids": [grid.to_dict() for grid in self.grids],
            "fractions": [str(fraction) for fraction in self.fractions],
            "n": self.n,
            "law": self.law.name,
            "neighbors": self.protection.neighbors.value,
            "contributions": self.protection.contributions,
            "searches": [[search.to_dict() for search in row] for row in self.searches],
        }
