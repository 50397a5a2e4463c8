"""What an accumulator holds as a vector of whole numbers, and such a vector as bytes.

This is all that ever comes back from another process: no object is unpickled, and the number of
bytes is known from the plan alone, whatever the records are. A number that is a Python integer
takes 128 bits, so a sum of integers of 62 bits over 2^65 records fits; a count takes 64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
"""A vector of int64, or of Python integers (numpy's kind "O")."""

_WIDE, _NARROW = b"w", b"n"
_WIDE_BYTES = 16


def joined(*parts: int | list[int] | Numbers) -> Numbers:
    """All numbers one after another; Python integers as soon as one part has a list of them.

    >>> joined(3, np.array([4, 5])).dtype.kind, joined(3, [1 << 70]).tolist()
    ('i', [3, 1180591620717411303424])
    """
    vectors = [_vector(part) for part in parts]
    if any(vector.dtype.kind == "O" for vector in vectors):
        vectors = [vector.astype(object) for vector in vectors]
    return np.concatenate(vectors)


def packed(numbers: Numbers) -> bytes:
    """The vector as bytes.

    >>> len(packed(np.zeros(3, np.int64))), len(packed(joined([1, 2, 3])))
    (25, 49)
    """
    if numbers.dtype.kind != "O":
        return _NARROW + numbers.astype("<i8", copy=False).tobytes()
    wide = (int(each).to_bytes(_WIDE_BYTES, "little", signed=True) for each in numbers)
    return _WIDE + b"".join(wide)


def unpacked(data: bytes | bytearray | memoryview) -> Numbers:
    """The vector that `packed` wrote.

    >>> unpacked(packed(joined([-(1 << 100), 7]))).tolist() == [-(1 << 100), 7]
    True
    """
    kind, body = bytes(data[:1]), memoryview(data)[1:]
    if kind == _NARROW:
        return np.frombuffer(body, "<i8").astype(np.int64)
    halves = np.frombuffer(body, "<u8").reshape(-1, 2)
    high = halves[:, 1].view(np.int64).astype(object)
    numbers: Numbers = high * (1 << 64) + halves[:, 0].astype(object)
    return numbers


def _vector(part: int | list[int] | Numbers) -> Numbers:
    if isinstance(part, np.ndarray):
        return part.reshape(-1)
    if isinstance(part, list):
        return np.array(part, object)
    return np.array([part], np.int64)
