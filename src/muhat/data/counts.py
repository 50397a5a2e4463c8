"""Histograms that are given as counts: dense, sparse, or a dict from cells to counts.

Type, dtype and shape are looked at first; what is refused is refused by them. Values are read
when they are asked for, and none can raise: a count below 0 is read as 0, and one that is larger
than `largest` (no total can overflow then) as that. Both move by at most one if a record is added.
"""

from __future__ import annotations

import contextlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.cell_kernel import Axes, Table, checked_sets, marginal
from muhat.data.shared import Reading
from muhat.errors import InvalidInput, SourceFailed
from muhat.workloads.cells import sizes, writable
from muhat.workloads.marginals import LARGEST_CELLS

_MOST_ENTRIES = 1 << 32
"""More counts than fit in memory; their sum has 64 bits."""

_HALF = 31
_LOW = (1 << _HALF) - 1
"""The bits of the lower half of a count."""

_ACCEPTED = (
    "an integer numpy array, a list of counts, a scipy sparse array, or a dict from cells to counts"
)


class Histogram(ABC):
    """Exact counts over cells of shape `cells`. It is data: it never shows itself."""

    def __init__(self, cells: tuple[int, ...]) -> None:
        self.cells = cells

    @property
    def rules(self) -> tuple[str, ...]:
        """None: whoever made the counts has dealt with missing values."""
        return ()

    def __repr__(self) -> str:
        return f"Histogram(cells={self.cells})"

    @property
    def largest(self) -> int:
        """The largest count of a cell; larger ones are read as this."""
        return ((1 << 63) - 1) // min(math.prod(self.cells), _MOST_ENTRIES)

    @abstractmethod
    def total(self) -> int:
        """The number of records."""

    @abstractmethod
    def margins(self, sets: Iterable[Axes]) -> dict[Axes, Table]:
        """For each set of axes the table of counts, its axes in the order given."""

    def reading(self, sets: Iterable[Axes]) -> Reading[dict[Axes, Table]]:
        """The same, without a pass."""
        return self.margins(sets)
        yield


class DenseHistogram(Histogram):
    """Counts of all cells."""

    def __init__(self, counts: NDArray[Any], cells: tuple[int, ...]) -> None:
        super().__init__(cells)
        self._counts = counts

    def total(self) -> int:
        return int(self._clipped().sum())

    def margins(self, sets: Iterable[Axes]) -> dict[Axes, Table]:
        """Sums over the other axes."""
        wanted = checked_sets(self.cells, sets)
        counts = self._clipped()
        # Axes of one cell are left out: numpy has room for 32 or 64 only.
        axes = tuple(axis for axis, size in enumerate(self.cells) if size > 1)
        tables = {}
        for each in wanted:
            shape = [self.cells[axis] for axis in axes]
            kept = tuple(axis for axis in each if axis in axes)
            table = marginal(counts, shape, axes, kept)
            tables[each] = table.reshape([self.cells[axis] for axis in each])
        return tables

    def _clipped(self) -> Table:
        most = min(self.largest, int(np.iinfo(self._counts.dtype).max))
        clipped: Table = np.clip(self._counts, 0, most).astype(np.int64).ravel()
        return clipped


class SparseHistogram(Histogram):
    """Counts of some cells; nothing has the size of all of them."""

    def __init__(
        self, cells: tuple[int, ...], entries: Mapping[Any, Any] | Any, other: object
    ) -> None:
        super().__init__(cells)
        self._entries = entries
        self._other = None if other is None else _cell("other", other, cells)

    def total(self) -> int:
        return int(self._read()[1].sum())

    def margins(self, sets: Iterable[Axes]) -> dict[Axes, Table]:
        """Sums of the counts that are given."""
        wanted = checked_sets(self.cells, sets)
        read = None
        with contextlib.suppress(Exception):  # raised outside, where nothing of it hangs on
            read = self._read()
        if read is None:
            raise SourceFailed("the histogram could not be read to the end. The charge stays.")
        codes, counts = read
        tables = {}
        for each in wanted:
            shape = [self.cells[axis] for axis in each]
            index = np.zeros(len(counts), np.int64)
            for axis, size in zip(each, shape, strict=True):
                index = index * size + codes[:, axis]
            table = np.zeros(math.prod(shape), np.int64)
            np.add.at(table, index, counts)
            tables[each] = table.reshape(shape)
        return tables

    def _read(self) -> tuple[NDArray[np.int64], Table]:
        """The codes of the cells given, of shape (entries, axes), and their counts."""
        if _is_sparse(self._entries):
            return self._read_sparse(self._entries)
        return self._read_dict(self._entries)

    def _read_dict(self, entries: Mapping[Any, Any]) -> tuple[NDArray[np.int64], Table]:
        # Keys that name one cell in two ways are added up before they are clipped.
        added: dict[tuple[int, ...], int] = {}
        for key, value in entries.items():
            cell = _codes(key, self.cells) or self._other
            if cell is not None:
                added[cell] = added.get(cell, 0) + _whole(value)
        codes = np.array(list(added), np.int64).reshape(-1, len(self.cells))
        counts = [min(max(count, 0), self.largest) for count in added.values()]
        return codes, np.array(counts, np.int64)

    def _read_sparse(self, entries: Any) -> tuple[NDArray[np.int64], Table]:
        entries = entries.tocoo(copy=True)
        wide = np.uint64 if entries.dtype.kind == "u" else np.int64
        # Entries of one cell are added up in two halves: 64 bits hold them whatever they are.
        high, low = entries.copy(), entries
        high.data = (entries.data.astype(wide) >> _HALF).astype(np.int64)
        low.data = (entries.data.astype(wide) & _LOW).astype(np.int64)
        for half in (high, low):
            half.has_canonical_format = False
            half.sum_duplicates()
        carried = high.data + (low.data >> _HALF)
        top = self.largest >> _HALF
        counts = (np.clip(carried, -1, top) << _HALF) + (low.data & _LOW)
        counts = np.where(carried > top, self.largest, np.clip(counts, 0, self.largest))
        coordinates = _coordinates(low)
        if entries.shape != self.cells:
            # One row or one column: only one of the coordinates is not 0.
            rest = np.sum(coordinates, axis=0, dtype=np.int64)
            coordinates = []
            for size in reversed(self.cells):
                coordinates.insert(0, rest % size)
                rest = rest // size
        codes = np.stack([np.asarray(each, np.int64) for each in coordinates], axis=1)
        return codes, counts


