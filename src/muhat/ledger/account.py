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
import html
import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from muhat.errors import BudgetExceeded, InvalidInput, MuhatError
from muhat.ledger import chain, store
from muhat.ledger.balance import Balance
from muhat.ledger.converting import cost, unit_refusal
from muhat.ledger.display import account_html, account_text
from muhat.ledger.records import Entry, Genesis, Head, now
from muhat.ledger.units import Unit
from muhat.privacy import Neighbors, Privacy, check_promise, to_dict

__all__ = ["Balance", "Entry", "Head", "Ledger", "as_ledger"]

Result = TypeVar("Result")

LONGEST_TEXT = 10_000


class Ledger:
    """An account of privacy loss in a file, made by `Ledger.create` or `Ledger.open`.

    The budget bounds the sum of all charges, whatever they were chosen from: the `amounts` of
    promises add up under adaptive composition as long as the sum stays within the budget. A
    charge of another kind is converted only by a proved implication, which its entry names, and
    refused otherwise.

    All charges are about the same unit, fixed at creation: which records of a person may change
    (`contributions`, how many) and how (`neighbors`). A charge about another unit is refused, or,
    from an object opened with convert=True, paid by what group privacy asks for it, as its entry
    says.

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
        self._path = path
        self._genesis = genesis
        self._seen = seen
        self._convert = convert
        self._closed = False
        self._charged = False

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        budget: Privacy,
        neighbors: Neighbors | str,
        contributions: int = 1,
    ) -> Ledger:
        """A new account in a new file; an existing file is InvalidInput and is left alone.

        The budget is about all records of a person, of which there are at most `contributions`.
        """
        check_promise(budget, "the budget")
        location = store.locate(path)
        record = Genesis.seal(budget, Unit.of(neighbors, contributions))
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
    def path(self) -> Path:
        """The file, as an absolute path."""
        return self._path

    @property
    def budget(self) -> Privacy:
        """The promise that all charges together must keep."""
        return self._genesis.budget

    @property
    def neighbors(self) -> Neighbors:
        """The neighbour relation of the budget."""
        return self._genesis.unit.neighbors

    @property
    def contributions(self) -> int:
        """The most records of a person, whose loss together the budget bounds."""
        return self._genesis.unit.contributions

    @property
    def charged(self) -> bool:
        """Whether a charge was made through this object, so that failing costs now."""
        return self._charged

    @property
    def spent(self) -> Balance:
        """The exact sum of all charges so far, those of other processes included."""
        return self._read(self._tail).spent

    @property
    def remaining(self) -> Balance:
        """The budget less what is spent."""
        return Balance.of(self.budget) - self.spent

    @property
    def head(self) -> Head:
        """The count and hash at the end of the chain: an anchor to keep elsewhere."""
        return self._read(self._tail).head

    def entries(self) -> list[Entry]:
        """Every charge, oldest first; the chain is verified on the way."""

        def walk(connection: sqlite3.Connection) -> list[Entry]:
            self._tail(connection)
            return list(chain.walk(connection, self._genesis, self._seen))

        return self._read(walk)

    def verify(self) -> Head:
        """Check every hash, link and running total, and return the head.

        Raises InvalidInput at the first thing that does not fit. An old copy put back or a
        chain computed anew passes: only an anchor (`Ledger.open(expect_head=…)`) shows that.
        """

        def walk(connection: sqlite3.Connection) -> Head:
            tail = self._tail(connection)
            collections.deque(chain.walk(connection, self._genesis, self._seen), maxlen=0)
            return tail.head

        return self._read(walk)

    def approve(
        self, promise: Privacy, *, neighbors: Neighbors | str, contributions: int = 1
    ) -> Balance:
        """What a charge would cost, if it would be accepted now; nothing is written.

        Every release asks this before it looks at anything: kind, unit and budget are public, so a
        refusal here says nothing about the data, not even how many records there are.
        """
        amount, _ = self._cost(promise, Unit.of(neighbors, contributions))
        self._require(amount, self._read(self._tail).spent)
        return amount

    def _cost(self, promise: Privacy, unit: Unit) -> tuple[Balance, str]:
        self._check_open()
        check_promise(promise, "what is charged")
        account = self._genesis.unit
        if unit != account and (not self._convert or unit.steps_to(account) is None):
            raise unit_refusal(unit, account, self._path)
        return cost(promise, unit, self.budget.currency, account)

    def _require(self, amount: Balance, spent: Balance) -> None:
        if not spent + amount <= self.budget:
            budget = Balance.of(self.budget)
            raise BudgetExceeded(
                f"the release costs {amount}, and {budget - spent} of {budget} is left "
                f"in {self._path}; nothing was spent."
            )

    def charge(
        self,
        promise: Privacy,
        *,
        neighbors: Neighbors | str,
        contributions: int = 1,
        plan_digest: str,
        note: str = "",
    ) -> Entry:
        """Pay for a release that has not yet read its data.

        When this returns, the charge is on the disk and stays, whatever happens next; the
        entry's `head` is the anchor for the release. Every call charges, repetitions too.
        BudgetExceeded or InvalidInput mean that nothing may be released; both are decided by
        the promises alone, so a refusal says nothing about the data.
        """
        unit = Unit.of(neighbors, contributions)
        amount, conversion = self._cost(promise, unit)
        for name, text in (("plan_digest", plan_digest), ("note", note)):
            if not isinstance(text, str) or len(text) > LONGEST_TEXT:
                raise InvalidInput(
                    f"must be a text of at most {LONGEST_TEXT} characters", parameter=name
                )
        store.check_file(self._path)

        def append(connection: sqlite3.Connection) -> Entry:
            tail = self._tail(connection)
            self._require(amount, tail.spent)
            draft = Entry(
                id=tail.head.count + 1,
                time=now(),
                promise=to_dict(promise),
                charged=amount,
                conversion=conversion,
                spent=tail.spent + amount,
                neighbors=unit.neighbors,
                contributions=unit.contributions,
                plan_digest=plan_digest,
                note=note,
                previous=tail.head.hash,
                hash="",
            )
            record = draft.seal()
            store.append(connection, record)
            return replace(draft, hash=record.hash)

        entry = store.transact(self._path, append, write=True)
        self._seen = entry.head
        self._charged = True
        return entry

    def _read(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        self._check_open()
        store.check_file(self._path)
        return store.transact(self._path, operation, write=False)

    def _tail(self, connection: sqlite3.Connection) -> chain.Tail:
        store.check_schema(connection, self._path)
        return chain.read_tail(connection, self._genesis, self._seen)

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInput(f"the ledger {self._path} is closed; open it again.")

    def close(self) -> None:
        """Refuse any further use; nothing else is held that would need closing."""
        self._closed = True

    def __enter__(self) -> Ledger:
        self._check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        budget = f"{Balance.of(self.budget)!r}, {self.neighbors.value}"
        if self.contributions > 1:
            budget += f", {self.contributions} records a person"
        if self._closed:
            return f"<Ledger {str(self._path)!r}: {budget}, closed>"
        try:
            tail = self._read(self._tail)
        except MuhatError:
            return f"<Ledger {str(self._path)!r}: {budget}, cannot be read>"
        return (
            f"<Ledger {str(self._path)!r}: {budget}, {tail.spent!r} in {tail.head.count} charges>"
        )

    def describe(self) -> str:
        """The budget, the newest charges, what is spent and what is left."""
        return account_text(self)

    def _repr_html_(self) -> str:
        try:
            return account_html(self)
        except MuhatError:  # closed, or not to be read
            return f"<p>{html.escape(repr(self))}</p>"


LedgerLike = Ledger | str | os.PathLike[str] | None


def as_ledger(value: LedgerLike) -> Ledger | None:
    """The ledger that a releasing call was given: an object, a path, or none."""
    if value is None or isinstance(value, Ledger):
        return value
    return Ledger.open(value)
