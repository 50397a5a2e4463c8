"""Unbiased means of a secret number of records: nothing that is said depends on it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import muhat as mh
from changed import changed
from muhat.noise.student import StudentSpread
from muhat.planning.smooth import pure_epsilon

BOX = mh.Box([0.0], [10.0])


def plan(**options: Any) -> mh.Plan:
    given = {"domain": BOX, "n": None, "privacy": mh.PureDP(epsilon=1), "unbiased": True, **options}
    made = mh.plan_mean(**given)
    assert isinstance(made, mh.Plan)
    return made


def middle(releases: list[mh.Release]) -> np.ndarray:
    """The middle value of each column."""
    return np.asarray(np.median([release.value for release in releases], axis=0))


def records(n: int, dim: int = 1) -> np.ndarray:
    return np.random.default_rng(7).uniform(2, 5, (n, dim))


def ledger(folder: Path, budget: Any = None) -> mh.Ledger:
    budget = mh.PureDP(epsilon=100) if budget is None else budget
    return mh.Ledger.create(folder / "budget.db", budget=budget, neighbors="add-remove")


def masked(release: mh.Release) -> tuple[str, str]:
    """All that is said of a release but its value, as JSON and as text."""
    same = changed(release, value=np.full(len(release.value), 3.25))
    return same.to_json(), repr(same)


@pytest.mark.parametrize("n_min", [None, 50])
@pytest.mark.parametrize("privacy", [mh.PureDP(epsilon=1), mh.ZCDP(rho=0.5)])
def test_one_record_more_changes_nothing_but_the_value(
    n_min: int | None, privacy: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    made = plan(n_min=n_min, privacy=privacy)
    said = {masked(made.release(records(n))) for n in (100, 101, 7, 1, 0)}
    assert len(said) == 1
    fields = json.loads(next(iter(said))[0])
    assert fields["n"] is None
    assert (fields["standard_error"] is None) == (n_min is None)
    assert (fields["interval"] is None) == (n_min is None)
    assert capfd.readouterr() == ("", "")


def test_a_release_is_read_back_with_its_intervals() -> None:
    for n_min in (None, 80):
        release = plan(n_min=n_min).release(records(100))
        again = mh.Release.from_json(release.to_json())
        assert again.to_json() == release.to_json()
        assert again.bias == 0.0
        assert not release.domain_is_learnt
    assert isinstance(again.noise, StudentSpread)
    low, high = again.interval(0.95)
    assert (high - low) / 2 == pytest.approx(again.standard_error * 1.8374, rel=1e-3)
    with pytest.raises(mh.InvalidInput, match="secret"):
        again.interval(target="population")
    with pytest.raises(mh.InvalidInput, match="nothing is known"):
        plan().release(records(100)).interval()
    with pytest.raises(mh.InvalidInput, match="not the JSON"):
        mh.Release.from_json(release.to_json().replace("studentspread", "gauss"))


def test_intervals_cover_as_often_as_they_say() -> None:
    made = plan(n_min=40)
    rows = records(40)
    exact = rows.mean()
    covered = 0
    for _ in range(1000):
        low, high = made.release(rows).interval(0.8)
        covered += bool(low[0] <= exact <= high[0])
    # 80 % of 1000, 5.5 standard errors of 12.6.
    assert abs(covered - 800) < 70


def test_several_columns_have_joint_intervals() -> None:
    spread = StudentSpread(np.array([1.0, 2.0]))
    each, joint = (spread.half_widths(0.9, joint=joint) for joint in (False, True))
    assert joint == pytest.approx(spread.half_widths(math.sqrt(0.9), joint=False))
    assert (joint > each).all()
    assert spread.covariance.tolist() == [[1.0, 0.0], [0.0, 4.0]]
    assert StudentSpread.from_dict(spread.to_dict()).scales.tolist() == [1.0, 2.0]


def test_a_plan_says_all_it_knows_before_any_data() -> None:
    made = plan(n_min=1000)
    assert (made.mechanism, made.n, made.dim, made.bias) == ("smooth", None, 1, 0.0)
    assert made.expected_error == made.error_at(1000) == made.standard_error[0]
    assert made.covariance[0, 0] == pytest.approx(made.expected_error**2)
    assert made.error_at(10_000) < made.expected_error
    text = made.describe()
    for words in ("without bias", "secret; 1000 or more", "Student", "1000000", "n_min"):
        assert words in text
    assert "ratio" not in text
    assert repr(made) == text
    assert "<table>" in made._repr_html_()
    assert json.loads(json.dumps(made.to_dict()))["n_min"] == 1000
    bare = plan()
    assert bare.expected_error is bare.standard_error is bare.covariance is None
    assert bare.expected_error_method is None
    assert json.loads(json.dumps(bare.to_dict()))["standard_error"] is None
    assert json.loads(json.dumps(plan(p=math.inf, n_min=9).to_dict()))["p"] == "inf"
    assert plan(p=4, n_min=9).expected_error_method == "bound"


def test_the_noise_falls_faster_than_for_a_ratio() -> None:
    # The error of the unbiased mean at n = 1000, ε = 1 is 2·10/1000 or so.
    assert plan(n_min=1000).expected_error == pytest.approx(10 * 0.00198, rel=0.01)


def test_the_digest_follows_everything_that_decides_the_release() -> None:
    made = [
        plan(),
        plan(privacy=mh.PureDP(epsilon=2)),
        plan(privacy=mh.ZCDP(rho=0.5)),
        plan(domain=mh.Box([0.0], [11.0])),
        plan(missing="drop"),
        plan(contributions=2),
        plan(n_min=10),
        plan(domain=mh.Box([0, 0], [1, 5])),
        plan(domain=mh.Box([0, 0], [1, 5]), weights=[1, 2]),
    ]
    assert len({each.digest for each in made}) == len(made)
    assert plan().digest == plan(mechanism="smooth").digest == plan().assuming("x").digest


def test_promises_that_follow_from_pure_privacy_are_kept() -> None:
    assert pure_epsilon(mh.ApproxDP(epsilon=0.7, delta=1e-6)) == mh.PureDP(epsilon=0.7).amounts[0]
    root = pure_epsilon(mh.ZCDP(rho=0.3))
    (rho,) = mh.ZCDP(rho=0.3).amounts
    assert root**2 / 2 <= rho < (root + 2**-50) ** 2 / 2
    for made in (plan(), plan(contributions=3), plan(domain=mh.Box([0, 0, 3], [1, 50, 3.5]))):
        assert 0.999 < made.recipe.epsilon <= 1
    with pytest.raises(mh.InvalidInput, match="make a new plan"):
        replace(plan()["mean"], terms=replace(plan().terms, privacy=mh.PureDP(epsilon=0.5)))


def test_columns_weights_and_missing_values() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.uniform(0, 1, 5000), "b": rng.uniform(0, 90, 5000), "c": "x"})
    frame.loc[::7, "a"] = np.nan
    bounds = {"b": (0, 100), "a": (0, 1)}
    made = plan(domain=bounds, n_min=4000, missing="drop")
    releases = [made.release(frame) for _ in range(5)]
    assert releases[0].columns == ("b", "a")
    assert made.standard_error[0] == pytest.approx(100 * made.standard_error[1])
    exact = frame.dropna()[["b", "a"]].mean().to_numpy()
    # Student's noise passes 20 of its errors once in 18,000 times, three of five once in 10^11.
    assert (np.abs(middle(releases) - exact) < 20 * made.standard_error).all()
    sharp = plan(domain=bounds, n_min=4000, missing="center", privacy=mh.PureDP(epsilon=100))
    centred = [sharp.release(frame) for _ in range(5)]
    exact = frame[["b", "a"]].fillna(0.5).mean().to_numpy()
    assert (np.abs(middle(centred) - exact) < 20 * sharp.standard_error).all()
    with pytest.raises(mh.InvalidInput, match="names its columns"):
        made.release(frame, columns=["a", "b"])


def test_hostile_values_are_clipped() -> None:
    rows = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308] * 400)
    release = plan(privacy=mh.PureDP(epsilon=50)).release(rows)
    assert abs(float(release) - 5.0) < 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"privacy": mh.GDP(mu=1)}, "pure privacy"),
        ({"domain": mh.Ball(radius=1, dim=2)}, "in a box"),
        ({"domain": mh.Simplex(dim=3)}, "in a box"),
        ({"n_min": 0}, "n_min"),
        ({"n_min": 2.5}, "n_min"),
        ({"n": 10, "n_min": 5}, "n_min is for a secret n"),
        ({"unbiased": False, "n_min": 5}, "n_min is for unbiased"),
        ({"mechanism": "laplace"}, "mechanism"),
        ({"mechanism": "smooth", "unbiased": False}, "mechanism"),
        ({"moment": (2, 1.0)}, "mh.Reals"),
        ({"neighbors": "substitute"}, "neighbors"),
        ({"weights": [1, 2]}, "weights"),
    ],
)
def test_what_cannot_be_planned_is_refused_and_charges_nothing(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given = {"domain": BOX, "n": None, "privacy": mh.PureDP(epsilon=1), "unbiased": True, **options}
    with pytest.raises(mh.InvalidInput, match=message):
        mh.plan_mean(**given)
    account = ledger(tmp_path)
    with pytest.raises(mh.InvalidInput, match=message):
        mh.mean(records(100), ledger=account, **given)
    assert account.entries() == []


def test_the_ledger_is_charged_once_and_a_public_n_needs_no_such_noise(tmp_path: Path) -> None:
    account = ledger(tmp_path)
    made = plan()
    release = made.release(records(100), ledger=account)
    (entry,) = account.entries()
    assert release.ledger_head is not None
    assert "100" not in json.dumps(entry.to_dict()["note"])
    public = mh.plan_mean(domain=BOX, n=100, privacy=mh.PureDP(epsilon=1), unbiased=True)
    assert public.mechanism == "staircase"


def test_groups_have_no_unbiased_means() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "g": ["a", "b"]})
    with pytest.raises(mh.InvalidInput, match="ratios"):
        mh.mean(
            frame,
            domain={"x": (0, 9)},
            by="g",
            groups=["a", "b"],
            privacy=mh.ZCDP(rho=1),
            unbiased=True,
        )


def test_a_plan_says_what_a_replaced_record_costs() -> None:
    for epsilon, covered in ((1.0, True), (8.0, False)):
        plan = mh.plan_mean(
            domain=mh.Box([0], [1]), n=None, privacy=mh.PureDP(epsilon=epsilon), unbiased=True
        )
        assert plan.to_dict()["covers_replacement"] is covered
        said = "the promise holds where a record is replaced, too" in plan.describe()
        assert said is covered
        released = plan.release(np.zeros(9))
        assert any("replaced" in line for line in released.assumptions)
    # Two columns share it: each has half.
    two = mh.plan_mean(
        domain=mh.Box([0, 0], [1, 1]), n=None, privacy=mh.PureDP(epsilon=7), unbiased=True
    )
    assert two.recipe.covers_replacement
