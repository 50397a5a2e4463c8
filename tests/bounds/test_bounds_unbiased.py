"""Lower bounds for unbiased means and sums: the known numbers, and no mechanism below them."""

from __future__ import annotations

import itertools
import math

import pytest

import muhat as mh
from muhat.bounds import unbiased_mean, unbiased_sum
from muhat.errors import InvalidInput
from muhat.privacy import GDP, ZCDP, ApproxDP, PureDP, gaussian_mu, gaussian_mu_squared


def values(*arguments, **keywords):
    return {
        (bound.mechanisms, bound.datasets): bound.value
        for bound in unbiased_mean(*arguments, **keywords)
        if bound.value is not None
    }


@pytest.mark.parametrize(
    ("rho", "worst", "every"),
    [
        (0.001, 1.0002, 1.024),
        (0.01, 1.0017, 1.078),
        (0.1, 1.0170, 1.283),
        (0.5, 1.0917, 1.851),
        (1.0, 1.2030, 2.585),
    ],
)
def test_the_table_of_certified_ratios(rho, worst, every):
    gaussian = 1 / math.sqrt(2 * rho)
    found = values(1.0, n=1, privacy=ZCDP(rho=rho), contact_pairs=1)
    assert gaussian / found["unbiased", "some"] == pytest.approx(worst, abs=1e-4)
    ratio = gaussian / found["unbiased", "every"]
    assert every - 1e-3 < ratio <= every  # the table rounds up


def test_the_example_of_a_ball():
    gamma = 2 * math.sqrt(10)
    found = values(gamma, n=1000, privacy=ZCDP(rho=0.1), contact_pairs=10)
    error = gamma / (1000 * math.sqrt(0.2))
    assert error == pytest.approx(0.01414, abs=5e-6)
    assert 0.01102 <= found["unbiased", "every"] < 0.01104
    assert 0.0139 <= found["unbiased", "some"] < 0.01391
    assert error / found["unbiased", "some"] == pytest.approx(1.017, abs=5e-4)


def test_gaussian_privacy_is_its_concentrated_twin_or_more():
    every, some = unbiased_mean(1.0, n=9, privacy=ZCDP(rho=0.02), contact_pairs=1)
    same, more = unbiased_mean(1.0, n=9, privacy=GDP(mu=0.2), contact_pairs=1)
    assert same.value == pytest.approx(every.value, rel=1e-13)
    assert some.value < more.value < some.value * 1.004
    assert same.promise == more.promise == "0.2-GDP"


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 0.69, 1.0, 3.0, 10.0])
def test_randomised_response_attains_the_pure_bound_in_one_dimension(epsilon):
    """One record in {−1, 1}: the unbiased answer ±1/tanh(ε/2) has variance 1/sinh²(ε/2)."""
    deviation = 1 / math.sinh(epsilon / 2)
    found = values(2.0, n=1, privacy=PureDP(epsilon=epsilon), contact_pairs=1)
    assert found["unbiased", "some"] == pytest.approx(deviation, rel=1e-11)
    assert found["unbiased", "some"] < deviation
    if epsilon <= math.log(2):
        assert found["unbiased", "every"] == found["unbiased", "some"]
    else:
        assert found["unbiased", "every"] < found["unbiased", "some"]


def test_the_approximate_bound_against_gaussian_noise():
    found = values(1.0, n=1, privacy=ApproxDP(epsilon=1.0, delta=1e-6), contact_pairs=1)
    assert found == {("unbiased", "some"): pytest.approx(0.9595, abs=1e-4)}
    ratio = 1 / gaussian_mu(1.0, 1e-6) / found["unbiased", "some"]
    assert ratio == pytest.approx(4.40, abs=0.005)


def test_the_approximate_bound_becomes_the_pure_one():
    pure = values(1.0, n=1, privacy=PureDP(epsilon=0.2), contact_pairs=1)
    nearly = values(1.0, n=1, privacy=ApproxDP(epsilon=0.2, delta=1e-300), contact_pairs=1)
    assert nearly["unbiased", "some"] == pytest.approx(pure["unbiased", "some"], rel=1e-13)


