"""What a service has taken and done, on the disk before anybody is told: one SQLite file.

    rounds      each with its description as everybody gets it, its phase, and what came of it
    reports     what devices or the shuffler sent, by number; a report is erased when it is mixed,
                its digest stays, so that whoever sends it again is told that it counted
    marks       of the open round's pieces: a copy of one is refused, so that the first counts
    parts       of a mixed batch, as they are handed on, again and again until they have arrived

A transaction is durable when it ends (a write-ahead log, synced at every commit), and one process
holds the file: a second one is refused, and the lock of one that was killed is gone. Reports lie
ordered by their random numbers, so that the table does not say who came when; what is erased is
overwritten.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muhat.errors import InvalidInput
from muhat.ledger.store import OWNERS
from muhat.protocols.roles.messages import HEADER_BYTES, LABEL_BYTES

APPLICATION_ID = int.from_bytes(b"muhs", "big")
SCHEMA = 1
TABLES = (
    "CREATE TABLE marks (mark BLOB PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE parts (round INTEGER NOT NULL, part INTEGER NOT NULL, body BLOB NOT NULL, "
    "sent INTEGER NOT NULL, PRIMARY KEY (round, part)) WITHOUT ROWID",
    "CREATE TABLE reports (number BLOB PRIMARY KEY, round INTEGER NOT NULL, digest BLOB NOT NULL, "
    "report BLOB) WITHOUT ROWID",
    "CREATE TABLE rounds (number INTEGER PRIMARY KEY, description BLOB NOT NULL, "
    "phase TEXT NOT NULL, batch TEXT, result BLOB)",
    "CREATE TABLE service (role TEXT NOT NULL, first TEXT NOT NULL)",
)

COLLECTING, CLOSED, UNSIGNED, FAILED, FINISHED = (
    "collecting",
    "closed",
    "unsigned",
    "failed",
    "finished",
)
"""Phases of a round: open; no more is taken; the next round waits to be signed; there is no result;
there is one, or a next round."""


@dataclass(frozen=True)
class KeptRound:
    """A round as the store has it."""

    number: int
    description: bytes
    phase: str
    batch: str | None
    """By what name its mixed messages are handed on."""
    result: bytes | None
    """The release, the next round before it is signed, or why there is none."""


class Store:
    """The file of one service and one first description; made where there is none."""

    def __init__(self, folder: Path, role: str, description: bytes) -> None:
        self.path = folder / f"{role}.db"
        first = hashlib.sha256(description).hexdigest()
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNERS))
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=0.2
            )
        except (OSError, sqlite3.Error):
            raise InvalidInput(f"{self.path} cannot be made or opened.") from None
        try:
            self._hold()
            with self.transaction():
                if not self._read("SELECT 1 FROM sqlite_master"):
                    self._found(role, first, description)
                self._check(role, first)
        except sqlite3.OperationalError:
            self.close()
            raise InvalidInput(f"{self.path} is in use by another process.") from None
        except sqlite3.DatabaseError:
            self.close()
            raise InvalidInput(f"{self.path} is not the store of a service.") from None
        except InvalidInput:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done inside is on the disk when it ends, or none of it."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # Where the disk is full SQLite may have done so by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def current(self) -> KeptRound:
        """The last round there is."""
        (row,) = self._read("SELECT * FROM rounds ORDER BY number DESC LIMIT 1")
        return KeptRound(*row)

    def of_batch(self, batch: str) -> KeptRound | None:
        """The round whose mixed messages have this name."""
        rows = self._read("SELECT * FROM rounds WHERE batch = ?", batch)
        return KeptRound(*rows[0]) if rows else None

    def description(self, round_number: int) -> bytes:
        """Of a round, as everybody gets it; empty if there is none."""
        rows = self._read("SELECT description FROM rounds WHERE number = ?", round_number)
        return bytes(rows[0][0]) if rows else b""

    def users(self, round_number: int) -> int:
        """How many reports of a round there are."""
        ((count,),) = self._read("SELECT count(*) FROM reports WHERE round = ?", round_number)
        return int(count)

    def reports(self, round_number: int) -> list[bytes]:
        """Those of a round that were not erased, by number."""
        rows = self._read(
            "SELECT report FROM reports WHERE round = ? AND report IS NOT NULL ORDER BY number",
            round_number,
        )
        return [report for (report,) in rows]

    def is_known(self, report: bytes) -> bool | None:
        """Whether it is there already; None if another one has its number."""
        rows = self._read("SELECT digest FROM reports WHERE number = ?", number_of(report))
        return False if not rows else (True if rows[0][0] == digest_of(report) else None)

    def are_new(self, marks: Sequence[bytes]) -> bool:
        """Whether no piece is there twice, or in another report."""
        found = (self._read("SELECT 1 FROM marks WHERE mark = ?", mark) for mark in marks)
        return len(set(marks)) == len(marks) and not any(found)

    def add(self, round_number: int, report: bytes, marks: Sequence[bytes] = ()) -> None:
        """Keep a new report, and the marks of its pieces."""
        row = (number_of(report), round_number, digest_of(report), report)
        self._connection.execute("INSERT INTO reports VALUES (?, ?, ?, ?)", row)
        self._connection.executemany("INSERT INTO marks VALUES (?)", [(mark,) for mark in marks])

    def mark(
        self,
        round_number: int,
        phase: str,
        *,
        batch: str | None = None,
        result: bytes | None = None,
    ) -> None:
        """Move a round on; what is not given stays as it is."""
        if phase != COLLECTING:
            self._connection.execute("DELETE FROM marks")
        self._connection.execute(
            "UPDATE rounds SET phase = ?, batch = coalesce(?, batch), "
            "result = coalesce(?, result) WHERE number = ?",
            (phase, batch, result, round_number),
        )

    def open_round(self, number: int, description: bytes) -> None:
        """Begin to collect another round."""
        self._connection.execute(
            "INSERT INTO rounds VALUES (?, ?, ?, NULL, NULL)", (number, description, COLLECTING)
        )

    def keep_mixed(self, round_number: int, parts: Sequence[bytes]) -> None:
        """The mixed batch in the place of the reports that it was made of."""
        self._connection.executemany(
            "INSERT INTO parts VALUES (?, ?, ?, 0)",
            [(round_number, part, body) for part, body in enumerate(parts)],
        )
        self._connection.execute(
            "UPDATE reports SET report = NULL WHERE round = ?", (round_number,)
        )

    def unsent(self, round_number: int) -> tuple[int, bytes] | None:
        """The next part of a batch to hand on."""
        rows = self._read(
            "SELECT part, body FROM parts WHERE round = ? AND NOT sent LIMIT 1", round_number
        )
        return rows[0] if rows else None

    def waiting(self) -> int:
        """How many parts were not handed on yet."""
        ((count,),) = self._read("SELECT count(*) FROM parts WHERE NOT sent")
        return int(count)

    def mark_sent(self, round_number: int, part: int | None, sent: bool) -> None:
        """Note that a part has arrived, or that none has (part None)."""
        self._connection.execute(
            "UPDATE parts SET sent = ? WHERE round = ? AND part = coalesce(?, part)",
            (sent, round_number, part),
        )

    def erase_parts(self, round_number: int) -> None:
        """Forget a batch that has arrived."""
        self._connection.execute("DELETE FROM parts WHERE round = ?", (round_number,))

    def tidy(self) -> None:
        """Write the log into the file and empty it: what was erased is in neither of them."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _hold(self) -> None:
        for pragma in (
            "locking_mode = EXCLUSIVE",
            "journal_mode = WAL",
            "synchronous = FULL",
            "secure_delete = ON",
        ):
            self._connection.execute(f"PRAGMA {pragma}")

    def _found(self, role: str, first: str, description: bytes) -> None:
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {SCHEMA}")
        for table in TABLES:
            self._connection.execute(table)
        self._connection.execute("INSERT INTO service VALUES (?, ?)", (role, first))
        self.open_round(1, description)

    def _check(self, role: str, first: str) -> None:
        ((application,),) = self._read("PRAGMA application_id")
        ((version,),) = self._read("PRAGMA user_version")
        objects = self._read("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        if (application, version) != (APPLICATION_ID, SCHEMA) or [sql for (sql,) in objects] != [
            *TABLES
        ]:
            raise InvalidInput(f"{self.path} is not the store of a service of this version.")
        if self._read("SELECT role, first FROM service") != [(role, first)]:
            raise InvalidInput(
                f"{self.path} was begun with another description: a store is for one collection."
            )

    def _read(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()


def number_of(report: bytes) -> bytes:
    """What tells a message or a report from all others."""
    return report[LABEL_BYTES:HEADER_BYTES]


def digest_of(report: bytes) -> bytes:
    """By which a report is known when it is erased."""
    return hashlib.sha256(report).digest()
