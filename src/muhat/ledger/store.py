"""The file under an account: one SQLite table, one transaction at a time.

Why a rollback journal and synchronous=EXTRA. A charge must outlive a power cut from the
moment it is reported. With a rollback journal the commit is the unlinking of the journal;
FULL syncs the file but not that unlinking, so after a power cut the journal could come back
and undo a charge whose release is already public. EXTRA syncs the directory too. A
write-ahead log with FULL would be as durable and a little faster, but between checkpoints the
newest charges live in a second file (a copy of the first alone is a rollback), and it needs
shared memory, which network drives lack.

Why a connection for every operation. SQLite connections must not be carried across a fork,
and POSIX locks belong to the process: a child that inherits an open connection believes in
locks it does not hold. Nothing is open between operations, and `_GATE` keeps a fork from
happening during one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from muhat.errors import InvalidInput
from muhat.ledger.records import SCHEMA, ChainBroken, Record

Result = TypeVar("Result")

BUSY_SECONDS = 60.0
OWNERS = 0o600
"""Only the owner reads and writes."""

APPLICATION_ID = int.from_bytes(b"muht", "big")
TABLE = "CREATE TABLE chain (id INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)"
MISSING_HINT = "Create one: muhat ledger create budget.db --rho 1 --neighbors substitute"

_GATE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_GATE.release
    )


def locate(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a ledger file, so that a later chdir means nothing."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise InvalidInput(
            "must be a path", parameter="ledger", value=type(path).__name__
        ) from None
    if not text or "\0" in text:
        raise InvalidInput(
            "must be a path to a file", parameter="ledger", value="an empty or malformed one"
        )
    if text == ":memory:":
        raise InvalidInput(
            "must be a file: an account in memory would forget its charges", parameter="ledger"
        )
    return Path(text).absolute()


def create(path: Path, genesis: Record) -> None:
    """Make the file with its first record, for its owner alone; an existing one is left alone.

    It says what was asked about the data, when and by whom. Who shares an account grants the rights
    on it to a group; SQLite gives its journal the rights of the file.
    """
    new_file(path, lambda connection: _found(connection, genesis))


def new_file(path: Path, found: Callable[[sqlite3.Connection], None]) -> None:
    """A new file for its owner alone, with what `found` writes into it: all of that, or no file."""
    with _GATE:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNERS))
        except FileExistsError:
            raise InvalidInput(f"{path} exists already; a ledger is never overwritten.") from None
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "unknown error"
            raise InvalidInput(f"{path} cannot be created: {reason}.") from None
        try:
            transact(path, found, write=True)
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise


def _found(connection: sqlite3.Connection, genesis: Record) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(TABLE)
    append(connection, genesis)


def check_file(path: Path) -> None:
    """Refuse what is certainly no ledger before SQLite sees it."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"There is no ledger at {path}. {MISSING_HINT}") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown error"
        raise InvalidInput(f"{path} cannot be opened: {reason}.") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{path} is not a file, so it is not a ledger.")
    if status.st_size == 0:
        raise InvalidInput(
            f"{path} is empty, so it is not a ledger. If its creation was interrupted, "
            "delete it and create it again."
        )


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse an SQLite file that is not a ledger, or one from a later version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise InvalidInput(f"{path} is an SQLite file, but not a muhat ledger.")
    if version > SCHEMA:
        raise InvalidInput(
            f"{path} was written by a newer muhat (schema {version}, this one knows {SCHEMA}); "
            "upgrade muhat to use it."
        )
    # A trigger or a view could rewrite charges behind the chain's back.
    objects = connection.execute("SELECT sql FROM sqlite_master").fetchall()
    if version < 1 or objects != [(TABLE,)]:
        raise ChainBroken("its tables are not those of a ledger")


def transact(
    path: Path, operation: Callable[[sqlite3.Connection], Result], *, write: bool
) -> Result:
    """Run an operation in one transaction: all of it is on the disk, or none of it.

    A file that stays locked is tried again for BUSY_SECONDS. Every failure is an InvalidInput
    without the words of SQLite, which may quote what is stored.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with _GATE, contextlib.closing(_connect(path)) as connection:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                result = operation(connection)
                connection.execute("COMMIT")
                return result
        except sqlite3.Error as error:
            code = _code(error)
            if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise InvalidInput(_explain(path, code, write)) from None
            if time.monotonic() >= deadline:
                raise InvalidInput(
                    f"{path} has been locked by another process for {BUSY_SECONDS:g} seconds; "
                    "nothing was spent. Try again, or look for a process that hangs."
                ) from None
        except ChainBroken as broken:
            raise InvalidInput(
                f"{path} was edited, truncated or rolled back: {broken}. "
                "Do not release from it; compare it with a backup and with past releases."
            ) from None
        time.sleep(0.01)


def _connect(path: Path) -> sqlite3.Connection:
    # mode=rw: SQLite would otherwise create a missing file and call it an empty account.
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=min(5.0, BUSY_SECONDS), isolation_level=None
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def _code(error: sqlite3.Error) -> int:
    # Errors of the Python layer (undecodable text) have no code; they mean a damaged file.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _explain(path: Path, code: int, write: bool) -> str:
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a muhat ledger (not an SQLite file)."
    if code == sqlite3.SQLITE_CORRUPT:
        return f"{path} is damaged and cannot be used as a ledger; nothing was spent."
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM) and write:
        return (
            f"{path} cannot be written: the file or its directory is read-only or out of reach; "
            "nothing was spent."
        )
    if code == sqlite3.SQLITE_FULL:
        return f"{path} cannot grow: the disk is full; nothing was spent."
    if write:
        return (
            f"{path} could not be written: the disk failed. The charge is not confirmed, so "
            "nothing may be released; at worst it is counted all the same."
        )
    return f"{path} cannot be read: it is out of reach or the disk failed."


def append(connection: sqlite3.Connection, record: Record) -> None:
    """Add a record at the end; the primary key refuses a place that is taken.

    From then on the file needs a muhat that knows such records.
    """
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    connection.execute(
        "INSERT INTO chain (id, body, hash) VALUES (?, ?, ?)",
        (record.id, record.body, record.hash),
    )


def newest(connection: sqlite3.Connection) -> Record:
    """The last record."""
    return _record(connection.execute("SELECT * FROM chain ORDER BY id DESC LIMIT 1").fetchone())


def at(connection: sqlite3.Connection, place: int) -> Record:
    """The record at a place."""
    row = connection.execute("SELECT * FROM chain WHERE id = ?", (place,)).fetchone()
    return _record(row, place)


def records(connection: sqlite3.Connection) -> Iterator[Record]:
    """Every record, in order."""
    return map(_record, connection.execute("SELECT * FROM chain ORDER BY id"))


def _record(row: tuple[int, str, str] | None, place: int = 0) -> Record:
    if row is None:
        raise ChainBroken(f"entry {place} is missing")
    return Record(*row)
