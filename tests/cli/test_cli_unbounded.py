"""`muhat mean --magnitude` and what goes with it: means that nobody has bounded."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main
from muhat.release.vector_answer import VectorAnswer

RHO = ("--rho", "0.5")
LOOSE = ("--columns", "a,b", "--magnitude", "1e6")


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(3).normal(size=(1000, 2)) * [1, 2] + [5, -3]
    lines = [f"{a!r},{b!r},word{i}" for i, (a, b) in enumerate(values.tolist())]
    (tmp_path / "d.csv").write_text("a,b,text\n" + "\n".join(lines) + "\n")
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    (tmp_path / "nan.csv").write_text("a,b\n" + "nan,\n" * 400)
    run("ledger", "create", "budget.db", "--rho", "1", "--neighbors", "substitute")
    run("ledger", "create", "little.db", "--rho", "0.1", "--neighbors", "substitute")
    return tmp_path


def test_a_mean_is_released_without_bounds(folder, documented_keys):
    result = run("mean", "d.csv", *LOOSE, *RHO, "--ledger", "budget.db", "--json")
    fields = json.loads(result.stdout)
    assert set(fields) >= documented_keys
    assert fields["certificate"] is None
    assert fields["mechanism"] == "recentring"
    assert (fields["n"], fields["columns"]) == (1000, ["a", "b"])
    assert fields["ledger_head"]["count"] == 1
    assert any("±1e+06" in line for line in fields["assumptions"])
    release = mh.Release.from_json(result.stdout)
    # The noise has a deviation below 0.05, the ball may cut a little off.
    assert np.allclose(release.value, [5, -3], atol=0.6)
    assert np.all(release.interval()[0] < release.value)


def test_the_terminal_says_what_was_clipped(folder):
    result = run("mean", "d.csv", *LOOSE, *RHO)
    assert re.search(r"Clipped to a ball of radius [\d.]+ that was found privately", result.stdout)
    assert result.stderr == "Not written to any account; use --ledger to keep one.\n"


def test_unlike_columns_have_a_magnitude_each(folder):
    named = ("--magnitude", "b=2e6", "--magnitude", "a=1000", "--missing", "none")
    fields = json.loads(run("mean", "d.csv", *named, *RHO, "--json").stdout)
    assert fields["columns"] == ["b", "a"]
    ratio = fields["standard_error"][0] / fields["standard_error"][1]
    assert ratio == pytest.approx(2000)
    listed = run("mean", "d.csv", "--columns", "a,b", *named, *RHO, "--json")
    assert json.loads(listed.stdout)["columns"] == ["a", "b"]


def test_a_plan_is_made_for_a_number_of_columns(folder):
    plan = ("plan", "--magnitude", "1e6", "--n", "1000", *RHO)
    planned = json.loads(run(*plan, "--dim", "2", "--json").stdout)
    released = json.loads(run("mean", "d.csv", *LOOSE, *RHO, "--json").stdout)
    assert planned["digest"] == released["plan_digest"]
    assert planned["least_n"] < 1000
    assert len(planned["errors"]) > 3
    text = run(*plan, "--columns", "a,b", "--plot", "plan.png")
    assert "if 99 % of the records lie within" in text.stdout
    assert (folder / "plan.png").stat().st_size > 5_000
    assert "domain" in run("plan", "--ball", "1", "--dim", "3", "--n", "9", *RHO).stdout


def test_a_mechanism_is_asked_for_by_name(folder):
    fields = run("mean", "d.csv", *LOOSE, *RHO, "--mechanism", "recentring", "--json").stdout
    assert json.loads(fields)["mechanism"] == "recentring"
    plain = ("d.csv", "--bounds", "a=0:9", "--epsilon", "1", "--mechanism", "plain-laplace")
    refused = run("mean", *plain, code=2).stderr
    assert "--missing none" in refused
    fields = run("mean", *plain, "--missing", "none", "--json").stdout
    assert json.loads(fields)["mechanism"] == "plain-laplace"


def test_too_few_rows_are_used_only_if_one_insists(folder):
    refused = run("mean", "one.csv", *LOOSE, *RHO, code=2)
    assert "--insist" in refused.stderr
    insisted = ("mean", "one.csv", *LOOSE, *RHO, "--insist")
    fields = json.loads(run(*insisted, "--missing", "none", "--json").stdout)
    assert np.isfinite(fields["value"]).all()
    # How many are recorded is not known: one cannot be told from none.
    assert "The reason: the noisy number of recorded values" in run(*insisted).stdout


def test_missing_values_alone_give_no_value_and_say_so(folder):
    fields = json.loads(run("mean", "nan.csv", *LOOSE, *RHO, "--json").stdout)
    assert fields["value"] is None
    assert "cannot be told from 0" in fields["failure"]
    for rule in ("center", "none"):
        text = run("mean", "nan.csv", *LOOSE, *RHO, "--missing", rule, "--json").stdout
        assert np.isfinite(json.loads(text)["value"]).all()


def test_the_mean_of_a_column_is_that_of_its_recorded_values(folder):
    values = [f"{value}" if i % 3 else "n/a" for i, value in enumerate(np.linspace(70, 71, 3000))]
    (folder / "gaps.csv").write_text("pay\n" + "\n".join(values) + "\n")
    command = ("mean", "gaps.csv", "--columns", "pay", "--magnitude", "1e6", *RHO)
    release = mh.Release.from_json(run(*command, "--json").stdout)
    assert float(release) == pytest.approx(70.5, abs=0.1)
    assert release.recorded.value[0] == pytest.approx(2000, abs=20)
    text = run(*command).stdout
    assert "Missing values are left out" in text
    assert "recorded ± s.e." in text.splitlines()[2]
    moment = run(*command, "--moment", "2,1").stdout
    assert "recorded ± s.e." in moment.splitlines()[2]


def test_a_value_is_moved_to_where_it_is_known_to_lie(folder):
    def values(*options):
        text = run("mean", "d.csv", *LOOSE, "--rho", "5", *options, "--json").stdout
        return json.loads(text)

    fields = values("--project", "0:inf")
    assert fields["value"][1] == 0
    assert fields["unprojected"][1] < 0
    assert "a ≥ 0, b ≥ 0" in fields["assumptions"][-1]
    assert values("--project", "0:inf", "--project", "b=-1:1")["value"][1] == -1
    assert values("--project", "a=-3:-1")["value"][0] == -1
    text = run("mean", "d.csv", *LOOSE, *RHO, "--project", "0:inf").stdout
    assert "before the projection" in text
    free = ("mean", "d.csv", "--ball", "9@0,0", "--project", "0:1")
    assert "--columns" not in run(*free, *RHO, "--columns", "a,b").stderr


REFUSALS = {
    "unknown column": (("--columns", "aa", "--magnitude", "1"), "Did you mean 'a'"),
    "no columns": (("--magnitude", "1e6"), "--columns"),
    "magnitude zero": ((*LOOSE[:3], "0"), "greater than 0"),
    "magnitude negative": ((*LOOSE[:3], "-5"), "greater than 0"),
    "magnitude NaN": ((*LOOSE[:3], "nan"), "finite"),
    "magnitude infinite": ((*LOOSE[:3], "inf"), "finite"),
    "magnitude huge": ((*LOOSE[:3], "1e308"), "1e100"),
    "magnitude beyond floats": ((*LOOSE[:3], "1e400"), "finite"),
    "magnitude text": ((*LOOSE[:3], "much"), "not a number"),
    "two magnitudes": ((*LOOSE, "--magnitude", "5"), "once for each column"),
    "a column twice": (("--magnitude", "a=1", "--magnitude", "a=2"), "once for each column"),
    "magnitude of no column": (("--magnitude", "=5"), "once for each column"),
    "magnitude of others": ((*LOOSE[:2], "--magnitude", "a=5"), "same columns; 'b'"),
    "a magnitude of zero": (("--magnitude", "a=0"), "magnitude of a must be greater"),
    "bounds too": ((*LOOSE, "--bounds", "a=0:1", "--bounds", "b=0:1"), "in one way"),
    "nothing": ((), "muhat mean FILE --columns A,B --magnitude 1e6 --rho 0.5"),
    "columns alone": (("--columns", "a,b"), "muhat mean FILE --columns a,b --magnitude 1e6"),
    "another n": ((*LOOSE, "--n", "999"), "another number of rows"),
    "n too small": ((*LOOSE, "--n", "5"), "too small"),
    "secret n": ((*LOOSE, "--secret-n"), "public"),
    "dropped rows of a paper": (
        (*LOOSE, "--missing", "drop", "--mechanism", "clipped"),
        "use --missing center or --missing none",
    ),
    "unknown mechanism": ((*LOOSE, "--mechanism", "recentering"), "Did you mean 'recentring'"),
    "insist on bounds": (("--bounds", "a=0:1", "--insist"), "--magnitude"),
    "scale": ((*LOOSE, "--scale", "2"), "LOW:HIGH"),
    "moment": ((*LOOSE, "--moment", "2"), "K,SIZE"),
    "bias without moment": ((*LOOSE, "--max-bias", "0.1"), "--moment 2,1"),
    "projection without colon": ((*LOOSE, "--project", "0"), "LOW:HIGH"),
    "projection of no column": ((*LOOSE, "--project", "=0:1"), "LOW:HIGH"),
    "projection to nothing": ((*LOOSE, "--project", "1:0"), "below its upper end"),
    "projection to NaN": ((*LOOSE, "--project", "a=nan:0"), "below its upper end"),
    "projection of another": ((*LOOSE, "--project", "c=0:1"), "not one of the columns"),
    "projection twice": ((*LOOSE, "--project", "0:1", "--project", "0:2"), "twice"),
    "projection without names": (("--ball", "9@0,0", "--project", "a=0:1"), "needs --columns"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_sentence_and_costs_nothing(folder, case):
    arguments, expected = REFUSALS[case]
    before = (folder / "budget.db").read_bytes()
    result = run("mean", "d.csv", *arguments, *RHO, "--ledger", "budget.db", code=2)
    assert result.stdout == ""
    (error,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert expected in error
    assert "mh." not in error
    assert len(error) < 500
    assert (folder / "budget.db").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--magnitude", "1e6", "--n", "1000"), "--dim"),
        ((*LOOSE, "--dim", "3", "--n", "1000"), "--dim is 3, but 2 columns are named"),
        (("--magnitude", "1e6", "--dim", "0", "--n", "1000"), "at least 1"),
        (("--bounds", "a=0:1", "--dim", "2", "--n", "1000"), "--dim is 2, but 1 columns"),
        ((*LOOSE,), "--n N"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(folder, arguments, expected):
    assert expected in run("plan", *arguments, *RHO, code=2).stderr


def test_an_account_with_too_little_is_not_charged(folder):
    result = run("mean", "d.csv", *LOOSE, *RHO, "--ledger", "little.db", code=3)
    assert "nothing was spent" in result.stderr


def test_a_release_without_a_value_is_shown_as_it_is(folder, monkeypatch):
    def nothing(*_, **options):
        answer = VectorAnswer(
            statistic="mean",
            value=np.full(2, np.nan),
            columns=("a", "b"),
            mechanism="test",
            n=1000,
            contributions=1,
            domain=None,
            noise=None,
            assumptions=(),
            failure="the records have no common place",
        )
        return mh.Release(
            answers=(answer,),
            privacy=options["privacy"],
            neighbors=mh.Neighbors.SUBSTITUTE,
            plan_digest="",
        )

    monkeypatch.setattr("muhat.planning.shortcuts.mean", nothing)
    result = run("mean", "d.csv", *LOOSE, *RHO, "--project", "0:inf", "--json")
    assert json.loads(result.stdout)["value"] is None
    assert "the promise is spent" in run("mean", "d.csv", *LOOSE, *RHO).stdout


def test_symmetric_records_need_no_magnitude(folder):
    promise = ("--epsilon", "16", "--delta", "1e-6", "--symmetric", "--moment", "2,2")
    fields = json.loads(run("mean", "d.csv", "--columns", "a,b", *promise, "--json").stdout)
    assert fields["mechanism"] == "symmetric"
    # The noise has a deviation of about 0.1.
    assert np.allclose(fields["value"], [5, -3], atol=1)
    told = run("plan", "--dim", "2", "--n", "1000", *promise).stdout
    assert "Reals(dim=2, magnitude=None)" in told
    refused = run("mean", "d.csv", *promise, code=2)
    assert "--symmetric needs --columns A,B,…" in refused.output
    both = run("mean", "d.csv", "--bounds", "a=0:9", *promise, code=2)
    assert "--max-bias, --moment and --symmetric are for --magnitude" in both.output


UNLIKE = ("--magnitude", "a=1e4", "--magnitude", "b=1e6", "--rho", "5")


def test_moments_and_biases_are_said_of_each_column(folder):
    moments = ("--moment", "b=2,20", "--moment", "a=2,1")
    biases = ("--max-bias", "a=0.3", "--max-bias", "b=5")
    told = run("mean", "d.csv", *UNLIKE, *moments, *biases, "--json").stdout
    release = mh.Release.from_json(told)
    assert release.moment.scales.tolist() == [1.0, 20.0]
    assert release.bias <= 5
    planned = json.loads(run("plan", *UNLIKE, "--n", "1000", *moments, *biases, "--json").stdout)
    assert planned["moment"] == {"order": 2.0, "scales": [1.0, 20.0]}


def test_errors_count_by_what_is_assumed_of_a_column_and_not_by_its_magnitude():
    def planned(*magnitudes):
        moments = ("--moment", "a=2,500", "--moment", "b=2,4")
        told = run("plan", *magnitudes, *moments, "--n", "20000", "--rho", "0.5", "--json").stdout
        return json.loads(told)["rmse"]

    near = planned("--magnitude", "a=1e6", "--magnitude", "b=1e6")
    far = planned("--magnitude", "a=1e6", "--magnitude", "b=100")
    assert far == pytest.approx(near, rel=1e-9)
    assert near < 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--moment", "2,15"), "--moment a=2,SIZE --moment b=2,SIZE"),
        (
            ("--moment", "a=2,1", "--moment", "b=2,9", "--max-bias", "0.1"),
            "--max-bias a=B --max-bias b=B",
        ),
        (("--moment", "a=2,1"), "once for each of --columns"),
        (("--moment", "a=2,1", "--moment", "a=2,1"), "once for each of --columns"),
        (("--moment", "a=2,1", "--moment", "b=3,1"), "the same K"),
        (("--moment", "a=2,1", "--moment", "b=x"), "must read K,SIZE"),
    ],
)
def test_columns_of_unlike_units_need_one_each(folder, arguments, message):
    assert message in run("mean", "d.csv", *UNLIKE, *arguments, code=2).output
