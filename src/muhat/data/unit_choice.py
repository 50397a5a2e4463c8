"""Which rows of a person enter: the first of them in an order that a secret key decides.

Every row has a number: a keyed hash of the person, of all that is read of the row, and of which
copy it is among equal rows of that person. The rows with the least numbers enter. So the choice is
a function of the key and of that person's rows alone, whatever order they come in, and every row is
as likely as any other. Privacy rests on the former, for which any rule would do that looks at one
person; the hash and its key are there for the latter. Proof: docs/proofs/units.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.data.unit_ids import Identities, Words
from muhat.noise.entropy import system_words

Indices = NDArray[np.intp]

KEY_WORDS = 4
_MULTIPLIERS = 8
_HALF, _SHIFT = np.uint64(32), np.uint64(29)


@dataclass(frozen=True)
class Mixer:
    """Numbers of 64 bits for people and rows that nobody foresees without the key, of 256 bits."""

    key: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> Mixer:
        """With a key from the operating system's entropy."""
        return cls(system_words(KEY_WORDS).tobytes())

    def people(self, words: Words) -> Words:
        """A number for every id, of shape (ids, words); different for different ids of one word."""
        return self._mixed(self._drawn("person", 1)[0], words, "person")

    def rows(self, people: Words, name: str, words: Words) -> Words:
        """A number for every row: of its person's, of what it is made of, and of that one's name.

        For a person, different for rows that differ in one word alone.
        """
        return self._mixed(people ^ self._drawn(f"row {name}", 1)[0], words, "row")

    def copies(self, numbers: Words, copies: Words) -> Words:
        """A number for every copy of a row, the first of which has copy 0 and keeps its own."""
        (factor,) = self._drawn("copy", 1) | np.uint64(1)
        mixed = self._finished(numbers + copies * factor, "copy")
        return np.where(copies == 0, numbers, mixed)

    def _mixed(self, start: Any, words: Words, purpose: str) -> Words:
        factors = self._drawn(f"{purpose} factors", _MULTIPLIERS) | np.uint64(1)
        mixed = np.full(len(words), start, np.uint64) if np.ndim(start) == 0 else start.copy()
        other = np.empty_like(mixed)
        for place in range(words.shape[1]):
            mixed ^= words[:, place]
            mixed *= factors[place % _MULTIPLIERS]
            np.right_shift(mixed, _HALF, out=other)
            mixed ^= other
        return self._finished(mixed, purpose)

    def _finished(self, mixed: Words, purpose: str) -> Words:
        for factor in self._drawn(f"{purpose} end", 2) | np.uint64(1):
            mixed = mixed * factor
            mixed ^= mixed >> _SHIFT
        return mixed

    def _drawn(self, purpose: str, count: int) -> Words:
        """Words that follow from the key, others for every purpose."""
        digest = blake2b(purpose.encode(), key=self.key, digest_size=8 * count).digest()
        return np.frombuffer(digest, np.uint64)


def places_of(ids: Identities, count: int) -> Indices:
    """One of so many places for every row, the same for all rows of a person, with no secret."""
    mixer = Mixer(b"\0")
    # Rows of nobody anywhere.
    places = np.arange(len(ids.values)) % count
    for rows, words in ids.parts:
        places[rows] = mixer.people(words) % np.uint64(count)
    return places


class RowBlock(NamedTuple):
    """Rows that are laid out alike: `words` of shape (rows, w), the first `ids` of them the id."""

    name: str
    ids: int
    words: Words


class Ordered(NamedTuple):
    """Rows of some blocks, numbered through, person after person, each person's in their order.

    `rows` are their numbers, `firsts` where every person begins.
    """

    rows: Indices
    firsts: Indices

    @property
    def sizes(self) -> Indices:
        """How many rows every person has."""
        return np.diff(self.firsts, append=len(self.rows))

    @property
    def ranks(self) -> Indices:
        """The place of every row among those of its person, 0 the first."""
        return np.arange(len(self.rows)) - np.repeat(self.firsts, self.sizes)


