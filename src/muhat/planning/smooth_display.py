"""Plans with a secret n and no bias as people read them: in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.planning.display import promise_facts, relation_in_words
from muhat.release.display import page, significant, table

if TYPE_CHECKING:
    from muhat.planning.smooth import SmoothPlan

COUNTS = (1_000, 10_000, 100_000, 1_000_000)
"""Numbers of records whose errors are shown, if they are possible."""


def plan_text(plan: SmoothPlan) -> str:
    """A plan for the terminal."""
    facts, errors = table(plan_facts(plan)), table(plan_errors(plan))
    return joined([*facts, "", *errors, "", *plan_notes(plan)])


def plan_html(plan: SmoothPlan) -> str:
    """A plan for a notebook."""
    facts = [": ".join(row) for row in plan_facts(plan)[1:]]
    return page("Plan: private mean", plan_errors(plan), [*facts, *plan_notes(plan)])


def plan_facts(plan: SmoothPlan) -> list[list[str]]:
    """What is planned, a fact a line."""
    least = "" if plan.n_min is None else f"; {plan.n_min} or more are assumed"
    relation = relation_in_words(plan.neighbors, plan.contributions)
    return [
        ["plan", "private mean without bias"],
        *promise_facts(plan.privacy, relation),
        ["n", f"secret{least}"],
        ["domain", repr(plan.domain)],
        ["mechanism", "smooth: Student noise whose scale depends on the secret n"],
    ]


def plan_errors(plan: SmoothPlan) -> list[list[str]]:
    """The error for numbers of records that there may be."""
    least = 100 if plan.n_min is None else plan.n_min
    counts = [least, *(count for count in COUNTS if count > least)]
    rows = [["number of records", "error" if plan.p == 2 else "error at most"]]
    return rows + [[str(count), significant(plan.error_at(count))] for count in counts]


def plan_notes(plan: SmoothPlan) -> list[str]:
    """What the promise and the errors rest on."""
    told = "no standard error unless a public n_min is given"
    if plan.n_min is not None:
        told = f"the standard error for n_min = {plan.n_min} records, the largest there may be"
    return [
        f"The scale of the noise is secret too, so a release tells {told}.",
        "Assumed: " + "; ".join(plan.assumptions) + ".",
    ]
