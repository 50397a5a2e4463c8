"""Huang, Liang and Yi, Figure 9: which quantile of the norms to clip at.

The records are i·(1, …, 1) for i = 1, …, n. Clipped to norm C they have the bias B(C) along
(1, …, 1), and the noise of ρ-zCDP has variance 2C²/(ρn²) in every coordinate, so that the root
mean square error is √(B² + 2dC²/(ρn²)): a formula, for quantiles that are given away. Only CM,
which finds its threshold privately and has 3ρ/4 left, and muhat's default, which moves the centre
of the ball as well, are releases.
"""

from __future__ import annotations

import math
from statistics import geometric_mean

import numpy as np

from muhat._arrays import Floats
from muhat.studies.drawing import Line, lines
from muhat.studies.huang_trials import (
    CLIPPED,
    MUHAT,
    PAPER,
    TRIALS,
    TrialCell,
    runs_of,
    trials,
)
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Study, Verdict, tracked, where

PAPERS, BEST = "n − √(2d/ρ), the paper's", "best in hindsight"
ATTAINED = 1.02
"""The ratio to the least error up to which a quantile attains the optimum."""


def errors(n: int, dim: int, rho: float) -> Floats:
    """The root mean square errors if the k largest records are clipped, for k = 0, …, n − 1.

    >>> errors(500, 1, 0.5).round(3)[[0, 12, 499]]
    array([  2.   ,   1.958, 249.5  ])
    """
    longest = np.arange(n, 0, -1)  # norms in units of √d: the threshold that clips k of them
    clipped = np.arange(n)
    bias = (np.cumsum(longest) - longest * (clipped + 1)) / n
    noise = longest * math.sqrt(2 * dim / rho) / n
    return np.asarray(math.sqrt(dim) * np.hypot(bias, noise))


def papers_rank(n: int, dim: int, rho: float) -> int:
    """How many records the paper clips, as a rule: √(2d/ρ)."""
    return min(math.floor(math.sqrt(2 * dim / rho)), n - 1)


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Fixed quantiles, the paper's, the best one, and two releases, for every ρ and d."""
    n = settings["n"]
    rows: list[Row] = []
    for rho, dim in tracked([(r, d) for r in settings["rhos"] for d in settings["dims"]], progress):
        found = errors(n, dim, rho)
        ranks = {f"quantile {q:g}": n - math.ceil(q * n) for q in settings["quantiles"]}
        ranks |= {PAPERS: papers_rank(n, dim, rho), BEST: int(found.argmin())}
        cell: Row = {"cell": f"ρ {rho:g}, d {dim}", "n": n, "d": dim, "rho": rho}
        rows += [
            {**cell, "estimator": name, "clipped": k, "rms": float(found[k])}
            for name, k in ranks.items()
        ]
        rows += _releases(cell, settings)
    return rows


def _releases(of: Row, settings: Settings) -> list[Row]:
    n, dim, rho = settings["n"], int(of["d"] or 0), float(of["rho"] or 0)
    records = np.arange(1.0, n + 1)[:, None] * np.ones(dim)
    cell = TrialCell({"of": of["cell"]}, lambda generator: records, n, dim, rho, float(n))
    found = trials(cell, (CLIPPED, MUHAT), runs_of(settings["trials"], dim), settings["seed"])
    kept = ("estimator", "trials", "rms", "error", "enough")
    return [{**of, **{name: row[name] for name in kept}} for row in found]


def panels(rows: Rows) -> list[Panel]:
    """The error over d for every quantile, and where the best one is."""
    names = [n for n in dict.fromkeys(row["estimator"] for row in rows) if n not in (BEST, PAPERS)]
    looks = {MUHAT: (0, "-"), PAPERS: (1, "-"), CLIPPED: (2, "-"), BEST: (None, "-")}
    labels = {MUHAT: "muhat's default, private", CLIPPED: "CM, private"}
    found = []
    for rho in sorted({row["rho"] for row in rows}):
        drawn = []
        for number, name in enumerate([PAPERS, *names, BEST]):
            chosen = where(rows, rho=rho, estimator=name)
            look, dash = looks.get(name, (2 + number % 5, ":"))
            dims = [row["d"] for row in chosen]
            heights = [row["rms"] / math.sqrt(row["d"]) for row in chosen]
            drawn.append(Line(labels.get(name, name), dims, heights, look, dash, dash == ":"))
        y = "RMS ℓ₂ error ÷ √d"
        found.append(lines(f"Figure 9: ρ = {rho:g}", drawn, x="dimension d", y=y))
    return [*found, _ranks(rows)]


