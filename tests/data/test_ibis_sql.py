"""Sums in the words that Ibis has for a backend, on DuckDB as a backend like others; and trials."""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa
import pytest
from sql_tables import (
    boxes,
    cells_of_numbers,
    cells_of_texts,
    counting,
    of_several,
    of_windows,
    table,
)

from muhat.data.complete import RowCounter
from muhat.data.engine import Accumulator
from muhat.data.ibis_source import IbisSource
from muhat.data.ibis_sql import WORDS, IbisWords, chosen, sql_column, text_of
from muhat.data.sql import compiled, queries_of
from muhat.data.sql_dialect import SqlColumn
from muhat.data.tables import open_table
from muhat.data.tallies import BoxStep, Summand, SumTable
from muhat.data.trial import trial_table, trial_values
from muhat.domains.lattice import BoxLattice, ColumnsLattice

ibis = pytest.importorskip("ibis", reason="Ibis is not installed: muhat[ibis]")
# Ibis itself asks pandas and others for what they are about to leave out.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

AGES = BoxLattice.around([16], [90])
WAREHOUSES = ["bigquery", "databricks", "mssql", "mysql", "oracle", "snowflake", "trino"]


@pytest.fixture(scope="module")
def backend():
    backend = ibis.duckdb.connect()
    yield backend
    backend.disconnect()


def opened(backend, data, columns, coders=()):
    """A source that knows nothing of the backend but Ibis's words."""
    backend.con.register("given", data)
    backend.con.execute("CREATE OR REPLACE TABLE data AS SELECT * FROM given")
    return IbisSource(backend.table("data"), backend, columns, None, coders)


def both(source, data, columns, coders, accumulator):
    """What an accumulator holds after a pass in SQL (None: not in SQL), and after one here."""
    queries = queries_of(accumulator(), source._sql, WORDS)
    assert queries is None or source._is_shown(accumulator, queries) or not columns
    pushed = None if queries is None else source.fold(accumulator)
    here = open_table(data, columns, None, coders).fold(accumulator)
    return None if pushed is None else pushed[0].state().tolist(), here[0].state().tolist()


def of_boxes():
    """Sums, squares and counts at boxes of every kind."""
    return [
        lambda box=box: Accumulator(ColumnsLattice(box, squares=True, counts=True))
        for box in boxes()[::3]
    ]


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("real", 0), ("short", 0), ("small", 0), ("flag", 0), ("whole", 4), ("money", 5)],
)
def test_sums_squares_and_counts_are_those_of_the_kernel(backend, name, left_out):
    data = table(97, (name,))
    source = opened(backend, data, (name,))
    found = [both(source, data, (name,), (), each) for each in of_boxes()]
    assert sum(pushed is None for pushed, _ in found) == left_out
    assert all(pushed == here for pushed, here in found if pushed is not None)


@pytest.mark.parametrize("name", ["real", "whole", "money", "text"])
def test_values_are_in_the_same_cells_and_blocks(backend, name):
    data = table(83, (name,))
    for categories in cells_of_texts() if name == "text" else cells_of_numbers()[::2]:
        counter = counting(categories)
        coders = tuple(counter()._coders)
        pushed, here = both(opened(backend, data, (name,), coders), data, (name,), coders, counter)
        assert pushed == here
    for windows in [] if name == "text" else of_windows()[::2]:
        pushed, here = both(opened(backend, data, (name,)), data, (name,), (), windows)
        assert pushed == here


@pytest.mark.parametrize("name", of_several())
def test_tables_of_several_columns_are_the_same(backend, name):
    columns, coders, accumulator = of_several()[name]
    if name == "sums":  # its decimals have more digits than floats
        columns = ("real", "money")
    if "groups" in name:  # and these are larger than integers with a sign
        columns = tuple("whole" if column == "unsigned" else column for column in columns)
    for rows in (401, 0):
        data = table(rows)
        pushed, here = both(
            opened(backend, data, columns, coders), data, columns, coders, accumulator
        )
        assert pushed == here


def test_types_that_need_wider_numbers_are_read_through_arrow(backend):
    for name in ("unsigned", "decimal"):
        source = opened(backend, table(9, (name,)), (name,))
        assert queries_of(Accumulator(AGES), source._sql, WORDS) is None


def test_a_number_of_rows_needs_no_trial(backend, monkeypatch):
    source = opened(backend, table(7, ("real",)), ())
    monkeypatch.setattr(IbisSource, "_is_shown", None)
    assert source.rows() == 7
    assert source.fold(RowCounter)[0].rows == 7


def test_sums_beyond_64_bits_are_exact(backend):
    rows = 300_000
    backend.raw_sql(f"CREATE OR REPLACE TABLE data AS SELECT 90.0::DOUBLE AS x FROM range({rows})")
    source = IbisSource(backend.table("data"), backend, ("x",), 1, ())
    lattice = ColumnsLattice(AGES, squares=True, counts=True)
    (found,) = source.fold(lambda: Accumulator(lattice))
    (here,) = open_table(pa.table({"x": np.full(rows, 90.0)}), None, 1).fold(
        lambda: Accumulator(lattice)
    )
    assert max(map(abs, here.state().tolist())) > 2**62
    assert found.state().tolist() == here.state().tolist()


