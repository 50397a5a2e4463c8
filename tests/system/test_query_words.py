"""Queries and groups say no word of the data, and are paid for once, before anything is read."""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from hostile import (
    CANARY_NUMBER,
    CANARY_TEXT,
    Again,
    assert_no_canary,
    ledger_in,
    steady,
    without_hashes,
    words_of,
    write_parquet,
)

import muhat as mh
from muhat.cli import main
from muhat.ledger import Ledger

W = mh.workloads
RHO = mh.ZCDP(rho=1)
CATEGORIES = {"sex": ["f", "m"], "age": {"bins": [0, 18, 120]}}
ROWS = [
    {"sex": CANARY_TEXT, "age": CANARY_NUMBER, "x": CANARY_NUMBER},
    {"sex": "f", "age": 20.0, "x": CANARY_NUMBER},
    {"sex": "m", "age": CANARY_NUMBER, "x": 3.0},
] * 3
GROUPED = {"domain": {"x": (0, 1e7)}, "privacy": RHO, "by": "sex", "groups": ["f", "m"]}
SECRET = 41737
SPELLINGS = ("41737", "41,737", "41_737", "41 737", "41736", "41738")


def plan_of(**options):
    return mh.plan_queries(
        W.marginals((2, 2), order=[1, 2]), privacy=RHO, categories=CATEGORIES, **options
    )


