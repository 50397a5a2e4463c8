"""The estimators of Figure 3, as narrow as the figure needs or as planned, and their trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

import muhat as mh
from muhat._arrays import Floats
from muhat.data import open_source
from muhat.mechanisms.learning.symmetric import SymmetricMean
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.studies.kamath_symmetric_shown import OFFSET
from muhat.studies.study import Settings

Draw = Callable[[Generator], Floats]


def narrow(name: str, unit: float, clip: float, settings: Settings) -> SymmetricMean:
    """Bins of a standard deviation, and a clip of so many of them; half of the records for each."""
    return SymmetricMean.planned(
        settings["n"],
        mh.ApproxDP(epsilon=settings["epsilon"], delta=settings["delta"]),
        (2.0, unit),
        offset=OFFSET[name],
        first=settings["n"] // 2,
        width=unit,
        clip=clip * unit,
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
        outcome = mean.run(open_source(records[:, None], None, 1))
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
