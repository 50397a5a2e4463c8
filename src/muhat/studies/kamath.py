"""Bias against error of the clipped mean: Kamath et al., Figures 1 and 2, Table 1, Theorem 1.2.

Means of n records are clipped to [0, T] and get Laplace noise T/(εn). Over a population both parts
of the error are exact: the bias is E(X − T)₊, and the variance is that of the clipped records and
of the noise. Releases by the real mechanism are measured beside them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import default_rng

import muhat as mh
from muhat._arrays import Floats
from muhat.mechanisms.learning.tails import paper_pad
from muhat.studies.kamath_populations import LogNormal, Population, wages
from muhat.studies.kamath_shown import panels, verdict
from muhat.studies.study import Progress, Row, Settings, Study, tracked

TABLE_1 = {
    0.01: (51_020, 14_909, 14_408, 20_733),
    0.05: (105_306, 5_825, 6_005, 8_366),
    0.1: (167_347, 2_565, 4_964, 5_587),
    1.0: (299_184, 708, 2_343, 2_448),
    2.0: (337_959, 534, 2_276, 2_337),
    4.0: (376_735, 349, 2_283, 2_309),
}
"""As printed, for the salaries of the University of California: threshold, bias, standard error,
root mean square error at every ε."""

PRINTED_MEAN, PRINTED_MEDIAN = 24_989, 40_865
"""What the paper says of those salaries."""

FINE = 4000
"""How many thresholds the best is chosen from."""


def errors(
    population: Population, thresholds: Floats, n: int, epsilon: float
) -> tuple[Floats, Floats]:
    """What clipping takes from the mean, and the standard error with the noise; both exact."""
    first, second = population.clipped(thresholds)
    noise = 2 * (thresholds / (epsilon * n)) ** 2
    variance = (second - first**2) * population.sampling(n) + noise
    return population.mean - first, np.sqrt(variance)


def _thresholds(population: Population, number: int) -> Floats:
    return population.median * np.geomspace(0.3, 60, number)


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Best thresholds and releases there and elsewhere, curves over T, and the trilemma."""
    law = LogNormal(settings["median"], settings["spread"])
    people: tuple[Population, ...] = (wages(settings["seed"]), law)
    rows: list[Row] = []
    jobs = [(each, epsilon) for each in people for epsilon in settings["epsilons"]]
    for population, epsilon in tracked(jobs, progress):
        rows += _table(population, epsilon, settings)
    rows.sort(key=lambda row: row["kind"] != "table")
    for population in people:
        thresholds = _thresholds(population, settings["points"])
        edges = np.append(thresholds, thresholds[-1] * thresholds[1] / thresholds[0])
        shares = population.silhouette(edges)
        for epsilon in settings["epsilons"]:
            columns = zip(
                thresholds,
                *errors(population, thresholds, settings["n"], epsilon),
                shares / shares.max(),
                strict=True,
            )
            rows += [
                _row("curve", population, epsilon, t, bias, error) | {"silhouette": float(share)}
                for t, bias, error, share in columns
            ]
    return rows + trade_rows(settings)


def _row(
    kind: str, population: Population, epsilon: float, threshold: Any, bias: Any, error: Any
) -> Row:
    return {
        "kind": kind,
        "population": population.name,
        "epsilon": epsilon,
        "threshold": float(threshold),
        "bias": float(bias),
        "standard_error": float(error),
        "rmse": math.hypot(bias, error),
    }


def _table(population: Population, epsilon: float, settings: Settings) -> list[Row]:
    """The best threshold with releases there, and releases at some others."""
    fine = _thresholds(population, FINE)
    best = fine[np.argmin(np.hypot(*errors(population, fine, settings["n"], epsilon)))]
    rows = []
    for times in settings["times_best"]:
        threshold = float(best * times)
        (bias,), (error,) = errors(population, np.array([threshold]), settings["n"], epsilon)
        row = _row("table" if times == 1 else "check", population, epsilon, threshold, bias, error)
        row["mean"], row["median"] = population.mean, population.median
        row |= _released(population, threshold, epsilon, settings)
        row |= _uncertainty(float(bias), float(error), threshold, epsilon, settings)
        if times == 1 and not isinstance(population, LogNormal) and epsilon in TABLE_1:
            names = ("paper_threshold", "paper_bias", "paper_standard_error", "paper_rmse")
            row |= dict(zip(names, TABLE_1[epsilon], strict=True))
            row |= {"paper_mean": PRINTED_MEAN, "paper_median": PRINTED_MEDIAN}
        rows.append(row)
    return rows