def test_no_mechanism_is_below_a_bound_on_five_hundred_settings():
    settings = list(
        itertools.product(
            [1, 2, 10, 100, 1000],
            [1, 1000, 10**6],
            [1e-4, 1e-2, 0.1, 0.5, 1.0, 3.0, 10.0],
            ["zcdp", "gdp", "pure", "approx", "tiny-approx"],
        )
    )
    assert len(settings) >= 500
    for d, n, loss, kind in settings:
        privacy = {
            "zcdp": ZCDP(rho=loss),
            "gdp": GDP(mu=loss),
            "pure": PureDP(epsilon=loss),
            "approx": ApproxDP(epsilon=loss, delta=1e-6),
            "tiny-approx": ApproxDP(epsilon=loss, delta=0.2),
        }[kind]
        gamma = 2 * math.sqrt(d)  # the unit ball
        if isinstance(privacy, PureDP):
            error = 2 * math.sqrt(d * (d + 1)) / (n * loss)  # the ball's own K-norm noise
            if d == n == 1:
                error = min(error, 1 / math.sinh(loss / 2))
        else:
            error = gamma / (n * math.sqrt(gaussian_mu_squared(privacy)))
        found = values(gamma, n=n, privacy=privacy, contact_pairs=d)
        assert all(0 < value <= error for value in found.values())
        assert (("unbiased", "some") in found) is (n >= d)
        if n >= d and "approx" not in kind:
            assert found["unbiased", "every"] <= found["unbiased", "some"]


def test_a_planted_wrong_constant_would_be_seen():
    """Twice the width, the classic slip between K and K − K, is above what Gaussian noise does."""
    found = values(2 * 2.0, n=10, privacy=ZCDP(rho=0.1), contact_pairs=1)
    assert min(found.values()) > 2.0 / (10 * math.sqrt(0.2))


def test_the_worst_dataset_needs_room_for_the_contact_pairs():
    bounds = unbiased_mean(1.0, n=19, privacy=ZCDP(rho=0.1), contact_pairs=10, contributions=2)
    (some,) = [bound for bound in bounds if bound.datasets == "some"]
    assert some.value is None
    assert "n is at least 20" in some.assumptions[-1]
    enough = values(1.0, n=20, privacy=ZCDP(rho=0.1), contact_pairs=10, contributions=2)
    assert ("unbiased", "some") in enough


def test_contributions_multiply_the_bound_and_are_said():
    one = unbiased_mean(1.0, n=100, privacy=PureDP(epsilon=1.0), contact_pairs=3)
    three = unbiased_mean(1.0, n=100, privacy=PureDP(epsilon=1.0), contact_pairs=3, contributions=3)
    for single, triple in zip(one, three, strict=True):
        assert triple.value == pytest.approx(3 * single.value)
        assert any("3 records" in sentence for sentence in triple.assumptions)


def test_what_is_known_only_as_a_rate_has_no_number():
    bounds = unbiased_mean(1.0, n=100, privacy=ApproxDP(epsilon=1.0, delta=1e-6), contact_pairs=1)
    rates = [bound for bound in bounds if bound.source == "paper"]
    assert [bound.mechanisms for bound in rates] == ["any"]
    assert all(bound.value is None for bound in rates)
    assert not any(bound.datasets == "every" for bound in bounds)


def test_a_point_has_no_error():
    assert set(values(0.0, n=5, privacy=ZCDP(rho=0.1), contact_pairs=1).values()) == {0.0}


@pytest.mark.parametrize("loss", [1e-300, 1e-100, 1e3, 1e5, 1e300])
def test_extreme_promises_give_finite_bounds(loss):
    for privacy in (
        ZCDP(rho=loss),
        PureDP(epsilon=loss),
        ApproxDP(epsilon=loss, delta=1e-300),
        GDP(mu=min(loss, 1e150)),
    ):
        for bound in (
            *unbiased_mean(1e10, n=1, privacy=privacy, contact_pairs=1),
            *unbiased_sum(1e10, privacy=privacy),
        ):
            assert bound.value is None or 0 <= bound.value < math.inf


