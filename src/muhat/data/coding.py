"""A column of any type into the cells of its categories, as codes, each value by itself.

Text is matched exactly, byte by byte, and never stripped. Numbers are matched as numbers: 1, 1.0,
true in a column of booleans, and the texts "1" and " 1.0" are one value. Booleans in text are
true and false, all small, all capital or with a capital first letter, or the numbers 1 and 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.categories import Categories
from muhat.data.memory import real_number
from muhat.data.number_cells import EXACT, Cells, Listed, NumberBins, NumberCodes, halves_of, parts
from muhat.data.selection import Field
from muhat.data.text_numbers import number_in, numbers_in
from muhat.errors import InvalidInput
from muhat.records.columns import Column, Integers, column_of

_BLOCK_ROWS = 1 << 14
"""Numbers are put into cells in blocks that stay in the cache."""

_BOOLEANS = {True: ("true", "True", "TRUE"), False: ("false", "False", "FALSE")}


class Coder:
    """Puts the values of one column into its cells; it knows nothing of other records.

    Codes are 0 … size − 1. Values that are none of those declared have the code `absent`: that
    of the cell they go to, or `size`, which stands for a record that is left out. `is_text` says
    that labels are text, `reads_text` that text is not only read for the numbers in it.
    """

    identifies = False

    def __init__(self, categories: Categories) -> None:
        self.categories = categories
        self.size = categories.size
        self.absent = self.size if categories.fallback is None else categories.fallback
        self.is_text = categories.kind == "text"
        self.reads_text = categories.kind != "number"
        self._dtype = np.min_scalar_type(self.size)
        self._words = _spellings(categories)
        self._bytes = {word.encode(): cell for word, cell in self._words.items()}
        self._numbers = None if self.is_text else _matcher(categories)
        self._remembers = False
        self._seen: tuple[Any, NDArray[Any]] | None = None

    def remembering(self) -> Coder:
        """The same for batches that share a dictionary: its values are looked up once.

        What it remembers is data: it is for one partition, and never leaves it.
        """
        other = copy(self)
        other._remembers = True
        return other

    def require(self, field: Field) -> None:
        """InvalidInput for a column of a type that has no such categories."""
        where = f"column {field.name!r:.80} has type {field.type:.80}"
        if field.is_text:
            # A number in text is read as a float, which cannot tell larger whole numbers apart.
            one_by_one = field.type in ("object", "list")
            if not (self.is_text or one_by_one) and _beyond_floats(self.categories):
                raise InvalidInput(
                    f"{where}, and its categories are whole numbers beyond 2^53. "
                    "Give them as text, just as they are written in the data."
                )
        elif field.width != 1 or field.type.startswith("fixed_size_list"):
            raise InvalidInput(
                f"{where}, which cannot have categories. Only text, numbers, decimals and "
                "booleans can: convert it first."
            )
        elif self.is_text:
            raise InvalidInput(
                f"{where}, and its categories are text. Give them as numbers or booleans, or "
                "convert the column to text."
            )

    def of_numbers(self, column: Column) -> Integers:
        """Codes of a column of numbers."""
        looked_up = self._of_whole_numbers(column) if isinstance(column, Integers) else None
        if looked_up is not None:
            return looked_up
        rows = len(column.values)
        codes = np.empty(rows, self._dtype)
        for start in range(0, rows, _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, rows)
            found = self._number_cells(column.part(start, stop))
            codes[start:stop] = np.where(found < 0, self.absent, found)
        return Integers(codes)

    def _of_whole_numbers(self, column: Integers) -> Integers | None:
        """Codes looked up in a table, where the categories are few whole numbers.

        With `before` taken away, modulo 2^64, all others are at an end of the table, or beyond it;
        of unsigned numbers that holds where the first category is not negative.
        """
        if self._lookup is None:
            return None
        before, codes = self._lookup
        if before < -1 and column.values.dtype.kind == "u":
            return None
        found = codes.take(column.values.view(np.int64) - before, mode="clip")
        if column.valid is not None:
            found[~column.valid] = self.absent
        return Integers(found)

    @cached_property
    def _lookup(self) -> tuple[int, NDArray[Any]] | None:
        """The whole number before the first with a cell, and the codes from there on.

        At both ends they are `absent`.
        """
        whole = None if self._numbers is None else self._numbers.whole
        if whole is None:
            return None
        first, cells = whole
        codes = np.pad(np.where(cells < 0, self.absent, cells), 1, constant_values=self.absent)
        return first - 1, codes.astype(self._dtype)

    def of_array(self, values: NDArray[Any]) -> Integers:
        """Codes of a 1-D numpy array of numbers, text or objects."""
        if values.dtype.kind in "fiub":
            return self.of_numbers(column_of(values))
        return self.of_objects(values.tolist())

    def of_objects(self, values: Sequence[object]) -> Integers:
        """Codes of Python objects: text, bytes and numbers; anything else is missing."""
        cells = [-1] * len(values)
        if self._words:
            # Most are plain text, which needs no second look.
            get, word = self._words.get, self._word
            cells = [get(each, -1) if type(each) is str else word(each) for each in values]
        found = np.array(cells, np.int64)
        if self._numbers is not None:
            halves = np.array([_halves(value) for value in values], np.float64).reshape(-1, 2)
            high, low = halves[:, 0], halves[:, 1]
            listed = self._numbers.cells(high, low if low.any() else None)
            found = np.maximum(found, np.where(np.isfinite(high), listed, -1))
        return self._codes(found)

    def of_arrow(self, array: Any) -> Integers:
        """Codes of an Arrow array of numbers or text, plain or dictionary-encoded."""
        import pyarrow as pa

        from muhat.data.arrow import columns_of, is_text

        kind = array.type
        if pa.types.is_dictionary(kind):
            return self._of_dictionary(array)
        if pa.types.is_null(kind):
            return self._codes(np.full(len(array), -1, np.int64))
        if is_text(kind):
            return self.of_texts(array.cast(pa.large_binary()))
        (column,) = columns_of(array)
        return self.of_numbers(column)

    def of_texts(self, cells: Any, *, latin: bool = False) -> Integers:
        """Codes of an Arrow array of bytes.

        With `latin` each byte of the text is written as the character of that number, in UTF-8:
        a way to write any bytes that every parser of text accepts.
        """
        found = np.full(len(cells), -1, np.int64)
        if self._bytes:
            found = self._word_cells(cells, latin)
        if self._numbers is not None:
            from muhat.data.arrow import columns_of

            (column,) = columns_of(numbers_in(cells))
            found = np.maximum(found, self._number_cells(column))
        return self._codes(found)

    def _of_dictionary(self, array: Any) -> Integers:
        """Codes of the distinct values, handed out by index."""
        if len(array.dictionary) > len(array):
            return self.of_arrow(array.dictionary_decode())
        known = self._of_values(array.dictionary)
        places = array.indices
        if places.null_count:
            # One more entry, for what is missing.
            known = np.append(known, known.dtype.type(self.absent))
            places = places.cast("int64").fill_null(len(known) - 1)
        return Integers(known.take(places.to_numpy(zero_copy_only=False)))

    def _of_values(self, dictionary: Any) -> NDArray[Any]:
        """The codes of a dictionary's values, the last one's if it is the same."""
        if self._seen is not None and self._seen[0].equals(dictionary):
            return self._seen[1]
        known = self.of_arrow(dictionary).values
        if self._remembers:
            self._seen = dictionary, known
        return known

    def _number_cells(self, column: Column) -> Cells:
        assert self._numbers is not None
        high, low, present = parts(column)
        found = self._numbers.cells(high, low)
        return found if present is None else np.where(present, found, -1)

    def _word_cells(self, cells: Any, latin: bool) -> Cells:
        import pyarrow as pa
        from pyarrow import compute

        words = [word.decode("latin-1").encode() if latin else word for word in self._bytes]
        places = compute.index_in(cells, value_set=pa.array(words, cells.type))
        known = np.array([*self._bytes.values(), -1], np.int64)
        found: Cells = known[places.fill_null(len(words)).to_numpy(zero_copy_only=False)]
        return found

    def _word(self, value: object) -> int:
        """The cell of a text, −1 if it is none; nothing of what a subclass adds is called."""
        if isinstance(value, str):
            return self._words.get(str.__str__(value), -1)
        return self._bytes.get(b"".join([value]), -1) if isinstance(value, bytes) else -1

    def _codes(self, found: Cells) -> Integers:
        return Integers(np.where(found < 0, self.absent, found).astype(self._dtype))


def _matcher(categories: Categories) -> NumberCodes | Listed | NumberBins:
    if categories.edges:
        return NumberBins(categories.edges)
    if isinstance(categories.values, range):
        return NumberCodes(len(categories.values))
    return Listed([label for label in categories.values if not isinstance(label, str)])


def _spellings(categories: Categories) -> dict[str, int]:
    """How labels may be written as text, and the cell of each; numbers are not listed."""
    if categories.kind == "number":
        return {}
    return {
        word: cell
        for cell, label in enumerate(categories.values)
        for word in ((label,) if isinstance(label, str) else _BOOLEANS[bool(label)])
    }


def _beyond_floats(categories: Categories) -> bool:
    if isinstance(categories.values, range):
        return False
    numbers = categories.edges or categories.values
    return any(isinstance(number, int) and abs(number) > EXACT for number in numbers)


def _halves(value: object) -> tuple[float, float]:
    """A number among Python's objects as high + low; not-a-number for anything else."""
    if isinstance(value, str):
        return number_in(str.__str__(value)), 0.0
    if isinstance(value, bytes):
        return number_in(bytes.decode(value, "latin-1")), 0.0
    if isinstance(value, int | np.integer) and EXACT < abs(int(value)) < 1 << 100:
        return halves_of(int(value))
    return real_number(value), 0.0
