"""Intervals for the population under a moment: against exact laws, and by their parts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from muhat.errors import InvalidInput
from muhat.mechanisms.learning.moment_error import Moment, MomentError
from muhat.noise.laws import LAWS
from muhat.noise.spread import Spread


def error(n: int = 1000, dim: int = 1, **changes: Any) -> MomentError:
    ones = np.ones(dim)
    fields = {"biases": 0.01 * ones, "variances": ones, "heights": 30 * ones, "failed": 1e-6 * ones}
    return replace(MomentError(Moment(2.0, ones), n, **fields), **changes)


def spread(scale: float, law: str = "normal", dim: int = 1) -> Spread:
    return Spread(LAWS[law], dim, np.full(dim, scale))


@pytest.mark.parametrize("part", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("n", [20, 400, 10_000])
@pytest.mark.parametrize("scale", [1e-6, 0.02, 0.5])
def test_means_of_two_points_and_noise_exceed_the_length_as_rarely_as_is_said(
    part: float, n: int, scale: float
) -> None:
    # Records 1 with a probability, else 0, and normal noise: the exact chance is a sum.
    known = error(
        n,
        biases=np.zeros(1),
        variances=np.array([part * (1 - part)]),
        heights=np.ones(1),
        failed=np.zeros(1),
    )
    counts = np.arange(n + 1)
    for confidence in (0.5, 0.95, 0.9999):
        half = known.half_widths(spread(scale), confidence, joint=False)[0]
        means = counts / n - part
        beyond = norm.sf((half - means) / scale) + norm.cdf((-half - means) / scale)
        missed = float(binom.pmf(counts, n, part) @ beyond)
        assert missed <= 1 - confidence
        # It is not vacuous: two thirds of the length would miss, where n is large.
        if n == 10_000 and confidence > 0.5:
            shorter = norm.sf((half / 1.6 - means) / scale) + norm.cdf(
                (-half / 1.6 - means) / scale
            )
            assert float(binom.pmf(counts, n, part) @ shorter) > 1 - confidence


@pytest.mark.parametrize("law", ["normal", "laplace", "euclidean-norm", "maximum-norm"])
def test_where_noise_is_all_there_is_the_interval_is_hardly_longer_than_its_own(law: str) -> None:
    noise = spread(5.0, law)
    half = error(10**9, failed=np.zeros(1)).half_widths(noise, 0.95, joint=False)[0]
    exact = noise.half_widths(0.95, joint=False)[0]
    assert exact + 0.01 < half < 1.03 * exact + 0.01


def test_where_sampling_is_all_there_is_a_third_is_lost() -> None:
    half = error(10**6, failed=np.zeros(1)).half_widths(spread(1e-12), 0.95, joint=False)[0]
    assert 2.7 < (half - 0.01) * 1000 < 2.8


def test_bias_and_failures_are_added() -> None:
    noise, plain = spread(0.1), error(failed=np.zeros(1))
    shifted = replace(plain, biases=np.array([0.51]))
    first, second = (each.half_widths(noise, 0.95, joint=False)[0] for each in (plain, shifted))
    assert second - first == pytest.approx(0.5)
    failing = replace(plain, failed=np.array([0.03]))
    assert failing.half_widths(noise, 0.95, joint=False)[0] == pytest.approx(
        plain.half_widths(noise, 0.98, joint=False)[0], rel=1e-6
    )
    assert not failing.tells(0.975)
    with pytest.raises(InvalidInput, match="a probability of up to 0"):
        failing.half_widths(noise, 0.975, joint=False)
    unknown = replace(plain, biases=np.array([math.inf]))
    assert not unknown.tells(0.5)


def test_all_columns_at_once_take_longer_intervals() -> None:
    known, noise = error(dim=4), spread(0.1, dim=4)
    alone, joint = (known.half_widths(noise, 0.95, joint=each) for each in (False, True))
    assert (joint > 1.2 * alone).all()
    assert joint == pytest.approx(
        known.half_widths(noise, 1 - (0.05 - 4e-6) / 4 - 1e-6, joint=False), rel=1e-6
    )


def test_it_is_written_and_read() -> None:
    known = error(dim=3)
    again = MomentError.from_dict(known.to_dict())
    assert again.to_dict() == known.to_dict()
