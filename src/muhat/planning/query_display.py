"""Plans for linear queries as people read them: in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.planning.display import promise_facts, relation_in_words
from muhat.privacy import Neighbors
from muhat.release.display import MOST_ROWS, certificate_lines, page, significant, table
from muhat.release.query_table import query_names

if TYPE_CHECKING:
    from muhat.planning.query_plan import QueryPlan


def plan_text(plan: QueryPlan) -> str:
    """A plan for the terminal."""
    return joined([*table(plan_facts(plan)), "", *table(plan_rows(plan)), "", *plan_notes(plan)])


def plan_html(plan: QueryPlan) -> str:
    """A plan for a notebook."""
    facts = [": ".join(row) for row in plan_facts(plan)[1:]]
    title = f"Plan: private answers to {plan.workload.describe()}"
    return page(title, plan_rows(plan), [*facts, *plan_notes(plan)])


def plan_facts(plan: QueryPlan) -> list[list[str]]:
    """What is planned, a fact a line."""
    people = "counted from the data" if plan.n is None else f"{plan.n}, public"
    factorization = plan.factorization
    relation = relation_in_words(plan.neighbors, plan.contributions)
    order = "∞" if plan.p == float("inf") else f"{plan.p:g}"
    return [
        ["plan", f"private answers to {plan.workload.describe()}"],
        *promise_facts(plan.privacy, relation, plan.n),
        ["n", "secret" if plan.neighbors is Neighbors.ADD_REMOVE else people],
        ["mechanism", plan.mechanism],
        [
            "strategy",
            f"γ_({order}) = {factorization.value:.6g}, within {100 * factorization.gap:.2g} % "
            "of the least",
        ],
    ]


def plan_rows(plan: QueryPlan) -> list[list[str]]:
    """The expected errors, a line an answer, the first ones."""
    header, names = query_names(plan.workload, plan.attributes, MOST_ROWS)
    errors = plan.standard_error
    rows = [[header, "standard error"]]
    rows += [[name, significant(error)] for name, error in zip(names, errors, strict=False)]
    if len(errors) > MOST_ROWS:
        rows.append([f"… {len(errors) - MOST_ROWS:,} more", f"up to {significant(errors.max())}"])
    return rows


def plan_notes(plan: QueryPlan) -> list[str]:
    """The certificate, the alternatives and the assumptions."""
    lines = certificate_lines(plan.certificate)
    if plan.alternatives:
        others = ", ".join(f"{name} {error:.4g}" for name, error in plan.alternatives)
        # Beyond p = 2 errors are rounded up, or bounds.
        size = "the error" if plan.p == 2 else "an error of at most"
        lines.append(f"Other mechanisms would have had {size}: {others}.")
    return [*lines, "Assumed: " + "; ".join(plan.assumptions) + "."]
