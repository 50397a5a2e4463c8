"""Shares of one budget: what a team may spend at most, and what is left for everybody else.

A grant sets a part of the budget aside: the team may spend it, and nobody else. So the grants
together, and what was spent without one, never exceed the budget, and a team that was promised a
share finds it there. Before the first grant a team is a name in the entries. From then on a charge
is that of a team with a grant, or of no team and paid from what is not granted; a team without a
grant is refused, since a name that was misspelt would else spend what is everybody's.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from muhat import _check
from muhat._words import Parameter, Sentence
from muhat.errors import BudgetExceeded, InvalidInput
from muhat.ledger.balance import Balance

LONGEST_NAME = 100
MOST_TEAMS = 1_000
"""Every record repeats what the teams have, so that a charge looks at the newest one alone."""


def checked_name(team: object) -> str:
    """The name of a team, in the one spelling that Unicode has for what is seen."""
    if not isinstance(team, str):
        raise InvalidInput("must be a name", parameter="team", value=type(team).__name__)
    name = unicodedata.normalize("NFC", team)
    if not (0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()):
        raise InvalidInput(
            f"must be a name of at most {LONGEST_NAME} visible characters, without spaces around",
            parameter="team",
            value=f"{name!r:.60}",
        )
    return name


@dataclass(frozen=True)
class Behalf:
    """On whose behalf a ledger is charged, and for what: what entries say beside the release."""

    team: str | None = None
    purpose: str | None = None
    specification: str | None = None


@dataclass(frozen=True)
class Share:
    """A part of the budget: what may be spent of it, and what is."""

    granted: Balance
    spent: Balance

    @property
    def remaining(self) -> Balance:
        """What is left of it."""
        return self.granted - self.spent

    def admits(self, amount: Balance) -> bool:
        """Whether so much is left."""
        return self.spent + amount <= self.granted

    def to_dict(self) -> dict[str, object]:
        """As JSON, with the exact amounts."""
        names = ("granted", "spent", "remaining")
        return {name: getattr(self, name).to_dict() for name in names}


@dataclass(frozen=True)
class Standing:
    """How an account stands: the budget, what is spent, and the shares of teams."""

    budget: Balance
    spent: Balance
    shares: Mapping[str, Share]

    @classmethod
    def of_new(cls, budget: Balance) -> Standing:
        """That of an account without any charge or grant."""
        return cls(budget, Balance.zero(budget.kind), {})

    @property
    def ungranted(self) -> Share:
        """What is for charges without a team: the budget less every grant."""
        zero = Balance.zero(self.budget.kind)
        granted = sum((share.granted for share in self.shares.values()), zero)
        spent = sum((share.spent for share in self.shares.values()), zero)
        return Share(self.budget - granted, self.spent - spent)

    def share_of(self, team: str | None) -> Share:
        """What a charge of a team, or of none, is paid from; InvalidInput without a grant."""
        if team is None or not self.shares:
            return self.ungranted
        if team not in self.shares:
            raise InvalidInput(
                f"must be one with a grant: {_listed(self.shares)}",
                parameter="team",
                value=repr(team),
                hint=_check.did_you_mean(team, self.shares).strip()
                or "Grant it a share first: muhat ledger grant budget.db --team NAME --rho 0.1",
            )
        return self.shares[team]

    def require(self, amount: Balance, team: str | None, path: object) -> None:
        """Refuse a charge that is more than is left to whoever pays."""
        share = self.share_of(team)
        if share.admits(amount):
            return
        whose = str(share.granted)
        hint: Sentence = ()
        if self.shares and team is not None:
            whose = f"the {share.granted} granted to team {team!r}"
        elif self.shares:
            whose = f"the {share.granted} that no team was granted"
            hint = ("Say which team pays: ", Parameter("team", "ledger.for_team(…)", "--team"), ".")
        raise BudgetExceeded(
            f"the release costs {amount}, and {share.remaining} of {whose} is left in {path}; "
            "nothing was spent.",
            hint=hint,
        )

    def charged(self, team: str | None, amount: Balance) -> Standing:
        """After a charge."""
        shares = dict(self.shares)
        if team in shares:
            shares[team] = replace(shares[team], spent=shares[team].spent + amount)
        return replace(self, spent=self.spent + amount, shares=shares)

    def granted(self, team: str, share: Share) -> Standing:
        """After a grant, the first of a team or another one in its place."""
        return replace(self, shares={**self.shares, team: share})

    def granting(self, team: str, limit: Balance | None, spent: Balance, path: object) -> Standing:
        """After a grant to a team that has `spent` so much; without a limit it is lowered to that.

        Refused if that were less than the team has spent, or more than there is.
        """
        if limit is None:
            if team not in self.shares:
                hint = _check.did_you_mean(team, self.shares).strip()
                raise InvalidInput(
                    "has no grant to withdraw", parameter="team", value=repr(team), hint=hint
                )
            limit = spent
        if not spent <= limit:
            raise InvalidInput(
                f"team {team!r} has spent {spent} in {path} already, so its grant cannot be "
                f"{limit}; nothing was changed."
            )
        if team not in self.shares and len(self.shares) >= MOST_TEAMS:
            raise InvalidInput(f"an account has grants for at most {MOST_TEAMS} teams.")
        after = self.granted(team, Share(limit, spent))
        if after.is_overdrawn:
            # What the team has had and spent so far is its own to be granted again.
            free = self.ungranted.remaining + (
                self.shares[team].granted if team in self.shares else spent
            )
            raise BudgetExceeded(
                f"team {team!r} cannot be granted {limit}: of {self.budget} in {path} others were "
                f"granted or have spent all but {free}; nothing was changed."
            )
        return after

    @property
    def is_overdrawn(self) -> bool:
        """Whether more is spent or granted than there is."""
        shares = (*self.shares.values(), self.ungranted)
        return not all(share.spent <= share.granted for share in shares)


def _listed(teams: Iterable[str], most: int = 10) -> str:
    names = sorted(map(repr, teams))
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
