"""The account: what has been spent, and what is left.

A ledger is one SQLite file. A release charges it first and reads the data afterwards, so a
crash may waste budget and never refunds any. Amounts are exact rationals: ten charges of 0.1
fill a budget of 1, and the eleventh is refused. Processes and threads that race are served
one after the other. `docs/proofs/ledger.md` says why this is enough.

What the file alone cannot tell. Each entry contains the hash of the one before it, which
exposes accidents and careless edits. Whoever can write the file can also recompute every
hash, cut off the newest entries, or put back yesterday's copy; that is visible only against
something kept elsewhere. Every release carries the ledger's head for this purpose: give it to
`Ledger.open(path, expect_head=…)` or `muhat ledger verify --release r.json`. Charges newer
than the newest head at hand can be removed without a trace, and two copies of one ledger can
be spent side by side.
"""

from __future__ import annotations

import collections
import copy
import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from muhat.errors import InvalidInput
from muhat.ledger import chain, store
from muhat.ledger.balance import Balance
from muhat.ledger.converting import convert, cost, unit_refusal
from muhat.ledger.entries import Entry, Grant
from muhat.ledger.records import Genesis, Head, now, stated
from muhat.ledger.statement import Statement
from muhat.ledger.teams import Behalf, checked_name
from muhat.ledger.units import Unit
from muhat.privacy import Neighbors, Privacy, check_promise, to_dict

__all__ = ["Balance", "Entry", "Grant", "Head", "Ledger", "as_ledger"]

Written = TypeVar("Written", Entry, Grant)

LONGEST_TEXT = 10_000


