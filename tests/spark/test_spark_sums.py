"""Sums on a Spark cluster are those of the embedded engine, bit for bit, whatever the layout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muhat
from muhat.data import exact_sums, open_source
from muhat.data.categories import categories_of
from muhat.data.moments import Family, MomentColumn, open_moments
from muhat.data.spark import SMALL_STATE
from muhat.data.spark_ship import packed_package
from muhat.domains.lattice import BallLattice, BoxLattice, Lattice, PointsLattice, SimplexLattice

ROWS = 2000


def write(folder: Path, table: pa.Table, files: int = 3) -> Path:
    """A table in some Parquet files of different length."""
    folder.mkdir()
    cuts = np.linspace(0, 1, files + 1) ** 2 * len(table)
    for index, (start, stop) in enumerate(pairwise(cuts)):
        part = table.slice(int(start), int(stop) - int(start))
        pq.write_table(part, folder / f"{index:05}.parquet", row_group_size=500)
    return folder


def numbers(columns: int, seed: int = 1) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((ROWS, columns))
    made[::97] = np.nan
    made[5::101, 0] = np.inf
    made[7::103, -1] = 1e308
    return made


def assert_same(spark: Any, folder: Path, columns: list[str], lattice: Lattice) -> None:
    frame = spark.read.parquet(str(folder))
    dim = lattice.record_dim
    for missing in ("center", "drop"):
        there = exact_sums(open_source(frame, columns, dim), lattice, missing=missing)
        here = exact_sums(
            open_source(str(folder / "*.parquet"), columns, dim), lattice, missing=missing
        )
        assert there == here


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every type that can be averaged, with nulls, in a few files."""
    random = np.random.default_rng(3)
    gone = random.random(ROWS) < 0.1
    floats, whole = numbers(3), random.integers(-(2**62), 2**62, ROWS)
    table = pa.table(
        {
            "double": pa.array(floats[:, 0], mask=gone),
            "float": pa.array(floats[:, 1].astype(np.float32)),
            "long": pa.array(whole, mask=gone),
            "short": pa.array((whole >> 48).astype(np.int16)),
            "flag": pa.array(whole % 2 == 0, mask=gone),
            "money": pa.array(
                [
                    None if lost else Decimal(int(x)).scaleb(-4)
                    for x, lost in zip(whole, gone, strict=True)
                ],
                pa.decimal128(38, 4),
            ),
            "cents": pa.array(
                [Decimal(int(x) % 10**9).scaleb(-2) for x in whole], pa.decimal128(18, 2)
            ),
            "code": pa.array((whole % 7).astype(np.int32)).dictionary_encode(),
            "odd `name` a.b": pa.array(floats[:, 2]),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(floats.reshape(-1), mask=np.repeat(gone, 3)), 3
            ),
            "text": pa.array([str(x) for x in whole]),
        }
    )
    return write(tmp_path_factory.mktemp("typed") / "data", table)


@pytest.mark.parametrize(
    ("columns", "lattice"),
    [
        (["double", "float", "short"], BoxLattice.around([-1] * 3, [2] * 3)),
        (["long"], BoxLattice.around([-(2**60)], [2**61])),
        (["money"], BoxLattice.around([-1e12], [1e14])),
        (["cents", "money", "flag", "code"], BoxLattice.around([0] * 4, [5e6, 1e13, 1, 6])),
        (["odd `name` a.b", "double"], BallLattice.around([0.1, 0.2], 1.0)),
        (["vector"], BallLattice.around([0.1] * 3, 1.0)),
        (["vector", "double"], SimplexLattice(4)),
        (["code"], PointsLattice.of(7)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else type(value).__name__,
)
def test_sums_of_every_type_are_those_of_the_embedded_engine(
    spark: Any, typed: Path, columns: list[str], lattice: Lattice
) -> None:
    assert_same(spark, typed, columns, lattice)


def test_long_sums_are_added_up_on_the_cluster_first(spark: Any, tmp_path: Path) -> None:
    lattice = BoxLattice.around([-1] * 300, [1] * 300)
    assert 16 * lattice.dim > SMALL_STATE
    values = np.random.default_rng(4).standard_normal((200, 300))
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 300)})
    assert_same(spark, write(tmp_path / "data", table, files=5), ["v"], lattice)


@pytest.mark.parametrize(
    "shape",
    [
        lambda frame: frame.coalesce(1),
        lambda frame: frame.repartition(5),
        lambda frame: frame.where("x < -1e308").union(frame),
        lambda frame: frame.repartitionByRange(3, "x"),
        lambda frame: frame.repartition(4, frame.x > 1),
    ],
    ids=["one", "even", "some empty", "by range", "skewed"],
)
def test_sums_are_the_same_for_every_partitioning(spark: Any, shape: Any) -> None:
    lattice = BoxLattice.around([-1], [1])
    table = pa.table({"x": numbers(1)[:, 0]})
    frame = shape(spark.createDataFrame(table))
    there = exact_sums(open_source(frame, ["x"], 1), lattice)
    assert there == exact_sums(open_source(table, ["x"], 1), lattice)


