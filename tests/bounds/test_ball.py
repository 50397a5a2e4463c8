"""Means in a ball: achieved errors against the plans, lower bounds against formulas and noise."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle

import numpy as np
import pytest

import muhat as mh
from muhat import bounds
from muhat.bounds.ball import packing_error, volume_error
from muhat.errors import InvalidInput
from muhat.privacy import GDP, ZCDP, ApproxDP, PureDP

PROMISES = [
    PureDP(epsilon=0.7),
    ApproxDP(epsilon=1.0, delta=1e-6),
    ZCDP(rho=0.1),
    GDP(mu=1.0),
]


# The packing of code words.


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_it_is_the_maximum_over_every_packing(epsilon):
    for n, dim in itertools.product([1, 5, 60], [1, 2, 7, 20]):
        best = 0.0
        for distance in range(1, dim + 1):
            below = sum(math.comb(dim, i) for i in range(distance))
            others = math.ceil(2**dim / below) - 1
            for m in range(1, n + 1):
                g = others * math.exp(-m * epsilon)
                best = max(best, m / n * math.sqrt(distance / dim) * g / (1 + g))
        assert best * (1 - 1e-9) <= packing_error(n, dim, epsilon) < best


def test_the_code_words_exist():
    """A greedy code of length d has at least P_D words at distance D."""
    for dim in (3, 6, 8):
        words = np.arange(1 << dim)
        for distance in range(1, dim + 1):
            code: list[int] = []
            for word in words.tolist():
                if all((word ^ other).bit_count() >= distance for other in code):
                    code.append(word)
            below = sum(math.comb(dim, i) for i in range(distance))
            assert len(code) >= math.ceil(2**dim / below)


def test_large_dimensions_keep_the_linear_rate():
    error = 2 * 10**4 / (10**7 * 1.0)
    assert 0.03 < packing_error(10**7, 10**4, 1.0) / error < 1


def test_a_privacy_loss_beyond_the_exponential_gives_nothing():
    assert packing_error(1, 1, 1000.0) == 0.0


# The volumes.


def test_volumes_are_the_maximum_over_every_group_of_records():
    for n, dim, epsilon, delta in itertools.product(
        [1, 7, 200], [1, 2, 30], [0.05, 1.0, 4.0], [0.0, 1e-9, 0.01, 0.9]
    ):
        best = 0.0
        for m in range(1, n + 1):
            leak = delta * math.expm1(min(m * epsilon, 700)) / math.expm1(epsilon)
            if leak < 1:
                shape = math.sqrt(dim / (dim + 2)) * (1 - leak) ** (0.5 + 1 / dim)
                best = max(best, shape * m / n * math.exp(-m * epsilon / dim))
        privacy = ApproxDP(epsilon=epsilon, delta=delta) if delta else PureDP(epsilon=epsilon)
        assert best * (1 - 1e-8) <= volume_error(n, dim, privacy) < best


def test_entropies_are_the_maximum_over_every_group_of_records():
    for n, dim, rho in itertools.product([1, 7, 200], [1, 2, 30, 400], [1e-4, 0.1, 5.0]):
        volume = math.pi ** (dim / 2) / math.gamma(dim / 2 + 1) if dim < 300 else None
        root = (
            volume ** (1 / dim)
            if volume
            else math.exp((dim / 2 * math.log(math.pi) - math.lgamma(dim / 2 + 1)) / dim)
        )
        constant = math.sqrt(dim / (2 * math.pi * math.e)) * root
        best = max(constant * m / n * math.exp(-m * m * rho / dim) for m in range(1, n + 1))
        assert best * (1 - 1e-8) <= volume_error(n, dim, ZCDP(rho=rho)) < best
        same = volume_error(n, dim, GDP(mu=math.sqrt(2 * rho)))
        assert same == pytest.approx(volume_error(n, dim, ZCDP(rho=rho)), rel=1e-12)


def test_the_volume_argument_holds_for_noise_that_is_known():
    """One record, K-norm noise: the probability of a small error is at most e^ε(r/R)^d.

    The noise ∝ exp(−ε‖z‖/2) has a radius ~ Gamma(d, 2/ε); the inequality is checked as it is used.
    """
    from scipy.stats import gamma

    for dim, epsilon in itertools.product([1, 3, 10], [0.5, 2.0, 8.0]):
        r = np.linspace(1e-6, 1, 400)
        inside = gamma.cdf(r, dim, scale=2 / epsilon)
        assert (inside <= math.exp(epsilon) * r**dim * (1 + 1e-9)).all()


def test_the_asymptotic_constants():
    """Of 2d/(nε) K-norm noise is within 2e, of 2√d/(n√(2ρ)) Gaussian noise within 2√e."""
    # With 2000 records at each of 5000 places, copies say more than entropy for Gaussian noise.
    pure = bounds.ball(n=10**7, dim=5000, radius=1.0, privacy=PureDP(epsilon=1.0))
    assert pure.ratio == pytest.approx(2 * math.e, rel=2e-3)
    privacy = ZCDP(rho=0.001)
    concentrated = bounds.any_mean(n=10**7, dim=5000, radius=1.0, privacy=privacy)
    error = bounds.ball(n=10**7, dim=5000, radius=1.0, privacy=privacy).upper
    assert error / concentrated[0].value == pytest.approx(2 * math.sqrt(math.e), rel=2e-3)


# The table.


@pytest.mark.parametrize("privacy", PROMISES, ids=str)
@pytest.mark.parametrize("dim", [1, 5, 40])
def test_the_plans_achieve_what_is_written(privacy, dim):
    found = bounds.ball(n=1000, dim=dim, radius=2.5, privacy=privacy)
    assert sum(entry.is_constant for entry in found.achieved) == 1
    for entry in found.achieved:
        if entry.is_constant:
            assert entry.error == 2.5
            continue
        promise = privacy
        if entry.mechanism != "gaussian" and isinstance(privacy, ApproxDP):
            promise = PureDP(epsilon=privacy.epsilon)
        assert entry.promise == promise.describe()
        plan = mh.plan_mean(
            domain=mh.Ball(radius=2.5, dim=dim),
            n=1000,
            privacy=promise,
            mechanism=entry.mechanism,
        )
        assert plan.mechanism == entry.mechanism
        assert plan.expected_error == pytest.approx(entry.error, rel=1e-9)
    errors = [entry.error for entry in found.achieved]
    assert errors == sorted(errors)
    assert found.upper == errors[0]


@pytest.mark.parametrize("privacy", PROMISES, ids=str)
def test_no_mechanism_is_below_the_bounds(privacy):
    """Nor is the centre of the ball, which errs by the radius at most."""
    for n, dim in itertools.product([1, 10, 10**3, 10**6], [1, 3, 30, 300]):
        found = bounds.ball(n=n, dim=dim, radius=1.0, privacy=privacy)
        assert 0 < found.lower <= min(1.0, found.upper)
        for bound in found:
            if bound.value is not None and bound.mechanisms == "unbiased":
                # A constant is biased, and may have less error than any unbiased mean.
                ours = min(entry.error for entry in found.achieved if not entry.is_constant)
                assert bound.value <= ours


def test_where_the_root_of_the_dimension_shows():
    """Pure privacy costs √d more: both sides of it, from the bounds alone."""
    for dim in (300, 3000):
        pure = bounds.ball(n=10**7, dim=dim, radius=1.0, privacy=PureDP(epsilon=1.0))
        relaxed = bounds.ball(
            n=10**7, dim=dim, radius=1.0, privacy=ApproxDP(epsilon=1.0, delta=1e-6)
        )
        assert (pure.lower > relaxed.upper) == (dim == 3000)


def test_the_bounds_are_monotone():
    def lower(n=1000, dim=50, radius=1.0, privacy=PROMISES[0]):
        return bounds.ball(n=n, dim=dim, radius=radius, privacy=privacy).lower

    for privacy in PROMISES:
        sizes = [lower(n=n, privacy=privacy) for n in (1, 10, 50, 100, 1000, 10**6)]
        assert sizes == sorted(sizes, reverse=True)
        dimensions = [lower(n=10**5, dim=d, privacy=privacy) for d in (1, 4, 16, 64, 256, 1024)]
        assert dimensions == sorted(dimensions)
        assert lower(radius=3.0, privacy=privacy) == pytest.approx(3 * lower(privacy=privacy))
    losses = [lower(privacy=PureDP(epsilon=e)) for e in (0.01, 0.1, 0.5, 1.0, 5.0, 100.0)]
    assert losses == sorted(losses, reverse=True)
    leaks = [lower(privacy=ApproxDP(epsilon=1.0, delta=d)) for d in (1e-30, 1e-9, 1e-3, 0.5)]
    assert leaks == sorted(leaks, reverse=True)


def test_rates_have_no_numbers():
    found = bounds.ball(n=10, dim=3, radius=1.0, privacy=PureDP(epsilon=1.0))
    (rate,) = [bound for bound in found if bound.theorem.startswith("BST14")]
    assert rate.value is None
    assert "rate" in rate.sentence()
    relaxed = bounds.ball(n=10, dim=3, radius=1.0, privacy=ApproxDP(epsilon=1.0, delta=1e-6))
    assert sum(bound.value is None for bound in relaxed) >= 1
    assert sum(bound.datasets == "near" for bound in relaxed) == 1


def test_the_plan_of_a_ball_carries_the_bound_for_any_mechanism():
    plan = mh.plan_mean(domain=mh.Ball(radius=1.0, dim=300), n=10**5, privacy=PureDP(epsilon=1.0))
    found = bounds.ball(n=10**5, dim=300, radius=1.0, privacy=PureDP(epsilon=1.0))
    known = [bound.value for bound in plan.certificate.bounds if bound.mechanisms == "any"]
    assert any(value == pytest.approx(found.lower, rel=1e-6) for value in known if value)


@pytest.mark.parametrize("privacy", PROMISES, ids=str)
def test_a_constant_is_known_and_wins_where_noise_is_larger_than_the_ball(privacy):
    few = bounds.ball(n=1, dim=300, radius=2.0, privacy=privacy)
    assert few.achieved[0].is_constant
    assert few.upper == 2.0
    assert few.lower <= 2.0
    assert "A constant, the centre of the ball, has no larger error" in repr(few)
    many = bounds.ball(n=10**6, dim=3, radius=2.0, privacy=privacy)
    assert many.achieved[-1].is_constant
    assert many.upper < 2.0
    assert "A constant" not in repr(many)
    assert "the centre, always" in repr(many)


def test_extreme_arguments_give_finite_numbers():
    for privacy in (
        PureDP(epsilon=1e-300),
        PureDP(epsilon=1e5),
        ApproxDP(epsilon=1.0, delta=1 - 1e-12),
        ApproxDP(epsilon=1e-300, delta=1e-300),
        ZCDP(rho=1e-300),
        ZCDP(rho=1e5),
        GDP(mu=1e-100),
    ):
        for n, dim in itertools.product([1, 2**53 - 1], [1, 2000]):
            found = bounds.ball(n=n, dim=dim, radius=1.0, privacy=privacy)
            assert 0 <= found.lower <= 1
            assert found.lower <= found.upper
            repr(found)


def test_the_table_reads_well_and_travels():
    found = bounds.ball(n=1000, dim=10, radius=1.0, privacy=PureDP(epsilon=1.0))
    text = repr(found)
    assert "ellipsoid-norm" in text
    assert "B7 by volumes" in text
    assert "rate only" in text
    assert found._repr_html_().count("<tr>") == len(found) + len(found.achieved) + 1
    json.dumps(found.to_dict(), allow_nan=False)
    assert pickle.loads(pickle.dumps(found)) == found == copy.deepcopy(found)
    assert list(found) == list(found.bounds)
    with pytest.raises(AttributeError):
        found.n = 2


@pytest.mark.parametrize(
    "change",
    [
        {"n": 0},
        {"dim": 0},
        {"dim": 10**7},
        {"radius": 0.0},
        {"radius": math.nan},
        {"privacy": 1.0},
    ],
)
def test_wrong_arguments_are_refused(change):
    arguments = {"n": 10, "dim": 3, "radius": 1.0, "privacy": PureDP(epsilon=1.0), **change}
    for function in (bounds.ball, bounds.any_mean):
        with pytest.raises(InvalidInput):
            function(**arguments)
