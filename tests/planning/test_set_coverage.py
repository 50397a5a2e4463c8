"""Sets of statistics by groups, released for real: intervals hold as often as they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import muhat as mh

LABELS = {"region": ("north", "south", "east"), "sex": ("f", "m")}
SCHEMA = mh.Schema(
    {"pay": (0, 200), "age": (16, 90), **{name: list(of) for name, of in LABELS.items()}}
)
ASKED = [
    mh.Count(by="region"),
    mh.Sum("pay", by="sex"),
    mh.Mean("pay", by=["region", "sex"]),
    mh.Variance("age", by="region"),
    mh.StandardDeviation("age"),
    mh.Covariance(["pay", "age"], by="sex"),
    mh.Correlation(["pay", "age"]),
    mh.Regression("pay ~ age", by="sex"),
]
STATISTICS = {
    "count": list,
    "sum": lambda x: [x.sum()],
    "mean": lambda x: [x.mean()],
    "variance": lambda x: [x.var(ddof=1)],
    "standard deviation": lambda x: [x.std(ddof=1)],
    "covariance": lambda x, y: [np.cov(x, y)[0, 1]],
    "correlation": lambda x, y: [np.corrcoef(x, y)[0, 1]],
    "regression": lambda y, x: np.polyfit(x, y, 1)[::-1],
}
RUNS = 200


def people(rng, n):
    age = rng.uniform(16, 90, n)
    return {
        "age": age,
        "pay": np.clip(rng.lognormal(3.4, 0.5, n) + 0.6 * age, 0, 200),
        "region": rng.choice(LABELS["region"], n, p=[0.6, 0.35, 0.05]),
        "sex": rng.choice(LABELS["sex"], n),
    }


def exact(data, asked):
    """The statistic of every group, of shape (groups, numbers)."""
    found = []
    for labels in itertools.product(*(LABELS[name] for name in asked.by)):
        chosen = np.ones(len(data["age"]), bool)
        for name, label in zip(asked.by, labels, strict=True):
            chosen &= data[name] == label
        values = STATISTICS[asked.kind](*(data[column][chosen] for column in asked.columns))
        found.append(values if len(values) else [chosen.sum()])
    return np.array(found, float)


def holds(ends, truth, told):
    lower, upper = (end.reshape(len(truth), -1) for end in ends)
    return ((lower <= truth + 1e-9) & (truth <= upper + 1e-9))[told].ravel().tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "promise", [mh.ZCDP(rho=0.5), mh.PureDP(epsilon=3.0)], ids=["normal", "laplace"]
)
def test_every_interval_of_a_set_holds_as_often_as_it_says(promise):
    """200 releases of 2,000 people: each statistic's intervals hold with 93 %, nominally 95 %.

    Groups of a release have noise of their own, or nearly: counted as one run a release, which
    is fewer than there are, the false-alarm rate is 1e-6 for all 26 comparisons.
    """
    rng = np.random.default_rng(11)
    many = people(rng, 2_000_000)
    population = {asked.name: exact(many, asked) for asked in ASKED}
    plan = mh.plan(ASKED, schema=SCHEMA, privacy=promise)
    records: dict[str, list[bool]] = {asked.name: [] for asked in ASKED}
    draws: dict[str, list[bool]] = {asked.name: [] for asked in ASKED}
    for _ in range(RUNS):
        data = people(rng, 2000)
        release = plan.release(data)
        for asked in ASKED:
            part = release[asked.name]
            told = ~part.too_few
            records[asked.name] += holds(part.interval(), exact(data, asked), told)
            if part.has_population:
                ends = part.interval(target="population")
                draws[asked.name] += holds(ends, population[asked.name], told)
    least = binom.ppf(1e-6 / 26, RUNS, 0.93) / RUNS
    for name, held in [*records.items(), *draws.items()]:
        assert not held or np.mean(held) >= least, name
    assert sum(map(bool, draws.values())) == 6
