"""Parameters of exponential families."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import muhat as mh
from muhat.bounds import exponential_family
from muhat.bounds.families import FAMILIES
from muhat.errors import InvalidInput

LAWS = {
    "normal": lambda s: stats.norm(0, s),
    "exponential": lambda rate: stats.expon(scale=1 / rate),
    "poisson": stats.poisson,
    "geometric": lambda p: stats.geom(p, loc=-1),
    "bernoulli": stats.bernoulli,
}
PURE = mh.PureDP(epsilon=0.5)


@pytest.mark.parametrize("family", FAMILIES)
def test_deviations_and_variances_are_those_of_the_family(family):
    for parameter in (0.07, 0.5, 0.9, 3.3, 40.0):
        if parameter >= FAMILIES[family].most:
            continue
        law = LAWS[family](parameter)
        mean = law.mean()
        assert FAMILIES[family].variance(parameter) == pytest.approx(law.var())
        if family in ("normal", "exponential"):
            far = law.expect(lambda x, mean=mean: abs(x - mean))
        else:
            x = np.arange(0, 2000)
            far = float(np.sum(law.pmf(x) * np.abs(x - mean)))
        assert FAMILIES[family].deviation(parameter) == pytest.approx(far, rel=1e-6)


def test_which_parameters_nobody_estimates_without_bias():
    for family in FAMILIES:
        for promise in (PURE, mh.ZCDP(rho=0.1), mh.GDP(mu=1.0)):
            for target in ("mean", "natural"):
                found = exponential_family(family, 0.3, n=5, privacy=promise, target=target)
                assert found.impossible is (family != "bernoulli" or target == "natural")
                assert found.impossible is ("No " in found.describe())
    leaky = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    found = exponential_family("poisson", 2.0, n=5, privacy=leaky)
    assert not found.impossible
    assert found.bounds[0].value is None
    assert found.value == pytest.approx(math.sqrt(2 / 5))


def test_unbiased_estimates_of_a_probability_are_above_the_bound():
    """Randomised response, and counts with geometric noise, over 500 settings."""
    rng = np.random.default_rng(8)
    for _ in range(500):
        p, n = float(rng.uniform(0.01, 0.99)), int(rng.integers(1, 2000))
        epsilon = float(10 ** rng.uniform(-2, 1))
        found = exponential_family("bernoulli", p, n=n, privacy=mh.PureDP(epsilon=epsilon))
        noise = 1 / (2 * math.sinh(epsilon / 2) ** 2)
        central = math.sqrt(p * (1 - p) / n + noise / n**2)
        kept = math.exp(epsilon) / (1 + math.exp(epsilon))
        said = p * (2 * kept - 1) + 1 - kept
        local = math.sqrt(said * (1 - said) / n) / (2 * kept - 1)
        assert 0 < found.value <= min(central, local)


def test_the_private_part_is_within_a_small_factor_of_noise_on_a_count():
    found = exponential_family("bernoulli", 0.5, n=1000, privacy=mh.PureDP(epsilon=0.01))
    assert found.value == pytest.approx(1 / (1000 * math.expm1(0.01)), rel=1e-6)
    assert math.sqrt(2) / (1000 * 0.01) / found.value < 1.43


def test_wrong_arguments_are_refused():
    for family, parameter in (("cauchy", 1.0), ("bernoulli", 1.0), ("poisson", -1.0)):
        with pytest.raises(InvalidInput):
            exponential_family(family, parameter, n=5, privacy=PURE)
