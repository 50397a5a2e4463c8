"""Every mechanism that reads data releases the same bits from Spark, if the noise is the same."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.halves import Splits
from muhat.data.spark import spark_data
from muhat.domains.lattice import BoxLattice

N = 900
SPACE = mh.Reals(dim=2, magnitude=1e8)
BOX = mh.Box([0, -9], [9, 9])
RHO, PURE = mh.ZCDP(rho=5), mh.PureDP(epsilon=10)
APPROX = mh.ApproxDP(epsilon=10, delta=1e-5)
REGIONS = ["north", "south", "west"]

MEANS: dict[str, dict[str, Any]] = {
    "gaussian": {"domain": BOX, "privacy": RHO},
    "gaussian, secret n": {"domain": BOX, "privacy": RHO, "n": None, "missing": "drop"},
    "laplace": {"domain": BOX, "privacy": PURE},
    "ball": {"domain": mh.Ball(radius=9, dim=2), "privacy": RHO},
    "ellipsoid": {"domain": mh.Ellipsoid(matrix=[[4, 1], [1, 9]]), "privacy": RHO},
    "simplex": {"domain": mh.Simplex(dim=2, origin=True), "privacy": RHO},
    "moments": {"domain": mh.MomentTensor(order=2, dim=2), "privacy": RHO},
    "product": {"domain": mh.Box([0], [9]) * mh.Box([-9], [9]), "privacy": RHO},
    "recentring": {"domain": SPACE, "privacy": RHO},
    "recentring, pure": {"domain": SPACE, "privacy": mh.PureDP(epsilon=20)},
    "clipped": {"domain": SPACE, "privacy": RHO, "mechanism": "clipped"},
    "shifted": {"domain": SPACE, "privacy": RHO, "mechanism": "shifted-clipped"},
    "statistical": {
        "domain": SPACE,
        "privacy": RHO,
        "mechanism": "statistical",
        "scale": (0.1, 10),
    },
    "clipped-laplace": {"domain": SPACE, "privacy": PURE, "moment": (2, 2.0)},
    "clipped-normal": {"domain": SPACE, "privacy": RHO, "moment": (2, 2.0)},
    "smooth": {"domain": BOX, "privacy": PURE, "n": None, "unbiased": True, "n_min": 100},
}
SPLIT: dict[str, dict[str, Any]] = {
    "symmetric": {"domain": SPACE, "privacy": APPROX, "moment": (4, 3.0), "symmetric": True},
    "karwa-vadhan": {
        "domain": SPACE,
        "privacy": APPROX,
        "moment": (4, 3.0),
        "mechanism": "karwa-vadhan",
    },
}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of two numbers, a region and a code, with some of them missing."""
    random = np.random.default_rng(11)
    values = random.standard_normal((N, 2)) * [1, 2] + [5, -3]
    values[::50] = np.nan
    table = pa.table(
        {
            "a": values[:, 0],
            "b": pa.array(values[:, 1], mask=random.random(N) < 0.05),
            "region": random.choice([*REGIONS, "sea", None], N),
            "code": random.integers(0, 6, N),
        }
    )
    folder = tmp_path_factory.mktemp("people")
    pq.write_table(table.slice(0, 600), folder / "0.parquet")
    pq.write_table(table.slice(600), folder / "1.parquet")
    return folder


@pytest.fixture(scope="module")
def frame(spark: Any, people: Path) -> Any:
    return spark.read.parquet(str(people))


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def assert_same(release: Any, here: Any, there: Any, same_noise: Any) -> None:
    same_noise()
    expected = release(here)
    same_noise()
    found = release(there)
    assert np.array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("name", MEANS)
def test_means_are_the_same_bits(name: str, people: Path, frame: Any, same_noise: Any) -> None:
    def release(data: Any) -> Any:
        return mh.mean(data, columns=["a", "b"], **MEANS[name]).value

    assert_same(release, str(people / "*.parquet"), frame, same_noise)


@pytest.mark.parametrize("name", SPLIT)
def test_mechanisms_that_split_rows_need_numbered_ones(
    name: str, spark: Any, frame: Any, same_noise: Any, tmp_path: Path
) -> None:
    def release(data: Any) -> Any:
        return mh.mean(data, columns=["a", "b"], **SPLIT[name]).value

    with pytest.raises(mh.InvalidInput, match=r"spark_data\(frame, materialize=path\)"):
        release(frame)
    written = tmp_path / "written"
    pinned = spark_data(frame.repartition(3), materialize=written)
    assert_same(release, str(written / "*.parquet"), pinned, same_noise)


