"""A plan for unbounded records as a picture: the error for every radius they may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat.planning.picture import INK, NOISE, blank_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.planning.unbounded import UnboundedPlan


def plan_figure(plan: UnboundedPlan) -> Figure:
    """The error against the radius that holds 99 % of the records, both on logarithmic axes."""
    figure = blank_figure(6)
    axes = figure.subplots()
    radii, errors = zip(*plan.errors(), strict=True)
    axes.loglog(radii, errors, color=NOISE, lw=1.5)
    axes.set_xlabel("radius that holds 99 % of the records")
    axes.set_ylabel("error of the mean")
    title = f"Private mean of {plan.n} records in {plan.domain!r}, {plan.privacy.describe()}"
    figure.suptitle(title, color=INK, fontsize="medium")
    return figure
