"""Sums that Spark makes itself: the same bits, whatever the session is set to, without Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from data.sql_tables import (
    COLUMNS,
    boxes,
    cells_of_numbers,
    cells_of_texts,
    counting,
    made_here,
    of_several,
    of_windows,
    summands,
    table,
)
from muhat.data import exact_sums, open_source
from muhat.data.engine import Accumulator
from muhat.data.spark import SparkSource
from muhat.data.spark_sql import WORDS, SparkWords
from muhat.data.sql import _parts, compiled, queries_of
from muhat.data.sql_dialect import SqlColumn
from muhat.data.tables import open_table
from muhat.data.tallies import BoxStep, Summand, SumTable, one_table
from muhat.domains.lattice import BallLattice, BoxLattice, ColumnsLattice

ROWS = 401
PLAIN = {"spark.sql.ansi.enabled": "false"}
ODD = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def set_to(spark: Any, settings: dict[str, str]) -> Iterator[None]:
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def stored(data: pa.Table) -> pa.Table:
    """A table as Spark has it: whole numbers without a sign are decimals there."""
    place = data.column_names.index("unsigned")
    return data.set_column(place, "unsigned", data.column(place).cast(pa.decimal128(20, 0)))


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame(stored(table(ROWS))).repartition(3).cache()


def opened(frame: Any, columns: tuple[str, ...], coders: Any = ()) -> SparkSource:
    source = open_source(frame, list(columns), len(columns), coders=coders)
    assert isinstance(source, SparkSource)
    return source


def assert_same(
    frame: Any, columns: tuple[str, ...], coders: Any, accumulator: Callable[[], Any]
) -> None:
    """By Spark itself, and by the embedded engine at the rows of the same table."""
    source = opened(frame, columns, coders)
    assert queries_of(accumulator(), source._sql, WORDS) is not None
    data = stored(table(ROWS)).slice(0, ROWS if frame.count() else 0)
    (here,) = open_table(data, columns, None, coders).fold(accumulator)
    (there,) = source.fold(accumulator)
    assert there.state().tolist() == here.state().tolist()


def found_in(source: SparkSource, tally: SumTable, words: SparkWords = WORDS) -> Any:
    parts = _parts(tally, source._sql, words)
    return one_table([each.tallied(source._asked(each)) for each in parts])


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "text"])
def test_sums_squares_and_counts_of_every_type_are_those_of_the_kernel(
    spark: Any, frame: Any, name: str
) -> None:
    source = opened(frame, (name,))
    place = list(COLUMNS).index(name)
    # A few of the boxes for each type, all of them together.
    every, left_out = summands(source._sql[0], WORDS)
    assert len(left_out) <= 4
    chosen = every[place::13]
    with set_to(spark, PLAIN if place % 2 else {}):
        found = found_in(source, SumTable((), tuple(chosen)))
    assert list(found[()][1:]) == made_here(stored(table(ROWS)).select([name]), chosen)


def test_any_floats_at_any_box(spark: Any) -> None:
    random = np.random.default_rng(7)
    low = random.standard_normal(5) * 10.0 ** random.integers(-60, 60, 5)
    high = low + abs(low) * 10.0 ** random.integers(-9, 9, 5)
    ends = np.concatenate([low, high])
    values = [
        *(random.integers(-(2**63), 2**63, 2000).view(np.float64)),
        *(ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf)),
        *(low + (high - low) * random.random((300, 5))),
    ]
    data = pa.table({"x": np.hstack(values)})
    source = opened(spark.createDataFrame(data), ("x",))
    for ends_of_box in zip(low, high, strict=True):
        box = BoxLattice.around(*([end] for end in ends_of_box))
        lattice = ColumnsLattice(box, squares=True, counts=True)
        (here,) = open_table(data, ("x",), 1).fold(lambda of=lattice: Accumulator(of))
        (there,) = source.fold(lambda of=lattice: Accumulator(of))
        assert there.state().tolist() == here.state().tolist()


@pytest.mark.parametrize("name", ["real", "whole", "money"])
def test_numbers_are_in_the_same_cells_and_blocks(frame: Any, name: str) -> None:
    for categories in cells_of_numbers()[1::4]:
        counter = counting(categories)
        assert_same(frame, (name,), tuple(counter()._coders), counter)
    assert_same(frame, (name,), (None,), of_windows()[3])


def test_texts_are_in_the_same_cells_whatever_a_column_compares_by(frame: Any) -> None:
    folded = frame.selectExpr("text COLLATE UTF8_LCASE AS text")
    for categories in cells_of_texts()[2:5]:
        counter = counting(categories)
        for each in (frame, folded):
            assert_same(each, ("text",), tuple(counter()._coders), counter)


@pytest.mark.parametrize("name", of_several())
def test_tables_of_several_columns_are_the_same(spark: Any, frame: Any, name: str) -> None:
    assert_same(frame, *of_several()[name])
    with set_to(spark, ODD):
        assert_same(frame, *of_several()[name])


def test_a_frame_without_rows_has_sums_too(frame: Any) -> None:
    nobody = frame.where("whole = 4711")
    for name in ("sums", "groups"):
        assert_same(nobody, *of_several()[name])


def test_many_columns_are_several_queries_and_a_great_many_are_left_to_python(spark: Any) -> None:
    values = np.random.default_rng(5).standard_normal((50, 40))
    names = tuple(f"x{place}" for place in range(40))
    data = pa.table(dict(zip(names, values.T, strict=True)))
    source = opened(spark.createDataFrame(data), names)
    lattice = BoxLattice.around([-1] * 40, [1] * 40)
    (parts,) = queries_of(Accumulator(lattice), source._sql, WORDS) or ()
    assert len(parts) == 4
    here = open_source(data, list(names), 40)
    assert exact_sums(source, lattice) == exact_sums(here, lattice)
    # That a record is complete is a condition of all its columns, and goes into every query.
    assert queries_of(Accumulator(lattice, "drop"), source._sql, WORDS) is None
    expected = exact_sums(here, lattice, missing="drop")
    assert exact_sums(source, lattice, missing="drop") == expected


def test_parts_that_saw_other_records_are_refused() -> None:
    assert one_table([{(0,): (3, 5)}, {(0,): (3, 7, 9)}]) == {(0,): (3, 5, 7, 9)}
    for other in ({(0,): (4, 7)}, {(1,): (3, 7)}, {}):
        with pytest.raises(ValueError, match="other records"):
            one_table([{(0,): (3, 5)}, other])


@pytest.mark.parametrize("lie", ["CAST(NULL AS BIGINT)", "9223372036854775807", "-35184372088833"])
def test_q_is_an_integer_of_the_box_whatever_floats_do(frame: Any, lie: str) -> None:
    class Lying(SparkWords):
        most_names = None

        def whole(self, value: str) -> str:
            return lie

    places = [box.coordinates()[0] for box in boxes()[::4]]
    source = opened(frame, ("real",))
    tally = SumTable((), tuple(Summand(BoxStep(0, place)) for place in places))
    *projections, added = compiled(tally, source._sql, Lying()).stages
    rows = frame.selectExpr("real AS x0")
    for projection in projections:
        rows = rows.selectExpr("*", *projection.columns)
    names = [each.partition("sum((")[2].partition(" ")[0] for each in added.columns[1::2]]
    for row in rows.select(*names).collect():
        for place, q in zip(places, row, strict=True):
            assert place.lower <= q <= place.upper or q == place.absent


def test_an_engine_whose_halves_do_not_fit_is_found_out(frame: Any) -> None:
    class Single(SparkWords):
        """Adds halves of other sizes."""

        units = (1 << 22, 1)

    source, lattice = opened(frame, ("real",)), BoxLattice.around([0], [128])
    (tally,) = Accumulator(lattice).tallies() or ()
    (here,) = open_table(stored(table(ROWS)), ("real",), 1).fold(lambda: Accumulator(lattice))
    for words, same in ((WORDS, True), (Single(), False)):
        found = found_in(source, tally, words)
        assert (Accumulator(lattice).tallied([found]).tolist() == here.state().tolist()) == same


def test_python_workers_have_nothing_to_do_unless_there_is_no_sql(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(frame, ("real", "decimal"))
    data = open_table(stored(table(ROWS)), ("real", "decimal"), 2)
    ball = BallLattice.around([0.0, 0.0], 100.0)
    assert exact_sums(source, ball) == exact_sums(data, ball)
    worked: list[object] = []
    monkeypatch.setattr(SparkSource, "_folded", lambda *given: worked.append(given))
    box = BoxLattice.around([0, 0], [100, 100])
    assert exact_sums(source, box) == exact_sums(data, box)
    assert not worked
    assert source.fold(lambda: Accumulator(ball)) is None
    assert len(worked) == 1


def test_an_answer_with_more_records_than_sums_have_room_for_is_refused() -> None:
    place = BoxLattice.around([0], [128]).coordinates()[0]
    tally = SumTable((), (Summand(BoxStep(0, place)),))
    query = compiled(tally, [SqlColumn("x0", "float")], SparkWords())
    assert query.tallied([((1 << 40) - 1, 3, 5)]) == {(): ((1 << 40) - 1, (3 << 23) + 5)}
    with pytest.raises(ValueError, match="so many"):
        query.tallied([(1 << 40, 0, 0)])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_table_of_ibis_on_spark_is_a_frame(spark: Any) -> None:
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed: muhat[ibis]")
    session = spark.newSession()
    session.range(300).selectExpr("CAST(id AS DOUBLE) AS x").createOrReplaceTempView("numbers")
    numbers = ibis.pyspark.connect(session).table("numbers")
    source = open_source(numbers.filter(numbers.x < 30), ["x"], 1)
    assert isinstance(source, SparkSource)
    box = BoxLattice.around([0], [50])
    assert exact_sums(source, box) == exact_sums(open_source(np.arange(30.0)), box)
