"""Several quantiles of a column in one choice: where it is taken, and what it says is so."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import muhat as mh

QUARTILES = [0.25, 0.5, 0.75]
OPTIONS = {"lower": 0, "upper": 1e6, "privacy": mh.PureDP(epsilon=1.0)}
DATA = np.random.default_rng(7).integers(0, 10**6, 1000).astype(float)


def rank_error(data: np.ndarray, value: float, q: float) -> int:
    """The least τ for which the value lies between the records of the ranks m ± τ."""
    ordered = np.sort(data)
    rank = max(1, int(np.ceil(q * len(ordered) - 1e-9)))
    below, upto = np.searchsorted(ordered, value), np.searchsorted(ordered, value, "right")
    return int(max(0, below + 1 - rank, rank - upto))


@pytest.mark.parametrize("n", [1000, None])
@pytest.mark.parametrize("missing", ["none", "drop"])
@pytest.mark.parametrize("q", [QUARTILES, [part / 10 for part in range(1, 10)]])
def test_it_is_taken_where_it_errs_least_and_the_plan_says_what_else_there_is(n, missing, q):
    plan = mh.plan_quantile(q, n=n, missing=missing, **OPTIONS)
    fields = plan.to_dict()
    others = dict(plan.alternatives)
    if n is None and len(q) == 3:
        # Halves of a secret number of records are moved by half a record.
        assert plan.mechanism == "recursive-exponential"
        assert fields["typical_rank_error"] * 1.05 < others["joint-exponential"]
        return
    assert plan.mechanism == "joint-exponential"
    assert fields["typical_rank_error"] * 1.4 < others["exponential"]
    assert fields["typical_rank_error"] * 6 < others["noisy-search (laplace)"]
    said = plan.describe()
    assert "joint exponential mechanism" in said
    assert f"one choice of {len(q)} cells" in said


def test_under_zcdp_few_per_cent_are_no_reason_and_one_quantile_is_a_choice() -> None:
    fifths = [0.1, 0.3, 0.5, 0.7, 0.9]
    for q, n, taken in (
        (fifths, 1000, "exponential"),
        (fifths, None, "joint-exponential"),
        (QUARTILES, 1000, "recursive-exponential"),
        (QUARTILES, None, "recursive-exponential"),
    ):
        plan = mh.plan_quantile(q, lower=0, upper=1e6, n=n, privacy=mh.ZCDP(0.5))
        assert plan.mechanism == taken
    assert mh.plan_quantile(0.5, **OPTIONS).mechanism == "exponential"
    gaussian = mh.plan_quantile(QUARTILES, lower=0, upper=1e6, privacy=mh.GDP(1.0))
    assert gaussian.mechanism.startswith("noisy-search")


@pytest.mark.parametrize("n", [1000, None])
def test_values_ascend_with_q_in_any_order_and_lie_within_the_rank_error(n) -> None:
    q = [0.75, 0.25, 0.5, 0.25, 0.0, 1.0]
    release = mh.plan_quantile(q, n=n, **OPTIONS).release(DATA)
    values = release.value.ravel()
    assert (np.diff(values[np.argsort(q, kind="stable")]) >= 0).all()
    errors = release.rank_error(1 - 1e-9).ravel()
    for value, fraction, error in zip(values, q, errors, strict=True):
        assert rank_error(DATA, value, fraction) <= error
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert (again.rank_error() == release.rank_error()).all()


def test_missing_values_are_left_out_and_a_secret_number_is_told_with_noise() -> None:
    holes = np.where(np.arange(2000) % 2, np.nan, np.repeat(DATA, 2))
    release = mh.plan_quantile(QUARTILES, n=2000, **OPTIONS).release(holes)
    for value, q in zip(release.value.ravel(), QUARTILES, strict=True):
        assert rank_error(DATA, value, q) <= release.rank_error(1 - 1e-9).max()
    deciles = [part / 10 for part in range(1, 10)]
    secret = mh.plan_quantile(deciles, missing="none", **OPTIONS).release(DATA)
    (number,), (error,) = secret.answers[0].recorded, secret.answers[0].recorded_error
    assert abs(number - 1000) < 40 * error
    assert "Records: " in str(secret)
    lower, upper = secret.interval(target="population")
    assert (lower <= secret.value).all()
    assert (secret.value <= upper).all()


def test_groups_have_their_own_choices_a_few_a_pass() -> None:
    names = [f"g{index}" for index in range(6)]
    table = {"x": np.tile(DATA, 6), "g": np.repeat(names, 1000)}
    for n, taken in ((6000, "joint-exponential"), (None, "recursive-exponential")):
        plan = mh.plan_quantile(QUARTILES, n=n, by="g", groups=names, **OPTIONS)
        assert plan.mechanism == taken
        assert len(plan.recipe._places) > plan.recipe._at_once
        release = plan.release(pd.DataFrame(table), columns=["x"])
        bound = plan.rank_error(1 - 1e-10).max()
        for name in names:
            for value, q in zip(release[name].value.ravel(), QUARTILES, strict=True):
                assert rank_error(DATA, value, q) <= bound


def test_a_plan_is_written_with_all_that_decides_it() -> None:
    plan = mh.plan_quantile(QUARTILES, **OPTIONS)
    fields = json.loads(json.dumps(plan.to_dict()))
    assert fields["typical_rank_error"] > 0
    other = mh.plan_quantile(QUARTILES, lower=0, upper=1e6, privacy=mh.PureDP(epsilon=1.001))
    assert plan.digest != other.digest


@pytest.mark.parametrize("q", [0.5, QUARTILES])
def test_all_of_the_promise_may_go_to_the_values(q) -> None:
    whole = mh.plan_quantile(q, n=1000, missing="none", interval=False, **OPTIONS)
    parted = mh.plan_quantile(q, n=1000, missing="none", **OPTIONS)
    # 20 of 28 parts are what finds the cells.
    share = whole.to_dict()["typical_rank_error"] / parted.to_dict()["typical_rank_error"]
    assert share == pytest.approx(20 / 28, rel=1e-6)
    assert (whole.rank_error() < parted.rank_error()).all()
    release = whole.release(DATA)
    lower, upper = release.interval()
    assert (lower == 0).all()
    assert (upper == 1e6).all()
    assert "No interval was asked for" in str(release)
    assert "No interval was asked for" not in str(parted.release(DATA))
    with pytest.raises(mh.InvalidInput, match="interval"):
        mh.plan_quantile(q, interval="no", **OPTIONS)


@pytest.mark.parametrize("n", [1000, None])
@pytest.mark.parametrize("privacy", [mh.PureDP(epsilon=1.0), mh.ZCDP(0.5), mh.ApproxDP(1.0, 1e-6)])
def test_recursion_says_what_it_does_and_its_releases_read_back(n, privacy) -> None:
    q = [0.75, 0.25, 0.5, 0.25]
    options = {"lower": 0, "upper": 1e6, "n": n, "missing": "none"}
    plan = mh.plan_quantile(q, privacy=privacy, **options)
    every = {one.name: one for one in plan.parts[0].mechanism.contenders}
    assert set(every) >= {"exponential", "joint-exponential", "recursive-exponential"}
    if plan.mechanism != "recursive-exponential":
        assert (n, isinstance(privacy, mh.ZCDP)) == (1000, False)
        return
    assert "recursive exponential mechanism: 3 choices in 2 levels" in plan.describe()
    release = plan.release(DATA)
    values = release.value.ravel()
    assert values[1] == values[3] <= values[2] <= values[0]
    errors = release.rank_error(1 - 1e-9).ravel()
    for value, fraction, error in zip(values, q, errors, strict=True):
        assert rank_error(DATA, value, fraction) <= error
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert (again.rank_error() == release.rank_error()).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, None])
@pytest.mark.parametrize("missing", ["none", "drop"])
def test_ranks_err_as_planned_and_intervals_hold(n, missing) -> None:
    """Of 900 releases: the error in the middle within a half, intervals at least as promised.

    Whole ranks, and the uneven gaps between records drawn at random, add a quarter. A root mean
    square of 900 such errors has a standard error of 3.5 %, of which the bound is six and a half
    away; 6 % is more than eight of a coverage of 95 %. Choices that share the promise would have
    almost twice the error.
    """
    plan = mh.plan_quantile(QUARTILES, n=n, missing=missing, **OPTIONS)
    truth = np.sort(DATA)[[249, 499, 749]]
    errors, held, within = [], [], []
    for _ in range(900):
        release = plan.release(DATA)
        values = release.value.ravel()
        errors.append([rank_error(DATA, v, q) for v, q in zip(values, QUARTILES, strict=True)])
        lower, upper = (end.ravel() for end in release.interval())
        held.append((lower <= truth) & (truth <= upper))
        within.append(max(errors[-1]) <= release.rank_error().max())
    found = float(np.sqrt(np.mean(np.square(errors), axis=0)).max())
    planned = plan.to_dict()["typical_rank_error"]
    assert planned / 1.5 < found < planned * 1.5
    assert found < dict(plan.alternatives)["exponential"]
    assert np.mean(held) >= 0.95 - 0.06
    assert np.mean(within) >= 0.95 - 0.06
