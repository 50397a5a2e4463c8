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
from muhat.data.base import Partition, Source
from muhat.data.columns import Batch, column_of, require_numeric
from muhat.data.selection import Columns, Field, require_dim, select
from muhat.errors import DataChanged, InvalidInput

PARTITION_VALUES = 1 << 20

Reader = Callable[[int, int], Iterator[Batch]]


class MemorySource(Source):
    """Records with a length and a way to read any slice of them."""

    def __init__(
        self,
        columns: tuple[str, ...],
        types: tuple[str, ...],
        length: Callable[[], int],
        read: Reader,
    ) -> None:
        self.columns = columns
        self.types = types
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


def open_array(data: NDArray[Any], columns: Columns, dim: int | None) -> Source:
    """A numpy array: 1-D is one column, 2-D has one record a row."""
    array = _plain(data, "data")
    names: tuple[str, ...]
    if array.ndim == 1:
        _positions(columns, 1)
        require_dim(1, dim)
        names, read = ("x",), _reader(array[:, np.newaxis], [0])
    elif array.ndim == 2:
        chosen = _positions(columns, array.shape[1])
        require_dim(len(chosen), dim)
        names, read = tuple(map(str, chosen)), _reader(array, chosen)
    else:
        raise InvalidInput(f"data must have one or two dimensions; got {array.ndim}.")
    types = (str(array.dtype),) * len(names)
    return MemorySource(names, types, lambda: len(data), read)


def open_mapping(data: Mapping[Any, Any], columns: Columns, dim: int | None) -> Source:
    """A dict of columns: numpy arrays, or lists of numbers."""
    if not data:
        raise InvalidInput("data must have at least one column.")
    fields, arrays = [], []
    for name, values in data.items():
        array = _records(values, None, 1)[:, 0] if isinstance(values, list | tuple) else values
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise InvalidInput(f"column {str(name)!r:.80} must be a 1-D numpy array or a list.")
        arrays.append(_plain(array, f"column {str(name)!r:.80}"))
        fields.append(Field(str(name), str(array.dtype), 1))
    if len({len(array) for array in arrays}) > 1:
        raise InvalidInput("data must have columns of one length.")
    selection = select(fields, columns, dim)
    chosen = [arrays[position] for position in selection.positions]

    def read(start: int, stop: int) -> Iterator[Batch]:
        yield Batch(stop - start, [column_of(array[start:stop]) for array in chosen])

    return MemorySource(selection.columns, selection.types, lambda: len(chosen[0]), read)


def open_list(data: Sequence[object], columns: Columns, dim: int | None) -> Source:
    """A list of records of numbers, read as float64 one by one; a number is a record by itself.

    Whatever is not a real number, and a record of another length, is missing: no value in
    the list can change how another is read, or raise.
    """
    if columns is None:
        matrix = _records(data, None, dim or 1)
        return open_array(matrix[:, 0] if dim in (None, 1) else matrix, None, dim)
    positions = _positions(columns, None)
    require_dim(len(positions), dim)
    matrix = _records(data, positions, len(positions))
    types = ("float64",) * len(positions)
    read = _reader(matrix, range(len(positions)))
    return MemorySource(tuple(map(str, positions)), types, lambda: len(matrix), read)


def _plain(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array without what a subclass adds to it, or InvalidInput for its type."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidInput(f"{name} must not be a masked array. Fill it: .filled(numpy.nan).")
    require_numeric(array.dtype, name)
    return np.asarray(array)


def _reader(array: NDArray[Any], chosen: Sequence[int]) -> Reader:
    """Row-major floats go to the kernel as they are; everything else as columns."""
    everything = list(chosen) == list(range(array.shape[1]))

    def read(start: int, stop: int) -> Iterator[Batch]:
        part = array[start:stop]
        if len(chosen) > 1 and part.flags.c_contiguous and part.dtype.kind == "f":
            part = part if everything else np.take(part, chosen, axis=1)
            yield Batch(stop - start, matrix=part.astype(np.float64, copy=False))
        else:
            yield Batch(stop - start, [column_of(part[:, position]) for position in chosen])

    return read


def _positions(columns: Columns, width: int | None) -> list[int]:
    """Columns of an array: whole numbers from 0 on."""
    if columns is None:
        if not width:
            raise InvalidInput("data must have at least one column.")
        return list(range(width))
    if any(isinstance(column, str) for column in columns):
        raise InvalidInput("columns must be numbers for an array, which has no names: 0, 1, …")
    chosen = [_check.count("columns", column, least=0) for column in columns]
    if width is not None and max(chosen) >= width:
        raise InvalidInput(f"columns must be below {width}, the number of columns of the array.")
    return chosen


def _records(
    data: Sequence[object], positions: Sequence[int] | None, width: int
) -> NDArray[np.float64]:
    """The chosen numbers of every record, all of them for None, shape (records, width)."""
    rows = [_record(record, positions, width) for record in data]
    return np.array(rows, np.float64).reshape(len(data), width)


def _record(record: object, positions: Sequence[int] | None, width: int) -> list[float]:
    values: Any = (record,)
    if isinstance(record, list | tuple) or (isinstance(record, np.ndarray) and record.ndim == 1):
        values = record
    if positions is None and len(values) == width:
        return [_number(value) for value in values]
    if positions is not None and len(values) > max(positions):
        return [_number(values[position]) for position in positions]
    return [math.nan] * width


def _number(value: object) -> float:
    """A real number as the nearest float, the largest if beyond; anything else is missing."""
    if not isinstance(value, Real | Decimal | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.copysign(sys.float_info.max, 1 if value > 0 else -1)  # type: ignore[operator]
    except ValueError:
        return math.nan