class Ledger(Statement):
    """An account of privacy loss in a file, made by `Ledger.create` or `Ledger.open`.

    The budget bounds the sum of all charges, whatever they were chosen from: the `amounts` of
    promises add up under adaptive composition as long as the sum stays within the budget. A
    charge of another kind is converted only by a proved implication, which its entry names, and
    refused otherwise.

    All charges are about the same unit, fixed at creation: which records of a person may change
    (`contributions`, how many, or all that a column `unit` says are theirs) and how (`neighbors`).
    A charge about another unit is refused, or, from an object opened with convert=True, paid by
    what group privacy asks for it, as its entry says.

    Teams share the one budget: `grant` sets a part of it aside for a team, and `for_team` is the
    account that charges on its behalf, wherever a ledger is taken.

    The object holds no open file: it may be shared between threads, survive a fork and be
    sent to another process. It remembers the newest head it has seen and refuses a file that
    no longer contains it.

    >>> import tempfile, muhat
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(
    ...     f"{folder.name}/budget.db", budget=muhat.ZCDP(rho=1), neighbors="substitute"
    ... )
    >>> entry = ledger.charge(muhat.ZCDP(rho=0.1), neighbors="substitute", plan_digest="ab12")
    >>> ledger.spent, ledger.remaining, ledger.head == entry.head
    (0.1-zCDP, 0.9-zCDP, True)
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, genesis: Genesis, seen: Head, *, convert: bool = False) -> None:
        """For `create` and `open`."""
        super().__init__(path, genesis, seen)
        self._convert = convert
        self._behalf = Behalf()
        # Shared with what `for_team` makes of it: the newest charge, if there was one.
        self._paid: list[Head] = []

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        budget: Privacy,
        neighbors: Neighbors | str,
        contributions: int = 1,
        unit: str | None = None,
    ) -> Ledger:
        """A new account in a new file; an existing file is InvalidInput and is left alone.

        The budget is about all records of a person, of which there are at most `contributions`;
        or of whoever has one value of the column `unit`, however many there are. The file is
        readable and writable by its owner alone.
        """
        check_promise(budget, "the budget")
        location = store.locate(path)
        about = Unit.of(neighbors, contributions, unit)
        if unit is not None and about.contributions > 1:
            raise InvalidInput(
                "must be left out where a unit is named: all of its records are protected",
                parameter="contributions",
                value=str(about.contributions),
            )
        record = Genesis.seal(budget, about)
        store.create(location, record)
        return cls(location, Genesis.read(record), Head(0, record.hash))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        expect_head: Head | str | Mapping[str, Any] | None = None,
        convert: bool = False,
    ) -> Ledger:
        """The account in an existing file, checked at both ends.

        `convert` allows charges about other units, at the price of group privacy.

        With `expect_head`, the head that an earlier release carries, the whole chain is
        verified and must pass through that head: a file that was edited, truncated or rolled
        back to before it is InvalidInput.
        """
        location = store.locate(path)
        anchor = None if expect_head is None else Head.parse(expect_head)
        store.check_file(location)

        def look(connection: sqlite3.Connection) -> tuple[Genesis, Head]:
            genesis = chain.read_genesis(connection, location)
            tail = chain.read_tail(connection, genesis, Head(0, genesis.hash))
            if anchor is not None:
                collections.deque(chain.walk(connection, genesis, anchor), maxlen=0)
            return genesis, tail.head

        genesis, head = store.transact(location, look, write=False)
        return cls(location, genesis, head, convert=convert)

    @property
    def team(self) -> str | None:
        """On whose behalf this object charges; see `for_team`."""
        return self._behalf.team

    @property
    def charged(self) -> bool:
        """Whether a charge was made through this object, so that failing costs now.

        An account that `for_team` makes of it is the same in this.
        """
        return bool(self._paid)

    def for_team(
        self,
        team: str | None = None,
        *,
        note: str | None = None,
        specification: str | None = None,
    ) -> Ledger:
        """The same account, charged on behalf of a team: accepted wherever a ledger is.

        Its entries say the team, the `note` (what it is for) and the digest of a specification. The
        team pays from its grant, once there are grants; what is not said is as it was.

        >>> import numpy, tempfile, muhat
        >>> folder = tempfile.TemporaryDirectory()
        >>> path, budget = f"{folder.name}/budget.db", muhat.ZCDP(rho=1)
        >>> ledger = Ledger.create(path, budget=budget, neighbors="substitute")
        >>> ledger.grant("health", muhat.ZCDP(rho=0.3)).granted
        0.3-zCDP
        >>> ours = ledger.for_team("health", note="yearly report")
        >>> ages, domain = numpy.arange(20, 60), muhat.Box([0], [100])
        >>> release = muhat.mean(ages, domain=domain, privacy=muhat.ZCDP(rho=0.1), ledger=ours)
        >>> ledger.remaining_of("health"), ledger.remaining_of(None)
        (0.2-zCDP, 0.7-zCDP)
        >>> folder.cleanup()
        """
        said = stated(
            team=None if team is None else checked_name(team),
            purpose=note,
            specification=specification,
        )
        _check_texts(**stated(note=note, specification=specification))
        account = copy.copy(self)
        account._behalf = replace(self._behalf, **said)
        return account

    def grant(self, team: str, budget: Privacy, *, note: str | None = None) -> Grant:
        """Set a part of the budget aside for a team: it may spend so much, and nobody else.

        Another grant to the same team takes the place of the first: it may be more or less, but not
        less than the team has spent. All grants together, and what was spent without one, must fit
        into the budget: else it is BudgetExceeded. From the first grant on, a charge is that of a
        team with a grant, or of no team and paid from what is not granted.
        """
        check_promise(budget, "the grant")
        limit, conversion = convert(budget, self.budget.currency)
        return self._grant(team, limit, to_dict(budget), conversion, note)

    def withdraw(self, team: str, *, note: str | None = None) -> Grant:
        """Lower a team's grant to what it has spent, so that it may spend no more."""
        return self._grant(team, None, None, "what the team has spent", note)

    def _grant(
        self,
        team: str,
        limit: Balance | None,
        promise: dict[str, Any] | None,
        conversion: str,
        note: str | None,
    ) -> Grant:
        name = checked_name(team)
        _check_texts(**stated(note=note))

        def draft(connection: sqlite3.Connection, tail: chain.Tail) -> Grant:
            # What the team had spent before anything was granted to it counts, too.
            links = list(chain.walk(connection, self._genesis, self._seen))
            charges = [link for link in links if isinstance(link, Entry) and link.team == name]
            spent = sum((entry.charged for entry in charges), Balance.zero(self.budget.currency))
            standing = tail.standing.granting(name, limit, spent, self._path)
            return Grant(
                id=tail.head.count + 1,
                time=now(),
                team=name,
                purpose=note,
                promise=promise,
                granted=standing.shares[name].granted,
                conversion=conversion,
                spent=standing.spent,
                shares=standing.shares,
                previous=tail.head.hash,
                hash="",
            )

        return self._append(draft)

    def approve(
        self,
        promise: Privacy,
        *,
        neighbors: Neighbors | str,
        contributions: int = 1,
        unit: str | None = None,
        team: str | None = None,
    ) -> Balance:
        """What a charge would cost, if it would be accepted now; nothing is written.

        Every release asks this before it looks at anything: kind, unit and budget are public, so a
        refusal here says nothing about the data, not even how many records there are.
        """
        amount, _ = self._cost(promise, Unit.of(neighbors, contributions, unit))
        self.standing.require(amount, self._paying(team), self._path)
        return amount

    def _cost(self, promise: Privacy, unit: Unit) -> tuple[Balance, str]:
        self._check_open()
        check_promise(promise, "what is charged")
        account = self._genesis.unit
        allowed = unit.is_charged_to(account) or self._convert
        if not allowed or unit.steps_to(account) is None:
            raise unit_refusal(unit, account, self._path)
        return cost(promise, unit, self.budget.currency, account)

    def _paying(self, team: str | None) -> str | None:
        return self._behalf.team if team is None else checked_name(team)

    def charge(
        self,
        promise: Privacy,
        *,
        neighbors: Neighbors | str,
        contributions: int = 1,
        unit: str | None = None,
        plan_digest: str,
        note: str = "",
        team: str | None = None,
        purpose: str | None = None,
        specification: str | None = None,
    ) -> Entry:
        """Pay for a release that has not yet read its data.

        When this returns, the charge is on the disk and stays, whatever happens next; the
        entry's `head` is the anchor for the release. Every call charges, repetitions too.
        BudgetExceeded or InvalidInput mean that nothing may be released; both are decided by
        the promises alone, so a refusal says nothing about the data.

        `note` says what is released, `team` who pays, `purpose` what it is for, `specification`
        is the digest of the file that asks for it; left out, they are those of `for_team`.
        """
        about = Unit.of(neighbors, contributions, unit)
        amount, conversion = self._cost(promise, about)
        said = stated(purpose=purpose, specification=specification)
        _check_texts(plan_digest=plan_digest, note=note, **said)
        behalf = replace(self._behalf, team=self._paying(team), **said)

        def draft(connection: sqlite3.Connection, tail: chain.Tail) -> Entry:
            tail.standing.require(amount, behalf.team, self._path)
            standing = tail.standing.charged(behalf.team, amount)
            return Entry(
                id=tail.head.count + 1,
                time=now(),
                promise=to_dict(promise),
                charged=amount,
                conversion=conversion,
                spent=standing.spent,
                shares=standing.shares,
                neighbors=about.neighbors,
                contributions=about.contributions,
                unit_column=about.column,
                plan_digest=plan_digest,
                note=note,
                team=behalf.team,
                purpose=behalf.purpose,
                specification=behalf.specification,
                previous=tail.head.hash,
                hash="",
            )

        entry = self._append(draft)
        self._paid[:] = [entry.head]
        return entry

    def _append(self, draft: Callable[[sqlite3.Connection, chain.Tail], Written]) -> Written:
        """Write what is drafted for the end of the chain, in one transaction."""
        self._check_open()
        store.check_file(self._path)

        def append(connection: sqlite3.Connection) -> Written:
            drafted = draft(connection, self._tail(connection))
            record = drafted.seal()
            store.append(connection, record)
            return replace(drafted, hash=record.hash)

        written = store.transact(self._path, append, write=True)
        self._seen = written.head
        return written


def _check_texts(**texts: object) -> None:
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise InvalidInput(
                f"must be a text of at most {LONGEST_TEXT} characters", parameter=name
            )


LedgerLike = Ledger | str | os.PathLike[str] | None


def as_ledger(value: LedgerLike) -> Ledger | None:
    """The ledger that a releasing call was given: an object, a path, or none."""
    if value is None or isinstance(value, Ledger):
        return value
    return Ledger.open(value)
