"""What has been spent, and what is left; survives crashes and racing processes."""

from __future__ import annotations

from muhat.ledger.account import Ledger, LedgerLike, as_ledger
from muhat.ledger.balance import Balance
from muhat.ledger.records import Entry, Head

__all__ = [
    "Balance",
    "Entry",
    "Head",
    "Ledger",
    "LedgerLike",
    "as_ledger",
]
