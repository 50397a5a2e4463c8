"""The best noise for short streams: its sensitivity in rationals, its rounding, other sums."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.queries.event_weights import Weights
from muhat.mechanisms.queries.participation import farthest_squared
from muhat.mechanisms.queries.running_optimum import (
    OptimalRunningNoise,
    best_factor,
    proved_reach,
    rounded_product,
    several_floor,
)
from muhat.mechanisms.queries.streaming import moved_together
from muhat.noise.entropy import system_words
from muhat.noise.real_normal import RealNormals
from muhat.workloads.toeplitz import square_root

GDP = mh.GDP(mu=1.0)
WEAK = mh.GDP(mu=2.0**20)
KINDS = {
    "running": Weights(),
    "window": Weights(window=3),
    "decay": Weights(decay=Fraction(4, 5)),
}


def strategy_of(decoder, weights):
    """C = L⁻¹·W in rationals, by columns."""
    size = len(decoder)
    lower = [[Fraction(int(x), 1 << 36) for x in row] for row in decoder]
    wanted = [[Fraction(int(x), 1 << weights.shift) for x in row] for row in weights.matrix(size)]
    columns = []
    for j in range(size):
        column: list[Fraction] = []
        for t in range(size):
            seen = sum((lower[t][s] * column[s] for s in range(t)), Fraction(0))
            column.append((wanted[t][j] - seen) / lower[t][t])
        columns.append(column)
    return columns


def patterns(size, contributions, apart):
    for count in range(1, contributions + 1):
        for steps in itertools.combinations(range(size), count):
            if all(b - a >= apart for a, b in itertools.pairwise(steps)):
                yield steps


def farthest(columns, contributions, apart):
    """The square of the farthest that a person moves C·q, over all steps and signs."""
    found = Fraction(0)
    for steps in patterns(len(columns), contributions, apart):
        for signs in itertools.product((1, -1), repeat=len(steps) - 1):
            moved = [
                sum(sign * columns[j][t] for j, sign in zip(steps, (1, *signs), strict=True))
                for t in range(len(columns))
            ]
            found = max(found, sum(x * x for x in moved))
    return found


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("contributions", "apart"), [(1, 1), (2, 1), (3, 2), (2, 4)])
def test_nobody_moves_the_strategy_farther_than_is_proved(name, contributions, apart):
    weights = KINDS[name]
    best = best_factor(7, 2.0, weights, contributions, apart)
    exact = farthest(strategy_of(best.decoder, weights), contributions, apart)
    assert exact <= best.reach**2
    assert exact >= best.reach**2 * Fraction(8 if contributions > 1 else 10, 10) * (
        1 - Fraction(1, 10**6)
    )


@pytest.mark.parametrize("change", [3, 1 << 12, -(1 << 16), 1 << 20])
def test_a_decoder_that_is_not_what_was_solved_is_bounded_all_the_same(change):
    """The proof looks at L itself: a wrong digit costs noise, never privacy."""
    weights = Weights()
    best = best_factor(7, 2.0, weights, 1, 1)
    strategy = np.array([[float(x) for x in c] for c in strategy_of(best.decoder, weights)]).T
    wrong = best.decoder.copy()
    wrong[5, 2] += change
    reach = proved_reach(wrong, strategy, weights, 1, 1)
    assert farthest(strategy_of(wrong, weights), 1, 1) <= reach**2
    with pytest.raises(mh.InvalidInput, match="ill-conditioned"):
        proved_reach(best.decoder * 2, strategy, weights, 1, 1)
    upper = best.decoder.copy()
    upper[2, 5] = 1
    with pytest.raises(AssertionError, match="lower triangular"):
        proved_reach(upper, strategy, weights, 1, 1)


def test_the_noise_is_that_of_the_proved_reach():
    """K·μ·ω ≥ Q·r in rationals, and not for a K that is one less."""
    plan = mh.stream.plan_prefix_counter(20, mh.ZCDP(rho=0.3), [0, 0], [1, 5], contributions=2)
    noise = plan.parts[0].mechanism.noise
    assert isinstance(noise, OptimalRunningNoise)
    for j in range(2):
        allowed = noise.strength_squared * noise.shares[j]
        wanted = (noise.reaches[j] * noise.best.reach) ** 2
        assert noise.multiplier(j) ** 2 * allowed >= wanted
        assert (noise.multiplier(j) - 1) ** 2 * allowed < wanted


def test_noise_is_rounded_as_if_computed_exactly():
    best = best_factor(30, 2.0, Weights(), 1, 1)
    drawn = []

    def recorded(count):
        drawn.append(system_words(count))
        return drawn[-1]

    found = rounded_product(best.decoder, 12345, recorded)
    replayed = iter(drawn)
    normals = RealNormals.draw(30, lambda count: next(replayed))
    for _ in range(len(normals.words), 1):
        normals.refine()
    for row, rounded in zip(best.decoder.tolist(), found.tolist(), strict=True):
        value = 12345 * sum(
            Fraction(x * z, 1 << (36 + normals.bits))
            for x, z in zip(row, normals.integers(), strict=True)
        )
        assert abs(value - rounded) <= Fraction(1, 2) + Fraction(1, 1 << 60)


def as_entries(matrix):
    """In the units of `farthest_squared`."""
    return np.asarray(matrix) * 2.0**20


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("contributions", "apart"), [(2, 1), (3, 2), (4, 3)])
def test_no_set_of_steps_is_farther_than_the_search_finds(seed, contributions, apart):
    rng = np.random.default_rng(seed)
    matrix = np.tril(rng.uniform(-1 if seed % 2 else 0, 1, (8, 8)))
    columns = [[Fraction(float(x)) for x in column] for column in matrix.T]
    exact = farthest(columns, contributions, apart)
    found = farthest_squared(as_entries(matrix), contributions, apart)
    assert exact <= found
    if apart < 3:
        # A search that skipped neighbours would find too little.
        near = np.tril(np.ones((8, 8)))
        assert farthest_squared(as_entries(near), 2, 1) > farthest_squared(as_entries(near), 2, 4)


def test_the_search_is_exact_for_bands_and_for_falling_toeplitz_matrices():
    rng = np.random.default_rng(1)
    bands = np.tril(rng.integers(1, 100, (9, 9)) / 128)
    bands = np.where(np.subtract.outer(np.arange(9), np.arange(9)) < 3, bands, 0)
    falling = np.sort(rng.integers(1, 100, 9))[::-1] / 128
    index = np.subtract.outer(np.arange(9), np.arange(9))
    toeplitz = np.where(index >= 0, falling[index], 0)
    for matrix, apart in ((bands, 3), (toeplitz, 2), (toeplitz, 1), (toeplitz, 8)):
        columns = [[Fraction(float(x)) for x in column] for column in matrix.T]
        assert farthest_squared(as_entries(matrix), 3, apart) == farthest(columns, 3, apart)


def test_events_of_long_streams_that_are_apart_move_as_many_columns_of_the_root():
    for size, contributions, apart in ((40, 3, 7), (40, 6, 8), (41, 5, 1), (10, 13, 3)):
        root = square_root(size)
        moved = np.zeros(size)
        for j in range(0, min(size, contributions * apart), apart):
            moved[j:] += root[: size - j]
        found = moved_together(size, contributions, apart)
        assert found == pytest.approx(float(np.linalg.norm(moved)), rel=1e-12)
        assert found >= float(np.linalg.norm(moved))
    near, apart = (
        mh.stream.plan_prefix_counter(1100, GDP, contributions=4, apart=b) for b in (1, 100)
    )
    assert apart.expected_error < 0.8 * near.expected_error
    noise = apart.parts[0].mechanism.noise
    (weight,) = set(noise.weights(0).tolist())
    assert weight >= noise.reaches[0] * noise.together
    assert "no two less than 100 steps apart" in apart.describe()
    counter = mh.stream.prefix_counter(1100, WEAK, contributions=4, apart=100)
    assert np.allclose(counter.push_many(np.ones(20)), np.arange(1, 21), atol=1e-2)


def test_apart_costs_less_and_never_more():
    errors = [
        mh.stream.plan_prefix_counter(32, GDP, contributions=4, apart=b).expected_error
        for b in (1, 2, 8, 16, 32)
    ]
    assert all(a >= b * (1 - 1e-5) for a, b in itertools.pairwise(errors))
    one = mh.stream.plan_prefix_counter(32, GDP).expected_error
    assert errors[0] < 4 * one
    assert errors[-1] == pytest.approx(one, rel=1e-4)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("privacy", [WEAK, mh.PureDP(epsilon=2.0**20)])
def test_sums_are_those_of_the_weights(tmp_path, name, neighbors, privacy):
    weights = KINDS[name]
    options = {"window": weights.window, "decay": weights.decay and float(weights.decay)}
    counter = mh.stream.prefix_counter(
        20, privacy, [-1, 0], [2, 10], neighbors=neighbors, **options
    )
    events = np.random.default_rng(2).uniform([-1, 0], [2, 10], (20, 2))
    shares = np.array(weights.whole(20)) / 2.0**weights.shift
    wanted = np.stack([np.convolve(column, shares)[:20] for column in events.T], axis=1)
    assert counter.value.tolist() == [0, 0]
    first = counter.push(events[0])
    rest = counter.push_many(events[1:12])
    counter.save(tmp_path / "state")
    again = mh.stream.restore(tmp_path / "state")
    assert (again.value == rest[-1]).all()
    assert (again.standard_errors == counter.standard_errors).all()
    answers = np.vstack([first, rest, again.push_many(events[12:])])
    assert np.allclose(answers, wanted, atol=1e-3)


@pytest.mark.parametrize("name", KINDS)
def test_draws_have_the_stated_errors_and_the_certificate_is_tight(name):
    """Normal noise: 6 deviations of its square's mean are missed in less than one of 10⁷."""
    weights, runs = KINDS[name], 1500
    plan = mh.stream.plan_prefix_counter(
        8, GDP, window=weights.window, decay=weights.decay and float(weights.decay)
    )
    noise = plan.parts[0].mechanism.noise
    drawn = np.array([noise.draw()[:, 0] for _ in range(runs)], float)
    drawn = np.ldexp(drawn, noise.exponents[0] - weights.shift)
    ratio = np.mean(drawn**2, axis=0) / noise.standard_deviations[:, 0] ** 2
    assert np.abs(ratio - 1).max() < 6 * math.sqrt(2 / runs)
    assert np.abs(2 * ratio - 1).max() > 6 * math.sqrt(2 / runs)
    assert 1 <= plan.certificate.ratio < 1.000001


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_what_several_events_move_together_is_certified(neighbors):
    for contributions, apart, most in ((2, 1, 1.08), (4, 1, 1.17), (4, 8, 1.3)):
        plan = mh.stream.plan_prefix_counter(
            32, GDP, contributions=contributions, apart=apart, neighbors=neighbors
        )
        assert 1 <= plan.certificate.ratio < most
        (bound,) = [b for b in plan.certificate.bounds if b.mechanisms == "additive"]
        assert any(f"{contributions} records" in text for text in bound.assumptions)
    floors = [several_floor(32, 2.0, Weights(), 4, b) for b in (1, 2, 8, 32)]
    assert all(a > b for a, b in itertools.pairwise(floors))
    assert floors[-1] == pytest.approx(several_floor(32, 2.0, Weights(), 1, 1), rel=1e-3)


