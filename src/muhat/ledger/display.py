"""An account as people read it, in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined, page, table
from muhat.ledger.balance import Balance
from muhat.ledger.records import Entry
from muhat.privacy import cautions, from_dict

if TYPE_CHECKING:
    from muhat.ledger.account import Ledger

HEADINGS = ["entry", "time (UTC)", "asked", "about", "charged", "plan", "note"]
RIGHT = {0}
"""The column of numbers: which entry it is."""

SHOWN = 20
LONGEST_NOTE = 200


def entry_cells(entry: Entry) -> list[str]:
    """What an entry says, a cell a heading."""
    return [
        str(entry.id),
        entry.time[:16].replace("T", " "),
        f"{Balance.of(from_dict(entry.promise)):.6g}",
        str(entry.unit) + ("" if entry.contributions else " (not stated)"),
        f"{entry.charged:.6g}",
        entry.plan_digest[:8],
        entry.note[:LONGEST_NOTE],
    ]


def protects(account: Ledger) -> str:
    """Whose loss the budget bounds."""
    person = "" if account.contributions == 1 else f", {account.contributions} records a person"
    return f"neighbors {account.neighbors.value}{person}"


def account_text(account: Ledger) -> str:
    """The budget, the newest entries, and what is left, for a terminal."""
    title, rows, notes = _shown(account)
    return joined([title, "", *table(rows, RIGHT), "", *notes])


def account_html(account: Ledger) -> str:
    """The same for a notebook."""
    return page(*_shown(account), RIGHT)


def _shown(account: Ledger) -> tuple[str, list[list[str]], list[str]]:
    entries = account.entries()
    budget = Balance.of(account.budget)
    # All from one look at the file: another process may be charging it meanwhile.
    spent = entries[-1].spent if entries else Balance.zero(account.budget.currency)
    notes = [f"Caution: {sentence}" for sentence in cautions(account.budget)]
    if len(entries) > SHOWN:
        notes.append(f"{len(entries) - SHOWN} earlier entries are not shown.")
    notes.append(f"Spent {spent:.6g} of {budget:.6g}; {budget - spent:.6g} is left.")
    rows = [HEADINGS, *map(entry_cells, entries[-SHOWN:])]
    return f"Ledger {account.path} · {budget:.6g}, {protects(account)}", rows, notes
