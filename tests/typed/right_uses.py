"""Right uses: no error for a type checker, and what comes back is what it says.

`tests/test_types.py` has mypy read this file, and runs it with an `assert_type` that looks.
"""

from __future__ import annotations

import typing

import numpy as np
import pyarrow
from numpy.typing import NDArray

import muhat as mh
from muhat.domains import Domain
from muhat.ellipsoids import SmallestEllipsoid
from muhat.ledger import Balance, Entry
from muhat.privacy import Privacy
from muhat.workloads import Workload

Floats = NDArray[np.float64]

# Promises, in words and by position.
promise = mh.ZCDP(rho=0.5)
typing.assert_type(promise, mh.ZCDP)
typing.assert_type(mh.ZCDP(0.5).rho, float)
typing.assert_type(mh.PureDP(1.0), mh.PureDP)
typing.assert_type(mh.ApproxDP(1.0, 1e-6).delta, float)
typing.assert_type(mh.GDP(1.0), mh.GDP)
typing.assert_type(mh.RDP(alpha=2.0, epsilon=1.0), mh.RDP)

# Domains, and what is made of them.
box = mh.Box([0], [1])
ball = mh.Ball(radius=1.0, dim=2)
typing.assert_type(box, mh.Box)
typing.assert_type(ball + np.ones(2), Domain)
typing.assert_type(ball * box, Domain)
typing.assert_type(np.eye(2) @ ball, Domain)
typing.assert_type(mh.smallest_ellipsoid(ball), SmallestEllipsoid)
typing.assert_type(mh.smallest_ellipsoid(ball).matrix, Floats)
typing.assert_type(mh.smallest_ellipsoid(oracle=lambda A: A[0], dim=1), SmallestEllipsoid)
typing.assert_type(mh.gamma(ball), float)

# Plans of a mean: which one it is follows from the domain, n and what is assumed.
bounds = {"age": (16, 90)}
plan = mh.plan_mean(domain=ball, n=100, privacy=promise, p=2, weights=[1, 2], missing="center")
typing.assert_type(plan, mh.Plan)
typing.assert_type(plan.expected_error, float | None)
typing.assert_type(plan.covariance, Floats | None)
typing.assert_type(plan.certificate, mh.Certificate | None)
typing.assert_type(plan.alternatives, tuple[tuple[str, float], ...])
typing.assert_type(plan.neighbors, mh.Neighbors)
typing.assert_type(plan.privacy, Privacy)
typing.assert_type(plan.describe(), str)
typing.assert_type(mh.plan_mean(domain=bounds, n=100, privacy=promise, unbiased=True), mh.Plan)
typing.assert_type(mh.plan_mean(domain=bounds, n=None, privacy=promise), mh.Plan)
smooth = mh.plan_mean(domain=box, n=None, privacy=mh.PureDP(1.0), unbiased=True, n_min=100)
typing.assert_type(smooth, mh.Plan)
typing.assert_type(smooth.n, int | None)
typing.assert_type(smooth.n_min, int | None)

grouped = mh.plan_mean(domain=bounds, n=None, privacy=promise, by="sex", groups=["f", "m"])
typing.assert_type(grouped, mh.Plan)

# The public facts about a table, and what is asked of it.
people = mh.Schema(
    {"salary": (0, 2e5), "sex": ["f", "m"], "joined": mh.Bins([2000, 2010])},
    unit="person",
    max_rows="learn",
    complete=["sex"],
)
typing.assert_type(people.bounds("salary"), tuple[int | float, int | float])
typing.assert_type(people.unit, str | None)
typing.assert_type(people.is_complete("sex"), bool)
asked = mh.Mean("salary", by="sex", weight=2, target={"standard_error": 200}, n_group=2000)
typing.assert_type(asked, mh.Mean)
typing.assert_type(asked.name, str)
typing.assert_type(asked.by, tuple[str, ...])
typing.assert_type(asked.terms(), tuple[tuple[str, ...], ...])
typing.assert_type(asked.checked(people), mh.Mean)
typing.assert_type(mh.Count(by=["sex", "joined"]).columns, tuple[str, ...])
typing.assert_type(mh.Quantile("salary", q=[0, 0.5, 1]).q, tuple[float, ...])
typing.assert_type(mh.Sum("salary", per="unit").column, str)
typing.assert_type(mh.Regression("salary ~ age").predictors, tuple[str, ...])
typing.assert_type(mh.Queries(mh.workloads.prefix(1), columns="joined").workload, Workload)

reals = mh.Reals(dim=1, magnitude=1e4)
unbounded = mh.plan_mean(domain=reals, n=4000, privacy=promise)
typing.assert_type(unbounded, mh.Plan)
typing.assert_type(unbounded.least_n, int)
typing.assert_type(unbounded.bias, float | None)
typing.assert_type(unbounded.error_at(radius=2.0), float | None)
low_bias = mh.plan_mean(domain=reals, n=4000, privacy=promise, moment=(2, 1.0), max_bias=0.1)
typing.assert_type(low_bias, mh.Plan)
typing.assert_type(low_bias.rmse, float)
approximate = mh.ApproxDP(1.0, 1e-6)
secret = mh.plan_mean(domain=reals, n=None, n_min=4000, privacy=approximate, moment=(2, 1.0))
typing.assert_type(secret, mh.Plan)
typing.assert_type(secret.unknowns, tuple[str, ...])

typing.assert_type(mh.plan_sum(domain=bounds, n=None, privacy=promise), mh.Plan)
typing.assert_type(mh.plan_count(privacy=promise), mh.Plan)
typing.assert_type(mh.plan_quantile(0.5, lower=0, upper=1, privacy=promise), mh.Plan)
typing.assert_type(mh.privacy_for(domain=ball, n=100, error=0.1), Privacy)


