"""CSV files as RFC 4180 has them: a header, then records; a cell is a number, text or missing.

Cells are read as declared, never inferred. A column whose categories are text or booleans is
read as text: quotes around a cell are removed, nothing is stripped, and an empty cell is the
empty text. All others are read as float64: a number is an optional sign, digits with an optional
point, an optional exponent, and spaces or tabs around it; quotes around all of it are allowed.
Anything else is missing (so are nan and inf, which are not finite). Line breaks inside quotes
belong to the cell. A record with too few or too many fields, with stray quotes, or empty, is a
record of which everything is missing.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muhat.data.arrow import columns_of
from muhat.data.file import Format, Opening
from muhat.data.selection import Coders, Field, coders_for
from muhat.data.text_file import LONGEST_RECORD, Piece, TextFile, open_bytes, pieces
from muhat.data.text_numbers import NUMBER, numbers_in
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, Column

_ASCII = bytes(range(128)) + b"?" * 128
_HEADER_BYTES = 1 << 12
_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


class CsvFile(TextFile):
    """One CSV file, plain or compressed; without a delimiter that is given, commas."""

    def __init__(self, path: Path, given: Opening) -> None:
        self.delimiter = given.delimiter or ","
        super().__init__(path, given.compression, self.delimiter.encode())
        with open_bytes(path, given.compression) as file:
            found = next(pieces(file, self.start, self._delimiter, _HEADER_BYTES), None)
        if given.delimiter is None and found is not None:
            _hint(found.text)
        header = _first_record(found)
        names = _names(header, self.delimiter)
        self.begin(self.start + len(header))
        self.fields = [Field(name, "text", 1, is_text=True) for name in names]
        self.names_are_public = not any(re.fullmatch(NUMBER, name) for name in names)

    def parser(self, positions: Sequence[int], coders: Coders) -> Parser:
        return Parser(len(self.fields), positions, coders, self.delimiter)


class Parser:
    """Records as batches of the chosen columns; the same cell always gives the same value."""

    def __init__(
        self,
        width: int,
        positions: Sequence[int],
        coders: Coders = (),
        delimiter: str = ",",
    ) -> None:
        self._delimiter = delimiter
        self._names = [str(position) for position in range(width)]
        self._chosen = [str(position) for position in positions]
        self._coders = coders_for(positions, coders)
        self._as_text = [coder is not None and coder.reads_text for coder in self._coders]
        self._ragged: list[int] = []

    def batch(self, piece: Piece) -> Batch:
        """The records of a piece, ragged ones as absent."""
        text = piece.cleaned()
        if not text:
            return Batch(0, self._columns(self._no_cells()), absent=piece.count)
        import pyarrow as pa

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
        absent = piece.count - rows
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
                delimiter=self._delimiter,
                ignore_empty_lines=False,
                invalid_row_handler=self._skip,
                newlines_in_values=True,
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
        """Leave a ragged record out, and keep its place."""
        self._ragged.append(row.number - 1)
        return "skip"

    def _no_cells(self) -> list[Any]:
        import pyarrow as pa

        return [pa.array([], pa.binary() if text else pa.float64()) for text in self._as_text]


_NO_HEADER = "a CSV file must begin with a header, the names of its columns."


def _first_record(found: Piece | None) -> bytes:
    """The bytes of the header, or InvalidInput."""
    if found is None:
        raise InvalidInput(_NO_HEADER)
    if found.layout is None:
        raise InvalidInput(
            f"the header of a CSV file must have at most {LONGEST_RECORD:,} bytes, and quotes "
            "that are closed."
        )
    if found.layout.bad is not None and found.layout.bad[0]:
        raise InvalidInput("the header of a CSV file must have well-formed quotes.")
    return found.text[: found.layout.first]


def _names(header: bytes, delimiter: str) -> list[str]:
    """The names in a header, or InvalidInput."""
    text = header.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    if not text.strip():
        raise InvalidInput(_NO_HEADER)
    lines: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    if not lines:
        raise InvalidInput("the header of a CSV file must have well-formed quotes.")
    if len(lines) > 1 or text.endswith("\r"):
        raise InvalidInput(
            "lines of a CSV file end in a line feed, after one carriage return or none; these end "
            "in another way. Convert it: tr -s '\\r' '\\n' < OLD > NEW."
        )
    return [name.strip() for name in lines[0]]


def _hint(start: bytes) -> None:
    """Refuse a file whose first line has more of another delimiter than commas, quotes aside."""
    line = re.sub(rb'"[^"]*"', b"", start.partition(b"\n")[0]).decode("latin-1")
    other = max(_OTHERS, key=line.count)
    if line.count(other) > line.count(","):
        typed = "tab" if other == "\t" else other
        raise InvalidInput(
            f"the header has more {_OTHERS[other]} than commas. Name the delimiter: --delimiter "
            f"{typed!r}, or mh.csv_data(path, delimiter={other!r}) in Python."
        )


CSV = Format((".csv", ".tsv"), CsvFile, is_text=True)
