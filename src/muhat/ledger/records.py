"""The records of an account as a hash chain: a genesis, then one entry for each charge.

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
from fractions import Fraction
from typing import Any

from muhat import _check
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.ledger.balance import Balance, from_text, to_text
from muhat.ledger.units import Unit
from muhat.privacy import Neighbors, Privacy, currency_kind, from_dict, to_dict

SCHEMA = 2
"""1: no record says how many records of a person it is about; see `UNSTATED`."""

UNSTATED = 1
"""The contributions of what was written before they were. One record: whatever number a promise
was made for, it holds for one."""

TEXTS = ("time", "conversion", "plan_digest", "note", "previous")
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
            }
        )

    @classmethod
    def read(cls, record: Record) -> Genesis:
        """The genesis that a record says."""
        fields = record.fields()
        try:
            unit = Unit.of(Neighbors(fields["neighbors"]), fields.get("contributions", UNSTATED))
            return cls(from_dict(fields["budget"]), unit, record.hash)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ChainBroken("the first record is not that of a ledger") from None


@dataclass(frozen=True, kw_only=True, repr=False)
class Entry:
    """One charge.

    `promise` is what was asked, about at most `contributions` records of a person by the relation
    `neighbors`; `charged` what it cost in the ledger's kind and unit, `conversion` by which
    implications, `spent` the running total with it, `previous` and `hash` the chain.
    `contributions` is None in entries written before they were kept: then it is about one record.
    """

    id: int
    time: str
    promise: dict[str, Any]
    charged: Balance
    conversion: str
    spent: Balance
    neighbors: Neighbors
    contributions: int | None = None
    plan_digest: str
    note: str
    previous: str
    hash: str

    def __repr__(self) -> str:
        when = self.time[:16].replace("T", " ")
        return f"<Entry {self.id}: {self.charged!r} for {self.note!r}, {when} UTC>"

    @property
    def unit(self) -> Unit:
        """Which changes of the data the promise is about."""
        return Unit.of(self.neighbors, self.contributions or UNSTATED)

    @property
    def head(self) -> Head:
        """The ledger's head right after this charge: the anchor that a release carries."""
        return Head(self.id, self.hash)

    def to_dict(self) -> dict[str, Any]:
        """As JSON; without "hash", in canonical form, it is the text that was hashed."""
        return {**self._fields(), "hash": self.hash}

    def _fields(self) -> dict[str, Any]:
        stated = {} if self.contributions is None else {"contributions": self.contributions}
        return {
            **stated,
            "id": self.id,
            "time": self.time,
            "promise": self.promise,
            "kind": self.charged.kind,
            "charged": [to_text(amount) for amount in self.charged.amounts],
            "conversion": self.conversion,
            "spent": [to_text(amount) for amount in self.spent.amounts],
            "neighbors": self.neighbors.value,
            "plan_digest": self.plan_digest,
            "note": self.note,
            "previous": self.previous,
        }

    def seal(self) -> Record:
        """The record of this entry; its hash replaces whatever `hash` held."""
        return Record.seal(self._fields())

    @classmethod
    def read(cls, record: Record) -> Entry:
        """The entry that a record says, once its hash has been recomputed."""
        fields = record.fields()
        try:
            from_dict(fields["promise"])
            if not all(isinstance(fields[name], str) for name in TEXTS):
                raise ValueError("not the texts of an entry")
            kind = fields.pop("kind")
            fields["charged"] = Balance(kind, _amounts(fields["charged"], kind))
            fields["spent"] = Balance(kind, _amounts(fields["spent"], kind))
            fields["neighbors"] = Neighbors(fields["neighbors"])
            if "contributions" in fields:
                _check.count("contributions", fields["contributions"])
            return cls(**fields, hash=record.hash)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ChainBroken(f"entry {record.id} is not a charge") from None


def _amounts(texts: object, kind: str) -> tuple[Fraction, ...]:
    if not isinstance(texts, list) or len(texts) != len(currency_kind(kind).numbers):
        raise ValueError("not the amounts of this kind")
    return tuple(from_text(text) for text in texts)


def now() -> str:
    """The time of a record: UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
