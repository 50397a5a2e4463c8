"""Sources that are already in memory as numpy arrays, lists or dicts of columns."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._words import Parameter
from muhat.data.base import Partition, PartitionedSource, Source
from muhat.data.selection import (
    Coders,
    Codes,
    Columns,
    Field,
    coders_for,
    identities,
    require_dim,
    select,
)
from muhat.errors import DataChanged, InvalidInput
from muhat.records.columns import Batch, Column, column_of, require_numeric

PARTITION_VALUES = 1 << 20

Reader = Callable[[int, int], Iterator[Batch]]


class MemorySource(PartitionedSource):
    """Records with a length and a way to read any slice of them."""

    def __init__(
        self,
        columns: tuple[str, ...],
        types: tuple[str, ...],
        length: Callable[[], int],
        read: Reader,
        *,
        complete: bool = False,
    ) -> None:
        self.columns = columns
        self.types = types
        self.complete = complete
        self._length = length
        self._opened_with = length()
        self._read = read

    @property
    def known_rows(self) -> int | None:
        """The length it was opened with."""
        return self._opened_with

    @property
    def bytes_a_thread(self) -> int:
        """Sums run at the speed of memory, which a second thread does not add to."""
        return 1 << 28

    def rows(self) -> int:
        """The length."""
        return self._opened_with

    def partitions(self) -> Sequence[Partition]:
        """Slices of about a million values."""
        step = max(PARTITION_VALUES // max(self.dim, 1), 1)
        return [
            self._partition(start, min(start + step, self._opened_with))
            for start in range(0, self._opened_with, step)
        ]

    def check_unchanged(self) -> None:
        """The length is all that an object in memory can be asked for."""
        if self._length() != self._opened_with:
            raise DataChanged(
                "the data in memory have changed their length since they were opened."
            )

    def _partition(self, start: int, stop: int) -> Partition:
        return Partition((stop - start) * self.dim * 8, lambda: self._read(start, stop))


def open_array(
    data: NDArray[Any], columns: Columns, dim: int | None, coders: Coders = ()
) -> Source:
    """A numpy array: 1-D is one column, 2-D has one record a row."""
    array = _unmasked(data, "data")
    for coder in coders_for([0], coders):
        if coder is None:
            require_numeric(array.dtype, "data")
        else:
            coder.require(_field(array.dtype, "data"))
    names: tuple[str, ...]
    if array.ndim == 1:
        _positions(columns, 1)
        require_dim(1, dim)
        names, read = ("x",), _reader(array[:, np.newaxis], [0], coders)
    elif array.ndim == 2:
        chosen = _positions(columns, array.shape[1])
        require_dim(len(chosen) - identities(coders), dim)
        names, read = tuple(map(str, chosen)), _reader(array, chosen, coders)
    else:
        raise InvalidInput(
            "must have one or two dimensions", parameter="data", value=str(array.ndim)
        )
    types = (str(array.dtype),) * len(names)
    return MemorySource(names, types, lambda: len(data), read)


def open_mapping(
    data: Mapping[Any, Any], columns: Columns, dim: int | None, coders: Coders = ()
) -> Source:
    """A dict of columns: numpy arrays, or lists of numbers (with a coder: of anything)."""
    if not data:
        raise InvalidInput("must have at least one column", parameter="data")
    fields = []
    for name, values in data.items():
        where = f"column {str(name)!r:.80}"
        if isinstance(values, list | tuple):
            fields.append(Field(str(name), "list", 1, is_text=True))
        elif isinstance(values, np.ndarray) and values.ndim == 1:
            fields.append(_field(_unmasked(values, where).dtype, str(name)))
        else:
            raise InvalidInput(f"{where} must be a 1-D numpy array or a list.")
    columns_given = list(data.values())
    if len({len(values) for values in columns_given}) > 1:
        raise InvalidInput("must have columns of one length", parameter="data")
    selection = select(fields, columns, dim, coders=coders)
    chosen = [columns_given[position] for position in selection.positions]
    readers = [
        _column_reader(values, coder)
        for values, coder in zip(chosen, selection.coders, strict=True)
    ]

    def read(start: int, stop: int) -> Iterator[Batch]:
        yield Batch(stop - start, [reader(start, stop) for reader in readers])

    return MemorySource(selection.columns, selection.types, lambda: len(columns_given[0]), read)


def open_list(
    data: Sequence[object], columns: Columns, dim: int | None, coders: Coders = ()
) -> Source:
    """A list of records of numbers, read as float64 one by one; a number is a record by itself.

    Whatever is not a real number, and a record of another length, is missing: no value in
    the list can change how another is read, or raise. With a coder a value may be anything.
    """
    if columns is None:
        matrix = _records(data, None, dim or 1)
        return open_array(matrix[:, 0] if dim in (None, 1) else matrix, None, dim)
    positions = _positions(columns, None)
    require_dim(len(positions) - identities(coders), dim)
    if any(coders):
        names = tuple(map(str, positions))
        return open_mapping(_object_columns(data, positions), names, dim, coders)
    matrix = _records(data, positions, len(positions))
    types = ("float64",) * len(positions)
    read = _reader(matrix, range(len(positions)), ())
    return MemorySource(tuple(map(str, positions)), types, lambda: len(matrix), read)


def _unmasked(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array without what a subclass adds to it."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidInput(
            "must not be a masked array", parameter=name, hint="Fill it: .filled(numpy.nan)."
        )
    return np.asarray(array)


def _field(dtype: np.dtype[Any], name: str) -> Field:
    numeric = dtype.kind in "fiub" and dtype.itemsize <= 8
    return Field(name, str(dtype), int(numeric), is_text=dtype.kind in "USTO")


def _column_reader(values: Any, coder: Codes | None) -> Callable[[int, int], Column]:
    """How to read a slice of one column, an array or a list."""
    if coder is None:
        array = _records(values, None, 1)[:, 0] if isinstance(values, list | tuple) else values
        return lambda start, stop: column_of(np.asarray(array[start:stop]))
    if isinstance(values, list | tuple):
        return lambda start, stop: coder.of_objects(values[start:stop])
    return lambda start, stop: coder.of_array(np.asarray(values[start:stop]))


def _object_columns(data: Sequence[object], positions: Sequence[int]) -> dict[str, list[Any]]:
    """The chosen values of every record as they are; a record that is too short has none."""
    records = [_values(record) for record in data]
    least = max(positions)
    return {
        str(position): [record[position] if len(record) > least else None for record in records]
        for position in positions
    }


def _reader(array: NDArray[Any], chosen: Sequence[int], coders: Coders) -> Reader:
    """Row-major floats go to the kernel as they are; everything else as columns."""
    everything = list(chosen) == list(range(array.shape[1]))
    coders = coders_for(chosen, coders)

    def column(values: NDArray[Any], coder: Codes | None) -> Column:
        return column_of(values) if coder is None else coder.of_array(values)

    def read(start: int, stop: int) -> Iterator[Batch]:
        part = array[start:stop]
        plain = len(chosen) > 1 and not any(coders)
        if plain and part.flags.c_contiguous and part.dtype.kind == "f":
            part = part if everything else np.take(part, chosen, axis=1)
            yield Batch(stop - start, matrix=part.astype(np.float64, copy=False))
        else:
            pairs = zip(chosen, coders, strict=True)
            columns = [column(part[:, position], coder) for position, coder in pairs]
            yield Batch(stop - start, columns)

    return read


def _positions(columns: Columns, width: int | None) -> list[int]:
    """Columns of an array: whole numbers from 0 on."""
    if columns is None:
        if not width:
            raise InvalidInput("must have at least one column", parameter="data")
        return list(range(width))
    if any(isinstance(column, str) for column in columns):
        rule = " must be numbers for an array, which has no names: 0, 1, …"
        raise InvalidInput(Parameter("columns"), rule)
    chosen = [_check.count("columns", column, least=0) for column in columns]
    if width is not None and max(chosen) >= width:
        raise InvalidInput(
            f"must be below {width}, the number of columns of the array", parameter="columns"
        )
    return chosen


def _records(
    data: Sequence[object], positions: Sequence[int] | None, width: int
) -> NDArray[np.float64]:
    """The chosen numbers of every record, all of them for None, shape (records, width)."""
    rows = [_record(record, positions, width) for record in data]
    return np.array(rows, np.float64).reshape(len(data), width)


def _values(record: object) -> Any:
    """What a record is made of; a value that is no list is a record by itself."""
    if isinstance(record, list | tuple) or (isinstance(record, np.ndarray) and record.ndim == 1):
        return record
    return (record,)


def _record(record: object, positions: Sequence[int] | None, width: int) -> list[float]:
    values = _values(record)
    if positions is None and len(values) == width:
        return [real_number(value) for value in values]
    if positions is not None and len(values) > max(positions):
        return [real_number(values[position]) for position in positions]
    return [math.nan] * width


def real_number(value: object) -> float:
    """A real number as the nearest float, the largest if beyond; anything else is missing."""
    if not isinstance(value, Real | Decimal | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.copysign(sys.float_info.max, 1 if value > 0 else -1)  # type: ignore[operator]
    except Exception:  # a signalling not-a-number, or what a subclass does; it may quote the value
        return math.nan