@pytest.mark.parametrize("options", [{}, {"moment": (2, 2.0), "max_bias": 0.1}])
def test_a_secret_number_of_records_needs_numbered_ones(
    options: dict[str, Any], frame: Any, tmp_path: Path
) -> None:
    promise = mh.ApproxDP(epsilon=20, delta=1e-5)
    budget = mh.ApproxDP(epsilon=50, delta=1e-3)
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=budget, neighbors="add-remove")
    plan = mh.plan_mean(domain=SPACE, n=None, n_min=400, privacy=promise, **options)
    with pytest.raises(mh.InvalidInput, match="never fetched"):
        plan.release(frame, columns=["a", "b"], ledger=ledger)
    pinned = spark_data(frame, materialize=tmp_path / "written")
    release = plan.release(pinned, columns=["a", "b"], ledger=ledger)
    assert not release.failed
    assert np.abs(release.value - [5, -3]).max() < 1
    assert len(list(ledger.entries())) == 1


def test_rows_left_out_by_their_places_are_left_out(frame: Any, tmp_path: Path) -> None:
    pinned = spark_data(frame.repartition(3), materialize=tmp_path / "written")
    rows = pq.ParquetDataset(sorted((tmp_path / "written").glob("*.parquet"))).read()
    lattice = BoxLattice.around([0], [9])
    source = open_source(pinned, ["a"], 1)
    assert isinstance(source, Splits)
    for places in ((), (0,), (5, 299, 300, 301, N - 1)):
        part = source.without(places)
        kept = rows.take([place for place in range(N) if place not in places])
        assert part.rows() == len(kept)
        assert exact_sums(part, lattice) == exact_sums(open_source(kept, ["a"], 1), lattice)


def test_sums_and_counts_are_the_same_bits(people: Path, frame: Any, same_noise: Any) -> None:
    here = str(people / "*.parquet")
    assert_same(
        lambda data: mh.sum(data, columns=["a", "b"], domain=BOX, privacy=RHO).value,
        here,
        frame,
        same_noise,
    )
    assert_same(lambda data: mh.count(data, privacy=RHO).value, here, frame, same_noise)


@pytest.mark.parametrize("promise", [RHO, PURE], ids=["zcdp", "pure"])
def test_quantiles_are_the_same_bits(
    promise: Any, people: Path, frame: Any, same_noise: Any
) -> None:
    def release(data: Any) -> Any:
        return mh.quantile(
            data, [0.25, 0.5], columns=["a"], lower=-10, upper=10, privacy=promise
        ).value

    assert_same(release, str(people / "*.parquet"), frame, same_noise)


def test_group_means_are_the_same_bits_in_one_pass(
    people: Path, frame: Any, same_noise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from muhat.data.spark import SparkSource

    passes = []
    fold = SparkSource.fold

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        passes.append(1)
        return fold(self, *arguments, **options)

    monkeypatch.setattr(SparkSource, "fold", counted)

    def release(data: Any) -> Any:
        found = mh.mean(
            data, columns=["a", "b"], domain=BOX, privacy=RHO, by="region", groups=REGIONS
        )
        return [each.value for each in found.releases]

    assert_same(release, str(people / "*.parquet"), frame, same_noise)
    assert len(passes) == 1


def test_queries_about_cells_are_the_same_bits(people: Path, frame: Any, same_noise: Any) -> None:
    plan = mh.plan_queries(
        mh.workloads.marginals(shape=(4, 7), order=2),
        privacy=RHO,
        categories={"region": REGIONS, "code": 6},
    )

    def release(data: Any) -> Any:
        return plan.release(data, columns=["region", "code"]).value

    assert_same(release, str(people / "*.parquet"), frame, same_noise)


def test_points_are_the_same_bits(people: Path, frame: Any, same_noise: Any) -> None:
    points = mh.Points(np.random.default_rng(5).standard_normal((6, 3)))

    def release(data: Any) -> Any:
        return mh.mean(data, columns=["code"], domain=points, privacy=RHO).value

    assert_same(release, str(people / "*.parquet"), frame, same_noise)
