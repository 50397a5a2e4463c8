"""Tables of PostgreSQL: the same bits, one snapshot, the same rows in every pass."""

from __future__ import annotations

import gc
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from postgres_server import programs, running
from sql_tables import (
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

import muhat as mh
from muhat.cli import main
from muhat.data import exact_sums, open_source
from muhat.data.postgres import WORDS, PostgresSource, PostgresWords, postgres_data
from muhat.data.snapshot import one_snapshot
from muhat.data.sql import compiled, queries_of
from muhat.data.tables import open_table
from muhat.data.tallies import BoxStep, Summand, SumTable
from muhat.domains.lattice import BallLattice, BoxLattice
from muhat.errors import InvalidInput, SourceFailed

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: muhat[postgres]")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed: pip's pgserver"),
]

BOX = BoxLattice.around([0], [100])
TYPES = {
    "real": "double precision",
    "short": "real",
    "whole": "bigint",
    "small": "integer",
    "unsigned": "numeric(20, 0)",
    "decimal": "numeric(18, 3)",
    "money": "numeric(12, 3)",
    "flag": "boolean",
    "text": "text",
}
ROWS = 401


@pytest.fixture(scope="module")
def where():
    with running(programs()) as conninfo:
        with psycopg.connect(conninfo) as con:
            listed = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
            con.execute(f"CREATE TABLE hostile ({listed}); CREATE TABLE nothing ({listed})")
            for row in stored(table(ROWS)).to_pylist():
                slots = ", ".join(["%s"] * len(row))
                con.execute(f"INSERT INTO hostile VALUES ({slots})", list(row.values()))
            con.execute(
                "CREATE SCHEMA sales; CREATE TABLE sales.people AS "
                "SELECT (k % 97)::float8 AS age, "
                "CASE k % 3 WHEN 0 THEN 'f' WHEN 1 THEN 'm' ELSE 'x' END AS sex, "
                'k AS "odd ""name""; --" FROM generate_series(0, 299) AS k'
            )
        yield conninfo


def stored(data):
    """A table as PostgreSQL has it: whole numbers without a sign are decimals there."""
    if "unsigned" not in data.column_names:
        return data
    place = data.column_names.index("unsigned")
    wide = data.column(place).cast(pa.decimal128(20, 0))
    return data.set_column(place, "unsigned", wide)


def opened(where, name, columns, coders=()):
    return open_source(postgres_data(name, where), list(columns), len(columns), coders=coders)


def states(where, columns, coders, accumulator, name="hostile"):
    """What an accumulator holds after a pass in SQL, and after one here."""
    source = opened(where, name, columns, coders)
    assert isinstance(source, PostgresSource)
    data = stored(table(ROWS if name == "hostile" else 0))
    here = open_table(data, tuple(columns), None, coders).fold(accumulator)
    if queries_of(accumulator(), source._sql, WORDS) is None:
        return None, here[0].state().tolist()
    return source.fold(accumulator)[0].state().tolist(), here[0].state().tolist()


def tallied(source, tally, words=WORDS):
    query = compiled(tally, source._sql, words)
    return query.tallied(source._asked(query))


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "text"])
def test_sums_squares_and_counts_of_every_type_are_those_of_the_kernel(where, name):
    source = opened(where, "hostile", (name,))
    chosen, left_out = summands(source._sql[0], WORDS)
    found = tallied(source, SumTable((), tuple(chosen)))
    assert list(found[()][1:]) == made_here(stored(table(ROWS)).select([name]), chosen)
    assert len(left_out) <= 4


@pytest.mark.parametrize("name", ["real", "whole", "money", "flag", "small"])
def test_numbers_are_in_the_same_cells_and_blocks(where, name):
    for categories in cells_of_numbers():
        counter = counting(categories)
        pushed, here = states(where, (name,), tuple(counter()._coders), counter)
        assert pushed == here
    for windows in of_windows():
        pushed, here = states(where, (name,), (None,), windows)
        assert pushed == here


def test_texts_are_in_the_same_cells(where):
    for categories in cells_of_texts():
        counter = counting(categories)
        pushed, here = states(where, ("text",), tuple(counter()._coders), counter)
        assert pushed == here


