"""What has been spent, and what is left; survives crashes and racing processes."""

from __future__ import annotations

from muhat.ledger.account import Ledger, as_ledger
from muhat.ledger.balance import Balance
from muhat.ledger.charging import Approval, LedgerLike, approved, charged
from muhat.ledger.records import Entry, Head

__all__ = [
    "Approval",
    "Balance",
    "Entry",
    "Head",
    "Ledger",
    "LedgerLike",
    "approved",
    "as_ledger",
    "charged",
]
