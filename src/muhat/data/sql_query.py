"""A query in stages, its text, and what the rows of its answer say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muhat.data.tallies import Tallied, rows_of

MOST_ROWS = 1 << 40
"""Sums of fewer numbers, each of at most 2^45, in two parts of 64 bits, are exact."""


@dataclass(frozen=True)
class Stage:
    """A projection of all columns so far and of these; or, by `groups`, nothing but these."""

    columns: tuple[str, ...]
    groups: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Query:
    """Stages, each of what the one before makes; at last the cells' codes, counts and sums.

    `cells` are how many codes there are in each of the first columns, from 0 on. Of the columns
    behind them every one, or two, make a number: it is their sum, each times a unit of `units`.
    """

    stages: tuple[Stage, ...]
    cells: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> int:
        """How many numbers are made of a record before anything is added up."""
        projected = (stage.columns for stage in self.stages if stage.groups is None)
        return sum(map(len, projected))

    @property
    def answer(self) -> list[str]:
        """The names of the columns of its answer, all of them whole numbers."""
        groups = [f"g{k}" for k in range(len(self.cells))]
        return groups + [f"s{k}" for k in range(sum(map(len, self.units)))]

    def over(self, records: str, fence: str = "") -> str:
        """The text, for records that a query selects as x0, x1, …; `fence` ends projections."""
        text = records
        for stage in self.stages:
            listed, groups = ", ".join(stage.columns), ", ".join(stage.groups or ())
            if stage.groups is None:
                text = f"SELECT *, {listed} FROM ({text}) AS part{fence}"
            else:
                by = f" GROUP BY {groups}" if groups else ""
                text = f"SELECT {listed} FROM ({text}) AS part{by}"
        return text

    def tallied(self, rows: Iterable[Sequence[int | None]]) -> Tallied:
        """What the rows of the answer say; ValueError if they cannot be that."""
        found: Tallied = {}
        for row in rows:
            codes = tuple(int(code) for code in row[: len(self.cells)] if code is not None)
            inside = len(codes) == len(self.cells) and all(
                0 <= code < size for code, size in zip(codes, self.cells, strict=True)
            )
            if not inside or codes in found:
                raise ValueError("an answer of another shape")
            # The sum of no number at all is nothing.
            numbers = iter([int(number or 0) for number in row[len(codes) :]])
            found[codes] = tuple(
                sum(unit * next(numbers) for unit in units) for units in self.units
            )
        in_two = any(len(units) > 1 for units in self.units)
        if in_two and rows_of(found) >= MOST_ROWS:
            raise ValueError("sums of so many numbers might not be exact")
        return found
