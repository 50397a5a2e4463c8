"""What every release does first: ask the account, and charge it before any value is read.

The order is the point. Whether a release can be paid for depends on promises alone, so it is asked
before the data are opened or counted: a refused call has the same answer whatever the data are.
Only what was approved can be charged.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from muhat._text import printable
from muhat.ledger.account import Ledger, as_ledger
from muhat.privacy import Neighbors, Privacy

LONGEST_NOTE = 200

LedgerLike = Ledger | str | os.PathLike[str] | None


@dataclass(frozen=True)
class Approval:
    """An account that has enough left for a promise about a unit, as of the time of asking."""

    ledger: Ledger
    promise: Privacy
    neighbors: Neighbors
    contributions: int

    def charge(self, plan_digest: str, note: str) -> dict[str, Any]:
        """Charge what was approved; the head of the account afterwards.

        The note is cut, and put in characters that every file can hold and every terminal show.
        """
        entry = self.ledger.charge(
            self.promise,
            neighbors=self.neighbors,
            contributions=self.contributions,
            plan_digest=plan_digest,
            note=printable(note[:LONGEST_NOTE]),
        )
        return entry.head.to_dict()


def approved(
    ledger: LedgerLike, promise: Privacy, neighbors: Neighbors, contributions: int
) -> Approval | None:
    """Ask the account, if one is kept, whether the promise may be charged; nothing is written."""
    account = as_ledger(ledger)
    if account is None:
        return None
    account.approve(promise, neighbors=neighbors, contributions=contributions)
    return Approval(account, promise, neighbors, contributions)


def charged(approval: Approval | None, plan_digest: str, note: str) -> dict[str, Any] | None:
    """Charge before any value is read; the head of the account afterwards, or None without one."""
    return None if approval is None else approval.charge(plan_digest, note)
