"""A poison record is a record: finite release, same outcome, same charge, through every source."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hostile import DOMAINS, SOURCES, ledger_in, outcome, silence

import muhat as mh

CLEAN = [(1.0, 2.0), (3.5, -0.5), (7.0, 4.0), (0.25, 0.0), (2.0, 2.0)]
POISON = [
    (math.nan, 1.0),
    (1.0, math.nan),
    (math.inf, 1.0),
    (1.0, -math.inf),
    (math.inf, -math.inf),
    (None, 2.0),
    (2.0, None),
    (None, None),
    (-0.0, -0.0),
    (5e-324, -5e-324),
    (2.2e-308, 1e-310),
    (1e308, -1e308),
    (1.7976931348623157e308, 1.7976931348623157e308),
]
MODES = {
    "public n": {"n": 5},
    "counted n": {},
    "secret n": {"n": None},
    "secret n, dropped": {"n": None, "missing": "drop"},
}


def poisoned(row):
    return [*CLEAN[:2], row, *CLEAN[3:]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_poison_record_gives_a_finite_release_and_the_same_outcome(
    tmp_path, source, domain, mode
):
    def look(rows):
        data = SOURCES[source](rows, tmp_path)
        values = []

        def call():
            release = mh.mean(data, domain=DOMAINS[domain], privacy=mh.ZCDP(rho=1), **MODES[mode])
            values.append(release.value)
            return release

        seen = outcome(call)
        assert seen[0] == "Release", seen
        # Few recorded values may not be told from none at all.
        assert np.isfinite(values[0]).all() or MODES[mode].get("missing") == "drop"
        return seen

    expected = look(CLEAN)
    for row in POISON:
        assert look(poisoned(row)) == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", ["C array", "pandas", "Parquet file", "CSV file"])
def test_a_poison_record_costs_what_its_neighbour_costs(tmp_path, source, mode):
    ledger = ledger_in(tmp_path, "add-remove" if "secret" in mode else "substitute")
    for row in [CLEAN[2], POISON[0], POISON[5], POISON[-1]]:
        data = SOURCES[source](poisoned(row), tmp_path)
        mh.mean(data, domain=DOMAINS["ball"], privacy=mh.ZCDP(rho=1), ledger=ledger, **MODES[mode])
    entries = [entry.to_dict() for entry in ledger.entries()]
    for entry in entries:
        for chained in ("id", "time", "spent", "previous", "hash"):
            entry.pop(chained)
    assert len(entries) == 4
    assert all(entry == entries[0] for entry in entries)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_source_gives_the_same_answer_for_the_same_poison(tmp_path, monkeypatch, domain):
    silence(monkeypatch)
    domain = DOMAINS[domain]
    for row, mode in itertools.product(POISON, ["public n", "secret n, dropped"]):
        answers = set()
        for make in SOURCES.values():
            release = mh.mean(
                make(poisoned(row), tmp_path),
                domain=domain,
                privacy=mh.ZCDP(rho=1),
                **MODES[mode],
            )
            answers.add(tuple(release.value))
        (answer,) = answers
        usable = [x is not None and math.isfinite(x) for x in row]
        filled = [x if good else c for x, good, c in zip(row, usable, domain.center, strict=True)]
        rows = poisoned(filled)
        by_column = isinstance(domain, mh.Box)
        if "dropped" in mode and not all(usable) and not by_column:
            rows = [*CLEAN[:2], *CLEAN[3:]]
        # Halved first: the squares of 1e308 are beyond a float, their direction is not.
        near = [np.clip(np.array(one, float), -1e150, 1e150) for one in rows]
        kept = np.ones((len(near), len(row)), bool)
        if "dropped" in mode and by_column:
            kept[2] = usable
        clipped = np.array([np.ravel(domain.clip(one)) for one in near])
        expected = np.sum(clipped * kept[: len(near)], axis=0) / kept[: len(near)].sum(axis=0)
        assert np.allclose(answer, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("missing", ["center", "drop"])
def test_no_rows_at_all_is_a_release_when_n_is_secret(tmp_path, source, missing):
    def release(rows):
        return mh.mean(
            SOURCES[source](rows, tmp_path),
            domain=DOMAINS["box"],
            privacy=mh.ZCDP(rho=1),
            n=None,
            missing=missing,
        )

    assert outcome(lambda: release([])) == outcome(lambda: release(CLEAN[:1]))
    for rows in ([], [(math.nan, math.nan)]):
        found = release(rows)
        assert (np.isfinite(found.value) | found.empty).all()


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**64 - 1, 2**63, 0, 7], np.uint64),
        np.array([-(2**63), 2**63 - 1, 0, 7], np.int64),
        pd.array([2**63 - 1, None, 0, 7], "Int64"),
        pd.array([True, None, False, True], "boolean"),
        pa.array([10**37, -(10**37), None, 7], pa.decimal128(38, 0)),
        pa.array(["12.50", "-99999.99", None, "7.00"]).cast(pa.decimal128(7, 2)),
        pa.array([1.5, None, float("nan"), 7.0]).dictionary_encode(),
        pa.array([65504.0, float("inf"), None, 7.0], pa.float16()),
    ],
    ids=lambda values: str(getattr(values, "dtype", getattr(values, "type", ""))),
)
def test_extremes_of_every_type_are_clipped_by_type(values):
    data = pd.DataFrame({"x": values}) if hasattr(values, "_from_sequence") else values
    for options in ({}, {"n": None}, {"n": None, "missing": "drop"}):
        release = mh.mean(data, domain=mh.Box([0], [8]), privacy=mh.ZCDP(rho=1), **options)
        ball = mh.mean(data, domain=mh.Ball(8, 1), privacy=mh.PureDP(epsilon=1), **options)
        for one in (release, ball):
            assert (np.isfinite(one.value) | one.empty).all()


def test_a_promise_so_strong_that_noise_swamps_everything_is_still_finite():
    data = np.array([[math.nan, 1e308]] * 3)
    for privacy in (mh.ZCDP(rho=1e-12), mh.PureDP(epsilon=1e-6), mh.PureDP(epsilon=1e300)):
        for domain in DOMAINS.values():
            for n in (3, None):
                release = mh.mean(data, domain=domain, privacy=privacy, n=n)
                assert np.isfinite(release.value).all()
                assert np.isfinite(release.interval()[0]).all()
                mh.Release.from_json(release.to_json())
