"""The comparison with other libraries: what is missing is said, what is worse is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from muhat.privacy import ZCDP, PureDP
from muhat.studies import peers, peers_makers, peers_set
from muhat.studies.drawing import figure_of
from muhat.studies.study import Result, rows_from_csv, rows_to_csv, where

_SET = {"people": 2_000, "trials": 4, "trials_on_spark": 1, "repeats": 1}
SMALL = peers.STUDY.settings["quick"] | {"trials": 60, "many": 2000, "repeats": 2, "dims": (1, 4)}
SMALL |= {"set": SMALL["set"] | _SET}


@pytest.fixture(autouse=True)
def _alone_in_sets(monkeypatch):
    """The other job, which tests/studies/test_peers_set.py is about, has muhat alone."""
    monkeypatch.setattr(peers_set, "_asked", lambda library, job: {"missing": "not installed"})


def pretended(times):
    """A library whose Laplace noise is so many times what the promise needs."""

    def make(n, dim, privacy):
        if not isinstance(privacy, PureDP):
            return None
        generator = default_rng(5)
        scale = times * dim / (n * privacy.epsilon)
        return lambda records: records.mean(axis=0) + generator.laplace(0, scale, dim)

    return make


def rows_with(monkeypatch, **makers):
    absent = {name: (lambda n, dim, privacy: None) for name in ("opendp", "diffprivlib")}
    muhat_alone = {"muhat": peers_makers.MAKERS["muhat"]}
    monkeypatch.setattr(peers, "MAKERS", muhat_alone | absent | makers)
    return rows_from_csv(rows_to_csv(peers.measure(SMALL, lambda part: None)))


def test_without_peers_the_missing_rows_are_named(monkeypatch):
    monkeypatch.setattr(peers_makers, "_library", lambda name: None)
    rows = rows_from_csv(rows_to_csv(peers.measure(SMALL, lambda part: None)))
    assert {row["missing"] for row in rows if row["library"] != "muhat"} == {"not installed"}
    verdict = peers.verdict(rows)
    assert verdict.reproduced == "not tested"
    assert "pip install opendp diffprivlib" in verdict.paragraph
    assert len(figure_of(Result(peers.STUDY, "quick", rows).panels()).axes) == 4


def test_a_peer_that_errs_less_is_noticed(monkeypatch):
    better = rows_with(monkeypatch, opendp=pretended(0.1), diffprivlib=pretended(0.1))
    assert peers.verdict(better).reproduced == "no"


def test_a_peer_that_errs_more_is_told_with_its_numbers(monkeypatch):
    rows = rows_with(monkeypatch, opendp=pretended(3.0))
    verdict = peers.verdict(rows)
    assert verdict.reproduced == "in part"
    assert "in no task visibly more than" in verdict.paragraph
    assert "OpenDP has no mean under zCDP" in verdict.paragraph
    assert "Rows of diffprivlib are missing" in verdict.paragraph
    (worse,) = where(rows, library="opendp", promise="pure", d=4)
    assert f"{worse['error']:.3g}" in verdict.paragraph


@pytest.mark.parametrize("privacy", [PureDP(epsilon=1.0), ZCDP(rho=0.5)])
def test_muhat_is_asked_for_the_means_of_the_columns(privacy):
    release = peers_makers.MAKERS["muhat"](10**6, 3, privacy)
    assert release is not None
    records = np.tile([0.0, 0.5, 1.0], (10**6, 1))
    assert release(records) == pytest.approx([0.0, 0.5, 1.0], abs=1e-3)
