"""What has been spent, and what is left; survives crashes and racing processes."""

from __future__ import annotations

from muhat.ledger.account import Ledger, as_ledger
from muhat.ledger.balance import Balance
from muhat.ledger.charging import charged
from muhat.ledger.records import Entry, Head

__all__ = ["Balance", "Entry", "Head", "Ledger", "as_ledger", "charged"]
