"""Files that a command writes: never one that it reads, and never where a link leads.

Somebody else's link in a shared folder would make the command write wherever that person likes;
what a pipe or a terminal is linked to (/dev/stdout, >(…) of a shell) is written as usual.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from muhat.errors import InvalidInput
from muhat.stream.state import sync_folder

PRIVATE = 0o600
"""Only for the owner."""


def check_apart(path: str, inputs: Iterable[str], option: str = "--out") -> None:
    """Refuse to write a file that is read, under whichever name."""
    for each in inputs:
        if path != "-" and _is_same(path, each):
            raise InvalidInput(f"{option} {path} is one of the files that are read; name another.")


@contextmanager
def output(path: str, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """The file, or standard output for "-"; one sentence if it cannot be written.

    A file is written beside its place and put there when it is whole and on the disk: whoever stops
    halfway leaves the one that was there. A reader that leaves early is no mistake.
    """
    try:
        if path == "-":
            with click.open_file("-", "wb") as stream:
                yield stream
                stream.flush()
        elif _is_file_to_be(path):
            with _put_in_place(Path(path), mode) as written:
                yield written
        else:
            with os.fdopen(_beyond_link(path), "wb") as written:
                yield written
                written.flush()
    except BrokenPipeError:
        raise
    except OSError:
        name = "standard output" if path == "-" else path
        raise InvalidInput(f"{name} cannot be written.") from None


def _is_file_to_be(path: str) -> bool:
    """Whether a file is there, or nothing; not a link, a pipe or a device."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True


@contextmanager
def _put_in_place(path: Path, mode: int) -> Iterator[IO[bytes]]:
    part = path.with_name(f".{path.name[:200]}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as written:
            yield written
            written.flush()
            os.fsync(written.fileno())
        # What is a link by now is replaced, not followed.
        part.replace(path)
        sync_folder(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _beyond_link(path: str) -> int:
    """The pipe or the device that a name or a link leads to; no file is made or emptied there."""
    refused = InvalidInput(f"{path} is a link, which is not followed; name a file.")
    try:
        found = os.open(path, os.O_WRONLY)
    except OSError:
        if not os.path.islink(path):
            raise
        raise refused from None
    if stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise refused
    return found


def _is_same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
