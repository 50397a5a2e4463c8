"""Which values a column has, and how many people have each: data, from which values are selected.

Everybody counts once for a value, and for no more values than rows of everybody enter. A value is
text of at most 63 bytes as it is written, a number or a boolean, as the type of the column has it,
and among objects of Python each by itself; anything else, the empty text and a missing value are
none. What a value is depends on itself alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import Source
from muhat.data.categories import LARGEST_NUMBER, Label
from muhat.data.selection import Field
from muhat.data.shared import Pass, Reading, carried_out
from muhat.data.sources import open_source
from muhat.data.states import Numbers, joined
from muhat.data.unit_ids import END, PLAIN, as_written, located, words_of
from muhat.data.units import People
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, Column, Decimals, column_of

WORDS = 8
LONGEST = 8 * WORDS - 1
"""The most bytes of a text that may be a group."""

_BOOLEAN = ("bool", "boolean")
_OBJECTS = ("object", "list")
_NUMBER = b"\0"
"""Numbers among objects begin with it; a text that does is no value."""


class ValueCoder:
    """Reads a column as the bytes of its values, each in as many words; they keep them apart."""

    reads_text = True
    identifies = False

    def __init__(self) -> None:
        self.kind: str | None = None

    def require(self, field: Field) -> None:
        """InvalidInput for a column whose values are no groups, or differ in kind between files."""
        kind = _kind_of(field)
        if kind is None:
            raise InvalidInput(
                f"column {field.name!r:.80} has type {field.type:.80}, whose values cannot be "
                "groups. Text, numbers and booleans can: convert it first."
            )
        if self.kind not in (None, kind):
            raise InvalidInput(
                f"column {field.name!r:.80} is {kind} in one file and {self.kind} in another, so "
                "the same group could have two names. Convert one of them."
            )
        self.kind = kind

    def of_array(self, values: NDArray[Any]) -> Column:
        """The values of a 1-D numpy array."""
        if values.dtype.kind in "fiub":
            return _of_numbers(column_of(values))
        return self.of_objects(values.tolist())

    def of_objects(self, values: Sequence[object]) -> Column:
        """The texts and numbers among Python's objects."""
        import pyarrow as pa
        from pyarrow import compute

        if set(map(type, values)) <= PLAIN:
            # Most are plain text, which needs no second look.
            with suppress(pa.ArrowException, UnicodeError):
                texts = pa.array(values, pa.large_string(), from_pandas=True)
                if not compute.any(compute.starts_with(texts, _NUMBER.decode())).as_py():
                    return self.of_texts(texts)
        return _of_texts(pa.array([_object(value) for value in values], pa.large_binary()))

    def of_arrow(self, array: Any) -> Column:
        """The values of an Arrow array of numbers or text, plain or dictionary-encoded."""
        import pyarrow as pa

        from muhat.data.arrow import columns_of, is_text

        if pa.types.is_dictionary(array.type):
            return self.of_arrow(array.dictionary_decode())
        if pa.types.is_null(array.type) or is_text(array.type):
            return _of_texts(array.cast(pa.large_binary()))
        (column,) = columns_of(array)
        return _of_numbers(column)

    def of_texts(self, cells: Any, *, latin: bool = False) -> Column:
        """The values of an Arrow array of bytes; `latin` as for coders of categories."""
        return _of_texts(as_written(cells, latin=latin))


def _kind_of(field: Field) -> str | None:
    if field.is_text:
        return "object" if field.type in _OBJECTS else "text"
    if field.type in _BOOLEAN:
        return "boolean"
    plain = field.width == 1 and not field.type.startswith(("decimal", "fixed_size_list"))
    return "number" if plain else None


def _object(value: object) -> bytes | None:
    """The bytes of a text, or of a number; nothing of what a subclass adds is called."""
    if isinstance(value, str | bytes):
        text = b"".join([value]) if isinstance(value, bytes) else _encoded(value)
        return None if text.startswith(_NUMBER) else text
    if isinstance(value, np.integer | np.floating):
        value = np.generic.item(value)
    if isinstance(value, int):
        value = int.__index__(value)
    elif isinstance(value, float):
        value = float.__float__(value)
    else:
        return None
    return _NUMBER + typed if (typed := _typed(value)) else None


def _encoded(text: str) -> bytes:
    return str.encode(text, "utf-8", "surrogatepass")


def _of_texts(texts: Any) -> Decimals:
    starts, lengths, data = located(texts)
    known = (lengths > 0) & (lengths <= LONGEST)
    words = np.zeros((len(lengths), WORDS), np.uint64)
    words[known] = words_of(starts[known], lengths[known], data, WORDS)
    return Decimals(words, 0, known)


