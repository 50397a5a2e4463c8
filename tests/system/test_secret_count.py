"""With n secret no row count is anywhere: JSON, repr, ledger, messages, progress."""

from __future__ import annotations

import io
import json
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import (
    DOMAINS,
    SOURCES,
    Again,
    arrow_table,
    ledger_in,
    steady,
    without_hashes,
    words_of,
)

import muhat as mh
from muhat import _progress
from muhat.data import exact_sums, open_source

ROWS = 41737
"""A number that turns up nowhere by chance."""
SPELLINGS = ("41737", "41,737", "41_737", "41 737")


@pytest.fixture
def data():
    return np.tile([1.37, 2.0], (ROWS, 1))


def assert_no_count(text):
    text = without_hashes(text)
    for spelling in SPELLINGS:
        assert spelling not in text


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("privacy", [mh.ZCDP(rho=0.01), mh.PureDP(epsilon=0.01)])
def test_no_row_count_is_in_a_release_or_its_ledger(
    tmp_path, capfd, monkeypatch, data, domain, privacy
):
    steady(monkeypatch)
    ledger = ledger_in(tmp_path, "add-remove")
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"a": data[:, 0], "b": data[:, 1]}), path)
    for source in (data, pd.DataFrame(data, columns=["a", "b"]), str(path)):
        for call, options in ((mh.mean, {"n": None}), (mh.sum, {"n": None})):
            release = call(
                source, domain=DOMAINS[domain], privacy=privacy, ledger=ledger, **options
            )
            fields = json.loads(release.to_json())
            assert fields["n"] is None
            assert not any("n =" in line for line in release.assumptions)
            assert_no_count(release.to_json())
            assert "n secret" in repr(release)
    for entry in ledger.entries():
        assert_no_count(json.dumps(entry.to_dict()))
    assert_no_count(ledger.path.read_bytes())
    assert capfd.readouterr() == ("", "")


def test_a_release_is_made_of_the_same_bytes_for_one_row_more_but_for_noise(data):
    def shape(rows):
        release = mh.mean(rows, domain=DOMAINS["box"], privacy=mh.ZCDP(rho=1), n=None)
        fields = release.to_dict()
        for noisy in ("value", "standard_error", "interval", "population_interval", "certificate"):
            fields.pop(noisy)
        fields["recorded"].pop("value")
        fields["squares"].pop("lacking")
        fields["noise"].pop("sums")
        fields["noise"].pop("count")
        return json.dumps(fields)

    assert shape(data) == shape(data[:-1]) == shape(data[:1]) == shape(data[:0])


def test_a_plan_for_a_secret_number_is_the_same_whatever_the_data():
    plan = mh.plan_mean(domain=DOMAINS["ball"], n=None, privacy=mh.ZCDP(rho=1))
    again = mh.plan_mean(domain=DOMAINS["ball"], n=None, privacy=mh.ZCDP(rho=1))
    assert plan.digest == again.digest
    assert plan.certificate is None
    assert plan.to_dict()["n"] is None


def test_a_failure_says_nothing_of_the_number_of_rows(tmp_path, data):
    table = arrow_table(data[:200].tolist())
    for call in (
        lambda: mh.mean(
            Again(table, fail_after=61), domain=DOMAINS["box"], privacy=mh.ZCDP(rho=1), n=None
        ),
        lambda: mh.mean(
            data, columns=[0, 7], domain=DOMAINS["box"], privacy=mh.ZCDP(rho=1), n=None
        ),
        lambda: mh.mean(data, domain=mh.Box([0], [1]), privacy=mh.ZCDP(rho=1), n=None),
    ):
        with pytest.raises((mh.SourceFailed, mh.InvalidInput)) as failure:
            call()
        words = words_of(failure.value, frames=False)
        assert_no_count(words)
        assert not re.search(r"\b(200|122|61)\b", words)


def test_progress_shows_per_cent_and_no_rows(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(_progress, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    path = tmp_path / "d.csv"
    path.write_text("a,b\n" + "1,2\n" * ROWS)
    plan = mh.plan_mean(domain=DOMAINS["box"], n=None, privacy=mh.ZCDP(rho=1))
    exact_sums(open_source(path, dim=2), plan.recipe.query.lattice)
    shown = terminal.getvalue()
    assert "%" in shown
    assert_no_count(shown)
    assert str(path.stat().st_size) not in shown


@pytest.mark.parametrize("source", SOURCES)
def test_sums_and_sources_do_not_show_what_they_hold(tmp_path, source):
    rows = [(7391743.9125, 1.0)] * 61
    opened = open_source(SOURCES[source](rows, tmp_path), dim=2)
    plan = mh.plan_mean(domain=DOMAINS["box"], n=None, privacy=mh.ZCDP(rho=1))
    found = exact_sums(opened, plan.recipe.query.lattice)
    for text in (repr(opened), repr(found), str(found)):
        assert "61" not in re.sub(r"0x[0-9a-f]+", "", text)
        assert "739174" not in text
        assert str(found.total[0]) not in text
