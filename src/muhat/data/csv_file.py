"""CSV files: a header, then one record a line; every cell is a number or missing.

Cells are read as float64 as declared, never inferred. A number is an optional sign, digits
with an optional point, an optional exponent, and spaces or tabs around it; quotes around all
of it are allowed. Anything else is missing (so are nan and inf, which are not finite). A line
with too few or too many fields, with stray quotes, or empty, is a record of which everything
is missing. Line breaks inside quotes are not supported: they make two such records.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from muhat.data.arrow import batch_of
from muhat.data.base import Partition
from muhat.data.columns import Batch
from muhat.data.csv_lines import (
    LONGEST_LINE,
    Lines,
    blank_malformed,
    lines_between,
    open_bytes,
    seek_line,
)
from muhat.data.files import File
from muhat.data.selection import Field
from muhat.errors import InvalidInput

_PARTITION_BYTES = 1 << 24
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
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
        self.fields = [Field(name, "text", 1) for name in names]
        self.names_are_public = not any(re.fullmatch(_NUMBER, name) for name in names)

    def count_rows(self) -> int:
        """The lines after the header."""
        return sum(lines.count + lines.overlong for lines in self._lines(self._start, None))

    def partitions(self, positions: Sequence[int]) -> list[Partition]:
        """Ranges of bytes; a compressed file is one."""
        stops: list[int | None] = [None]
        if not self.path.name.lower().endswith(".gz"):
            stops = [*range(self._start + _PARTITION_BYTES, self.size, _PARTITION_BYTES), None]
        starts = [self._start, *(stop for stop in stops if stop is not None)]
        return [
            self._partition(start, stop, list(positions))
            for start, stop in zip(starts, stops, strict=True)
        ]

    def _partition(self, start: int, stop: int | None, positions: list[int]) -> Partition:
        def batches() -> Iterator[Batch]:
            parser = Parser(len(self.fields), positions)
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
    """Lines as batches of the chosen columns; the same cell always gives the same number."""

    def __init__(self, width: int, positions: Sequence[int]) -> None:
        self._names = [str(position) for position in range(width)]
        self._chosen = [str(position) for position in positions]

    def batch(self, lines: Lines) -> Batch:
        """The records of a block of lines, ragged ones as absent."""
        if not lines.count:
            return Batch(0, batch_of(_no_cells(len(self._chosen))).columns, absent=lines.overlong)
        import pyarrow as pa

        text = blank_malformed(lines.text)
        if not text.isascii():
            # No number has such bytes, and a handler of ragged rows must be able to decode them.
            text = text.translate(_ASCII)
        try:
            arrays = self._arrays(text, pa.float64())
        except pa.ArrowInvalid:
            # Some cell is not a number: look at the cells of this block one by one.
            arrays = [_numbers(array) for array in self._arrays(text, pa.binary())]
        rows = len(arrays[0])
        absent = lines.count - rows + lines.overlong
        return Batch(rows, batch_of(arrays).columns, absent=absent)

    def _arrays(self, text: bytes, kind: Any) -> list[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, column_names=self._names, block_size=len(text) + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                ignore_empty_lines=False, invalid_row_handler=lambda row: "skip"
            ),
            convert_options=arrow_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(self._chosen, kind),
                include_columns=self._chosen,
                strings_can_be_null=False,
            ),
        )
        return [pa.concat_arrays(column.chunks) for column in table.columns]


def _numbers(cells: Any) -> Any:
    """Cells of bytes as float64, null where there is no number."""
    import pyarrow as pa
    from pyarrow import compute

    looks_right = compute.match_substring_regex(cells, f"^[ \\t]*{_NUMBER}[ \\t]*$")
    texts = compute.if_else(looks_right, cells, pa.scalar(None, cells.type)).cast(pa.string())
    texts = compute.utf8_trim(texts, " \t")
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        distinct = texts.dictionary_encode()
        values = pa.array([_number(text) for text in distinct.dictionary], pa.float64())
        return values.take(distinct.indices)


def _number(text: Any) -> float | None:
    import pyarrow as pa

    try:
        value: float = text.cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return None
    return value


def _no_cells(count: int) -> list[Any]:
    import pyarrow as pa

    return [pa.array([], pa.float64())] * count


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
