"""Every mechanism that reads data releases the same bits from Spark, if the noise is the same."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
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
LINE = mh.Reals(dim=1, magnitude=1e8)
BOX = mh.Box([0, -9], [9, 9])
RHO, PURE = mh.ZCDP(rho=5), mh.PureDP(epsilon=10)
APPROX = mh.ApproxDP(epsilon=10, delta=1e-5)
REGIONS = ["north", "south", "west"]

MEANS: dict[str, dict[str, Any]] = {
    "gaussian": {"domain": BOX, "privacy": RHO},
    "gaussian, secret n": {"domain": BOX, "privacy": RHO, "n": None, "missing": "drop"},
    "laplace": {"domain": BOX, "privacy": PURE},
    "ellipsoid-norm": {"domain": BOX, "privacy": PURE, "mechanism": "ellipsoid-norm"},
    "ball": {"domain": mh.Ball(radius=9, dim=2), "privacy": RHO},
    "ellipsoid": {"domain": mh.Ellipsoid(matrix=[[4, 1], [1, 9]]), "privacy": RHO},
    "lp ball": {"domain": mh.LpBall(p=1, dim=2, radius=9), "privacy": RHO},
    "matrices": {"domain": mh.SchattenBall(shape=(1, 2), p=1, radius=9), "privacy": RHO},
    "sum of bodies": {
        "domain": mh.Box([-1, -1], [1, 1]) + mh.Ball(radius=1, dim=2),
        "clip": mh.Ball(radius=1, dim=2),
        "privacy": RHO,
    },
    "points by coordinates": {"domain": mh.Points([[0, 0], [5, -3], [9, 9]]), "privacy": RHO},
    "simplex": {"domain": mh.Simplex(dim=2, origin=True), "privacy": RHO},
    "moments": {"domain": mh.MomentTensor(order=2, dim=2), "privacy": RHO},
    "product": {"domain": mh.Box([0], [9]) * mh.Box([-9], [9]), "privacy": RHO},
    "recentring": {"domain": SPACE, "privacy": RHO},
    "recentring, pure": {"domain": SPACE, "privacy": mh.PureDP(epsilon=20)},
    "recentring on a line": {"columns": ["a"], "domain": LINE, "privacy": RHO},
    "clipped": {"domain": SPACE, "privacy": RHO, "mechanism": "clipped"},
    "shifted": {"domain": SPACE, "privacy": RHO, "mechanism": "shifted-clipped"},
    "clipped, as printed": {
        "domain": SPACE,
        "privacy": RHO,
        "mechanism": "clipped",
        "faithful": True,
    },
    "shifted, as printed": {
        "domain": SPACE,
        "privacy": RHO,
        "mechanism": "shifted-clipped",
        "faithful": True,
    },
    "statistical": {
        "domain": SPACE,
        "privacy": RHO,
        "mechanism": "statistical",
        "scale": (0.1, 10),
    },
    "recentring, missing at the centre": {"domain": SPACE, "privacy": RHO, "missing": "center"},
    "clipped-laplace": {
        "domain": SPACE,
        "privacy": PURE,
        "moment": (2, 2.0),
        "missing": "center",
    },
    "clipped-normal": {"domain": SPACE, "privacy": RHO, "moment": (2, 2.0), "missing": "center"},
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
            "region": pa.array(random.choice([*REGIONS, "sea", None], N)).dictionary_encode(),
            "code": random.integers(0, 6, N),
            "flag": pa.array(random.random(N) < 0.5, mask=random.random(N) < 0.1),
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
        return mh.mean(data, **{"columns": ["a", "b"], **MEANS[name]}).value

    assert_same(release, str(people / "*.parquet"), frame, same_noise)


@pytest.mark.parametrize("name", SPLIT)
def test_mechanisms_that_split_rows_need_numbered_ones(
    name: str, spark: Any, frame: Any, same_noise: Any, tmp_path: Path
) -> None:
    def release(data: Any) -> Any:
        return mh.mean(data, columns=["a", "b"], missing="center", **SPLIT[name]).value

    with pytest.raises(mh.InvalidInput, match=r"spark_data\(frame, materialize=path\)"):
        release(frame)
    written = tmp_path / "written"
    pinned = spark_data(frame.repartition(3), materialize=written)
    assert_same(release, str(written / "*.parquet"), pinned, same_noise)


@pytest.mark.parametrize("more", [{"n": N}, {"n": None, "n_min": 400}])
def test_complete_records_of_a_cluster_are_not_drawn(more: dict[str, Any], frame: Any) -> None:
    options = {"privacy": APPROX, "moment": (2, 2.0), "max_bias": 0.1, "missing": "drop", **more}
    plan = mh.plan_mean(domain=SPACE, **options)
    with pytest.raises(mh.InvalidInput, match=r'missing="none"|never fetched'):
        plan.release(frame, columns=["a", "b"])


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


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["a"], "lower": -10, "upper": 10, "privacy": RHO},
        {"columns": ["a"], "lower": 1, "upper": 10, "privacy": PURE, "relative": 0.01},
        {
            "columns": ["a", "b"],
            "lower": [0, -9],
            "upper": [9, 9],
            "privacy": RHO,
            "n": None,
            "missing": "drop",
        },
    ],
    ids=["zcdp", "pure, relative", "two columns, secret n"],
)
def test_quantiles_are_the_same_bits(
    options: dict[str, Any], people: Path, frame: Any, same_noise: Any
) -> None:
    def release(data: Any) -> Any:
        return mh.quantile(data, [0.25, 0.5], **options).value

    assert_same(release, str(people / "*.parquet"), frame, same_noise)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What adds up in every pass on Spark."""
    from muhat.data.spark import SparkSource

    made: list[Any] = []
    fold = SparkSource.fold

    def counted(self: Any, accumulator: Any, **options: Any) -> Any:
        made.append(accumulator())
        return fold(self, accumulator, **options)

    monkeypatch.setattr(SparkSource, "fold", counted)
    return made


