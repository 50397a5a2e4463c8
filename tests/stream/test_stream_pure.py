"""Running sums with Laplace noise: a function of what is private, and as large as is said."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.queries.event_weights import Weights
from muhat.mechanisms.queries.running_laplace import (
    LaplaceRunningNoise,
    laplace_shares,
    running_noise,
)
from muhat.mechanisms.queries.running_stairs import (
    LARGEST_ORDER,
    StairsRunningNoise,
    stairs_for,
)
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laplace import Laplace
from muhat.noise.stairs import Stairs
from muhat.workloads.cells_and_sums import CellsAndSums

PURE = mh.PureDP(epsilon=1.0)
WEAK = mh.PureDP(epsilon=2.0**20)


def noise_of(horizon=24, privacy=PURE, **options) -> LaplaceRunningNoise:
    mechanism = mh.stream.plan_prefix_counter(horizon, privacy, **options).parts[0].mechanism
    noises = [each.noise for each in (mechanism, *mechanism.rivals)]
    return next(noise for noise in noises if isinstance(noise, LaplaceRunningNoise))


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("horizon", [1, 3, 24, 1100])
def test_every_event_moves_the_strategy_by_the_promise_and_no_more(horizon, contributions):
    if horizon > 1024:
        noise = replace(noise_of(4), size=horizon)
    else:
        noise = noise_of(horizon, contributions=contributions)
    strategy = noise.strategy(0)
    columns = strategy.own + strategy.sums.sum(axis=0)
    assert strategy.own.min() > 0
    assert set(columns.tolist()) == {noise.levels[0]}
    moved = noise.contributions * noise.reaches[0] * noise.levels[0]
    assert (1 - 1e-6) * 2**54 < moved <= 2**54


def test_a_larger_strategy_or_a_weaker_promise_is_refused():
    noise = noise_of()
    with pytest.raises(AssertionError, match="farther"):
        replace(noise, levels=(noise.levels[0] + 2,))
    with pytest.raises(AssertionError, match="farther"):
        replace(noise, contributions=2)
    with pytest.raises(AssertionError, match="nothing for an event"):
        replace(noise, sums=((1 << 20,) * 24,))
    with pytest.raises(AssertionError, match="negative"):
        replace(noise, sums=((-1,) * 24, (5,) * 24))
    counter = mh.stream.prefix_counter(24, PURE)
    weaker = replace(counter._plan.terms, privacy=mh.PureDP(epsilon=0.5))
    with pytest.raises(mh.InvalidInput, match="noise was made for"):
        replace(counter._plan, terms=weaker)


def shifted(strategy, drawn, moved):
    """Noise that has the same y for terms that were moved: y = [D; S]·q + noise."""
    matrix = np.vstack([np.diag(strategy.own), strategy.sums]).astype(object)
    return [int(z) for z in np.array(drawn, object) + matrix @ np.array(moved, object)]


def drawer(drawn, size):
    parts = iter([drawn[:size], drawn[size:]])
    return lambda count: np.array(next(parts), object)


STRATEGIES = {
    "events alone": CellsAndSums(np.full(5, 6), np.zeros((0, 5), np.int64)),
    "one sum": CellsAndSums(np.array([5, 4, 3, 4, 5]), np.array([[1, 2, 3, 2, 1]])),
    "two sums": CellsAndSums(np.array([3, 2, 5]), np.array([[4, 4, 0], [0, 1, 2]])),
}


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("events", [Weights(), Weights(2), Weights(None, Fraction(1, 2))])
def test_answers_are_a_function_of_what_is_private(name, events):
    """Small noise: halves are hit all the time, and rounded to the same side."""
    strategy = STRATEGIES[name]
    size, rows = len(strategy.own), len(strategy.own) + len(strategy.sums)
    rng = np.random.default_rng(5)
    for _ in range(300):
        drawn = [int(z) for z in rng.integers(-20, 20, rows)]
        moved = [int(x) for x in rng.integers(-3, 4, size)]
        one = running_noise(strategy, drawer(drawn, size), events)
        other = running_noise(strategy, drawer(shifted(strategy, drawn, moved), size), events)
        assert (one + events.matrix(size) @ moved == other).all()


def test_rounding_to_even_would_tell_something():
    """⌊N + ½⌋ moves with the sum; half to even does not: at ½ the sum's parity decides."""
    strategy = STRATEGIES["events alone"]
    found = running_noise(strategy, drawer([3, 0, 0, 0, 0], 5))
    assert found[0] == math.floor(Fraction(3, 6) + Fraction(1, 2)) == 1
    assert round(Fraction(3, 6)) != round(Fraction(3, 6) + 1) - 1


