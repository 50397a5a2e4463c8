"""The records of an account as a hash chain: a genesis, then one for each charge and grant.

A record is stored as canonical JSON (sorted keys, no spaces, ASCII) and its hash is the
SHA-256 of exactly that text, which contains the hash of the record before it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.ledger.units import Unit
from muhat.privacy import Neighbors, Privacy, from_dict, to_dict

SCHEMA = 3
"""1: no record says how many records of a person it is about; see `UNSTATED`. 2: there are no teams
and no grants, and no record says for what it was paid or which column tells people apart. A field
that is not stated is not written, so that the hash of an old record is the hash of its text."""

UNSTATED = 1
"""The contributions of what was written before they were. One record: whatever number a promise
was made for, it holds for one."""

HEX_DIGITS = frozenset("0123456789abcdef")


class ChainBroken(Exception):
    """A record is not what its hash, its place or the running total says it should be."""


@dataclass(frozen=True)
class Record:
    """One row as stored: its place, its canonical JSON and the hash of that text."""

    id: int
    body: str
    hash: str

    @classmethod
    def seal(cls, fields: dict[str, Any]) -> Record:
        """The record of the given fields, hashed."""
        body = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return cls(fields["id"], body, hashlib.sha256(body.encode()).hexdigest())

    def fields(self) -> dict[str, Any]:
        """What the record says, once its hash has been recomputed."""
        if not isinstance(self.body, str) or not isinstance(self.hash, str):
            raise ChainBroken(f"entry {self.id} is not text")
        if hashlib.sha256(self.body.encode(errors="replace")).hexdigest() != self.hash:
            raise ChainBroken(f"entry {self.id} does not match its hash")
        try:
            fields = json.loads(self.body)
        except (ValueError, RecursionError):
            raise ChainBroken(f"entry {self.id} is not JSON") from None
        if not isinstance(fields, dict) or fields.get("id") != self.id:
            raise ChainBroken(f"entry {self.id} is not at its place")
        return fields


@dataclass(frozen=True)
class Head(Plain):
    """Where a chain ends: how many charges, and the hash of the last record.

    >>> print(Head.parse({"count": 3, "hash": "ab" * 32}))
    3:abababababababababababababababababababababababababababababababab
    """

    count: int
    hash: str

    def __post_init__(self) -> None:
        whole = isinstance(self.count, int) and not isinstance(self.count, bool)
        hashed = isinstance(self.hash, str) and len(self.hash) == 64
        if not (whole and self.count >= 0 and hashed and HEX_DIGITS.issuperset(self.hash)):
            raise InvalidInput(
                "a ledger head is a count and a SHA-256 in 64 hexadecimal digits, "
                'as "3:ab12…" or {"count": 3, "hash": "ab12…"}.'
            )

    @classmethod
    def parse(cls, value: Head | str | Mapping[str, Any]) -> Head:
        """The head itself, from a Head, its text or its JSON."""
        if isinstance(value, Head):
            return value
        if isinstance(value, Mapping):
            return cls(value.get("count", -1), value.get("hash", ""))
        count, _, digest = value.partition(":") if isinstance(value, str) else ("", "", "")
        return cls(int(count) if count.isdecimal() and len(count) < 20 else -1, digest)

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"


@dataclass(frozen=True)
class Genesis:
    """What a ledger was created with; every later hash depends on it."""

    budget: Privacy
    unit: Unit
    hash: str

    @staticmethod
    def seal(budget: Privacy, unit: Unit) -> Record:
        """The first record of a new ledger, with a random name so that no two are alike."""
        return Record.seal(
            {
                "id": 0,
                "schema": SCHEMA,
                "ledger": os.urandom(16).hex(),
                "time": now(),
                "budget": to_dict(budget),
                "neighbors": unit.neighbors.value,
                "contributions": unit.contributions,
                **stated(unit_column=unit.column),
            }
        )

    @classmethod
    def read(cls, record: Record) -> Genesis:
        """The genesis that a record says."""
        fields = record.fields()
        try:
            contributions = fields.get("contributions", UNSTATED)
            column = fields.get("unit_column")
            unit = Unit.of(Neighbors(fields["neighbors"]), contributions, column)
            return cls(from_dict(fields["budget"]), unit, record.hash)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ChainBroken("the first record is not that of a ledger") from None


def stated(**fields: Any) -> dict[str, Any]:
    """The fields that have something to say."""
    return {name: value for name, value in fields.items() if value is not None}


def now() -> str:
    """The time of a record: UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