def by_person(
    blocks: Sequence[RowBlock],
    mixer: Mixer,
    most: int | None = None,
    *,
    cells: Indices | None = None,
    numbers: Words | None = None,
    ordered: bool = False,
) -> Ordered:
    """The rows of every person together, at most the first `most` of each.

    Where rows have `cells`, only the first row of a person in every cell counts at all. People all
    of whose rows enter have them in no particular order, unless they are to be `ordered`. Rows may
    have `numbers` already. All blocks have ids of the same number of words.
    """
    ids = _concatenated([block.words[:, : block.ids] for block in blocks])
    people = mixer.people(ids)
    found = _grouped(people)
    if ids.shape[1] > 1 and _disagree(ids, found):
        # Two ids with one number: tell them apart by what they are.
        _, ranks = np.unique(ids, axis=0, return_inverse=True)
        found = _grouped(ranks.reshape(-1).astype(np.uint64))
    sizes = found.sizes
    if ordered or cells is not None:
        large = sizes > 1
    else:
        large = sizes > (len(ids) if most is None else most)
    if not large.any():
        return found
    inside = np.repeat(large, sizes)
    rows = found.rows[inside]
    owners = np.repeat(np.arange(np.count_nonzero(large)), sizes[large])
    rows = rows[_order(owners, rows, blocks, people, mixer, numbers)]
    if cells is not None:
        first = _first_in_cells(owners, cells[rows])
        rows, owners = rows[first], owners[first]
    kept = Ordered(rows, _starts(np.bincount(owners)))
    if most is not None:
        enters = kept.ranks < most
        kept = Ordered(rows[enters], _starts(np.bincount(owners[enters])))
    if large.all():
        return kept
    others = Ordered(found.rows[~inside], _starts(sizes[~large]))
    return Ordered(
        np.concatenate([kept.rows, others.rows]),
        np.concatenate([kept.firsts, others.firsts + len(kept.rows)]),
    )


def _first_in_cells(owners: Indices, cells: Indices) -> NDArray[np.bool_]:
    """Which rows are the first of their person in their cell; a person's rows are together."""
    order = np.lexsort((np.arange(len(cells)), cells, owners))
    first = np.empty(len(cells), bool)
    first[order] = ~(_alike(cells[order]) & _alike(owners[order]))
    return first


def _grouped(people: Words) -> Ordered:
    """Equal numbers together."""
    rows = _sorted(people)
    along = people[rows]
    new = np.ones(len(rows), bool)
    np.not_equal(along[1:], along[:-1], out=new[1:])
    return Ordered(rows, new.nonzero()[0])


def _sorted(numbers: Words, owners: Indices | None = None) -> Indices:
    """An order in which owners ascend, and equal numbers of an owner are together, ascending.

    Without owners they are together in any order. One word has the owner, a part of the number and
    the row, so that a plain sort will do, which is much faster than one of indices.
    """
    places = max(len(numbers) - 1, 0).bit_length()
    above = 0 if owners is None or not len(owners) else int(owners[-1]).bit_length()
    if places + above <= _MOST_OTHER_BITS:
        if owners is None:
            mixed = numbers << np.uint64(places)
        else:
            mixed = numbers >> np.uint64(places + above) << np.uint64(places)
            if above:
                mixed |= owners.astype(np.uint64) << np.uint64(64 - above)
        mixed |= np.arange(len(numbers), dtype=np.uint64)
        mixed.sort()
        order = (mixed & np.uint64((1 << places) - 1)).astype(np.intp)
        mixed >>= np.uint64(places)
        along = numbers[order]
        if not ((mixed[1:] == mixed[:-1]) & (along[1:] != along[:-1])).any():
            return order
    return np.argsort(numbers) if owners is None else np.lexsort((numbers, owners))


_MOST_OTHER_BITS = 40


