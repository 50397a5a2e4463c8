"""Frames with odd names, types, histories and settings: the same sums, or a refusal in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.spark import spark_data
from muhat.domains.lattice import BoxLattice

VALUES = np.arange(40) / 40
UNIT = BoxLattice.around([0], [1])
WIDE = BoxLattice.around([0] * 300, [1] * 300)
EXPECTED = exact_sums(open_source(VALUES), UNIT)
BOX: dict[str, Any] = {"domain": mh.Box([0], [1]), "privacy": mh.ZCDP(rho=1)}


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.range(0, 40, 1, 2).selectExpr("id / 40D AS x", "id % 3 AS g")


@contextmanager
def setting(spark: Any, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)


@pytest.mark.parametrize("name", ["a.b", "a b", "a`b", "größe", "x\ny", "", "*", "c1", "x = 1; --"])
def test_names_of_any_characters(frame: Any, name: str) -> None:
    assert exact_sums(open_source(frame.toDF(name, "g"), [name], 1), UNIT) == EXPECTED


def test_names_that_differ_in_case_alone_or_occur_twice(spark: Any, frame: Any) -> None:
    both = frame.selectExpr("1 - x AS X", "x", "g", "g")
    assert exact_sums(open_source(both, ["x"], 1), UNIT) == EXPECTED
    other = exact_sums(open_source(1 - VALUES), UNIT)
    assert exact_sums(open_source(both, ["X"], 1), UNIT) == other
    with pytest.raises(mh.InvalidInput, match="occurs more than once"):
        open_source(both, ["g"], 1)
    with setting(spark, "spark.sql.parser.quotedRegexColumnNames", "true"):
        assert exact_sums(open_source(frame, ["x"], 1), UNIT) == EXPECTED


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.execution.arrow.maxRecordsPerBatch", "1"),
        ("spark.sql.execution.arrow.useLargeVarTypes", "true"),
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.codegen.wholeStage", "false"),
    ],
)
def test_settings_of_the_user_change_nothing(spark: Any, key: str, value: str) -> None:
    """Sums that are added up on the cluster, and groups told by text."""
    frame = spark.range(0, 20, 1, 4).selectExpr(
        "transform(sequence(1, 300), place -> (id + place) / 400D) AS v",
        "id / 40D AS x",
        "cast(id % 2 AS string) AS g",
    )
    wide = exact_sums(open_source((np.arange(20)[:, None] + np.arange(1, 301)) / 400), WIDE)
    exactly: dict[str, Any] = {**BOX, "privacy": mh.ZCDP(rho=1e12)}
    with setting(spark, key, value):
        assert exact_sums(open_source(frame, ["v"], 300), WIDE) == wide
        found = mh.mean(frame, columns=["x"], by="g", groups=["0", "1", "2"], **exactly)
    means = [float(each) for each in found.releases]
    assert np.allclose(means[:2], [VALUES[:20:2].mean(), VALUES[1:20:2].mean()], atol=1e-4)


@pytest.mark.parametrize(
    "made",
    [
        lambda spark, frame: frame.cache(),
        lambda spark, frame: frame.localCheckpoint(),
        lambda spark, frame: spark.sql(
            "SELECT l.x FROM {f} l JOIN {f} r ON l.x = r.x WHERE r.g IN (SELECT g FROM {f})",
            f=frame,
        ),
        lambda spark, frame: frame.union(frame).distinct(),
        lambda spark, frame: frame.orderBy("g", "x"),
        lambda spark, frame: frame.selectExpr("x", "map('a', x) AS m", "struct(x) AS s"),
        lambda spark, frame: frame.selectExpr("x", "parse_json('1') AS j", "interval 1 day AS i"),
    ],
    ids=["cached", "checkpoint", "join", "union", "sorted", "nested", "variant"],
)
def test_frames_of_every_history(spark: Any, frame: Any, made: Any) -> None:
    made_frame = made(spark, frame)
    assert exact_sums(open_source(made_frame, ["x"], 1), UNIT) == EXPECTED
    made_frame.unpersist()


@pytest.mark.parametrize(
    "kind",
    [
        "timestamp'2020-01-01 00:00:00'",
        "date'2020-01-01'",
        "interval 1 day",
        "interval '1' month",
        "parse_json('1')",
        "struct(1 AS a)",
        "map(1, 2)",
        "array(array(1D))",
        "array('a')",
        "'text'",
        "X'00'",
        "null",
    ],
)
def test_what_is_no_number_is_refused_by_its_type(spark: Any, kind: str) -> None:
    odd = spark.range(0, 3, 1, 1).selectExpr(f"{kind} AS x", "id / 3D AS y")
    with pytest.raises(mh.InvalidInput, match=r"'x' has type .* cannot be averaged"):
        open_source(odd, ["x"], 1)
    assert open_source(odd, ["y"], 1).columns == ("y",)
    if kind not in ("'text'", "X'00'", "null"):
        with pytest.raises(mh.InvalidInput, match="'x'"):
            mh.mean(odd, columns=["y"], by="x", groups=["a", "b"], **BOX)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("cast(id AS decimal(38, 18))", [0, 1, 2, 3]),
        ("cast(id / 7 AS decimal(38, 37))", None),
        ("id % 2 = 0", [1, 0, 1, 0]),
        ("cast(id AS tinyint)", [0, 1, 2, 3]),
        ("-0D", [-0.0] * 4),
        ("if(id = 1, double('-inf'), double('nan'))", [np.nan, -np.inf, np.nan, np.nan]),
        ("if(id = 1, double('inf'), null)", [np.nan, np.inf, np.nan, np.nan]),
    ],
)
def test_numbers_alone_and_in_arrays(spark: Any, kind: str, values: Any, tmp_path: Path) -> None:
    frame = spark.range(0, 4, 1, 2).selectExpr(f"{kind} AS x", f"array({kind}, null) AS v")
    if values is None:
        # Spark has rounded: what it wrote down is what it would sum.
        frame.select("x").write.parquet(str(tmp_path / "x"))
        here: Any = str(tmp_path / "x" / "*.parquet")
    else:
        here = pa.table({"x": np.array(values, float)})
    lattice = BoxLattice.around([0], [2])
    one = exact_sums(open_source(here, ["x"], 1), lattice)
    assert exact_sums(open_source(frame, ["x"], 1), lattice) == one
    pair = BoxLattice.around([0, 0], [2, 2])
    two = exact_sums(open_source(frame, ["v"], 2), pair)
    alone = pa.table({"a": [None] * 4}, pa.schema({"a": pa.float64()}))
    missing = exact_sums(open_source(alone, ["a"], 1), lattice)
    assert two.total == (*one.total, *missing.total)


def test_groups_of_long_and_missing_texts(spark: Any, same_noise: Any, tmp_path: Path) -> None:
    long = "ä" * 100_000
    frame = spark.range(0, 60, 1, 3).selectExpr(
        "id / 60D AS x", f"array('{long}', '', null, 'b')[id % 4] AS k", "id % 4 = 1 AS flag"
    )
    frame.write.parquet(str(tmp_path / "rows"))
    found = []
    for data in (str(tmp_path / "rows" / "*.parquet"), frame):
        same_noise()
        texts = mh.mean(data, columns=["x"], by="k", groups=[long, "", "b", "none"], **BOX)
        flags = mh.mean(data, columns=["x"], by="flag", groups=[True, False], **BOX)
        found.append([float(each) for each in (*texts.releases, *flags.releases)])
    assert found[0] == found[1]


def test_frames_without_rows_or_columns(spark: Any, same_noise: Any, tmp_path: Path) -> None:
    nothing = spark.range(0).selectExpr("id / 4D AS x", "'a' AS k")
    here = pa.table({"x": pa.array([], pa.float64()), "k": pa.array([], pa.string())})
    pinned = spark_data(nothing, materialize=tmp_path / "rows")
    found = []
    for data in (here, nothing, pinned):
        assert exact_sums(open_source(data, ["x"], 1), UNIT).rows == 0
        with pytest.raises(mh.InvalidInput):
            mh.mean(data, columns=["x"], **BOX)
        same_noise()
        groups = mh.mean(data, columns=["x"], by="k", groups=["a", "b"], **BOX)
        found.append([float(each) for each in groups.releases])
    assert found[0] == found[1] == found[2]
    blank = spark.range(5).select()
    with pytest.raises(mh.InvalidInput, match="columns must be named"):
        open_source(blank, None, 1)
    assert abs(float(mh.count(blank, privacy=mh.ZCDP(rho=1e9))) - 5) < 1


@pytest.mark.parametrize(
    "path", ["/proc/nowhere/rows", "/dev/null", "/dev/null/rows", "nosuch://disk/rows"]
)
def test_a_place_that_cannot_be_written_is_refused_before_the_charge(
    frame: Any, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    with pytest.raises(mh.InvalidInput, match=r"could not be written down at .*Does it exist"):
        spark_data(frame, materialize=path)
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize("kind", ["x, x", "x, 1 - x AS X"])
def test_columns_that_parquet_does_not_take_are_said_to_be_a_reason(
    frame: Any, kind: str, tmp_path: Path
) -> None:
    odd = frame.selectExpr(*kind.split(", "))
    with pytest.raises(mh.InvalidInput, match="does Parquet take the names and types"):
        spark_data(odd, materialize=tmp_path / "rows")


@pytest.mark.parametrize("path", ["", " ", 5, b"rows"])
def test_a_path_is_a_text(frame: Any, path: Any) -> None:
    with pytest.raises(mh.InvalidInput, match="materialize must be a path"):
        spark_data(frame, materialize=path)
