"""Rows that wait for others of the same person: laid out as words, in memory or on disk.

All rows of a person go to the same part, which a hash of the id decides. Parts that do not fit
into memory are written to one temporary file that has no name, is readable by this user alone, and
is gone with the process, however that ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.scratch import MEMORY_BYTES, Scratch, Stretch, room
from muhat.data.unit_choice import Mixer, RowBlock
from muhat.data.unit_ids import Identities, Rows, Words
from muhat.records.columns import Batch, Column, Decimals, Floats, Integers, Mask

PART_BYTES = 1 << 21
"""A part of what is in memory: small enough for the cache."""

MOST_BITS = 8
"""Two to this power are the parts on disk."""

DEALT_BYTES = 1 << 24
BATCH_ROWS = 1 << 17

Kind = tuple[str, str, int]
"""A column's class, the type of its numbers, and the scale (decimals) or 0."""


@dataclass(frozen=True)
class RowLayout:
    """How a row is laid out in words: its id, the columns, and a bit for each that is missing."""

    ids: int
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, ids: int, columns: Sequence[Column]) -> RowLayout:
        """That of rows with such columns."""
        return cls(ids, tuple(_kind(column) for column in columns))

    @cached_property
    def name(self) -> str:
        """What tells columns of other types apart."""
        return repr(self.kinds)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """A row as a record of numpy's, padded to whole words."""
        fields: list[tuple[Any, ...]] = [("id", "<u8", (self.ids,))] if self.ids else []
        # The widest first, so that all lie where the machine reads them best.
        wide = sorted(
            range(len(self.kinds)), key=lambda place: -np.dtype(self._type(place)).itemsize
        )
        fields += [(f"c{place}", self._type(place)) for place in wide]
        fields.append(("missing", "u1", (-(-len(self.kinds) // 8),)))
        plain = np.dtype(fields)
        return np.dtype([*fields, ("pad", "u1", (-plain.itemsize % 8 if plain.itemsize else 8,))])

    @property
    def width(self) -> int:
        """Words a row takes."""
        return self.dtype.itemsize // 8

    def packed(self, columns: Sequence[Column], ids: Words) -> Words:
        """Rows of these columns, of shape (rows, width).

        What is missing or not finite is 0, and marked: whether a reader makes the one or the other
        of a cell may depend on cells around it.
        """
        words = np.zeros((len(ids), self.width), np.uint64)
        rows = words.view(self.dtype).reshape(-1)
        if self.ids:
            rows["id"] = ids
        missing = None
        for place, column in enumerate(columns):
            rows[f"c{place}"] = column.values
            present = column.present() if isinstance(column, Floats) else column.valid
            if present is not None and not present.all():
                if missing is None:
                    missing = np.zeros((len(ids), len(columns)), bool)
                np.logical_not(present, out=missing[:, place])
                rows[f"c{place}"][missing[:, place]] = 0
        if missing is not None:
            rows["missing"] = np.packbits(missing, axis=1, bitorder="little")
        return words

    def columns(self, words: Words) -> list[Column]:
        """The columns of such rows."""
        rows = np.ascontiguousarray(words).view(self.dtype).reshape(-1)
        masks: list[Mask | None] = [None] * len(self.kinds)
        if rows["missing"].any():
            bits = np.unpackbits(rows["missing"], axis=1, bitorder="little").astype(bool)
            masks = [~bits[:, place] for place in range(len(self.kinds))]
        return [self._column(place, rows, mask) for place, mask in enumerate(masks)]

    def batches(self, words: Words) -> Iterator[Batch]:
        """Such rows as batches."""
        for start in range(0, len(words), BATCH_ROWS):
            some = words[start : start + BATCH_ROWS]
            yield Batch(len(some), self.columns(some))

    def block(self, words: Words) -> RowBlock:
        """Such rows, to choose from."""
        return RowBlock(self.name, self.ids, words)

    def _column(self, place: int, rows: NDArray[Any], mask: Mask | None) -> Column:
        values = np.ascontiguousarray(rows[f"c{place}"])
        kind, _, scale = self.kinds[place]
        valid = None if mask is None or mask.all() else mask
        if kind == "Decimals":
            return Decimals(values, scale, valid)
        return Floats(values, valid) if kind == "Floats" else Integers(values, valid)

    def _type(self, place: int) -> str:
        return self.kinds[place][1]


class WaitingRows:
    """Rows by layout, for all threads of a pass; afterwards parts, each with whole people."""

    def __init__(self, mixer: Mixer) -> None:
        self._mixer = mixer
        self._lock = threading.Lock()
        self._rows: dict[RowLayout, list[Words]] = {}
        self._bytes, self._most = 0, room(MEMORY_BYTES)
        self._disk: _Disk | None = None
        self._written: list[_Written] = []
        self.unread: dict[RowLayout, int] = {}

    def add(self, batch: Batch) -> None:
        """Keep the rows of a batch, whose last column has the ids of people."""
        *columns, ids = batch.columns
        assert isinstance(ids, Identities)
        nobody = RowLayout.of(0, columns)
        if batch.absent:
            with self._lock:
                self.unread[nobody] = self.unread.get(nobody, 0) + batch.absent
        rows = (ids.values == 0).nonzero()[0]
        if len(rows):
            self._keep(
                nobody, nobody.packed(_picked(columns, rows), np.zeros((len(rows), 0), np.uint64))
            )
        for rows, words in ids.parts:
            layout = RowLayout.of(words.shape[1], columns)
            self._keep(layout, layout.packed(_picked(columns, rows), words))

    def _keep(self, layout: RowLayout, words: Words) -> None:
        with self._lock:
            self._rows.setdefault(layout, []).append(words)
            self._bytes += words.nbytes
            if self._bytes > self._most:
                self._write()

    def parts(self) -> list[RowsPart]:
        """All rows, those of a person in one part; what was kept is here no longer."""
        if self._disk is not None:
            self._write()
            return [RowsPart({}, written, self._disk) for written in self._written]
        bits = min(max(self._bytes // PART_BYTES, 1).bit_length() - 1, MOST_BITS)
        kept: list[dict[RowLayout, list[Words]]] = [{} for _ in range(1 << bits)]
        for layout, words in self._taken():
            for place, some in enumerate(dealt(layout, words, self._mixer, bits)):
                kept[place].setdefault(layout, []).append(some)
        return [RowsPart(each) for each in kept]

    def _write(self) -> None:
        if self._disk is None:
            self._disk = _Disk()
            self._written = [{} for _ in range(1 << MOST_BITS)]
        for layout, words in self._taken():
            for place, some in enumerate(dealt(layout, words, self._mixer, MOST_BITS)):
                self._written[place].setdefault(layout, []).extend(self._disk.write(some))

    def _taken(self) -> Iterator[tuple[RowLayout, Words]]:
        """What was kept, a few megabytes at a time; it is not kept any more."""
        rows, self._rows, self._bytes = self._rows, {}, 0
        for layout, pieces in rows.items():
            while pieces:
                some = [pieces.pop()]
                while pieces and len(some) * some[0].nbytes < DEALT_BYTES:
                    some.append(pieces.pop())
                yield layout, joined_rows(some)


class RowsPart:
    """Rows of some people, all of theirs; in memory or on disk."""

    def __init__(
        self,
        rows: dict[RowLayout, list[Words]],
        written: _Written | None = None,
        disk: _Disk | None = None,
    ) -> None:
        self._rows = rows
        self._written = written or {}
        self._disk = disk
        self.settled = False

    @property
    def size(self) -> int:
        """In bytes."""
        kept = sum(words.nbytes for pieces in self._rows.values() for words in pieces)
        return kept + sum(span.size for spans in self._written.values() for span in spans)

    def read(self) -> dict[RowLayout, Words]:
        """The rows by layout."""
        if self._disk is None:
            return {layout: joined_rows(pieces) for layout, pieces in self._rows.items()}
        return {
            layout: joined_rows([self._disk.read(span, layout.width) for span in spans])
            for layout, spans in self._written.items()
            if spans
        }

    def pieces(self) -> Iterator[tuple[RowLayout, Words]]:
        """The rows, a few megabytes at a time."""
        for layout, pieces in self._rows.items():
            for words in pieces:
                yield layout, words
        for layout, spans in self._written.items():
            some: list[Words] = []
            for span in spans:
                assert self._disk is not None
                some.append(self._disk.read(span, layout.width))
                if sum(words.nbytes for words in some) >= DEALT_BYTES:
                    yield layout, joined_rows(some)
                    some = []
            if some:
                yield layout, joined_rows(some)

    def split(self, deal: Callable[[RowLayout, Words], Sequence[Words]]) -> list[RowsPart]:
        """Smaller parts on disk, as `deal` deals the rows out."""
        disk = self._disk or _Disk()
        found: list[_Written] = []
        for layout, words in self.pieces():
            dealt_out = deal(layout, words)
            found = found or [{} for _ in dealt_out]
            for written, some in zip(found, dealt_out, strict=True):
                written.setdefault(layout, []).extend(disk.write(some))
        return [RowsPart({}, written, disk) for written in found]

    def settle(self, rows: dict[RowLayout, Words]) -> None:
        """Keep these rows in the place of what was there, for all passes to come."""
        self.settled = True
        if self._disk is None:
            self._rows = {layout: [words] for layout, words in rows.items()}
            return
        room = [span for spans in self._written.values() for span in spans]
        disk = self._disk
        self._written = {layout: disk.write(words, room) for layout, words in rows.items()}


_Written = dict[RowLayout, list[Stretch]]


class _Disk(Scratch):
    """Rows on disk."""

    def write(self, words: Words, room: list[Stretch] | None = None) -> list[Stretch]:
        """Put rows down, first where there is room, which is used up, and then at the end."""
        spans = []
        row = words.shape[1] * words.itemsize
        while len(words):
            place = room.pop() if room else None
            fits = len(words) if place is None else place.size // row
            some, words = words[:fits], words[fits:]
            if len(some):
                spans.append(self.put(some, place))
        return spans

    def read(self, span: Stretch, width: int) -> Words:
        """The rows of a stretch, of shape (rows, width)."""
        return self.get(span, np.uint64).reshape(-1, width)


def dealt(layout: RowLayout, words: Words, mixer: Mixer, bits: int) -> list[Words]:
    """Rows in two to the power of `bits` parts: all of a person in one, those of nobody evenly."""
    if not bits:
        return [words]
    if not layout.ids:
        return np.array_split(words, 1 << bits)
    return by_place(words, mixer.people(words[:, : layout.ids]) >> np.uint64(64 - bits), bits)


def by_place(words: Words, places: Words, bits: int) -> list[Words]:
    """The rows of every place, of which there are two to the power of `bits`, at most eight."""
    narrow = places.astype(np.uint8)
    order = np.argsort(narrow, kind="stable")
    stops = np.cumsum(np.bincount(narrow, minlength=1 << bits))
    return np.split(np.take(words, order, axis=0), stops[:-1])


def joined_rows(pieces: Sequence[Words]) -> Words:
    """Rows of one layout one after another."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _picked(columns: Sequence[Column], rows: Rows) -> Sequence[Column]:
    if not columns or len(rows) == len(columns[0].values):
        return columns
    return [column.pick(rows) for column in columns]


def _kind(column: Column) -> Kind:
    values = column.values
    if isinstance(column, Decimals):
        return ("Decimals", f"({values.shape[1]},)<u8", column.scale)
    return (type(column).__name__, values.dtype.str, 0)
