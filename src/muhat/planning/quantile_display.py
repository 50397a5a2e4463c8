"""Plans for quantiles as people read them: in a terminal, in a notebook, and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.planning.display import promise_facts, relation_in_words
from muhat.planning.picture import INK, NOISE, blank_figure
from muhat.release.display import page, table
from muhat.release.quantile_grids import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.planning.quantile_plan import QuantilePlan

NOTE = (
    "The rank error counts records: each value will lie between records that far from its "
    "quantile, whatever the data are."
)
DRAWN = [0.5 + 0.499 * step / 60 for step in range(61)]


def plan_text(plan: QuantilePlan) -> str:
    """A plan for the terminal."""
    lines = [*table(plan_facts(plan)), "", *table(plan_errors(plan)), ""]
    return joined([*lines, *plan_notes(plan)])


def plan_html(plan: QuantilePlan) -> str:
    """A plan for a notebook."""
    facts = [": ".join(row) for row in plan_facts(plan)[1:]]
    title = f"Plan: {plan_facts(plan)[0][1]}"
    return page(title, plan_errors(plan), [*facts, *plan_notes(plan)])


def plan_facts(plan: QuantilePlan) -> list[list[str]]:
    """What is planned, a fact a line."""
    relation = relation_in_words(plan.neighbors, plan.contributions)
    rows = [
        ["plan", f"private quantiles {', '.join(f'{q:g}' for q in plan.fractions)}"],
        *promise_facts(plan.privacy, relation, plan.n),
        ["n", "secret" if plan.n is None else f"{plan.n}, public"],
    ]
    for grid, search in zip(plan.recipe.grids, plan.recipe.searches[0], strict=True):
        rows.append(["grid", words(grid)])
        rows.append(
            [
                "mechanism",
                f"noisy search: {search.questions} comparisons for each quantile, with "
                f"{search.law.name} noise of {search.scale:.3g} records",
            ]
        )
    return rows


def plan_errors(plan: QuantilePlan) -> list[list[str]]:
    """The rank error for every confidence."""
    rows = [["with probability", "rank error at most"]]
    return rows + [[f"{100 * level:g} %", f"{error:,}"] for level, error in plan.errors()]


def plan_notes(plan: QuantilePlan) -> list[str]:
    """What the errors mean and rest on."""
    return [NOTE, f"Assumed: {'; '.join(plan.assumptions)}."]


def plan_figure(plan: QuantilePlan) -> Figure:
    """The rank error against the confidence."""
    figure = blank_figure(6)
    axes = figure.subplots()
    errors = [int(plan.rank_error(level).max()) for level in DRAWN]
    axes.step([100 * level for level in DRAWN], errors, color=NOISE, lw=1.5)
    axes.set_xlabel("confidence, per cent")
    axes.set_ylabel("rank error, records")
    axes.set_ylim(bottom=0)
    asked = ", ".join(f"{q:g}" for q in plan.fractions)
    title = f"Private quantiles {asked}, {plan.privacy.describe()}"
    figure.suptitle(title, color=INK, fontsize="medium")
    return figure
