"""Huang, Liang and Yi, Corollary 1: how the error on Gaussian records goes with n, d and ρ.

The corollary has no constants. What can be measured is the power with which the error goes with
each of n, d and ρ, and whether the error beside the corollary's formula, with every hidden constant
1, stays bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from muhat.studies.drawing import Line, lines
from muhat.studies.huang_trials import (
    FAILURE,
    LABELS,
    MUHAT,
    NOISE,
    PAPER,
    PLAIN,
    SHIFTED,
    X_LABELS,
    TrialCell,
    trials,
)
from muhat.studies.samples import normal
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Study, Verdict, tracked, where

NAMES = (MUHAT, SHIFTED, PLAIN)
POWERS = {"n": -1.0, "d": 1.0, "rho": -0.5}
"""Of what privacy adds, Õ(d/(n√ρ)) by Remark 3, for the columns that the axes go over."""

SIGNS = {"n": "n", "d": "d", "rho": "ρ"}

LEEWAY = 0.15
"""How far a measured power may lie from these, for the corollary's logarithms."""

MEAN, BOUND = 10.0, 50.0
"""The mean in every coordinate, and the bound on it that is public, as in the other studies."""


def bound_of(n: int, dim: int, rho: float, magnitude: float) -> float:
    """What privacy adds by Corollary 1, for Σ = I and with its constants 1.

    Theorem 3 for records within √(d + log(n/β)) of their mean. The corollary itself prints the
    logarithm without the root that the theorem has.

    >>> round(bound_of(4000, 64, 0.5, 1000.0) / bound_of(4000, 64, 2.0, 1000.0), 12)
    2.0
    """
    scale = math.log(dim * 2 * magnitude * math.sqrt(n))
    ranks = math.sqrt(scale * math.log(4 * dim * scale / FAILURE) / rho)
    spread = math.sqrt(dim + math.log(n / FAILURE))
    return (math.sqrt(dim / rho) + ranks) * math.sqrt(math.log(n * dim / FAILURE)) * spread / n


def cells(settings: Settings) -> Iterator[TrialCell]:
    """Three axes through one cell."""
    n, dim, rho = settings["n"], settings["dim"], settings["rho"]
    for each in settings["ns"]:
        yield _cell("n", each, dim, rho)
    for each in settings["dims"]:
        yield _cell("d", n, each, rho)
    for each in settings["rhos"]:
        yield _cell("rho", n, dim, each)


def _cell(axis: str, n: int, dim: int, rho: float) -> TrialCell:
    columns: Row = {"axis": f"over {axis}", "x": f"n {n}, d {dim}, ρ {rho:g}"}
    shape = normal(MEAN)
    draw = lambda generator: shape.draw(generator, n, dim)  # noqa: E731
    return TrialCell(columns, draw, n, dim, rho, BOUND, mean=MEAN)


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Every estimator in every cell, with the corollary's formula beside it."""
    rows = []
    for cell in tracked(cells(settings), progress):
        stated = bound_of(cell.n, cell.dim, cell.rho, cell.magnitude)
        found = trials(cell, NAMES, settings["trials"], settings["seed"])
        rows += [row | {"formula": stated} for row in found]
    return rows


def over(rows: Rows, axis: str, name: str) -> tuple[list[float], list[float], list[float]]:
    """An axis in order: its places, what privacy cost an estimator there, and the formula."""
    chosen = sorted(where(rows, axis=f"over {axis}", estimator=name), key=lambda row: row[axis])
    columns = (axis, "private_rms", "formula")
    places, errors, stated = ([float(row[column]) for row in chosen] for column in columns)
    return places, errors, stated


def power(places: list[float], heights: list[float]) -> float:
    """The slope of logarithms.

    >>> round(power([1, 10, 100], [5, 0.5, 0.05]), 12)
    -1.0
    """
    return float(np.polyfit(np.log(places), np.log(heights), 1)[0])


def panels(rows: Rows) -> list[Panel]:
    """What privacy costs over n, d and ρ, with the formula as a line."""
    labels = X_LABELS | {"n": "number of records n"}
    found = []
    for axis in POWERS:
        drawn = []
        for look, name in enumerate((MUHAT, SHIFTED)):
            places, errors, stated = over(rows, axis, name)
            drawn.append(Line(LABELS.get(name, name), places, errors, look, "-", False))
        drawn.append(Line("formula with constants 1", places, stated, None, "--", False))
        title = f"Corollary 1 over {SIGNS[axis]}"
        found.append(lines(title, drawn, x=labels[axis], y="RMS ℓ₂ error to the empirical mean"))
    return found


def verdict(rows: Rows) -> Verdict:
    """The powers of n, d and ρ, and the constant that would have been enough."""
    told, kept = [], []
    for axis, printed in POWERS.items():
        places, errors, _ = over(rows, axis, SHIFTED)
        slope, ours = power(places, errors), power(places, over(rows, axis, MUHAT)[1])
        kept.append(abs(slope - printed) <= LEEWAY)
        told.append(
            f"{slope:.2f} in {SIGNS[axis]}, where the corollary has {printed:g} but for logarithms "
            f"(muhat's default {ours:.2f})"
        )
    constants = {name: _constants(rows, name) for name in (SHIFTED, MUHAT)}
    kept.append(max(constants[SHIFTED]) <= 1)
    whole = [row["rms"] for row in where(rows, estimator=SHIFTED)]
    plain = [row["rms"] for row in where(rows, estimator=PLAIN)]
    sampling = max(a / b for a, b in zip(whole, plain, strict=True))
    return Verdict(
        "yes" if all(kept) else "in part" if any(kept) else "no",
        f"What privacy adds to the error of Shifted-CM, root mean square against the empirical "
        f"mean, goes with the powers {'; '.join(told)}. It is {min(constants[SHIFTED]):.2f} to "
        f"{max(constants[SHIFTED]):.2f} times the corollary's formula with every hidden constant "
        f"1 (muhat's default {min(constants[MUHAT]):.2f} to {max(constants[MUHAT]):.2f}). Against "
        f"the population mean, which the corollary is about, Shifted-CM has at most "
        f"{sampling:.2f} times the error of the mean without privacy in these cells.",
    )


def _constants(rows: Rows, name: str) -> list[float]:
    return [row["private_rms"] / row["formula"] for row in where(rows, estimator=name)]


CLAIM = (
    "For N(μ, Σ) with ‖μ‖ ≤ R and known bounds on Σ the error of Shifted-CM is "
    "O(‖Σ^½‖·√(d + log(n/β))·(1/√n + √d·polylog/(n√ρ) + τ·polylog/n)) with probability 1 − β "
    "(Corollary 1; as extracted, the paper prints √(ρn) for n√ρ)."
)
COMMON = {"seed": 0, "n": 8000, "dim": 64, "rho": 0.5}
STUDY = Study(
    name="huang-rate",
    title="How the error of Shifted-CM goes with n, d and ρ",
    paper=PAPER,
    claim=CLAIM,
    noise=NOISE,
    settings={
        "quick": {
            **COMMON,
            "trials": 10,
            "ns": (2000, 8000, 32_000),
            "dims": (16, 64, 256),
            "rhos": (0.1, 0.5, 2.0),
        },
        "full": {
            **COMMON,
            "trials": 50,
            "ns": (2000, 4000, 8000, 16_000, 32_000, 64_000),
            "dims": (8, 16, 32, 64, 128, 256),
            "rhos": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
        },
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
)