def _ranks(rows: Rows) -> Panel:
    drawn = []
    for look, rho in enumerate(sorted({row["rho"] for row in rows})):
        for name, dash, label in ((PAPERS, "-", "the paper's"), (BEST, "--", "best")):
            chosen = where(rows, rho=rho, estimator=name)
            parts = [1 - row["clipped"] / row["n"] for row in chosen]
            dims = [row["d"] for row in chosen]
            drawn.append(Line(f"ρ = {rho:g}, {label}", dims, parts, look, dash, dash == "--"))
    y = "quantile of the norms"
    return lines("Where to clip", drawn, x="dimension d", y=y, scale="semilogx")


def verdict(rows: Rows) -> Verdict:
    """The best quantile moves with d and ρ; the paper's choice is near it, not at it."""
    least = {row["cell"]: row["rms"] for row in where(rows, estimator=BEST)}
    worst: dict[str, list[float]] = {}
    for row in rows:
        worst.setdefault(row["estimator"], []).append(row["rms"] / least[row["cell"]])
    fixed = {name: max(of) for name, of in worst.items() if name.startswith("quantile")}
    kept = min(fixed, key=lambda name: fixed[name])
    places = [1 - row["clipped"] / row["n"] for row in where(rows, estimator=BEST)]
    most, private = max(worst[PAPERS]), worst[CLIPPED]
    moves = max(places) - min(places) > 0.05 and fixed[kept] > most
    attains = most <= ATTAINED
    return Verdict(
        "yes" if moves and attains else "in part" if moves else "no",
        f"The best quantile {'depends' if moves else 'hardly depends'} on d and ρ: it runs from "
        f"{min(places):.3f} to {max(places):.3f}. Of the fixed ones {kept} does best over all and "
        f"has up to {fixed[kept]:.2f} times the least error, the median up to "
        f"{fixed.get('quantile 0.5', math.nan):.1f} times. The paper's n − √(2d/ρ) has up to "
        f"{most:.3f} times the least root mean square error: it {_attains(attains)}. CM, which "
        f"must find its threshold privately and has 3ρ/4 left for the mean, has "
        f"{geometric_mean(private):.2f} times the least error (geometric mean; {max(private):.2f} "
        f"at worst); muhat's default, whose ball need not lie around 0, "
        f"{geometric_mean(worst[MUHAT]):.2f} times ({max(worst[MUHAT]):.2f} at worst; in "
        f"{sum(not row['enough'] for row in where(rows, estimator=MUHAT))} of {len(least)} cells "
        f"it has fewer records than it asks for).",
    )


def _attains(attains: bool) -> str:
    if attains:
        return "attains the optimum"
    return (
        "minimises the sum of bias and noise, but they add in squares, "
        "and clipping more is better: it is near the optimum, and does not attain it"
    )


STUDY = Study(
    name="huang-quantiles",
    title="Which quantile of the norms to clip at",
    paper=PAPER,
    claim="The optimal clipping threshold depends on d and ρ, and the (n − √(2d/ρ))-th smallest "
    "norm attains the optimum, unlike a fixed quantile (Figure 9).",
    noise="given quantiles are formulas; CM and muhat's default are releases with muhat's exact "
    "noise, which has no seed.",
    settings={
        "quick": {
            "seed": 0,
            "trials": 20,
            "n": 500,
            "quantiles": (0.5, 0.7, 0.9, 0.95),
            "rhos": (0.1, 1.0),
            "dims": (1, 4, 16, 64, 256, 1024),
        },
        "full": {
            "seed": 0,
            "trials": TRIALS,
            "n": 500,
            "quantiles": (0.5, 0.7, 0.9, 0.95),
            "rhos": (0.1, 0.5, 1.0),
            "dims": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
        },
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
)
