"""Plans of bounded bias as people read them: in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.planning.display import promise_facts, relation_in_words
from muhat.release.display import page, significant, table

if TYPE_CHECKING:
    from muhat.planning.low_bias_plan import LowBiasPlan


def plan_text(plan: LowBiasPlan) -> str:
    """A plan for the terminal."""
    facts, predictions = table(plan_facts(plan)), table(plan_predictions(plan))
    return joined([*facts, "", *predictions, "", *plan_notes(plan)])


def plan_html(plan: LowBiasPlan) -> str:
    """A plan for a notebook."""
    facts = [": ".join(row) for row in plan_facts(plan)[1:]]
    return page("Plan: private mean", plan_predictions(plan), [*facts, *plan_notes(plan)])


def plan_facts(plan: LowBiasPlan) -> list[list[str]]:
    """What is planned, a fact a line."""
    relation = relation_in_words(plan.neighbors, plan.contributions)
    facts = [
        ["plan", "private mean of bounded bias"],
        *promise_facts(plan.privacy, relation, plan.n),
        ["n", f"{plan.n}, public"],
        ["domain", repr(plan.domain)],
        ["assumed", plan.moment.describe()],
        ["mechanism", f"{plan.mechanism}: {plan.method.summary}"],
    ]
    if plan.method.failure > 0:
        facts.append(["failure", f"with a probability of at most {plan.method.failure:.2g}"])
    return facts


def plan_predictions(plan: LowBiasPlan) -> list[list[str]]:
    """Bias and errors of the plan, then of its alternatives."""
    rows = [["mechanism", "bias at most", "noise", "root mean square error"]]
    for number, each in enumerate((plan.predicted, *plan.alternatives)):
        name = f"{each.mechanism} (this plan)" if number == 0 else each.mechanism
        rows.append([name, *map(significant, (each.bias, each.standard_error, each.rmse))])
    return rows


def plan_notes(plan: LowBiasPlan) -> list[str]:
    """What no mechanism can beat, and what all of it rests on."""
    notes = [] if plan.trilemma is None else [plan.trilemma.sentence()]
    if plan.method.assumes_symmetry:
        notes = [f"If symmetry is not assumed: {note[0].lower()}{note[1:]}" for note in notes]
    if plan.missing == "drop":
        notes.insert(0, "Bias and errors are those if nothing is missing.")
    return [*notes, "Assumed: " + "; ".join(plan.assumptions) + "."]