@pytest.mark.parametrize(
    "keywords",
    [
        {"n": 0},
        {"contact_pairs": 0},
        {"contributions": 0},
        {"gamma": -1.0},
        {"gamma": math.nan},
    ],
)
def test_wrong_arguments_are_refused(keywords):
    arguments = {"gamma": 1.0, "n": 10, "contact_pairs": 1, **keywords}
    with pytest.raises(InvalidInput):
        unbiased_mean(arguments.pop("gamma"), privacy=ZCDP(rho=0.1), **arguments)


# --- sums ------------------------------------------------------------------------------------


def test_sums_under_addition_and_removal():
    every, some = unbiased_sum(2.0, privacy=ZCDP(rho=0.1))
    assert (every.datasets, some.datasets) == ("every", "some")
    assert every.value == pytest.approx(2 / math.sqrt(math.expm1(0.2)))
    assert 2 / math.sqrt(0.2) / every.value == pytest.approx(1.052, abs=5e-4)
    assert 2 / math.sqrt(0.2) / some.value == pytest.approx(1.017, abs=5e-4)
    (pure,) = unbiased_sum(1.0, privacy=PureDP(epsilon=1.0))
    assert pure.value == pytest.approx(1 / (2 * math.sinh(0.5)))
    assert pure.value < math.sqrt(2)  # Laplace noise for a count


def test_the_best_unbiased_count_is_above_the_pure_bound():
    """Two-sided geometric noise has variance 1/(2 sinh²(ε/2)), twice the square of the bound."""
    for epsilon in (0.1, 1.0, 4.0):
        (bound,) = unbiased_sum(1.0, privacy=PureDP(epsilon=epsilon))
        geometric = 1 / (math.sqrt(2) * math.sinh(epsilon / 2))
        assert bound.value == pytest.approx(geometric / math.sqrt(2), rel=1e-11)


def test_approximate_sums_claim_some_dataset_alone():
    (bound,) = unbiased_sum(1.0, privacy=ApproxDP(epsilon=1.0, delta=1e-6), contributions=2)
    assert (bound.mechanisms, bound.datasets) == ("unbiased", "some")
    assert bound.value == pytest.approx(2 * 0.9595, abs=2e-4)
    assert bound.value < 2 / gaussian_mu(1.0, 1e-6)


def test_groups_count_in_sums_and_where_there_is_room_for_them_in_means():
    loose = ApproxDP(epsilon=1e-3, delta=1e-3)
    (total,) = unbiased_sum(1.0, privacy=loose)
    (small, *_), (large, *_) = (
        unbiased_mean(float(n), n=n, privacy=loose, contact_pairs=1) for n in (1, 10**6)
    )
    assert small.value * 10 < large.value == total.value < 1 / gaussian_mu(1e-3, 1e-3)


# --- the paper's own mechanism ---------------------------------------------------------------


@pytest.mark.parametrize("privacy", [ZCDP(rho=0.1), GDP(mu=1.0), ApproxDP(epsilon=1.0, delta=1e-6)])
def test_the_papers_mechanism_stands_beside_ours_and_its_bounds(privacy):
    for domain, gain in ((mh.Ball(1.0, dim=5), 1.0), (mh.Simplex(dim=8), math.sqrt(7 / 4))):
        found = mh.bounds.nikolov_tang(domain, n=200, privacy=privacy)
        assert found.shifted / found.difference == pytest.approx(gain, rel=1e-6)
        plan = mh.plan_mean(domain=domain, n=200, privacy=privacy, mechanism="gaussian")
        assert found.difference == pytest.approx(plan.expected_error, rel=1e-6)
        named = mh.plan_mean(domain=domain, n=200, privacy=privacy, mechanism="shifted-gaussian")
        assert found.shifted == pytest.approx(named.expected_error, rel=1e-6)
        assert all(bound.value is None or bound.value < found.difference for bound in found)
        assert "Theorem 15" in found.describe()
        ours = max(bound.value for bound in found if bound.source == "derived")
        assert all((bound.value or 0) < ours for bound in found if bound.source == "paper")
    with pytest.raises(InvalidInput):
        mh.bounds.nikolov_tang(mh.Ball(1.0, dim=5), n=200, privacy=PureDP(epsilon=1.0))
