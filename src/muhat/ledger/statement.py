"""What can be read off an account: budget, unit, charges, grants, what is spent and left."""

from __future__ import annotations

import collections
import html
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from muhat.errors import InvalidInput, MuhatError
from muhat.ledger import chain, store
from muhat.ledger.balance import Balance
from muhat.ledger.display import account_html, account_text
from muhat.ledger.entries import Entry, Grant
from muhat.ledger.records import Genesis, Head
from muhat.ledger.teams import Share, Standing, checked_name
from muhat.ledger.units import Unit
from muhat.privacy import Neighbors, Privacy

Result = TypeVar("Result")


class Statement:
    """The side of a ledger that writes nothing; every look opens the file and closes it again."""

    def __init__(self, path: Path, genesis: Genesis, seen: Head) -> None:
        self._path = path
        self._genesis = genesis
        self._seen = seen
        self._closed = False

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
    def unit(self) -> Unit:
        """Whose loss the budget bounds: which records may change, and how."""
        return self._genesis.unit

    @property
    def spent(self) -> Balance:
        """The exact sum of all charges so far, those of other processes included."""
        return self.standing.spent

    @property
    def remaining(self) -> Balance:
        """The budget less what is spent, by whomever."""
        return Balance.of(self.budget) - self.spent

    @property
    def grants(self) -> dict[str, Share]:
        """What every team was granted, has spent of it, and has left."""
        return dict(self.standing.shares)

    def remaining_of(self, team: str | None) -> Balance:
        """What a team has left; with None, what is left for charges without a team.

        As long as nothing is granted to anybody, that is what remains for all of them together.
        """
        return self.standing.share_of(None if team is None else checked_name(team)).remaining

    @property
    def standing(self) -> Standing:
        """The budget, what is spent and what teams have, all from one look at the file."""
        return self._read(self._tail).standing

    @property
    def head(self) -> Head:
        """The count and hash at the end of the chain: an anchor to keep elsewhere."""
        return self._read(self._tail).head

    def entries(self) -> list[Entry]:
        """Every charge, oldest first; the chain is verified on the way."""
        return [link for link in self.history() if isinstance(link, Entry)]

    def history(self) -> list[Entry | Grant]:
        """Every charge and every grant, oldest first; the chain is verified on the way."""
        return self.look()[0]

    def look(self) -> tuple[list[Entry | Grant], Standing]:
        """The history and where it ends, from one look: another process may charge meanwhile."""

        def walk(connection: sqlite3.Connection) -> tuple[list[Entry | Grant], Standing]:
            standing = self._tail(connection).standing
            return list(chain.walk(connection, self._genesis, self._seen)), standing

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

    def __enter__(self) -> Self:
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
        budget = f"{Balance.of(self.budget)!r}, {self.neighbors.value}{self.unit.person}"
        if self._closed:
            return f"<Ledger {str(self._path)!r}: {budget}, closed>"
        try:
            tail = self._read(self._tail)
        except MuhatError:
            return f"<Ledger {str(self._path)!r}: {budget}, cannot be read>"
        return (
            f"<Ledger {str(self._path)!r}: {budget}, {tail.standing.spent!r} in "
            f"{tail.head.count} {'entry' if tail.head.count == 1 else 'entries'}>"
        )

    def describe(self) -> str:
        """The budget, the newest charges, what is spent and what is left."""
        return account_text(self)

    def _repr_html_(self) -> str:
        try:
            return account_html(self)
        except MuhatError:  # closed, or not to be read
            return f"<p>{html.escape(repr(self))}</p>"