def histogram_counts(value: Any, cells: Sequence[int], *, other: object = None) -> Histogram:
    """Counts over the cells of shape `cells`, as a user gives them, or InvalidInput.

    `value` is an integer numpy array of shape `cells` or (N,), in C order, or lists of that shape;
    a scipy sparse array of integers of shape (N,), (1, N), (N, 1), or `cells`; or a dict from cells
    (whole numbers 0 … N − 1, or tuples of codes) to counts. Other types and shapes are refused;
    values are not looked at here.

    In a dict or a list, a count that is a float is rounded down, and one that is no number is 0.
    Counts of keys that are no cell go to the cell `other`, or nowhere.

    >>> histogram_counts({0: 3, (1, 2): 5, "x": 7}, (2, 3)).margins([(0,), ()])
    {(0,): array([3, 5]), (): array(8)}
    """
    shape = sizes("cells", cells, most=LARGEST_CELLS)
    # Some sparse arrays are dicts too, so they come first.
    if _is_sparse(value):
        _require_whole(value.dtype)
        number = math.prod(shape)
        if value.shape not in (shape, (number,), (1, number), (number, 1)):
            raise InvalidInput(_wrong_shape(value.shape, shape))
        return SparseHistogram(shape, value, other)
    if isinstance(value, Mapping):
        return SparseHistogram(shape, value, other)
    if isinstance(value, list | tuple):
        listed = _listed(value, shape) or _listed(value, (math.prod(shape),))
        if listed and all(isinstance(each, str | bytes | os.PathLike) for each in listed):
            # Paths, most likely: nobody counts in words.
            raise InvalidInput(f"a histogram must be {_ACCEPTED}; got a list of texts.")
        if listed is None:
            raise InvalidInput(_wrong_shape("lists of another", shape))
        return SparseHistogram(shape, dict(enumerate(listed)), other)
    if not isinstance(value, np.ndarray):
        raise InvalidInput(f"a histogram must be {_ACCEPTED}; got {type(value).__name__}.")
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInput("a histogram must not be a masked array. Fill it: .filled(0).")
    _require_whole(value.dtype)
    if value.shape not in (shape, (math.prod(shape),)):
        raise InvalidInput(_wrong_shape(value.shape, shape))
    writable("the histogram", value.size)
    return DenseHistogram(np.asarray(value), shape)


def _is_sparse(value: object) -> bool:
    """Whether it is scipy's, told by its module: scipy need not be loaded to know."""
    kinds = type(value).__mro__
    return hasattr(value, "tocoo") and any(
        kind.__module__.startswith("scipy.sparse") for kind in kinds
    )


def _listed(value: object, shape: tuple[int, ...]) -> list[Any] | None:
    """The counts of nested lists, None if they have another shape."""
    if not isinstance(value, list | tuple):
        return None if shape else [value]
    if not shape or len(value) != shape[0]:
        return None
    counts: list[Any] = []
    for each in value:
        part = _listed(each, shape[1:])
        if part is None:
            return None
        counts += part
    return counts


def _require_whole(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "iu":
        raise InvalidInput(
            f"a histogram must be of whole numbers; got {dtype}. Convert it: .astype(numpy.int64)."
        )


def _wrong_shape(given: object, cells: tuple[int, ...]) -> str:
    return (
        f"a histogram must have one count a cell: shape {cells} or ({math.prod(cells)},); "
        f"got {given}."
    )


def _coordinates(entries: Any) -> list[Any]:
    """Where the entries of a sparse array stand, one array a dimension."""
    return list(entries.coords) if hasattr(entries, "coords") else [entries.row, entries.col]


def _cell(name: str, given: object, cells: tuple[int, ...]) -> tuple[int, ...]:
    codes = _codes(given, cells)
    if codes is None:
        raise InvalidInput(f"{name} must be a cell of shape {cells}: a number or a tuple of codes.")
    return codes


def _codes(key: object, cells: tuple[int, ...]) -> tuple[int, ...] | None:
    """The codes of a cell given as a tuple of codes or as its number, None if it is no cell."""
    if isinstance(key, tuple):
        given = [_code(part) for part in key]
        inside = len(given) == len(cells) and all(
            0 <= code < size for code, size in zip(given, cells, strict=True)
        )
        return tuple(given) if inside else None
    rest, codes = _code(key), []
    if not 0 <= rest < math.prod(cells):
        return None
    for size in reversed(cells):
        rest, code = divmod(rest, size)
        codes.append(code)
    return tuple(reversed(codes))


def _code(value: object) -> int:
    """The whole number that a key equals, else −1: to a dict 1, 1.0 and True are one."""
    if isinstance(value, int | np.integer | np.bool_):
        return int(value)
    if isinstance(value, float | np.floating) and value.is_integer():
        return int(value)
    return -1


def _whole(value: object) -> int:
    """A count as a whole number, rounded down; 0 if it is none."""
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return math.floor(value)
    return 0
