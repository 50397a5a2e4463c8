"""`muhat mean --engine spark` and `muhat demo --engine spark`."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from standalone import Cluster

import muhat as mh
from muhat.cli import main
from muhat.demo.cluster import environment

BOUNDS = ("--bounds", "x=0:1", "--rho", "1")


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"x": [i / 1000 for i in range(1000)]}), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def test_paths_formats_and_tables_are_read(spark: Any, cluster: Cluster, table: Path) -> None:
    there = ("--engine", "spark", "--master", cluster.url, *BOUNDS, "--json")
    spark.read.parquet(str(table)).write.orc(str(table.parent / "orc"))
    spark.read.parquet(str(table)).write.saveAsTable("people")
    try:
        for arguments in (
            (table,),
            (table.parent / "orc", "--format", "orc"),
            ("people",),
            ("default.people", "--materialize", table.parent / "rows"),
            (f"parquet.`{table}`",),
        ):
            release = json.loads(run("mean", *arguments, *there).stdout)
            assert release["n"] == 1000
            assert abs(release["value"][0] - 0.4995) < 0.01
    finally:
        spark.sql("DROP TABLE people")


def test_quantiles_and_queries_are_read_there_too(
    spark: Any, cluster: Cluster, table: Path
) -> None:
    there = ("--engine", "spark", "--master", cluster.url, "--rho", "50", "--json")
    found = run("quantile", table, "--lower", 0, "--upper", 1, *there).stdout
    assert abs(np.ravel(json.loads(found)["value"])[0] - 0.5) < 0.02
    halves = (table, "--histogram", "--columns", "x")
    found = run("queries", *halves, "--bins", "x=0,0.5,1", *there).stdout
    assert np.allclose(json.loads(found)["value"], 500, atol=5)
    said = run("queries", *halves, "--public-categories", *there, code=2).stderr
    assert "on this machine" in said


HOSTILE = [
    "",
    " ",
    "\n",
    "\n\n,7,7",
    '"',
    '""',
    '","',
    '"\n"',
    "\\",
    '\\"',
    "a\\",
    "'",
    "#",
    "é",
    ";",
]


def test_a_csv_record_is_a_record_on_spark_too(
    spark: Any, cluster: Cluster, tmp_path: Path
) -> None:
    rows = [[place % 7, HOSTILE[place % 15], HOSTILE[place % 14]] for place in range(210)]
    path, semicolons = tmp_path / "x.csv", tmp_path / "y.csv"
    for target, delimiter in ((path, ","), (semicolons, ";")):
        with target.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(["x", "a", "b"])
            writer.writerows(rows)
            file.write(f"5{delimiter}too few\r\n")
            file.write(delimiter.join("6789") + "\r\n")
    there = ("--engine", "spark", "--master", cluster.url, "--rho", "10000", "--json")
    with path.open("ab") as file:
        file.write(b"word,1,2\r\n")
    for arguments, more in (
        ((path,), 1),
        ((path, "--format", "csv"), 1),
        ((path, "--materialize", tmp_path / "rows"), 1),
        ((semicolons, "--delimiter", ";"), 0),
    ):
        release = json.loads(run("mean", *arguments, *there, "--bounds", "x=0:6").stdout)
        assert release["n"] == 212 + more
        # Ragged records, and words, are missing.
        assert abs(release["value"][0] - 3) < 0.01
    counted = ("--histogram", "--columns", "a", "--categories", "a=é,#,x", *there)
    found = run("queries", path, *counted).stdout
    assert np.allclose(json.loads(found)["value"][:3], [14, 14, 0], atol=1)
    from muhat.data.spark_csv import spark_csv

    with pytest.raises(mh.InvalidInput, match="cannot open"):
        spark_csv(spark, str(tmp_path / "none.csv"))
    said = run("mean", tmp_path, "--delimiter", ";", *there, "--bounds", "x=0:6", code=2).stderr
    assert "--delimiter is for CSV files" in said
    said = run("mean", "-", *there, "--bounds", "x=0:6", code=2).stderr
    assert "standard input of this machine" in said


def test_what_is_wrong_is_said_in_a_sentence(spark: Any, cluster: Cluster, table: Path) -> None:
    there = ("--engine", "spark", "--master", cluster.url, *BOUNDS)
    assert "Spark cannot open 'nowhere'" in run("mean", "nowhere", *there, code=2).stderr
    assert "named twice" in run("mean", table, table, *there, code=2).stderr
    assert "KEY=VALUE" in run("mean", table, *there, "--conf", "x", code=2).stderr
    assert "needs a --master" in run("mean", table, *there[:2], *BOUNDS, code=2).stderr
    assert "add --engine spark" in run("mean", table, "--master", "x", *BOUNDS, code=2).stderr


def test_nothing_is_charged_if_spark_cannot_read(spark: Any, cluster: Cluster, table: Path) -> None:
    ledger = mh.Ledger.create(table.parent / "b.db", budget=mh.ZCDP(rho=5), neighbors="substitute")
    (table.parent / "broken.parquet").write_text("no table")
    account = (*BOUNDS, "--ledger", ledger.path)
    for arguments, words in (
        (("nowhere", "--master", cluster.url), "Spark cannot open 'nowhere'"),
        ((table.parent / "none.parquet", "--master", cluster.url), "Spark cannot open"),
        ((table.parent / "broken.parquet", "--master", cluster.url), "Spark cannot open"),
        ((table, "--format", "nosuch", "--master", cluster.url), "Spark cannot open"),
        ((table, "--materialize", "/dev/null", "--master", cluster.url), "could not be written"),
        ((table, "--master", "spark://127.0.0.1:1"), "nothing answers at --master"),
        ((table, "--master", "sc://127.0.0.1:1;token=secret"), "nothing answers at --master"),
    ):
        said = run("mean", *arguments, "--engine", "spark", *account, code=2)
        assert words in said.stderr
        assert len(said.stderr.strip().splitlines()) == 1
        assert said.stdout == ""
        assert "secret" not in said.stderr
    assert not list(ledger.entries())


@pytest.mark.parametrize(
    ("master", "java"), [("local[1]", "/nowhere"), ("nonsense", None)], ids=["no Java", "no master"]
)
def test_a_spark_that_does_not_start_is_said_in_a_sentence(
    master: str, java: str | None, table: Path
) -> None:
    ledger = mh.Ledger.create(table.parent / "b.db", budget=mh.ZCDP(rho=5), neighbors="substitute")
    command = [sys.executable, "-c", "from muhat.cli import main; main()", "mean", str(table)]
    command += ["--engine", "spark", "--master", master, *BOUNDS, "--ledger", str(ledger.path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment() | ({} if java is None else {"JAVA_HOME": java}),
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert f"Spark does not start with --master '{master}'" in done.stderr.splitlines()[-1]
    assert not list(ledger.entries())


def test_the_demo_starts_a_cluster_of_its_own() -> None:
    command = [sys.executable, "-c", "from muhat.cli import main; main()", "demo", "--json"]
    done = subprocess.run(
        [*command, "--engine", "spark"], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["n"] == 10_000
