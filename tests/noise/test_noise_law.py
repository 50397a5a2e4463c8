"""The laws of noise: variances, quantiles, and root mean square errors.

Simulated values are compared within 5.5 standard errors (false alarm below 1e-7 a comparison;
the streams are fixed besides).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from muhat.noise.error import root_mean_square
from muhat.noise.laws import LAWS

DRAWS = 200_000


def draw(name: str, dim: int, rng: np.random.Generator) -> np.ndarray:
    if name == "normal":
        return rng.normal(size=(DRAWS, dim))
    if name == "laplace":
        return rng.laplace(size=(DRAWS, dim))
    if name == "euclidean-norm":
        radius = np.linalg.norm(rng.normal(size=(DRAWS, dim + 1)), axis=1)
        return radius[:, None] * rng.normal(size=(DRAWS, dim))
    return rng.gamma(dim + 1, size=(DRAWS, 1)) * rng.uniform(-1, 1, (DRAWS, dim))


@pytest.mark.parametrize("dim", [1, 2, 7])
@pytest.mark.parametrize("name", LAWS)
def test_tails_and_variance_match_a_simulation(name, dim):
    law, z = LAWS[name], draw(name, dim, np.random.default_rng(3))
    error = z[:, 0].var() - law.variance(dim)
    spread = math.sqrt(np.mean(z[:, 0] ** 4) / DRAWS)
    assert abs(error) < 5.5 * spread
    assert abs(z[:, 0].var() - 1.04 * law.variance(dim)) > 5.5 * spread / (1 + (name != "normal"))
    for reach in (0.5, 2.0, 5.0):
        for tail, hits in (
            (law.tail(reach, dim), np.abs(z[:, 0]) > reach),
            (law.joint_tail(reach, dim), np.abs(z).max(axis=1) > reach),
        ):
            assert abs(hits.mean() - tail) <= 5.5 * math.sqrt(tail * (1 - tail) / DRAWS) + 1e-12


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("joint", [False, True])
def test_quantiles_invert_tails_on_the_safe_side(name, joint):
    law = LAWS[name]
    tail = law.joint_tail if joint else law.tail
    for dim in (1, 3, 1000):
        for confidence in (0.5, 0.95, 1 - 1e-6):
            reach = law.quantile(confidence, dim, joint=joint)
            assert tail(reach, dim) <= 1 - confidence
            assert tail(reach, dim) == pytest.approx(1 - confidence, rel=1e-4)


@pytest.mark.parametrize("name", ["laplace", "euclidean-norm", "maximum-norm"])
def test_pure_laws_are_laplace_in_one_dimension(name):
    for reach in (0.1, 1.0, 10.0, 30.0):
        assert LAWS[name].tail(reach, 1) == pytest.approx(math.exp(-reach), rel=1e-9)


@pytest.mark.parametrize("p", [2, 2.05, 3, 4, 10, 100, math.inf])
@pytest.mark.parametrize("name", LAWS)
def test_root_mean_square_matches_a_simulation(name, p):
    scales = np.array([1.0, 0.3, 2.5, 0.01])
    value, method = root_mean_square(LAWS[name], scales, None, p)
    assert method == ("exact" if p == 2 else "quadrature")
    size = np.linalg.norm(draw(name, 4, np.random.default_rng(5)) * scales, ord=p, axis=1) ** 2
    deviation = size.std() / math.sqrt(DRAWS)
    assert abs(value**2 - size.mean()) < 5.5 * deviation
    assert abs(1.06 * value**2 - size.mean()) > 5.5 * deviation


def test_root_mean_square_has_the_known_closed_forms():
    # E max(|g1|, |g2|)² = 1 + 2/π for two standard normals.
    value, _ = root_mean_square(LAWS["normal"], np.ones(2), None, math.inf)
    assert value**2 == pytest.approx(1 + 2 / math.pi, rel=1e-9)
    for p in (2.5, 4, 17, math.inf):
        value, _ = root_mean_square(LAWS["normal"], np.array([3.0]), None, p)
        assert value == pytest.approx(3, rel=1e-8)
    # E‖g‖_4² = E√(g1⁴ + g2⁴) in polar coordinates.
    angle = np.linspace(0, 2 * math.pi, 20_001)
    expected = 2 * np.mean(np.sqrt(np.cos(angle) ** 4 + np.sin(angle) ** 4)[:-1])
    value, _ = root_mean_square(LAWS["normal"], np.ones(2), None, 4)
    assert value**2 == pytest.approx(expected, rel=1e-8)


def test_a_correlated_error_is_rounded_up_but_close():
    factor = np.eye(3)
    exact, _ = root_mean_square(LAWS["normal"], np.ones(3), None, 4)
    simulated, method = root_mean_square(LAWS["normal"], np.ones(3), factor, 4)
    assert method == "monte carlo"
    assert exact <= simulated <= 1.01 * exact
    assert simulated == root_mean_square(LAWS["normal"], np.ones(3), factor, 4)[0]


def test_a_large_order_is_bounded_from_above():
    value, method = root_mean_square(LAWS["laplace"], np.ones(10), None, 500)
    largest, _ = root_mean_square(LAWS["laplace"], np.ones(10), None, math.inf)
    assert method == "bound"
    assert largest <= value <= 1.01 * largest


def test_gamma_radius_of_the_euclidean_law():
    z = draw("euclidean-norm", 4, np.random.default_rng(7))
    assert stats.kstest(np.linalg.norm(z, axis=1), stats.gamma(4).cdf).pvalue > 1e-6
