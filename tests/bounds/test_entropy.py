"""The least noise of a bounded relative entropy: below every law tried, right in 50 digits."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from muhat.bounds import linear_queries, mean_bounds, steps
from muhat.bounds.entropy import log_entropy_square, nearly_best
from muhat.privacy import RDP, ZCDP
from muhat.workloads import identity


def square(rho, copies=math.inf, *, groups=False):
    found = log_entropy_square(rho, copies, groups=groups)
    return 0.0 if found is None else math.exp(found)


CELLS = 8
"""Of a shift of 1."""


def laws():
    """Noise on multiples of 1/8: normal, stairs, Laplace, heavy and light tails, mixtures."""
    z = np.arange(-1600, 1601) / CELLS
    for scale in (0.4, 0.6, 1.0, 1.4, 2.0, 3.0, 5.0):
        for power in (1.0, 1.3, 1.7, 2.0, 2.3, 3.0):
            yield z, -(np.abs(z / scale) ** power)
        yield z, -(np.log1p((z / scale) ** 2)) * 6
        yield z, np.logaddexp(-((z / scale) ** 2) / 2, -((z / scale) ** 2) / 8 - 3)
        yield z, -np.floor(np.abs(z / scale) + 0.5)
        yield z, -np.sqrt(1 + (z / scale) ** 2) * (1 + np.abs(z) / 20)


def test_no_law_of_noise_is_below_the_bound_at_its_own_entropy():
    tried, near = 0, math.inf
    for z, logs in laws():
        p = np.exp(logs - logs.max())
        p /= p.sum()
        kept = p > 1e-250
        log_ratio = logs - np.roll(logs, CELLS)
        inner = kept & (np.arange(len(z)) >= CELLS)
        rho = float(np.sum(p[inner] * log_ratio[inner]))
        spread = float(np.sum(p * z * z))
        for copies in (math.inf, 1000, 30, 3):
            bound = square(rho, copies)
            assert bound <= spread * (1 + 1e-9)
            tried += 1
        near = min(near, spread / max(square(rho), 1e-9))
    assert tried > 250
    # Some law is so near that a constant 1 % too large would be caught.
    assert near < 1.01


def test_normal_noise_is_never_below_on_five_hundred_settings():
    rhos = np.geomspace(1e-7, 19, 42)
    rows = (math.inf, 10**8, 10**5, 1000, 50, 3)
    settings = list(itertools.product(rhos, (True, False), rows))
    assert len(settings) >= 500
    for rho, groups, copies in settings:
        assert square(float(rho), copies, groups=groups) <= 1 / (2 * rho)


@pytest.mark.parametrize(("rho", "ratio"), [(0.1, 1.0003), (0.5, 1.0045), (1.0, 1.022), (2, 1.16)])
def test_normal_noise_is_near(rho, ratio):
    assert 1 < math.sqrt(1 / (2 * rho * square(rho))) < ratio
    noise = [b for b in linear_queries(identity(3), ZCDP(rho=rho), floor=1.0) if b.is_of_noise]
    assert 1 < 1 / math.sqrt(2 * rho) / noise[0].value < ratio


@pytest.mark.parametrize("rho", [0.06, 0.5, 3.0])
def test_the_dual_is_right_in_fifty_digits(rho):
    """H is built from A at points between the nodes, A from its own equation."""
    dual = nearly_best(rho)
    claimed = dual.square(rho, math.inf)
    with mpmath.workdps(50):
        w, h = mpmath.mpf(dual.weight), mpmath.mpf(dual.level)
        last = math.ceil(4 + math.sqrt(dual.level) + 6 * math.sqrt(dual.weight))
        top = mpmath.acosh(1 + ((last + mpmath.mpf(1) / 2) ** 2 - h) / (2 * w))

        def A(x):
            if x >= last + mpmath.mpf(1) / 2:
                return top
            after = A(x + 1)
            right = 2 + (x * x - h) / w + after - mpmath.exp(-after)
            return right - mpmath.lambertw(mpmath.exp(right)).real

        def log_r(x):
            return -A(x) if x >= mpmath.mpf(1) / 2 else A(1 - x)

        def H(x):
            gained = log_r(x) + log_r(-x) - mpmath.exp(log_r(x + 1)) - mpmath.exp(log_r(1 - x))
            return x * x + w * (2 + gained)

        points = [mpmath.mpf(k) / 37 for k in (0, 1, 5, 9, 14, 17, 18, 20, 40, 75, 300)]
        least = min(H(x) for x in (*points, mpmath.mpf(2 * last), mpmath.mpf(last) + 0.6))
        assert claimed <= least - 2 * w * mpmath.mpf(rho)
        assert claimed > (least - 2 * w * mpmath.mpf(rho)) * mpmath.mpf("0.998")
        # More entropy than allowed, a planted slip, gives more than normal noise has.
        assert float(least - w * mpmath.mpf(rho)) > 1 / (2 * rho)


def test_groups_help_where_entropy_is_small_and_only_under_concentrated_privacy():
    assert square(1e-4) == 0.0
    assert 1 < 1 / (2e-4 * square(1e-4, groups=True)) < 1.001
    assert steps.noise_floor(ZCDP(rho=1.0)).theorem == "B11, zCDP"
    assert steps.noise_floor(RDP(alpha=8, epsilon=1.0)).log_square < 0.0


def test_any_mechanism_is_compared_where_there_are_records():
    found = mean_bounds(1000.0, n=1000, privacy=ZCDP(rho=0.5), contact_pairs=1)
    anybody = next(bound for bound in found if bound.mechanisms == "any")
    assert 1 < 1 / anybody.value < 1.011
    numbers = [square(0.5, copies) for copies in (10, 100, 1000, 10**6, math.inf)]
    assert numbers == sorted(numbers)