@pytest.mark.parametrize(
    ("by", "groups"),
    [("region", REGIONS), ("code", [0, 3, 5]), ("flag", [True]), ("b", {"bins": [-9, -3, 0, 9]})],
)
def test_group_means_are_the_same_bits_in_one_pass(
    by: str, groups: Any, people: Path, frame: Any, same_noise: Any, passes: list[Any]
) -> None:
    columns = ["a"] if by == "b" else ["a", "b"]
    domain = mh.Box([0], [9]) if by == "b" else BOX

    def release(data: Any) -> Any:
        found = mh.mean(data, columns=columns, domain=domain, privacy=RHO, by=by, groups=groups)
        return [each.value for each in found.releases]

    assert_same(release, str(people / "*.parquet"), frame, same_noise)
    assert len(passes) == 1


def within(accumulator: Any) -> Iterator[Any]:
    """It, and those that it prepares records for, leaves some out for, or hands them all to."""
    yield accumulator
    for part in (*getattr(accumulator, "parts", ()), getattr(accumulator, "inner", None)):
        if part is not None:
            yield from within(part)


def test_everything_that_adds_up_has_been_on_spark(
    frame: Any, passes: list[Any], tmp_path: Path
) -> None:
    """One that is new must be tried here, and its mechanism be compared above."""
    pinned = spark_data(frame, materialize=tmp_path / "written")
    mh.mean(frame, columns=["a"], domain=mh.Box([0], [9]), privacy=RHO, by="flag", groups=[True])
    mh.plan_queries(mh.workloads.identity(7), privacy=RHO, categories={"code": 6}).release(
        frame, columns=["code"]
    )
    mh.mean(frame, columns=["a", "b"], domain=mh.Box([0, 2], [9, 2]), privacy=RHO)
    mh.quantile(frame, columns=["a"], lower=0, upper=9, privacy=RHO)
    mh.quantile(
        frame, columns=["a"], lower=0, upper=9, privacy=RHO, by="flag", groups=[True, False]
    )
    people = mh.Schema({"a": (0, 9), "flag": [True, False]}, unit="code", max_rows=2)
    both = [mh.Mean("a", by="flag"), mh.Quantile("a")]
    mh.plan(both, schema=people, privacy=RHO, n=None).release(frame)
    unknown = mh.Schema({"flag": "learn"})
    learning = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    mh.plan([mh.Count(by="flag")], schema=unknown, privacy=learning, n=None).release(frame)
    for name in ("recentring", "recentring on a line", "shifted, as printed", "clipped-laplace"):
        mh.mean(frame, **{"columns": ["a", "b"], **MEANS[name]})
    for options in SPLIT.values():
        mh.mean(pinned, columns=["a", "b"], missing="center", **options)
    names = {type(part).__name__ for each in passes for part in within(each)}
    found = those_that_add_up()
    assert len(found) > 5
    assert names == found - {"Accumulates", "Tallies"}


def those_that_add_up() -> set[str]:
    """The names of all classes with an `absorb` of their own or another's, but for those others."""
    classes = [
        item
        for module in Path(mh.__file__).parent.rglob("*.py")
        for item in ast.walk(ast.parse(module.read_text()))
        if isinstance(item, ast.ClassDef)
    ]
    own = {each.name for each in classes if "absorb" in map(_name, each.body)}
    bases = {each.name: own & set(map(_name, each.bases)) for each in classes}
    derived = {name for name, found in bases.items() if found}
    return own.union(derived).difference(*bases.values())


def _name(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "name", "")))


QUERIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "marginals": (
        mh.workloads.marginals(shape=(4, 7), order=2),
        {"categories": {"region": REGIONS, "code": 6}, "privacy": RHO},
    ),
    "histogram": (
        mh.workloads.identity(3),
        {"categories": {"flag": [True, False]}} | {"privacy": PURE},
    ),
    "ranges": (
        mh.workloads.prefix(4),
        {
            "categories": {"a": {"bins": [0, 4, 5, 9]}},
            "privacy": RHO,
            "neighbors": "substitute",
        },
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries_about_cells_are_the_same_bits(
    name: str, people: Path, frame: Any, same_noise: Any, passes: list[Any]
) -> None:
    workload, options = QUERIES[name]
    plan = mh.plan_queries(workload, **options)

    def release(data: Any) -> Any:
        return plan.release(data, columns=list(options["categories"])).value

    assert_same(release, str(people / "*.parquet"), frame, same_noise)
    assert len(passes) == 1


def test_points_are_the_same_bits(people: Path, frame: Any, same_noise: Any) -> None:
    points = mh.Points(np.random.default_rng(5).standard_normal((6, 3)))

    def release(data: Any) -> Any:
        return mh.mean(data, columns=["code"], domain=points, privacy=RHO).value

    assert_same(release, str(people / "*.parquet"), frame, same_noise)
