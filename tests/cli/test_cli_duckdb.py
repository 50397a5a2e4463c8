"""`--engine duckdb`: Parquet files and tables of a database, and what is refused in which words."""

from __future__ import annotations

import sys

import duckdb
import pytest
from click.testing import CliRunner

from muhat.cli import main
from muhat.data.duckdb import DuckDBData, open_relation
from muhat.data.sql import LOG
from muhat.errors import DataChanged

PROMISE = ["--rho", "1000000", "--json"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = "SELECT range % 90 AS age, 's' || range % 2 AS sex FROM range(900)"
    with duckdb.connect("base.duckdb") as con:
        con.execute("CREATE SCHEMA sales")
        con.execute(f"CREATE TABLE sales.people AS {people}")
        con.execute("CREATE VIEW drawn AS SELECT age + random() AS age FROM sales.people")
        con.sql(people).write_parquet("people.parquet")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [*arguments])


@pytest.mark.parametrize(
    "where",
    [["people.parquet"], ["peop*.parquet"], ["sales.people", "--database", "base.duckdb"]],
)
def test_means_of_files_and_tables_are_released(folder, where):
    found = run("mean", *where, "--engine", "duckdb", "--bounds", "age=0:90", *PROMISE)
    assert found.exit_code == 0, found.output
    assert '"value": [44.5' in found.output or '"value": [\n' in found.output


def test_quantiles_and_groups_are_released(folder):
    where = ["sales.people", "--database", "base.duckdb", "--engine", "duckdb"]
    groups = ["--bounds", "age=0:90", "--by", "sex", "--categories", "sex=s0,s1"]
    for command in (
        ["quantile", *where, "--columns", "age", "--lower", "0", "--upper", "90", *PROMISE],
        ["mean", *where, *groups, *PROMISE],
    ):
        found = run(*command)
        assert found.exit_code == 0, found.output


@pytest.mark.parametrize(
    ("asked", "times"),
    [(["--bounds", "age=0:90"], 0), (["--columns", "age", "--magnitude", "1000"], 1)],
)
def test_rows_that_many_threads_do_not_add_up_are_warned_of_once(folder, monkeypatch, asked, times):
    monkeypatch.setattr("muhat.data.duckdb.FEW_THREADS", 0)
    found = run("mean", "people.parquet", "--engine", "duckdb", *asked, *PROMISE)
    assert found.exit_code == 0, found.output
    assert found.stderr.count("what is asked has no SQL") == times
    assert not LOG.handlers


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["people.csv"], "--engine duckdb reads Parquet files"),
        (["nothing.parquet"], "DuckDB cannot open 'nothing.parquet'"),
        (["people.parquet", "./people.parquet"], "a file is named twice"),
        (["-"], "leave --engine duckdb out"),
        (["people", "--database", "nothing.duckdb"], "is no DuckDB database"),
        (["people", "--database", "people.parquet"], "is no DuckDB database"),
        (["nobody", "--database", "base.duckdb"], "DuckDB cannot open 'nobody'"),
        (['x"; DROP TABLE people', "--database", "base.duckdb"], "DuckDB cannot open"),
        (["drawn", "--database", "base.duckdb"], "a view, 'drawn', with random()"),
        (["people.parquet", "--master", "local[2]"], "--master is for Spark"),
        (["people.parquet", "--delimiter", ";"], "--delimiter is for CSV files"),
    ],
)
def test_what_cannot_be_opened_is_refused(folder, arguments, words):
    found = run("mean", *arguments, "--engine", "duckdb", "--bounds", "age=0:90", "--rho", "1")
    assert found.exit_code == 2
    assert words in found.output


def test_a_database_is_not_for_files(folder):
    found = run("mean", "a.csv", "--database", "base.duckdb", "--bounds", "age=0:90", "--rho", "1")
    assert found.exit_code == 2
    assert "--database is for --engine duckdb or postgres" in found.output


def test_a_file_that_changes_between_passes_is_found_out(folder):
    with duckdb.connect() as con:
        path = folder / "people.parquet"
        data = DuckDBData(con.read_parquet(str(path)), (path,))
        source = open_relation(data, ("age",), 1, ())
        source.check_unchanged()
        con.sql("SELECT 1 AS age, 's' AS sex").write_parquet(str(path))
        with pytest.raises(DataChanged):
            source.check_unchanged()


def test_postgres_takes_one_table_and_no_options_of_others():
    arguments = ["--engine", "postgres", "--bounds", "age=0:90", "--rho", "1"]
    assert "reads one table" in run("mean", "a", "b", *arguments).output
    assert "--delimiter is for CSV" in run("mean", "a", "--delimiter", ";", *arguments).output


def test_a_machine_without_psycopg_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    arguments = ["--engine", "postgres", "--bounds", "age=0:90", "--rho", "1"]
    assert "pip install 'muhat[postgres]'" in run("mean", "people", *arguments).output


def test_a_machine_without_duckdb_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    arguments = ["--engine", "duckdb", "--bounds", "age=0:90", "--rho", "1"]
    assert "pip install 'muhat[duckdb]'" in run("mean", "people.parquet", *arguments).output