def _disagree(ids: Words, found: Ordered) -> bool:
    """Whether somebody has rows of two ids."""
    along = ids[found.rows]
    alike = (along[1:] == along[:-1]).all(axis=1)
    alike[found.firsts[1:] - 1] = True
    return not alike.all()


def _order(
    owners: Indices,
    rows: Indices,
    blocks: Sequence[RowBlock],
    people: Words,
    mixer: Mixer,
    known: Words | None,
) -> Indices:
    """The order of rows by person, and by their numbers within one; equal rows are as one."""
    places = _concatenated([np.arange(len(block.words)) for block in blocks])[rows]
    which = np.repeat(np.arange(len(blocks)), [len(block.words) for block in blocks])[rows]
    contents = None
    if known is not None:
        numbers = known[rows]
        order = _sorted(numbers, owners)
    else:
        numbers = _numbers(rows, blocks, people, mixer)
        order = _sorted(numbers, owners)
        same = _repeats(owners, numbers, order)
        if not same.any():
            return order
        contents = _contents(order, same, which, places, blocks)
        if contents is not None:
            order = np.lexsort((contents, numbers, owners))
            same = _repeats(owners, numbers, order) & _alike(contents[order])
        copies = np.arange(len(order))
        copies -= np.maximum.accumulate(np.where(same, 0, copies))
        numbers[order] = mixer.copies(numbers[order], copies.astype(np.uint64))
        order = _sorted(numbers, owners)
    if contents is None and not _repeats(owners, numbers, order).any():
        return order
    # Numbers that meet by chance, of rows that differ: the rows themselves decide.
    if contents is None:
        contents = _ranked(which, places, blocks)
    return np.lexsort((contents, numbers, owners))


def _numbers(rows: Indices, blocks: Sequence[RowBlock], people: Words, mixer: Mixer) -> Words:
    """The number of each of some rows, before copies are told apart."""
    found, start = [], 0
    for block in blocks:
        stop = start + len(block.words)
        chosen = rows if len(blocks) == 1 else rows[(rows >= start) & (rows < stop)]
        words = np.take(block.words, chosen - start, axis=0)[:, block.ids :]
        found.append((chosen, mixer.rows(people[chosen], block.name, words)))
        start = stop
    if len(found) == 1:
        return found[0][1]
    everywhere = np.zeros(start, np.uint64)
    for chosen, numbers in found:
        everywhere[chosen] = numbers
    return everywhere[rows]


def _repeats(owners: Indices, numbers: Words, order: Indices) -> NDArray[np.bool_]:
    """Which rows, in order, have the person and the number of the one before."""
    return _alike(numbers[order]) & _alike(owners[order])


def _alike(values: NDArray[Any]) -> NDArray[np.bool_]:
    found = np.zeros(len(values), bool)
    np.equal(values[1:], values[:-1], out=found[1:])
    return found


def _contents(
    order: Indices,
    same: NDArray[np.bool_],
    which: Indices,
    places: Indices,
    blocks: Sequence[RowBlock],
) -> Indices | None:
    """A rank for every row by what it is made of, if rows with one number differ; else None."""
    here = order[same.nonzero()[0]]
    before = order[same.nonzero()[0] - 1]
    if (which[here] == which[before]).all():
        pairs = (
            blocks[index].words[places[here[mine]]] == blocks[index].words[places[before[mine]]]
            for index in range(len(blocks))
            for mine in [which[here] == index]
        )
        if all(pair.all() for pair in pairs):
            return None
    return _ranked(which, places, blocks)


def _ranked(which: Indices, places: Indices, blocks: Sequence[RowBlock]) -> Indices:
    contents = [
        (blocks[index].name, blocks[index].words[place].tobytes())
        for index, place in zip(which.tolist(), places.tolist(), strict=True)
    ]
    ranks = {content: rank for rank, content in enumerate(sorted(set(contents)))}
    return np.array([ranks[content] for content in contents], np.intp)


def _starts(sizes: Indices) -> Indices:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)


def _concatenated(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
