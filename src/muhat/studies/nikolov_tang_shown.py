"""What the study of Nikolov and Tang shows of its rows: four panels and the verdict."""

from __future__ import annotations

import math
from typing import Any

from muhat.studies.drawing import COLOURS, Line, legend_below, lines
from muhat.studies.study import Panel, Rows, Verdict, where


def panels(rows: Rows) -> list[Panel]:
    """Constants of both theorems over d, gains by domain, ratios over ρ."""
    ratios = where(rows, kind="ratio")
    near = [
        Line(label, [row["rho"] for row in ratios], [row[column] for row in ratios], look)
        for look, (column, label) in enumerate(
            (
                ("paper_argument", "by the paper's argument"),
                ("every_dataset", "muhat, every dataset"),
                ("worst_dataset", "muhat, some dataset"),
            )
        )
    ]
    return [
        _constants(rows, "tensor", "Theorem 6: moment tensors"),
        _constants(rows, "marginals", "Theorem 7: ℓ-way marginals"),
        Panel("What covering K − K gains, p = 2", lambda a: _bars(a, rows)),
        lines(
            "How near the best Gaussian noise is (ball, d = 10)",
            near,
            x="ρ of zCDP",
            y="error ÷ least error, unbiased",
        ),
    ]


def _constants(rows: Rows, kind: str, title: str) -> Panel:
    found = []
    for order, p in sorted({(row["order"], row["p"]) for row in where(rows, kind=kind)}):
        chosen = where(rows, kind=kind, order=order, p=p)
        dash = "-" if p == 2 else ":" if math.isinf(p) else "--"
        label = f"ℓ = {order}, p = {'∞' if math.isinf(p) else f'{p:g}'}"
        dims = [row["d"] for row in chosen]
        found.append(Line(label, dims, [r["constant"] for r in chosen], order - 1, dash))
    y = "certified Γₚ ÷ the theorem's formula"
    first = where(rows, kind=kind, order=1)
    if all(abs(row["constant"] - 1) < 1e-6 for row in first):
        title += " (all of ℓ = 1 at 1)"
    return lines(title, found, x="dimension d", y=y, level=1, columns=3)


def _bars(axes: Any, rows: Rows) -> None:
    chosen = where(rows, kind="gain", p=2)[::-1]
    places = range(len(chosen))
    gains = [row["gain"] for row in chosen]
    axes.hlines(places, 1, gains, color=COLOURS[0], linewidth=2)
    axes.plot(gains, places, "o", color=COLOURS[0], label="measured")
    mark = {"marker": "|", "markersize": 14, "markeredgewidth": 2.5, "color": COLOURS[1]}
    most = [row["jung"] for row in chosen]
    axes.plot(most, places, linestyle="none", label="most possible (Jung)", **mark)
    names = [f"{row['domain']}\n{row['gain']:.3f}" for row in chosen]
    axes.set_yticks(places, names, fontsize="small")
    axes.set_xlim(0.98, 1.45)
    axes.set_xlabel("error if twice K is covered ÷ muhat's")
    axes.grid(alpha=0.25)
    legend_below(axes, 2)


def verdict(rows: Rows) -> Verdict:
    """Both theorems hold with the constants measured; what was gained beyond the paper."""
    least = {
        kind: min(float(row["constant"]) for row in where(rows, kind=kind))
        for kind in ("tensor", "marginals")
    }
    most = max(row["d"] for row in where(rows, kind="marginals"))
    last = where(rows, kind="marginals", d=most)
    away = max(abs(row["constant"] / row["limit"] - 1) for row in last)
    gains = where(rows, kind="gain", p=2)
    least_gain, *_, best = sorted(gains, key=lambda row: float(row["gain"]))
    fair = all(row["gain"] <= row["jung"] * (1 + 1e-6) for row in gains)
    tight, loose = where(rows, kind="ratio")[0], where(rows, kind="ratio")[-1]
    held = [least["tensor"] > 0.5, least["marginals"] > 1 and away < 0.02, fair]
    return Verdict(
        "yes" if all(held) else "in part" if any(held) else "no",
        f"Γ_p of moment tensors is at least {least['tensor']:.2f} times Theorem 6's formula, and "
        f"Γ_p of marginals at least {least['marginals']:.2f} times Theorem 7's, for all ℓ, p and "
        f"d measured. For marginals the rate in d is {'' if held[1] else 'not '}exact: at d = "
        f"{most:,} the quotient is within {100 * away:.1f} % of its limit "
        f"ℓ^ℓ·2^(ℓ/2+ℓ/p)/√(ℓ!). Covering K − K instead of twice K divides the paper's error by "
        f"{least_gain['gain']:.3f} ({least_gain['domain']}) to {best['gain']:.3f} "
        f"({best['domain']}, where {best['jung']:.3f} is the most). Gaussian noise in a ball "
        f"is within {100 * (tight['worst_dataset'] - 1):.2f} % of the least error of any "
        f"unbiased mechanism at ρ = {tight['rho']:g} and within {loose['worst_dataset']:.2f} times "
        f"at ρ = {loose['rho']:g}; the paper's own argument, with its constants made explicit, "
        f"says {tight['paper_argument']:.2f} and {loose['paper_argument']:.2f} times.",
    )
