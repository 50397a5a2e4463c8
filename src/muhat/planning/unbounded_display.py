"""Plans for unbounded records as people read them: in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.bounds import in_neighbor
from muhat.planning.display import promise_facts, relation_in_words
from muhat.release.display import page, significant, table

if TYPE_CHECKING:
    from muhat.planning.unbounded import UnboundedPlan


def plan_text(plan: UnboundedPlan) -> str:
    """A plan for the terminal."""
    blocks = (plan_facts(plan), plan_shares(plan), plan_errors(plan))
    lines = [line for rows in blocks for line in (*table(rows), "")]
    return joined([*lines, *plan_notes(plan)])


def plan_html(plan: UnboundedPlan) -> str:
    """A plan for a notebook."""
    facts = [": ".join(row) for row in plan_facts(plan)[1:]]
    shares = [": ".join(row) for row in plan_shares(plan)[1:]]
    return page("Plan: private mean", plan_errors(plan), [*facts, *shares, *plan_notes(plan)])


def plan_facts(plan: UnboundedPlan) -> list[list[str]]:
    """What is planned, a fact a line."""
    relation = relation_in_words(plan.neighbors, plan.contributions)
    enough = "enough" if plan.n >= plan.least_n else "TOO FEW"
    return [
        ["plan", "private mean"],
        *promise_facts(plan.privacy, relation, plan.n),
        ["n", f"{plan.n}, public; {enough}: at least {plan.least_n} are needed"],
        ["domain", repr(plan.domain)],
        ["mechanism", f"{plan.mechanism}: {plan.method.summary}"],
    ]


def plan_shares(plan: UnboundedPlan) -> list[list[str]]:
    """How the promise is split."""
    rows = [["step", "share of the promise"]]
    return rows + [[name, f"{100 * share:.2f} %"] for name, share in plan.shares.items()]


def plan_errors(plan: UnboundedPlan) -> list[list[str]]:
    """The error for radii that the records may have."""
    rows = [["if 99 % of the records lie within", "the error is about"]]
    return rows + [[f"{radius:g}", significant(error)] for radius, error in plan.errors()]


def plan_notes(plan: UnboundedPlan) -> list[str]:
    """What the promise and the errors rest on."""
    chance, ratio = in_neighbor(plan.privacy), plan.instance_ratio
    complete = ["Errors are those if nothing is missing."] if plan.missing == "drop" else []
    return [
        *complete,
        f"Every such mean errs by half of the records' diameter over n or more with a probability "
        f"of at least {chance:.2g}, on these records or on neighbours inside them (Huang, Liang "
        f"and Yi); the error of this plan is about {significant(ratio)} times that.",
        "No certificate: clipping may bias the value. The whole promise is charged on every path.",
        "Assumed: " + "; ".join(plan.assumptions) + ".",
    ]
