"""A device's own account: what it has answered, word for word, and what it may still answer.

A promise is about one answer to one task. Many tasks, the same question under many names or with
many numbers of people, add up; so a device keeps account of them itself, in a file of its own:

    once        a round is answered once. Whoever asks again gets the same bytes: no number of
                requests tells more than one.
    rounds      those of one task keep its promise together, whatever a server says of them.
    budget      what all tasks of a period promise together, added up exactly. A task counts in
                full in every period in which one of its rounds was answered.
    versions    of a survey, none older than one that was answered.

What an answer costs is written together with the answer, in one durable transaction before it
leaves the device: a crash loses neither. The clock never runs backwards here; one that is set
forward frees what it should not. The file holds answers that in the shuffle model nobody has mixed:
it belongs to its owner alone, and an answer is erased when its survey has ended.
docs/proofs/device-account.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from muhat import _check
from muhat._plain import MALFORMED
from muhat._user_folder import user_folder
from muhat.errors import BudgetExceeded, InvalidInput
from muhat.ledger import store
from muhat.ledger.balance import Balance, from_text, to_text
from muhat.ledger.converting import convert
from muhat.privacy import ApproxZCDP, Privacy, check_promise, from_dict, to_dict
from muhat.protocols.roles.survey import moment_text

if TYPE_CHECKING:
    from muhat.protocols.roles.protocol import Protocol

BUDGET = ApproxZCDP(rho=4.0, delta=1e-5)
"""Of a user who has not chosen another: about eight answers of ε = 1 ..."""

DAYS = 30
"""... in so many days."""

MOST_DAYS = 100_000
SECONDS_A_DAY = 86_400

APPLICATION_ID = int.from_bytes(b"muhd", "big")
SCHEMA = 1
TABLES = (
    "CREATE TABLE account (body TEXT NOT NULL)",
    "CREATE TABLE answers (round TEXT PRIMARY KEY, task TEXT NOT NULL, number INTEGER NOT NULL, "
    "survey TEXT, version INTEGER, expires INTEGER, share TEXT NOT NULL, cost TEXT NOT NULL, "
    "time INTEGER NOT NULL, message BLOB NOT NULL)",
)


@dataclass(frozen=True)
class Answered:
    """One round that a device has answered."""

    round: str
    """The digest of its description."""
    task: str
    number: int
    survey: str | None
    version: int | None
    time: str
    cost: Balance
    """Of the whole task, which its rounds share."""


class DeviceAccount:
    """An account in a file, made by `create`, `open` or `of_user`; nothing is open between calls.

    >>> import tempfile, muhat as mh
    >>> folder = tempfile.TemporaryDirectory()
    >>> account = DeviceAccount.create(f"{folder.name}/a.db", budget=mh.PureDP(2.0), days=7)
    >>> ball, promise = mh.Ball(1.0, dim=1), mh.PureDP(epsilon=1.0)
    >>> asked = [mh.protocols.local_mean(domain=ball, n=n, privacy=promise) for n in (50, 51)]
    >>> first = asked[0].client(account=account).randomize(0.3)
    >>> asked[0].client(account=account).randomize(0.9) == first
    True
    >>> second = asked[1].client(account=account).randomize(0.3)
    >>> account.remaining  # the third would be BudgetExceeded
    0-DP
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, budget: Privacy, days: int) -> None:
        """For `create`, `open` and `of_user`."""
        self.path = path
        self.budget = budget
        self.days = days

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, budget: Privacy = BUDGET, days: int = DAYS
    ) -> DeviceAccount:
        """A new account in a new file; an existing file is InvalidInput and is left alone.

        In any so many days the promises of all that is answered add up to at most the budget.
        """
        check_promise(budget, "the budget")
        made = cls(store.locate(path), budget, _check.count("days", days, most=MOST_DAYS))
        store.new_file(made.path, made._found)
        return made

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> DeviceAccount:
        """The account in an existing file."""
        location = store.locate(path)
        if not location.is_file():
            raise InvalidInput(
                f"There is no account of a device at {location}. Create one: "
                "muhat protocol account create device.db --epsilon 4 --days 30"
            )
        return store.transact(location, lambda found: cls._read(found, location), write=False)

    @classmethod
    def of_user(cls) -> DeviceAccount:
        """That of this user, made with `BUDGET` and `DAYS` where there is none yet.

        `muhat/device/account.db` in $XDG_STATE_HOME, or in ~/.local/state.
        """
        path = path_of_user()
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, store.OWNERS))

        def look(connection: sqlite3.Connection) -> DeviceAccount:
            # Of several processes that find an empty file one is first, and the others read.
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                cls(path, BUDGET, DAYS)._found(connection)
            return cls._read(connection, path)

        return store.transact(path, look, write=True)

    @property
    def spent(self) -> Balance:
        """What the tasks answered in the period that ends now promise together."""
        return store.transact(self.path, self._spent_before, write=False)

    @property
    def remaining(self) -> Balance:
        """What may still be promised now."""
        return Balance.of(self.budget) - self.spent

    @property
    def answered(self) -> list[Answered]:
        """The rounds that were answered, the oldest first."""

        def look(connection: sqlite3.Connection) -> list[Answered]:
            self._check(connection)
            rows = connection.execute(
                "SELECT round, task, number, survey, version, time, cost FROM answers "
                "ORDER BY rowid"
            )
            return [
                Answered(
                    digest, task, number, survey, version, moment_text(when), self._balance(cost)
                )
                for digest, task, number, survey, version, when, cost in rows
            ]

        return store.transact(self.path, look, write=False)

    def answer(
        self,
        protocol: Protocol,
        make: Callable[[], bytes],
        answered: Mapping[str, Fraction] | None = None,
    ) -> bytes:
        """The message that was sent for this round, or what `make` makes, if it may be sent.

        `answered` are rounds of the task that this account does not know: digests and shares.
        """
        cost, _ = convert(protocol.privacy, self.budget.currency)
        survey = protocol.survey

        def within(connection: sqlite3.Connection) -> bytes:
            self._check(connection)
            now = self._now(connection)
            if survey is not None:
                survey.require_open(now)
            sent = connection.execute(
                "SELECT message FROM answers WHERE round = ?", (protocol.digest,)
            ).fetchone()
            if sent is not None:
                return bytes(sent[0])
            self._require_newest(connection, protocol)
            rounds = {**(answered or {}), **self._rounds(connection, protocol.task)}
            protocol.estimator.model.check_shares(protocol, list(rounds.values()))
            self._require_budget(cost, self._spent(connection, now, apart_from=protocol.task))
            message = make()
            self._erase_ended(connection, now)
            connection.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    protocol.digest,
                    protocol.task,
                    protocol.round,
                    None if survey is None else survey.name,
                    None if survey is None else survey.version,
                    None if survey is None else survey.ends,
                    to_text(protocol.randomizer.share),
                    json.dumps([to_text(amount) for amount in cost.amounts]),
                    now,
                    message,
                ),
            )
            return message

        return store.transact(self.path, within, write=True)

    def _found(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        for table in TABLES:
            connection.execute(table)
        body = json.dumps({"budget": to_dict(self.budget), "days": self.days}, sort_keys=True)
        connection.execute("INSERT INTO account VALUES (?)", (body,))

    @classmethod
    def _read(cls, connection: sqlite3.Connection, path: Path) -> DeviceAccount:
        _check_tables(connection, path)
        (body,) = connection.execute("SELECT body FROM account").fetchone()
        try:
            said: dict[str, Any] = json.loads(body)
            return cls(path, from_dict(said["budget"]), _check.count("days", said["days"]))
        except MALFORMED:
            raise InvalidInput(f"{path} is damaged: it does not say what its budget is.") from None

    def _check(self, connection: sqlite3.Connection) -> None:
        found = self._read(connection, self.path)
        if (found.budget, found.days) != (self.budget, self.days):
            raise InvalidInput(f"{self.path} is not the account that was opened.")

    def _now(self, connection: sqlite3.Connection) -> int:
        """The time, or that of the newest answer if the clock was set back since."""
        (newest,) = connection.execute("SELECT max(time) FROM answers").fetchone()
        return max(int(time.time()), newest or 0)

    def _spent_before(self, connection: sqlite3.Connection) -> Balance:
        self._check(connection)
        return self._spent(connection, self._now(connection))

    def _spent(
        self, connection: sqlite3.Connection, now: int, apart_from: str | None = None
    ) -> Balance:
        """What tasks with an answer in the last days cost, each once."""
        rows = connection.execute(
            "SELECT DISTINCT task, cost FROM answers WHERE time > ? AND task IS NOT ?",
            (now - self.days * SECONDS_A_DAY, apart_from),
        )
        return sum((self._balance(cost) for _, cost in rows), Balance.zero(self.budget.currency))

    def _balance(self, cost: str) -> Balance:
        return Balance(self.budget.currency, tuple(map(from_text, json.loads(cost))))

    @staticmethod
    def _rounds(connection: sqlite3.Connection, task: str) -> dict[str, Fraction]:
        rows = connection.execute("SELECT round, share FROM answers WHERE task = ?", (task,))
        return {digest: from_text(share) for digest, share in rows}

    @staticmethod
    def _require_newest(connection: sqlite3.Connection, protocol: Protocol) -> None:
        """Refuse a survey of which a newer version was answered."""
        if protocol.survey is None:
            return
        name, version = protocol.survey.name, protocol.survey.version
        (newest,) = connection.execute(
            "SELECT max(version) FROM answers WHERE survey = ?", (name,)
        ).fetchone()
        if newest is not None and version < newest:
            raise InvalidInput(
                f"is {version}, and version {newest} of the survey was answered already",
                parameter="version",
            )

    def _require_budget(self, cost: Balance, spent: Balance) -> None:
        budget = Balance.of(self.budget)
        if not spent + cost <= budget:
            raise BudgetExceeded(
                f"the answer costs {cost}, and {budget - spent} of {budget} for {self.days} days "
                f"is left in {self.path}; nothing was answered."
            )

    @staticmethod
    def _erase_ended(connection: sqlite3.Connection, now: int) -> None:
        """That they were given, and what they cost, stays."""
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("UPDATE answers SET message = x'' WHERE expires <= ?", (now,))


def path_of_user() -> Path:
    """Where this user's own account is."""
    hint = "Name a file: account=…, made by DeviceAccount.create, or account=False to keep none."
    return user_folder("device", "a device keeps its account", hint) / "account.db"


AccountLike = DeviceAccount | str | os.PathLike[str] | Literal[False] | None
"""An account, its file, None for the user's own, or False for none."""


def as_account(value: AccountLike) -> DeviceAccount | None:
    """The account that a device was given."""
    if value is None:
        return DeviceAccount.of_user()
    if value is False or isinstance(value, DeviceAccount):
        return value or None
    return DeviceAccount.open(value)


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    objects = connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    ).fetchall()
    if application != APPLICATION_ID:
        raise InvalidInput(f"{path} is not the account of a device.")
    if version > SCHEMA:
        raise InvalidInput(f"{path} was written by a newer muhat; upgrade muhat to use it.")
    # A trigger or a view could change answers behind the account's back.
    if version < SCHEMA or objects != [(table,) for table in TABLES]:
        raise InvalidInput(f"{path} is damaged: its tables are not those of a device's account.")