def planned(n: int | None, domain: mh.Box | mh.Reals) -> mh.Plan:
    """Arguments of several types are planned one type at a time."""
    typing.assert_type(mh.plan_mean(domain=bounds, n=n, privacy=promise), mh.Plan)
    return mh.plan_mean(domain=domain, n=4000, privacy=promise)


typing.assert_type(planned(None, box), mh.Plan)

# Releases.
people = pyarrow.table({"age": np.arange(16.0, 90.0), "sex": ["f", "m"] * 37})
release = mh.mean(people, domain=bounds, privacy=promise)
typing.assert_type(release, mh.Release)
typing.assert_type(plan.release(np.zeros((100, 2))), mh.Release)
typing.assert_type(release.value, Floats)
typing.assert_type(release.standard_error, Floats | None)
typing.assert_type(release.interval(confidence=0.9), tuple[Floats, Floats])
typing.assert_type(release.certificate, mh.Certificate | None)
typing.assert_type(release.cost, Privacy)
typing.assert_type(release.n, int | None)
typing.assert_type(release.assumptions, tuple[str, ...])
typing.assert_type(release.projected(), mh.Release)
typing.assert_type(mh.Release.from_json(release.to_json()), mh.Release)
typing.assert_type(float(release), float)
typing.assert_type(mh.sum(people, domain=bounds, privacy=promise, n=None), mh.Release)
typing.assert_type(mh.count(people, privacy=promise), mh.Release)
typing.assert_type(
    mh.mean(people, columns=["age"], domain=reals, privacy=promise, moment=(2, {"age": 15.0})),
    mh.Release,
)
groups = mh.mean(people, domain=bounds, privacy=promise, by="sex", groups=["f", "m"])
typing.assert_type(groups, mh.Release)
typing.assert_type(groups["f"], mh.Release)
typing.assert_type(groups.value, Floats)
typing.assert_type(groups.n, int | None)
typing.assert_type(groups.by, str | tuple[str, ...])
quantiles = mh.quantile(np.arange(74), [0.25, 0.5], lower=0, upper=100, privacy=promise)
typing.assert_type(quantiles, mh.Release)
typing.assert_type(quantiles.value, Floats)
typing.assert_type(quantiles.rank_error(0.9), NDArray[np.int64])
if release.certificate is not None:
    typing.assert_type(release.certificate.ratio, float | None)
    typing.assert_type(release.certificate.bounds, tuple[mh.LowerBound, ...])

# Rooms.
workload = mh.workloads.prefix(4)
typing.assert_type(workload @ np.ones(4), Floats)
typing.assert_type(mh.workloads.kron(workload, mh.workloads.identity(2)), Workload)
typing.assert_type(mh.factorize(workload).value, float)
queries = mh.plan_queries(workload, privacy=promise, neighbors="add-remove")
typing.assert_type(queries, mh.Plan)
typing.assert_type(queries.factorization.value, float)
typing.assert_type(mh.bounds.unbiased(ball, n=100, privacy=promise), tuple[mh.LowerBound, ...])
typing.assert_type(mh.bounds.trilemma(n=100, epsilon=1.0), mh.bounds.Trilemma)
typing.assert_type(
    mh.research.combination_mse_bound(100, approximate, interval=(0, 1), moment=(4, 1.0)), float
)
protocol = mh.protocols.local_mean(domain=ball, n=100, privacy=mh.PureDP(1.0))
typing.assert_type(protocol, mh.protocols.Protocol)
typing.assert_type(protocol.client(account=False).randomize([0.5, 0.5]), bytes)
typing.assert_type(protocol.crowd().randomize_many([[0.5, 0.5]]), list[bytes])
typing.assert_type(mh.stream.plan_prefix_counter(10, promise), mh.Plan)
counter = mh.stream.prefix_counter(horizon=10, privacy=promise, lower=0, upper=1, memory="full")
typing.assert_type(counter, mh.stream.PrefixCounter[float])
typing.assert_type(counter.push(0.7), float)
typing.assert_type(counter.value, float)
typing.assert_type(counter.standard_error, float)
lately = mh.stream.prefix_counter(10, promise, window=7, contributions=2, apart=3)
typing.assert_type(lately, mh.stream.PrefixCounter[float])
typing.assert_type(mh.stream.plan_prefix_counter(10, promise, decay=0.9), mh.Plan)
vectors = mh.stream.prefix_counter(10, promise, [0, 0], [1, 2])
typing.assert_type(vectors, mh.stream.PrefixCounter[Floats])
typing.assert_type(vectors.push([0.7, 0.1]), Floats)
typing.assert_type(vectors.standard_error, Floats)

# Errors.
try:
    mh.Ball(radius=-1.0, dim=2)
except mh.InvalidInput as error:
    typing.assert_type(error.parameter, str | None)
    typing.assert_type(error.rule, str)


def account(path: str) -> None:
    """A ledger, which needs a file."""
    ledger = mh.Ledger.create(path, budget=mh.ZCDP(1.0), neighbors="substitute")
    typing.assert_type(mh.mean(people, domain=bounds, privacy=promise, ledger=ledger), mh.Release)
    typing.assert_type(mh.mean(people, domain=bounds, privacy=promise, ledger=path), mh.Release)
    typing.assert_type(ledger, mh.Ledger)
    typing.assert_type(ledger.remaining, Balance)
    typing.assert_type(ledger.entries(), list[Entry])
    typing.assert_type(ledger.head, mh.Head)