def _of_numbers(column: Column) -> Decimals:
    """Numbers as they are typed: whole ones, also among floats, without a point."""
    import pyarrow as pa

    assert not isinstance(column, Decimals)
    found, places = np.unique(column.values, return_inverse=True)
    texts = _of_texts(pa.array([_typed(each) for each in found.tolist()], pa.large_binary()))
    assert texts.valid is not None
    places = places.reshape(-1)
    return Decimals(texts.values[places], 0, texts.valid[places] & column.present())


def _typed(number: int | float) -> bytes:
    if not abs(number) < LARGEST_NUMBER:  # not-a-number, too
        return b""
    return (str(int(number)) if number == int(number) else repr(number)).encode()


class ValueSource:
    """A column of values; made from arguments and metadata alone."""

    def __init__(self, source: Source, coder: ValueCoder) -> None:
        self._source = source
        self._coder = coder

    @property
    def kind(self) -> str:
        """What its values are: "text", "number" or "boolean"."""
        assert self._coder.kind is not None
        return self._coder.kind

    def check_unchanged(self) -> None:
        """Raise DataChanged if the data are not those that were opened."""
        self._source.check_unchanged()

    def people(self) -> dict[Label, int]:
        """One pass: how many people have each value. Data: never show it.

        In an order that the values alone decide.
        """
        return carried_out(self.reading())

    def reading(self) -> Reading[dict[Label, int]]:
        """`people`, as a reading that may share its pass."""
        total: Counter[bytes] = Counter()
        counted: list[_Counts] = yield Pass(self._source, _Counts)
        for each in counted:
            total.update(each.counts)
        found = {}
        for words, number in total.items():
            label = self._label(words)
            if label is not None:
                found[label] = number
        return {label: found[label] for label in sorted(found, key=_order)}

    def _label(self, words: bytes) -> Label | None:
        """The value of these words; None for bytes that are no text."""
        written = words.rstrip(b"\0").removesuffix(bytes([END]))
        try:
            text = written.decode()
        except UnicodeDecodeError:
            return None
        if self.kind == "object":
            is_number = written.startswith(_NUMBER)
            return _number(text[1:]) if is_number else text
        if self.kind == "text":
            return text
        return bool(_number(text)) if self.kind == "boolean" else _number(text)

    def alike(self, labels: Sequence[Label]) -> tuple[Label, ...]:
        """Labels of one kind: where some are texts and others numbers, the more frequent ones."""
        texts = tuple(label for label in labels if isinstance(label, str))
        if 2 * len(texts) >= len(labels):
            return texts
        return tuple(label for label in labels if not isinstance(label, str))

    @property
    def nothing(self) -> Label:
        """A group of the same kind that is never a value here: it stands for none."""
        return " " * (LONGEST + 1) if self.kind in ("text", "object") else LARGEST_NUMBER


def _number(text: str) -> int | float:
    return float(text) if "." in text or "e" in text else int(text)


def _order(label: Label) -> tuple[bool, Any]:
    """Numbers first, each kind by itself."""
    return isinstance(label, str), label


class _Counts:
    """Counts the people who have each value, for one thread."""

    def __init__(self) -> None:
        self.counts: Counter[bytes] = Counter()
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Everybody of the batch who has a value."""
        import pyarrow as pa

        self.rows += batch.rows + batch.absent
        if not batch.rows:
            return
        (column,) = batch.columns
        words = np.ascontiguousarray(column.values[column.present()])
        cells = pa.Array.from_buffers(
            pa.binary(8 * WORDS), len(words), [None, pa.py_buffer(words)], null_count=0
        )
        for entry in cells.value_counts():
            self.counts[entry["values"].as_py()] += entry["counts"].as_py()

    def state(self) -> Numbers:
        """The people seen, and for every value its words and how many have it."""
        words = np.frombuffer(b"".join(self.counts), "<i8")
        return joined(self.rows, words, np.array([*self.counts.values()], np.int64))

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        size = (len(state) - 1) // (WORDS + 1)
        words, numbers = state[1 : 1 + WORDS * size], state[1 + WORDS * size :]
        values = np.ascontiguousarray(words, "<i8").reshape(size, WORDS)
        for value, number in zip(values, numbers.tolist(), strict=True):
            self.counts[value.tobytes()] += number


def open_values(data: Any, column: str, people: People | None = None) -> ValueSource:
    """A column of the data whose values nobody knows, or InvalidInput; no value is read.

    With `people`, of whom one may have several rows, a person counts once for each of its values,
    and for `max_rows` of them at most.
    """
    coder = ValueCoder()
    if people is not None:
        people = People(people.unit, people.max_rows, (column,))
    source = open_source(data, (column,), 1, coders=(coder,), people=people)
    return ValueSource(source, coder)
