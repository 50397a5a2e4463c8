"""Plans as people read them: in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.planning.planned import PlannedStatistic
from muhat.privacy import Privacy, cautions
from muhat.release.display import page, table

if TYPE_CHECKING:
    from muhat.planning.mechanism import Mechanism, Rows
    from muhat.planning.plan import Plan

OVERLAP = "Statistics that are read off the same noisy numbers share those: their shares overlap."


def plan_text(plan: Plan) -> str:
    """A plan for the terminal: its terms, and each part, or each statistic of a set."""
    if plan.statistics:
        shown = [_set_facts(plan), PlannedStatistic.rows(plan.statistics)]
        lines = [line for rows in shown for line in (*table(rows), "")]
        return joined([*lines, *_set_notes(plan)])
    return joined("\n\n".join(mechanism_text(part.mechanism) for part in plan.parts).splitlines())


def mechanism_text(mechanism: Mechanism, *more: list[str]) -> str:
    """A mechanism for the terminal, with more facts of its state."""
    blocks = [[*_facts(mechanism), *more], *mechanism.tables()]
    lines = [line for rows in blocks for line in (*table(rows), "")]
    return joined([*lines, *_notes(mechanism)])


def plan_html(plan: Plan) -> str:
    """A plan for a notebook."""
    if plan.statistics:
        facts = [": ".join(row) for row in _set_facts(plan)[1:]]
        rows = PlannedStatistic.rows(plan.statistics)
        return page(f"Plan: {_set_title(plan)}", rows, [*facts, *_set_notes(plan)])
    return "".join(_html(part.mechanism) for part in plan.parts)


def _set_title(plan: Plan) -> str:
    number = len(plan.statistics)
    return "a statistic" if number == 1 else f"{number} statistics for one promise"


def _set_facts(plan: Plan) -> Rows:
    first = plan.parts[0].mechanism
    return [["plan", _set_title(plan)], *_terms(first, plan.privacy), ["noise", plan.mechanism]]


def _set_notes(plan: Plan) -> list[str]:
    told = [line for part in plan.parts for line in part.mechanism.set_notes(part.name)]
    if sum(each.share for each in plan.statistics) > 1 + 1e-9:
        told.insert(0, OVERLAP)
    return [*told, f"Assumed: {'; '.join(plan.assumptions)}."]


def _html(mechanism: Mechanism) -> str:
    *others, last = mechanism.tables()
    facts = [": ".join(row) for rows in (_facts(mechanism), *others) for row in rows[1:]]
    return page(f"Plan: {mechanism.title}", last, [*facts, *_notes(mechanism)])


def _facts(mechanism: Mechanism) -> Rows:
    terms = _terms(mechanism, mechanism.privacy)
    return [["plan", mechanism.title], *terms, *mechanism.facts()]


def _terms(mechanism: Mechanism, promise: Privacy) -> Rows:
    return [
        ["promise", f"{promise.describe()}, {mechanism.relation}"],
        *(["caution", sentence] for sentence in cautions(promise, mechanism.n)),
        ["n", mechanism.number_words],
    ]


def _notes(mechanism: Mechanism) -> list[str]:
    return [*mechanism.notes(), f"Assumed: {'; '.join(mechanism.assumptions)}."]


def alternatives_line(mechanism: Mechanism, p: float) -> list[str]:
    """What the other mechanisms would have had; beyond p = 2 errors are rounded up, or bounds."""
    if not mechanism.alternatives:
        return []
    others = ", ".join(f"{name} {error:.4g}" for name, error in mechanism.alternatives)
    size = "the error" if p == 2 else "an error of at most"
    return [f"Other mechanisms would have had {size}: {others}."]