@pytest.mark.parametrize("rows", ["hostile", "nothing"])
@pytest.mark.parametrize("name", of_several())
def test_tables_of_several_columns_are_the_same(where, name, rows):
    columns, coders, accumulator = of_several()[name]
    pushed, here = states(where, columns, coders, accumulator, rows)
    # Decimals of twenty digits have no bins, but sums.
    assert pushed == here


@pytest.mark.parametrize("lie", ["NULL::bigint", "9223372036854775807", "7", "-35184372088833"])
def test_q_is_an_integer_of_the_box_whatever_floats_do(where, lie):
    class Lying(PostgresWords):
        def whole(self, value):
            return lie

    source = opened(where, "hostile", ("real",))
    for place in (box.coordinates()[0] for box in boxes()):
        if not place.scale_exponent:
            count, total = tallied(source, SumTable((), (Summand(BoxStep(0, place)),)), Lying())[()]
            ends = (place.lower, place.upper, place.absent)
            assert count * min(ends) <= total <= count * max(ends)


def test_decimals_that_are_no_numbers_are_missing(where):
    with psycopg.connect(where) as con:
        con.execute("CREATE TABLE odd (x numeric(9, 2)); INSERT INTO odd VALUES ('NaN'), (7.25)")
    lattice = BoxLattice.around([0], [10])
    expected = exact_sums(open_source(np.array([np.nan, 7.25])), lattice)
    source = opened(where, "odd", ("x",))
    assert exact_sums(source, lattice) == expected
    (column,) = next(source._batches()).columns
    assert sorted(column.present().tolist()) == [False, True]


def test_what_has_no_sql_is_read_here(where):
    source = opened(where, "hostile", ("real", "decimal"))
    ball = BallLattice.around([0.0, 0.0], 100.0)
    data = open_table(stored(table(ROWS)), ("real", "decimal"), 2)
    assert exact_sums(source, ball) == exact_sums(data, ball)


def test_releases_are_near_the_truth(where):
    data, promise = postgres_data("sales.people", where), mh.ZCDP(rho=1e6)
    values = (np.arange(300) % 97).astype(float)
    mean = mh.mean(data, domain={"age": (0, 100)}, privacy=promise)
    assert mean.value[0] == pytest.approx(values.mean(), abs=0.1)
    odd = mh.mean(data, domain={'odd "name"; --': (0, 300)}, privacy=promise)
    assert odd.value[0] == pytest.approx(149.5, abs=0.1)
    schema = mh.Schema({"age": (0, 100), "sex": ["f", "m", "x"]})
    asked = [mh.Variance("age", by="sex"), mh.Count(by="sex"), mh.Quantile("age", 0.5)]
    found = mh.plan(asked, schema=schema, privacy=promise).release(data)
    assert found["variance age by sex"].value[0] == pytest.approx(values[::3].var(ddof=1), rel=0.01)


def test_all_passes_see_one_snapshot(where):
    with psycopg.connect(where, autocommit=True) as con, one_snapshot():
        con.execute("CREATE TABLE moving AS SELECT 5::float8 AS age FROM generate_series(1, 20)")
        source = opened(where, "moving", ("age",))
        first = exact_sums(source, BOX)
        con.execute("INSERT INTO moving VALUES (50); UPDATE moving SET age = 7")
        assert exact_sums(source, BOX) == first
        assert source.rows() == 20
        # Another source of the same release shares the snapshot.
        assert exact_sums(opened(where, "moving", ("age",)), BOX) == first
    assert source._connection.closed


