"""Files that a command writes: never one that it reads, and never where a link leads.

Somebody else's link in a shared folder would make the command write wherever that person likes;
what a pipe or a terminal is linked to (/dev/stdout, >(…) of a shell) is written as usual.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import ELOOP
from pathlib import Path
from typing import IO

import click

from muhat.errors import InvalidInput

PRIVATE = 0o600
"""Only for the owner."""


def check_apart(path: str, inputs: Iterable[str], option: str = "--out") -> None:
    """Refuse to write a file that is read, under whichever name."""
    for each in inputs:
        if path != "-" and _is_same(path, each):
            raise InvalidInput(f"{option} {path} is one of the files that are read; name another.")


@contextmanager
def output(path: str, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """The file, emptied, or standard output for "-"; one sentence if it cannot be written.

    `mode` holds for a file that was there before, too, if it is `PRIVATE`. A reader that leaves
    early is no mistake.
    """
    try:
        if path == "-":
            with click.open_file("-", "wb") as stream:
                yield stream
                stream.flush()
            return
        with os.fdopen(_opened(path, mode), "wb") as written:
            yield written
            written.flush()
    except BrokenPipeError:
        raise
    except OSError:
        name = "standard output" if path == "-" else path
        raise InvalidInput(f"{name} cannot be written.") from None


def _opened(path: str, mode: int) -> int:
    try:
        found = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NOFOLLOW, mode)
    except OSError as error:
        if error.errno != ELOOP:
            raise
        found = _beyond_link(path)
    if mode == PRIVATE and stat.S_ISREG(os.fstat(found).st_mode):
        os.chmod(found, mode)
    return found


def _beyond_link(path: str) -> int:
    """The pipe or the device that a link leads to; a file is neither made nor emptied there."""
    refused = InvalidInput(f"{path} is a link, which is not followed; name a file.")
    try:
        found = os.open(path, os.O_WRONLY)
    except OSError:
        raise refused from None
    if stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise refused
    return found


_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def _is_same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
