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
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from muhat._text import printable
from muhat._words import SECRET_N, Parameter, Sentence, given_rows
from muhat.errors import InvalidInput
from muhat.ledger import Ledger, LedgerLike, as_ledger
from muhat.planning.terms import Terms
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.planning.mechanism import Columns
    from muhat.planning.plan import Plan

LONGEST_NOTE = 200

Opened = TypeVar("Opened")


class Runnable(Protocol[Opened]):
    """What can be carried out: a plan, or a request that becomes one when the data are opened."""

    @property
    def terms(self) -> Terms:
        """What is promised, to whom."""

    def open(self, data: Any, columns: Columns) -> Opened:
        """The data as they will be read: arguments and metadata are checked alone."""

    def planned(self, source: Opened, /) -> Plan:
        """The plan for these records, whose number is compared or counted if it is public."""


def run(asked: Runnable[Any], data: Any, columns: Columns, ledger: LedgerLike) -> Release:
    """Carry a plan out: the answers of its parts, beside what was promised and paid for them."""
    plan, answers, head = carried_out(asked, data, columns, ledger)
    several = len(answers) > 1
    return Release(
        answers=answers,
        names=tuple(name for part in plan.parts for name in part.names) if several else (),
        privacy=plan.privacy,
        neighbors=plan.neighbors,
        plan_digest=plan.digest,
        ledger_head=head,
        unit=plan.terms.unit,
        shares=plan.spent,
    )


def carried_out(
    asked: Runnable[Any], data: Any, columns: Columns, ledger: LedgerLike
) -> tuple[Plan, tuple[Any, ...], dict[str, Any] | None]:
    """The plan for these data, what each part of it read, and the head of the account."""
    from muhat.data.snapshot import one_snapshot

    account = as_ledger(ledger)
    approve(account, asked.terms)
    with one_snapshot():
        return _carried_out(asked, data, columns, account)


def _carried_out(
    asked: Runnable[Any], data: Any, columns: Columns, account: Ledger | None
) -> tuple[Plan, tuple[Any, ...], dict[str, Any] | None]:
    """From the opening of the data to what was read."""
    from muhat.data.shared import carried_out_together

    sources = asked.open(data, columns)
    plan = asked.planned(sources)
    work = [(part.mechanism, source) for part, source in zip(plan.parts, sources, strict=True)]
    for mechanism, source in work:
        mechanism.admit(source)
    notes = [mechanism.note(source) for mechanism, source in work]
    told = [note for note in notes if note is not None]
    head = _charge(account, plan, "; ".join(told)) if account is not None and told else None
    found = carried_out_together([mechanism.reading(source) for mechanism, source in work])
    return plan, tuple(answer for answers in found for answer in answers), head


def approve(account: Ledger | None, terms: Terms) -> None:
    """Ask the account, if one is kept, whether it can pay; nothing is written."""
    if account is not None:
        account.approve(
            terms.privacy,
            neighbors=terms.neighbors,
            contributions=terms.contributions,
            unit=terms.unit,
        )


def _charge(account: Ledger, plan: Plan, note: str) -> dict[str, Any]:
    """The head of the account after the charge.

    The note is cut, and put in characters that every file can hold and every terminal show.
    """
    entry = account.charge(
        plan.privacy,
        neighbors=plan.neighbors,
        contributions=plan.contributions,
        unit=plan.terms.unit,
        plan_digest=plan.digest,
        note=printable(note[:LONGEST_NOTE]),
    )
    return entry.head.to_dict()


_LEFT_OUT = ("Leave ", Parameter("n"), " out to have the rows counted")
COUNT_THEM: Sentence = (*_LEFT_OUT, ".")
OR_SECRET: Sentence = (*_LEFT_OUT, ", or use ", SECRET_N, " to keep it secret.")


class HasRows(Protocol):
    """Records whose number can be had without reading their values."""

    def rows(self) -> int:
        """How many there are."""


def counted_terms(
    terms: Terms, source: HasRows, statistic: str = "mean", hint: Sentence = OR_SECRET
) -> Terms:
    """The terms for these records: a public n is compared with their number, or is counted.

    How far the two are apart is not told.
    """
    if terms.hides_n:
        return terms
    rows = source.rows()
    if terms.n is None and rows == 0:
        raise InvalidInput(f"the data have no rows, so there is no {statistic} to release.")
    if terms.n not in (None, rows):
        number = given_rows(terms.n)
        raise InvalidInput(number, ", but the data have another number of rows.", hint=hint)
    return terms.counted(rows) if terms.n is None else terms


def note_of(statistic: str, columns: Sequence[str]) -> str:
    """What the ledger's entry says."""
    return f"{statistic} of {', '.join(columns)}" if columns else statistic
