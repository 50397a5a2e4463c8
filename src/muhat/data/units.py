"""Data in which a person has several rows: at most so many of everybody's rows enter.

Rows of the same person are brought together, on this machine by hashing them into parts that fit
into memory, on a cluster by its own means; then each person's rows are chosen from, or made one
record, by themselves. So whoever changes, adds or removes all rows of one person changes nothing
of anybody else's. Proof: docs/proofs/units.md.
"""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.data.base import Accumulated, Added, Partition, PartitionedSource, Source
from muhat.data.complete import RowCounter
from muhat.data.engine import read_once
from muhat.data.selection import column_names
from muhat.data.states import Numbers, joined
from muhat.data.unit_choice import Mixer, Ordered, by_person
from muhat.data.unit_crowds import Least, is_large, tallies
from muhat.data.unit_ids import Words
from muhat.data.unit_records import averaged, counted
from muhat.data.unit_rows import RowLayout, RowsPart, WaitingRows, joined_rows
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.records.columns import Batch, Column, Floats


@dataclass(frozen=True)
class People:
    """Whose rows belong together, and what of them enters.

    `unit` is the column that names people. per="row": at most `max_rows` rows of everybody, and
    where there are columns `one_row_per`, at most one for every combination of their values.
    per="mean", "sum": one record a person, from those rows, or all of them with max_rows=None.
    per="rows": one record a person with one coordinate, the number of its rows.

    >>> People("person", 3)
    People(unit='person', max_rows=3, one_row_per=(), per='row')
    """

    unit: str | int
    max_rows: int | None = None
    one_row_per: tuple[str | int, ...] = ()
    per: str = "row"

    def __post_init__(self) -> None:
        if isinstance(self.unit, bool) or not isinstance(self.unit, str | int):
            raise InvalidInput(
                "must be the name of the column that names people (a number for an array)",
                parameter="unit",
                value=type(self.unit).__name__,
            )
        _check.one_of("per", self.per, ("row", "mean", "sum", "rows"))
        if self.max_rows is not None:
            object.__setattr__(self, "max_rows", _check.count("max_rows", self.max_rows))
        elif self.per == "row" and not self.one_row_per:
            raise InvalidInput(
                "must say how many rows of a person may enter", parameter="max_rows", value="None"
            )

    def chosen(self, columns: object) -> tuple[str, ...] | tuple[int, ...]:
        """The columns that are asked for, or InvalidInput; none are needed to count rows."""
        if self.per == "rows" or (isinstance(columns, list | tuple) and not columns):
            return ()
        names = column_names(columns)
        if names is None:
            raise InvalidInput(
                "must be named if a person may have several rows", parameter="columns"
            )
        if self.unit in names:
            raise InvalidInput(
                "must not be one of the columns: it names people",
                parameter="unit",
                value=f"{self.unit!r:.80}",
            )
        return names


def of_people(
    source: Source, people: People, coded: Sequence[str], mixer: Mixer | None = None
) -> Source:
    """What enters of the rows of a source, whose last column has the ids of people.

    `coded` are the columns that are read as categories. A fresh secret key decides on rows, unless
    a mixer is given.
    """
    names = source.columns[:-1]
    cells = []
    for name in map(str, people.one_row_per):
        if name not in names or name not in coded:
            raise InvalidInput(
                "must be columns that are read as categories",
                parameter="one_row_per",
                value=f"{name!r:.80}",
            )
        cells.append(names.index(name))
    rule = Rule(
        mixer or Mixer.fresh(),
        people.max_rows,
        tuple(cells),
        people.per,
        tuple(name in coded for name in names),
    )
    if isinstance(source, PartitionedSource):
        return PeopleHere(source, rule)
    return PeopleElsewhere(source.together(), rule)


