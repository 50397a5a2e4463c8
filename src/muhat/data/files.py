"""Paths, globs and lists of files as one source.

Standard input is a file too: a pipe can be read only once, and releases may need several passes.
What comes is written to a temporary file without a name, which nobody else can open and which is
gone with the process. (Where the system has no such files it has a name, and belongs to the user
alone.) What it holds is told by its first bytes: a compressed file, Parquet, Arrow, JSON lines
from a brace, and CSV from anything else.
"""

from __future__ import annotations

import glob
import os
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from muhat.data.base import Partition, Source
from muhat.data.csv_file import CSV
from muhat.data.file import OPEN_FILES, File, Opening, shown, status_of, unless_unreadable
from muhat.data.formats import FORMATS, KINDS
from muhat.data.kept import KeepingSource
from muhat.data.selection import Coders, Columns, places, select
from muhat.data.text_file import COMPRESSIONS, open_bytes
from muhat.errors import InvalidInput

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class FileData:
    """Files, and how they are to be read where their names do not say it.

    `ending` stands for that of their names.
    """

    paths: AnyPath | Sequence[AnyPath]
    delimiter: str | None = None
    ending: str | None = None


def csv_data(paths: AnyPath | Sequence[AnyPath], *, delimiter: str = ",") -> FileData:
    """CSV files, whatever their names end in, with a delimiter of their own; data for any call.

    `paths` is a path, a glob or a list of paths, `delimiter` one character: ";" or "\\t" for
    instance. Names that end in .gz, .bz2 or .zst are decompressed.

    >>> semicolons = csv_data("people.csv", delimiter=";")
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(listed, list | tuple) or not listed:
        raise InvalidInput("must be a path, a glob or a list of paths", parameter="paths")
    return FileData(paths, delimiter_from("delimiter", delimiter))


def delimiter_from(name: str, given: str) -> str:
    """One character between cells; the word tab, and a backslash with a t, are a tab."""
    typed = {"tab": "\t", "\\t": "\t"}.get(given, given) if isinstance(given, str) else ""
    if len(typed) != 1 or not typed.isascii() or typed in '\0"\r\n':
        raise InvalidInput(
            "must be one ASCII character that is neither a quote nor a line break, for "
            "instance a comma, a semicolon or a tab",
            parameter=name,
            value=f"{given!r:.40}",
        )
    return typed


class FilesSource(KeepingSource):
    """Some files with the same columns, read one after another in the order of their paths."""

    def __init__(
        self,
        files: Sequence[File],
        columns: Columns,
        dim: int | None,
        coders: Coders,
        given: FileData,
    ) -> None:
        # A file without a name is there as long as what was given is.
        self._given = given
        _refuse_repeated(files)
        first = files[0]
        selection = select(
            first.fields,
            columns,
            dim,
            names_are_public=all(f.names_are_public for f in files),
            coders=coders,
        )
        self.columns, self.types = selection.columns, selection.types
        self._files = files
        self._coders = selection.coders
        self._positions = [
            _same_fields(first, selection.positions, file, selection.coders) for file in files
        ]
        self.complete = not any(
            file.fields[position].nullable
            for file, positions in zip(files, self._positions, strict=True)
            for position, coder in zip(positions, selection.coders, strict=True)
            if coder is None or not coder.identifies
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of every column that the files have, whether it was asked for or not."""
        return tuple(field.name for field in self._files[0].fields)

    @property
    def known_rows(self) -> int | None:
        """The number of records if every file has been counted."""
        counts = [file.known_rows for file in self._files]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def bytes_a_thread(self) -> int:
        """Text pays for threads sooner than columns that only have to be decoded."""
        return min(file.bytes_a_thread for file in self._files)

    def rows(self) -> int:
        """From metadata for Parquet and Arrow files, by counting records for text."""
        for file in self._files:
            file.check_unchanged()
            if file.known_rows is None:
                file.known_rows = unless_unreadable(file.path, file.count_rows)
            file.check_unchanged()
        return self.known_rows or 0

    def pieces(self) -> Sequence[Partition]:
        """Row groups, record batches or byte ranges of every file."""
        pairs = zip(self._files, self._positions, strict=True)
        return [
            part for file, positions in pairs for part in file.partitions(positions, self._coders)
        ]

    @property
    def is_slow(self) -> bool:
        """Text is slow to decode."""
        return any(file.is_text for file in self._files)

    def check_unchanged(self) -> None:
        """Raise DataChanged if any file is not what it was."""
        for file in self._files:
            file.check_unchanged()


def open_files(
    data: AnyPath | Sequence[AnyPath] | FileData,
    columns: Columns,
    dim: int | None,
    coders: Coders = (),
) -> Source:
    """A path, a glob, or a list of paths."""
    given = data if isinstance(data, FileData) else FileData(data)
    if isinstance(given.paths, str | os.PathLike):
        paths = _expand(_path(given.paths, "data"))
    else:
        paths = [_path(path, f"data[{index}]") for index, path in enumerate(given.paths)]
        for index, path in enumerate(paths):
            # A list of strings may be data by mistake: say nothing of what is in it.
            if _opener(path, given, columns) is None:
                raise InvalidInput(f"data[{index}] must be a path that ends in {KINDS}.")
    files = [_open(path, _opener(path, given, columns)) for path in paths]
    return FilesSource(files, columns, dim, coders, given)


