"""Paths, globs and lists of files as one source; what a file was when it was opened."""

from __future__ import annotations

import glob
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from muhat.data.base import Partition, PartitionedSource, Source
from muhat.data.selection import Coders, Columns, Field, places, select
from muhat.errors import DataChanged, InvalidInput

T = TypeVar("T")
AnyPath = str | os.PathLike[str]

KINDS = ".csv, .tsv or .jsonl (compressed: .csv.gz, .csv.bz2, .csv.zst), .parquet, .arrow, .feather"

OPEN_FILES = Path("/proc/self/fd")
"""Where Linux has the open files of a process, also those that have no name."""

_OTHER_KINDS = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".jsonl", ".ndjson")


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


class File(ABC):
    """One file of a known kind, opened as far as its schema and no further."""

    fields: list[Field]
    known_rows: int | None = None
    names_are_public = True
    bytes_a_thread = 1 << 27

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened_as = self._fingerprint()

    @abstractmethod
    def count_rows(self) -> int:
        """How many records the file holds."""

    @abstractmethod
    def partitions(self, positions: Sequence[int], coders: Coders) -> list[Partition]:
        """Units of work that read the fields at these positions, in this order.

        `coders` has an entry for each of them.
        """

    def check_unchanged(self) -> None:
        """Raise DataChanged if size, time or identity of the file are not what they were."""
        try:
            now = self._fingerprint()
        except InvalidInput:
            now = None
        if now != self._opened_as:
            raise DataChanged(f"{_shown(self.path)} has changed since it was opened.")

    def _fingerprint(self) -> tuple[int, ...]:
        status = _status(self.path)
        if status is None:
            raise InvalidInput(f"{_shown(self.path)} cannot be read. Is the path right?")
        return (status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._opened_as[0]

    @property
    def identity(self) -> tuple[int, ...]:
        """What every path to the same file has in common."""
        return self._opened_as[2:]


class FilesSource(PartitionedSource):
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
            for position in positions
        )

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

    def partitions(self) -> Sequence[Partition]:
        """Row groups, record batches or byte ranges of every file."""
        pairs = zip(self._files, self._positions, strict=True)
        return [
            part for file, positions in pairs for part in file.partitions(positions, self._coders)
        ]

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
    openers = _Openers(given, columns)
    if isinstance(given.paths, str | os.PathLike):
        paths = _expand(_path(given.paths, "data"))
    else:
        paths = [_path(path, f"data[{index}]") for index, path in enumerate(given.paths)]
        for index, path in enumerate(paths):
            # A list of strings may be data by mistake: say nothing of what is in it.
            if openers.of(path) is None:
                raise InvalidInput(f"data[{index}] must be a path that ends in {KINDS}.")
    files = [_open(path, openers.of(path)) for path in paths]
    return FilesSource(files, columns, dim, coders, given)


def unless_unreadable(path: Path, read: Callable[[], T]) -> T:
    """The result of `read`, or InvalidInput that says nothing of why: readers quote cells."""
    try:
        return read()
    except InvalidInput:
        raise
    except Exception:
        pass
    raise InvalidInput(f"{_shown(path)} cannot be read: it is damaged or not what its name says.")


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
    status = _status(path)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise InvalidInput(
            f"{_shown(path)} is a directory. Name its files: {_shown(path / '*.parquet')}."
        )
    if status is not None:
        return [path]
    if not glob.has_magic(str(path)):
        raise InvalidInput(f"{_shown(path)} does not exist.")
    found: list[str] = []
    with suppress(ValueError):
        found = sorted(glob.glob(str(path), recursive=True))
    if not found:
        raise InvalidInput(f"no file matches {_shown(path)}.")
    return [Path(name) for name in found]


def _open(path: Path, opener: Callable[[Path], File] | None) -> File:
    if opener is None:
        raise InvalidInput(f"{_shown(path)} must end in one of {KINDS}.")
    status = _status(path)
    if status is None:
        raise InvalidInput(f"{_shown(path)} does not exist.")
    if stat.S_ISDIR(status.st_mode):
        raise InvalidInput(f"{_shown(path)} is a directory, not a file.")
    if not stat.S_ISREG(status.st_mode):
        # A pipe can be read only once, and opening one would wait for its writer.
        raise InvalidInput(f"{_shown(path)} is not a regular file. Copy what it holds into one.")
    try:
        return unless_unreadable(path, lambda: opener(path))
    except InvalidInput as refused:
        reason = str(refused)
    raise InvalidInput(reason if _shown(path) in reason else f"{_shown(path)}: {reason}")


class _Openers:
    """What opens a file of some name; None if no name like this is known."""

    def __init__(self, given: FileData, columns: Columns) -> None:
        self._given = given
        self._columns = columns

    def of(self, path: Path) -> Callable[[Path], File] | None:
        from muhat.data.csv_file import CsvFile
        from muhat.data.ipc import IpcFile
        from muhat.data.json_lines import JsonLinesFile
        from muhat.data.parquet import ParquetFile
        from muhat.data.text_bytes import COMPRESSIONS

        name = self._given.ending or path.name.lower()
        compression = next((each for each in COMPRESSIONS if name.endswith(each)), None)
        bare = name.removesuffix(compression or "")
        delimiter = self._given.delimiter
        if delimiter is not None and bare.endswith(_OTHER_KINDS):
            raise InvalidInput(f"{_shown(path)} is no CSV file: leave the delimiter out.")
        if delimiter is not None or bare.endswith((".csv", ".tsv")):
            tabs = "\t" if bare.endswith(".tsv") else None
            return lambda path: CsvFile(path, compression, delimiter or tabs)
        if bare.endswith((".jsonl", ".ndjson")):
            return lambda path: JsonLinesFile(path, compression, self._columns)
        if name.endswith((".parquet", ".pq")):
            return ParquetFile
        return IpcFile if name.endswith((".arrow", ".feather", ".ipc")) else None


def _status(path: Path) -> os.stat_result | None:
    """What the system knows of the file, or None if there is none or the path cannot be one."""
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _refuse_repeated(files: Sequence[File]) -> None:
    """Every record must be read once, or one person would count for two."""
    seen: dict[tuple[int, ...], Path] = {}
    for file in files:
        if file.identity in seen:
            raise InvalidInput(
                f"{_shown(file.path)} is the same file as {_shown(seen[file.identity])}. "
                "Name every file once."
            )
        seen[file.identity] = file.path


def _same_fields(first: File, positions: Sequence[int], other: File, coders: Coders) -> list[int]:
    """Where the other file keeps these fields of the first, or InvalidInput."""
    keys = list(places(field.name for field in first.fields))
    there = places(field.name for field in other.fields)
    if there.keys() != set(keys):
        raise InvalidInput(f"{_shown(other.path)} has other columns than {_shown(first.path)}.")
    for position, coder in zip(positions, coders, strict=True):
        wanted, found = first.fields[position], other.fields[there[keys[position]]]
        if coder is not None:
            coder.require(found)
        elif found.width != wanted.width:
            raise InvalidInput(
                f"column {wanted.name!r:.80} has type {found.type:.60} in {_shown(other.path)} "
                f"and {wanted.type:.60} in {_shown(first.path)}."
            )
    return [there[keys[position]] for position in positions]


def _shown(path: Path) -> str:
    if path.parent == OPEN_FILES:
        return "standard input"
    return f"{str(path)!r:.200}"
