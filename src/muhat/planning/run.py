"""The one order in which anything is released, and the only place that asks or charges a ledger.

1. The account approves: from the promise and the unit alone, so that a refused call has the same
   answer whatever the data are.
2. The data are opened: arguments and metadata are checked, no value is read.
3. Records are counted if their number is public; if it was given, the only outcome is equal or not.
4. Whatever else can fail without values fails.
5. The account is charged. A failure from here on keeps the charge.
6. Values are read, noise is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from muhat._text import printable
from muhat._words import Parameter, Sentence, given_rows
from muhat.errors import InvalidInput
from muhat.ledger import Ledger, LedgerLike, as_ledger
from muhat.privacy import Neighbors, Privacy

if TYPE_CHECKING:
    from muhat.data import Source

LONGEST_NOTE = 200

Columns = Sequence[str] | Sequence[int] | None


class Payable(Protocol):
    """What an account must know of a plan: the promise, the unit, and what identifies it."""

    @property
    def privacy(self) -> Privacy:
        """What is promised."""

    @property
    def neighbors(self) -> Neighbors:
        """The relation it is promised for."""

    @property
    def contributions(self) -> int:
        """The most records of a person."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""


Planned = TypeVar("Planned", bound=Payable)
Opened = TypeVar("Opened")
Result = TypeVar("Result", covariant=True)


class Work(Protocol[Planned, Opened, Result]):
    """How a plan of some kind is carried out, step by step; `run` knows the order."""

    @property
    def plan(self) -> Planned:
        """The plan as far as it is known without the data."""

    def open(self, data: Any, columns: Columns) -> Opened:
        """The data as the plan reads them: arguments and metadata are checked alone."""

    def counted(self, source: Opened) -> Planned:
        """The plan for these records: their number compared, or counted, if it is public."""

    def admit(self, plan: Planned, source: Opened) -> None:
        """Refuse whatever can be refused without a value."""

    def note(self, plan: Planned, source: Opened) -> str | None:
        """What the ledger's entry says; None if nothing is told, so that nothing is paid."""

    def read(self, plan: Planned, source: Opened, head: dict[str, Any] | None) -> Result:
        """Read the values, add the noise, and say what came out."""


@dataclass(frozen=True)
class Uncounted(Generic[Planned, Opened]):
    """Work whose plan is whole before the data: nothing is counted, and nothing more is refused."""

    plan: Planned

    def counted(self, source: Opened) -> Planned:
        """The plan as it is."""
        return self.plan

    def admit(self, plan: Planned, source: Opened) -> None:
        """All was refused when the data were opened."""


def run(
    work: Work[Planned, Opened, Result], data: Any, columns: Columns, ledger: LedgerLike
) -> Result:
    """Carry a plan out."""
    first, account = work.plan, as_ledger(ledger)
    approve(account, first.privacy, first.neighbors, first.contributions)
    source = work.open(data, columns)
    plan = work.counted(source)
    work.admit(plan, source)
    note = work.note(plan, source)
    head = None if account is None or note is None else _charge(account, plan, note)
    return work.read(plan, source, head)


def approve(
    account: Ledger | None, promise: Privacy, neighbors: Neighbors, contributions: int
) -> None:
    """Ask the account, if one is kept, whether it can pay; nothing is written."""
    if account is not None:
        account.approve(promise, neighbors=neighbors, contributions=contributions)


def _charge(account: Ledger, plan: Payable, note: str) -> dict[str, Any]:
    """The head of the account after the charge.

    The note is cut, and put in characters that every file can hold and every terminal show.
    """
    entry = account.charge(
        plan.privacy,
        neighbors=plan.neighbors,
        contributions=plan.contributions,
        plan_digest=plan.digest,
        note=printable(note[:LONGEST_NOTE]),
    )
    return entry.head.to_dict()


COUNT_THEM = ("Leave ", Parameter("n"), " out to have the rows counted")


def account_of(plan: Any, head: dict[str, Any] | None, *said: str) -> dict[str, Any]:
    """What every release says of its plan: what was promised, for whom, by what, at which cost.

    `said` are further assumptions of this release.
    """
    return {
        "mechanism": plan.mechanism,
        "privacy": plan.privacy,
        "neighbors": plan.neighbors,
        "n": plan.n,
        "contributions": plan.contributions,
        "assumptions": (*plan.assumptions, *said),
        "plan_digest": plan.digest,
        "ledger_head": head,
    }


def check_rows(n: int, source: Source, hint: Sentence = (*COUNT_THEM, ".")) -> None:
    """Compare a public n with the data; how far they are apart is not told."""
    if source.rows() != n:
        raise InvalidInput(given_rows(n), ", but the data have another number of rows.", hint=hint)


def count_rows(source: Source, statistic: str = "mean") -> int:
    """The number of rows, which is declared public."""
    rows = source.rows()
    if rows == 0:
        raise InvalidInput(f"the data have no rows, so there is no {statistic} to release.")
    return rows


def note_of(statistic: str, columns: Sequence[str]) -> str:
    """What the ledger's entry says."""
    return f"{statistic} of {', '.join(columns)}" if columns else statistic


def chosen_columns(named: tuple[str, ...] | None, columns: Columns) -> Columns:
    """The columns that were asked for, or those that the plan names: never others than these."""
    from muhat.data.selection import column_names

    chosen = column_names(columns)
    if named and chosen and tuple(map(str, chosen)) != named:
        raise InvalidInput(
            f"the plan names its columns already: {', '.join(named)}; leave columns out."
        )
    return named if chosen is None else chosen
