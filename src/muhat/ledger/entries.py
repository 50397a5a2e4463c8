"""What is written down in an account: charges, and grants to teams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from muhat import _check
from muhat.ledger.balance import Balance, from_text, to_text
from muhat.ledger.records import UNSTATED, ChainBroken, Head, Record, stated
from muhat.ledger.teams import Share
from muhat.ledger.units import Unit
from muhat.privacy import Neighbors, currency_kind, from_dict

TEXTS = ("time", "conversion", "plan_digest", "note", "previous")
OPTIONAL_TEXTS = ("unit_column", "team", "purpose", "specification")


@dataclass(frozen=True, kw_only=True, repr=False)
class Link:
    """What every record after the first one says.

    `spent` is the running total, `shares` what teams have been granted and have spent, `previous`
    and `hash` the chain.
    """

    id: int
    time: str
    conversion: str
    spent: Balance
    team: str | None = None
    purpose: str | None = None
    shares: Mapping[str, Share] = field(default_factory=dict)
    previous: str
    hash: str

    @property
    def head(self) -> Head:
        """The ledger's head right after this record: the anchor that a release carries."""
        return Head(self.id, self.hash)

    def to_dict(self) -> dict[str, Any]:
        """As JSON; without "hash", in canonical form, it is the text that was hashed."""
        return {**self._fields(), "hash": self.hash}

    def seal(self) -> Record:
        """The record of this; its hash replaces whatever `hash` held."""
        return Record.seal(self._fields())

    def _fields(self) -> dict[str, Any]:
        shares = {
            team: {"granted": _texts(share.granted), "spent": _texts(share.spent)}
            for team, share in self.shares.items()
        }
        return {
            **stated(team=self.team, purpose=self.purpose, shares=shares or None),
            "id": self.id,
            "time": self.time,
            "kind": self.spent.kind,
            "conversion": self.conversion,
            "spent": _texts(self.spent),
            "previous": self.previous,
        }

    @property
    def _when(self) -> str:
        return f"{self.time[:16].replace('T', ' ')} UTC"


@dataclass(frozen=True, kw_only=True, repr=False)
class Entry(Link):
    """One charge.

    `promise` is what was asked, about at most `contributions` records of a person by the relation
    `neighbors`, or about all of whoever `unit_column` says they belong to; `charged` what it cost
    in the ledger's kind and unit, and `conversion` by which implications. `note` says what was
    released, `team` who paid for it, `purpose` what for, and `specification` is the digest of the
    file that asked for it. `contributions` is None in entries written before they were kept: then
    it is about one record.
    """

    promise: dict[str, Any]
    charged: Balance
    neighbors: Neighbors
    contributions: int | None = None
    unit_column: str | None = None
    plan_digest: str
    note: str
    specification: str | None = None

    def __repr__(self) -> str:
        team = "" if self.team is None else f" by {self.team!r}"
        return f"<Entry {self.id}: {self.charged!r}{team} for {self.note!r}, {self._when}>"

    @property
    def unit(self) -> Unit:
        """Which changes of the data the promise is about."""
        return Unit.of(self.neighbors, self.contributions or UNSTATED, self.unit_column)

    def _fields(self) -> dict[str, Any]:
        return {
            **super()._fields(),
            **stated(
                contributions=self.contributions,
                unit_column=self.unit_column,
                specification=self.specification,
            ),
            "promise": self.promise,
            "charged": _texts(self.charged),
            "neighbors": self.neighbors.value,
            "plan_digest": self.plan_digest,
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class Grant(Link):
    """What a team may spend at most from now on: `granted`, in place of what it was before.

    `promise` is how it was asked for, None if the grant was lowered to what the team had spent.
    """

    promise: dict[str, Any] | None
    granted: Balance
    team: str

    def __repr__(self) -> str:
        return f"<Grant {self.id}: {self.granted!r} to {self.team!r}, {self._when}>"

    def _fields(self) -> dict[str, Any]:
        return {
            **super()._fields(),
            "promise": self.promise,
            "granted": _texts(self.granted),
        }


def read_link(record: Record) -> Entry | Grant:
    """The charge or grant that a record says, once its hash has been recomputed."""
    fields = record.fields()
    try:
        kind = fields.pop("kind")
        granted = "granted" in fields
        required = ("time", "conversion", "previous", "team") if granted else TEXTS
        optional = [name for name in OPTIONAL_TEXTS if name in fields]
        if not all(isinstance(fields[name], str) for name in (*required, *optional)):
            raise ValueError("not the texts of a record")
        fields["spent"] = _balance(fields["spent"], kind)
        fields["shares"] = {
            team: Share(_balance(share.pop("granted"), kind), _balance(share.pop("spent"), kind))
            for team, share in fields.pop("shares", {}).items()
        }
        if granted:
            if fields["promise"] is not None:
                from_dict(fields["promise"])
            fields["granted"] = _balance(fields["granted"], kind)
            return Grant(**fields, hash=record.hash)
        from_dict(fields["promise"])
        fields["charged"] = _balance(fields["charged"], kind)
        fields["neighbors"] = Neighbors(fields["neighbors"])
        if "contributions" in fields:
            _check.count("contributions", fields["contributions"])
        return Entry(**fields, hash=record.hash)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ChainBroken(f"entry {record.id} is not a charge") from None


def _texts(balance: Balance) -> list[str]:
    return [to_text(amount) for amount in balance.amounts]


def _balance(texts: object, kind: str) -> Balance:
    if not isinstance(texts, list) or len(texts) != len(currency_kind(kind).numbers):
        raise ValueError("not the amounts of this kind")
    amounts: tuple[Fraction, ...] = tuple(map(from_text, texts))
    return Balance(kind, amounts)
