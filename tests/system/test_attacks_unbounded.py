"""Attacks on means that learn where records lie, bound their bias or keep n secret.

What an observer sees must not depend on a record but through noise: no canary in anything shown,
the same words for neighbours, one charge before the first value is read, whatever happens then.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import (
    CANARY_NUMBER,
    CANARY_TEXT,
    Again,
    arrow_table,
    assert_no_canary,
    words_of,
    write_csv,
)

import muhat as mh
from muhat import research
from muhat.data.memory import MemorySource
from muhat.errors import MuhatError
from muhat.ledger import Ledger
from muhat.mechanisms.learning.symmetric_column import SymmetricMean
from muhat.mechanisms.learning.unknown_number import UnknownNumber

N = 900
CLEAN = (np.random.default_rng(11).standard_normal((N, 2)) * [1, 2] + [5, -3]).tolist()
SPACE = mh.Reals(dim=2, magnitude=1e8)
BOX = mh.Box([0, -9], [9, 9])
RHO, PURE = mh.ZCDP(rho=5), mh.PureDP(epsilon=10)
APPROX = mh.ApproxDP(epsilon=10, delta=1e-5)
HIDDEN = {"n": None, "n_min": 400, "privacy": mh.ApproxDP(epsilon=20, delta=1e-5)}

PLANS = {
    "recentring": {"privacy": RHO},
    "recentring, pure": {"privacy": mh.PureDP(epsilon=20)},
    "clipped": {"privacy": RHO, "mechanism": "clipped"},
    "clipped, faithful": {"privacy": RHO, "mechanism": "clipped", "faithful": True},
    "shifted-clipped": {"privacy": RHO, "mechanism": "shifted-clipped"},
    "shifted, faithful": {"privacy": RHO, "mechanism": "shifted-clipped", "faithful": True},
    "statistical": {"privacy": RHO, "mechanism": "statistical", "scale": (0.1, 10)},
    "clipped-laplace": {"privacy": PURE, "moment": (2, 2.0)},
    "clipped-normal": {"privacy": RHO, "moment": (2, 2.0)},
    "symmetric": {"privacy": APPROX, "moment": (4, 3.0), "symmetric": True},
    "karwa-vadhan": {"privacy": APPROX, "moment": (4, 3.0), "mechanism": "karwa-vadhan"},
    "smooth": {"domain": BOX, "n": None, "privacy": PURE, "unbiased": True, "n_min": 100},
    "smooth, no n_min": {"domain": BOX, "n": None, "privacy": mh.ZCDP(rho=1), "unbiased": True},
    "unknown-n, recentring": HIDDEN,
    "unknown-n, clipped": {**HIDDEN, "moment": (2, 2.0), "max_bias": 2e-5},
    "unknown-n, symmetric": {**HIDDEN, "moment": (4, 3.0), "symmetric": True},
}
ORDERED = ("symmetric", "karwa-vadhan")
"""They need to know which rows come first, so a stream is refused."""

SECRET = tuple(name for name, options in PLANS.items() if "n" in options)

POISON = [
    (CANARY_NUMBER, -CANARY_NUMBER),
    (math.nan, 1.0),
    (math.inf, -math.inf),
    (None, None),
    (-0.0, 5e-324),
    (1e308, -1e308),
    (1.7976931348623157e308, 1.7976931348623157e308),
]


def planned(name, **options):
    return mh.plan_mean(**{"domain": SPACE, "n": N, **PLANS[name], **options})


PLANNED = {name: planned(name) for name in PLANS}


def poisoned(*rows):
    return [*rows, *CLEAN[len(rows) :]]


def array(rows):
    return np.array([[math.nan if x is None else x for x in row] for row in rows]).reshape(-1, 2)


def account(folder, name, *, releases=1000, file="budget.db"):
    """An account for so many releases of this plan."""
    plan = PLANNED[name]
    spare = releases * (1 + 1e-9)
    fields = {name: value * spare for name, value in vars(plan.privacy).items()}
    if "delta" in fields:
        fields["delta"] = min(0.9, fields["delta"])
    budget = type(plan.privacy)(**fields)
    return Ledger.create(folder / file, budget=budget, neighbors=plan.neighbors.value)


def masked(release):
    """All that is shown but for what noise has been added to: values, counts, ball, steps."""
    fields = json.loads(release.to_json())
    for noisy in ("value", "standard_error", "interval", "noise", "domain", "ledger_head"):
        fields.pop(noisy)
    # Some paths have a shell that may be shrunk, and papers' methods count nothing outside.
    for noisy in ("population_interval", "outside", "unshrunk", "averaged", "rmse", "moment_error"):
        fields.pop(noisy, None)
    fields["assumptions"] = [
        line for line in fields["assumptions"] if not line.startswith("the steps taken")
    ]
    return fields


# What an observer sees of one record.


@pytest.mark.parametrize("name", PLANS)
def test_a_poison_record_is_a_record(name, recwarn, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    plan = PLANNED[name]
    expected = masked(plan.release(array(CLEAN)))
    for row in POISON:
        release = plan.release(array(poisoned(row)))
        assert not release.failed
        assert np.isfinite(release.value).all()
        assert masked(release) == expected
        mh.Release.from_json(release.to_json())
    assert not recwarn.list
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", PLANS)
def test_poison_alone_still_gives_a_release(name, recwarn):
    plan = PLANNED[name]
    for row in POISON:
        release = plan.release(array([row] * N))
        assert release.failed or np.isfinite(release.value).all()
        json.dumps(release.to_dict(), allow_nan=False)
        assert release.failed or masked(release) == masked(plan.release(array(CLEAN)))
    assert not recwarn.list


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("share", [1, 300])
def test_no_canary_is_in_anything_that_is_shown(name, share, tmp_path, recwarn, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    plan, ledger = PLANNED[name], account(tmp_path, name)
    rows = poisoned(*[(CANARY_NUMBER, 1.0)] * share)
    frame = pd.DataFrame(array(rows), columns=["a", "b"]).assign(c=CANARY_TEXT)
    release = plan.release(frame, columns=["a", "b"], ledger=ledger)
    for text in (repr(release), str(release), release.to_json(), release._repr_html_()):
        assert_no_canary(text)
    assert_no_canary(repr(plan) + json.dumps(plan.to_dict()))
    for entry in ledger.entries():
        assert_no_canary(json.dumps(entry.to_dict()))
    for path in tmp_path.iterdir():
        assert_no_canary(path.read_bytes())
    assert not recwarn.list
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def written(folder, kind, rows):
    if kind == "CSV":
        return write_csv(folder / "d.csv", rows)
    if kind == "Parquet":
        pq.write_table(arrow_table(rows), folder / "d.parquet", row_group_size=400)
        return folder / "d.parquet"
    return {"table": arrow_table(rows), "frame": arrow_table(rows).to_pandas()}[kind]


@pytest.mark.parametrize("kind", ["CSV", "Parquet", "table", "frame"])
@pytest.mark.parametrize("name", PLANS)
def test_every_source_takes_poison_as_a_record(name, kind, tmp_path):
    plan = PLANNED[name]
    clean, poison = (
        masked(plan.release(written(tmp_path, kind, rows)))
        for rows in (CLEAN, poisoned(POISON[0], POISON[2], POISON[3], POISON[5]))
    )
    assert clean == poison


@pytest.mark.parametrize("name", SECRET)
def test_one_record_more_or_less_changes_no_word(name, tmp_path, monkeypatch):
    # How many are averaged is private output, and may be said.
    monkeypatch.setattr(UnknownNumber, "draw", lambda self, n, source: 860 if n > 800 else None)
    plan, ledger = PLANNED[name], account(tmp_path, name)
    rows = array(CLEAN[:873])
    seen = []
    for data in (rows, rows[:-1], np.vstack([rows, [[CANARY_NUMBER, math.nan]]])):
        release = plan.release(data, ledger=ledger)
        assert not release.failed
        seen.append(masked(release))
        text = repr(release) + json.dumps(seen[-1]["assumptions"])
        assert not {"872", "873", "874"} & set(text.replace("=", " ").split())
    assert seen[0] == seen[1] == seen[2]
    few = [masked(plan.release(rows[:count])) for count in (0, 1, 2)]
    assert few[0] == few[1] == few[2]
    assert len({(entry.note, entry.plan_digest) for entry in ledger.entries()}) == 1


# The account.


@pytest.mark.parametrize("name", PLANS)
def test_a_release_is_charged_once_and_before_it_reads(name, tmp_path, monkeypatch):
    plan, ledger = PLANNED[name], account(tmp_path, name)
    order = []
    charge = Ledger.charge

    def charged(self, *arguments, **options):
        order.append("charged")
        return charge(self, *arguments, **options)

    partitions = MemorySource.partitions

    def read(self):
        order.append("read")
        return partitions(self)

    monkeypatch.setattr(Ledger, "charge", charged)
    monkeypatch.setattr(MemorySource, "partitions", read)
    plan.release(array(poisoned(POISON[0])), ledger=ledger)
    assert order[0] == "charged"
    assert order.count("charged") == 1
    assert order.count("read") >= 1
    assert ledger.spent.amounts == plan.privacy.amounts


@pytest.mark.parametrize("name", PLANS)
def test_an_account_with_too_little_is_not_charged_and_nothing_is_read(name, tmp_path, monkeypatch):
    def read(self):
        raise AssertionError("read before it was paid for")

    monkeypatch.setattr(MemorySource, "partitions", read)
    ledger = account(tmp_path, name, releases=0.5)
    with pytest.raises(mh.BudgetExceeded) as failure:
        PLANNED[name].release(array(poisoned(POISON[0])), ledger=ledger)
    assert_no_canary(words_of(failure.value, frames=False))
    assert ledger.head.count == 0


@pytest.mark.parametrize("name", PLANS)
def test_of_releases_that_race_only_those_that_are_paid_for_come_out(name, tmp_path):
    plan, ledger = PLANNED[name], account(tmp_path, name, releases=2)
    start = threading.Barrier(5)

    def attempt(number):
        start.wait()
        try:
            return plan.release(array(poisoned(POISON[number])), ledger=Ledger.open(ledger.path))
        except mh.BudgetExceeded as error:
            return error

    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(attempt, range(5)))
    released = [each for each in found if isinstance(each, mh.Release)]
    assert len(released) == 2
    assert ledger.head.count == 2
    assert len({release.ledger_head["hash"] for release in released}) == 2
    ledger.verify()


# Sources that fail, change or lie.


@pytest.mark.parametrize("name", PLANS)
def test_a_reader_that_fails_keeps_the_charge_and_its_words_to_itself(name, tmp_path):
    ledger = account(tmp_path, name)
    stream = Again(arrow_table(poisoned(POISON[0])), fail_after=100)
    expected = mh.InvalidInput if name in ORDERED else (mh.SourceFailed, mh.DataChanged)
    with pytest.raises((mh.SourceFailed, mh.DataChanged, mh.InvalidInput)) as failure:
        PLANNED[name].release(stream, ledger=ledger)
    assert_no_canary(words_of(failure.value))
    assert isinstance(failure.value, expected) or ledger.head.count == 0
    assert ledger.head.count == (not isinstance(failure.value, mh.InvalidInput))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("kind", ["CSV", "Parquet"])
@pytest.mark.parametrize("change", ["appended", "touched", "removed"])
def test_a_file_that_changes_after_the_charge_is_noticed(name, kind, change, tmp_path, monkeypatch):
    path = written(tmp_path, kind, poisoned(POISON[0]))
    ledger = account(tmp_path, name)
    charge = Ledger.charge

    def charged(self, *arguments, **options):
        entry = charge(self, *arguments, **options)
        if change == "appended":
            path.write_bytes(path.read_bytes() + b"5,5\n")
        elif change == "touched":
            os.utime(path, ns=(1, 1))
        else:
            path.unlink()
        return entry

    monkeypatch.setattr(Ledger, "charge", charged)
    with pytest.raises((mh.DataChanged, mh.SourceFailed)) as failure:
        PLANNED[name].release(path, ledger=ledger)
    assert_no_canary(words_of(failure.value))
    assert ledger.head.count == 1


@pytest.mark.parametrize("name", PLANS)
def test_text_is_refused_by_its_type_before_the_charge(name, tmp_path):
    ledger = account(tmp_path, name)
    words = pd.DataFrame({"a": [CANARY_TEXT] * N, "b": [str(CANARY_NUMBER)] * N})
    for data in (
        words,
        pa.Table.from_pandas(words),
        words.to_numpy(),
        words.to_numpy().astype(str),
        array(CLEAN).astype(complex),
        array(CLEAN)[:, :1],
        np.zeros((2, 2, 2)),
        words["a"],
        "no such file.csv",
        object(),
        None,
    ):
        with pytest.raises(MuhatError) as failure:
            PLANNED[name].release(data, ledger=ledger)
        assert_no_canary(words_of(failure.value, frames=False))
    assert ledger.head.count == 0


@pytest.mark.parametrize("name", [name for name in PLANS if name not in SECRET])
def test_another_number_of_rows_is_refused_without_saying_which(name, tmp_path):
    ledger = account(tmp_path, name)
    said = set()
    for rows in (array(CLEAN)[:-1], array(CLEAN)[:7], array(CLEAN)[:0]):
        with pytest.raises(mh.InvalidInput) as failure:
            PLANNED[name].release(rows, ledger=ledger)
        said.add(str(failure.value))
    assert len(said) == 1
    assert ledger.head.count == 0


# Hostile arguments.

JUNK = [
    None, "", CANARY_TEXT, b"1", math.nan, math.inf, -math.inf, -1, 0, 1e308, 5e-324, 10**400,
    True, 1j, [], [1], [math.nan, 1], {"a": 1}, (1, 2, 3), object(), np.array(2.5), lambda: 1,
]  # fmt: skip
JUNKED = ("recentring", "statistical", "symmetric", "smooth", "unknown-n, clipped")
PARAMETERS = (
    "n", "privacy", "p", "weights", "neighbors", "missing", "contributions", "mechanism", "clip",
    "scale", "moment", "max_bias", "max_error", "n_min",
)  # fmt: skip


def refusal_of(make):
    """What is said if it is refused; anything but a MuhatError is a failure."""
    try:
        plan = make()
    except MuhatError as error:
        return str(error)
    json.dumps(plan.to_dict(), allow_nan=False)
    return ""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("name", JUNKED)
def test_junk_in_one_argument_is_refused_or_planned(name, parameter):
    for junk in JUNK:
        said = refusal_of(lambda junk=junk: planned(name, **{parameter: junk}))
        assert len(said) < 600
        assert "\n" not in said


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
def test_a_magnitude_or_a_dimension_of_junk_is_refused_or_planned(junk):
    for options in ({"dim": junk}, {"dim": 1, "magnitude": junk}):
        for name in ("recentring", "unknown-n, clipped"):
            said = refusal_of(
                lambda given=options, name=name: planned(name, domain=mh.Reals(**given))
            )
            assert len(said) < 600
            assert "\n" not in said


def test_every_number_that_may_be_drawn_has_a_plan():
    # After the charge no number of records may be refused: that would tell about it.
    for name in ("unknown-n, recentring", "unknown-n, clipped", "unknown-n, symmetric"):
        plan = PLANNED[name]
        for n in (plan.n_min, plan.n_min + 1, 997, 10**4, 10**6, 10**9):
            assert plan["mean"].mean_for(n).n == n
    wide = mh.Reals(1, 1e14)
    plan = planned("unknown-n, clipped", domain=wide, moment=(2, 1e3), max_bias=1.0)
    for n in (*range(plan.n_min, plan.n_min + 4), 10**3, 10**5, 10**7):
        assert plan["mean"].mean_for(n).n == n


# Research: published on purpose, but never by an exception.

MEAN = SymmetricMean.planned(N, mh.ApproxDP(epsilon=1, delta=1e-3), (4, 1.4), scale=1.0)
RESEARCH = {
    "name and shame": lambda data, **extra: research.name_and_shame(data, 1e-9, **extra),
    "combination": lambda data, **extra: research.name_and_shame_combination(
        data, mh.ApproxDP(epsilon=1, delta=1e-9), (-1, 1), (4, 1.4), **extra
    ),
    "fallback": lambda data, **extra: research.symmetric_mean_with_fallback(data, MEAN, **extra),
}


@pytest.mark.parametrize("name", RESEARCH)
def test_research_needs_consent_and_fails_without_words(name):
    column = np.array([row[0] for row in poisoned(POISON[0])])
    for consent in ({}, {"accept_disclosure": 1}, {"accept_disclosure": np.True_}):
        with pytest.raises(mh.InvalidInput) as failure:
            RESEARCH[name](column, **consent)
        assert_no_canary(words_of(failure.value, frames=False))
    stream = Again(pa.table({"a": column}), fail_after=100)
    with pytest.raises(MuhatError) as failure:
        RESEARCH[name](stream, accept_disclosure=True)
    assert_no_canary(words_of(failure.value))
    for text in (np.array([CANARY_TEXT] * N), [CANARY_TEXT] * N):
        with pytest.raises(MuhatError) as failure:
            RESEARCH[name](text, accept_disclosure=True)
        assert_no_canary(words_of(failure.value, frames=False))


@pytest.mark.parametrize("name", RESEARCH)
def test_research_takes_poison_as_a_record(name):
    for row in POISON:
        column = array(poisoned(row))[:, 0]
        assert math.isfinite(RESEARCH[name](column, accept_disclosure=True))