def test_the_noise_of_a_plan_is_a_function_of_what_is_private():
    noise = noise_of()
    strategy = noise.strategy(0)
    rows = len(strategy.own) + len(strategy.sums)
    drawn = [int(z) for z in Laplace().sample(rows)]
    moved = [0] * 24
    moved[7] = noise.reaches[0]
    one = running_noise(strategy, drawer(drawn, 24))
    other = running_noise(strategy, drawer(shifted(strategy, drawn, moved), 24))
    assert (one + np.cumsum(moved) == other).all()


def test_draws_have_the_stated_errors():
    """A sum of Laplace variables has E x⁴ ≤ 6(E x²)²: 6.2 of its deviations are 10⁻⁷ or less."""
    noise, runs = noise_of(16), 1500
    drawn = np.array([noise.draw()[:, 0] for _ in range(runs)], float)
    drawn = np.ldexp(drawn, noise.exponents[0])
    ratio = np.mean(drawn**2, axis=0) / noise.standard_deviations[:, 0] ** 2
    assert np.abs(ratio - 1).max() < 6.2 * math.sqrt(5 / runs)
    assert np.abs(4 * ratio - 1).max() > 6.2 * math.sqrt(5 / runs)
    assert np.corrcoef(drawn.T)[7, 8] > 0.2


@pytest.mark.parametrize("options", [{"window": 4}, {"decay": 0.7}])
def test_draws_of_other_sums_have_the_stated_errors(options):
    """As above, with all events of a window, and sums of them, behind every answer."""
    noise, runs = noise_of(16, **options), 800
    drawn = np.array([noise.draw()[:, 0] for _ in range(runs)], float)
    drawn = np.ldexp(drawn, noise.exponents[0] - noise.events.shift)
    ratio = np.mean(drawn**2, axis=0) / noise.standard_deviations[:, 0] ** 2
    assert np.abs(ratio - 1).max() < 6.2 * math.sqrt(5 / runs)
    assert np.abs(4 * ratio - 1).max() > 6.2 * math.sqrt(5 / runs)


