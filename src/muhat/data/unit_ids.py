"""Whose row it is: the values of a column that names people, told apart exactly.

Within a column ids are equal as its type has it: numbers by their value, text byte by byte, as it
is written. Where every value has a type of its own (objects of Python), numbers of all kinds are
numbers, 1 and 1.0 and True are one, and text is never a number. A value that is missing, not a
number, or the empty text names nobody. What names people in no way (a list, an object of an unknown
kind) can be told neither from the same nor from others, so its row is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from muhat.data.selection import Field
from muhat.errors import InvalidInput
from muhat.records.columns import Decimals, Floats, Integers, Mask

Words = NDArray[np.uint64]
Rows = NDArray[np.intp]

_NUMBER = re.compile(r"u?int(8|16|32)|int64|int|bigint|smallint|tinyint|bool|boolean")
_FLOAT = re.compile(r"float(16|32|64)?|halffloat|double")
_DECIMAL = re.compile(r"(decimal\d*)\(\d+, ?(-?\d+)\)")
_MOMENT = re.compile(r"(date|time|timestamp|datetime|timedelta|duration|interval day)(\d|\[|_| |$)")
_BYTES = re.compile(
    r"(<|>|\|)?[US]\d+|fixed_size_binary\[\d+\]|extension<arrow\.uuid>|StringDType.*"
)
_DICTIONARY = re.compile(r"dictionary<values=(.*), indices=.*>")

PLAIN = {str, float, type(None)}
"""The types of objects of which text can be read at once: a float is not-a-number, or no text."""

_WORD = 8
END = 0x80
"""What marks the end of a text in its words."""

_LARGEST_EXPONENT = 400


@dataclass(frozen=True)
class Identities(Integers):
    """The ids of some rows, by how many words they take.

    `parts` has rows and their words, of shape (rows, w): equal ids have the same w and the same
    words, and no two others do. `values` is 1 for a row of somebody, 0 for a row of nobody, and
    −1 for a row that is left out.
    """

    parts: tuple[tuple[Rows, Words], ...] = ()


class IdentityCoder:
    """Reads a column as the ids of people; made for one source, whose files must agree."""

    reads_text = True
    identifies = True

    def __init__(self) -> None:
        self._kind: str | None = None

    def require(self, field: Field) -> None:
        """InvalidInput for a column whose values name nobody, or differ in kind between files."""
        kind = kind_of(field)
        if kind is None:
            raise InvalidInput(
                f"column {field.name!r:.80} has type {field.type:.80}, whose values cannot name "
                "people. Whole numbers, text and dates can: convert it first."
            )
        if self._kind not in (None, kind):
            raise InvalidInput(
                f"column {field.name!r:.80} names people by type {field.type:.60} in one file and "
                f"by {self._kind:.60} in another, so the same person could have two ids. Convert "
                "one of them."
            )
        self._kind = kind

    def of_array(self, values: NDArray[Any]) -> Identities:
        """The ids in a 1-D numpy array."""
        if values.dtype.kind in "iub":
            return _fixed(_as_words(values))
        if values.dtype.kind == "f":
            return _of_floats(values.astype(np.float64), None)
        if values.dtype.kind in "mM":
            return _fixed(
                values.astype(values.dtype.newbyteorder("=")).view(np.uint64), ~np.isnat(values)
            )
        return self.of_objects(values.tolist())

    def of_objects(self, values: Sequence[object]) -> Identities:
        """The ids in Python's objects, each by itself."""
        import pyarrow as pa

        if set(map(type, values)) <= PLAIN:
            # Most are plain text, which needs no second look.
            with suppress(pa.ArrowException, UnicodeError):
                return self.of_texts(pa.array(values, pa.large_string(), from_pandas=True))
        labels = [label_of(value) for value in values]
        left_out = np.array([label is None for label in labels], bool)
        texts = pa.array(
            [b"" if label is None else label[0] for label in labels], pa.large_binary()
        )
        other = np.array([label is not None and not label[1] for label in labels], bool)
        return _of_bytes(texts, left_out, other)

    def of_arrow(self, array: Any) -> Identities:
        """The ids in an Arrow array."""
        import pyarrow as pa

        from muhat.data.arrow import columns_of, is_text

        kind = array.type
        if isinstance(array, pa.ExtensionArray):
            return self.of_arrow(array.storage)
        if pa.types.is_dictionary(kind):
            return self.of_arrow(array.dictionary_decode())
        if pa.types.is_null(kind):
            return _of_bytes(array.cast(pa.large_binary()))
        if is_text(kind) or pa.types.is_fixed_size_binary(kind):
            return _of_bytes(array.cast(pa.large_binary()))
        if pa.types.is_temporal(kind):
            array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        (column,) = columns_of(array)
        if isinstance(column, Decimals):
            return _fixed(np.ascontiguousarray(column.values), column.valid)
        if isinstance(column, Floats) and pa.types.is_floating(kind):
            return _of_floats(column.values, column.valid)
        return _fixed(_as_words(column.values), column.valid)

    def of_texts(self, cells: Any, *, latin: bool = False) -> Identities:
        """The ids in an Arrow array of bytes; `latin` as for coders of categories."""
        return _of_bytes(as_written(cells, latin=latin))


