"""The packing bound for any purely private mechanism on a ball."""

from __future__ import annotations

import itertools
import math

import pytest

from muhat.bounds import ball
from muhat.errors import InvalidInput
from muhat.privacy import GDP, ZCDP, ApproxDP, PureDP


def value(n, dim, epsilon, radius=1.0):
    (bound,) = ball(n=n, dim=dim, radius=radius, privacy=PureDP(epsilon=epsilon))
    assert (bound.mechanisms, bound.datasets) == ("any", "some")
    return bound.value


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
        assert best * (1 - 1e-9) <= value(n, dim, epsilon) < best


def test_it_is_monotone():
    epsilons = [value(1000, 50, epsilon) for epsilon in (0.01, 0.1, 0.5, 1.0, 5.0)]
    assert epsilons == sorted(epsilons, reverse=True)
    sizes = [value(n, 50, 0.5) for n in (1, 10, 50, 100, 1000, 10**6)]
    assert sizes == sorted(sizes, reverse=True)
    dimensions = [value(10**5, dim, 0.5) for dim in (1, 4, 16, 64, 256, 1024)]
    assert dimensions == sorted(dimensions)
    assert value(1000, 50, 0.5, radius=3.0) == pytest.approx(3 * value(1000, 50, 0.5))


def test_no_mechanism_is_below_it():
    """Noise of density ∝ exp(−nε‖z‖/2L) has E‖z‖ = 2Ld/(nε); the centre alone errs by at most L."""
    for n, dim, epsilon in itertools.product(
        [1, 10, 10**3, 10**6], [1, 3, 30, 300], [0.01, 0.3, 1.0, 8.0]
    ):
        assert 0 < value(n, dim, epsilon) <= min(1.0, 2 * dim / (n * epsilon))


def test_large_dimensions_keep_the_linear_rate():
    error = 2 * 10**4 / (10**7 * 1.0)
    assert 0.03 < value(10**7, 10**4, 1.0) / error < 1


def test_only_pure_privacy_has_a_number():
    for privacy in (ZCDP(rho=0.1), GDP(mu=1.0), ApproxDP(epsilon=1.0, delta=1e-6)):
        (bound,) = ball(n=10, dim=3, radius=1.0, privacy=privacy)
        assert bound.value is None
        assert "rate" in bound.sentence()


@pytest.mark.parametrize("change", [{"n": 0}, {"dim": 0}, {"radius": 0.0}, {"radius": math.nan}])
def test_wrong_arguments_are_refused(change):
    arguments = {"n": 10, "dim": 3, "radius": 1.0, **change}
    with pytest.raises(InvalidInput):
        ball(**arguments, privacy=PureDP(epsilon=1.0))
