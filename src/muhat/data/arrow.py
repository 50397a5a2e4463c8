"""Arrow arrays as columns, straight from their buffers, told apart by type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.selection import Coders, Field
from muhat.records.columns import Batch, Column, Decimals, FloatArray, Floats, Mask, column_of

LEAST_SCALE, MOST_SCALE = -231, 1000
"""Decimals of other scales are refused by their type: 2^255 · 10^232 is beyond all floats."""


def fields_of(schema: Any) -> list[Field]:
    """What an Arrow schema offers."""
    return [
        Field(
            str(field.name),
            str(field.type),
            _width(field.type),
            is_text(field.type),
            nullable=_nullable(field),
        )
        for field in schema
    ]


def batch_of(arrays: Iterable[Any], coders: Coders) -> Batch:
    """Arrow arrays of one length as a batch; those with a coder as codes."""
    arrays = list(arrays)
    if len(arrays) == 1 and coders[0] is None and (matrix := _matrix(arrays[0])) is not None:
        return Batch(len(matrix), matrix=matrix)
    columns: list[Column] = []
    for array, coder in zip(arrays, coders, strict=True):
        columns += columns_of(array) if coder is None else [coder.of_arrow(array)]
    return Batch(len(arrays[0]), columns)


def columns_of(array: Any) -> list[Column]:
    """One Arrow array of an accepted type as columns: one, or one a position of its lists."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        return columns_of(array.dictionary_decode())
    if pa.types.is_fixed_size_list(kind):
        return _list_columns(array)
    valid = _valid(array)
    if pa.types.is_decimal(kind):
        return [Decimals(_limbs(array), kind.scale, valid)]
    if pa.types.is_boolean(kind):
        bits = _bits(array.buffers()[1], array.offset, len(array))
        return [Floats(bits.astype(np.float64), valid)]
    return [column_of(_primitive(array, np.dtype(kind.to_pandas_dtype())), valid)]


def is_text(kind: Any) -> bool:
    """Whether a type holds text, bytes that may be text, or nothing at all."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if any(test(kind) for test in tests) or types.is_null(kind):
        return True
    # Older versions of pyarrow have no views.
    return str(kind) in ("string_view", "binary_view")


def _width(kind: Any) -> int:
    """How many coordinates a type makes up; 0 if it is not numeric."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        inner = kind.value_type
        return int(kind.list_size) if _is_number(inner) else 0
    if pa.types.is_dictionary(kind):
        return int(_is_number(kind.value_type))
    return int(_is_number(kind))


def _nullable(field: Any) -> bool:
    """Whether the schema allows missing values, in a list of numbers or in any of them."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(field.type) and field.type.value_field.nullable:
        return True
    return bool(field.nullable)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or (types.is_decimal(kind) and LEAST_SCALE <= kind.scale <= MOST_SCALE)
    )


def _list_columns(array: Any) -> list[Column]:
    """A fixed-size list as one strided column a position; a missing list misses them all."""
    size = array.type.list_size
    child = array.values.slice(array.offset * size, len(array) * size)
    (column,) = columns_of(child)
    present = _valid(array)
    columns: list[Column] = []
    for part in range(size):
        valid = None if column.valid is None else column.valid[part::size]
        if present is not None:
            valid = present if valid is None else valid & present
        columns.append(column.every(size, part, valid))
    return columns


def _matrix(array: Any) -> FloatArray | None:
    """A column of complete float64 vectors, of shape (rows, d), without a copy; else None."""
    import pyarrow as pa

    kind = array.type
    if not (pa.types.is_fixed_size_list(kind) and pa.types.is_float64(kind.value_type)):
        return None
    child = array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)
    if array.null_count or child.null_count:
        return None
    return _primitive(child, np.dtype(np.float64)).reshape(-1, kind.list_size)


def _valid(array: Any) -> Mask | None:
    if not array.null_count:
        return None
    return _bits(array.buffers()[0], array.offset, len(array))


def _bits(buffer: Any, offset: int, length: int) -> Mask:
    """`length` bits of a bitmap from `offset` on."""
    if not length:
        return np.zeros(0, bool)
    first = offset // 8
    packed = np.frombuffer(buffer, np.uint8)[first : (offset + length + 7) // 8]
    bits = np.unpackbits(packed, bitorder="little")[offset - 8 * first :][:length]
    return bits.view(np.bool_)


def _primitive(array: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    if not len(array):
        return np.zeros(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _limbs(array: Any) -> NDArray[np.uint64]:
    """Decimals of 32 to 256 bits as 64-bit limbs, lowest first, shape (n, limbs)."""
    width = array.type.bit_width
    if width == 32:
        return _primitive(array, np.dtype(np.int32)).astype(np.int64).view(np.uint64)[:, None]
    limbs = width // 64
    if not len(array):
        return np.zeros((0, limbs), np.uint64)
    start = array.offset * limbs * 8
    flat = np.frombuffer(array.buffers()[1], np.uint64, len(array) * limbs, start)
    return flat.reshape(-1, limbs)
