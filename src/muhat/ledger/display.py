"""An account as people read it, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muhat._text import joined, page, table
from muhat.ledger.balance import Balance
from muhat.ledger.entries import Entry, Grant
from muhat.ledger.teams import Share, Standing
from muhat.privacy import cautions, from_dict

if TYPE_CHECKING:
    from muhat.ledger.statement import Statement

HEADINGS = [
    "entry",
    "time (UTC)",
    "team",
    "asked",
    "about",
    "charged",
    "plan",
    "specification",
    "purpose",
    "note",
]
TEXTS = {"purpose", "note"}
"""Headings of columns that may be long."""

ON_DEMAND = {"team", "specification", "purpose"}
"""Headings that are left out if nothing stands below them."""

RIGHT = {0}
"""The column of numbers: which entry it is."""

SHOWN = 20
LONGEST_NOTE = 200
LONGEST_DIGEST = 8


def entry_rows(links: Sequence[Entry | Grant]) -> list[list[str]]:
    """The headings, then what every entry says, a cell a heading."""
    rows = [_cells(link) for link in links]
    shown = [name for name in HEADINGS if name not in ON_DEMAND or any(row[name] for row in rows)]
    return [shown, *([row[name] for name in shown] for row in rows)]


def _cells(link: Entry | Grant) -> dict[str, str]:
    said = {
        "entry": str(link.id),
        "time (UTC)": link.time[:16].replace("T", " "),
        "team": link.team or "",
        "purpose": (link.purpose or "")[:LONGEST_NOTE],
    }
    if isinstance(link, Grant):
        about = "grant" if link.promise else "grant withdrawn"
        said |= {"asked": f"{link.granted:.6g}", "about": about}
        return dict.fromkeys(HEADINGS, "") | said
    enter = f", {link.contributions} enter" if link.unit_column is not None else ""
    return said | {
        "asked": f"{Balance.of(from_dict(link.promise)):.6g}",
        "about": f"{link.unit}{enter}" + ("" if link.contributions else " (not stated)"),
        "charged": f"{link.charged:.6g}",
        "plan": link.plan_digest[:LONGEST_DIGEST],
        "specification": (link.specification or "")[:LONGEST_DIGEST],
        "note": link.note[:LONGEST_NOTE],
    }


def shares_of(standing: Standing) -> list[tuple[str | None, Share]]:
    """The shares of teams, then None with everybody else's; nothing before the first grant."""
    if not standing.shares:
        return []
    return [*sorted(standing.shares.items()), (None, standing.ungranted)]


def protects(account: Statement) -> str:
    """Whose loss the budget bounds."""
    return f"neighbors {account.neighbors.value}{account.unit.person}"


def account_text(account: Statement) -> str:
    """The budget, the newest entries, and what is left, for a terminal."""
    title, rows, notes = _shown(account)
    return joined([title, "", *table(rows, RIGHT), "", *notes])


def account_html(account: Statement) -> str:
    """The same for a notebook."""
    return page(*_shown(account), RIGHT)


def _shown(account: Statement) -> tuple[str, list[list[str]], list[str]]:
    links, standing = account.look()
    budget, spent = standing.budget, standing.spent
    notes = [f"Caution: {sentence}" for sentence in cautions(account.budget)]
    if len(links) > SHOWN:
        notes.append(f"{len(links) - SHOWN} earlier entries are not shown.")
    for team, share in shares_of(standing):
        whose = "Without a team" if team is None else f"Team {team}"
        used = f"spent {share.spent:.6g} of {share.granted:.6g}"
        notes.append(f"{whose}: {used}; {share.remaining:.6g} is left.")
    notes.append(f"Spent {spent:.6g} of {budget:.6g}; {budget - spent:.6g} is left.")
    title = f"Ledger {account.path} · {budget:.6g}, {protects(account)}"
    return title, entry_rows(links[-SHOWN:]), notes
