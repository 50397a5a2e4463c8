"""Sources that speak Arrow: tables, pandas, polars, and any object with `__arrow_c_stream__`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from muhat.data.arrow import batch_of, columns_of, fields_of
from muhat.data.base import Partition, PartitionedSource, Source
from muhat.data.kept import KeepingSource
from muhat.data.memory import MemorySource
from muhat.data.selection import Coders, Codes, Columns, Field, select
from muhat.errors import InvalidInput, SourceFailed
from muhat.records.columns import Batch, Column, column_of

BATCH_ROWS = 1 << 17


def open_table(
    table: Any,
    columns: Columns,
    dim: int | None,
    coders: Coders = (),
    length: Callable[[], int] | None = None,
) -> Source:
    """An Arrow table: its chunks are read where they lie. `length` asks the owner of the data."""
    selection = select(fields_of(table.schema), columns, dim, coders=coders)
    chosen = table.select(list(selection.positions))

    def read(start: int, stop: int) -> Iterator[Batch]:
        for part in chosen.slice(start, stop - start).to_batches(max_chunksize=BATCH_ROWS):
            yield batch_of(part.columns, selection.coders)

    return MemorySource(
        selection.columns,
        selection.types,
        length or (lambda: int(chosen.num_rows)),
        read,
        complete=selection.complete,
    )


def is_arrow(data: object) -> bool:
    """Whether it is Arrow data that lie in memory."""
    import pyarrow as pa

    return isinstance(data, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray)


def open_arrow(data: Any, columns: Columns, dim: int | None, coders: Coders = ()) -> Source:
    """An Arrow table, record batch, array or chunked array."""
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    elif isinstance(data, pa.Array | pa.ChunkedArray):
        data = pa.table({"x": data})
    return open_table(data, columns, dim, coders)


def open_pandas(data: Any, columns: Columns, dim: int | None, coders: Coders = ()) -> Source:
    """A pandas DataFrame or Series, each column by its own type, nothing converted up front."""
    frame = data
    if not hasattr(data, "columns"):
        frame = data.to_frame("x" if data.name is None else str(data.name))
    series = [frame.iloc[:, position] for position in range(frame.shape[1])]
    fields = [
        _pandas_field(str(name), one) for name, one in zip(frame.columns, series, strict=True)
    ]
    selection = select(fields, columns, dim, coders=coders)
    readers = [
        _pandas_reader(series[position])
        if coder is None
        else _pandas_coder(series[position], coder)
        for position, coder in zip(selection.positions, selection.coders, strict=True)
    ]

    def read(start: int, stop: int) -> Iterator[Batch]:
        parts = [column for reader in readers for column in reader(start, stop)]
        yield Batch(stop - start, parts)

    return MemorySource(selection.columns, selection.types, lambda: len(data), read)


def open_polars(data: Any, columns: Columns, dim: int | None, coders: Coders = ()) -> Source:
    """A polars frame, lazy or not, or Series; numeric columns are shared with Arrow, not copied."""
    if hasattr(data, "collect"):
        return LazySource(data, columns, dim, coders)
    frame = data if hasattr(data, "columns") else data.to_frame()
    fields = [_polars_field(series) for series in frame.head(0)]
    selection = select(fields, columns, dim, coders=coders)
    # Types that Arrow does not know must not be in the way of others.
    chosen = frame[:, list(selection.positions)]
    names = tuple(chosen.columns) or None
    return open_table(chosen.to_arrow(), names, dim, coders, lambda: len(data))


def open_stream(data: Any, columns: Columns, dim: int | None, coders: Coders = ()) -> Source:
    """Any object with `__arrow_c_stream__` that hands out a new stream every time."""
    return StreamSource(data, columns, dim, coders)


class StreamSource(KeepingSource):
    """Records behind the Arrow stream protocol, asked for again on every pass."""

    is_slow = False

    def __init__(self, data: Any, columns: Columns, dim: int | None, coders: Coders) -> None:
        self._data = data
        selection = select(fields_of(self._schema()), columns, dim, coders=coders)
        self.columns, self.types = selection.columns, selection.types
        self.complete = selection.complete
        self._positions, self._coders = selection.positions, selection.coders
        self._rows: int | None = None

    @property
    def known_rows(self) -> int | None:
        """The number of records once it has been counted."""
        return self._rows

    def rows(self) -> int:
        """By a pass over the stream, once."""
        if self._rows is None:
            try:
                self._rows = sum(batch.num_rows for batch in self._reader())
            except Exception:
                self._rows = None
        if self._rows is None:
            raise InvalidInput("data could not be read to the end.")
        return self._rows

    def pieces(self) -> Sequence[Partition]:
        """One: a stream has no parts that could be read by themselves."""

        def batches() -> Iterator[Batch]:
            for arrays in self._chosen():
                yield batch_of(arrays, self._coders)

        return [Partition(0, batches)]

    def check_unchanged(self) -> None:
        """Nothing to compare but the rows, which the engine does after each pass."""

    def _schema(self) -> Any:
        schema = self._reader().schema
        # A one-shot reader would fail or come back empty the second time: ask twice now.
        if not self._reader().schema.equals(schema):
            raise InvalidInput(
                "must offer the same columns every time it is read", parameter="data"
            )
        return schema

    def _chosen(self) -> Iterator[list[Any]]:
        """The arrays of the columns that are read, batch by batch."""
        for part in self._reader():
            yield [part.column(position) for position in self._positions]

    def _reader(self) -> Any:
        import pyarrow as pa

        reader = None
        try:
            reader = pa.RecordBatchReader.from_stream(self._data)
        except Exception:
            reader = None
        if reader is None:
            raise InvalidInput(
                "must be readable more than once: this object did not offer an Arrow stream again",
                parameter="data",
                hint="Read it into a table or a file first.",
            )
        return reader


class LazySource(PartitionedSource):
    """A polars LazyFrame: the columns that are asked for are collected together, and once.

    Until the first pass only its schema is looked at, and its length if that is asked for: what
    polars would complain about depends on values, so it runs where no complaint comes through.
    """

    def __init__(self, frame: Any, columns: Columns, dim: int | None, coders: Coders) -> None:
        import polars

        try:
            empty = polars.DataFrame(schema=frame.collect_schema())
        except Exception:
            empty = None
        if empty is None:
            raise InvalidInput(
                "must have columns that polars can tell",
                parameter="data",
                hint="Look at data.collect_schema(); files that it scans must exist.",
            )
        selection = select([_polars_field(each) for each in empty], columns, dim, coders=coders)
        self.columns, self.types = selection.columns, selection.types
        self._coders = selection.coders
        self._frame = frame
        self._positions = selection.positions
        self._rows: int | None = None
        self._table: Any = None

    @property
    def known_rows(self) -> int | None:
        """The number of records once it has been counted."""
        return self._rows

    def rows(self) -> int:
        """Counted by polars, which need not look at any column for it."""
        if self._rows is None:
            with contextlib.suppress(Exception):  # raised outside, where nothing of it hangs on
                self._rows = self._counted()
        if self._rows is None:
            raise InvalidInput("data could not be read to the end.")
        return self._rows

    def partitions(self) -> Sequence[Partition]:
        """One: what a lazy frame holds is known when it is collected."""

        def batches() -> Iterator[Batch]:
            if not self._positions:
                yield Batch(self._counted(), [])
                return
            if self._table is None:
                self._table = self._collected(list(self._positions)).to_arrow()
            for part in self._table.to_batches(max_chunksize=BATCH_ROWS):
                yield batch_of(part.columns, self._coders)

        return [Partition(0, batches)]

    def _counted(self) -> int:
        return int(self._collected(None).item())

    def _collected(self, places: list[int] | None) -> Any:
        """The columns at these places, which no name can be mistaken for; None: how many rows."""
        import polars

        try:
            return self._frame.select(
                polars.len() if places is None else polars.nth(places)
            ).collect()
        except polars.exceptions.PanicException:
            # No Exception to Python, so that it would get past everything that keeps quiet.
            failed = SourceFailed("the data could not be read to the end. The charge stays.")
        raise failed

    def check_unchanged(self) -> None:
        """Nothing to compare but the rows, which the engine does after each pass."""


def _pandas_field(name: str, series: Any) -> Field:
    """What a column is, from its dtype and an empty slice: no value is looked at."""
    if isinstance(series.dtype, np.dtype):
        numeric = series.dtype.kind in "fiub" and series.dtype.itemsize <= 8
        return Field(name, str(series.dtype), int(numeric), series.dtype.kind == "O")
    import pyarrow as pa

    try:
        empty = pa.array(series.iloc[:0])
    except (pa.ArrowException, TypeError):
        return Field(name, str(series.dtype), 0)
    (field,) = fields_of(pa.schema([pa.field(name, empty.type)]))
    return field


def _polars_field(series: Any) -> Field:
    import pyarrow as pa

    try:
        kind = series.to_arrow().type
    except pa.ArrowException:
        return Field(series.name, str(series.dtype), 0)
    (field,) = fields_of(pa.schema([pa.field(series.name, kind)]))
    return field


def _pandas_reader(series: Any) -> Callable[[int, int], list[Column]]:
    if isinstance(series.dtype, np.dtype):
        values = series.to_numpy()
        return lambda start, stop: [column_of(values[start:stop])]

    def read(start: int, stop: int) -> list[Column]:
        import pyarrow as pa

        array = pa.array(series.iloc[start:stop], from_pandas=True)
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        return columns_of(chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks))

    return read


def _pandas_coder(series: Any, coder: Codes) -> Callable[[int, int], list[Column]]:
    if isinstance(series.dtype, np.dtype):
        values = series.to_numpy()
        return lambda start, stop: [coder.of_array(values[start:stop])]

    def read(start: int, stop: int) -> list[Column]:
        import pyarrow as pa

        part = series.iloc[start:stop]
        try:
            array = pa.array(part, from_pandas=True)
        except (pa.ArrowException, UnicodeError, TypeError):
            # Text that cannot be written as UTF-8 is no label, but not a reason to fail either.
            return [coder.of_objects(part.tolist())]
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        return [coder.of_arrow(chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks))]

    return read
