"""Plans as people read them: in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.release.display import page, table

if TYPE_CHECKING:
    from muhat.planning.mechanism import Mechanism, Rows
    from muhat.planning.plan import Plan


def plan_text(plan: Plan) -> str:
    """A plan for the terminal: its terms, and each part."""
    return joined("\n\n".join(mechanism_text(part.mechanism) for part in plan.parts).splitlines())


def mechanism_text(mechanism: Mechanism, *more: list[str]) -> str:
    """A mechanism for the terminal, with more facts of its state."""
    blocks = [[*_facts(mechanism), *more], *mechanism.tables()]
    lines = [line for rows in blocks for line in (*table(rows), "")]
    return joined([*lines, *_notes(mechanism)])


def plan_html(plan: Plan) -> str:
    """A plan for a notebook."""
    return "".join(_html(part.mechanism) for part in plan.parts)


def _html(mechanism: Mechanism) -> str:
    *others, last = mechanism.tables()
    facts = [": ".join(row) for rows in (_facts(mechanism), *others) for row in rows[1:]]
    return page(f"Plan: {mechanism.title}", last, [*facts, *_notes(mechanism)])


def _facts(mechanism: Mechanism) -> Rows:
    return [
        ["plan", mechanism.title],
        ["promise", f"{mechanism.privacy.describe()}, {mechanism.relation}"],
        *(["caution", sentence] for sentence in mechanism.terms.cautions),
        ["n", mechanism.number_words],
        *mechanism.facts(),
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
