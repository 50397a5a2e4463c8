"""Means as Kamath et al. (2024) print them: what plans say, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import muhat as mh

PURE, APPROX = mh.PureDP(1.0), mh.ApproxDP(1.0, 1e-6)
CLIPPED: dict[str, Any] = {
    "domain": mh.Reals(1, 0.5),
    "n": 1000,
    "privacy": PURE,
    "moment": (2, 1.0),
    "max_bias": 0.01,
}
SYMMETRIC: dict[str, Any] = {
    "domain": mh.Reals(1),
    "n": 10_000,
    "privacy": APPROX,
    "moment": (4, 1.32),
    "unbiased": True,
    "symmetric": True,
}
SECRET = {**CLIPPED, "n": None, "n_min": 1000, "privacy": APPROX}
SMOOTH: dict[str, Any] = {
    "domain": {"x": (0, 1)},
    "n": None,
    "n_min": 1000,
    "privacy": PURE,
    "unbiased": True,
}
EVERY = {
    "Proposition 3.5": CLIPPED,
    "Algorithm 1": SYMMETRIC,
    "Proposition E.1": SECRET,
    "Theorem E.6": SMOOTH,
}


@pytest.mark.parametrize("what", EVERY)
def test_a_plan_says_what_is_printed_and_what_ours_gains(what: str) -> None:
    theirs, ours = (mh.plan_mean(**EVERY[what], faithful=kept) for kept in (True, False))
    text = theirs.describe()
    assert f"This is {what} of Kamath et al. (2024) as printed. Without faithful=True " in text
    assert "in place of" in text
    assert "as printed" not in ours.describe()
    assert theirs.digest != ours.digest
    assert theirs.privacy == ours.privacy


def test_the_clipped_mean_has_the_papers_pad_noise_and_bound() -> None:
    # c = β^(−1/(λ−1)) = 100, Laplace noise of scale (b − a + 2c)/(εn), MSE 1/n + β² + 2·scale².
    plan = mh.plan_mean(**CLIPPED, faithful=True)
    scale = (1 + 2 * 100) / 1000
    assert plan["mean"].method.pads[0] == pytest.approx(100)
    assert plan.expected_error == pytest.approx(math.sqrt(2) * scale, rel=1e-6)
    assert plan.rmse == pytest.approx(math.sqrt(1 / 1000 + 1e-4 + 2 * scale**2), rel=1e-6)
    assert plan["mean"].method.noise.law.name == "laplace"
    assert plan.bias == 0.01
    assert plan.rmse > 3 * plan["mean"].others[0].rmse
    free = mh.plan_mean(**{**CLIPPED, "max_bias": None}, faithful=True)
    assert plan["mean"].others[0].rmse < free.rmse < plan.rmse
    cubic = mh.plan_mean(**{**CLIPPED, "moment": (3, 2.0)}, faithful=True)
    assert cubic["mean"].method.pads[0] == pytest.approx(2 * math.sqrt(2 / 0.01))


def test_the_symmetric_mean_has_the_papers_threshold() -> None:
    theirs, ours = (mh.plan_mean(**SYMMETRIC, faithful=kept) for kept in (True, False))
    assert "above 27 noisy records in place of 29" in theirs.describe()
    columns = [plan["mean"].method.means.columns[0] for plan in (theirs, ours)]
    assert [each.search.threshold for each in columns] == [29, 27]
    assert columns[0].least_n >= columns[1].least_n
    assert theirs.rmse >= ours.rmse


def test_a_secret_number_has_the_papers_margin() -> None:
    plan = mh.plan_mean(**SECRET, faithful=True)
    margin = math.ceil(math.log(2 / 5e-7) / 0.5)
    assert f"at most {2 * margin} are left out" in plan.describe()
    assert "at most 58 records are left out in place of 62" in plan.describe()
    assert plan.error_at(n=1000 + 2 * margin) == plan["mean"].inner.rmse
    assert plan.error_at(n=1000 + 2 * margin - 1) is None
    symmetric = mh.plan_mean(**{**SYMMETRIC, "n": None, "n_min": 10_000}, faithful=True)
    assert symmetric["mean"].mean_for(20_000).method.printed[0] == "Algorithm 1"


@pytest.mark.parametrize("options", [CLIPPED, SECRET, SMOOTH], ids=["clipped", "secret", "smooth"])
def test_what_is_printed_is_released_with_the_error_it_says(options: dict[str, Any]) -> None:
    plan = mh.plan_mean(**options, faithful=True)
    rows = np.linspace(0, 1, 1100 if options["n"] is None else 1000)
    data = rows[:, None] - (0 if options is SMOOTH else 0.5)
    found = plan.release({"x": data[:, 0]} if options is SMOOTH else data)
    # Laplace's and Student's tails are lighter than 1e-6 at so many standard errors.
    assert abs(found.value[0] - data.mean()) < 150 * found.standard_error[0]
    if options is not SECRET:
        assert found.standard_error[0] == pytest.approx(plan.expected_error)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (CLIPPED, {"privacy": mh.ZCDP(0.5)}, "has Laplace noise"),
    (CLIPPED, {"privacy": mh.GDP(0.5)}, "has Laplace noise"),
    (CLIPPED, {"moment": (1.5, 1.0)}, "order 2 or more"),
    (CLIPPED, {"missing": "drop"}, "for complete records"),
    (CLIPPED, {"domain": mh.Reals(2, 0.5)}, "for one column"),
    (CLIPPED, {"contributions": 2}, "contributions must be 1 where faithful"),
    (CLIPPED, {"mechanism": "clipped-normal", "privacy": APPROX}, "clipped-normal is in no paper"),
    (CLIPPED, {"domain": mh.Reals(1)}, "a magnitude must be given"),
    (CLIPPED, {"domain": mh.Reals(1, 1e90)}, "is too large"),
    (SYMMETRIC, {"contributions": 2}, "contributions must be 1 where faithful"),
    (SYMMETRIC, {"mechanism": "karwa-vadhan", "unbiased": False}, "karwa-vadhan is in no paper"),
    (SYMMETRIC, {"n": 50}, "is too small"),
    (SMOOTH, {"domain": {"x": (0, 1), "y": (0, 1)}}, "for one column"),
    (SMOOTH, {"contributions": 2}, "contributions must be 1 where faithful"),
    (SMOOTH, {"n": 100, "n_min": None}, "faithful is for a secret n here"),
    (SMOOTH, {"n_min": None, "unbiased": False}, r"with unbiased=True for a secret n"),
]


@pytest.mark.parametrize(("options", "changed", "words"), REFUSED)
def test_what_no_paper_has_is_refused(
    options: dict[str, Any], changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(mh.InvalidInput, match=words):
        mh.plan_mean(**{**options, **changed}, faithful=True)
    with pytest.raises(mh.Impossible, match=r"Theorem 5\.2"):
        mh.plan_mean(**{**SYMMETRIC, "privacy": PURE}, faithful=True)
