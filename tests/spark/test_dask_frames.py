"""Dask DataFrames: the same sums as the embedded engine, the same refusals, nothing fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.categories import categories_of
from muhat.data.moments import Family, MomentColumn, open_moments
from muhat.domains.lattice import BoxLattice

N = 1000
BOX = BoxLattice.around([-1, -1], [2, 2])


@pytest.fixture
def table() -> Any:
    random = np.random.default_rng(2)
    values = random.standard_normal((N, 2))
    values[::31, 1] = np.nan
    region = random.choice(["north", "south", None], N)
    return pd.DataFrame({"a": values[:, 0], "b": values[:, 1], "region": region})


@pytest.mark.parametrize("partitions", [1, 3, 40])
def test_sums_are_those_of_the_embedded_engine(table: Any, partitions: int) -> None:
    source = open_source(dd.from_pandas(table, npartitions=partitions), ["a", "b"], 2)
    for missing in ("center", "drop"):
        here = exact_sums(open_source(table, ["a", "b"], 2), BOX, missing=missing)
        assert exact_sums(source, BOX, missing=missing) == here
    assert source.known_rows == source.rows() == N


def test_groups_and_cells_are_the_same_bits(table: Any, same_noise: Any) -> None:
    frame = dd.from_pandas(table, npartitions=4)
    options: dict[str, Any] = {"by": "region", "groups": ["north", "south"]}
    options |= {"domain": mh.Box([-1], [1]), "privacy": mh.ZCDP(rho=1), "columns": ["a"]}
    plan = mh.plan_queries(
        mh.workloads.identity(3),
        privacy=mh.ZCDP(rho=1),
        categories={"region": ["north", "south"]},
    )
    found = []
    for data in (table, frame):
        same_noise()
        means = mh.mean(data, **options)
        cells = plan.release(data, columns=["region"])
        found.append([*(float(each) for each in means.releases), *cells.value.tolist()])
    assert found[0] == found[1]


def test_tables_of_moments_are_those_of_the_embedded_engine(table: Any) -> None:
    columns = [MomentColumn("a", -1, 2), MomentColumn("b", -2, 2)]
    groups = categories_of({"region": ["north", "south"]}, missing="drop")
    families = [Family((), ()), Family(("b",), ("b",)), Family(("b",), ("a", "b"))]
    wanted = dict.fromkeys(families, ((0,), ()))
    here, there = (
        open_moments(data, columns, groups).tables(wanted, families[1:2])
        for data in (table, dd.from_pandas(table, npartitions=7))
    )
    assert len(here) == 4
    for key, tables in here.items():
        assert all((there[key][axes] == table).all() for axes, table in tables.items())


def test_a_mean_without_bounds_is_the_same_bits(table: Any, same_noise: Any) -> None:
    found = []
    for data in (table, dd.from_pandas(table, npartitions=4)):
        same_noise()
        release = mh.mean(
            data,
            columns=["a", "b"],
            domain=mh.Reals(dim=2, magnitude=1e6),
            privacy=mh.ZCDP(rho=5),
        )
        found.append(release.value.tobytes())
    assert found[0] == found[1]


def test_frames_are_refused_as_pandas_frames_are(table: Any, tmp_path: Path) -> None:
    frame = dd.from_pandas(table, npartitions=4)
    with pytest.raises(mh.InvalidInput, match="'region' has type"):
        open_source(frame, ["region"], 1)
    with pytest.raises(mh.InvalidInput, match="fixed order"):
        mh.mean(
            frame,
            columns=["a"],
            domain=mh.Reals(dim=1, magnitude=1e6),
            privacy=mh.ApproxDP(epsilon=10, delta=1e-5),
            moment=(4, 3.0),
            symmetric=True,
            missing="none",
        )


def test_a_partition_that_breaks_says_nothing_of_why(table: Any) -> None:
    def explode(part: Any) -> Any:
        raise ValueError(part.to_string())

    frame = dd.from_pandas(table[["a"]], npartitions=2).map_partitions(explode, meta={"a": "f8"})
    with pytest.raises(mh.SourceFailed) as caught:
        mh.mean(frame, columns=["a"], domain=mh.Box([0], [1]), privacy=mh.ZCDP(rho=1), n=None)
    assert caught.value.__context__ is None


def test_nothing_is_raised_where_workers_would_log_what_it_was_about(table: Any) -> None:
    from muhat.data.dask import _fold

    assert _fold(b"no pass", table) is None
