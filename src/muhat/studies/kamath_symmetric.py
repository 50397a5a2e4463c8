"""Means without bias for symmetric laws beside Karwa and Vadhan's: Kamath et al., Figures 3a, 3b.

Half of the records find the fullest bin, the other half are clipped about its middle. Bins at
random places leave no bias; bins at multiples of their width (Karwa and Vadhan) do, if bins and
clip are narrow. The bias is measured against the mean of the very records that are averaged, whose
own error is 0 on average: far fewer trials do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

import muhat as mh
from muhat._arrays import Floats
from muhat.data import open_source
from muhat.mechanisms.learning.symmetric import run_alone
from muhat.mechanisms.learning.symmetric_column import SymmetricMean
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.studies.kamath_populations import DrawnPeople, heights
from muhat.studies.kamath_symmetric_shown import OFFSET, panels, verdict
from muhat.studies.study import Progress, Row, Settings, Study, tracked

Draw = Callable[[Generator], Floats]


def narrow(name: str, unit: float, clip: float, settings: Settings) -> SymmetricMean:
    """Bins of a standard deviation, and a clip of so many of them; half of the records for each."""
    return SymmetricMean.planned(
        settings["n"],
        mh.ApproxDP(epsilon=settings["epsilon"], delta=settings["delta"]),
        (2.0, unit),
        offset=OFFSET[name],
        first=settings["n"] // 2,
        reach=(unit, clip * unit),
    )


def run_trials(mean: SymmetricMean, draw: Draw, seed: Any, trials: int) -> tuple[Floats, Floats]:
    """Values and middles of their intervals, of shape (trials, 2), and what each value is off.

    NaN where no value came out.
    """
    generator = default_rng(seed)
    found = np.full((trials, 2), math.nan)
    off = np.full(trials, math.nan)
    for trial in range(trials):
        records = draw(generator)
        outcome = run_alone(mean, open_source(records[:, None], None, 1))
        if outcome.value is not None and outcome.interval is not None:
            found[trial] = outcome.value, sum(outcome.interval) / 2
            off[trial] = outcome.value - records[mean.first :].mean()
    return found, off


def planned(name: str, settings: Settings) -> SymmetricMean:
    """What `plan_mean` chooses for laws of standard deviation 1."""
    plan = mh.plan_mean(
        domain=mh.Reals(1, 1000.0),
        n=settings["n"],
        privacy=mh.ApproxDP(epsilon=settings["epsilon"], delta=settings["delta"]),
        moment=(2, 1.0),
        symmetric=True,
        mechanism=name,
        insist=True,
    )
    assert isinstance(plan.method, SymmetricMethod)
    (column,) = plan.method.means.columns
    assert isinstance(column, SymmetricMean)
    return column


def apart(values: Floats, middles: Floats) -> float:
    """How far apart the values of the two commonest intervals are, in their standard deviations.

    Two normal laws of one spread, mixed evenly, show two peaks if this is above 2.
    """
    places, times = np.unique(np.round(middles, 6), return_counts=True)
    common = places[np.argsort(times)[-2:]]
    if len(common) < 2:
        return 0.0
    groups = [values[np.isclose(middles, place, atol=1e-5)] for place in common]
    spread = math.sqrt(float(np.mean([group.var() for group in groups])))
    return float(abs(groups[0].mean() - groups[1].mean())) / spread


def _row(kind: str, estimator: str, off: Floats) -> Row:
    """The bias and half of its 95 % interval."""
    came = off[np.isfinite(off)]
    return {
        "kind": kind,
        "estimator": estimator,
        "bias": float(came.mean()),
        "half_interval": 1.96 * float(came.std()) / math.sqrt(len(came)),
        "trials": len(off),
        "no_value": len(off) - len(came),
    }


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Biases for normal records over their mean, for heights, and of the plans' own defaults."""
    sons, daughters = heights(settings["seed"])
    steps = settings["steps"]
    jobs: list[tuple[str, Any, Any]] = [("heights", sons, clip) for clip in settings["clips"]]
    others = (daughters, sons.symmetric())
    jobs += [("heights", people, settings["clips"][-1]) for people in others]
    jobs += [("default", settings["mu"], None)]
    jobs += [("cycle", 2 * k / steps, None) for k in range(steps + 1)]
    rows: list[Row] = []
    for kind, about, clip in tracked(jobs, progress):
        for name in OFFSET:
            if kind == "heights":
                rows += _heights(about, name, clip, settings)
            else:
                rows.append(_normal(kind, name, about, settings))
    rows.sort(key=lambda row: row["kind"] == "histogram")
    return rows


