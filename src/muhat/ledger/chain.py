"""Reading a chain and refusing one that does not hold together.

Two depths: `read_genesis` and `read_tail` look at the ends, in constant time; `walk` recomputes
everything.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from muhat.errors import InvalidInput
from muhat.ledger import store
from muhat.ledger.balance import Balance
from muhat.ledger.converting import cost
from muhat.ledger.records import ChainBroken, Entry, Genesis, Head
from muhat.privacy import from_dict

OTHER_ROUNDING = 1 - Fraction(1, 10**12)
"""Another version may have rounded what it charged by a unit in the last place less."""


@dataclass(frozen=True)
class Tail:
    """The end of a chain: its head, and what is spent up to there."""

    head: Head
    spent: Balance


def read_genesis(connection: sqlite3.Connection, path: Path) -> Genesis:
    """The first record of a file that is a ledger, and that the second record refers to."""
    store.check_schema(connection, path)
    genesis = Genesis.read(store.at(connection, 0))
    if store.newest(connection).id > 0:
        _check_follows(Entry.read(store.at(connection, 1)), Head(0, genesis.hash), genesis)
    return genesis


def read_tail(connection: sqlite3.Connection, genesis: Genesis, seen: Head) -> Tail:
    """The end of the chain of `genesis`, if it still contains the head that was `seen`."""
    if store.at(connection, 0).hash != genesis.hash:
        raise ChainBroken("it is not the ledger that was opened")
    newest = store.newest(connection)
    if newest.id < seen.count:
        raise ChainBroken(_too_short(newest.id, seen.count))
    if store.at(connection, seen.count).hash != seen.hash:
        raise ChainBroken(f"entry {seen.count} is not the one that was seen before")
    if newest.id == 0:
        return Tail(Head(0, genesis.hash), Balance.zero(genesis.budget.currency))
    entry = Entry.read(newest)
    before = store.at(connection, newest.id - 1)
    _check_follows(entry, Head(before.id, before.hash), genesis)
    return Tail(entry.head, entry.spent)


def walk(
    connection: sqlite3.Connection, genesis: Genesis, anchor: Head | None = None
) -> Iterator[Entry]:
    """Every entry, each verified; at the end, the chain must have passed through the anchor."""
    anchor = anchor or Head(0, genesis.hash)
    head, spent = Head(0, genesis.hash), Balance.zero(genesis.budget.currency)
    budget = Balance.of(genesis.budget)
    for record in store.records(connection):
        if record.id == 0:
            # Recomputed here too: the stored hash alone would hide an edited budget.
            head = Head(0, Genesis.read(record).hash)
            if head.hash != genesis.hash:
                raise ChainBroken("it is not the ledger that was opened")
        else:
            entry = Entry.read(record)
            _check_follows(entry, head, genesis)
            if entry.spent != spent + entry.charged:
                raise ChainBroken(f"the running total of entry {entry.id} is wrong")
            if not entry.spent <= budget:
                raise ChainBroken(f"entry {entry.id} exceeds the budget")
            head, spent = entry.head, entry.spent
            yield entry
        if record.id == anchor.count and record.hash != anchor.hash:
            raise ChainBroken(f"entry {anchor.count} is not the one that the anchor names")
    if head.count < anchor.count:
        raise ChainBroken(_too_short(head.count, anchor.count))


def _check_follows(entry: Entry, head: Head, genesis: Genesis) -> None:
    if entry.id != head.count + 1 or entry.previous != head.hash:
        raise ChainBroken(f"entry {entry.id} does not follow the one before it")
    if entry.charged.kind != genesis.budget.currency:
        raise ChainBroken(f"entry {entry.id} is of another kind than the budget")
    if entry.unit != genesis.unit and not _is_converted(entry, genesis):
        raise ChainBroken(f"entry {entry.id} is about another unit than the budget")


def _is_converted(entry: Entry, genesis: Genesis) -> bool:
    """Whether an entry about another unit was charged what group privacy asks for."""
    try:
        asked, _ = cost(from_dict(entry.promise), entry.unit, genesis.budget.currency, genesis.unit)
    except InvalidInput:
        return False
    pairs = zip(entry.charged.amounts, asked.amounts, strict=True)
    return all(charged >= amount * OTHER_ROUNDING for charged, amount in pairs)


def _too_short(count: int, expected: int) -> str:
    return f"it ends at entry {count}, and entry {expected} has been seen"
