"""The noisy number of complete records before a mean of bounded bias: promise and margin."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.learning.outside_count import count_outside
from muhat.mechanisms.learning.recorded_number import FAILURE, RecordedNumber
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind

PROMISES = [
    mh.ZCDP(rho=0.5),
    mh.GDP(mu=0.3),
    mh.PureDP(epsilon=2),
    mh.ApproxDP(epsilon=1, delta=1e-6),
    mh.RDP(alpha=8, epsilon=0.5),
]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
@pytest.mark.parametrize("contributions", [1, 4])
def test_the_count_and_the_mean_share_the_promise(promise: Any, contributions: int) -> None:
    number = RecordedNumber.of(promise, 5000, contributions)
    count = promise.part(number.share)
    for used, more, whole in zip(count.amounts, number.rest.amounts, promise.amounts, strict=True):
        assert used + more <= whole
    # One person moves the integer by no more than the count's own promise allows.
    search = number.search
    moved = Fraction(search.sensitivity, 1 << FRACTION_BITS)
    if search.law.kind is NoiseKind.PURE:
        assert count.follows_from_pure(float(moved))
    else:
        assert moved**2 <= count.normal_mu_squared


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
def test_so_many_records_are_there_but_for_one_chance_in_a_billion(promise: Any) -> None:
    number = RecordedNumber.of(promise, 5000, 1)
    search = number.search
    reach = number.margin / search.noise_unit
    tail = (
        math.exp(-reach) / 2
        if search.law.kind is NoiseKind.PURE
        else math.erfc(reach / math.sqrt(2)) / 2
    )
    assert 0.9 * FAILURE < tail <= FAILURE
    draws = [number.draw(3000) for _ in range(300)]
    assert all(drawn <= 3000 for _, drawn in draws)
    assert min(drawn for _, drawn in draws) > 3000 - 2.5 * number.margin
    # Without the margin half of them would be above.
    assert any(found.value > 3000 for found, _ in draws)


def test_nothing_is_drawn_below_zero() -> None:
    number = RecordedNumber.of(mh.ZCDP(rho=0.5), 5000, 1)
    assert {number.draw(0)[1] for _ in range(50)} == {0}


def test_the_count_has_the_noise_that_is_said() -> None:
    number = RecordedNumber.of(mh.PureDP(epsilon=1), 5000, 1)
    errors = [count_outside(number.search, np.array([0, 70])).value - 70 for _ in range(400)]
    said = count_outside(number.search, np.array([0, 70])).standard_error
    # The root mean square of 400 Laplace variables: a deviation of 5.6 %; 7 of them, 1e-11.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(said, rel=0.4)