def kind_of(field: Field) -> str | None:
    """What a column's ids are, so that ids of one kind can be compared; None if they are none."""
    kind = field.type
    inner = _DICTIONARY.fullmatch(kind)
    if inner is not None:
        kind = inner[1]
    if _NUMBER.fullmatch(kind):
        return "whole number"
    if _FLOAT.fullmatch(kind):
        return "float"
    if (decimal := _DECIMAL.fullmatch(kind)) is not None:
        return f"{decimal[1]} with {decimal[2]} digits"
    if kind == "uint64" or _MOMENT.match(kind):
        return kind
    if kind in ("object", "list"):
        return "object"
    return "text" if field.is_text or _BYTES.fullmatch(kind) else None


def label_of(value: object) -> tuple[bytes, bool] | None:
    """An object as bytes, and whether it is text: both are those of its equals, and of no other.

    No bytes are nobody's, and None is for what cannot be told. Nothing of what a subclass adds is
    called.

    >>> label_of(1) == label_of(1.0) == label_of(Decimal("1.00")) != label_of("1")
    True
    """
    try:
        return _label(value)
    except Exception:  # what a broken object raises may quote it
        return None


def _label(value: object) -> tuple[bytes, bool] | None:
    if isinstance(value, str):
        return str.encode(value, "utf-8", "surrogatepass"), True
    if isinstance(value, bytes):
        return b"".join([value]), True
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return _NOBODY
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _NOBODY if np.isnat(value) else _moment(str(value))
    if isinstance(value, np.generic):
        value = np.generic.item(value)
    if isinstance(value, int):
        return _number(int.__index__(value), 1)
    if isinstance(value, float):
        return _float(float.__float__(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, Fraction):
        return _number(value.numerator, value.denominator)
    if isinstance(value, UUID):
        return b"uuid" + value.bytes, False
    if isinstance(value, datetime):
        return _moment(value.isoformat())
    return _moment(str(value)) if isinstance(value, date | time | timedelta) else None


_NOBODY = (b"", True)


def _number(numerator: int, denominator: int) -> tuple[bytes, bool]:
    return b"%x" % numerator if denominator == 1 else b"%x/%x" % (numerator, denominator), False


def _float(value: float) -> tuple[bytes, bool]:
    if math.isfinite(value):
        return _number(*value.as_integer_ratio())
    return _NOBODY if math.isnan(value) else (b"%+f" % value, False)


def _decimal(value: Decimal) -> tuple[bytes, bool]:
    sign, digits, exponent = Decimal.as_tuple(value)
    if not isinstance(exponent, int):
        return _float((-math.inf if sign else math.inf) if exponent == "F" else math.nan)
    if abs(exponent) <= _LARGEST_EXPONENT:
        return _number(*Decimal.as_integer_ratio(value))
    # Beyond all floats: as it is written, without zeros at the end.
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    if not short:
        return _number(0, 1)
    return b"%d:%d:%s" % (sign, exponent + len(text) - len(short), short.encode()), False


def _moment(text: str) -> tuple[bytes, bool]:
    return b"moment " + text.encode(), False


def _as_words(values: NDArray[Any]) -> Words:
    """Whole numbers, as such or as floats, as 64-bit words: negative ones as their complement."""
    if values.dtype != np.uint64:
        values = values.astype(np.int64)
    return np.ascontiguousarray(values).view(np.uint64)


def _of_floats(values: NDArray[np.float64], valid: Mask | None) -> Identities:
    known = ~np.isnan(values)
    # 0 and −0 are one number.
    return _fixed((values + 0.0).view(np.uint64), known if valid is None else known & valid)


def _fixed(words: Words, valid: Mask | None = None) -> Identities:
    """Ids of so many words each."""
    words = words.reshape(len(words), -1)
    if valid is None or valid.all():
        return Identities(np.ones(len(words), np.int8), None, ((np.arange(len(words)), words),))
    rows = valid.nonzero()[0]
    return Identities(valid.astype(np.int8), None, ((rows, words[rows]),))


def _of_bytes(texts: Any, left_out: Mask | None = None, other: Mask | None = None) -> Identities:
    """Ids of bytes: each followed by a mark of its end, and by zeros up to 1, 2, 4, … words.

    `other` have another mark, and so another id than text.
    """
    starts, lengths, data = located(texts)
    status = (lengths > 0).astype(np.int8)
    if left_out is not None:
        status[left_out] = -1
    parts = []
    size = 1
    rows = status.nonzero()[0] if left_out is None else (status == 1).nonzero()[0]
    while len(rows):
        short = lengths[rows] < size * _WORD
        if short.any():
            chosen = rows[short]
            words = words_of(starts[chosen], lengths[chosen], data, size)
            if other is not None:
                _mark_other(words, lengths[chosen], other[chosen])
            parts.append((chosen, words))
            rows = rows[~short]
        size *= 2
    return Identities(status, None, tuple(parts))


def as_written(cells: Any, *, latin: bool) -> Any:
    """The bytes of texts; `latin` as for coders of categories."""
    import pyarrow as pa

    texts = cells.cast(pa.large_binary())
    if latin and (np.frombuffer(_data(texts), np.uint8) >= 128).any():
        whole = [text.decode("utf-8").encode("latin-1") for text in texts.to_pylist()]
        return pa.array(whole, pa.large_binary())
    return texts


def located(texts: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Where every text begins, how long it is (0 if it is missing), and the bytes of all."""
    _, offsets, data = texts.buffers()
    if not len(texts) or offsets is None:
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64), np.zeros(0, np.uint8)
    places = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
    lengths = np.diff(places)
    if texts.null_count:
        lengths[np.asarray(texts.is_null())] = 0
    found = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    first, last = int(places[0]), int(places[-1])
    # A few bytes more, so that whole words can be taken from any place.
    padded = np.concatenate([found[first:last], np.zeros(_WORD, np.uint8)])
    return places[:-1] - first, lengths, padded


def _data(texts: Any) -> Any:
    _, _, data = texts.buffers()
    return b"" if data is None or not len(texts) else data


def words_of(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], data: NDArray[np.uint8], size: int
) -> Words:
    """Texts of fewer than 8·size bytes as words, of shape (texts, size)."""
    everywhere = np.lib.stride_tricks.as_strided(
        data[:_WORD].view("<u8"), (len(data) - _WORD + 1,), (1,), writeable=False
    )
    words = np.zeros((len(starts), size), np.uint64)
    last = len(everywhere) - 1
    for place in range(size):
        left = np.clip(lengths - place * _WORD, -1, _WORD)
        found = everywhere[np.minimum(starts + place * _WORD, last)]
        words[:, place] = (found & _KEPT[left]) | _MARKS[left]
    return words


def _mark_other(words: Words, lengths: NDArray[np.int64], other: Mask) -> None:
    rows = other.nonzero()[0]
    places, bytes_left = np.divmod(lengths[rows], _WORD)
    words[rows, places] ^= _MARKS[bytes_left] ^ (_MARKS[bytes_left] >> np.uint64(1))


# By how many bytes of the text a word has, from 0 to 8; the last entry is for none and no end.
_KEPT = np.array([(1 << 8 * count) - 1 for count in range(9)] + [0], np.uint64)
_MARKS = np.array([END << 8 * count for count in range(8)] + [0, 0], np.uint64)
