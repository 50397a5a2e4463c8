"""Tables of Ibis: added up by the backend that holds them, or read through Arrow."""

from __future__ import annotations

import numpy as np
import polars
import pytest
from postgres_server import programs, running

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.duckdb import RelationSource
from muhat.data.ibis import IbisSource
from muhat.domains.lattice import BallLattice, BoxLattice
from muhat.errors import InvalidInput

ibis = pytest.importorskip("ibis", reason="Ibis is not installed: muhat[ibis]")
# Ibis itself asks pandas and others for what they are about to leave out.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

ROWS = 300
AGES = (np.arange(ROWS) % 97).astype(float)
BOX = BoxLattice.around([0], [100])
MADE = f"""
    CREATE TABLE people AS SELECT CAST(k % 97 AS DOUBLE PRECISION) AS age, CASE k % 3 WHEN 0
    THEN 'f' ELSE 'm' END AS sex FROM generate_series(0, {ROWS - 1}) AS n(k)
"""


@pytest.fixture
def people():
    con = ibis.duckdb.connect()
    con.con.execute(MADE)
    yield con.table("people")
    con.disconnect()


@pytest.fixture
def elsewhere():
    """A table of a backend that muhat does not speak to."""
    con = ibis.polars.connect()
    return con.create_table("people", polars.DataFrame({"age": AGES, "sex": ["f", "m"] * 150}))


def sums_of(table, columns=("age",), lattice=BOX):
    return exact_sums(open_source(table, list(columns), len(columns)), lattice)


def expected(values, lattice=BOX):
    return exact_sums(open_source(values), lattice)


def test_an_expression_of_duckdb_is_a_relation(people):
    young = people.filter(people.age < 30).mutate(twice=people.age * 2)
    source = open_source(young, ["age"], 1)
    assert isinstance(source, RelationSource)
    assert exact_sums(source, BOX) == expected(AGES[AGES < 30])
    assert sums_of(young, ["twice"]) == expected(2 * AGES[AGES < 30])
    ball = BallLattice.around([0.0, 0.0], 50.0)
    both = np.column_stack([AGES, 2 * AGES])[AGES < 30]
    assert sums_of(young, ["age", "twice"], ball) == expected(both, ball)


def test_a_release_is_near_the_truth(people, elsewhere):
    for table in (people, elsewhere):
        release = mh.mean(table, domain={"age": (0, 100)}, privacy=mh.ZCDP(rho=1e6))
        assert release.value[0] == pytest.approx(AGES.mean(), abs=0.1)
    groups = {"by": "sex", "groups": ["f", "m"]}
    found = mh.mean(
        people, columns=["age"], domain=mh.Box([0], [100]), privacy=mh.ZCDP(rho=1e6), **groups
    )
    assert found.value[0][0] == pytest.approx(AGES[::3].mean(), abs=0.1)


def test_what_duckdb_may_answer_otherwise_is_refused_as_ever(people):
    for table in (people.mutate(age=people.age + ibis.random()), people.limit(5)):
        with pytest.raises(InvalidInput, match="this relation has"):
            open_source(table, ["age"], 1)


def test_other_backends_are_read_through_arrow(elsewhere):
    source = open_source(elsewhere.filter(elsewhere.age < 30), ["age"], 1)
    assert isinstance(source, IbisSource)
    assert exact_sums(source, BOX) == expected(AGES[AGES < 30])
    assert source.rows() == (AGES < 30).sum()


def test_tables_in_memory_are_read_through_arrow():
    source = open_source(ibis.memtable({"age": AGES[:7]}), ["age"], 1)
    assert isinstance(source, IbisSource)
    assert source.columns == ("age",)
    assert source.rows() == 7
    assert exact_sums(source, BOX) == expected(AGES[:7])


@pytest.fixture
def sqlite():
    backend = ibis.sqlite.connect()
    backend.con.execute("CREATE TABLE people (age REAL, sex TEXT)")
    backend.con.executemany("INSERT INTO people VALUES (?, ?)", [(age, "f") for age in AGES])
    yield backend
    backend.disconnect()


