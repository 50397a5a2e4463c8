"""JSON lines: an object a line, which is a record; the names of columns are keys.

There is no header, so columns must be named, and a record that lacks a key misses the value: it is
not known whether anybody has it. A number is the nearest float64, also if it is in quotes; true
and false are 1 and 0, and words where categories are words. null, lists, objects and anything else
are missing; so is all of a line that is no object. Of a key that comes twice the last one counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muhat.data.arrow import columns_of
from muhat.data.file import Format, Opening
from muhat.data.selection import Coders, Field, coders_for
from muhat.data.text_file import Piece, TextFile
from muhat.data.text_numbers import numbers_in
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, Column


class JsonLinesFile(TextFile):
    """One file of JSON lines, plain or compressed, with the columns that are asked for."""

    def __init__(self, path: Path, given: Opening) -> None:
        super().__init__(path, given.compression, None)
        if given.columns is None:
            raise InvalidInput("must be named: JSON lines have no header", parameter="columns")
        self.fields = [Field(str(name), "text", 1, is_text=True) for name in given.columns]

    def parser(self, positions: Sequence[int], coders: Coders) -> _Parser:
        return _Parser([self.fields[position].name for position in positions], coders)


class _Parser:
    """Lines as batches of the chosen keys; each line by itself."""

    def __init__(self, keys: Sequence[str], coders: Coders) -> None:
        self._keys = keys
        self._coders = coders_for(keys, coders)
        # Numbers stay as they are written, and are read as those of CSV are.
        self._decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_missing)

    def batch(self, piece: Piece) -> Batch:
        """The records of a piece."""
        lines = piece.lines().split(b"\n")[: piece.count] if piece.layout else [b""]
        records = [self._record(line) for line in lines]
        columns: list[Column] = []
        for key, coder in zip(self._keys, self._coders, strict=True):
            values = [record.get(key) for record in records]
            if coder is not None and coder.identifies:
                # Nobody knows the names of keys beforehand: a record that lacks this one may be
                # anybody's, which is not the same as nobody's.
                columns.append(coder.of_objects([record.get(key, ...) for record in records]))
            elif coder is not None and coder.reads_text:
                columns.append(coder.of_texts(_texts(values, "true", "false")))
            elif coder is not None:
                columns.append(coder.of_arrow(numbers_in(_texts(values, "1", "0"))))
            else:
                columns += columns_of(numbers_in(_texts(values, "1", "0")))
        return Batch(len(lines), columns)

    def _record(self, line: bytes) -> dict[str, Any]:
        try:
            found = self._decoder.decode(line.decode("utf-8"))
        except (ValueError, RecursionError):
            found = None
        return found if isinstance(found, dict) else {}


def _texts(values: Sequence[object], true: str, false: str) -> Any:
    """An Arrow array of bytes, null for what is neither text nor a number nor a boolean."""
    import pyarrow as pa

    booleans = {True: true, False: false}
    texts = (booleans[value] if isinstance(value, bool) else value for value in values)
    cells = [
        text.encode("utf-8", "surrogatepass") if isinstance(text, str) else None for text in texts
    ]
    return pa.array(cells, pa.binary())


def _missing(_: str) -> None:
    """Not-a-number and the infinities, which JSON does not have."""


JSON_LINES = Format((".jsonl", ".ndjson"), JsonLinesFile, (b"{",), is_text=True)