@pytest.fixture
def files(tmp_path):
    """Sound and broken files, full of canaries."""
    table = pa.Table.from_pylist(ROWS)
    write_parquet(tmp_path / "d.parquet", table)
    whole = (tmp_path / "d.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "d.csv").write_text(pd.DataFrame(ROWS).to_csv(index=False))
    (tmp_path / "binary.csv").write_bytes(b"sex,age\n" + bytes(range(256)) * 3)
    (tmp_path / "garbage.parquet").write_bytes(CANARY_TEXT.encode() * 50)
    return tmp_path


@pytest.mark.parametrize("kind", ["d.csv", "d.parquet", "frame", "dict", "stream"])
def test_no_canary_is_in_anything_that_is_shown_or_kept(files, kind, monkeypatch, caplog, capfd):
    steady(monkeypatch)
    data = {
        "frame": pd.DataFrame(ROWS),
        "dict": {name: [row[name] for row in ROWS] for name in ROWS[0]},
        "stream": Again(pa.Table.from_pylist(ROWS)),
    }.get(kind, files / kind)
    ledger = ledger_in(files, "add-remove")
    plan = plan_of()
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        release = plan.release(data, ledger=ledger)
        means = mh.mean(data, ledger=ledger, **GROUPED)
    shown = [caplog.text, *capfd.readouterr(), *map(str, heard)]
    shown += [repr(plan), plan._repr_html_(), json.dumps(plan.to_dict()), repr(vars(plan))]
    for each in (release, means):
        shown += [repr(each), each._repr_html_(), each.to_json(), repr(each.table())]
    shown += [release.projected().to_json(), repr(vars(release)), repr(vars(means))]
    shown += [json.dumps(entry.to_dict()) for entry in ledger.entries()]
    shown.append(ledger.path.read_bytes())
    for text in shown:
        assert_no_canary(text)


BAD = {
    "unknown column": lambda plan, data, ledger: plan.release(
        data, columns=["sx", "age"], ledger=ledger
    ),
    "too few columns": lambda plan, data, ledger: plan.release(
        data, columns=["sex"], ledger=ledger
    ),
    "a number column as text": lambda plan, data, ledger: mh.plan_queries(
        W.identity(2), privacy=RHO, categories={"x": ["f", "m"]}
    ).release(data, ledger=ledger),
    "a group that is averaged": lambda plan, data, ledger: mh.mean(
        data, ledger=ledger, **{**GROUPED, "by": "x"}
    ),
    "an unknown group column": lambda plan, data, ledger: mh.mean(
        data, ledger=ledger, **{**GROUPED, "by": "sx"}
    ),
    "no groups": lambda plan, data, ledger: mh.mean(
        data, ledger=ledger, **{**GROUPED, "groups": None}
    ),
    "groups repeated": lambda plan, data, ledger: mh.mean(
        data, ledger=ledger, **{**GROUPED, "groups": ["f", "f"]}
    ),
    "a public number of groups": lambda plan, data, ledger: mh.mean(
        data, ledger=ledger, n=np.int64(9), **GROUPED
    ),
    "another relation": lambda plan, data, ledger: mh.plan_queries(
        W.marginals((3, 3), order=1), privacy=RHO, categories=CATEGORIES, neighbors="substitute"
    ).release(data, ledger=ledger),
    "a wrong number of records": lambda plan, data, ledger: mh.plan_queries(
        W.marginals((3, 3), order=1),
        privacy=RHO,
        categories=CATEGORIES,
        neighbors="substitute",
        n=8,
    ).release(data, ledger=ledger),
}


@pytest.mark.parametrize("file", ["d.csv", "d.parquet"])
@pytest.mark.parametrize("case", BAD)
def test_a_refusal_costs_nothing_and_quotes_nothing(files, case, file):
    if case == "a number column as text" and file == "d.csv":
        return  # every cell of a CSV file is text
    ledger = ledger_in(files, "add-remove")
    before = ledger.path.read_bytes()
    with pytest.raises(mh.InvalidInput) as refusal:
        BAD[case](plan_of(), files / file, ledger)
    assert_no_canary(words_of(refusal.value))
    assert ledger.path.read_bytes() == before


@pytest.mark.parametrize("name", ["cut.parquet", "garbage.parquet", "none.csv"])
def test_a_broken_file_is_refused_before_the_charge(files, name):
    ledger = ledger_in(files, "add-remove")
    for call in (
        lambda: plan_of().release(files / name, ledger=ledger),
        lambda: mh.mean(files / name, ledger=ledger, **GROUPED),
    ):
        with pytest.raises(mh.InvalidInput) as refusal:
            call()
        assert_no_canary(words_of(refusal.value))
    assert ledger.head.count == 0


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_source_that_fails_half_way_keeps_its_charge(files, place):
    ledger = ledger_in(files, "add-remove")
    data = Again(pa.Table.from_pylist(ROWS), fail_after=place)
    for call in (
        lambda: plan_of().release(data, ledger=ledger),
        lambda: mh.mean(data, ledger=ledger, **GROUPED),
    ):
        before = ledger.head.count
        with pytest.raises(mh.SourceFailed, match="The charge stays") as failure:
            call()
        assert ledger.head.count == before + 1
        assert_no_canary(words_of(failure.value))


class Watched(Again):
    """A stream that notes how many charges there were whenever a value was read."""

    def __init__(self, table, ledger):
        super().__init__(table)
        self.ledger, self.seen = ledger, []

    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            for batch in self.table.to_batches(max_chunksize=2):
                self.seen.append(self.ledger.head.count)
                yield batch

        reader = pa.RecordBatchReader.from_batches(self.table.schema, batches())
        return reader.__arrow_c_stream__()


class Counts(Mapping):
    """A histogram that notes the same, and may fail."""

    def __init__(self, ledger=None, fails=False):
        self.ledger, self.fails, self.seen = ledger, fails, []

    def __iter__(self):
        if self.ledger is not None:
            self.seen.append(self.ledger.head.count)
        if self.fails:
            raise RuntimeError(f"{CANARY_TEXT} {CANARY_NUMBER}")
        return iter([0, 3])

    def __getitem__(self, key):
        return 5

    def __len__(self):
        return 2


def test_the_ledger_is_charged_once_and_before_the_first_value(files):
    ledger = ledger_in(files, "add-remove")
    plan = plan_of()
    for charges, call in enumerate(
        (
            lambda data: plan.release(data, ledger=ledger),
            lambda data: mh.mean(data, ledger=ledger, **GROUPED),
        ),
        start=1,
    ):
        data = Watched(pa.Table.from_pylist(ROWS), ledger)
        call(data)
        assert ledger.head.count == charges
        assert data.seen
        assert set(data.seen) == {charges}
    counts = Counts(ledger)
    mh.plan_queries(W.identity(4), privacy=RHO).release(counts, ledger=ledger)
    assert counts.seen == [3]
    assert ledger.spent == mh.ZCDP(rho=3)


def test_a_histogram_that_fails_keeps_its_charge_and_is_not_quoted(tmp_path):
    ledger = ledger_in(tmp_path, "add-remove")
    plan = mh.plan_queries(W.identity(4), privacy=RHO)
    with pytest.raises(mh.SourceFailed, match="The charge stays") as failure:
        plan.release(Counts(fails=True), ledger=ledger)
    assert_no_canary(words_of(failure.value))
    assert ledger.head.count == 1


def test_what_is_no_histogram_is_refused_before_the_charge(tmp_path):
    from scipy.sparse.linalg import aslinearoperator

    ledger = ledger_in(tmp_path, "add-remove")
    plan = mh.plan_queries(W.identity(4), privacy=RHO)
    for data in (
        aslinearoperator(np.ones((1, 4), int)),
        np.ones(4),
        np.ones((2, 2), int),
        np.ones(5, int),
        np.array(["a"] * 4),
        np.ones(4, object),
        np.ones(4, bool),
        np.ma.array(np.ones(4, int), mask=[1, 0, 0, 0]),
        sp.coo_array(np.ones((1, 4))),
        sp.coo_array(np.ones((2, 2), int)),
        [1, 2, 3],
        ["f"] * 4,
        "f",
        None,
    ):
        with pytest.raises(mh.InvalidInput):
            plan.release(data, ledger=ledger)
    replaced = mh.plan_queries(W.identity(4), privacy=RHO, neighbors="substitute")
    with pytest.raises(mh.InvalidInput, match="sparse"):
        replaced.release({0: 1})
    assert ledger.head.count == 0


def test_a_budget_that_is_exceeded_reads_and_releases_nothing(files):
    ledger = ledger_in(files, "add-remove", rho=1.5)
    plan_of().release(files / "d.csv", ledger=ledger)
    before = ledger.path.read_bytes()
    data = Watched(pa.Table.from_pylist(ROWS), ledger)
    counts = Counts(ledger)
    for call in (
        lambda: plan_of().release(data, ledger=ledger),
        lambda: mh.mean(data, ledger=ledger, **GROUPED),
        lambda: mh.plan_queries(W.identity(4), privacy=RHO).release(counts, ledger=ledger),
        lambda: mh.stream.prefix_counter(4, RHO, ledger=ledger),
    ):
        with pytest.raises(mh.BudgetExceeded, match="nothing was spent"):
            call()
    assert data.seen == []
    assert counts.seen == []
    assert ledger.path.read_bytes() == before


def test_data_that_change_after_the_charge_are_noticed(files, monkeypatch):
    histogram = np.array([5, 5, 5, 5])
    charge = Ledger.charge

    def charged(self, *arguments, **options):
        entry = charge(self, *arguments, **options)
        histogram[0] += 1
        (files / "d.csv").write_text("sex,age\nf,1\n")
        return entry

    monkeypatch.setattr(Ledger, "charge", charged)
    ledger = ledger_in(files)
    plan = mh.plan_queries(W.identity(4), privacy=RHO, neighbors="substitute")
    with pytest.raises(mh.DataChanged):
        plan.release(histogram, ledger=ledger)
    table = mh.plan_queries(
        W.marginals((3, 3), order=1), privacy=RHO, categories=CATEGORIES, neighbors="substitute"
    )
    with pytest.raises(mh.DataChanged):
        table.release(files / "d.csv", ledger=ledger)
    assert ledger.head.count == 2


# The secret number of records.


def rows_of(count):
    sexes = pd.array(["f"] * count, "string")
    return pd.DataFrame({"sex": sexes, "age": np.full(count, 20.0), "x": np.full(count, 1.0)})


def assert_no_count(text):
    text = without_hashes(text)
    for spelling in SPELLINGS:
        assert spelling not in text


def test_no_number_of_records_is_in_a_release_or_its_ledger(tmp_path, monkeypatch, capfd):
    steady(monkeypatch)
    privacy = mh.PureDP(epsilon=0.01)
    ledger = ledger_in(tmp_path, "add-remove", rho=10)
    data = rows_of(SECRET)
    path = write_parquet(tmp_path / "d.parquet", pa.Table.from_pandas(data))
    plan = mh.plan_queries(
        W.marginals((2, 2), order=[0, 1, 2]), privacy=privacy, categories=CATEGORIES
    )
    histogram = mh.plan_queries(W.prefix(3), privacy=privacy)
    releases = [
        plan.release(data, ledger=ledger),
        plan.release(path, ledger=ledger),
        histogram.release(np.array([SECRET, 0, 0]), ledger=ledger),
        histogram.release({0: SECRET}, ledger=ledger),
        mh.mean(data, ledger=ledger, **{**GROUPED, "privacy": privacy}),
    ]
    for release in releases:
        assert_no_count(release.to_json())
        assert_no_count(repr(release))
        assert "n secret" in repr(release)
    for entry in ledger.entries():
        assert_no_count(json.dumps(entry.to_dict()))
    assert_no_count(ledger.path.read_bytes())
    assert capfd.readouterr() == ("", "")


def public_part(release):
    """A release without its noisy numbers, as bytes."""
    fields = release.to_dict()
    for each in fields.get("releases", [fields]):
        for noisy in ("value", "standard_error", "interval"):
            if noisy == "standard_error" and "releases" not in fields:
                continue
            each.pop(noisy)
        each.pop("population_interval", None)
        if "releases" in fields:
            each.pop("certificate")  # for the noisy number of records
        for part, number in (("recorded", "value"), ("squares", "lacking")):
            if each.get(part):
                each[part].pop(number)
        each["noise"].pop("sums", None)
        each["noise"].pop("count", None)
    return json.dumps(fields)


@pytest.mark.parametrize("privacy", [RHO, mh.PureDP(epsilon=1)])
def test_a_release_has_the_same_bytes_for_one_record_more_but_for_noise(privacy):
    plan = mh.plan_queries(W.marginals((2, 2), order=1), privacy=privacy, categories=CATEGORIES)
    digest, certificate = plan.digest, plan.certificate
    tables = {public_part(plan.release(rows_of(count))) for count in (0, 1, 40, 41)}
    assert len(tables) == 1
    assert plan.digest == digest
    assert plan.certificate is certificate
    groups = {
        public_part(mh.mean(rows_of(count), **{**GROUPED, "privacy": privacy}))
        for count in (0, 1, 40, 41)
    }
    assert len(groups) == 1
    for workload in (W.prefix(4), W.identity(4), W.parity(2, 1), W.kron(W.prefix(2), W.prefix(2))):
        plan = mh.plan_queries(workload, privacy=privacy)
        forms = {
            public_part(plan.release(data))
            for count in (0, 1, 10**6)
            for data in (
                np.array([count, 0, 0, 1]),
                {0: count, 3: 1},
                sp.coo_array(np.array([[count, 0, 0, 1]])),
            )
        }
        assert len(forms) == 1


def test_the_shape_of_a_shown_release_does_not_tell_the_number_of_records():
    plan = mh.plan_queries(W.prefix(3), privacy=RHO)
    shapes = {
        re.sub(r"[-\d.,]+", "#", re.sub(" +", " ", repr(plan.release(np.array([n, 0, 0])))))
        for n in (0, 1, 40, 41, 10**6)
    }
    assert len(shapes) == 1


# The command line.


def run(*arguments):
    return CliRunner().invoke(main, ["queries", *map(str, arguments)])


def test_the_command_line_shows_no_canary(files):
    options = ["--categories", "sex=f,m", "--bins", "age=0,18,120", "--rho", "1"]
    for extra in (["--marginals", "1"], ["--histogram", "--json"], ["--histogram", "--substitute"]):
        done = run(files / "d.csv", *options, *extra)
        assert done.exit_code == 0, done.output
        assert_no_canary(done.output)
    for bad in (
        [files / "d.csv", "--rho", "1", "--histogram", "--categories", "sx=f,m"],
        [files / "cut.parquet", "--rho", "1", "--histogram", "--categories", "sex=f,m"],
        [files / "d.csv", "--rho", "1", "--histogram"],
        [files / "d.csv", "--rho", "1", "--marginals", "9", "--categories", "sex=f,m"],
        [
            files / "d.csv",
            "--rho",
            "1",
            "--histogram",
            "--categories",
            "sex=f,m",
            "--ledger",
            files / "d.csv",
        ],
        [files / "d.csv", "--rho", "1", "--histogram", "--categories", "sex=f,m", "--out", "a\0b"],
    ):
        done = run(*bad)
        assert done.exit_code == 2, done.output
        assert isinstance(done.exception, SystemExit)
        assert_no_canary(done.output)


def test_answers_are_never_written_over_a_file_that_is_there(files):
    options = ["--categories", "sex=f,m", "--rho", "1", "--histogram"]
    ledger = ledger_in(files, "add-remove")
    before = {path: path.read_bytes() for path in files.iterdir()}
    for out in ("d.csv", "d.parquet", "budget.db", "."):
        done = run(files / "d.csv", *options, "--ledger", ledger.path, "--out", files / out)
        assert done.exit_code == 2, done.output
    assert {path: path.read_bytes() for path in files.iterdir()} == before
    done = run(files / "*.csv", *options, "--out", files / "new" / "o.csv")
    assert done.exit_code == 2
    # A refusal leaves no empty file behind.
    done = run(files / "d.csv", *options, "--ledger", files / "none.db", "--out", files / "o.csv")
    assert done.exit_code == 2
    assert not (files / "o.csv").exists()


def test_columns_that_have_no_labels_are_refused_by_their_type(tmp_path):
    nested = {"x": pa.array([[1], None]), "y": pa.array([{"a": 1}, None])}
    path = write_parquet(tmp_path / "d.parquet", pa.table(nested))
    for column in nested:
        done = CliRunner().invoke(main, ["check", str(path), "--labels", column])
        assert done.exit_code == 2
        assert "no labels" in done.output
        plan = mh.plan_queries(
            W.identity(2), privacy=RHO, categories={column: [0, 1]}, missing="drop"
        )
        with pytest.raises(mh.InvalidInput):
            plan.release(path)
