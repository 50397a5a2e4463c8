"""Options for Spark, as far as they go without one."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from muhat.cli import main
from muhat.cli.spark import is_path

PROMISE = ("--bounds", "x=0:1", "--rho", "1")


def complaint(*arguments):
    result = CliRunner().invoke(main, ["mean", "t.parquet", *arguments, *PROMISE])
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize("option", ["--master", "--format", "--materialize", "--conf"])
def test_options_of_spark_need_its_engine(option):
    assert f"{option} is for Spark: add --engine spark." in complaint(option, "a=b")


def test_spark_needs_a_master_and_settings_that_are_settings():
    assert "needs a --master" in complaint("--engine", "spark")
    spark = ("--engine", "spark", "--master", "local[1]")
    assert "--conf must read KEY=VALUE; got 'x'" in complaint(*spark, "--conf", "x")


def test_a_machine_without_pyspark_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    assert "pip install 'muhat[spark]'" in complaint("--engine", "spark", "--master", "local[1]")
    result = CliRunner().invoke(main, ["demo", "--engine", "spark"])
    assert result.exit_code == 2
    assert "pip install 'muhat[spark]'" in result.stderr


def test_paths_are_told_from_names_of_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for path in ("a/b", "s3://bucket/table", "x.parquet", "folder"):
        assert is_path(path)
    for name in ("people", "sales.people", "delta.`/sales/people`"):
        assert not is_path(name)