def _path(given: AnyPath, name: str) -> Path:
    """The path that is meant, with the user's home in place of ~, or InvalidInput."""
    text: object = None
    with suppress(TypeError):
        text = os.fspath(given)
    if not isinstance(text, str):
        raise InvalidInput("must be a path of text, not of bytes or anything else", parameter=name)
    # A home that nobody has is left as it is, and found not to exist.
    with suppress(RuntimeError, ValueError):
        return Path(text).expanduser()
    return Path(text)


def _expand(path: Path) -> list[Path]:
    status = status_of(path)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise InvalidInput(
            f"{shown(path)} is a directory. Name its files: {shown(path / '*.parquet')}."
        )
    if status is not None:
        return [path]
    if not glob.has_magic(str(path)):
        raise InvalidInput(f"{shown(path)} does not exist.")
    found: list[str] = []
    with suppress(ValueError):
        found = sorted(glob.glob(str(path), recursive=True))
    if not found:
        raise InvalidInput(f"no file matches {shown(path)}.")
    return [Path(name) for name in found]


def _open(path: Path, opener: Callable[[], File] | None) -> File:
    if opener is None:
        raise InvalidInput(f"{shown(path)} must end in one of {KINDS}.")
    status = status_of(path)
    if status is None:
        raise InvalidInput(f"{shown(path)} does not exist.")
    if stat.S_ISDIR(status.st_mode):
        raise InvalidInput(f"{shown(path)} is a directory, not a file.")
    if not stat.S_ISREG(status.st_mode):
        # A pipe can be read only once, and opening one would wait for its writer.
        raise InvalidInput(f"{shown(path)} is not a regular file. Copy what it holds into one.")
    try:
        return unless_unreadable(path, opener)
    except InvalidInput as refused:
        reason = str(refused)
    raise InvalidInput(reason if shown(path) in reason else f"{shown(path)}: {reason}")


def _opener(path: Path, given: FileData, columns: Columns) -> Callable[[], File] | None:
    """What opens a file of this name; None if no name like this is known."""
    name = given.ending or path.name.lower()
    compression = next((each for each in COMPRESSIONS if name.endswith(each)), None)
    bare = name.removesuffix(compression or "")
    found = next((each for each in FORMATS if bare.endswith(each.endings)), None)
    if given.delimiter is not None and found not in (None, CSV):
        raise InvalidInput(f"{shown(path)} is no CSV file: leave the delimiter out.")
    if given.delimiter is not None:
        found = CSV
    if found is None or (compression is not None and not found.is_text):
        return None
    delimiter = given.delimiter or ("\t" if bare.endswith(".tsv") else None)
    return partial(found.opened, path, Opening(columns, compression, delimiter))


def _refuse_repeated(files: Sequence[File]) -> None:
    """Every record must be read once, or one person would count for two."""
    seen: dict[tuple[int, ...], Path] = {}
    for file in files:
        if file.identity in seen:
            raise InvalidInput(
                f"{shown(file.path)} is the same file as {shown(seen[file.identity])}. "
                "Name every file once."
            )
        seen[file.identity] = file.path


def _same_fields(first: File, positions: Sequence[int], other: File, coders: Coders) -> list[int]:
    """Where the other file keeps these fields of the first, or InvalidInput."""
    keys = list(places(field.name for field in first.fields))
    there = places(field.name for field in other.fields)
    if there.keys() != set(keys):
        raise InvalidInput(f"{shown(other.path)} has other columns than {shown(first.path)}.")
    for position, coder in zip(positions, coders, strict=True):
        wanted, found = first.fields[position], other.fields[there[keys[position]]]
        if coder is not None:
            coder.require(found)
        elif found.width != wanted.width:
            raise InvalidInput(
                f"column {wanted.name!r:.80} has type {found.type:.60} in {shown(other.path)} "
                f"and {wanted.type:.60} in {shown(first.path)}."
            )
    return [there[keys[position]] for position in positions]


_CHUNK = 1 << 20
_LONGEST_START = 64


def standard_input(stream: IO[bytes], delimiter: str | None = None) -> FileData:
    """All that a stream holds, to be passed as `data`."""
    kept: IO[bytes] | None = None
    try:
        unnamed = sys.platform == "linux"
        kept = tempfile.TemporaryFile() if unnamed else tempfile.NamedTemporaryFile()  # noqa: SIM115
        shutil.copyfileobj(stream, kept, _CHUNK)
        kept.flush()
    except OSError:
        kept = None
    if kept is None:
        raise InvalidInput(
            "standard input could not be read to the end, or the folder of temporary files "
            f"({tempfile.gettempdir()!r:.80}) has no room for it."
        )
    path = OPEN_FILES / str(kept.fileno()) if unnamed else Path(kept.name)
    given = FileData(path, delimiter, _ending(path))
    weakref.finalize(given, kept.close)
    return given


def _ending(path: Path) -> str:
    """What the name of such a file would end in."""
    start = _start(path, None)
    compression = next((end for end, mark in COMPRESSIONS.items() if start.startswith(mark)), None)
    text = _start(path, compression).removeprefix(b"\xef\xbb\xbf").lstrip()
    kind = next((each for each in FORMATS if text.startswith(each.marks)), CSV)
    return kind.endings[0] + (compression or "")


def _start(path: Path, compression: str | None) -> bytes:
    try:
        with open_bytes(path, compression) as file:
            return file.read(_LONGEST_START)
    except (OSError, EOFError):
        return b""
