"""Missing values where nobody has bounded the records: left out, and the rule that was used."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import muhat as mh

RHO = mh.ZCDP(rho=0.5)
LOOSE = mh.Reals(1, 1e4)
PROMISES = [RHO, mh.GDP(mu=1), mh.PureDP(epsilon=2), mh.ApproxDP(epsilon=1, delta=1e-6)]


def wages(rows: int = 4000, seed: int = 1, part: float = 0.44) -> tuple[pd.DataFrame, np.ndarray]:
    """A skewed column far from 0 of which many values are missing, and those that are not."""
    generator = np.random.default_rng(seed)
    values = 100 + generator.gamma(4.0, 4.0, rows)
    values[generator.random(rows) < part] = np.nan
    return pd.DataFrame({"pay": values}), values[np.isfinite(values)]


def released(data: Any, **options: Any) -> mh.Release:
    options = {"columns": ["pay"], "domain": LOOSE, "privacy": RHO, **options}
    return mh.mean(data, **options)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
def test_the_mean_of_a_named_column_is_that_of_its_recorded_values(promise: Any) -> None:
    data, there = wages()
    release = released(data, privacy=promise)
    assert release.missing == "drop"
    assert abs(float(release) - there.mean()) < 1.0
    assert release.recorded is not None
    assert abs(release.recorded.value[0] - len(there)) < 8 * release.recorded.standard_error[0]
    text = str(release)
    assert "Missing values are left out" in text
    assert "recorded ± s.e." in text
    assert "counts as the centre" not in text
    assert "of about 2," in text
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert str(again) == text


def test_values_that_are_missing_pull_no_centre_although_they_are_nine_in_ten() -> None:
    data, there = wages(20_000, part=0.9)
    release = released(data)
    assert abs(float(release) - there.mean()) < 0.2
    low, high = release.domain.bounding_box
    assert 90 < low[0] < high[0] < 200


@pytest.mark.slow
@pytest.mark.parametrize("promise", [RHO, mh.PureDP(epsilon=2)], ids=["normal", "pure"])
def test_intervals_hold_the_clipped_mean_of_the_recorded_values_and_what_lies_outside(
    promise: Any,
) -> None:
    # 20 misses or more of 100 at 5 % each: 1e-7, for each of three intervals.
    data, there = wages(1500, seed=3)
    missed = np.zeros(3, int)
    for _ in range(100):
        release = released(data, privacy=promise)
        ball, outside = release.domain, release.outside
        clipped = np.clip(there, ball.center - ball.radius, ball.center + ball.radius).mean()
        lower, upper = release.interval()
        beyond = int(np.sum(np.abs(there - ball.center) > ball.radius))
        number, error = release.recorded.value[0], release.recorded.standard_error[0]
        missed += [
            not lower[0] <= clipped <= upper[0],
            not outside.lower <= beyond <= outside.upper,
            abs(number - len(there)) > 2.2 * error,
        ]
    assert (missed < 20).all()


def test_several_columns_lose_whole_records() -> None:
    generator = np.random.default_rng(4)
    rows = generator.normal([50.0, -20.0], 1.0, (4000, 2))
    # What lacks one column is far away in the other.
    rows[:800] = [np.nan, 900.0]
    rows[800:1600] = [900.0, np.nan]
    data = pd.DataFrame(rows, columns=["a", "b"])
    for promise in (RHO, mh.PureDP(epsilon=4)):
        release = released(data, columns=["a", "b"], domain=mh.Reals(2, 1e4), privacy=promise)
        assert release.value == pytest.approx([50.0, -20.0], abs=0.5)
        assert "Records with a missing value are left out." in str(release)
        assert release.recorded is not None
        assert abs(release.recorded.value[0] - 2400) < 8 * release.recorded.standard_error[0]


def test_center_and_none_are_what_they_were() -> None:
    data, there = wages(part=0.2)
    release = released(data, missing="center")
    assert "counts as the centre that was found" in str(release)
    assert release.recorded is None
    whole = pd.DataFrame({"pay": there})
    declared = released(whole, missing="none")
    assert "Nothing is missing, as was declared" in str(declared)
    assert abs(float(declared) - there.mean()) < 0.2


def test_a_schema_without_nulls_says_that_nothing_is_missing() -> None:
    field = pa.field("pay", pa.int64(), nullable=False)
    table = pa.table({"pay": np.arange(2000)}, schema=pa.schema([field]))
    assert released(table).missing == "none"


def test_arrays_without_named_columns_keep_the_centre() -> None:
    rows = np.random.default_rng(5).normal(30, 1, (2000, 1))
    assert mh.mean(rows, domain=LOOSE, privacy=RHO).missing == "center"
    assert mh.mean(rows, domain=LOOSE, privacy=RHO, missing="drop").missing == "drop"
    assert mh.mean(rows, columns=[0], domain=LOOSE, privacy=RHO).missing == "drop"


@pytest.mark.parametrize("options", [{}, {"moment": (2, 10.0)}], ids=["learnt", "bounded bias"])
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
def test_a_column_of_words_has_no_value_and_says_so(promise: Any, options: Any) -> None:
    data = pd.DataFrame({"pay": np.full(3000, np.nan)})
    release = released(data, privacy=promise, **options)
    assert release.failed
    assert "recorded values" in str(release)
    json.loads(release.to_json())


def test_too_few_recorded_values_are_no_error() -> None:
    # Most often too few to learn a ball, sometimes told from none: a reason, or a value.
    for count in (1, 30, 150):
        values = np.full(3000, np.nan)
        values[:count] = np.arange(count)
        data = pd.DataFrame({"pay": values})
        for promise in PROMISES:
            release = released(data, privacy=promise)
            assert release.failed or np.isfinite(release.value).all()
        release = released(data, moment=(2, 100.0))
        assert release.failed or np.isfinite(release.value).all()


def test_the_estimators_of_a_paper_take_complete_records_only() -> None:
    data, _ = wages()
    assert released(data, mechanism="clipped").missing == "center"
    with pytest.raises(mh.InvalidInput, match="for complete records"):
        released(data, mechanism="clipped", missing="drop")


def test_the_shares_of_the_promise_add_up_with_the_first_count() -> None:
    plan = mh.plan_mean(domain=LOOSE, n=4000, privacy=RHO, missing="drop")
    other = mh.plan_mean(domain=LOOSE, n=4000, privacy=RHO)
    assert plan.digest != other.digest
    assert plan.shares["the number of complete records"] > 0
    # Ratio of the errors for complete data: the first count is all that differs.
    assert 1 < plan.error_at(1.0) / other.error_at(1.0) < 1.01
    assert "left out" in plan.describe()


@pytest.mark.parametrize("more", [{}, {"moment": (2, 12.0)}], ids=["learnt", "bounded bias"])
def test_with_a_secret_n_the_number_is_that_of_the_recorded_values(more: Any) -> None:
    data, there = wages(6000)
    promise = mh.ApproxDP(epsilon=2, delta=1e-6)
    release = released(data, privacy=promise, n=None, n_min=1000, **more)
    assert release.averaged is not None
    assert len(there) - 100 < release.averaged <= len(there)
    assert abs(float(release) - there.mean()) < 2
    assert release.missing == "drop"


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
def test_means_of_bounded_bias_are_of_a_part_of_the_recorded_values(promise: Any) -> None:
    data, there = wages(6000)
    plan = mh.plan_mean(
        domain=LOOSE, n=6000, privacy=promise, moment=(2, 9.0), missing="drop", max_bias=1.0
    )
    release = plan.release(data, ["pay"])
    assert release.averaged is not None
    assert 0.8 * len(there) < release.averaged <= len(there)
    assert abs(float(release) - there.mean()) < 2
    assert release.bias is not None
    assert release.bias <= 1.0
    # Fewer records than all n: the error says so.
    assert release.rmse is not None
    assert release.rmse > plan.rmse
    assert "drawn at random" in str(release)
    assert "counts as the middle" not in str(release)
    assert np.ptp(release.interval(target="population")) < 2
    # Only noise is drawn here, and must pass 9 deviations if normal, 13.9 scales if Laplace: 8e-7.
    low, high = release.interval(1 - 1e-5, target="population")
    assert low[0] < 116 < high[0]
    assert mh.Release.from_json(release.to_json()).to_json() == release.to_json()


def test_symmetric_means_leave_missing_values_out() -> None:
    generator = np.random.default_rng(6)
    values = generator.normal(500, 3, 8000)
    values[:4000] = np.nan
    data = pd.DataFrame({"pay": values})
    release = released(
        data,
        domain=mh.Reals(1),
        privacy=mh.ApproxDP(epsilon=1, delta=1e-6),
        moment=(4, 5.0),
        symmetric=True,
    )
    assert abs(float(release) - 500) < 1
    assert release.averaged is not None
    assert 3000 < release.averaged <= 4000


@pytest.mark.parametrize("domain", [mh.Reals(1, 100), mh.Box([0], [10])])
def test_a_protocol_says_who_should_answer(domain) -> None:
    people = np.random.default_rng(1).normal(5, 1, (20_000, 1))
    promise = mh.PureDP(epsilon=1)
    protocol = mh.protocols.local_mean(domain=domain, n=20_000, privacy=promise)
    text = str(mh.protocols.simulate(protocol, people))
    assert "only people who have one should answer" in text


def test_the_steps_of_a_release_spend_the_promise_and_no_more() -> None:
    data, _ = wages()
    for more in ({}, {"moment": (2, 12.0)}):
        release = released(data, **more)
        (line,) = [each for each in release.assumptions if each.startswith("the steps taken")]
        shares = [Fraction(part) for part in re.findall(r"\d+/\d+", line)]
        assert line.split(": ")[1].startswith("number ")
        assert sum(shares) == 1
