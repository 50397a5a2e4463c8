"""Columns whose bounds are equal: exact, free, and of no cost to the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muhat as mh

BOUNDS = {"x": (0, 1), "y": (2, 2), "z": (-1, 2), "w": (0, 0)}
OTHERS = {name: BOUNDS[name] for name in ("x", "z")}
N = 400
PROMISES = [mh.ZCDP(0.5), mh.GDP(1.0), mh.PureDP(1.0), mh.ApproxDP(1.0, 1e-6)]


def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    data = {"x": rng.random(N), "y": np.full(N, 9.0), "z": rng.random(N) * 3 - 1, "w": np.ones(N)}
    data["x"][:20] = np.nan
    data["y"][5:50] = np.nan
    return data


@pytest.mark.parametrize("privacy", PROMISES, ids=repr)
@pytest.mark.parametrize("missing", ["drop", "center"])
@pytest.mark.parametrize("n", [N, None])
def test_a_mean_has_its_constants_exactly_and_the_noise_of_the_others(
    privacy: mh.Privacy, missing: str, n: int | None
) -> None:
    options: dict[str, Any] = {"n": n, "privacy": privacy, "missing": missing}
    plan = mh.plan_mean(domain=BOUNDS, **options)
    others = mh.plan_mean(domain=OTHERS, **options)
    assert plan.mechanism == others.mechanism
    assert plan.expected_error == others.expected_error
    if n is None:
        assert plan.error_at(n=1000) == others.error_at(n=1000)
    elif plan.mechanism == "ratio":
        ends = plan.standard_error_at(N, plan.domain.half_widths)
        assert ends[[1, 3]].tolist() == [0, 0]
        assert ends[0] == others.standard_error_at(N, others.domain.half_widths)[0]
    if n is not None:
        assert plan.certificate.to_dict() == others.certificate.to_dict()
    assert plan.digest != others.digest
    found = plan.release(table())
    assert found.columns == tuple(BOUNDS)
    for one in (found, mh.Release.from_json(found.to_json())):
        assert one.value[[1, 3]].tolist() == [2, 0]
        assert one.standard_error[[1, 3]].tolist() == [0, 0]
        assert (one.standard_error[[0, 2]] > 0).all()
        assert np.count_nonzero(one.covariance[[1, 3]]) == 0
        for options in ({}, {"simultaneous": True}, {"target": "population"}):
            lower, upper = one.interval(**options)
            assert lower[[1, 3]].tolist() == upper[[1, 3]].tolist() == [2, 0]
            assert (lower < upper)[[0, 2]].all()
    text = plan.describe()
    assert "constants need no data and no noise: y = 2, w = 0" in text
    assert json.loads(json.dumps(plan.to_dict()))["weights"] == [1.0, 1.0, 1 / 3, 1.0]


@pytest.mark.parametrize("population", [True, False])
def test_squares_stand_beside_the_columns_that_have_some(population: bool) -> None:
    plan = mh.plan_mean(domain=BOUNDS, n=N, privacy=mh.GDP(1.0), population=population)
    found = plan.release(table())
    lower, upper = found.interval(target="population", guaranteed=True)
    assert (lower[1], upper[1]) == (2, 2)
    assert (found.squares is not None) == population
    assert found.recorded.value[[1, 3]].tolist() == [N, N]
    assert "400 ± 0" in str(found)
    assert "has that value in every record, recorded or not" in str(found)
    assert found.projected().value[1] == 2


def test_a_sum_of_constants_is_known_where_their_number_is() -> None:
    privacy, data = mh.GDP(mu=1e4), table()
    total = mh.plan_sum(domain=BOUNDS, n=N, privacy=privacy, missing="center").release(data)
    assert total.value[[1, 3]].tolist() == [2 * N, 0]
    assert total.standard_error[1] == 0
    for n in (N, None):
        left_out = mh.plan_sum(domain=BOUNDS, n=n, privacy=privacy, missing="drop").release(data)
        assert left_out.value[1] == pytest.approx(2 * (N - 45), abs=0.1)
        assert left_out.standard_error[1] > 0
        assert (left_out.value[3], left_out.standard_error[3]) == (0, 0)
    for promise in PROMISES:
        secret = mh.plan_sum(domain=BOUNDS, n=None, privacy=promise, missing="center")
        assert secret.release(data).standard_error[1] > 0


def test_constants_alone_cost_nothing(tmp_path: Path) -> None:
    account = mh.Ledger.create(tmp_path / "l.db", budget=mh.ZCDP(1.0), neighbors="substitute")
    found = mh.mean(
        table(), domain={"y": (2, 2), "w": (0, 0)}, privacy=mh.ZCDP(0.5), n=N, ledger=account
    )
    assert found.value.tolist() == [2, 0]
    assert account.entries() == []
    assert "has that value in every record, recorded or not" in repr(found)
    assert "Nothing is missing" not in repr(found)
    mh.mean(table(), domain=BOUNDS, privacy=mh.ZCDP(0.5), n=N, ledger=account)
    assert [entry.note for entry in account.entries()] == ["mean of x, y, z, w"]


def test_arrays_have_their_constants_by_place() -> None:
    rows = np.random.default_rng(4).random((N, 3))
    found = mh.mean(rows, columns=[2, 0], domain=mh.Box([4, 0], [4, 1]), privacy=mh.GDP(mu=1e4))
    assert found.columns == ("2", "0")
    assert found.value[0] == 4
    assert found.value[1] == pytest.approx(rows[:, 0].mean(), abs=1e-5)
    smooth = mh.plan_mean(domain=BOUNDS, n=None, privacy=mh.PureDP(1.0), unbiased=True)
    assert smooth.release(table()).value[[1, 3]].tolist() == [2, 0]


@pytest.mark.parametrize("privacy", PROMISES, ids=repr)
@pytest.mark.parametrize(
    "domain",
    [mh.Ellipsoid([1.0, 0.0], center=[0, 2]), mh.Ball(0, 2, [0, 2]), mh.LpBall(1, 0, 2, [0, 2])],
    ids=["ellipsoid", "ball", "diamond"],
)
def test_other_flat_domains_are_released_as_points_are(
    domain: mh.Domain, privacy: mh.Privacy
) -> None:
    rows = np.random.default_rng(4).random((N, 2))
    for n in (N, None):
        plan = mh.plan_mean(domain=domain, n=n, privacy=privacy)
        found = plan.release(rows)
        assert found.value[1] == 2
        assert found.standard_error[1] == 0
        if not domain.half_widths.any():
            assert found.value[0] == 0
            assert plan.expected_error in (0, None)
        elif n is not None:
            listed = mh.plan_mean(domain=mh.Points([[-1.0, 2.0], [1.0, 2.0]]), n=n, privacy=privacy)
            assert plan.expected_error == pytest.approx(listed.expected_error, rel=1e-3)


def test_what_constants_cannot_do_is_said() -> None:
    with pytest.raises(mh.InvalidInput, match="leave constants out"):
        mh.plan_mean(domain=BOUNDS, n=None, privacy=mh.ZCDP(0.5), by="g", groups=["a", "b"])
    with pytest.raises(mh.InvalidInput, match="lower bound of y must not be above"):
        mh.plan_mean(domain={"y": (3, 2)}, n=N, privacy=mh.ZCDP(0.5))
