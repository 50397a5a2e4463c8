"""Pads for a moment: the bias they leave is attained, and never exceeded."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from muhat.errors import InvalidInput
from muhat.mechanisms.learning import tails

ORDERS = [1.5, 2.0, 3.0, 4.0]
LAWS = {
    "lognormal": (stats.lognorm(0.8), [1.5, 2, 3]),
    "t3": (stats.t(3), [1.5, 2, 2.7]),
    "exponential": (stats.expon(), [1.5, 2, 4]),
    "pareto": (stats.pareto(1.8), [1.1, 1.5, 1.7]),
    "uniform": (stats.uniform(), [2, 4]),
    "normal": (stats.norm(), [1.5, 4]),
    "bernoulli": (stats.bernoulli(0.05), [1.5, 2, 3, 4]),
}


def share(p, order):
    return (p ** (1 - order) + (1 - p) ** (1 - order)) ** (-1 / order)


def extremal(pad, order, scale):
    """The two points and the chance of the upper one that clipping to [−pad, pad] moves most."""
    found = optimize.minimize_scalar(
        lambda log_p: math.exp(log_p) * pad / scale - share(math.exp(log_p), order),
        bounds=(-60 * order / (order - 1), -math.log(2)),
        method="bounded",
        options={"xatol": 1e-13, "maxiter": 2000},
    )
    p = math.exp(found.x)
    upper = scale * share(p, order) / p
    return upper, -p * upper / (1 - p), p


def bias_of_two_points(pad, upper, lower, p):
    clipped = [min(max(x, -pad), pad) for x in (upper, lower)]
    return p * clipped[0] + (1 - p) * clipped[1] - (p * upper + (1 - p) * lower)


def moments(law, order):
    """The mean and the λ-th root of the λ-th central absolute moment."""
    mean = float(law.mean())
    if hasattr(law.dist, "pmf"):
        values = np.arange(3)
        power = float(np.sum(law.pmf(values) * np.abs(values - mean) ** order))
    else:
        # By quantiles' tails: ∫ λ·t^{λ−1}·P(|X − μ| > t) dt, in ln t.
        def integrand(log_t):
            t = math.exp(log_t)
            return (
                order * math.exp(min(order * log_t, 700)) * (law.sf(mean + t) + law.cdf(mean - t))
            )

        pieces = [-40, -5, 0, 5, 20, 60, 150]
        power = sum(
            integrate.quad(integrand, a, b, limit=400)[0] for a, b in itertools.pairwise(pieces)
        )
    return mean, power ** (1 / order)


def clipped_bias(law, lower, upper):
    """E clip(X) − E X, from the two tails cut off."""
    if hasattr(law.dist, "pmf"):
        values = np.arange(3)
        return float(np.sum(law.pmf(values) * (np.clip(values, lower, upper) - values)))
    below = integrate.quad(
        lambda t: math.exp(t) * law.cdf(lower - math.exp(t)), -40, 90, limit=800
    )[0]
    above = integrate.quad(lambda t: math.exp(t) * law.sf(upper + math.exp(t)), -40, 90, limit=800)[
        0
    ]
    return below - above


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("distance", [0.8, 2.0, 10.0, 300.0])
@pytest.mark.parametrize("scale", [1.0, 7.5])
def test_two_points_attain_the_bound(order, distance, scale):
    pad = distance * scale
    upper, lower, p = extremal(pad, order, scale)
    moment = p * upper**order + (1 - p) * (-lower) ** order
    assert moment == pytest.approx(scale**order, rel=1e-12)
    assert -pad < lower
    bound = tails.bias_bound(pad, order, scale)
    bias = abs(bias_of_two_points(pad, upper, lower, p))
    assert bias <= bound
    assert bias == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_a_pad_a_hundredth_too_narrow_is_exceeded(order):
    for bias in (0.1, 0.01, 1e-5):
        pad = tails.pad(bias, order, 1.0)
        assert abs(bias_of_two_points(pad, *extremal(pad, order, 1.0))) <= bias
        narrow = 0.99 * pad
        assert abs(bias_of_two_points(narrow, *extremal(narrow, order, 1.0))) > bias * 1.001


@pytest.mark.parametrize("name", LAWS)
def test_no_law_has_more_bias_than_its_moment_allows(name):
    law, orders = LAWS[name]
    for order in orders:
        mean, scale = moments(law, order)
        for factor in (0.1, 0.7, 3.0):
            pad = factor * scale
            for lower, upper in [(mean - pad, mean + pad), (mean - 3 * pad, mean + pad)]:
                bias = abs(clipped_bias(law, lower, upper))
                assert bias <= tails.bias_bound(pad, order, scale) * (1 + 1e-6) + 1e-12


def test_the_bound_has_its_closed_form_at_the_second_moment():
    for pad in (0.0, 0.01, 0.5, 3.0, 1000.0):
        exact = 2.0**2 / (2 * (math.hypot(2.0, pad) + pad))
        assert tails.bias_bound(pad, 2, 2.0) == pytest.approx(exact, rel=1e-11)
    for bias in (1e-6, 0.01, 0.3):
        assert tails.pad(bias, 2, 1.0) == pytest.approx(1 / (4 * bias) - bias, rel=1e-11)


@pytest.mark.parametrize("order", [1.01, 1.1, *ORDERS, 10.0, 200.0])
def test_pads_and_biases_are_each_others_inverse_on_the_safe_side(order):
    for bias in (1e-4, 0.01, 0.2, 0.49):
        try:
            pad = tails.pad(bias, order, 1.0)
        except InvalidInput:
            assert order < 1.1
            continue
        assert tails.bias_bound(pad, order, 1.0) == pytest.approx(bias, rel=1e-6)
        closed, paper = tails.closed_pad(bias, order, 1.0), tails.paper_pad(bias, order, 1.0)
        assert pad <= closed * (1 + 1e-9) <= paper
        assert tails.pad(3 * bias, order, 3.0) == pytest.approx(3 * pad, rel=1e-10)


def test_half_the_scale_needs_no_pad():
    assert tails.pad(0.5, 2, 1.0) == 0
    assert tails.bias_bound(0.0, 3, 1.0) == pytest.approx(0.5, rel=1e-9)


def test_pads_are_four_times_narrower_than_the_papers_at_the_second_moment():
    noise = math.sqrt(2) / 1000
    table = [
        tails.error_bound(2, 1.0, n=1000, width=1.0, pad=pad, noise_per_width=noise)
        for pad in (tails.paper_pad(0.01, 2, 1.0), tails.pad(0.01, 2, 1.0))
    ]
    assert [round(error, 3) for error in table] == [0.286, 0.079]
    assert tails.paper_pad(0.01, 2, 1.0) / tails.pad(0.01, 2, 1.0) == pytest.approx(4, rel=1e-3)


@pytest.mark.parametrize("name", [name for name in LAWS if name != "bernoulli"])
def test_clipped_records_vary_no_more_than_stated(name):
    law, orders = LAWS[name]
    for order in orders:
        mean, scale = moments(law, order)
        for factor in (0.3, 2.0, 20.0):
            pad = factor * scale
            values = np.clip(law.ppf((np.arange(20_000) + 0.5) / 20_000), mean - pad, mean + pad)
            bound = tails.sampling_variance(order, scale, width=0.0, pad=pad)
            assert values.var() <= bound * (1 + 1e-3)


def test_the_error_bound_adds_up_in_squares():
    error = tails.error_bound(1.5, 2.0, n=50, width=3.0, pad=4.0, noise_per_width=0.1)
    variance = min(2.0**1.5 * 7.0**0.5, 11.0**2 / 4)
    bias = tails.bias_bound(4.0, 1.5, 2.0)
    assert error == pytest.approx(math.sqrt(variance / 50 + bias**2 + 1.1**2), rel=1e-11)


def test_arguments_are_checked():
    for arguments in [(0, 2, 1), (0.1, 1, 1), (0.1, 2, 0), (0.1, math.nan, 1), (math.inf, 2, 1)]:
        with pytest.raises(InvalidInput):
            tails.pad(*arguments)
    with pytest.raises(InvalidInput, match="pad"):
        tails.bias_bound(-1.0, 2, 1.0)
    with pytest.raises(InvalidInput, match="range of floats"):
        tails.pad(1e-6, 1.01, 1.0)
