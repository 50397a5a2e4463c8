"""Answers to linear queries as a picture: the error of every answer, beside what is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from muhat.errors import InvalidInput
from muhat.planning.picture import BOUND, INK, NOISE, blank_figure, draw_certificate
from muhat.privacy import Neighbors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.planning.linear_answers import LinearAnswers

MOST_POINTS = 2_000


def answers_figure(plan: LinearAnswers) -> Figure:
    """Left: the standard error of every answer. Right: the error beside its bounds."""
    figure = blank_figure(11)
    left, right = figure.subplots(1, 2)
    _draw_errors(left, plan)
    draw_certificate(right, plan.certificate, plan.name, plan.alternatives)
    title = (
        f"Private answers to {plan.workload.describe()}, {plan.privacy.describe()}\n"
        f"{plan.certificate.verdict()}"
    )
    figure.suptitle(title, color=INK, fontsize="medium")
    return figure


def _draw_errors(axes: Any, plan: LinearAnswers) -> None:
    """Our errors, and those of noise on every cell, added up."""
    ours = plan.standard_error
    places = np.unique(np.linspace(0, len(ours) - 1, MOST_POINTS).astype(int))
    style = {"drawstyle": "steps-mid", "lw": 1.5}
    axes.plot(places, ours[places], color=NOISE, label="this plan", **style)
    cells = _on_every_cell(plan)
    if cells is not None:
        axes.plot(places, cells[places], color=BOUND, ls="--", label="noise on every cell", **style)
    axes.set_ylim(0, None)
    axes.set_xlabel("answer")
    axes.set_ylabel("standard error")
    axes.locator_params(nbins=6)
    axes.legend(frameon=False, fontsize="small")


def _on_every_cell(plan: LinearAnswers) -> Any:
    """Standard errors if the noisy histogram itself were released; None if that is not known."""
    law = plan.recipe.law
    if law.kind is None:
        return None
    strength = float(plan.recipe.protection.strength_squared(law.kind)) ** 0.5
    moved = 1.0
    if plan.neighbors is Neighbors.SUBSTITUTE:
        # Two cells change by one: √2 in the ℓ₂ norm, 2 in the ℓ₁ norm.
        moved = 2 ** (1 / law.sensitivity_norm)
    try:
        lengths = plan.workload.row_norms()
    except InvalidInput:
        return None
    return lengths * moved * plan.contributions / strength * law.variance(1) ** 0.5