@dataclass(frozen=True)
class Rule:
    """What becomes of people's rows, and the key that decides where there is something to choose.

    `most`, `cells` (positions of columns) and `per` as `People` has them; `coded` has an entry a
    column.
    """

    mixer: Mixer
    most: int | None
    cells: tuple[int, ...]
    per: str
    coded: tuple[bool, ...]

    def entering(self, part: RowsPart) -> dict[RowLayout, Words]:
        """What enters of the rows of some people, all of theirs."""
        if self.per == "rows" and is_large(part):
            return self._counted(part)
        if is_large(part) and (self.most is not None or self.cells):
            return self._entering(*self._least(part))
        return self._entering(part.read())

    def unread(self, layout: RowLayout, count: int) -> Batch:
        """What enters of rows of which nothing could be read: each of them is nobody's."""
        if self.per == "rows":
            return Batch(count, [Floats(np.ones(count))])
        nothing = {layout: np.zeros((0, layout.width), np.uint64)}
        ((entering, words),) = self._entering(nothing).items()
        return Batch(0, entering.columns(words), absent=count)

    def _least(self, part: RowsPart) -> tuple[dict[RowLayout, Words], dict[RowLayout, Words]]:
        """Rows of a large part, all that enter among them, and their numbers."""
        least = Least()
        for layout, tally in tallies(part, self.mixer):
            for words, numbers in tally.slabs(self.mixer):
                if least.add(layout, words, numbers):
                    least.put_back(*self._first(*least.taken()))
        return least.taken()

    def _first(
        self, rows: dict[RowLayout, Words], numbers: dict[RowLayout, Words]
    ) -> tuple[dict[RowLayout, Words], dict[RowLayout, Words]]:
        """Of rows with numbers those that enter if there are no others."""
        words: dict[RowLayout, Words] = {}
        theirs: dict[RowLayout, Words] = {}
        for blocks in _by_ids(rows):
            people = self._people(blocks, numbers)
            words.update(_picked(blocks, people))
            theirs.update(_picked({layout: numbers[layout] for layout in blocks}, people))
        return words, theirs

    def _counted(self, part: RowsPart) -> dict[RowLayout, Words]:
        """How many rows everybody in a large part has."""
        counts = np.concatenate([tally.counts for _, tally in tallies(part, self.mixer)])
        kept = np.minimum(counts, self.most or counts)
        return dict([_packed([Floats(kept.astype(np.float64))], len(kept))])

    def _entering(
        self, rows: dict[RowLayout, Words], numbers: dict[RowLayout, Words] | None = None
    ) -> dict[RowLayout, Words]:
        found: dict[RowLayout, list[Words]] = {}
        for blocks in _by_ids(rows):
            people = self._people(blocks, numbers)
            entering = _picked(blocks, people) if self.per == "row" else self._made(blocks, people)
            for layout, words in entering:
                found.setdefault(layout, []).append(words)
        return {layout: joined_rows(pieces) for layout, pieces in found.items()}

    def _people(
        self, blocks: dict[RowLayout, Words], numbers: dict[RowLayout, Words] | None = None
    ) -> Ordered:
        """The rows that count, person by person."""
        if not next(iter(blocks)).ids:
            each = np.arange(sum(map(len, blocks.values())))
            return Ordered(each, each)
        cells = None
        if self.cells:
            rows = [layout.columns(words) for layout, words in blocks.items()]
            codes = [
                np.concatenate([block[place].values for block in rows]) for place in self.cells
            ]
            cells = _told_apart(np.stack(codes, axis=1))
        return by_person(
            [layout.block(words) for layout, words in blocks.items()],
            self.mixer,
            self.most,
            cells=cells,
            numbers=None if numbers is None else joined_rows([numbers[each] for each in blocks]),
            ordered=self.per in ("mean", "sum") and any(self.coded),
        )

    def _made(
        self, blocks: dict[RowLayout, Words], people: Ordered
    ) -> Iterator[tuple[RowLayout, Words]]:
        """One record a person."""
        if self.per == "rows":
            columns = counted(people)
        else:
            rows = [layout.columns(words) for layout, words in blocks.items()]
            columns = averaged(rows, self.coded, people, mean=self.per == "mean")
        yield _packed(columns, len(people.firsts))


def _packed(columns: Sequence[Column], rows: int) -> tuple[RowLayout, Words]:
    """Records of nobody in particular."""
    layout = RowLayout.of(0, columns)
    return layout, layout.packed(columns, np.zeros((rows, 0), np.uint64))


def _by_ids(rows: dict[RowLayout, Words]) -> Iterator[dict[RowLayout, Words]]:
    """Rows by how many words their ids have: those of a person come together."""
    for ids in sorted({layout.ids for layout in rows}):
        yield {layout: words for layout, words in rows.items() if layout.ids == ids}


def _picked(blocks: dict[RowLayout, Words], people: Ordered) -> Iterator[tuple[RowLayout, Words]]:
    """The rows that people number through, by layout."""
    start = 0
    for layout, words in blocks.items():
        stop = start + len(words)
        rows = people.rows
        if len(blocks) > 1:
            rows = rows[(rows >= start) & (rows < stop)] - start
        yield layout, words if len(rows) == len(words) else np.take(words, rows, axis=0)
        start = stop


def _told_apart(codes: NDArray[Any]) -> NDArray[np.intp]:
    """A number for every row of codes, equal for equal rows and for no others."""
    import pyarrow as pa

    width = codes.itemsize * math.prod(codes.shape[1:])
    buffers = [None, pa.py_buffer(np.ascontiguousarray(codes))]
    cells = pa.Array.from_buffers(pa.binary(width), len(codes), buffers, null_count=0)
    return np.asarray(cells.dictionary_encode().indices).astype(np.intp)


class EnteringRows(Source):
    """What enters of a source; how much that is nobody is told."""

    known_rows = None

    def __init__(self, source: Source, rule: Rule) -> None:
        counts = rule.per == "rows"
        self.columns = ("rows",) if counts else source.columns[:-1]
        self.types = ("int64",) if counts else source.types[:-1]
        self.complete = counts or source.complete
        self._source = source
        self._rule = rule

    def rows(self) -> int:
        """One pass: how many rows or records enter. Data: never show it."""
        return sum(each.rows for each in read_once(self, RowCounter))

    def check_unchanged(self) -> None:
        """Raise DataChanged if the data within are not those that were opened."""
        self._source.check_unchanged()

    @abstractmethod
    def records(self, per: str) -> Source:
        """One record a person, made of the very rows that enter."""

    def _require_all(self, rows: int) -> None:
        if self._source.known_rows not in (None, rows):
            raise DataChanged("the data have changed their length since they were counted.")


