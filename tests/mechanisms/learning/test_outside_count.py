"""Counts of the records outside a learnt ball: their noise, their sensitivity, their words."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.learning.outside_count import OutsideCount, count_outside
from muhat.mechanisms.quantiles import search_walk
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.noise import FRACTION_BITS
from muhat.noise.laws import LAWS


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("contributions", [1, 3])
def test_the_exact_count_is_within_its_noise_and_a_record_moves_it_by_its_strength(
    law: str, contributions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    strength = Fraction(1, 7)
    search = NoisySearch(2, LAWS[law], strength**2, contributions)
    monkeypatch.setattr(type(LAWS[law]), "sample", lambda self, size: np.zeros(size, np.int64))
    counted = [count_outside(search, np.array([1000 - out, out])) for out in range(0, 1001, 10)]
    assert [each.value for each in counted] == pytest.approx(range(0, 1001, 10), abs=1e-9)
    # In units of the noise: contributions · 2^54/scale, in integers, is at most the strength.
    assert search.sensitivity <= strength * (1 << FRACTION_BITS)
    (scale,) = {each.scale for each in counted}
    assert scale == pytest.approx(contributions / strength)


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_the_integers_of_neighbours_differ_by_the_sensitivity_at_most(
    law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    floor = math.floor

    def watched(value: Any) -> int:
        seen.append(floor(value))
        return seen[-1]

    monkeypatch.setattr(search_walk.math, "floor", watched)
    search = NoisySearch(2, LAWS[law], Fraction(1, 50), 2)
    sensitivity = search.sensitivity
    for out in (0, 1, 499, 998):
        seen.clear()
        for moved in (0, 1, 2):
            count_outside(search, np.array([1000 - out - moved, out + moved]))
        one, two, three = seen[-3:]
        assert abs(one - two) < abs(one - three) <= sensitivity


@pytest.mark.parametrize(("law", "reach"), [("normal", 1.96), ("laplace", math.log(20))])
def test_the_half_width_is_that_of_the_noise(law: str, reach: float) -> None:
    assert OutsideCount(3.0, LAWS[law], 5.0).half_width(0.95) == pytest.approx(5 * reach, rel=1e-4)


@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.5), mh.PureDP(epsilon=4)])
def test_the_interval_of_a_release_holds_the_exact_count(promise: Any) -> None:
    # 20 misses or more of 100 at 5 % each: 1e-7.
    rows = np.random.default_rng(3).pareto(2.5, (1000, 1))
    plan = mh.plan_mean(domain=mh.Reals(1, 1e6), n=1000, privacy=promise)
    missed = 0
    for _ in range(100):
        release = plan.release(rows)
        ball = release.domain
        assert isinstance(ball, mh.Ball)
        exact = int(np.sum(np.abs(rows - ball.center) > ball.radius))
        missed += not release.outside.lower <= exact <= release.outside.upper
    assert missed < 20
