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
from muhat.ledger.entries import Entry, Grant, read_link
from muhat.ledger.records import ChainBroken, Genesis, Head
from muhat.ledger.teams import Share, Standing
from muhat.privacy import from_dict

OTHER_ROUNDING = 1 - Fraction(1, 10**12)
"""Another version may have rounded what it charged by a unit in the last place less."""


@dataclass(frozen=True)
class Tail:
    """The end of a chain: its head, and how the account stands there."""

    head: Head
    standing: Standing


def read_genesis(connection: sqlite3.Connection, path: Path) -> Genesis:
    """The first record of a file that is a ledger, and that the second record refers to."""
    store.check_schema(connection, path)
    genesis = Genesis.read(store.at(connection, 0))
    if store.newest(connection).id > 0:
        _check_follows(read_link(store.at(connection, 1)), Head(0, genesis.hash), genesis)
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
    budget = Balance.of(genesis.budget)
    if newest.id == 0:
        return Tail(Head(0, genesis.hash), Standing.of_new(budget))
    link = read_link(newest)
    before = store.at(connection, newest.id - 1)
    _check_follows(link, Head(before.id, before.hash), genesis)
    return Tail(link.head, Standing(budget, link.spent, link.shares))


def walk(
    connection: sqlite3.Connection, genesis: Genesis, anchor: Head | None = None
) -> Iterator[Entry | Grant]:
    """Every charge and grant, each verified; in the end the chain must have passed the anchor."""
    anchor = anchor or Head(0, genesis.hash)
    head, standing = Head(0, genesis.hash), Standing.of_new(Balance.of(genesis.budget))
    nothing = Balance.zero(genesis.budget.currency)
    spent_by: dict[str | None, Balance] = {}
    for record in store.records(connection):
        if record.id == 0:
            # Recomputed here too: the stored hash alone would hide an edited budget.
            head = Head(0, Genesis.read(record).hash)
            if head.hash != genesis.hash:
                raise ChainBroken("it is not the ledger that was opened")
        else:
            link = read_link(record)
            _check_follows(link, head, genesis)
            before = spent_by.get(link.team, nothing)
            if isinstance(link, Grant):
                standing = standing.granted(link.team, Share(link.granted, before))
            else:
                if standing.shares and link.team is not None and link.team not in standing.shares:
                    raise ChainBroken(f"entry {link.id} is of a team without a grant")
                standing = standing.charged(link.team, link.charged)
                spent_by[link.team] = before + link.charged
            if link.spent != standing.spent or link.shares != standing.shares:
                raise ChainBroken(f"the running total of entry {link.id} is wrong")
            if standing.is_overdrawn:
                raise ChainBroken(f"entry {link.id} exceeds the budget")
            head = link.head
            yield link
        if record.id == anchor.count and record.hash != anchor.hash:
            raise ChainBroken(f"entry {anchor.count} is not the one that the anchor names")
    if head.count < anchor.count:
        raise ChainBroken(_too_short(head.count, anchor.count))


def _check_follows(link: Entry | Grant, head: Head, genesis: Genesis) -> None:
    if link.id != head.count + 1 or link.previous != head.hash:
        raise ChainBroken(f"entry {link.id} does not follow the one before it")
    if link.spent.kind != genesis.budget.currency:
        raise ChainBroken(f"entry {link.id} is of another kind than the budget")
    if isinstance(link, Entry) and not (
        link.unit.is_same(genesis.unit) or _is_converted(link, genesis)
    ):
        raise ChainBroken(f"entry {link.id} is about another unit than the budget")


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
