"""COINPRESS as a baseline: its tails, its sensitivities, and errors measured before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from muhat.errors import InvalidInput
from muhat.studies import coinpress
from muhat.studies.coinpress import (
    clip_radius,
    coinpress_mean,
    coinpress_whitened_mean,
    gaussian_radius,
    shares,
)
from muhat.studies.coinpress import coinpress_covariance as learn_covariance
from muhat.studies.samples import SHAPES, covariance_root


class Silent:
    """A generator whose noise is nothing."""

    def standard_normal(self, size):
        return np.zeros(size)


def errors(name, n, dim, trials, *, rho=0.5, **options):
    found = []
    for trial in range(trials):
        generator = np.random.default_rng([7, trial])
        rows = SHAPES[name].draw(generator, n, dim)
        mean = coinpress_mean(rows, rho, generator=generator, **options)
        found.append(np.linalg.norm(mean - rows.mean(axis=0)))
    return np.array(found)


def rms(values):
    return math.sqrt(np.mean(values**2))


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 10])
def test_the_rounds_share_the_whole_promise_and_the_last_has_three_quarters(rounds):
    assert sum(shares(rounds)) == pytest.approx(1, abs=1e-15)
    assert len(shares(rounds)) == rounds
    assert shares(rounds)[-1] == (0.75 if rounds > 1 else 1)


@pytest.mark.parametrize("dim", [1, 2, 8, 128, 1024])
def test_a_normal_vector_is_rarely_longer_than_its_radius(dim):
    beyond = stats.chi2.sf(gaussian_radius(dim) ** 2, dim)
    assert 0.0001 < beyond < coinpress.TAIL


@pytest.mark.parametrize("dim", [1, 8, 128])
@pytest.mark.parametrize("within", [0.01, 1.0, 50.0])
def test_records_are_rarely_farther_than_the_clipping_radius(dim, within):
    """‖x − c‖² is noncentral χ² when the mean lies on the ball's surface, the worst place."""
    clip = clip_radius(within, gaussian_radius(dim))
    assert stats.ncx2.sf(clip**2, dim, within**2) < coinpress.TAIL


def test_the_clipped_mean_is_that_of_rows_clipped_one_by_one():
    rows = np.random.default_rng(0).standard_t(2, (500, 6)) + 100
    center, radius = np.full(6, 99.5), 2.5
    moved = rows - center
    norms = np.linalg.norm(moved, axis=1, keepdims=True)
    plain = center + (moved * np.minimum(1, radius / norms)).mean(axis=0)
    squares = np.einsum("ij,ij->i", rows, rows)
    assert np.allclose(coinpress._clipped_mean(rows, squares, center, radius), plain, atol=1e-10)


def test_one_record_moves_a_round_by_the_sensitivity_that_its_noise_is_made_for():
    rows = np.zeros((50, 3))
    ends = rows.copy(), rows.copy()
    ends[0][0, 0], ends[1][0, 0] = 1e9, -1e9
    means = [coinpress_mean(e, 0.5, radius=4.0, rounds=1, generator=Silent()) for e in ends]
    clip = clip_radius(4.0, gaussian_radius(3))
    assert np.linalg.norm(means[0] - means[1]) == pytest.approx(2 * clip / 50)


@pytest.mark.parametrize(("dim", "trials", "known"), [(8, 60, 0.0085), (128, 20, 0.0889)])
def test_the_error_on_gaussian_data_is_what_has_been_measured_before(dim, trials, known):
    """Of the mean square, relative deviation √(2/(d·trials)): 5.5 of them, and 2 % for rounding."""
    deviation = math.sqrt(2 / (dim * trials))
    found = errors("normal", 4000, dim, trials, radius=50 * math.sqrt(dim), rounds=10)
    assert abs(rms(found) ** 2 / known**2 - 1) < 5.5 * deviation + 0.04
    twice = errors("normal", 4000, dim, trials, rho=0.125, radius=50 * math.sqrt(dim), rounds=10)
    assert abs(rms(twice) ** 2 / known**2 - 1) > 11 * deviation


def test_more_rounds_pay_off_when_the_first_ball_is_far_too_large():
    few, many = (
        rms(errors("normal + 10", 4000, 32, 5, radius=1e5, rounds=rounds)) for rounds in (1, 10)
    )
    assert few > 1000 * many


