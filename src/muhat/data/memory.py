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
from muhat.data.selection import Field, require_dim, select
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


def open_array(array: NDArray[Any], columns: object, dim: int | None) -> Source:
    """A numpy array: 1-D is one column, 2-D has one record a row."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidInput("data must not be a masked array. Fill it: data.filled(numpy.nan).")
    require_numeric(array.dtype, "data")
    names: tuple[str, ...]
    if array.ndim == 1:
        if columns is not None and list(_positions(columns, 1)) != [0]:
            raise InvalidInput("columns must be left out for a 1-D array: it is one column.")
        require_dim(1, dim)
        names, read = ("x",), _reader(array[:, np.newaxis], [0])
    elif array.ndim == 2:
        chosen = _positions(columns, array.shape[1])
        require_dim(len(chosen), dim)
        names, read = tuple(map(str, chosen)), _reader(array, chosen)
    else:
        raise InvalidInput(f"data must have one or two dimensions; got {array.ndim}.")
    types = (str(array.dtype),) * len(names)
    return MemorySource(names, types, lambda: len(array), read)


def open_mapping(data: Mapping[Any, Any], columns: object, dim: int | None) -> Source:
    """A dict of columns: numpy arrays, or lists of numbers."""
    arrays = {}
    for name, values in data.items():
        array = _numbers(values) if isinstance(values, list | tuple) else values
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise InvalidInput(f"column {str(name)!r:.80} must be a 1-D numpy array or a list.")
        require_numeric(array.dtype, str(name))
        arrays[str(name)] = array
    if len({len(array) for array in arrays.values()}) > 1:
        raise InvalidInput("data must have columns of one length.")
    selection = select([Field(name, str(a.dtype), 1) for name, a in arrays.items()], columns, dim)
    chosen = [arrays[name] for name in selection.columns]

    def read(start: int, stop: int) -> Iterator[Batch]:
        yield Batch(stop - start, [column_of(array[start:stop]) for array in chosen])

    return MemorySource(selection.columns, selection.types, lambda: len(chosen[0]), read)


def open_list(data: Sequence[object], columns: object, dim: int | None) -> Source:
    """A list of numbers, or of records of numbers, read as float64 one by one.

    Whatever is not a real number, and a record of another length, is missing: no value in
    the list can change how another is read, or raise.
    """
    positions = None if columns is None else _positions(columns, None)
    width = dim or (1 if positions is None else len(positions))
    if positions is not None:
        require_dim(len(positions), dim)
    if width == 1 and positions is None:
        return open_array(_numbers(data), None, dim)
    matrix = np.full((len(data), width), np.nan)
    for row, record in enumerate(data):
        if not isinstance(record, list | tuple | np.ndarray):
            continue
        if positions is None and len(record) == width:
            matrix[row] = [_number(value) for value in record]
        elif positions is not None and len(record) > max(positions):
            matrix[row] = [_number(record[position]) for position in positions]
    return open_array(matrix, None, dim)


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


def _positions(columns: object, width: int | None) -> list[int]:
    """Columns of a 2-D array: whole numbers from 0 on, each once."""
    if columns is None:
        if not width:
            raise InvalidInput("data must have at least one column.")
        return list(range(width))
    given = [columns] if isinstance(columns, str | int) else columns
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) == 0:
        raise InvalidInput("columns must be a list of column numbers for an array.")
    if any(isinstance(column, str) for column in given):
        raise InvalidInput("columns must be numbers for an array, which has no names: 0, 1, …")
    chosen = [_check.count("columns", column, least=0) for column in given]
    if len(set(chosen)) != len(chosen):
        raise InvalidInput("columns must not repeat a number.")
    if width is not None and max(chosen) >= width:
        raise InvalidInput(f"columns must be below {width}, the number of columns of the array.")
    return chosen


def _numbers(values: Sequence[object]) -> NDArray[np.float64]:
    return np.array([_number(value) for value in values], np.float64)


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
