"""Approximate zero-concentrated privacy: ρ-zCDP, but for a failure of probability δ."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import muhat as mh
from muhat.errors import InvalidInput
from muhat.privacy import adding_up, charged_in, compose

PROMISE = mh.ApproxZCDP(rho=0.5, delta=1e-6)


def test_its_points_are_those_of_zcdp_after_the_failure() -> None:
    without = mh.ZCDP(rho=0.5)
    assert PROMISE.epsilon_at(1e-6) == math.inf
    assert PROMISE.epsilon_at(1e-5) == pytest.approx(without.epsilon_at(9e-6), rel=1e-4)
    for epsilon in (0.5, 2.0, 6.0):
        exact = 1e-6 + (1 - 1e-6) * without.delta_at(epsilon)
        assert exact * (1 - 1e-12) <= PROMISE.delta_at(epsilon) <= exact * (1 + 1e-9)
    found = PROMISE.to("approx", delta=1e-5)
    assert isinstance(found, mh.ApproxDP)
    assert PROMISE.delta_at(found.epsilon) <= 1e-5 * (1 + 1e-6)


def test_a_point_is_zcdp_with_probability_one_less_delta() -> None:
    """Randomised response that fails with δ is (ε, δ), and the worst of those: ρ = ε·tanh(ε/2)."""
    promise = mh.ApproxDP(epsilon=1.0, delta=1e-6).to("approx_zcdp")
    assert promise == mh.ApproxZCDP(rho=mh.PureDP(1.0).to("zcdp").rho, delta=1e-6)
    first, second = math.e / (1 + math.e), 1 / (1 + math.e)
    for alpha in (1.5, 3.0, 20.0):
        moments = first**alpha * second ** (1 - alpha) + second**alpha * first ** (1 - alpha)
        assert math.log(moments) / (alpha - 1) <= alpha * promise.rho


def test_both_numbers_add_up_and_every_other_kind_can_be_charged(tmp_path: Path) -> None:
    assert compose([PROMISE, PROMISE]) == mh.ApproxZCDP(rho=1.0, delta=2e-6)
    assert adding_up(PROMISE, pure=False) == mh.ZCDP(rho=0.5)
    assert charged_in(mh.GDP(1.0), "approx_zcdp")[0] == (Fraction(1, 2), 0)
    assert charged_in(mh.ZCDP(0.1), "approx_zcdp")[0] == (Fraction(1, 10), 0)
    assert charged_in(mh.ApproxDP(1.0, 1e-6), "approx_zcdp")[0][1] == Fraction(1, 10**6)
    account = mh.Ledger.create(tmp_path / "a.db", budget=PROMISE, neighbors="add-remove")
    data = {"x": np.arange(50.0)}
    plan = mh.plan([mh.Count()], schema=mh.Schema({"x": (0, 50)}), privacy=mh.ZCDP(0.3), n=None)
    plan.release(data, ledger=account)
    assert mh.Ledger.open(tmp_path / "a.db").remaining.rho == pytest.approx(0.2)
    with pytest.raises(mh.BudgetExceeded):
        plan.release(data, ledger=account)


@pytest.mark.parametrize("kind", ["pure", "zcdp", "gdp", "rdp"])
def test_what_it_does_not_imply_is_refused(kind: str) -> None:
    given = {"alpha": 3.0} if kind == "rdp" else {}
    with pytest.raises(InvalidInput, match="may reveal anything"):
        PROMISE.to(kind, **given)
    with pytest.raises(InvalidInput, match="steps apart"):
        PROMISE.for_groups(2)
    with pytest.raises(InvalidInput, match="higher ones"):
        mh.RDP(alpha=2.0, epsilon=1.0).to("approx_zcdp")


def test_means_counts_quantiles_and_queries_have_the_noise_of_zcdp() -> None:
    without = mh.ZCDP(rho=0.5)
    box = mh.Box([0], [1])
    for n in (100, None):
        plans = [mh.plan_mean(domain=box, n=n, privacy=each) for each in (PROMISE, without)]
        assert (
            plans[0].error_at(n=100)
            if n is None
            else plans[0].expected_error == (plans[1].expected_error)
        )
    plan = mh.plan_queries(mh.workloads.prefix(8), privacy=PROMISE)
    assert plan.certificate.ratio >= 1
    assert plan.expected_error == (
        mh.plan_queries(mh.workloads.prefix(8), privacy=without).expected_error
    )
    assert mh.quantile([1.0, 2.0, 3.0], q=0.5, lower=0, upper=4, privacy=PROMISE).privacy == PROMISE
    found = mh.privacy_for(domain=box, n=100, error=0.01, kind="approx_zcdp", delta=1e-6)
    assert found == mh.ApproxZCDP(rho=0.5, delta=1e-6)
