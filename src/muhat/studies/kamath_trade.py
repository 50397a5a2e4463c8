"""Error against bias for all laws of one variance: what is reached, and what nobody can beat."""

from __future__ import annotations

import math

import muhat as mh
from muhat.mechanisms.learning.tails import paper_pad
from muhat.studies.study import Row, Settings


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