def test_no_bound_exceeds_the_error_of_any_sums():
    ways = itertools.product(
        (GDP, mh.ZCDP(rho=2.0), mh.PureDP(epsilon=1.0), mh.ApproxDP(epsilon=1.0, delta=1e-6)),
        ({}, {"window": 4}, {"decay": 0.5}, {"contributions": 3, "apart": 2}),
        (2, math.inf),
    )
    for privacy, options, p in ways:
        certificate = mh.stream.plan_prefix_counter(12, privacy, -1, 3, p=p, **options).certificate
        for bound in certificate.bounds:
            if bound.value is not None and not bound.is_conditional:
                assert bound.value <= certificate.error


def test_running_sums_have_the_error_and_the_floor_of_queries_answered_at_once():
    for p in (2, math.inf):
        plan = mh.stream.plan_prefix_counter(64, GDP, p=p)
        batch = mh.plan_queries(mh.workloads.prefix(64), privacy=GDP, p=p)
        deviations = mh.stream.start(plan).standard_errors
        assert np.linalg.norm(deviations, ord=p) == pytest.approx(
            np.linalg.norm(batch.standard_error, ord=p), rel=1e-5
        )
    assert plan.mechanism == "optimal factorisation (full)"


def test_words_say_what_is_summed():
    last = mh.stream.plan_prefix_counter(30, GDP, window=7)
    fading = mh.stream.plan_prefix_counter(30, GDP, decay=0.9)
    assert "sums of the last 7 of up to 30 events" in last.describe()
    assert "decay to 0.9 a step" in fading.describe()
    assert len({plan.digest for plan in (last, fading)}) == 2
    assert last.plot().axes[0].get_ylabel() == "standard error of the sum"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"window": 3, "decay": 0.5}, "leave one of them out"),
        ({"window": 0}, "window must be"),
        ({"window": 2.5}, "window must be"),
        ({"decay": 1.0}, "decay must lie"),
        ({"decay": -0.5}, "decay must lie"),
        ({"decay": math.nan}, "decay must"),
        ({"window": 3, "horizon": 1025}, "up to 1,024 steps"),
        ({"decay": 0.5, "memory": "few-buffers"}, "memory"),
        ({"window": 3, "horizon": 1025, "privacy": mh.PureDP(epsilon=1.0)}, "up to 1,024 steps"),
        ({"apart": 0}, "apart must be"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_paid(tmp_path, arguments, words):
    ledger = mh.Ledger.create(tmp_path / "budget.db", budget=GDP, neighbors="add-remove")
    with pytest.raises(mh.InvalidInput, match=words):
        mh.stream.prefix_counter(**{"horizon": 10, "privacy": GDP, "ledger": ledger, **arguments})
    assert ledger.entries() == []