def test_libraries_of_this_process_are_read(sqlite, monkeypatch):
    monkeypatch.setattr(IbisSource, "_asking", None)
    people = sqlite.table("people")
    assert sums_of(people.filter(people.age < 30)) == expected(AGES[AGES < 30])
    assert open_source(people, ["age"], 1).rows() == ROWS


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT random() AS age FROM people", "rand"),
        ("SELECT age FROM people LIMIT 3", "a limit"),
        ("SELECT age, CURRENT_TIMESTAMP AS t FROM people", "current_timestamp"),
        ("SELECT max(age) AS age, group_concat(sex) AS sex FROM people", "group_concat"),
        ("SELECT age, typeof(sex) AS kind FROM people", "typeof"),
    ],
)
def test_views_are_looked_at_as_the_catalogue_has_them(sqlite, query, reason):
    sqlite.con.execute(f"CREATE VIEW drawn AS {query}")
    sqlite.con.execute("CREATE VIEW outer_view AS SELECT age FROM drawn WHERE age > 3")
    for name in ("drawn", "outer_view"):
        with pytest.raises(InvalidInput, match=f"expression has a view, '{name}', .*{reason}"):
            open_source(sqlite.table(name), ["age"], 1)


def test_views_that_are_fixed_are_taken(sqlite):
    sqlite.con.execute("CREATE VIEW old AS SELECT abs(age) AS age FROM people WHERE age >= 30")
    assert sums_of(sqlite.table("old")) == expected(AGES[AGES >= 30])


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda t: t.mutate(age=t.age + ibis.random()), "RandomScalar"),
        (lambda t: t.limit(5), "Limit"),
        (lambda t: t.order_by("age").limit(5), "Limit"),
        (lambda t: t.sample(0.5), "Sample"),
        (lambda t: t.group_by("sex").agg(age=t.age.first()), "First"),
        (lambda t: t.group_by("sex").agg(age=t.age.argmax(t.sex)), "ArgMax"),
        (lambda t: t.mutate(k=ibis.row_number().over(order_by=t.sex)), "RowNumber|WindowFunction"),
        (lambda t: t.mutate(age=t.age.cumsum(order_by=t.sex)), "WindowFunction"),
        (lambda t: t.mutate(now=ibis.now()), "TimestampNow"),
    ],
)
def test_expressions_that_may_have_other_rows_are_refused(elsewhere, made, reason):
    with pytest.raises(InvalidInput, match=f"this expression has ({reason})"):
        open_source(made(elsewhere), ["age"], 1)


def test_text_of_sql_is_not_looked_at(elsewhere):
    text = elsewhere.alias("somebody").sql("SELECT age FROM somebody")
    with pytest.raises(InvalidInput, match="this expression has text of SQL"):
        open_source(text, ["age"], 1)


def test_expressions_that_are_fixed_are_taken(elsewhere):
    by_sex = elsewhere.group_by("sex").agg(age=elsewhere.age.max())
    assert sums_of(by_sex) == expected(np.array([AGES[::2].max(), AGES[1::2].max()]))
    ranked = elsewhere.mutate(k=ibis.rank().over(order_by=elsewhere.sex))
    assert open_source(ranked, ["age"], 1).columns == ("age",)


def test_what_is_no_table_of_one_backend_is_refused(people):
    with pytest.raises(InvalidInput, match="must be a numpy array"):
        open_source(people.age.sum(), None, 1)
    with pytest.raises(InvalidInput, match=r"Ibis finds no one backend|refuses the query"):
        open_source(ibis.table({"age": "float64"}, name="nowhere"), ["age"], 1)


@pytest.mark.slow
@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed: pip's pgserver")
def test_expressions_of_postgresql_are_added_up_there():
    psycopg = pytest.importorskip("psycopg")
    from muhat.data.engine import Accumulator
    from muhat.data.postgres import WORDS, PostgresSource
    from muhat.data.sql import queries_of

    with running(programs()) as conninfo:
        with psycopg.connect(conninfo) as con:
            con.execute(MADE)
            con.execute("CREATE VIEW drawn AS SELECT age + random() AS age FROM people")
        backend = ibis.postgres.from_connection(psycopg.connect(conninfo, autocommit=True))
        people = backend.table("people")
        young = people.filter(people.age < 30).mutate(twice=people.age * 2)
        source = open_source(young, ["twice"], 1)
        assert isinstance(source, PostgresSource)
        assert queries_of(Accumulator(BOX), source._sql, WORDS) is not None
        assert exact_sums(source, BOX) == expected(2 * AGES[AGES < 30])
        for table, reason in (
            (backend.table("drawn"), "this table has random"),
            (people.limit(3), "this expression has Limit"),
        ):
            with pytest.raises(InvalidInput, match=reason):
                open_source(table, ["age"], 1)
        backend.disconnect()
