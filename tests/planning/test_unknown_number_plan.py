"""Means in Reals of a secret number of records: what is said, and what no value means."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muhat as mh
from changed import changed
from muhat.mechanisms.learning.unknown_number import UnknownNumber
from muhat.noise.laws import LAWS

PROMISE = mh.ApproxDP(epsilon=4, delta=1e-5)
LINE = mh.Reals(dim=1, magnitude=1e3)

KINDS: dict[str, dict[str, Any]] = {
    "clipped": {"moment": (2, 1.0)},
    "symmetric": {"moment": (4, 1.4), "symmetric": True},
    "karwa-vadhan": {"moment": (4, 1.4), "mechanism": "karwa-vadhan"},
    "recentring": {},
}


def plan(kind: str = "clipped", n_min: int = 1500, **options: Any) -> mh.Plan:
    given = {"domain": LINE, "n": None, "n_min": n_min, "privacy": PROMISE, **KINDS[kind]}
    made = mh.plan_mean(**{**given, **options})
    assert isinstance(made, mh.Plan)
    return made


def records(n: int, dim: int = 1) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((n, dim)) + 5.0


def ledger(folder: Path) -> mh.Ledger:
    budget = mh.ApproxDP(epsilon=100, delta=0.1)
    return mh.Ledger.create(folder / "budget.db", budget=budget, neighbors="add-remove")


def masked(release: mh.Release) -> tuple[str, str]:
    """All that is said but for what noise was added to."""
    outside, noise = release.outside, release.noise
    if outside is not None:
        # The steps of stairs are as long as the interval that was learnt.
        noise = replace(noise, law=LAWS["normal"], scales=np.ones(1))
    same = changed(
        release,
        value=np.full(len(release.value), 3.25),
        domain=mh.Box([0.0], [1.0]),
        unshrunk=None,
        outside=None if outside is None else replace(outside, value=1.0, lower=0.0, upper=2.0),
        noise=noise,
    )
    return same.to_json(), repr(same)


@pytest.mark.parametrize("kind", KINDS)
def test_one_record_more_changes_nothing_if_as_many_are_averaged(
    kind: str,
    capfd: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = plan(kind)
    # N is private output: what is said may depend on it, and on nothing else about n.
    monkeypatch.setattr(UnknownNumber, "draw", lambda self, n, source: 2900)
    said = set()
    for n in (3000, 3001):
        release = made.release(records(n))
        assert abs(float(release) - 5.0) < 2.0
        said.add(masked(release))
    assert len(said) == 1
    fields = json.loads(next(iter(said))[0])
    assert fields["n"] is None
    assert fields["averaged"] == 2900
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


@pytest.mark.parametrize("n", [0, 1, 1499])
def test_too_few_records_have_no_value_and_the_charge_stays(n: int, tmp_path: Path) -> None:
    account = ledger(tmp_path)
    made = plan()
    release = made.release(records(n), ledger=account)
    assert release.failed
    assert release.failure == "there may be fewer records than n_min"
    assert np.isnan(release.value).all()
    assert release.bias is None
    fields = json.loads(release.to_json())
    assert fields["value"] is None
    assert mh.Release.from_json(release.to_json()).to_json() == release.to_json()
    assert "No value came out; the promise is spent" in repr(release)
    assert len(account.entries()) == 1
    assert account.spent.amounts == PROMISE.amounts
    assert len({masked_failure(made.release(records(few))) for few in (0, 5, 1499)}) == 1


def masked_failure(release: mh.Release) -> tuple[str, str]:
    return release.to_json(), repr(release)


def test_enough_records_always_have_a_value() -> None:
    made = plan()
    assert made["mean"].number.enough == 1500 + 2 * made["mean"].number.margin
    for _ in range(5):
        assert not made.release(records(made["mean"].number.enough)).failed


@pytest.mark.parametrize("kind", ["clipped", "symmetric", "karwa-vadhan"])
def test_the_bias_holds_for_every_number_of_records(kind: str) -> None:
    made = plan(kind)
    assert made.bias is not None
    for n in (1500, 1501, 5000, 10**6, 10**12):
        other = made["mean"].mean_for(n)
        assert other.name == made["mean"].inner.name
        assert other.bias <= made.bias
        stated = float(re.findall(r"at most ([\d.e-]+);", made.assumptions[1])[0])
        assert made.bias * (1 - 1e-9) <= stated <= 1.01 * made.bias
    limited = plan(kind, max_bias=0.3, max_error=1.0)
    assert limited.bias <= 0.3 + 1e-9
    assert limited["mean"].mean_for(10**6).rmse < limited["mean"].inner.rmse


@pytest.mark.parametrize("privacy", [PROMISE, mh.ApproxDP(epsilon=1 / 3, delta=1e-7 / 3)])
def test_both_halves_together_keep_the_promise(privacy: Any) -> None:
    made = plan("clipped", n_min=10**5, privacy=privacy)
    mean = made["mean"]
    halves = zip(mean.inner.privacy.amounts, (mean.number.epsilon, mean.number.delta), strict=True)
    for parts, whole in zip(halves, privacy.amounts, strict=True):
        assert Fraction(999, 1000) * whole < sum(parts) <= whole
    less = replace(made.terms, privacy=mh.ApproxDP(epsilon=0.1, delta=1e-9))
    with pytest.raises(mh.InvalidInput, match="make a new plan"):
        replace(mean, terms=less)


def test_a_plan_says_all_it_knows_before_any_data() -> None:
    made = plan()
    assert made.mechanism == "unknown-n, clipped-laplace"
    assert (made.n, made.n_min, made.dim, made.contributions) == (None, 1500, 1, 1)
    assert made.expected_error is made.standard_error is made.covariance is None
    assert made.error_at(1500) is None
    assert made.error_at(10_000) < made["mean"].inner.rmse
    assert made["mean"].inner.rmse == made.error_at(made["mean"].number.enough)
    text = made.describe()
    for words in ("A secret number of records", "1500 records, the least", "clipped-laplace"):
        assert words in text
    assert repr(made) == text
    assert "<table>" in made._repr_html_()
    fields = json.loads(json.dumps(made.to_dict()))
    assert (fields["n"], fields["n_min"], fields["bias"]) == (None, 1500, made.bias)
    assert not any(line.startswith("n = ") for line in made.assumptions)
    with pytest.raises(mh.InvalidInput, match="radius"):
        plan("recentring").error_at(10_000)


def test_the_digest_follows_everything_that_decides_the_release() -> None:
    made = [
        *map(plan, KINDS),
        plan(n_min=1501),
        plan(privacy=mh.ApproxDP(epsilon=5, delta=1e-5)),
        plan(max_bias=1e-3),
        plan(domain=mh.Reals(1, 2e3)),
    ]
    assert len({each.digest for each in made}) == len(made)
    assert plan().assuming("x").digest == plan().digest
    assert plan().assuming("x").assumptions[-1] == "x"


def test_tables_and_files_are_read_and_missing_values_count(tmp_path: Path) -> None:
    rows = records(4000)[:, 0]
    rows[::100] = np.nan
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"x": rows}), path, row_group_size=500)
    for data in (rows, pd.DataFrame({"x": rows}), path):
        release = mh.mean(data, domain=LINE, n=None, n_min=1500, privacy=PROMISE, moment=(2, 1.0))
        assert abs(float(release) - 5.0) < 1.0


def test_vectors_of_a_secret_number(tmp_path: Path) -> None:
    made = plan(domain=mh.Reals(2, 1e3), moment=(2, [1.0, 3.0]), n_min=3000)
    release = made.release(records(5000, 2) * [1, 3], ledger=ledger(tmp_path))
    assert (np.abs(release.value - [5, 15]) < 3).all()


def test_a_refused_plan_charges_nothing(tmp_path: Path) -> None:
    account = ledger(tmp_path)
    for options in (
        {"n_min": None},
        {"privacy": mh.PureDP(epsilon=1)},
        {"privacy": mh.ZCDP(rho=1)},
        {"contributions": 2},
        {"max_error": 1e-9},
        {"unbiased": True},
        {"symmetric": True, "n_min": 20},
    ):
        given = {"domain": LINE, "n": None, "n_min": 100, "privacy": PROMISE, "moment": (2, 1.0)}
        with pytest.raises((mh.InvalidInput, mh.Impossible)):
            mh.mean(records(3000), ledger=account, **{**given, **options})
    assert account.entries() == []


@pytest.mark.parametrize("kind", ["clipped", "symmetric", "karwa-vadhan"])
def test_how_many_were_averaged_and_the_error_for_so_many_are_released(kind: str) -> None:
    made = plan(kind)
    release = made.release(records(3000))
    averaged = release.averaged
    assert averaged is not None
    assert 3000 - 2 * made["mean"].number.margin <= averaged <= 3000
    inner = made["mean"].mean_for(averaged)
    assert release.rmse == inner.rmse
    assert release.moment is not None
    assert release.moment.describe() == inner.moment.describe()
    assert release.standard_error is not None
    assert release.standard_error == pytest.approx(inner.standard_error)
    lower, upper = release.interval(target="population")
    least, most = release.interval()
    assert lower[0] < least[0] < float(release) < most[0] < upper[0]
    # Only noise is drawn here: Laplace, and more than 13.4 of its scales away, 8e-7.
    sure = release.interval(1 - 1e-5, target="population")
    assert sure[0][0] < 5.0 < sure[1][0]
    assert f"n secret, {averaged} averaged" in repr(release)
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert again.interval(target="population")[0] == pytest.approx(lower)
