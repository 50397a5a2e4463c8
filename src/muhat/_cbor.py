"""Plain data as bytes in one way only: deterministic CBOR, RFC 8949 § 4.2.1.

    null, true, false; whole numbers of any size; finite floats; text, bytes; lists; and maps whose
    keys are text

Heads are as short as they can be, keys stand in the order of their bytes, nothing is of unknown
length, and a float is the shortest that is the same number. Of a number there is one form, as many
languages have but one type for it: a float with a whole value from −2^63 to 2^64 − 1 is written as
that integer, −0 as 0; integers beyond 64 bits are bignums. So equal data have equal bytes, and a
digest of them. `read` takes what `written` writes, and nothing else. docs/wire.md.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from muhat.errors import InvalidInput

MOST_PARTS = 1 << 22
"""Of what is read: what is made of brackets alone takes thirty times its length in memory."""

DEEPEST = 64

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _OTHER = range(8)
_POSITIVE_BIGNUM, _NEGATIVE_BIGNUM = 2, 3
_SIMPLE = {False: 20, True: 21, None: 22}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_SIZES = {24: 1, 25: 2, 26: 4, 27: 8}
_WORD = 1 << 64


def written(value: Any) -> bytes:
    """Plain data as CBOR; InvalidInput if they have another form than those above.

    >>> written({"b": [1, 2.5, None], "a": -1.0}).hex()
    'a261612061628301f94100f6'
    """
    out = bytearray()
    try:
        _write(value, out, 0)
    except UnicodeEncodeError:
        raise InvalidInput("a text of half characters cannot be written.") from None
    return bytes(out)


def read(data: bytes) -> Any:
    """What `written` wrote; InvalidInput for whatever it would have written otherwise."""
    reader = _Reader(bytes(data))
    found = reader.item(0)
    if reader.at != len(reader.data):
        raise InvalidInput(_NOT_CBOR)
    return found


def _write(value: Any, out: bytearray, depth: int) -> None:
    if depth > DEEPEST:
        raise InvalidInput(f"lists and maps must be at most {DEEPEST} deep.")
    if value is None or value is True or value is False:
        out += _head(_OTHER, _SIMPLE[value])
    elif isinstance(value, int):
        out += _integer(value)
    elif isinstance(value, float):
        out += _float(value)
    elif isinstance(value, str):
        out += _text(value)
    elif isinstance(value, bytes):
        out += _head(_BYTES, len(value)) + value
    elif isinstance(value, list | tuple):
        out += _head(_LIST, len(value))
        for each in value:
            _write(each, out, depth + 1)
    elif isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        out += _head(_MAP, len(value))
        for key, name in sorted((_text(name), name) for name in value):
            out += key
            _write(value[name], out, depth + 1)
    else:
        raise InvalidInput(f"{type(value).__name__} has no form in CBOR.")


def _head(major: int, argument: int) -> bytes:
    """A kind and a number below 2^64, in as few bytes as they can have."""
    if argument < 24:
        return bytes([major << 5 | argument])
    for code, size in _SIZES.items():
        if argument < 1 << 8 * size:
            return bytes([major << 5 | code]) + argument.to_bytes(size, "big")
    raise InvalidInput("too long for CBOR.")


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _head(_TEXT, len(encoded)) + encoded


def _integer(value: int) -> bytes:
    major, size = (_UNSIGNED, value) if value >= 0 else (_NEGATIVE, -1 - value)
    if size < _WORD:
        return _head(major, size)
    tag = _POSITIVE_BIGNUM if value >= 0 else _NEGATIVE_BIGNUM
    digits = size.to_bytes(-(-size.bit_length() // 8), "big")
    return _head(_TAG, tag) + _head(_BYTES, len(digits)) + digits


def _float(value: float) -> bytes:
    if not math.isfinite(value):
        raise InvalidInput("infinities and not-a-number have no form in what is signed.")
    if value.is_integer() and -(_WORD >> 1) <= value < _WORD:
        return _integer(int(value))
    for code, form in _FLOATS.items():
        try:
            packed = struct.pack(form, value)
        except OverflowError:
            continue
        if struct.unpack(form, packed)[0] == value:
            return bytes([_OTHER << 5 | code]) + packed
    raise AssertionError("eight bytes hold every float")


_NOT_CBOR = "the bytes are not deterministic CBOR: cut short, or not written in the one way."


class _Reader:
    """Reads one item after the other; every head is compared with how it would be written."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.parts = data, 0, 0

    def item(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise InvalidInput(f"lists and maps must be at most {DEEPEST} deep.")
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise InvalidInput(f"a description must have at most {MOST_PARTS} numbers and lists.")
        start = self.at
        major, code = divmod(self._take(1)[0], 32)
        if major == _OTHER:
            return self._other(code, start)
        argument = code if code < 24 else int.from_bytes(self._take(_SIZES.get(code, 1)), "big")
        if _head(major, argument) != self.data[start : self.at]:
            raise InvalidInput(_NOT_CBOR)
        if major == _UNSIGNED:
            return argument
        if major == _NEGATIVE:
            return -1 - argument
        if major == _BYTES:
            return self._take(argument)
        if major == _TEXT:
            return self._text(argument)
        if major == _LIST:
            return [self.item(depth + 1) for _ in range(self._fitting(argument))]
        return self._map(argument, depth) if major == _MAP else self._bignum(argument, start)

    def _take(self, length: int) -> bytes:
        found = self.data[self.at : self.at + length]
        if len(found) < length:
            raise InvalidInput(_NOT_CBOR)
        self.at += length
        return found

    def _fitting(self, count: int) -> int:
        """As many items as are said to follow, if there are bytes for them."""
        if count > len(self.data) - self.at:
            raise InvalidInput(_NOT_CBOR)
        return count

    def _text(self, length: int) -> str:
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise InvalidInput(_NOT_CBOR) from None

    def _map(self, count: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        before = b""
        for _ in range(self._fitting(count)):
            start = self.at
            key = self.item(depth + 1)
            said = self.data[start : self.at]
            if not isinstance(key, str) or said <= before:
                raise InvalidInput(_NOT_CBOR)
            before = said
            found[key] = self.item(depth + 1)
        return found

    def _bignum(self, tag: int, start: int) -> int:
        digits = self.item(DEEPEST)
        if tag not in (_POSITIVE_BIGNUM, _NEGATIVE_BIGNUM) or not isinstance(digits, bytes):
            raise InvalidInput(_NOT_CBOR)
        size = int.from_bytes(digits, "big")
        value = size if tag == _POSITIVE_BIGNUM else -1 - size
        if _integer(value) != self.data[start : self.at]:
            raise InvalidInput(_NOT_CBOR)
        return value

    def _other(self, code: int, start: int) -> Any:
        for value, simple in _SIMPLE.items():
            if code == simple:
                return value
        form = _FLOATS.get(code)
        if form is None:
            raise InvalidInput(_NOT_CBOR)
        (number,) = struct.unpack(form, self._take(_SIZES[code]))
        if not math.isfinite(number) or _float(number) != self.data[start : self.at]:
            raise InvalidInput(_NOT_CBOR)
        return number
