"""The job of sets beside other libraries: who is absent is said, who errs less is noticed."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.random import default_rng

from muhat.errors import InvalidInput
from muhat.privacy import ZCDP
from muhat.studies import peers_asked, peers_set
from muhat.studies.drawing import figure_of
from muhat.studies.study import rows_from_csv, rows_to_csv, where

SMALL = {
    "people": 2_000,
    "seed": 3,
    "epsilon": 1.0,
    "delta": 1e-6,
    "rho": 0.5,
    "trials": 30,
    "trials_on_spark": 2,
    "repeats": 1,
}


def pretended(count_error, mean_error):
    """A library whose answers are off by so many records and so much income."""

    def ask(job):
        generator = default_rng(5)
        counts, means = peers_set.truth(job["table"])

        def release():
            off = generator.normal(size=(2, len(counts)))
            return list(counts + count_error * off[0]), list(means + mean_error * off[1])

        return release

    return ask


def rows_with(monkeypatch, **asked):
    """Rows of muhat beside pretended libraries; all others are absent."""
    missing = {"missing": "not installed"}

    def answers(library, job):
        ask = asked.get(library.replace(".", "_").replace("-", "_"))
        return missing if ask is None else {"version": "9", **peers_asked.timed(ask, job)}

    monkeypatch.setattr(peers_set, "_asked", answers)
    return rows_from_csv(rows_to_csv(peers_set.measure(SMALL, lambda part: None)))


def refusing(job):
    return None


def test_without_peers_nothing_is_compared(monkeypatch):
    rows = rows_with(monkeypatch)
    verdict = peers_set.verdict(rows)
    assert verdict.reproduced == "not tested"
    assert "pip install opendp diffprivlib pipeline-dp tmlt.analytics" in verdict.paragraph
    assert peers_set.ELSEWHERE in verdict.paragraph
    assert len(where(rows, library="muhat")) == 4


def test_a_peer_that_errs_less_in_both_turns_the_verdict(monkeypatch):
    verdict = peers_set.verdict(rows_with(monkeypatch, opendp=pretended(0.1, 10.0)))
    assert verdict.reproduced == "no"
    assert "with less error: OpenDP (1-DP (pure), rows anywhere)" in verdict.paragraph


def test_a_peer_that_errs_less_in_one_statistic_is_named_with_its_numbers(monkeypatch):
    rows = rows_with(monkeypatch, opendp=pretended(0.1, 1e6))
    verdict = peers_set.verdict(rows)
    assert verdict.reproduced == "in part"
    assert "OpenDP's counts (1-DP (pure), rows anywhere)" in verdict.paragraph
    assert "`weight=`" in verdict.paragraph
    (peer,) = where(rows, library="opendp", promise="pure")
    assert f"{peer['count_relative']:.3g}" in verdict.paragraph


def test_peers_that_err_more_and_are_all_there_make_it_a_yes(monkeypatch):
    worse = pretended(1e3, 1e5)
    rows = rows_with(
        monkeypatch, opendp=worse, diffprivlib=refusing, pipeline_dp=worse, tmlt_analytics=worse
    )
    verdict = peers_set.verdict(rows)
    assert verdict.reproduced == "yes"
    assert "No peer has visibly less error" in verdict.paragraph
    assert "diffprivlib cannot be given a promise of zCDP" in verdict.paragraph
    (slow,) = where(rows, library="tmlt.analytics", promise="pure")
    assert slow["trials"] == SMALL["trials_on_spark"]
    assert len(figure_of(peers_set.panels(rows)).axes) == 2


def test_the_table_is_of_people_with_few_rows_in_different_regions():
    table = peers_set.people(2_000, 1)
    both = list(zip(table["person"], table["region"], strict=True))
    assert len(set(both)) == len(both)
    assert np.bincount(table["person"]).max() == peers_set.ROWS
    assert len(set(zip(table["person"], table["sex"], strict=True))) == 2_000
    counts, means = peers_set.truth(table)
    assert counts.sum() == len(both)
    assert counts.max() > 2 * counts.min()
    assert ((means > 20_000) & (means < 120_000)).all()


@pytest.mark.parametrize("apart", [False, True])
def test_muhat_answers_the_job(apart):
    import pyarrow as pa

    table = peers_set.people(300, 1)
    job = {"rows": peers_set.ROWS, "apart": apart}
    release = peers_set._muhat(job, pa.table(table), ZCDP(rho=1e8))
    for found, exact in zip(release(), peers_set.truth(table), strict=True):
        assert found == pytest.approx(exact, rel=1e-3)


def test_another_interpreter_is_asked_by_a_script_of_its_own():
    asked = json.dumps([{"library": library, "job": None} for library in peers_asked.ASKED])
    script = [sys.executable, "-I", peers_asked.__file__]
    done = subprocess.run(script, input=asked, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) == len(peers_asked.ASKED)
    assert all(answer in ({}, {"missing": "not installed"}) for answer in found)
    here = {name for name in peers_asked.ASKED if peers_asked.installed(name)}
    assert peers_set._libraries(sys.executable) == here


def test_what_is_no_interpreter_is_refused_in_words(monkeypatch):
    monkeypatch.setenv(peers_set.ELSEWHERE, "/nowhere/python")
    monkeypatch.setattr(peers_asked, "installed", lambda library: False)
    with pytest.raises(InvalidInput, match="MUHAT_PEERS names '/nowhere/python'"):
        peers_set._asked("pipeline-dp", {})


def test_a_smaller_error_that_is_not_told_apart_is_said(monkeypatch):
    rows = [dict(row) for row in rows_with(monkeypatch, opendp=pretended(1e3, 1e5))]
    for row in where(rows, library="opendp", promise="zCDP"):
        (mine,) = where(rows, library="muhat", promise="zCDP", apart=row["apart"])
        row["relative"] = 0.97 * mine["relative"]
    verdict = peers_set.verdict(rows)
    assert verdict.reproduced == "in part"
    assert "told apart or not, for OpenDP (0.5-zCDP, rows anywhere)" in verdict.paragraph
