"""Dask DataFrames: the same sums as the embedded engine, the same refusals, nothing fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.categories import categories_of
from muhat.data.moments import Family, MomentColumn, open_moments
from muhat.data.unit_choice import Mixer
from muhat.data.unit_ids import IdentityCoder
from muhat.data.units import People, of_people
from muhat.domains.lattice import BoxLattice

N = 1000
KEY = Mixer(bytes(range(32)))
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


@pytest.mark.parametrize("per", ["row", "mean", "rows"])
@pytest.mark.parametrize("kind", ["number", "text", "object", "category", "float"])
def test_people_with_many_rows_are_those_of_the_embedded_engine(
    table: Any, kind: str, per: str
) -> None:
    random = np.random.default_rng(4)
    persons = random.integers(0, 90, N)
    names = {
        "number": persons,
        "text": [f"näme {person}" for person in persons],
        "object": pd.Series(
            [
                person if place % 2 else float(person)
                for place, person in enumerate(persons.tolist())
            ],
            dtype=object,
        ),
        "category": pd.Categorical([f"näme {person}" for person in persons]),
        "float": np.where(persons == 7, np.nan, persons / 2),
    }
    table["person"] = names[kind]
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(table, npartitions=5)
    people = People("person", 3, per=per)
    chosen = ["person"] if per == "rows" else ["a", "b", "person"]
    # Some partitions are empty.
    table["place"] = np.arange(N)
    frame, table = frame.assign(place=frame.index), table[table["place"] < 300]
    frame = frame[frame["place"] < 300]
    found = []
    for data in (table, frame):
        coders = [*(None for _ in chosen[1:]), IdentityCoder()]
        source = of_people(open_source(data, chosen, coders=coders), people, (), KEY)
        box = BoxLattice.around([0], [99]) if per == "rows" else BOX
        found += [exact_sums(source, box), source.rows()]
    assert found[:2] == found[2:]


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


def test_a_set_learns_groups_and_reads_once_where_the_records_are() -> None:
    rng = np.random.default_rng(6)
    table = pd.DataFrame(
        {
            "person": np.repeat(np.arange(200), 5),
            "pay": rng.uniform(0, 100, 1_000),
            "region": rng.choice(["north", "south"], 1_000),
        }
    )
    table.loc[3, "region"] = "canary"
    schema = mh.Schema({"pay": (0, 100), "region": "learn"}, unit="person", max_rows=2)
    asked = [mh.Count(by="region"), mh.Quantile("pay", by="region"), mh.Mean("pay", per="unit")]
    plan = mh.plan(asked, schema=schema, privacy=mh.ApproxZCDP(200.0, 1e-6), n=None)
    for data in (dd.from_pandas(table, npartitions=3), table):
        release = plan.release(data)
        counts = release["count by region"]
        assert counts.labels == (("north", "south"),)
        recorded = [part.recorded[0] for _, part in release["quantile pay by region"]]
        assert recorded == pytest.approx(counts.value.tolist(), abs=3)
        assert counts.value.sum() == pytest.approx(400, abs=3)
        assert release["mean pay per unit"].recorded == pytest.approx([200], abs=3)
