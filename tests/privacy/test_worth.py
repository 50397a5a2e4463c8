"""What promises are worth, and that those worth little say so."""

from __future__ import annotations

import math
import warnings

import pytest

import muhat as mh
from muhat.privacy.worth import OFTEN, cautions, least_error

WORTHLESS = [
    mh.PureDP(epsilon=50),
    mh.PureDP(epsilon=7),
    mh.ApproxDP(epsilon=50, delta=1e-9),
    mh.ApproxDP(epsilon=1, delta=0.999),
    mh.ZCDP(rho=20),
    mh.ZCDP(rho=1e6),
    mh.GDP(mu=6.2),
    mh.PureDP(epsilon=1e300),
]
FAIR = [
    mh.PureDP(epsilon=6.9),
    mh.ApproxDP(epsilon=6.9, delta=1e-6),
    mh.ZCDP(rho=19),
    mh.GDP(mu=6.1),
]


@pytest.mark.parametrize("promise", WORTHLESS, ids=lambda promise: promise.describe())
def test_a_promise_of_next_to_nothing_says_so(promise):
    assert least_error(promise) < 1 / OFTEN
    said = cautions(promise)
    assert said[0].startswith(f"{promise.describe()} promises next to nothing")
    assert all(sentence.endswith(".") for sentence in said)
    assert "inf" not in said[0]


@pytest.mark.parametrize("promise", FAIR, ids=lambda promise: promise.describe())
def test_a_promise_that_forbids_something_is_left_alone(promise):
    assert cautions(promise, 1000) == ()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-9, 0.1])
def test_the_least_error_is_that_of_the_best_guess_between_two_outputs(epsilon, delta):
    """The pair that every (ε, δ) pair is a post-processing of: with δ the answer is in the open."""
    likely = (1 - delta) / (1 + math.exp(-epsilon))
    there, other = (delta, likely, (1 - delta) - likely), (0.0, (1 - delta) - likely, likely)
    error = sum(min(pair) for pair in zip((*there, 0.0), (*other, delta), strict=True)) / 2
    promise = mh.ApproxDP(epsilon=epsilon, delta=delta)
    assert least_error(promise) == pytest.approx(error, rel=1e-6, abs=1e-15)


def test_normal_noise_has_the_least_error_of_its_promise():
    for mu in (0.5, 2.0, 7.0):
        tail = 0.5 * math.erfc(mu / 2 / math.sqrt(2))
        assert least_error(mh.GDP(mu=mu)) == pytest.approx(tail)
        assert least_error(mh.ZCDP(rho=mu**2 / 2)) == pytest.approx(tail)


def test_delta_is_compared_with_a_public_number_of_records_only():
    promise = mh.ApproxDP(epsilon=1, delta=1e-4)
    assert cautions(promise) == ()
    assert cautions(promise, 9_999) == ()
    assert "not below 1/n" in cautions(promise, 10_000)[0]


def test_a_large_delta_is_one_whatever_n_is():
    for n in (None, 50):
        (said,) = cautions(mh.ApproxDP(epsilon=1, delta=0.01), n)
        assert "all records in the clear once in 100 times" in said


def test_what_is_said_is_no_reason_to_interrupt():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mh.plan_mean(domain=mh.Box([0], [1]), n=100, privacy=mh.PureDP(epsilon=50))
