"""Wrong uses: each line that ends with `# error: CODE` is one for a type checker, and no other is.

`tests/test_types.py` has mypy read this file. It is never run.
"""

# ruff: noqa: B018, F401

from __future__ import annotations

import muhat as mh
from muhat import no_such_name  # error: attr-defined

promise = mh.ZCDP(0.5)
box = mh.Box([0], [1])
reals = mh.Reals(1, 1e4)
bounds = {"age": (16, 90)}

# Names.
mh.no_such_name  # error: attr-defined
mh.bounds.no_such_name  # error: attr-defined
mh.stream.no_such_name()  # error: attr-defined

# Promises and domains.
mh.ZCDP(rh=0.5)  # error: call-arg
mh.ZCDP("0.5")  # error: arg-type
mh.ZCDP()  # error: call-arg
mh.PureDP(1.0, 1e-6)  # error: call-arg
mh.ApproxDP(epsilon=1.0)  # error: call-arg
mh.RDP(2.0, 1.0)  # error: call-arg
mh.Ball(radios=1, dim=2)  # error: call-arg
mh.smallest_ellipsoid(box, oracle=len)  # error: call-overload
mh.Ball(radius="1", dim=2)  # error: arg-type
mh.Simplex(dims=4)  # error: call-arg
mh.Neighbors.REPLACE  # error: attr-defined

# Statistics of a set.
mh.Schema({"age": (16, 90)}, units="person")  # error: call-arg
mh.Schema({"age": (16, 90)}, unit="person", max_rows="all")  # error: arg-type
mh.Mean("salary", "sex")  # error: call-arg
mh.Mean("salary", per="person")  # error: arg-type
mh.Mean(["salary", "age"])  # error: arg-type
mh.Variance("salary", weight_column="share")  # error: call-arg
mh.Count(target=200)  # error: arg-type
mh.Covariance(3)  # error: arg-type

# Options of a mean that are misspelt, missing, or of another kind of mean.
mh.mean("a.csv", domain=bounds, privacy=promise, weigths=[1])  # error: call-overload
mh.mean("a.csv", domain=bounds)  # error: call-overload
mh.mean("a.csv", domain=bounds, privacy=0.5)  # error: call-overload
mh.mean("a.csv", privacy=promise)  # error: call-overload
mh.mean("a.csv", domain=bounds, privacy=promise, by="sex")  # error: call-overload
mh.mean("a.csv", domain=bounds, privacy=promise, groups=["f"])  # error: call-overload
mh.mean("a.csv", domain=reals, privacy=promise, by="sex", groups=["f"])  # error: call-overload
mh.mean("a", domain=box, privacy=promise, n=9, by="b", groups=["f"])  # error: call-overload
mh.mean("a.csv", domain=bounds, privacy=promise, moment=(2, 1.0))  # error: call-overload
mh.mean("a.csv", domain=reals, privacy=promise, clip=box)  # error: call-overload
mh.mean("a.csv", domain=box, privacy=promise, insist=True)  # error: call-overload
mh.plan_mean(domain=box, n=9, privacy=promise, contribution=2)  # error: call-overload
mh.plan_mean(domain=box, privacy=promise)  # error: call-overload
mh.plan_mean(domain=box, n="9", privacy=promise)  # error: call-overload
mh.plan_mean(domain=box, n=9, privacy=promise, n_min=5)  # error: call-overload
mh.plan_mean(domain=box, n=9, privacy=promise, symmetric=True)  # error: call-overload
mh.plan_mean(domain=reals, n=9, privacy=promise, max_bias=0.1)  # error: call-overload
mh.plan_mean(domain=reals, n=9, privacy=promise, population=True)  # error: call-overload
mh.plan_mean(domain=reals, n=9, privacy=promise, moment=(2, 1.0), p=1)  # error: call-overload
mh.plan_mean(domain=reals, n=None, privacy=promise)  # error: call-overload
mh.plan_mean(domain="box", n=9, privacy=promise)  # error: call-overload
mh.plan_sum(domain=reals, n=9, privacy=promise)  # error: arg-type
mh.sum("a.csv", domain=bounds, privacy=promise, weigths=[1])  # error: call-arg
mh.count("a.csv", privacy=promise, n=9)  # error: call-arg
mh.quantile("a.csv", 0.5, lowest=0, upper=1, privacy=promise)  # error: call-arg
mh.plan_queries(mh.workloads.prefix(4), privasy=promise)  # error: call-arg
mh.workloads.prefix("4")  # error: arg-type
mh.stream.prefix_counter(10, promise, memori="full")  # error: call-overload
mh.stream.prefix_counter(10, promise, 0, [1, 2])  # error: call-overload

# What comes back.
plan = mh.plan_mean(domain=box, n=9, privacy=promise)
plan.certificate.ratio  # error: union-attr
plan.expectd_error  # error: attr-defined
error: str = plan.rmse  # error: assignment
plan.release("a.csv", colums=["a"])  # error: call-arg
release = mh.mean("a.csv", domain=bounds, privacy=promise)
release.group  # error: attr-defined
release.interval(confidense=0.9)  # error: call-arg
groups = mh.mean("a.csv", domain=bounds, privacy=promise, by="sex", groups=["f"])
groups["f"].valu  # error: attr-defined
groups.interval(target=3)  # error: arg-type
value: float = release.value  # error: assignment
mh.stream.prefix_counter(10, promise).push(0.5).shape  # error: attr-defined
plan.plot().save("plan.svg")  # error: attr-defined
mh.Ledger.create("budget.db", budget=1.0, neighbors="substitute")  # error: arg-type