class PeopleHere(EnteringRows, PartitionedSource):
    """Rows on this machine: read once, and kept as they enter for all further passes."""

    _source: PartitionedSource

    def __init__(self, source: PartitionedSource, rule: Rule) -> None:
        super().__init__(source, rule)
        self._lock = threading.Lock()
        self._parts: list[RowsPart] | None = None
        self._unread: dict[RowLayout, int] = {}

    @property
    def bytes_a_thread(self) -> int:
        """Sorting pays for threads sooner than adding up."""
        return 1 << 26

    def fold(self, accumulator: Callable[[], Added]) -> list[Added] | None:
        """One pass over what enters; the first one brings people's rows together."""
        return super().fold(accumulator) if self._brought_together() else None

    def partitions(self) -> Sequence[Partition]:
        """Parts with whole people."""
        if not self._brought_together():
            raise SourceFailed("the data could not be read to the end: the file may be damaged.")
        rule, parts, unread = self._rule, self._parts or [], self._unread
        found = [Partition(part.size, partial(self._batches, part)) for part in parts]
        if unread:
            found.append(
                Partition(0, lambda: (rule.unread(layout, n) for layout, n in unread.items()))
            )
        return found

    def records(self, per: str) -> RecordsHere:
        """One record a person, made of the rows that are kept: nothing is read again."""
        return RecordsHere(self, per)

    def _batches(self, part: RowsPart) -> Iterator[Batch]:
        return _batches(part, self._rule)

    def _brought_together(self) -> bool:
        """Whether all rows could be read; they are read once."""
        with self._lock:
            if self._parts is None:
                waiting = WaitingRows(self._rule.mixer)
                found = self._source.fold(lambda: _Bringing(waiting))
                if found is None:
                    return False
                self._require_all(sum(each.rows for each in found))
                self._unread = waiting.unread
                try:
                    self._parts = waiting.parts()
                except OSError:
                    return False
            return True


class RecordsHere(PeopleHere):
    """One record a person, of rows that have been chosen for another reader."""

    def __init__(self, rows: PeopleHere, per: str) -> None:
        super().__init__(rows._source, replace(rows._rule, per=per))
        self._rows = rows

    def _brought_together(self) -> bool:
        together = self._rows._brought_together()
        self._parts, self._unread = self._rows._parts, self._rows._unread
        return together

    def _batches(self, part: RowsPart) -> Iterator[Batch]:
        if not part.settled:
            part.settle(self._rows._rule.entering(part))
        for layout, words in self._rule._entering(part.read()).items():
            yield from layout.batches(words)


def _batches(part: RowsPart, rule: Rule) -> Iterator[Batch]:
    if not part.settled:
        part.settle(rule.entering(part))
    for layout, words in part.read().items():
        yield from layout.batches(words)


class _Bringing:
    """Has rows wait for others of the same person, for one thread."""

    def __init__(self, waiting: WaitingRows) -> None:
        self._waiting = waiting
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Every record of the batch waits."""
        self.rows += batch.rows + batch.absent
        self._waiting.add(batch)


class PeopleElsewhere(EnteringRows):
    """Rows of a cluster, which brings those of a person together in every pass."""

    def records(self, per: str) -> PeopleElsewhere:
        """One record a person: the same key chooses the same rows in another pass."""
        return PeopleElsewhere(self._source, replace(self._rule, per=per))

    def fold(self, accumulator: Callable[[], Accumulated]) -> list[Accumulated] | None:
        """Rows are chosen where they are."""
        rule = self._rule
        found = self._source.fold(lambda: _Choosing(accumulator(), rule))
        if found is None:
            return None
        self._require_all(sum(each.rows for each in found))
        return [each.inner for each in found]


class _Choosing(Generic[Accumulated]):
    """Adds what enters of whole people's rows to an accumulator; `rows` are all that were seen."""

    def __init__(self, inner: Accumulated, rule: Rule) -> None:
        self.inner = inner
        self._rule = rule
        self._waiting: WaitingRows | None = None
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Every record of the batch waits."""
        self.rows += batch.rows + batch.absent
        if self._waiting is None:
            self._waiting = WaitingRows(self._rule.mixer)
        self._waiting.add(batch)

    def state(self) -> Numbers:
        """The records seen, and what the accumulator holds of those that enter."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            for part in waiting.parts():
                for batch in _batches(part, self._rule):
                    self.inner.add(batch)
            for layout, count in waiting.unread.items():
                self.inner.add(self._rule.unread(layout, count))
        return joined(self.rows, self.inner.state())

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self.inner.absorb(state[1:])
