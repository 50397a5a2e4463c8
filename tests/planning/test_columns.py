"""Missing values: left out of their column, by every promise, with n public and secret.

Values carry real noise; comparisons allow 20 standard errors, so that even for Laplace noise a
false alarm is below 1e-11 a comparison.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muhat as mh

RNG = np.random.default_rng(16)
FRAME = pd.DataFrame({"wage": RNG.gamma(4, 4, 7000), "age": RNG.integers(16, 91, 7000) * 1.0})
FRAME.loc[RNG.random(7000) < 0.44, "wage"] = np.nan
FRAME.loc[::50, "age"] = np.nan
BOUNDS = {"wage": (0, 50), "age": (16, 90)}
CLIPPED = FRAME.clip([0, 16], [50, 90], axis=1)
PROMISES = [
    mh.ZCDP(rho=0.5),
    mh.GDP(mu=1.0),
    mh.PureDP(epsilon=1.0),
    mh.ApproxDP(epsilon=1.0, delta=1e-6),
]
EACH = pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
NORMAL_AND_PURE = pytest.mark.parametrize(
    "promise", [mh.GDP(mu=1.0), mh.PureDP(epsilon=1.0)], ids=["normal", "pure"]
)
BOTH = pytest.mark.parametrize("n", [7000, None], ids=["public", "secret"])


@EACH
@BOTH
def test_a_mean_is_that_of_the_recorded_values(promise, n):
    release = mh.mean(FRAME, domain=BOUNDS, privacy=promise, n=n)
    errors = np.abs(release.value - CLIPPED.mean().to_numpy())
    assert (errors < 20 * release.standard_error).all()
    assert (release.standard_error < [0.5, 0.3]).all()
    lower, upper = release.interval(1 - 1e-9)
    assert ((lower < CLIPPED.mean()) & (CLIPPED.mean() < upper)).all()
    counts = FRAME.count().to_numpy()
    assert (np.abs(release.recorded.value - counts) < 20 * release.recorded.standard_error).all()
    assert (release.recorded.standard_error < 100).all()


@EACH
@BOTH
def test_a_sum_is_that_of_the_recorded_values(promise, n):
    release = mh.sum(FRAME, domain=BOUNDS, privacy=promise, n=n)
    errors = np.abs(release.value - CLIPPED.sum().to_numpy())
    assert (errors < 20 * release.standard_error).all()
    assert (release.standard_error < [1000, 2000]).all()
    counts = FRAME.count().to_numpy()
    assert (np.abs(release.recorded.value - counts) < 20 * release.recorded.standard_error).all()
    assert "found privately" not in repr(release)


def test_a_sum_of_a_public_box_was_not_found_privately():
    far = mh.Box([1000] * 3, [1100] * 3)
    release = mh.sum(np.full((9, 3), 1050.0), domain=far, n=None, privacy=mh.GDP(mu=1))
    assert release.mechanism == "joint"
    assert not release.domain_is_learnt
    assert "found privately" not in repr(release)


@BOTH
def test_the_rule_and_the_number_of_recorded_values_are_printed_everywhere(n):
    release = mh.mean(FRAME, domain=BOUNDS, privacy=mh.ZCDP(rho=0.5), n=n)
    for text in (repr(release), release._repr_html_()):
        assert "Missing values are left out" in text
        assert "recorded values" in text
    fields = json.loads(release.to_json())
    assert fields["missing"] == "drop"
    assert fields["recorded"]["value"] == release.recorded.value.tolist()
    again = mh.Release.from_json(release.to_json())
    assert repr(again) == repr(release)
    assert again.to_json() == release.to_json()
    for rule, words in (("center", "counts as the centre"), ("none", "as was declared")):
        other = mh.mean(FRAME, domain=BOUNDS, privacy=mh.ZCDP(rho=0.5), n=n, missing=rule)
        assert words in repr(other)
        assert words in other._repr_html_()
        assert json.loads(other.to_json())["missing"] == rule


def test_vectors_of_a_domain_have_the_centre_in_place_of_what_is_missing():
    box = mh.Box([0, 16], [50, 90])
    release = mh.mean(FRAME.to_numpy(), domain=box, privacy=mh.ZCDP(rho=0.5))
    filled = CLIPPED.fillna({"wage": 25, "age": 53}).mean().to_numpy()
    assert (np.abs(release.value - filled) < 20 * release.standard_error).all()
    assert release.missing == "center"
    dropped = mh.mean(FRAME.to_numpy(), domain=box, privacy=mh.ZCDP(rho=0.5), missing="drop")
    errors = np.abs(dropped.value - CLIPPED.mean().to_numpy())
    assert (errors < 20 * dropped.standard_error).all()


@EACH
@BOTH
def test_a_column_of_words_has_no_recorded_values(tmp_path, promise, n):
    """Its noisy count passes for one of a value or more in 5 % of releases; never by much."""
    path = tmp_path / "t.csv"
    rows = [f"{word},{age}" for word, age in zip("ab" * 3500, FRAME["age"], strict=True)]
    path.write_text("\n".join(["name,age", *rows]))
    bounds = {"name": (0, 50), "age": (16, 90)}
    release = mh.mean(path, domain=bounds, privacy=promise, n=n)
    assert release.recorded.value[0] < 20 * release.recorded.standard_error[0]
    if release.empty[0]:
        assert math.isnan(release.value[0])
        assert "no recorded values" in repr(release)
        assert json.loads(release.to_json())["value"][0] is None
        assert mh.Release.from_json(release.to_json()).empty.tolist() == [True, False]
        assert release.interval()[0][0] == 0
        assert release.interval()[1][0] == 50
    else:
        assert math.isinf(release.standard_error[0])
    assert not release.empty[1]


def test_nothing_recorded_is_said_in_most_releases():
    data = {"a": np.full(1000, np.nan)}
    plan = mh.plan_mean(domain={"a": (0, 1)}, n=1000, privacy=mh.ZCDP(rho=0.5))
    empty = sum(bool(plan.release(data).empty[0]) for _ in range(400))
    # 2.5 % of noisy counts are beyond 1.96 deviations: 10 expected, 40 has a chance below 1e-11.
    assert empty > 360


def test_a_schema_without_nulls_declares_that_nothing_is_missing(tmp_path):
    values = pa.array(np.arange(100.0))
    whole = pa.table([values], schema=pa.schema([pa.field("a", pa.float64(), nullable=False)]))
    for n in (mh.planning.shortcuts.COUNTED, 100, None):
        release = mh.mean(whole, domain={"a": (0, 100)}, privacy=mh.ZCDP(rho=0.5), n=n)
        assert release.missing == "none"
    open_to_nulls = pa.table({"a": values})
    assert mh.mean(open_to_nulls, domain={"a": (0, 100)}, privacy=mh.ZCDP(rho=1)).missing == "drop"
    told = mh.mean(whole, domain={"a": (0, 100)}, privacy=mh.ZCDP(rho=1), missing="drop")
    assert told.missing == "drop"
    pq.write_table(whole, tmp_path / "a.parquet")
    pq.write_table(open_to_nulls, tmp_path / "b.parquet")
    one = mh.mean(tmp_path / "a.parquet", domain={"a": (0, 100)}, privacy=mh.ZCDP(rho=1))
    both = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert one.missing == "none"
    assert mh.mean(both, domain={"a": (0, 100)}, privacy=mh.ZCDP(rho=1)).missing == "drop"


def test_a_certificate_is_about_complete_data_at_the_worst_mean():
    plan = mh.plan_mean(domain={"a": (0, 1)}, n=1000, privacy=mh.GDP(mu=1))
    assert plan.expected_error is None
    assert plan.error_at(1000) == pytest.approx(math.sqrt(4 / 3) / 1000, rel=1e-6)
    assert plan.certificate.error == plan.error_at(1000)
    assert "if nothing is missing" in plan.certificate.metric
    whole = mh.plan_mean(domain={"a": (0, 1)}, n=1000, privacy=mh.GDP(mu=1), missing="none")
    # A quotient of noisy numbers is no additive noise: the bounds on that are of the whole alone.
    others = [each for each in whole.certificate.bounds if each.mechanisms != "additive"]
    assert plan.certificate.bounds == tuple(others)
    beside = whole.certificate.error / max(each.value or 0.0 for each in others)
    assert beside == pytest.approx(plan.certificate.ratio / math.sqrt(4 / 3))
    assert whole.certificate.ratio < beside
    secret = mh.plan_mean(domain={"a": (0, 1)}, n=None, privacy=mh.GDP(mu=1))
    assert secret.certificate is None


@NORMAL_AND_PURE
@pytest.mark.parametrize("mean", [0.5, 0.99])
def test_the_error_at_a_mean_is_the_one_that_is_measured(promise, mean):
    """2,000 releases: the mean square is within 35 % but for 1e-8 (7 deviations of Laplace's,
    whose squares are skewed)."""
    data = {"a": np.array([mean, np.nan] * 2000)}
    plan = mh.plan_mean(domain={"a": (0, 1)}, n=4000, privacy=promise)
    errors = [float(plan.release(data)) - mean for _ in range(2000)]
    expected = plan.standard_error_at(2000, np.array([mean - 0.5]))[0]
    assert np.mean(np.square(errors)) == pytest.approx(expected**2, rel=0.35)


@NORMAL_AND_PURE
@BOTH
def test_intervals_hold_the_mean_of_the_recorded_values_as_often_as_they_say(promise, n):
    """300 releases at 90 %: 240 to 295 held, but for one time in ten million."""
    data = {"a": np.array([0.9] * 30 + [0.2] * 10 + [np.nan] * 20)}
    rows = None if n is None else 60
    plan = mh.plan_mean(domain={"a": (0, 1)}, n=rows, privacy=promise)
    held = 0
    for _ in range(300):
        lower, upper = plan.release(data).interval(0.9)
        held += bool(lower[0] <= 0.725 <= upper[0])
    assert 240 <= held <= 295


TWO = mh.PureDP(epsilon=1.0), {"a": (0, 1), "b": (-2, 2)}


def test_sums_and_counts_of_several_columns_are_read_off_rows_of_the_cube():
    """Variances (2d + 1)(2d + 2)/3·(2 + 2τ²), where sum and count as they are had (4 + τ²)."""
    for dim in (2, 3, 5):
        box = mh.Box([-1] * dim, [1] * dim)
        plan = mh.plan_mean(domain=box, n=10, privacy=TWO[0], missing="drop")
        worst = (2 * dim + 1) * (2 * dim + 2) / 3 * 4
        assert plan.error_at(1) == pytest.approx(math.sqrt(dim * worst), rel=1e-9)
        middle = plan.standard_error_at(1, np.zeros(dim))
        assert middle == pytest.approx(np.full(dim, math.sqrt(worst / 2)), rel=1e-9)


@pytest.mark.parametrize("mean", [0.5, 0.98])
def test_the_errors_of_several_columns_are_those_that_are_measured(mean):
    """2,000 releases: mean squares are within 35 % but for 1e-7 (a kurtosis below 6)."""
    data = {"a": np.array([mean, np.nan] * 2000), "b": np.array([4 * mean - 2] * 4000)}
    plan = mh.plan_mean(domain=TWO[1], n=4000, privacy=TWO[0])
    releases = [plan.release(data) for _ in range(2000)]
    errors = np.array([release.value for release in releases]) - [mean, 4 * mean - 2]
    for column, (n, half) in enumerate([(2000, 0.5), (4000, 2.0)]):
        expected = plan.standard_error_at(n, half * np.full(2, 2 * mean - 1))[column]
        assert np.mean(errors[:, column] ** 2) == pytest.approx(expected**2, rel=0.35)
    counts = np.array([release.recorded.value for release in releases]) - [2000, 4000]
    said = releases[0].recorded.standard_error
    # Nobody counts more values than there are records: of a complete column half of the noise.
    assert np.mean(counts**2, axis=0) == pytest.approx(said**2 * [1, 0.5], rel=0.35)


def test_intervals_of_several_columns_hold_as_often_as_they_say():
    """300 releases at 90 %: 240 to 295 held, but for one time in ten million a column."""
    data = {"a": np.array([0.9] * 30 + [0.2] * 10 + [np.nan] * 20), "b": np.full(60, 0.5)}
    plan = mh.plan_mean(domain=TWO[1], n=60, privacy=TWO[0])
    held = np.zeros(2)
    for _ in range(300):
        release = plan.release(data)
        lower, upper = release.interval(0.9)
        held += (lower <= [0.725, 0.5]) & (upper >= [0.725, 0.5])
    assert ((held >= 240) & (held <= 295)).all()
    assert release.noise.sum_spread.law.name == "diamond-norm"
    assert mh.Release.from_json(release.to_json()).to_json() == release.to_json()


@pytest.mark.parametrize("dim", [2, 3])
def test_purely_private_means_of_a_secret_number_have_the_noise_of_the_cube(dim):
    """(d + 2)(d + 3)/3 on sums and count, in half-widths and records, where the norm of the
    smallest ellipsoid has (d + 2)(d + √d) and (d + 2)(√d + 1)."""
    plan = mh.plan_mean(
        domain=mh.Box([-1] * dim, [1] * dim), n=None, privacy=mh.PureDP(epsilon=1), missing="none"
    )
    variance = (dim + 2) * (dim + 3) / 3
    assert plan.error_at(1) == pytest.approx(math.sqrt(2 * dim * variance), rel=1e-6)
    assert plan.error_at(1) < math.sqrt((dim + 2) * dim) * (math.sqrt(dim) + 1) * 0.83