class Lying(IbisWords):
    """A backend whose floats are whatever they like."""

    def __init__(self, lie):
        self.lie = lie

    def whole(self, value):
        return self.lie


@pytest.mark.parametrize(
    "lie", ["CAST(NULL AS BIGINT)", "9223372036854775807", "-9223372036854775808", "7"]
)
def test_q_is_an_integer_of_the_box_whatever_floats_do(backend, lie):
    source = opened(backend, table(97, ("real",)), ("real",))
    records = str(backend.compile(chosen(source._data, ["real"])))
    for place in (box.coordinates()[0] for box in boxes()[::5]):
        if place.scale_exponent:
            continue
        tally = SumTable((), (Summand(BoxStep(0, place)),))
        query = compiled(tally, [SqlColumn("x0", "float")], Lying(lie))
        text = text_of(query, records, backend).replace("SUM(CAST", "MIN(CAST")
        for function in ("MIN", "MAX"):
            ((_, q),) = backend.con.sql(text.replace("MIN(", f"{function}(")).fetchall()
            assert place.lower <= int(q) <= place.upper or int(q) == place.absent


class RoundsTwice(IbisWords):
    """Rounds to a float of 32 bits first."""

    def whole(self, value):
        return super().whole(f"CAST({value} AS REAL)")


class FoldsCase(IbisWords):
    """Compares texts as some columns do."""

    def same_bytes(self, text):
        return f"LOWER({text})"


@pytest.mark.parametrize("words", [RoundsTwice(), FoldsCase()])
def test_a_backend_of_other_sums_is_found_out(backend, monkeypatch, words):
    _, coders, accumulator = of_several()["dropped groups"]
    source = opened(backend, table(401), ("real", "whole", "text"), coders)
    for said, same in ((WORDS, True), (words, False)):
        monkeypatch.setattr("muhat.data.ibis_source.WORDS", said)
        queries = queries_of(accumulator(), source._sql, said)
        assert source._is_shown(accumulator, queries) == same


@pytest.mark.parametrize("refuses", [False, True])
def test_rows_of_a_backend_that_does_not_show_its_sums_are_read(monkeypatch, caplog, refuses):
    # SQLite has no decimals: its sums of so many digits are floats.
    if refuses:
        monkeypatch.setattr(
            "muhat.data.ibis_source.text_of", lambda *_: "SELECT no_such_function()"
        )
    backend = ibis.sqlite.connect()
    backend.con.execute("CREATE TABLE data (age REAL)")
    backend.con.executemany("INSERT INTO data VALUES (?)", [(16 + k / 7,) for k in range(500)])
    source = IbisSource(backend.table("data"), backend, ("age",), 1, ())
    with caplog.at_level(logging.INFO, "muhat.data.sql"):
        (found,) = source.fold(lambda: Accumulator(AGES))
    rows = pa.table({"age": 16 + np.arange(500) / 7})
    (here,) = open_table(rows, None, 1).fold(lambda: Accumulator(AGES))
    assert found.state().tolist() == here.state().tolist()
    assert caplog.messages == ["this backend does not show the sums of muhat: muhat reads the rows"]
    backend.disconnect()


def test_a_pass_that_fails_says_nothing(backend, monkeypatch):
    source = opened(backend, table(31, ("real",)), ("real",))
    monkeypatch.setattr(IbisSource, "_is_shown", lambda *_: True)
    backend.raw_sql("DROP TABLE data")
    assert source.fold(lambda: Accumulator(AGES)) is None


@pytest.mark.parametrize("name", WAREHOUSES)
def test_every_backend_of_ibis_has_words_for_it(name):
    kind = getattr(ibis.backends.sql.compilers, name).compiler
    warehouse = type(name, (), {"name": name, "dialect": kind.dialect})()
    columns, _, accumulator = of_several()["moments"]
    kinds = [ibis.dtype(each) for each in ("float64", "decimal(12, 3)", "string", "int64")]
    columns = [sql_column(f"x{place}", each) for place, each in enumerate(kinds)]
    for parts in queries_of(accumulator(), columns, WORDS):
        for query in parts:
            said = text_of(query, "SELECT 1 AS x0", warehouse)
            assert "muhat" not in said
            assert said.count("(SELECT 1 AS x0)") == 1


def test_trials_have_ends_ties_labels_and_what_is_nearly_a_label():
    box = ColumnsLattice(BoxLattice.around([0], [128]), squares=True)
    (tally,) = Accumulator(box).tallies()
    values = trial_values([tally], 0, pa.float64())
    grid = 128.0 / 2**46
    for each in (0.0, 128.0, 64.0, 64 + grid / 2, 64 - grid / 2, np.inf, -np.inf):
        assert each in values
    assert len(set(map(str, values))) == len(values)
    texts = counting(cells_of_texts()[0])
    assert {"f", "F", "f ", "m", ""} <= set(trial_values(texts().tallies(), 0, pa.string()))
    rows = trial_table([values, [True, False]], [pa.float64(), pa.bool_()])
    assert rows.num_rows == 2 * len(values)
    assert all(column.null_count for column in rows.columns)
    pairs = set(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    assert len(pairs) > len(values)
