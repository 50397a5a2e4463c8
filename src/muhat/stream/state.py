"""A counter in a file: a line of JSON, the noise still to come, and a check sum.

The file holds the exact sum and the noise, so it is as secret as the data: it is made with mode
0600, in one piece, and an existing file is never replaced. There is no pickle in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muhat.errors import InvalidInput
from muhat.stream.engines import Engine
from muhat.stream.sums import RunningSums

SCHEMA = "muhat.stream.state/1"
_MAGIC = b"muhat stream 1\n"
_DIGEST = hashlib.sha256().digest_size
_LONGEST_HEADER = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Everything a counter needs to go on."""

    plan: RunningSums
    engine: Engine
    pushed: int
    last: list[int]
    ledger_head: dict[str, Any] | None
    identity: str = ""

    def to_bytes(self, identity: str) -> bytes:
        """The file's contents."""
        engine, words = self.engine.saved()
        header = {
            "schema": SCHEMA,
            "id": identity,
            "plan": self.plan.to_dict(),
            "pushed": self.pushed,
            "engine": engine,
            "last": self.last,
            "ledger_head": self.ledger_head,
        }
        text = json.dumps(header, separators=(",", ":")).encode()
        body = _MAGIC + len(text).to_bytes(8, "little") + text
        body += np.ascontiguousarray(words, "<i8").tobytes()
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, content: bytes) -> State:
        """The state that `to_bytes` wrote; anything else is InvalidInput, without its content."""
        # Whatever goes wrong quotes the content; it is raised outside, where nothing hangs on it.
        with contextlib.suppress(Exception):
            return cls._parse(content)
        raise InvalidInput("the file is not a saved counter, or it is damaged.") from None

    @classmethod
    def _parse(cls, content: bytes) -> State:
        body, digest = content[:-_DIGEST], content[-_DIGEST:]
        start = len(_MAGIC) + 8
        if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
            raise ValueError
        length = int.from_bytes(body[len(_MAGIC) : start], "little")
        if length > _LONGEST_HEADER:
            raise ValueError
        header = json.loads(body[start : start + length])
        plan = RunningSums.from_dict(header["plan"])
        pushed, dim = int(header["pushed"]), plan.noise.dim
        if header["schema"] != SCHEMA or not 0 <= pushed <= plan.noise.size:
            raise ValueError
        words = np.frombuffer(body[start + length :], "<i8").astype(np.int64)
        engine = plan.engine.resume(plan.noise, pushed, header["engine"], words)
        last, identity = [int(x) for x in header["last"]], header["id"]
        if len(last) != dim or not _is_identity(identity):
            raise ValueError
        return cls(plan, engine, pushed, last, header["ledger_head"], identity)


def _is_identity(text: object) -> bool:
    return isinstance(text, str) and len(text) == 32 and set(text) <= set("0123456789abcdef")


def locate(path: str | os.PathLike[str]) -> Path:
    """A path as an absolute one, or InvalidInput."""
    try:
        name = os.fsdecode(path)
    except (TypeError, ValueError):
        raise InvalidInput(
            "must be a file name", parameter="path", value=type(path).__name__
        ) from None
    if "\0" in name:
        raise InvalidInput("must be a file name; no file name has a NUL in it", parameter="path")
    return Path(os.path.abspath(name))


def write(state: State, path: str | os.PathLike[str]) -> Path:
    """Save a state under a new name, durably and in one piece."""
    location = locate(path)
    content = state.to_bytes(os.urandom(16).hex())
    part = location.with_name(f".{location.name[:100]}.{os.urandom(8).hex()}")
    try:
        create(part, content)
        try:
            # A link, unlike a rename, never replaces a file that is there already.
            os.link(part, location)
        finally:
            os.unlink(part)
        sync_folder(location.parent)
    except FileExistsError:
        raise InvalidInput(f"{location} exists already; choose a new name.") from None
    except OSError as error:
        raise InvalidInput(f"{location} cannot be written: {error.strerror}.") from None
    return location


def read(location: Path) -> State:
    """The state in a file, unclaimed."""
    try:
        # A pipe that nobody writes to is opened at once, and then refused.
        descriptor = os.open(location, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise InvalidInput(f"{location} is not a file.")
            if mode & 0o077:
                raise InvalidInput(
                    f"{location} can be read by others than its owner, and it is as secret as "
                    f"the data: chmod 600 it first, if it is still to be trusted."
                )
            content = file.read()
    except OSError as error:
        raise InvalidInput(f"{location} cannot be read: {error.strerror}.") from None
    return State.from_bytes(content)


def create(path: Path, content: bytes) -> None:
    """A new file for the owner's eyes, on the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
