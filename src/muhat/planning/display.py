"""Plans as people read them: in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.privacy import Neighbors, Privacy, cautions
from muhat.release.display import certificate_lines, page, shortened, significant, table

if TYPE_CHECKING:
    from muhat.planning.plan import Plan

MECHANISMS = {
    "gaussian": "normal noise shaped by the smallest ellipsoid",
    "ellipsoid-norm": "K-norm noise of the smallest ellipsoid",
    "box-norm": "K-norm noise of the box",
    "laplace": "Laplace noise, the best scale for each column",
    "plain-laplace": "Laplace noise of one scale",
    "joint": "sum and count together, normal or K-norm noise",
    "ratio": "a noisy sum divided by a noisy count",
}


def plan_text(plan: Plan) -> str:
    """A plan for the terminal."""
    return joined([*table(plan_facts(plan)), "", *table(plan_rows(plan)), "", *plan_notes(plan)])


def plan_html(plan: Plan) -> str:
    """A plan for a notebook."""
    facts = [": ".join(row) for row in plan_facts(plan)[1:]]
    return page(f"Plan: private {plan.statistic}", plan_rows(plan), [*facts, *plan_notes(plan)])


def plan_facts(plan: Plan) -> list[list[str]]:
    """What is planned, a fact a line."""
    relation = relation_in_words(plan.neighbors, plan.contributions)
    return [
        ["plan", f"private {plan.statistic}"],
        *promise_facts(plan.privacy, relation, plan.n),
        ["n", "secret" if plan.n is None else f"{plan.n}, public"],
        ["domain", "any record" if plan.domain is None else repr(plan.domain)],
        ["mechanism", f"{plan.mechanism}: {MECHANISMS[plan.mechanism]}"],
    ]


def promise_facts(privacy: Privacy, relation: str, n: int | None = None) -> list[list[str]]:
    """The promise, and that it is worth little if it is."""
    said = [["caution", sentence] for sentence in cautions(privacy, n)]
    return [["promise", f"{privacy.describe()}, {relation}"], *said]


def relation_in_words(neighbors: Neighbors, contributions: int) -> str:
    """What one person can do to the data."""
    relation = {
        Neighbors.SUBSTITUTE: "one record replaced",
        Neighbors.ADD_REMOVE: "one record added or removed",
    }[neighbors]
    return (
        relation
        if contributions == 1
        else relation.replace("one record", f"{contributions} records")
    )


def plan_rows(plan: Plan) -> list[list[str]]:
    """The expected errors, a line a column."""
    names = plan.columns or [str(index) for index in range(plan.dim)]
    if plan.counts_columns and plan.n is not None and plan.statistic == "mean":
        assert plan.domain is not None
        rows = [["column", "error in the middle", "error at the bounds"]]
        halves = plan.domain.half_widths
        middle, ends = (plan.standard_error_at(plan.n, at * halves) for at in (0.0, 1.0))
        for name, least, most in zip(names, middle, ends, strict=True):
            rows.append([name, significant(least), significant(most)])
        return shortened(rows)
    if plan.standard_error is None:
        # Beyond p = 2 the count's part is measured in ℓ₂.
        limit = "" if plan.p == 2 else ", at most"
        rows = [["number of records", f"error at the worst mean{limit}"]]
        for records in (100, 1_000, 10_000, 100_000, 1_000_000):
            rows.append([str(records), significant(plan.error_at(records))])
        return rows
    rows = [["column", "standard error"]]
    for name, error in zip(names, plan.standard_error, strict=True):
        rows.append([name, significant(error)])
    return shortened(rows)


def plan_notes(plan: Plan) -> list[str]:
    """The certificate, the alternatives and the assumptions."""
    lines = [] if plan.is_ratio and plan.n is None else certificate_lines(plan.certificate)
    if plan.alternatives:
        others = ", ".join(f"{name} {error:.4g}" for name, error in plan.alternatives)
        # Beyond p = 2 errors are rounded up, or bounds.
        size = "the error" if plan.p == 2 else "an error of at most"
        lines.append(f"Other mechanisms would have had {size}: {others}.")
    if plan.projected_error is not None and plan.spread is not None:
        plain, _ = plan.spread.root_mean_square(2)
        if plan.projected_error < 0.95 * plain:
            lines.append(
                f"Projected onto the domain (release.projected()) the ℓ₂ error is at most "
                f"{plan.projected_error:.4g} instead of {plain:.4g}, but no longer unbiased."
            )
    return [*lines, "Assumed: " + "; ".join(plan.assumptions) + "."]
