"""Releases of every kind, made without a mechanism or of few records, for what shows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from drawn_moments import answer, exact_tables, noisy

import muhat as mh

PROMISE = mh.ZCDP(rho=0.5)
AGES = {"age": np.linspace(20, 60, 90), "pay": np.linspace(1e4, 9e4, 90)}
BOUNDS = {"age": (0, 90), "pay": (0, 1e5)}
HOSTILE = ("<script>alert(1)</script>", "a\nb", "\u202etxt", '"\x1b[2J', "$\\frac{1}{2}$")

MEAN = mh.mean(AGES, domain=BOUNDS, privacy=PROMISE)
QUANTILES = mh.quantile(
    AGES, (0.25, 0.5), columns=["age"], lower=0, upper=90, privacy=PROMISE, n=None
)
TABLES = mh.plan_queries(
    mh.workloads.marginals(shape=(2, 3), order=[1, 2]),
    privacy=PROMISE,
    categories={"sex": ["f", "m"], "part": ["1", "2", "3"]},
).release({"sex": ["f", "m"] * 30, "part": ["1", "2", "3"] * 20})


def statistic(kind, columns, labels=None, *, by="region", records=400, few=0):
    """A statistic of groups; the last `few` groups have two records."""
    rng = np.random.default_rng(7)
    groups = 1 if labels is None else len(labels)
    units = {column: rng.uniform(-1, 1, (groups, records)) for column in ("x", "y", "w")}
    tables = exact_tables({name: units[name] for name in columns or ("x",)}, columns)
    for values in tables.values():
        values[groups - few :] *= 2 / records
    moments = noisy(tables, columns, rng, "normal", 2.0)
    grouped = {"by": (), "labels": ()} if labels is None else {"by": (by,), "labels": (labels,)}
    name = " ".join([kind, *columns, *(["by", by] if labels else [])])
    assumed = ("a person contributes at most one record",)
    return replace(answer(kind, columns, moments, **grouped, assumptions=assumed), name=name)


def together(*answers, names=None):
    """Several answers for one promise."""
    base = mh.mean(AGES, domain=BOUNDS, privacy=PROMISE, n=None)
    named = names or [getattr(each, "name", each.heading) for each in answers]
    return replace(base, answers=answers, names=tuple(named) if len(answers) > 1 else ())


REGIONS = ("north", "south", "the outermost of the many islands in the far archipelago", "isles")
SET = together(
    statistic("count", (), REGIONS),
    statistic("mean", ("x",), REGIONS, few=1),
    statistic("variance", ("x",)),
    *QUANTILES.answers,
    statistic("regression", ("y", "x")),
    statistic("correlation", ("x", "y", "w")),
    statistic("covariance", ("x", "y", "w")),
    *TABLES.answers,
)
MANY = together(statistic("mean", ("x",), tuple(f"town {place}" for place in range(200))))
STRANGE = together(statistic("mean", ("x",), HOSTILE, by="<b>$re\x1b</b>"))
RELEASES = {
    "mean": MEAN,
    "quantiles": QUANTILES,
    "tables": TABLES,
    "set": SET,
    "many": MANY,
    "strange": STRANGE,
}
