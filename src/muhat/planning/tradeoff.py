"""How much error a smaller bias costs, and what no mechanism can beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat._arrays import Floats
from muhat._text import joined
from muhat.planning.picture import BODY, BOUND, INK, NOISE, blank_figure
from muhat.release.display import page, significant, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LINES = 14


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff:
    """A curve: the root mean square error reached at each bias, and its lower bound.

    All of shape (points,). `chosen` is the bias and the error of the plan the curve is of. If that
    is `symmetric`, its bias is bounded for symmetric distributions only, and it may lie below.
    """

    bias: Floats
    rmse: Floats
    lower_bound: Floats
    chosen: tuple[float, float]
    symmetric: bool
    title: str

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain data, ready for JSON."""
        return {
            "bias": self.bias.tolist(),
            "rmse": self.rmse.tolist(),
            "lower_bound": self.lower_bound.tolist(),
            "chosen": list(self.chosen),
            "symmetric": self.symmetric,
        }

    def plot(self) -> Figure:
        """The curve as a picture (needs the extra `plot`); returns a matplotlib Figure."""
        figure = blank_figure(6.5)
        axes = figure.subplots()
        axes.loglog(self.bias, self.rmse, color=NOISE, lw=1.8, label="reached")
        axes.loglog(self.bias, self.lower_bound, color=INK, lw=1.2, label="no mechanism is below")
        floor = min(self.lower_bound.min(), self.rmse.min(), self.chosen[1]) / 2
        axes.fill_between(self.bias, floor, self.lower_bound, color=BOUND, alpha=0.25, lw=0)
        if self.symmetric:
            # Next to no bias: a point would be off the axis.
            axes.axhline(self.chosen[1], color=BODY, lw=1.2, ls="--", label="this plan, symmetric")
        else:
            axes.plot(*self.chosen, "o", color=BODY, label="this plan")
        axes.set_ylim(bottom=floor)
        axes.set_xlabel("bound on the bias (unit of the data)")
        axes.set_ylabel("root mean square error (unit of the data)")
        axes.legend(frameon=False, fontsize="small")
        figure.suptitle(self.title, color=INK, fontsize="small")
        return figure

    def rows(self) -> list[list[str]]:
        """The curve as a table of at most LINES points, evenly spaced."""
        shown = np.unique(np.linspace(0, len(self.bias) - 1, LINES).round().astype(int))
        points = np.column_stack([self.bias, self.rmse, self.lower_bound])[shown]
        head = ["bias at most", "root mean square error", "no mechanism is below"]
        return [head, *([significant(each) for each in point] for point in points)]

    def __repr__(self) -> str:
        return joined([self.title, "", *table(self.rows())])

    def _repr_html_(self) -> str:
        return page("Bias against error", self.rows(), [self.title])
