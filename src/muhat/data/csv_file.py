"""CSV files: a header, then one record a line; every cell is a number, text or missing.

Cells are read as declared, never inferred. A column whose categories are text or booleans is
read as text: quotes around a cell are removed, nothing is stripped, and an empty cell is the
empty text. All others are read as float64: a number is an optional sign, digits with an optional
point, an optional exponent, and spaces or tabs around it; quotes around all of it are allowed.
Anything else is missing (so are nan and inf, which are not finite). A line with too few or too
many fields, with stray quotes, or empty, is a record of which everything is missing. Line
breaks inside quotes are not supported: they make two such records.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from muhat.data.arrow import columns_of
from muhat.data.base import Partition
from muhat.data.columns import Batch, Column
from muhat.data.csv_lines import (
    LONGEST_LINE,
    Lines,
    blank_malformed,
    lines_between,
    open_bytes,
    seek_line,
)
from muhat.data.files import File
from muhat.data.selection import Coders, Field, coders_for
from muhat.data.text_numbers import NUMBER, numbers_in
from muhat.errors import InvalidInput

_PARTITION_BYTES = 1 << 24
_ASCII = bytes(range(128)) + b"?" * 128
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CsvFile(File):
    """One CSV file, plain or gzipped."""

    bytes_a_thread = 1 << 24

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with open_bytes(path) as file:
            header = file.readline(LONGEST_LINE)
        self._start = len(header)
        names = _header(header)
        self.fields = [Field(name, "text", 1, is_text=True) for name in names]
        self.names_are_public = not any(re.fullmatch(NUMBER, name) for name in names)

    def count_rows(self) -> int:
        """The lines after the header."""
        return sum(lines.count + lines.overlong for lines in self._lines(self._start, None))

    def partitions(self, positions: Sequence[int], coders: Coders) -> list[Partition]:
        """Ranges of bytes; a compressed file is one."""
        stops: list[int | None] = [None]
        if not self.path.name.lower().endswith(".gz"):
            stops = [*range(self._start + _PARTITION_BYTES, self.size, _PARTITION_BYTES), None]
        starts = [self._start, *(stop for stop in stops if stop is not None)]
        return [
            self._partition(start, stop, Parser(len(self.fields), positions, coders))
            for start, stop in zip(starts, stops, strict=True)
        ]

    def _partition(self, start: int, stop: int | None, parser: Parser) -> Partition:
        def batches() -> Iterator[Batch]:
            for lines in self._lines(start, stop):
                yield parser.batch(lines)

        return Partition((self.size if stop is None else stop) - start, batches)

    def _lines(self, start: int, stop: int | None) -> Iterator[Lines]:
        with open_bytes(self.path) as file:
            if start == self._start:
                file.seek(start)
            else:
                start = seek_line(file, start)
            yield from lines_between(file, start, stop)


class Parser:
    """Lines as batches of the chosen columns; the same cell always gives the same value."""

    def __init__(self, width: int, positions: Sequence[int], coders: Coders = ()) -> None:
        self._names = [str(position) for position in range(width)]
        self._chosen = [str(position) for position in positions]
        self._coders = coders_for(positions, coders)
        self._as_text = [coder is not None and coder.reads_text for coder in self._coders]
        self._ragged: list[int] = []

    def batch(self, lines: Lines) -> Batch:
        """The records of a block of lines, ragged ones as absent."""
        if not lines.count:
            return Batch(0, self._columns(self._no_cells()), absent=lines.overlong)
        import pyarrow as pa

        text = blank_malformed(lines.text)
        if not text.isascii():
            # A handler of ragged rows must be able to decode them. No number has such bytes.
            latin = any(self._as_text)
            text = text.decode("latin-1").encode() if latin else text.translate(_ASCII)
        try:
            arrays = self._arrays(text, pa.float64())
        except pa.ArrowInvalid:
            # Some cell is not a number: look at the cells of this block one by one.
            arrays = [
                array if as_text else numbers_in(array)
                for array, as_text in zip(
                    self._arrays(text, pa.binary()), self._as_text, strict=True
                )
            ]
        rows = len(arrays[0])
        absent = lines.count - rows + lines.overlong
        return Batch(rows, self._columns(arrays), absent=absent, gaps=tuple(self._ragged))

    def _columns(self, arrays: Sequence[Any]) -> list[Column]:
        columns: list[Column] = []
        for array, coder, as_text in zip(arrays, self._coders, self._as_text, strict=True):
            if coder is not None and as_text:
                columns.append(coder.of_texts(array, latin=True))
            elif coder is not None:
                columns.append(coder.of_arrow(array))
            else:
                columns += columns_of(array)
        return columns

    def _arrays(self, text: bytes, number: Any) -> list[Any]:
        """The chosen columns, those that are not read as text of the type `number`."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        kinds = [pa.binary() if as_text else number for as_text in self._as_text]
        self._ragged = []

        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, column_names=self._names, block_size=len(text) + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                ignore_empty_lines=False, invalid_row_handler=self._skip
            ),
            convert_options=arrow_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict(zip(self._chosen, kinds, strict=True)),
                include_columns=self._chosen,
                strings_can_be_null=False,
            ),
        )
        return [pa.concat_arrays(column.chunks) for column in table.columns]

    def _skip(self, row: Any) -> str:
        """Leave a ragged line out, and keep its place."""
        self._ragged.append(row.number - 1)
        return "skip"

    def _no_cells(self) -> list[Any]:
        import pyarrow as pa

        return [pa.array([], pa.binary() if text else pa.float64()) for text in self._as_text]


def _header(line: bytes) -> list[str]:
    """The names in the first line, or InvalidInput."""
    if len(line) >= LONGEST_LINE:
        raise InvalidInput("the first line of a CSV file must be a header; this one is too long.")
    text = line.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace").rstrip("\r\n")
    if not text.strip():
        raise InvalidInput(
            "a CSV file must begin with a header, a line with the names of its columns."
        )
    names: list[str] | None = None
    try:
        names = next(csv.reader([text], strict=True))
    except csv.Error:
        names = None
    if names is None:
        raise InvalidInput(
            "the header of a CSV file must be one line of names with well-formed quotes."
        )
    return [name.strip() for name in names]