def test_without_the_right_scale_the_result_is_biased():
    blind = rms(errors("κ = 1000", 4000, 32, 5, radius=600.0, rounds=10))
    oracle = rms(errors("κ = 1000", 4000, 32, 5, radius=600.0, rounds=10, scale=math.sqrt(1000)))
    assert blind > 3 * oracle


def test_records_in_another_unit_have_the_same_mean_in_that_unit():
    rows = np.random.default_rng(1).standard_normal((300, 4))
    means = [
        coinpress_mean(
            unit * rows,
            0.5,
            radius=unit * 20,
            rounds=3,
            generator=np.random.default_rng(2),
            scale=unit,
        )
        for unit in (1.0, 1024.0)
    ]
    assert np.array_equal(1024 * means[0], means[1])


@pytest.mark.parametrize(
    "wrong", [{"radius": 0.0}, {"rounds": 0}, {"scale": -1.0}, {"rho": math.nan}]
)
def test_arguments_that_make_no_sense_are_refused(wrong):
    options = {"rho": 0.5, "radius": 1.0, "rounds": 2, "generator": Silent(), **wrong}
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        coinpress_mean(np.zeros((10, 2)), **options)


def test_one_record_moves_the_moment_by_the_sensitivity_that_its_noise_is_made_for():
    rows = np.zeros((50, 3))
    ends = rows.copy(), rows.copy()
    ends[0][0, 0], ends[1][0, 1] = 1e9, 1e9
    moments = [
        learn_covariance(e, 0.5, largest=1.0, rounds=1, generator=Silent()).covariance for e in ends
    ]
    clip = gaussian_radius(3)
    assert np.linalg.norm(moments[0] - moments[1]) == pytest.approx(math.sqrt(2) * clip**2 / 50)


def test_the_noise_of_a_moment_is_symmetric_with_independent_entries_above():
    noise = coinpress._symmetric_noise(200, np.random.default_rng(3))
    assert np.array_equal(noise, noise.T)
    entries = noise[np.triu_indices(200)]
    assert abs(np.mean(entries**2) - 1) < 5.5 * math.sqrt(2 / len(entries))
    assert np.linalg.norm(noise, 2) == pytest.approx(2 * math.sqrt(200), rel=0.1)


def test_the_covariance_is_learnt_and_whitening_leaves_no_variance_above_one():
    true = covariance_root(1000.0, 4).T @ covariance_root(1000.0, 4)
    rows = SHAPES["κ = 1000"].draw(np.random.default_rng(4), 100_000, 4)
    found = learn_covariance(rows, 0.5, largest=100.0, rounds=5, generator=np.random.default_rng(5))
    assert np.linalg.norm(found.covariance - true) < 0.1 * np.linalg.norm(true)
    white = np.linalg.eigvalsh(found.whitening @ true @ found.whitening.T)
    assert 0.8 < white[0] <= white[-1] < 1.02
    one = learn_covariance(rows, 0.5, largest=100.0, rounds=1, generator=np.random.default_rng(5))
    first = np.linalg.eigvalsh(one.whitening @ true @ one.whitening.T)
    assert white[0] / white[-1] > 2 * first[0] / first[-1]


def test_learning_the_covariance_helps_in_few_dimensions_and_not_in_many():
    """As Huang, Liang and Yi observe: beside the mean that knows the bound on deviations alone."""

    def compared(dim):
        learnt = []
        for trial in range(10):
            generator = np.random.default_rng([8, trial])
            rows = SHAPES["κ = 100"].draw(generator, 4000, dim)
            mean = coinpress_whitened_mean(
                rows,
                0.5,
                radius=100 * math.sqrt(dim),
                largest=100.0,
                covariance_rounds=5,
                generator=generator,
            )
            learnt.append(np.linalg.norm(mean - rows.mean(axis=0)))
        bound = errors(
            "κ = 100", 4000, dim, 10, radius=100 * math.sqrt(dim), rounds=10, scale=100.0
        )
        return rms(np.array(learnt)) / rms(bound)

    assert compared(2) < 0.25
    assert compared(64) > 0.9
