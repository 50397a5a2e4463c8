"""What no private quantile can beat, in ranks."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.bounds import interior_point, rank_error
from muhat.bounds.ranks import _level, _may_tell
from muhat.errors import InvalidInput

PROMISES = [
    mh.PureDP(epsilon=0.3),
    mh.ApproxDP(epsilon=0.5, delta=1e-7),
    mh.ZCDP(rho=0.1),
    mh.GDP(mu=0.5),
    mh.ApproxZCDP(rho=0.1, delta=1e-9),
    mh.RDP(alpha=2.0, epsilon=1.0),
]


@pytest.mark.parametrize("cells", [2, 3, 100, 10**9])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_randomised_response_among_the_packing_is_just_allowed(cells, epsilon):
    """P_v(v) = e^{kε}/(e^{kε} + u − 1) is the best that datasets k steps apart may have."""
    for steps in (1, 5, 40):
        miss = float((cells - 1) / (mpmath.exp(steps * epsilon) + cells - 1))
        if not 1e-12 < miss < 1 - 1 / cells - 1e-6:
            continue
        for times, allowed in ((1 + 1e-6, True), (1 - 1e-6, False)):
            beta = miss * times
            level = math.log((cells - 1) / beta)
            assert _may_tell(mh.PureDP(epsilon=epsilon), steps, level, beta) is allowed


def test_the_tests_of_two_gaussians_are_just_allowed():
    """Level and power of a half-line for N(0, 1) and N(kμ, 1), with 50 digits."""
    with mpmath.workdps(50):
        for steps, mu, cut in ((3, 0.5, 1.0), (20, 0.4, 6.0), (40, 1.0, 37.0)):
            level = -mpmath.log(mpmath.ncdf(-cut))
            beta = float(mpmath.ncdf(cut - steps * mu))
            assert _may_tell(mh.GDP(mu=mu), steps, float(level) * (1 - 1e-7), beta)
            assert not _may_tell(mh.GDP(mu=mu), steps, float(level) * (1 + 1e-7), beta)


def test_the_relative_entropy_of_a_test_is_what_concentrated_privacy_allows():
    with mpmath.workdps(50):
        for level, beta in ((2.0, 0.3), (14.0, 0.05), (700.0, 1e-3)):
            alpha, missed = mpmath.exp(-level), mpmath.mpf(beta)

            def entropy(a, b):
                return a * mpmath.log(a / b) + (1 - a) * mpmath.log((1 - a) / (1 - b))

            least = float(max(entropy(1 - missed, alpha), entropy(alpha, 1 - missed)))
            assert _may_tell(mh.ZCDP(rho=least / 16 * (1 + 1e-6)), 4, level, beta)
            assert not _may_tell(mh.ZCDP(rho=least / 16 * (1 - 1e-6)), 4, level, beta)


def test_500_settings_are_never_above_a_choice_or_a_search():
    """A choice keeps ln(u(1−β)/β)/η ranks, η = ε/2 for a replaced record and a public rank."""
    rng = np.random.default_rng(3)
    for setting in range(440):
        epsilon, cells = 10 ** rng.uniform(-2, 1), int(2 ** rng.uniform(1, 60))
        beta = float(rng.choice([0.5, 0.1, 0.05, 0.001]))
        kept = max(0, math.ceil(2 * math.log(cells * (1 - beta) / beta) / epsilon) - 1)
        promise = mh.PureDP(epsilon=epsilon)
        if setting % 10 == 0:
            promise = mh.ApproxDP(epsilon=epsilon, delta=1e-9)
        assert rank_error(cells, privacy=promise, confidence=1 - beta).value <= kept
    for promise in PROMISES:
        for n in (None, 500):
            for cells in (3, 50, 4000, 10**6, 2**30):
                plan = mh.plan_quantile(
                    0.5, lower=0, upper=cells - 1, resolution=1, n=n, privacy=promise
                )
                assert plan.certificate.bounds[0].value <= plan.rank_error(0.95).max()
                assert plan.certificate.ratio is None or plan.certificate.ratio >= 1


def test_typical_errors_are_not_below_the_root_mean_square():
    for promise in PROMISES:
        plan = mh.plan_quantile(0.5, lower=0, upper=10**6, resolution=1, n=10**6, privacy=promise)
        bound = rank_error(10**6, n=10**6, privacy=promise, confidence=None)
        assert 0 < bound.value < plan.to_dict()["typical_rank_error"]
        secret = rank_error(10**6, privacy=promise, confidence=None, neighbors="add-remove")
        assert secret.value < bound.value
    one = rank_error(10**6, privacy=mh.PureDP(epsilon=1.0), confidence=None)
    assert one.value == pytest.approx(1 / (math.sqrt(2) * math.sinh(0.5)), rel=1e-5)


def test_what_makes_the_bound_larger():
    promise = mh.ZCDP(rho=0.02)
    plain = rank_error(1000, privacy=promise).value
    assert rank_error(10**9, privacy=promise).value > plain
    assert rank_error(1000, privacy=promise, dim=8).value > plain
    assert rank_error(1000, privacy=promise, contributions=3).value > 2 * plain
    assert rank_error(1000, privacy=promise, confidence=0.999).value > plain
    assert rank_error(1000, privacy=promise, neighbors="add-remove").value <= plain
    assert rank_error(1000, privacy=promise, n=9).value == 5  # no rank is farther off
    assert rank_error(1, privacy=promise).value == 0
    assert rank_error(1000, privacy=promise, q=0).value <= 1
    sentence = rank_error(1000, privacy=promise).sentence()
    assert sentence.startswith("Every 0.02-zCDP mechanism has error at least ")
    with pytest.raises(InvalidInput):
        rank_error(1000, privacy=promise, confidence=1.0)


@pytest.mark.parametrize("dim", [1, 3, 100])
@pytest.mark.parametrize("rho", [1e-6, 0.01, 1.0])
def test_an_interior_point_takes_no_fewer_records_than_the_paper_says(dim, rho):
    """HLY21 Theorem 6 with the constant of Fano's inequality."""
    cells = 2**20
    paper = math.sqrt((2 / 3 * dim * math.log(cells) - math.log(2)) / rho)
    ours = interior_point(cells, privacy=mh.ZCDP(rho=rho), dim=dim)
    assert paper <= ours < 1.1 * paper + 1
    level = _level(dim * math.log(cells), 1 / 3)
    assert ours == 1 or not _may_tell(mh.ZCDP(rho=rho), ours - 1, level, 1 / 3 - 1e-12)


def test_a_plan_prints_its_certificate():
    plan = mh.plan_quantile(0.5, lower=0, upper=10**6, n=1000, privacy=mh.PureDP(epsilon=1.0))
    assert "Every 1-DP (pure) mechanism has error at least 8 on some dataset." in plan.describe()
    assert "Both numbers are bounds; it may be closer." in plan.describe()
    assert plan.certificate.closeness().endswith("Both numbers are bounds; it may be closer.")
    assert plan.to_dict()["certificate"]["ratio"] == plan.certificate.ratio