def test_errors_are_those_of_queries_that_are_answered_at_once():
    plan = mh.stream.plan_prefix_counter(64, PURE)
    batch = mh.plan_queries(mh.workloads.prefix(64), privacy=PURE)
    assert plan.expected_error == pytest.approx(batch.expected_error, rel=1e-4)
    for horizon in (1, 2, 3, 4):  # sums would only add noise
        noise = noise_of(horizon)
        assert noise.sums == ()
        assert noise.standard_deviations[-1] == pytest.approx(math.sqrt(2 * horizon), rel=1e-6)


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("options", [{}, {"window": 2}, {"decay": 0.5}])
def test_stairs_hide_each_event_and_are_summed_as_whole_numbers(options, contributions):
    strong = mh.PureDP(epsilon=8.0)
    plan = mh.stream.plan_prefix_counter(6, strong, contributions=contributions, **options)
    noise = plan.parts[0].mechanism.noise
    assert isinstance(noise, StairsRunningNoise)
    share = strong if contributions == 1 else Strength(NoiseKind.PURE, Fraction(8, 3) ** 2)
    assert noise.law.keeps(share, Fraction(noise.reaches[0]))
    # Noise for half the width, or for fewer events of a person, is seen through.
    weaker = replace(noise, law=stairs_for(strong, contributions, noise.reaches[0] // 2))
    assert not weaker.made_for(strong)
    fewer = replace(noise, law=stairs_for(mh.PureDP(epsilon=9.0), contributions, noise.reaches[0]))
    assert not fewer.made_for(strong)
    with pytest.raises(mh.InvalidInput, match="noise was made for"):
        replace(plan.parts[0].mechanism, noise=fewer)


@pytest.mark.parametrize("options", [{}, {"window": 2}, {"decay": 0.5}])
def test_draws_of_stairs_have_the_stated_errors(options):
    """E s⁴ < 8(E s²)² of stairs at ε = 2: the mean of 1500 squares is not 0.6 off in e^−38, and no
    single square is of that size in e^−39·1500."""
    plan = mh.stream.plan_prefix_counter(3, mh.PureDP(epsilon=2.0), **options)
    noise, runs = plan.parts[0].mechanism.noise, 1500
    assert isinstance(noise, StairsRunningNoise)
    drawn = np.array([noise.draw()[:, 0] for _ in range(runs)], float)
    drawn = np.ldexp(drawn, noise.exponents[0] - noise.events.shift)
    ratio = np.mean(drawn**2, axis=0) / noise.standard_deviations[:, 0] ** 2
    assert np.abs(ratio - 1).max() < 0.6
    assert np.abs(4 * ratio - 1).max() > 0.6


def test_stairs_are_taken_where_they_err_less_and_go_on_when_saved(tmp_path):
    strong = mh.PureDP(epsilon=8.0)
    plan = mh.stream.plan_prefix_counter(6, strong)
    ((name, error),) = plan.alternatives
    assert name.startswith("laplace")
    assert error > 2 * plan.expected_error
    assert mh.stream.plan_prefix_counter(64, PURE).mechanism.startswith("laplace")
    counter = mh.stream.start(plan)
    counter.push(1)
    counter.save(tmp_path / "state")
    again = mh.stream.restore(tmp_path / "state")
    assert (again.standard_errors == counter.standard_errors).all()
    assert abs(again.push(1) - 2) < 40 * again.standard_error
    weak = mh.stream.prefix_counter(6, WEAK)
    assert np.allclose(weak.push_many([0.25, 0.5, 1]), [0.25, 0.75, 1.75], atol=1e-3)


@pytest.mark.parametrize("events", [Weights(), Weights(2), Weights(None, Fraction(1, 2))], ids=repr)
@pytest.mark.parametrize("law", [Stairs(1, 1, Fraction(1, 3)), Stairs(4, 2, Fraction(1, 50))])
def test_moments_of_sums_of_stairs_are_those_of_an_enumeration(law, events):
    noise = StairsRunningNoise(3, (0,), (law.step,), law, 1, 1, *events)
    reach = 40 * law.step
    places = np.arange(-reach, reach + 1.0)
    sizes = law.beyond(np.abs(places)) - law.beyond(np.abs(places) + 1)
    one = np.where(places == 0, sizes, sizes / 2)
    shares = np.ldexp(np.array(events.whole(3), float), -events.shift)
    for order in (2, 4, 6):
        # E(a + b)^q over the last two events, and over the third with their moments.
        parts = [[float(one @ (share * places) ** k) for k in range(order + 1)] for share in shares]
        moments = parts[0]
        for t, more in enumerate(parts[1:], 1):
            moments = [
                sum(math.comb(q, k) * moments[k] * more[q - k] for k in range(q + 1))
                for q in range(order + 1)
            ]
            deviation = math.sqrt(moments[2])
            expected = moments[order] ** (1 / order) / deviation
            assert noise.moment(order)[t, 0] == pytest.approx(expected, rel=1e-8)
        assert (noise.moment(order - 0.5) == noise.moment(order)).all()
    assert np.isinf(noise.moment(LARGEST_ORDER + 1)).all()


@pytest.mark.parametrize("p", [3, 4, math.inf])
def test_every_order_compares_stairs_with_laplace_noise(p):
    """An ℓ_p error is no larger than the ℓ₂ error of the same noise."""
    for epsilon in (1.0, 4.0, 8.0):
        promise = mh.PureDP(epsilon=epsilon)
        plan = mh.stream.plan_prefix_counter(40, promise, p=p)
        squares = mh.stream.plan_prefix_counter(40, promise)
        assert plan.expected_error <= squares.expected_error * (1 + 1e-9)
        assert len(plan.alternatives) == 1


def test_the_sum_comes_out_and_goes_on_when_saved(tmp_path):
    counter = mh.stream.prefix_counter(20, WEAK, lower=[-1, 0], upper=[2, 10])
    answers = counter.push_many([[1, 3]] * 5)
    assert np.allclose(answers, np.outer(np.arange(1, 6), [1, 3]), atol=1e-3)
    counter.save(tmp_path / "state")
    again = mh.stream.restore(tmp_path / "state")
    assert np.allclose(again.push([5, 50]), [7, 25], atol=1e-3)
    assert (again.standard_errors == counter.standard_errors).all()
    assert again.privacy == WEAK


def test_a_replaced_event_has_the_noise_of_the_width():
    far = mh.stream.plan_prefix_counter(10, PURE, 100, 101, neighbors="substitute")
    near = mh.stream.plan_prefix_counter(10, PURE)
    assert far.expected_error == near.expected_error


def test_a_pure_ledger_pays_for_a_stream(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "budget.db", budget=PURE, neighbors="add-remove")
    with pytest.raises(mh.InvalidInput, match="few buffers"):
        mh.stream.prefix_counter(10, PURE, memory="few-buffers", ledger=ledger)
    with pytest.raises(mh.InvalidInput, match="at most 65,536 under pure"):
        mh.stream.prefix_counter(10**5, PURE, ledger=ledger)
    assert ledger.entries() == []
    counter = mh.stream.prefix_counter(10, PURE, ledger=ledger)
    assert ledger.spent == PURE
    assert "laplace noise" in counter.describe()


def test_laplace_noise_competes_where_there_is_a_delta():
    strict = mh.stream.plan_prefix_counter(20, mh.ApproxDP(epsilon=1.0, delta=1e-9))
    assert strict.mechanism.startswith("laplace")
    others = dict(strict.alternatives)
    assert set(others) == {"stairs on events (full)", "optimal factorisation (full)"}
    assert min(others.values()) > strict.expected_error
    loose = mh.stream.plan_prefix_counter(20, mh.ApproxDP(epsilon=1.0, delta=0.01))
    assert loose.mechanism.startswith("optimal")
    few = mh.stream.plan_prefix_counter(
        20, mh.ApproxDP(epsilon=1.0, delta=1e-9), memory="few-buffers"
    )
    assert few.mechanism.startswith("square-root")


def test_no_bound_exceeds_the_error_of_a_pure_stream():
    for horizon in (1, 2, 30):
        for epsilon in (0.1, 1.0, 8.0):
            for lower, upper in ((0, 1), (-5, 2), ([0, -1e-3], [1, 7])):
                for p in (2, 3, math.inf):
                    plan = mh.stream.plan_prefix_counter(
                        horizon, mh.PureDP(epsilon=epsilon), lower, upper, p=p
                    )
                    certificate = plan.certificate
                    assert all(b.value <= certificate.error for b in certificate.bounds if b.value)
                    assert certificate.ratio >= 1


def test_coordinates_share_the_whole_promise():
    shares = laplace_shares([1.0, 8.0], 2)
    assert sum(shares) <= 1
    assert float(shares[1] / shares[0]) == pytest.approx(4)
    noise = noise_of(lower=[0, 0], upper=[1, 8])
    moved = sum(q * level for q, level in zip(noise.reaches, noise.levels, strict=True))
    assert (1 - 1e-6) * 2**54 < moved <= 2**54
