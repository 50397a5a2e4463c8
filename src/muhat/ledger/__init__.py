"""What has been spent, and what is left; survives crashes and racing processes."""

from __future__ import annotations

from muhat.ledger.account import Ledger, LedgerLike, as_ledger
from muhat.ledger.balance import Balance
from muhat.ledger.entries import Entry, Grant
from muhat.ledger.records import Head
from muhat.ledger.teams import Share

__all__ = [
    "Balance",
    "Entry",
    "Grant",
    "Head",
    "Ledger",
    "LedgerLike",
    "Share",
    "as_ledger",
]
