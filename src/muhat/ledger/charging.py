"""What every release does first: charge the account, if one is kept."""

from __future__ import annotations

from typing import Any

from muhat.ledger.account import Ledger
from muhat.privacy import Neighbors, Privacy

LONGEST_NOTE = 200


def charged(
    ledger: Ledger | None, promise: Privacy, neighbors: Neighbors, plan_digest: str, note: str
) -> dict[str, Any] | None:
    """Charge a promise before any value is read; the head of the account afterwards, or None.

    The note is cut, and put in characters that every file can hold.
    """
    if ledger is None:
        return None
    text = note[:LONGEST_NOTE].encode("utf-8", "replace").decode()
    entry = ledger.charge(promise, neighbors=neighbors, plan_digest=plan_digest, note=text)
    return entry.head.to_dict()
