"""One table for several readers: its columns are opened once, and people's rows chosen once.

A reading says which pass it needs next, and is told what the pass found. Passes over one table that
several readings ask for at the same time are one, in which every record is added to the accumulator
of each.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from muhat.data.base import Accumulates, Source
from muhat.data.changed import ChangedSource, Changing
from muhat.data.engine import read_once
from muhat.data.states import Numbers, joined
from muhat.data.tallies import SumTable, Tallied, Tallies, rows_of, tallies_of
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, Column, Floats

if TYPE_CHECKING:
    from muhat.data.categories import Categories
    from muhat.data.selection import Coders, Columns
    from muhat.data.units import People

Result = TypeVar("Result")
Question = TypeVar("Question")
Told = TypeVar("Told")


class Pass(NamedTuple):
    """One pass over a source: what adds its records up."""

    source: Source
    accumulator: Callable[[], Any]


Reading = Generator[Pass, list[Any], Result]
"""Yields passes, is sent the accumulators of each, and returns what it read."""


def carried_out(reading: Reading[Result]) -> Result:
    """A reading by itself."""
    (result,) = carried_out_together([reading])
    return result


def carried_out_together(readings: Sequence[Reading[Result]]) -> list[Result]:
    """What readings return; passes over one table that are asked for at the same time are one."""
    results: dict[int, Result] = {}
    asked: dict[int, Pass] = {}

    def go_on(place: int, found: list[Any] | None) -> None:
        try:
            asked[place] = next(readings[place]) if found is None else readings[place].send(found)
        except StopIteration as done:
            results[place] = done.value

    for place in range(len(readings)):
        go_on(place, None)
    while asked:
        together: dict[int, list[int]] = {}
        for place, each in asked.items():
            together.setdefault(id(_within(each.source)), []).append(place)
        found: dict[int, list[Any]] = {}
        for places in together.values():
            found |= dict(zip(places, _read([asked[place] for place in places]), strict=True))
        asked.clear()
        for place in sorted(found):
            go_on(place, found[place])
    return [results[place] for place in range(len(readings))]


def answered(
    asking: Generator[Question, Told, Result],
    answer: Callable[[Question], Reading[Told]],
) -> Reading[Result]:
    """The reading in which what is asked for, again and again, is read."""
    try:
        question = next(asking)
        while True:
            question = asking.send((yield from answer(question)))
    except StopIteration as done:
        result: Result = done.value
        return result


def _within(source: Source) -> Source:
    return source.table if isinstance(source, View) else source


def _read(passes: Sequence[Pass]) -> list[list[Any]]:
    """The accumulators of every pass, all over one table, from one pass."""
    if len(passes) == 1:
        return [read_once(*passes[0])]
    makers = [_maker(each) for each in passes]
    found = read_once(_within(passes[0].source), lambda: _Several([make() for make in makers]))
    return [[_inner(each.parts[place]) for each in found] for place in range(len(passes))]


def _maker(each: Pass) -> Callable[[], Accumulates]:
    if isinstance(each.source, View):
        return each.source.changing(each.accumulator)
    return each.accumulator


def _inner(accumulator: Any) -> Any:
    return accumulator.inner if isinstance(accumulator, Changing) else accumulator


class _Several:
    """Adds every record to several accumulators, for one thread."""

    def __init__(self, parts: Sequence[Accumulates]) -> None:
        self.parts = parts
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Add the batch to each."""
        self.rows += batch.rows + batch.absent
        for part in self.parts:
            part.add(batch)

    def state(self) -> Numbers:
        """The records seen, and what each holds after its length."""
        states = [part.state() for part in self.parts]
        return joined(self.rows, *(joined(len(state), state) for state in states))

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        start = 1
        for part in self.parts:
            stop = start + 1 + int(state[start])
            part.absorb(state[start + 1 : stop])
            start = stop

    def tallies(self) -> list[SumTable] | None:
        """Those of all of them, one after another."""
        listed = [tallies_of(part) for part in self.parts]
        if any(each is None for each in listed):
            return None
        return [tally for each in listed if each is not None for tally in each]

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """The records, and the state of each after its length."""
        states, start = [], 0
        for part in self.parts:
            assert isinstance(part, Tallies)
            stop = start + len(part.tallies() or ())
            states.append(part.tallied(found[start:stop]))
            start = stop
        return joined(rows_of(found[0]), *(joined(len(state), state) for state in states))


class View(ChangedSource):
    """Some columns of a table, in an order of their own."""

    def __init__(self, table: Source, places: Sequence[int]) -> None:
        super().__init__(table, _Picking(tuple(places)))
        self.table = table
        self.columns = tuple(table.columns[place] for place in places)
        self.types = tuple(table.types[place] for place in places)

    def changing(self, accumulator: Callable[[], Any]) -> Callable[[], Accumulates]:
        """What adds batches of the table to an accumulator of the view."""
        change = self._change
        return lambda: Changing(accumulator(), change)


@dataclass(frozen=True)
class _Picking:
    """Batches with these of their columns."""

    places: tuple[int, ...]

    def __call__(self, batch: Batch) -> tuple[Batch]:
        picked: list[Column]
        if batch.matrix is not None:
            picked = [Floats(np.ascontiguousarray(batch.matrix[:, place])) for place in self.places]
        else:
            picked = [batch.columns[place] for place in self.places]
        return (Batch(batch.rows, picked, absent=batch.absent),)


@dataclass(frozen=True)
class TableColumns:
    """What is read of a table: columns with their categories, None for numbers; and whose rows."""

    columns: Mapping[str, Categories | None]
    people: People | None = None


@dataclass(frozen=True, eq=False)
class OpenTable:
    """Data that were opened once for several readers; made from arguments and metadata alone.

    `rows` are those that enter. Records of people are made of them where a reader asks for that.
    """

    reads: TableColumns
    rows: Source
    records: Callable[[str], Source] | None = None
    _made: dict[str, Source] = field(default_factory=dict)

    def view(self, columns: Columns, coders: Coders, people: People | None) -> Source:
        """The columns that a reader asks for, as it codes them, or InvalidInput."""
        names = list(self.reads.columns)
        asked = list(map(str, columns or ()))
        for name, coder in zip(asked, coders or [None] * len(asked), strict=True):
            categories = getattr(coder, "categories", None)
            if name not in names or categories != self.reads.columns[name]:
                raise InvalidInput(
                    "must be left out: a plan for a schema names its columns", parameter="columns"
                )
        return View(self._source(people), [names.index(name) for name in asked])

    def _source(self, people: People | None) -> Source:
        own = self.reads.people
        if (people is None) != (own is None):
            raise AssertionError("rows have a unit for one reader and none for another")
        if people is None or own is None:
            return self.rows
        if (people.unit, people.max_rows) != (own.unit, own.max_rows):
            raise AssertionError("rows of a person are chosen in two ways")
        if people.per == "row":
            return self.rows
        if people.per not in self._made:
            assert self.records is not None
            self._made[people.per] = self.records(people.per)
        return self._made[people.per]