def test_partitions_of_one_row_and_of_none(spark: Any) -> None:
    lattice = BoxLattice.around([-1], [1])
    frame = spark.range(0, 12, 1, 12).selectExpr("id / 4D - 1.5D AS x")
    assert frame.rdd.getNumPartitions() == 12
    values = np.arange(12) / 4 - 1.5
    for where, kept in (("true", values), ("x > 0", values[values > 0]), ("x > 9", values[:0])):
        there = exact_sums(open_source(frame.where(where), ["x"], 1), lattice)
        assert there == exact_sums(open_source(kept, None, 1), lattice)


def test_ten_thousand_small_files(spark: Any, tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    values = numbers(1)[:, 0]
    for kind in range(10):
        pq.write_table(pa.table({"x": values[kind::500]}), kinds / f"{kind}.parquet")
    many = tmp_path / "many"
    many.mkdir()
    for index in range(10_000):
        shutil.copyfile(kinds / f"{index % 10}.parquet", many / f"{index:05}.parquet")
    lattice = BoxLattice.around([-1], [1])
    spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 16))
    frame = spark.read.parquet(str(many))
    there = exact_sums(open_source(frame, ["x"], 1), lattice)
    once = exact_sums(open_source(str(kinds / "*.parquet"), ["x"], 1), lattice)
    assert there.rows == 1000 * once.rows
    assert there.total == tuple(1000 * total for total in once.total)


def test_lists_of_another_length_are_missing(spark: Any) -> None:
    rows = [([1.0, 2.0],), ([1.0],), ([],), (None,), ([3.0, None],), ([1.0, 2.0, 3.0],)]
    frame = spark.createDataFrame(rows, "v array<double>").coalesce(1)
    lattice = BoxLattice.around([0, 0], [4, 4])
    plain = pa.table({"a": [1.0, None, None, None, 3.0, None], "b": [2.0] + [None] * 5})
    for missing in ("center", "drop"):
        there = exact_sums(open_source(frame, ["v"], 2), lattice, missing=missing)
        assert there == exact_sums(open_source(plain, ["a", "b"], 2), lattice, missing=missing)


def test_all_that_a_pass_may_need_is_found_in_the_archive_alone(tmp_path: Path) -> None:
    """In every storey of the rooms."""
    source = Path(muhat.__file__).parent
    rooms = ("data", "domains", "mechanisms", "noise", "records", "release", "workloads")
    names = [
        ".".join(module.relative_to(source.parent).with_suffix("").parts)
        for room in rooms
        for module in (source / room).rglob("*.py")
        if module.stem != "__init__"
    ]
    assert "muhat.mechanisms.sums.ratio" in names
    program = "import sys, importlib\nsys.path[:0] = [sys.argv[1]]\nimport muhat\n"
    program += "assert muhat.__file__.startswith(sys.argv[1])\n"
    program += "for name in sys.argv[2:]: importlib.import_module(name)"
    command = [sys.executable, "-c", program, str(packed_package(tmp_path)), *names]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("files", [1, 7])
def test_tables_of_moments_are_the_same_integers(spark: Any, tmp_path: Path, files: int) -> None:
    random = np.random.default_rng(12)
    made = numbers(2, seed=12)
    gone = random.random(ROWS) < 0.1
    table = pa.table(
        {
            "a": made[:, 0],
            "b": pa.array(made[:, 1], mask=gone),
            "age": random.integers(0, 100, ROWS),
            "region": random.choice(["north", "south", "?"], ROWS),
        }
    )
    folder = write(tmp_path / "rows", table, files)
    columns = [
        MomentColumn("a", -1, 2),
        MomentColumn("b", -2, 2),
        MomentColumn("age", 0, 90),
    ]
    groups = categories_of(
        {"region": ["north", "south"], "age": {"bins": [0, 18, 65, 90]}}, missing="drop"
    )
    families = [
        Family((), ()),
        Family(("a",), ("a",)),
        Family((), ("b",)),
        Family(("a", "b"), ("a", "b")),
        Family(("age",), ("age",)),
    ]
    wanted = dict.fromkeys(families, ((), (1, 0), (0,)))
    squares = [family for family in families if len(family.term) == 1]
    here, there = (
        open_moments(data, columns, groups).tables(wanted, squares)
        for data in (str(folder / "*.parquet"), spark.read.parquet(str(folder)))
    )
    assert len(here) == 8
    for key, tables in here.items():
        assert all((there[key][axes] == table).all() for axes, table in tables.items())