def _released(population: Population, threshold: float, epsilon: float, settings: Settings) -> Row:
    """Errors of so many releases of the real mechanism, each of a new sample."""
    n, trials = settings["n"], settings["trials"]
    plan = mh.plan_mean(
        domain=mh.Box([0.0], [threshold]),
        n=n,
        privacy=mh.PureDP(epsilon=epsilon),
        mechanism="laplace",
    )
    generator = default_rng([settings["seed"], round(1e6 * epsilon), round(threshold)])
    off = np.array(
        [
            plan.release(population.draw(generator, n)).value[0] - population.mean
            for _ in range(trials)
        ]
    )
    return {
        "measured_bias": float(-off.mean()),
        "measured_standard_error": float(off.std()),
        "measured_rmse": math.sqrt((off**2).mean()),
        "trials": trials,
    }


def _uncertainty(
    bias: float, error: float, threshold: float, epsilon: float, settings: Settings
) -> Row:
    """The standard errors of measured bias and mean square: of a normal and a Laplace variable."""
    noise = 2 * (threshold / (epsilon * settings["n"])) ** 2
    fourth = 3 * error**4 + 3 * noise**2
    return {
        "bias_uncertainty": error / math.sqrt(settings["trials"]),
        "square_uncertainty": math.sqrt(
            (fourth + 4 * bias**2 * error**2 - error**4) / settings["trials"]
        ),
    }


_COMMON = {"n": 500, "median": 60_000, "spread": 1.0, "epsilons": tuple(TABLE_1), "seed": 2024}

STUDY = Study(
    name="kamath",
    title="Bias, error and privacy of the clipped mean",
    paper="Kamath, Mouzakis, Regehr, Singhal, Steinke, Ullman: A Bias-Accuracy-Privacy Trilemma "
    "for Statistical Estimation, 2024 (Figures 1 and 2, Table 1, Theorems 1.2 and 1.3)",
    claim="On skewed populations the clipped mean has a low bias only with a wide clip, which "
    "costs accuracy or privacy; the best threshold and its bias depend on ε. The trade is forced "
    "on every private mean: for a bias of β an error of at least order 1/(nεβ), which the clipped "
    "mean attains up to constants.",
    noise="measured releases have muhat's exact Laplace noise, so that they differ from run to "
    "run within their uncertainty; curves and best thresholds are exact.",
    settings={
        "quick": _COMMON
        | {
            "trials": 300,
            "times_best": (0.4, 1, 2.5),
            "points": 40,
            "biases": 24,
            "trilemma_epsilon": 1.0,
        },
        "full": _COMMON
        | {
            "trials": 5000,
            "times_best": (0.2, 0.4, 1, 2.5, 5),
            "points": 120,
            "biases": 60,
            "trilemma_epsilon": 1.0,
        },
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
    shown_columns=(
        "population",
        "epsilon",
        "threshold",
        "bias",
        "standard_error",
        "rmse",
        "measured_rmse",
        "paper_threshold",
        "paper_bias",
        "paper_rmse",
    ),
)


def trade_rows(settings: Settings) -> list[Row]:
    """The clipped mean for every law of variance 1 and a mean within ±½: error over bias."""
    n, epsilon = settings["n"], settings["trilemma_epsilon"]
    plan = mh.plan_mean(
        domain=mh.Reals(1, 0.5),
        n=n,
        privacy=mh.PureDP(epsilon=epsilon),
        moment=(2, 1.0),
        max_bias=0.1,
        mechanism="clipped-laplace",
    )
    curve = plan.tradeoff(settings["biases"])
    rows: list[Row] = []
    for bias, reached, low in zip(curve.bias, curve.rmse, curve.lower_bound, strict=True):
        found = mh.bounds.trilemma(n=n, epsilon=epsilon, bias=float(bias))
        printed = [b.value for b in found.bounds if b.source == "paper" and b.value is not None]
        width = 1 + 2 * paper_pad(float(bias), 2.0, 1.0)
        rows.append(
            {
                "kind": "trilemma",
                "n": n,
                "epsilon": epsilon,
                "bias": float(bias),
                "rmse": float(reached),
                "paper_rmse": math.sqrt(1 / n + bias**2 + 2 * (width / (epsilon * n)) ** 2),
                "lower_bound": float(low),
                "paper_lower_bound": max(printed, default=None),
            }
        )
    return rows