def test_a_source_without_a_release_closes_its_connection(where):
    source = opened(where, "sales.people", ("age",))
    connection = source._connection
    del source
    gc.collect()
    assert connection.closed


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("SELECT age + random() AS age FROM sales.people", "random()"),
        ("SELECT age FROM sales.people TABLESAMPLE SYSTEM (50)", "a sample"),
        ("SELECT age FROM sales.people ORDER BY age LIMIT 5", "a limit"),
        ("SELECT age FROM sales.people OFFSET 5", "an offset"),
        ("SELECT DISTINCT ON (sex) age FROM sales.people", "DISTINCT ON"),
        ("SELECT age, row_number() OVER () FROM sales.people", "over rows"),
        ("SELECT (array_agg(age))[1] AS age FROM sales.people GROUP BY sex", "array_agg()"),
        ("SELECT age + nextval('counter') AS age FROM sales.people", "nextval()"),
        ("SELECT age FROM sales.people WHERE age < shaken(3)", "shaken()"),
        ("SELECT age FROM sales.people WHERE clock_timestamp() > 'epoch'", "clock_timestamp()"),
        ("SELECT age FROM (SELECT * FROM drawn) AS d", "random()"),
    ],
)
def test_views_that_may_have_other_rows_are_refused(where, body, reason):
    with psycopg.connect(where) as con:
        con.execute("CREATE SEQUENCE IF NOT EXISTS counter")
        con.execute("CREATE OR REPLACE VIEW drawn AS SELECT random() AS age")
        con.execute(
            "CREATE OR REPLACE FUNCTION shaken(x float8) RETURNS float8 LANGUAGE sql VOLATILE "
            "AS 'SELECT x + 1'"
        )
        con.execute(f"DROP VIEW IF EXISTS tried; CREATE VIEW tried AS {body}")
    with pytest.raises(InvalidInput, match="must be the same rows in every pass") as caught:
        opened(where, "tried", ("age",))
    assert reason in str(caught.value)


def test_views_that_are_fixed_are_taken(where):
    with psycopg.connect(where) as con:
        con.execute(
            "CREATE VIEW fixed AS SELECT a.age + extract(year FROM now()) * 0 AS age FROM "
            "sales.people a JOIN (SELECT sex, count(*) FROM sales.people GROUP BY sex) b "
            "USING (sex) WHERE upper(sex) = 'F'"
        )
    assert opened(where, "fixed", ("age",)).rows() == 100


@pytest.mark.parametrize("name", ["nobody", 'x"; DROP TABLE hostile; --', "a.b.c.d", ""])
def test_tables_that_are_none_are_refused(where, name):
    with pytest.raises(InvalidInput, match="cannot open the table"):
        opened(where, name, ("age",))


def test_a_server_that_is_none_is_refused_without_a_word_of_its_secret(tmp_path):
    conninfo = f"postgresql://u:secret@/base?host={tmp_path}"
    with pytest.raises(InvalidInput, match="does not answer") as caught:
        opened(conninfo, "people", ("age",))
    assert "secret" not in repr(caught.value) + repr(caught.value.__context__)
    assert "secret" not in repr(postgres_data("people", conninfo))


def test_a_backend_that_is_killed_and_a_value_that_fails_are_quiet(where, tmp_path):
    ledger = mh.Ledger.create(
        tmp_path / "account.db", budget=mh.ZCDP(rho=1.0), neighbors="substitute"
    )
    with psycopg.connect(where, autocommit=True) as con:
        con.execute("CREATE TABLE words AS SELECT 'canary'::text AS x")
        con.execute("CREATE VIEW cast_words AS SELECT CAST(x AS float8) AS x FROM words")
        con.execute(
            "CREATE FUNCTION dies(x float8) RETURNS float8 LANGUAGE plpgsql STABLE AS "
            "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN x; END'"
        )
        con.execute("CREATE VIEW killed AS SELECT dies(age) AS x FROM sales.people")
    for name in ("cast_words", "killed"):
        before = ledger.spent
        with pytest.raises(SourceFailed) as caught:
            mh.mean(
                postgres_data(name, where),
                domain={"x": (0, 1)},
                privacy=mh.ZCDP(rho=0.25),
                ledger=ledger,
            )
        assert "canary" not in repr(caught.value) + repr(caught.value.__context__)
        assert ledger.spent != before


def test_the_command_line_has_them_too(where):
    promise = ["--bounds", "age=0:100", "--rho", "1000000", "--json"]
    engine = ["--engine", "postgres", "--database", where]
    found = CliRunner().invoke(main, ["mean", "sales.people", *engine, *promise])
    assert found.exit_code == 0, found.output
    refused = CliRunner().invoke(main, ["mean", "nobody", *engine, *promise])
    assert refused.exit_code == 2
    assert "PostgreSQL cannot open the table 'nobody'" in refused.output


def test_decimals_without_a_number_of_digits_are_refused(where):
    with psycopg.connect(where) as con:
        con.execute("CREATE TABLE free (x numeric)")
        con.execute("INSERT INTO free VALUES (%s)", [Decimal("1.5")])
    with pytest.raises(InvalidInput, match="cannot be averaged"):
        opened(where, "free", ("x",))