def _normal(kind: str, name: str, mu: float, settings: Settings) -> Row:
    """N(μ, 1): with the narrow bins of the figure, or with what a plan chooses."""
    n: int = settings["n"]
    mean, trials = narrow(name, 1.0, settings["cycle_clip"], settings), settings["trials"]
    if kind == "default":
        mean, trials = planned(name, settings), settings["default_trials"]
    seed = [settings["seed"], round(1000 * mu), kind == "default"]
    _, off = run_trials(mean, lambda g: mu + g.standard_normal(n), seed, trials)
    return _row(kind, name, off) | {
        "mu": mu,
        "bin": mean.width,
        "clip": mean.clip,
        "noise": mean.noise_error,
        "bias_bound": mean.bias_bound if kind == "default" else None,
    }


def _heights(people: DrawnPeople, name: str, clip: float, settings: Settings) -> list[Row]:
    """The bias in inches, what the two commonest intervals lead to, and a histogram of values."""
    n, trials = settings["n"], settings["height_trials"]
    mean = narrow(name, people.spread, clip, settings)
    seed = [settings["seed"], round(100 * clip)]
    found, off = run_trials(mean, lambda g: people.draw_independent(g, n), seed, trials)
    found = found[np.isfinite(off)]
    row = _row("heights", name, off) | {
        "population": people.name,
        "skewness": people.skewness,
        "true_mean": people.mean,
        "bin": people.spread,
        "clip": clip * people.spread,
        "clip_in_deviations": clip,
        "rmse": float(np.sqrt(((found[:, 0] - people.mean) ** 2).mean())),
    }
    if not mean.offset:
        row["modes_apart"] = apart(*found.T)
    near = people.mean - 0.4 * people.spread, people.mean + 0.4 * people.spread
    shares, edges = np.histogram(found[:, 0], settings["bins"], near)
    bars: list[Row] = [
        {
            "kind": "histogram",
            "estimator": name,
            "population": people.name,
            "clip_in_deviations": clip,
            "left": float(left),
            "right": float(right),
            "share": float(share / len(found)),
        }
        for left, right, share in zip(edges, edges[1:], shares, strict=False)
    ]
    return [row, *bars]


_COMMON = {
    "n": 400,
    "epsilon": 1.0,
    "delta": 1e-6,
    "cycle_clip": 1.5,
    "clips": (1.0, 1.5),
    "mu": 0.25,
    "bins": 48,
    "seed": 2024,
}

STUDY = Study(
    name="kamath-symmetric",
    title="Means without bias for symmetric laws, beside Karwa and Vadhan's",
    paper="Kamath, Mouzakis, Regehr, Singhal, Steinke, Ullman: A Bias-Accuracy-Privacy Trilemma "
    "for Statistical Estimation, 2024 (Section 4.3, Figures 3a and 3b)",
    claim="The bias of Karwa and Vadhan's estimator varies cyclically with the true mean, and its "
    "values cluster; random bins remove both. On 25,000 heights (skewness −0.006) the bias falls "
    "from 0.030 to 0.0045 inches.",
    noise="every value is a release of muhat's own mechanism with exact noise, so that numbers "
    "differ from run to run within their intervals; records are drawn from a seed.",
    settings={
        "quick": _COMMON
        | {"steps": 16, "trials": 450, "height_trials": 2000, "default_trials": 500},
        "full": _COMMON
        | {"steps": 32, "trials": 20_000, "height_trials": 100_000, "default_trials": 20_000},
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
    shown_columns=(
        "kind",
        "population",
        "estimator",
        "mu",
        "clip",
        "bias",
        "half_interval",
        "bias_bound",
        "trials",
        "no_value",
    ),
)
