"""DuckDB relations: one snapshot, the same rows in every pass, no word of what failed."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.categories import categories_of
from muhat.data.cell_kernel import CellAccumulator, CellTables
from muhat.data.coding import Coder
from muhat.data.duckdb import FEW_THREADS, PlacedCoder, RelationSource
from muhat.data.duckdb_plan import NAME
from muhat.data.groups import open_groups
from muhat.data.snapshot import one_snapshot
from muhat.domains.lattice import BallLattice, BoxLattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed

ROWS = 300
RHO = mh.ZCDP(rho=0.5)
BOX = BoxLattice.around([0], [100])
CANARY = "4711.1747 canary"


@pytest.fixture
def con():
    values = np.arange(float(ROWS))
    people = pa.table(
        {"age": values % 97, 'odd "name"; --': values, "sex": ["f", "m", "x"] * (ROWS // 3)}
    )
    with duckdb.connect() as con:
        con.from_arrow(people).create("people")
        con.execute("CREATE TABLE words AS SELECT '12' AS x FROM range(10)")
        con.execute(f"INSERT INTO words VALUES ('{CANARY}')")
        yield con


def open_age(relation):
    return open_source(relation, ["age"], 1)


def views_of(con):
    return con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()


def test_sums_of_a_relation_are_those_of_its_rows(con):
    relation = con.table("people")
    source = open_age(relation)
    assert isinstance(source, RelationSource)
    assert exact_sums(source, BOX) == exact_sums(open_age(relation.to_arrow_table()), BOX)
    assert source.rows() == ROWS


def test_columns_may_have_any_name_and_occur_twice(con):
    relation = con.table("people")
    named = open_source(relation, ['odd "name"; --'], 1)
    assert named.columns == ('odd "name"; --',)
    # What would be outside is at the end.
    assert exact_sums(named, BOX).total[0] == sum(
        exact_sums(open_source(np.arange(float(ROWS))), BOX).total
    )


def test_a_ball_is_read_through_arrow(con):
    relation = con.sql('SELECT age, "odd ""name""; --" AS b FROM people')
    source = open_source(relation, None, 2)
    ball = BallLattice.around([0.0, 0.0], 200.0)
    table = open_source(relation.to_arrow_table(), None, 2)
    assert exact_sums(source, ball) == exact_sums(table, ball)


@pytest.mark.slow
def test_people_with_several_rows_are_read_through_arrow(con):
    schema = mh.Schema({"age": (0, 100)}, unit="sex", max_rows=3)
    plan = mh.plan([mh.Mean("age")], schema=schema, privacy=mh.ZCDP(rho=1e6))
    assert 0 <= plan.release(con.table("people")).value[0] <= 100


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT age FROM people WHERE random() < 0.5", "random()"),
        ("SELECT age + extract(epoch FROM now()) AS age FROM people", "now()"),
        ("SELECT age, current_date AS d FROM people", "current_date"),
        ("SELECT age, uuid() AS d FROM people", "uuid()"),
        ("FROM people TABLESAMPLE 10%", "a sample"),
        ("SELECT age FROM people USING SAMPLE 5 ROWS", "a sample"),
        ("SELECT age FROM people ORDER BY age LIMIT 5", "a limit"),
        ("SELECT max_by(age, sex) AS age FROM people", "max_by()"),
        ("SELECT first(age) AS age FROM people GROUP BY sex", "first()"),
        ("SELECT age, row_number() OVER () AS k FROM people", "row_number()"),
        ("SELECT sum(age) OVER (ORDER BY sex ROWS 1 PRECEDING) AS age FROM people", "sum()"),
        ("SELECT DISTINCT ON (sex) age FROM people", "DISTINCT ON"),
        ("SELECT p.age FROM people p POSITIONAL JOIN people q", "order (positional)"),
        ("FROM drawn", "a view, 'drawn', with random()"),
        ("FROM (SELECT age FROM outer_view)", "a view, 'outer_view', with a view, 'drawn', with"),
        ("SELECT shaken(age) AS age FROM people", "shaken()"),
        ("SELECT age FROM people WHERE age IN (SELECT round(random() * 90))", "random()"),
        ("WITH few AS (SELECT age FROM people LIMIT 3) SELECT age FROM few", "a limit"),
        ("SELECT age FROM people, duckdb_settings()", "duckdb_settings()"),
        ("FROM (PIVOT people ON sex IN ('f', 'm') USING count(*) GROUP BY age)", "pivot"),
    ],
)
def test_what_may_be_other_rows_in_the_next_pass_is_refused(con, query, reason):
    con.execute("CREATE VIEW drawn AS SELECT age + random() AS age FROM people")
    con.execute('CREATE VIEW outer_view ("as", age) AS SELECT 1, age FROM drawn')
    con.execute("CREATE MACRO shaken(x) AS x + random()")
    with pytest.raises(InvalidInput, match="must be the same rows in every pass") as caught:
        open_age(con.sql(query))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT coalesce(abs(age), 0) * 2 AS age FROM people WHERE sex LIKE 'f%' AND age > 3",
        "SELECT a.age FROM people a JOIN (SELECT DISTINCT sex FROM people) b USING (sex)",
        "SELECT age FROM people UNION ALL SELECT age FROM people ORDER BY age",
        "SELECT count(*)::DOUBLE AS age, min(sex) FROM people GROUP BY age",
        "SELECT CASE WHEN age IN (1, 2) THEN upper(sex) END AS s, age FROM fixed",
        "SELECT double(age) AS age, rank() OVER (ORDER BY age) AS k FROM people",
        "WITH few AS (SELECT age FROM people) SELECT age FROM few",
        "SELECT list_sum([age, 1]) AS age FROM people",
        "SELECT x::DOUBLE AS age FROM range(10) AS r(x)",
    ],
)
def test_what_is_fixed_is_taken(con, query):
    con.execute('CREATE VIEW fixed ("as", sex, age) AS SELECT 1, sex, age FROM people')
    con.execute("CREATE MACRO double(x) AS x + x")
    relation = con.sql(query)
    table = open_age(relation.to_arrow_table())
    assert exact_sums(open_age(relation), BOX) == exact_sums(table, BOX)


def test_frames_and_files_behind_a_relation_are_taken(con, tmp_path):
    table = con.table("people").to_arrow_table()
    frame = table.to_pandas()
    con.table("people").write_parquet(str(tmp_path / "people.parquet"))
    expected = exact_sums(open_age(table), BOX)
    relations = [
        con.from_df(frame),
        con.from_arrow(table),
        con.sql("SELECT * FROM frame"),
        con.read_parquet(str(tmp_path / "people.parquet")),
        con.sql(f"FROM '{tmp_path}/people.parquet'"),
    ]
    assert [exact_sums(open_age(each), BOX) for each in relations] == [expected] * 5


def test_all_passes_see_one_snapshot_and_nothing_is_left_behind(con):
    other = con.cursor()
    with one_snapshot():
        source = open_age(con.table("people"))
        first = exact_sums(source, BOX)
        other.execute("INSERT INTO people SELECT 50, 0, 'f' FROM range(10)")
        other.execute("UPDATE people SET age = 7")
        assert exact_sums(source, BOX) == first
        assert source.rows() == ROWS
    assert views_of(con) == []
    assert open_age(con.table("people")).rows() == ROWS + 10
    # No transaction is open any more: another one can begin.
    con.begin()
    con.rollback()


def test_a_transaction_of_the_users_stays_theirs(con):
    con.begin()
    con.execute("DELETE FROM people WHERE sex = 'x'")
    release = mh.count(con.table("people"), privacy=mh.ZCDP(rho=1e6))
    assert round(release.value[0]) == ROWS * 2 // 3
    con.rollback()
    assert con.table("people").aggregate("count(*)").fetchall() == [(ROWS,)]
    assert views_of(con) == []


def test_a_table_that_changes_between_passes_is_found_out(con):
    source = open_age(con.table("people"))
    assert source.rows() == ROWS
    con.execute("INSERT INTO people SELECT 50, 0, 'f' FROM range(10)")
    with pytest.raises(DataChanged):
        exact_sums(source, BOX)


def test_a_value_that_fails_is_not_told_and_charged(con, tmp_path):
    ledger = mh.Ledger.create(
        tmp_path / "account.db", budget=mh.ZCDP(rho=1.0), neighbors="substitute"
    )
    for query in ("SELECT CAST(x AS DOUBLE) AS x FROM words", "SELECT x::INTEGER AS x FROM words"):
        before = ledger.spent
        with pytest.raises(SourceFailed) as caught:
            mh.mean(con.sql(query), domain={"x": (0, 1)}, privacy=mh.ZCDP(rho=0.25), ledger=ledger)
        assert "canary" not in repr(caught.value) + str(caught.value.__context__)
        assert caught.value.__cause__ is None
        assert ledger.spent != before
    # The connection works as before.
    assert con.execute("SELECT count(*) FROM words").fetchall() == [(11,)]


def test_a_connection_that_is_closed_fails_quietly(con):
    source = open_age(con.table("people"))
    con.close()
    with pytest.raises(SourceFailed):
        exact_sums(source, BOX)
    with pytest.raises(InvalidInput):
        open_age(duckdb.connect().table_function("range", [3]))


@pytest.fixture
def many_threads(con):
    """DuckDB with more threads than rows are read by."""
    con.execute(f"SET threads = {FEW_THREADS + 1}")


@pytest.mark.usefixtures("many_threads")
def test_an_answer_without_sums_is_a_failure(con, monkeypatch):
    monkeypatch.setattr(RelationSource, "_asked", lambda self, query: [])
    with pytest.raises(SourceFailed):
        exact_sums(open_age(con.table("people")), BOX)


def test_sums_are_made_in_sql_by_many_threads_only(con, monkeypatch):
    pushed = []
    asked = RelationSource._asked
    monkeypatch.setattr(
        RelationSource, "_asked", lambda self, query: pushed.append(1) or asked(self, query)
    )
    groups = categories_of({"sex": ["m", "f"]}, missing="drop")
    found = []
    for threads, times in ((FEW_THREADS, 0), (FEW_THREADS + 1, 1)):
        con.execute(f"SET threads = {threads}")
        pushed.clear()
        found.append(open_groups(con.table("people"), ["age"], ["sex"], groups).sums(BOX))
        assert len(pushed) == times
    assert found[0] == found[1]
    assert found[0].rows == (ROWS // 3, ROWS // 3)


@pytest.mark.usefixtures("many_threads")
def test_tables_nearly_as_long_as_the_data_are_made_here(con, monkeypatch):
    # No answer of SQL is one of a pass.
    monkeypatch.setattr(RelationSource, "_asked", lambda self, query: [])
    coder = Coder(categories_of({"age": 1 << 15}, missing="drop")[0])
    tables = CellTables((coder.size,), [(0,)])
    source = open_source(con.table("people"), ["age"], 1, coders=[coder])
    (found,) = source.fold(lambda: CellAccumulator([coder], tables))
    assert found.rows == ROWS


@pytest.mark.parametrize("labels", [["f", "x", ""], [*"abcdefghijklmnopqrs"], ["f", "a\0b"]])
def test_texts_with_few_labels_are_compared_by_duckdb(con, labels):
    relation = con.sql("SELECT sex FROM people UNION ALL SELECT NULL UNION ALL SELECT ''")
    coder = Coder(categories_of({"sex": labels})[0])
    source = open_source(relation, ["sex"], 1, coders=[coder])
    assert isinstance(source._coders[0], PlacedCoder) == (labels == ["f", "x", ""])
    found = np.concatenate([batch.columns[0].values for batch in source.partitions()[0].batches()])
    counts = {label: np.count_nonzero(found == cell) for cell, label in enumerate(labels)}
    assert counts["f"] == ROWS // 3
    assert counts.get("", 1) == 1
    listed = sum(label in ("f", "m", "x") for label in labels) * ROWS // 3 + ("" in labels)
    assert sum(counts.values()) == listed


@pytest.mark.usefixtures("many_threads")
def test_a_release_reads_in_sql_and_is_near_the_truth(con, monkeypatch):
    monkeypatch.setattr("muhat.data.duckdb._MOST_CELLS", 1 << 30)
    pushed = []
    fold = RelationSource._asked
    monkeypatch.setattr(
        RelationSource, "_asked", lambda self, query: pushed.append(1) or fold(self, query)
    )
    relation, promise = con.table("people"), mh.ZCDP(rho=1e6)
    mean = mh.mean(relation, domain={"age": (0, 100)}, privacy=promise)
    values = (np.arange(ROWS) % 97).astype(float)
    assert mean.value[0] == pytest.approx(values.mean(), abs=0.1)
    groups = mh.mean(
        relation, columns=["age"], domain=mh.Box([0], [100]), privacy=promise, by="sex",
        groups=["f", "m"],
    )  # fmt: skip
    assert groups.value[1, 0] == pytest.approx(values[1::3].mean(), abs=0.1)
    median = mh.quantile(relation, 0.5, columns=["age"], lower=0, upper=100, privacy=promise)
    assert median.value[0] == pytest.approx(np.median(values), abs=1)
    schema = mh.Schema({"age": (0, 100), "sex": ["f", "m", "x"]})
    asked = [mh.Variance("age", by="sex"), mh.Count(by="sex"), mh.Quantile("age", 0.5)]
    found = mh.plan(asked, schema=schema, privacy=promise).release(relation)
    assert found["variance age by sex"].value[0] == pytest.approx(values[::3].var(ddof=1), rel=0.01)
    assert len(pushed) > 4
    assert NAME not in str(views_of(con))
