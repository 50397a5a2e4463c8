"""`muhat publish`, `muhat plan SPEC`, and `--by` for means, sums, counts and variances."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import muhat as mh
from muhat.cli import main

SPECIFICATION = """
title = "Pay"
[privacy]
rho = 5.0
[data]
n = "secret"
[schema.columns]
pay = "0:100"
age = "16:90"
region = ["north", "south"]
sex = ["f", "m"]
[[statistic]]
kind = "count"
by = ["region", "sex"]
[[statistic]]
kind = "mean"
column = "pay"
by = "region"
[[statistic]]
kind = "quantile"
column = "pay"
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "pay", "age", "region", "sex"])
        for row in range(600):
            region, sex = rng.choice(["north", "south"]), rng.choice(["f", "m"])
            writer.writerow([row // 2, round(rng.uniform(20, 60), 2), row % 60 + 18, region, sex])
    return path


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    path = tmp_path / "release.toml"
    path.write_text(SPECIFICATION)
    return path


def test_a_specification_is_carried_out_and_written_to_a_folder(
    people: Path, specification: Path, tmp_path: Path
) -> None:
    ledger, folder = tmp_path / "b.db", tmp_path / "out"
    mh.Ledger.create(ledger, budget=mh.ZCDP(6.0), neighbors="add-remove")
    result = run("publish", specification, people, "--ledger", ledger, "--out", folder)
    assert result.exit_code == 0, result.output
    assert "mean pay by region" in result.output
    release = mh.Release.from_json((folder / "release.json").read_text())
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>Pay</h1>" in report
    assert "kind = &quot;quantile&quot;" in report
    assert release.ledger_head["hash"] in report
    assert [name for name, _ in release] == [
        "count by region and sex",
        "mean pay by region",
        "quantile pay",
    ]
    table = pq.read_table(folder / "tables" / "mean-pay-by-region.parquet").to_pydict()
    assert table["region"] == ["north", "south"]
    assert table["value"] == pytest.approx(release["mean pay by region"].value)
    with (folder / "tables" / "mean-pay-by-region.csv").open() as file:
        assert [row["region"] for row in csv.DictReader(file)] == ["north", "south"]
    assert (folder / "specification.toml").read_text() == SPECIFICATION
    assert "mean pay by region" in (folder / "report.html").read_text()
    (entry,) = mh.Ledger.open(ledger).entries()
    assert entry.plan_digest == release.plan_digest
    assert entry.specification is not None
    again = run("publish", specification, people, "--ledger", ledger, "--out", folder)
    assert again.exit_code == 2
    assert "has files in it" in again.output
    assert len(mh.Ledger.open(ledger).entries()) == 1


def test_a_plan_and_a_dry_run_show_the_same_and_spend_nothing(
    people: Path, specification: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "b.db"
    mh.Ledger.create(ledger, budget=mh.ZCDP(5.0), neighbors="add-remove")
    planned = run("plan", specification)
    dry = run("publish", specification, people, "--ledger", ledger, "--dry-run")
    assert planned.exit_code == dry.exit_code == 0
    assert planned.output == dry.output
    assert "3 statistics for one promise" in planned.output
    assert not mh.Ledger.open(ledger).entries()
    told = json.loads(run("plan", specification, "--json").output)
    assert [each["name"] for each in told["statistics"]][1] == "mean pay by region"


def test_a_mistake_in_the_file_is_said_with_its_line(people: Path, tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SPECIFICATION.replace('column = "pay"\nby', 'colum = "pay"\nby'))
    result = run("publish", path, people)
    assert result.exit_code == 2
    assert "line" in result.output
    assert "column" in result.output


@pytest.mark.parametrize("command", ["mean", "sum", "variance"])
def test_statistics_of_groups_from_the_command_line(command: str, people: Path) -> None:
    groups = ["--by", "region,sex", "--categories", "region=north,south", "--categories", "sex=f,m"]
    result = run(command, people, "--bounds", "pay=0:100", *groups, "--rho", "1", "--secret-n")
    assert result.exit_code == 0, result.output
    assert f"{command} pay by region and sex" in result.output
    assert sum(line.startswith(("north", "south")) for line in result.output.splitlines()) == 4


def test_quantiles_of_groups_from_the_command_line(people: Path) -> None:
    groups = ["--by", "sex,age", "--categories", "sex=f,m", "--bins", "age=16,40,90"]
    ends = ["--lower", "0", "--upper", "100"]
    result = run("quantile", people, "--columns", "pay", *ends, *groups, "--rho", "20", "--json")
    assert result.exit_code == 0, result.output
    assert np.array(json.loads(result.stdout)["value"]).size == 4


def test_counts_of_groups_and_of_people(people: Path) -> None:
    by = ["--by", "age", "--bins", "age=16,40,90"]
    result = run("count", people, *by, "--rho", "50", "--json")
    assert result.exit_code == 0, result.output
    assert sum(json.loads(result.stdout)["value"]) == pytest.approx(600, abs=5)
    unit = ["--unit", "person", "--max-rows", "1", "--secret-n"]
    result = run("count", people, *by, *unit, "--rho", "50", "--json")
    assert sum(json.loads(result.stdout)["value"]) == pytest.approx(300, abs=5)


def test_a_count_of_all_rows_hides_their_number(people: Path, tmp_path: Path) -> None:
    told = json.loads(run("count", people, "--rho", "0.001", "--json").stdout)
    assert told["n"] is None
    assert told["standard_error"][0] > 10
    assert "--n declares public" in run("count", people, "--rho", "1", "--n", "600").output
    for relation, code in (("substitute", 2), ("add-remove", 0)):
        ledger = tmp_path / f"{relation}.db"
        assert run("ledger", "create", ledger, "--rho", "1", "--neighbors", relation).exit_code == 0
        counted = run("count", people, "--rho", "1", "--ledger", ledger)
        assert counted.exit_code == code
        assert ("replaced records" in counted.output) is (code == 2)


@pytest.mark.parametrize("command", ["count", "mean", "sum", "variance"])
def test_statistics_of_people_in_the_place_of_rows(command: str, people: Path) -> None:
    bounds = [] if command == "count" else ["--bounds", "pay=0:100"]
    base = [command, people, *bounds, "--per", "unit", "--rho", "50", "--secret-n", "--json"]
    assert "--per unit needs --unit COLUMN" in run(*base).output
    result = run(*base, "--unit", "person", "--max-rows", "3")
    assert result.exit_code == 0, result.output
    fields = json.loads(result.stdout)
    assert "per unit" in fields["name"]
    if command == "count":
        assert fields["value"][0] == pytest.approx(300, abs=5)


def test_what_does_not_go_with_groups_is_refused(people: Path) -> None:
    base: list[Any] = ["mean", people, "--bounds", "pay=0:100", "--rho", "1", "--by", "sex"]
    assert "--categories sex=A,B" in run(*base).output
    listed = [*base, "--categories", "sex=f,m"]
    for more in (["--p", "4"], ["--project", "0:100"], ["--ball", "3"], ["--missing", "center"]):
        result = run(*listed, *more)
        assert result.exit_code == 2
        assert more[0] in result.output


def test_a_dry_run_of_a_mean_shows_its_plan(people: Path) -> None:
    base = ["mean", people, "--bounds", "pay=0:100", "--rho", "1", "--dry-run"]
    assert "private mean" in run(*base, "--n", "600").output
    assert "mean pay by sex" in run(*base, "--by", "sex", "--categories", "sex=f,m").output


def test_groups_and_rows_are_learnt_from_the_command_line(people: Path) -> None:
    promise = ["--epsilon", "20", "--delta", "1e-4", "--secret-n"]
    learnt = ["--by", "region", "--categories", "region=learn"]
    rows = ["--unit", "person", "--max-rows", "learn"]
    result = run("count", people, *learnt, *rows, *promise)
    assert result.exit_code == 0, result.output
    assert sum(line.startswith(("north", "south")) for line in result.output.splitlines()) == 2
    assert "was learnt privately" in result.output
    refused = run("mean", people, "--bounds", "pay=0:100", *learnt, "--rho", "1")
    assert refused.exit_code == 4
    assert "takes a delta" in refused.output
    assert run("count", people, *rows[:3], "many", *promise).exit_code == 2
    bounds = ["--columns", "pay", "--lower", "0", "--upper", "100"]
    elsewhere = run("quantile", people, *bounds, *learnt, *promise)
    assert elsewhere.exit_code == 2
    assert "muhat publish" in elsewhere.output


def test_a_specification_may_leave_groups_and_rows_to_be_learnt(
    people: Path, tmp_path: Path
) -> None:
    unknown = SPECIFICATION.replace('["north", "south"]', '"learn"')
    unknown = unknown.replace("rho = 5.0", "epsilon = 20.0\ndelta = 1e-4")
    rows = '[schema]\nunit = "person"\nmax_rows = "learn"\n'
    unknown = unknown.replace("[schema.columns]", f"{rows}[schema.columns]")
    path, folder = tmp_path / "release.toml", tmp_path / "out"
    path.write_text(unknown)
    assert "learnt" in run("plan", path).output
    result = run("publish", path, people, "--out", folder)
    assert result.exit_code == 0, result.output
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "The groups of region were learnt privately" in report


def test_who_pays_and_what_for_is_in_the_file_unless_a_flag_says_it(
    people: Path, tmp_path: Path
) -> None:
    path, account = tmp_path / "said.toml", tmp_path / "budget.db"
    path.write_text('team = "health"\nnote = "yearly"\n' + SPECIFICATION.lstrip())
    ledger = mh.Ledger.create(account, budget=mh.ZCDP(20.0), neighbors="add-remove")
    for flags in ([], ["--note", "again"]):
        assert run("publish", path, people, "--ledger", account, *flags).exit_code == 0
    told = [(entry.team, entry.purpose) for entry in ledger.entries()]
    assert told == [("health", "yearly"), ("health", "again")]
