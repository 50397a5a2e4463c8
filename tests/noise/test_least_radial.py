"""Which stairs in the radius: the least, never below what is possible, where they gain."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import pytest

import muhat as mh
from muhat.bounds.volumes import log_radial_square
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.least_radial import LEAST_GAIN, is_worth, least_radial
from muhat.noise.radial_stairs import UNIT, EuclideanStairs, MaximumStairs


def test_no_stairs_are_below_the_bound_on_five_hundred_settings_and_the_chosen_ones_meet_it():
    losses = (0.1, 0.3, 0.6, 1.0, 1.4, 2.0, 2.6, 3.3, 4.0, 5.0, 6.0, 7.0, 8.0)
    settings = list(itertools.product((2, 3, 4, 7, 16, 33, 64), losses))
    assert 7 * len(settings) > 500
    for dim, epsilon in settings:
        law = least_radial(EuclideanStairs, dim, mh.PureDP(epsilon=epsilon))
        least = math.exp(log_radial_square(dim, epsilon)) * (dim + 2) / dim
        # Any other inner radius errs more, but none less than the bound.
        others = (replace(law, inner=round(UNIT * t)) for t in (0.01, 0.2, 0.45, 0.7, 0.9, 1.0))
        assert least < law.mean_square < least * 1.0005
        assert all(law.mean_square * (1 - 1e-9) < each.mean_square for each in others)


@pytest.mark.parametrize(("dim", "epsilon", "gain"), [(2, 4.0, 0.147), (4, 8.0, 0.2835)])
def test_the_gain_over_k_norm_noise_is_that_of_the_theory(dim, epsilon, gain):
    law = least_radial(MaximumStairs, dim, mh.PureDP(epsilon=epsilon))
    known = (dim + 1) * (dim + 2) / epsilon**2
    assert 1 - math.sqrt(law.mean_square / known) == pytest.approx(gain, abs=5e-4)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 7.5, 50.0, 90.0, 200.0])
def test_the_promise_is_just_kept(epsilon):
    promise, step = mh.PureDP(epsilon=epsilon), Fraction(UNIT)
    law = least_radial(EuclideanStairs, 3, promise)
    assert law.keeps(promise, step)
    assert not law.keeps(mh.PureDP(epsilon=epsilon * (1 - 1e-14)), step)
    planted = Fraction(law.ratio.numerator - 1, law.ratio.denominator)
    assert not replace(law, ratio=planted).keeps(promise, step)


def test_it_is_worth_its_stairs_where_it_gains():
    def promise(epsilon: float) -> mh.PureDP:
        return mh.PureDP(epsilon=epsilon)

    assert [is_worth(2, promise(epsilon)) for epsilon in (0.1, 0.5, 0.75, 8.0)] == [0, 0, 1, 1]
    assert [is_worth(dim, promise(8.0)) for dim in (2, 16, 24, 64, 10**6)] == [1, 1, 1, 0, 0]
    # What is left out would have gained less.
    for dim, epsilon in ((2, 0.5), (3, 1.0), (10, 3.0), (32, 8.0)):
        law = least_radial(EuclideanStairs, dim, promise(epsilon))
        assert law.mean_square * epsilon**2 > LEAST_GAIN**2 * (dim + 1) * (dim + 2)
    for extreme in (5e-324, 1e-300, 1e-9, 1e5, 1e300):
        assert not is_worth(2, promise(extreme))
    assert not is_worth(2, Strength(NoiseKind.NORMAL, Fraction(64)))
    assert is_worth(2, Strength(NoiseKind.PURE, Fraction(64)))
    assert is_worth(2, mh.ApproxDP(epsilon=4.0, delta=1e-6))


def test_too_many_stairs_are_none():
    assert least_radial(EuclideanStairs, 2, mh.PureDP(epsilon=0.001)) is None
    assert least_radial(EuclideanStairs, 10**6, mh.PureDP(epsilon=8.0)) is None
    assert least_radial(EuclideanStairs, 2, Strength(NoiseKind.NORMAL, Fraction(1))) is None
