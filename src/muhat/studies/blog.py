"""Pure against approximate privacy for means in a ball, over the dimension.

The blog post has rates; here both sides have constants (docs/proofs/ball.md). ρ-zCDP is taken at
the ρ that pure privacy implies, so that every purely private mechanism is among those it bounds.
"""

from __future__ import annotations

import math
from typing import Any

from muhat.bounds import ball
from muhat.privacy import ZCDP, ApproxDP, Privacy, PureDP
from muhat.privacy.conversions import pure_rho
from muhat.studies.drawing import Line, lines
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Study, Verdict, tracked, where

PURE, APPROX, CONCENTRATED = "pure", "approximate", "zCDP"


def _promises(settings: Settings) -> dict[str, Privacy]:
    epsilon, delta = settings["epsilon"], settings["delta"]
    implied = math.ceil(1e4 * pure_rho(epsilon)) / 1e4
    return {
        PURE: PureDP(epsilon=epsilon),
        APPROX: ApproxDP(epsilon=epsilon, delta=delta),
        CONCENTRATED: ZCDP(rho=implied),
    }


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """The least error achieved and the largest error proved necessary, for each promise and d."""
    rows: list[Row] = []
    for dim in tracked(settings["dims"], progress):
        for name, privacy in _promises(settings).items():
            found = ball(n=settings["n"], dim=dim, radius=1.0, privacy=privacy)
            best = found.achieved[0]
            laplace = [a.error for a in found.achieved if a.mechanism == "plain-laplace"]
            rows.append(
                {
                    "promise": name,
                    "privacy": privacy.describe(),
                    "n": settings["n"],
                    "d": dim,
                    "mechanism": best.mechanism,
                    "achieved": best.error,
                    "lower_any": found.lower,
                    "lower_unbiased": _unbiased(found.bounds),
                    "laplace": laplace[0] if laplace else None,
                }
            )
    return rows


def _unbiased(bounds: Any) -> float | None:
    values = [b.value for b in bounds if b.mechanisms == "unbiased" and b.value is not None]
    return max(values, default=None)


def panels(rows: Rows) -> list[Panel]:
    """Errors over d, and the gap between pure and approximate privacy."""
    pure, other = where(rows, promise=PURE), where(rows, promise=APPROX)
    dims = [row["d"] for row in pure]
    errors = []
    for look, name in enumerate((PURE, APPROX, CONCENTRATED)):
        chosen = where(rows, promise=name)
        promise = chosen[0]["privacy"]
        errors.append(Line(f"{promise}: achieved", dims, [r["achieved"] for r in chosen], look))
        low = [row["lower_any"] for row in chosen]
        errors.append(Line(f"{promise}: bound", dims, low, look, dash="--", hollow=True))
    proved = [a["lower_any"] / b["achieved"] for a, b in zip(pure, other, strict=True)]
    gaps = [
        Line(
            "achieved ÷ achieved",
            dims,
            [a["achieved"] / b["achieved"] for a, b in zip(pure, other, strict=True)],
            0,
        ),
        Line("bound for pure ÷ achieved under approximate", dims, proved, 1),
        Line(
            "growth like √d", dims, [proved[-1] * math.sqrt(d / dims[-1]) for d in dims], None, ":"
        ),
    ]
    return [
        lines(
            f"Mean of {pure[0]['n']:,} records in a ball: what is achieved, what nobody can beat",
            errors,
            x="dimension d",
            y="RMS ℓ₂ error ÷ radius",
        ),
        lines(
            "The price of pure privacy",
            gaps,
            x="dimension d",
            y="error, pure ÷ approximate",
            level=1,
            columns=1,
        ),
    ]


def growth(rows: Rows, promise: str, column: str) -> float:
    """The exponent of d between the two largest dimensions."""
    before, last = where(rows, promise=promise)[-2:]
    return math.log(last[column] / before[column]) / math.log(last["d"] / before["d"])


def crossing(rows: Rows) -> int | None:
    """The first d measured at which every pure mechanism errs more than an approximate one."""
    pairs = zip(where(rows, promise=PURE), where(rows, promise=APPROX), strict=True)
    return next((a["d"] for a, b in pairs if a["lower_any"] > b["achieved"]), None)


def verdict(rows: Rows) -> Verdict:
    """Upper rates, a proved separation, and the lower rate of (ε, δ), which has no constant."""
    up = {name: growth(rows, name, "achieved") for name in (PURE, APPROX, CONCENTRATED)}
    low = {name: growth(rows, name, "lower_any") for name in (PURE, APPROX, CONCENTRATED)}
    first = crossing(rows)
    uppers = abs(up[PURE] - 1) < 0.02 and abs(up[APPROX] - 0.5) < 0.02
    separated = first is not None and abs(low[PURE] - 1) < 0.02
    missing = abs(low[APPROX] - 0.5) > 0.02
    last = {name: where(rows, promise=name)[-1] for name in (PURE, APPROX, CONCENTRATED)}
    ratio = {name: row["achieved"] / row["lower_any"] for name, row in last.items()}
    gain = last[PURE]["laplace"] / last[PURE]["achieved"]
    unbiased = growth(rows, APPROX, "lower_unbiased")
    answer = "no" if not (uppers and separated) else "in part" if missing else "yes"
    where_proved = (
        f"from d = {first} on, of the dimensions measured, every purely private mean errs more "
        f"than Gaussian noise does under {last[APPROX]['privacy']}"
        if first is not None
        else "no dimension measured separates the two promises by proof"
    )
    return Verdict(
        answer,
        f"The achieved error grows like d^{up[PURE]:.2f} under {last[PURE]['privacy']} and like "
        f"d^{up[APPROX]:.2f} under {last[APPROX]['privacy']}, {'' if uppers else 'not '}as "
        f"claimed. With constants, {where_proved}; the bound for pure privacy grows like "
        f"d^{low[PURE]:.2f}. At d = {last[PURE]['d']:,} muhat is within {ratio[PURE]:.2f} times "
        f"(pure) and {ratio[CONCENTRATED]:.2f} times ({last[CONCENTRATED]['privacy']}, bound "
        f"d^{low[CONCENTRATED]:.2f}) of what any mechanism can do. The post's lower bound "
        f"√(d·ln(1/δ)) for (ε, δ) is a rate whose constant nobody has written down: the bound "
        f"with a constant for any mechanism grows like d^{low[APPROX]:.2f} there, and the one for "
        f"unbiased mechanisms like d^{unbiased:.2f}. The Laplace noise of the "
        f"post errs {gain:.2f} times as much as the K-norm noise used here.",
    )


STUDY = Study(
    name="blog",
    title="Pure against approximate privacy, over the dimension",
    paper="Private mean estimation: pure vs approximate DP (I), blog post, 2024",
    claim="For the mean of n records in a ball of R^d the error is L·d/(nε) under pure privacy "
    "and L·√(d·ln(1/δ))/(nε) under approximate privacy, above and below: a true gap of √d.",
    noise="none: achieved errors are exact formulas, bounds are proved.",
    settings={
        "quick": {
            "n": 1_000_000,
            "epsilon": 1.0,
            "delta": 1e-6,
            "dims": (1, 2, 5, 10, 20, 50, 100, 200, 500, 530, 1000, 2000, 5000, 10_000, 100_000),
        },
        "full": {
            "n": 1_000_000,
            "epsilon": 1.0,
            "delta": 1e-6,
            "dims": tuple(sorted({530, *(round(10 ** (k / 10)) for k in range(51))})),
        },
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
)
