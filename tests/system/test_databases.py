"""What is released of a table of DuckDB's is what is released of its rows, whoever adds them up."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hostile import silence

import muhat as mh
from muhat import workloads
from muhat.data import duckdb as engine

ROWS = 600
PROMISE = mh.ZCDP(rho=0.5)
SCHEMA = mh.Schema({"age": (0, 100), "wage": (0, 5000), "sex": ["f", "m"]})
ASKED = [mh.Mean("wage", by="sex"), mh.Covariance(["age", "wage"]), mh.Count(by="sex")]
CATEGORIES = {"sex": ["f", "m"], "age": {"bins": [0, 18, 65, 100]}}
CALLS = {
    "mean": lambda data: mh.mean(data, domain={"age": (0, 100)}, privacy=PROMISE),
    "sum, n secret": lambda data: mh.sum(
        data, domain={"age": (0, 100), "wage": (0, 5000)}, privacy=PROMISE, n=None
    ),
    "centre": lambda data: mh.mean(
        data, columns=["wage"], domain=mh.Box([0], [5000]), privacy=PROMISE, missing="center"
    ),
    "groups": lambda data: mh.mean(
        data, columns=["age"], domain=mh.Box([0], [100]), privacy=PROMISE, by="sex", groups=["f"]
    ),
    "queries": lambda data: mh.plan_queries(
        workloads.marginals((3, 4), order=[1, 2]), privacy=PROMISE, categories=CATEGORIES
    ).release(data),
    "set": lambda data: mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE).release(data),
    "ball": lambda data: mh.mean(
        data, columns=["age", "wage"], domain=mh.Ball(radius=50, dim=2), privacy=PROMISE
    ),
}


@pytest.fixture(scope="module")
def relation():
    drawn = np.random.default_rng(7)
    wage = drawn.lognormal(7, 1, ROWS)
    wage[::50], wage[1::50] = np.nan, np.inf
    people = {
        "age": pa.array(drawn.integers(-5, 130, ROWS), mask=drawn.random(ROWS) < 0.1),
        "wage": wage,
        "sex": pa.array([["f", "m", "x", None][k] for k in drawn.integers(0, 4, ROWS)]),
    }
    with duckdb.connect() as con:
        con.from_arrow(pa.table(people)).create("people")
        con.execute("SET threads = 2")
        yield con.table("people")


@pytest.mark.parametrize("few", [0, engine.FEW_THREADS], ids=["many threads", "few threads"])
@pytest.mark.parametrize("call", CALLS)
def test_a_release_without_noise_is_the_same(relation, call, few, monkeypatch):
    silence(monkeypatch)
    monkeypatch.setattr(engine, "FEW_THREADS", few)
    asked = []
    asks = engine.RelationSource._asked
    monkeypatch.setattr(
        engine.RelationSource, "_asked", lambda self, query: asked.append(1) or asks(self, query)
    )
    pushed, here = CALLS[call](relation), CALLS[call](relation.to_arrow_table())
    assert pushed.to_json() == here.to_json()
    # Of a ball the rows are read, and of few threads.
    assert bool(asked) == (call != "ball" and few == 0)
