"""Parts that are too large for memory, since somebody in them has very many rows.

Such a part is split once more, by the numbers of rows: all copies of a row are still together. So
they can be counted, a few megabytes at a time, every copy gets the number that it would have got
otherwise, and of these numbers, wherever they come from, only a person's least are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.data.unit_choice import Mixer
from muhat.data.unit_ids import Words
from muhat.data.unit_rows import MOST_BITS, RowLayout, RowsPart, by_place, joined_rows

LARGE_BYTES = 1 << 26
"""What a part may take in memory."""

SLAB_ROWS = 1 << 18
"""Copies that are numbered at a time."""


def is_large(part: RowsPart) -> bool:
    """Whether a part should not be in memory as a whole."""
    return part.size > LARGE_BYTES


class CrowdTally(NamedTuple):
    """Different rows, their numbers, and how many copies there are of each."""

    words: Words
    numbers: Words
    counts: NDArray[np.int64]

    def and_also(self, other: CrowdTally) -> CrowdTally:
        """All rows of both."""
        return CrowdTally(*(np.concatenate(both) for both in zip(self, other, strict=True)))

    def slabs(self, mixer: Mixer) -> Iterator[tuple[Words, Words]]:
        """All copies with their numbers, some at a time."""
        start = 0
        rows = np.arange(len(self.words))
        while len(rows):
            length = max(SLAB_ROWS // len(rows), 1)
            taken = np.minimum(self.counts[rows] - start, length)
            which = np.repeat(rows, taken)
            copies = start + np.arange(len(which)) - np.repeat(np.cumsum(taken) - taken, taken)
            numbers = mixer.copies(self.numbers[which], copies.astype(np.uint64))
            yield np.take(self.words, which, axis=0), numbers
            start += length
            rows = rows[self.counts[rows] > start]


def tallies(part: RowsPart, mixer: Mixer) -> Iterator[tuple[RowLayout, CrowdTally]]:
    """The rows of a large part. Those of nobody are told apart."""
    bits = min(max(4 * part.size // LARGE_BYTES, 1).bit_length(), MOST_BITS)

    def dealt(layout: RowLayout, words: Words) -> list[Words]:
        return by_place(words, _numbers(layout, words, mixer) & np.uint64((1 << bits) - 1), bits)

    for some in part.split(dealt):
        found: dict[RowLayout, CrowdTally] = {}
        for layout, words in some.pieces():
            ones = np.ones(len(words), np.int64)
            more = CrowdTally(words, _numbers(layout, words, mixer), ones)
            if not layout.ids:
                yield layout, more
                continue
            found[layout] = _different(
                more if layout not in found else more.and_also(found[layout])
            )
        yield from found.items()


class Least:
    """Rows with numbers, of which the least of every person are wanted."""

    def __init__(self) -> None:
        self._rows: dict[RowLayout, list[tuple[Words, Words]]] = {}
        self._bytes = 0
        self._limit = LARGE_BYTES

    def add(self, layout: RowLayout, words: Words, numbers: Words) -> bool:
        """Add some; whether there are so many that others should be left out."""
        self._rows.setdefault(layout, []).append((words, numbers))
        self._bytes += words.nbytes
        return self._bytes > self._limit

    def taken(self) -> tuple[dict[RowLayout, Words], dict[RowLayout, Words]]:
        """All of them, and their numbers; they are not here any more."""
        rows, self._rows, self._bytes = self._rows, {}, 0
        joined = {
            layout: [joined_rows(each) for each in zip(*pieces, strict=True)]
            for layout, pieces in rows.items()
        }
        words = {layout: both[0] for layout, both in joined.items()}
        return words, {layout: both[1] for layout, both in joined.items()}

    def put_back(self, words: dict[RowLayout, Words], numbers: dict[RowLayout, Words]) -> None:
        """Those that are left; the next time there may be twice as many before others go."""
        for layout, some in words.items():
            self.add(layout, some, numbers[layout])
        self._limit = max(LARGE_BYTES, 2 * self._bytes)


def _numbers(layout: RowLayout, words: Words, mixer: Mixer) -> Words:
    """The number of every row, without those of copies."""
    people = mixer.people(words[:, : layout.ids])
    return mixer.rows(people, layout.name, words[:, layout.ids :])


def _different(tally: CrowdTally) -> CrowdTally:
    """Equal rows as one."""
    words, numbers, counts = tally
    order = np.argsort(numbers)
    new = np.ones(len(order), bool)
    along = np.take(words, order, axis=0)
    new[1:] = (along[1:] != along[:-1]).any(axis=1)
    ties = numbers[order][1:] == numbers[order][:-1]
    if (ties & new[1:]).any():
        # Rows that differ have one number, and may lie between equal ones.
        order = np.lexsort((*words.T, numbers))
        along = np.take(words, order, axis=0)
        new[1:] = (along[1:] != along[:-1]).any(axis=1)
    firsts = new.nonzero()[0]
    return CrowdTally(along[firsts], numbers[order][firsts], np.add.reduceat(counts[order], firsts))
