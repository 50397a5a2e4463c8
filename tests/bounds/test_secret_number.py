"""What no mechanism can beat where the number of records is secret."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import muhat as mh
from muhat.bounds import LowerBound, secret_mean_bounds
from muhat.bounds.steps import any_floor

PROMISES = [
    mh.PureDP(epsilon=0.3),
    mh.PureDP(epsilon=3.0),
    mh.ApproxDP(epsilon=1.0, delta=1e-6),
    mh.ZCDP(rho=0.1),
    mh.GDP(mu=1.0),
    mh.RDP(alpha=8, epsilon=0.5),
]
DOMAINS = [
    mh.Box([0], [1]),
    mh.Box([-3, 0], [1, 1]),
    mh.Box([0] * 13, [1] * 13),
    mh.Ball(2.0, 3, center=[5, 0, 1]),
    mh.Simplex(4),
    mh.LpBall(3, 1.0, 4),
    mh.Points([[0, 0], [1, 3], [2, 1]]),
]


def least_error(means: np.ndarray, epsilon: float, answers: np.ndarray) -> float:
    """The least largest root mean square error on datasets in a row, each a neighbour of the next.

    A linear program over all ε-DP mechanisms with these answers.
    """
    m, a = len(means), len(answers)
    losses = (answers[None, :] - means[:, None]) ** 2
    worst = np.hstack([np.kron(np.eye(m), np.ones(a)) * np.tile(losses.ravel(), (m, 1))])
    worst = np.hstack([worst, -np.ones((m, 1))])
    rows = []
    for y in range(m - 1):
        for one, other in ((y, y + 1), (y + 1, y)):
            near = np.zeros((a, m * a + 1))
            near[np.arange(a), one * a + np.arange(a)] = 1
            near[np.arange(a), other * a + np.arange(a)] = -math.exp(epsilon)
            rows.append(near)
    totals = np.hstack([np.kron(np.eye(m), np.ones(a)), np.zeros((m, 1))])
    cost = np.zeros(m * a + 1)
    cost[-1] = 1
    found = linprog(
        cost,
        A_ub=np.vstack([worst, *rows]),
        b_ub=np.zeros(m + 2 * (m - 1) * a),
        A_eq=totals,
        b_eq=np.ones(m),
    )
    return math.sqrt(found.fun)


@pytest.mark.parametrize(("k", "m", "epsilon"), [(20, 8, 1.0), (40, 12, 1.5), (12, 10, 2.0)])
def test_the_best_mechanism_of_a_linear_program_does_not_beat_it(k, m, epsilon):
    added = np.arange(m + 1)
    means = added / (k + added)
    best = least_error(means, epsilon, np.linspace(0, means[-1], 33))
    floor = any_floor(mh.PureDP(epsilon=epsilon), m)
    proved = math.exp(floor.log_square / 2) * k / (k + m) ** 2
    assert 0.3 * best < proved < best
    # As if the mean moved by 1/k with every record, whatever their number: that is too much.
    assert epsilon < 1.9 or math.exp(floor.log_square / 2) / k > 0.9 * best


@pytest.mark.parametrize("K", DOMAINS[:2], ids=repr)
def test_no_plan_beats_it(K):
    assert_no_plan_beats_it(K, mh.GDP(mu=1.0), [2, math.inf])


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES, ids=repr)
@pytest.mark.parametrize("K", DOMAINS, ids=repr)
def test_no_plan_beats_it_whatever_the_domain_and_the_promise(promise, K):
    assert_no_plan_beats_it(K, promise, [2, 4, math.inf])


def assert_no_plan_beats_it(K, promise, orders):
    for p in orders:
        plan = mh.plan_mean(domain=K, n=None, privacy=promise, p=p)
        ratios = [plan.certificate_at(n).ratio for n in (3, 1_000, 10**9)]
        assert all(ratio is None or ratio >= 1 for ratio in ratios)
        assert ratios[-1] is not None


@pytest.mark.parametrize("promise", [mh.GDP(mu=1.0), mh.ZCDP(rho=0.1)], ids=repr)
def test_it_meets_the_noise_of_one_column_as_n_grows(promise):
    plan = mh.plan_mean(domain=mh.Box([0], [1]), n=None, privacy=promise)
    ratios = [plan.certificate_at(10**exponent).ratio for exponent in (4, 6, 8, 10)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] < 1.12
    assert ratios[-1] < 1.001


def test_a_person_of_several_records_is_one_step():
    one, several = (
        secret_mean_bounds(1.0, n=10_000 * k, privacy=mh.GDP(mu=1.0), places=2, contributions=k)[0]
        for k in (1, 5)
    )
    assert several.value == pytest.approx(one.value, rel=1e-12)
    assert several.records == tuple(5 * number for number in one.records)


def test_few_records_have_no_room_for_many_places():
    assert secret_mean_bounds(1.0, n=3, privacy=mh.PureDP(epsilon=1.0), places=4) == ()
    plan = mh.plan_mean(domain=mh.Box([0] * 40, [1] * 40), n=None, privacy=mh.GDP(mu=1.0))
    few, many = (plan.certificate_at(n).bounds[0] for n in (60, 10**6))
    assert few.records[1] < 120
    assert many.value > 2 * few.value / 10**6 * 60


def test_ends_far_from_zero_are_not_believed_beyond_their_rounding():
    far = mh.Box([2.0**60], [2.0**60 + 1024])
    plan = mh.plan_mean(domain=far, n=None, privacy=mh.GDP(mu=1.0))
    near = mh.plan_mean(domain=mh.Box([0], [1024]), n=None, privacy=mh.GDP(mu=1.0))
    bounds = [each.certificate_at(10**6).bounds for each in (plan, near)]
    assert (bounds[0][0].value if bounds[0] else 0.0) <= bounds[1][0].value


def test_a_bound_keeps_its_numbers_of_records():
    (bound,) = secret_mean_bounds(2.0, n=1000, privacy=mh.PureDP(epsilon=1.0), places=1)
    assert LowerBound.from_dict(bound.to_dict()) == bound
    assert bound.sentence().endswith(" on some dataset of 1,000 to 1,033 records.")
    assert "records" not in LowerBound(1.0, "any", "some", "B", "derived").to_dict()
