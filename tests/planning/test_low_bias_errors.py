"""Bias and error of means of bounded bias, by simulation, on six kinds of records.

Every comparison allows 6 standard errors: with the 130 or so in this file a false alarm is rarer
than 1e-6. What is planted is expected 14 standard errors or more beyond, and must exceed 6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, t

import muhat as mh
from muhat.data import open_source
from muhat.mechanisms.learning.padded import PaddedMean
from muhat.mechanisms.learning.padded_means import PaddedMeans
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.mechanisms.learning.tails import bias_bound

Law = Callable[[np.random.Generator, int], np.ndarray]

ERRORS = 6.0
RECORDS = 500
FEW, MANY = 50, 800

PURE, ZCDP = mh.PureDP(epsilon=5), mh.ZCDP(rho=5)
APPROX = mh.ApproxDP(epsilon=5, delta=1e-6)


def lognormal(rng: np.random.Generator, n: int) -> np.ndarray:
    e = math.e
    return (rng.lognormal(size=n) - math.sqrt(e)) / math.sqrt(e * (e - 1))


def two_points(rng: np.random.Generator, n: int) -> np.ndarray:
    """The law that loses most at a pad of 4.95, which a bias of 0.05 has."""
    part = (1 - 4.95 / math.sqrt(1 + 4.95**2)) / 2
    far = rng.random(n) < part
    return np.where(far, math.sqrt((1 - part) / part), -math.sqrt(part / (1 - part)))


# All have mean 0 and standard deviation 1.
LAWS: dict[str, Law] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-math.sqrt(3), math.sqrt(3), n),
    "laplace": lambda rng, n: rng.laplace(0, math.sqrt(0.5), n),
    "t3": lambda rng, n: rng.standard_t(3, n) / math.sqrt(3),
    "lognormal": lognormal,
    "two points": two_points,
}
SYMMETRIC = ("normal", "uniform", "laplace", "t3")


class Trials:
    """Releases of fresh records of one law around `mean`: their errors, and their noise."""

    def __init__(self, law: str, mean: float, seed: int = 1) -> None:
        self.draw = LAWS[law]
        self.mean = mean
        self.rng = np.random.default_rng([seed, len(law)])
        self.errors = np.empty(0)
        self.noise = np.empty(0)
        self.halves = np.empty((0, 2))

    def run(self, method: Any, trials: int) -> Trials:
        """Real runs of a method, as `release` has them after the charge."""
        errors, noise, halves = [], [], []
        for _ in range(trials):
            rows = self.draw(self.rng, RECORDS) + self.mean
            found = method.run(open_source(rows, None, 1))
            errors.append(float(found.value[0]) - self.mean)
            if found.error.tells(0.95):
                population = found.error.half_widths(found.noise, 0.95, joint=False)
                alone = found.noise.half_widths(0.95, joint=False)
                halves.append((float(population[0]), float(alone[0])))
            if isinstance(method, PaddedMean):
                clipped = np.clip(rows, found.ball.lower[0], found.ball.upper[0])
                noise.append(float(found.value[0]) - clipped.mean())
        self.errors, self.noise = np.array(errors), np.array(noise)
        self.halves = np.array(halves)
        return self

    def misses(self, *, noise_alone: bool = False) -> int:
        """How many 95 % intervals do not hold the mean of the population."""
        return int((np.abs(self.errors) > self.halves[:, int(noise_alone)]).sum())

    def misses_too_often(self) -> bool:
        """More than intervals of 95 % do in one of 10^8 cases."""
        return self.misses() > binom.isf(1e-8, len(self.errors), 0.05)

    @property
    def bias(self) -> float:
        return abs(float(self.errors.mean()))

    @property
    def bias_error(self) -> float:
        return float(self.errors.std()) / math.sqrt(len(self.errors))

    def is_biased_beyond(self, bound: float, by: float = ERRORS) -> bool:
        return self.bias > bound + by * self.bias_error

    def errs_beyond(self, rmse: float, by: float = ERRORS) -> bool:
        squares = self.errors**2
        spread = float(squares.std()) / math.sqrt(len(squares))
        return float(squares.mean()) > rmse**2 + by * spread


def clipped_plan(kind: str) -> mh.Plan:
    privacy = PURE if kind.startswith("laplace") else ZCDP
    if kind == "laplace, learnt":
        privacy = mh.PureDP(epsilon=20)
    magnitude = 1e3 if kind.endswith("learnt") else 1.0
    plan = mh.plan_mean(
        domain=mh.Reals(dim=1, magnitude=magnitude),
        n=RECORDS,
        privacy=privacy,
        moment=(2, 1.0),
        max_bias=0.05,
    )
    assert (plan.method.location is not None) == kind.endswith("learnt")
    return plan


KINDS = ["laplace", "normal", "laplace, learnt", "normal, learnt"]


def at_bias(plan: mh.Plan, bias: float = 0.05) -> PaddedMean:
    """The plan's kind of mean with this very bias, be less of it better or not."""
    means = PaddedMeans(plan.method.sharing, plan.moment)
    make = means.wide if plan.method.location is None else means.located
    found = make(np.array([bias]))
    assert found is not None
    return found


def check_clipped(kind: str, trials: int) -> None:
    plan = clipped_plan(kind)
    mean = 137.3 if kind.endswith("learnt") else 0.9
    noises, missed, runs = [], 0, 0
    for law in LAWS:
        for method in (plan.method, at_bias(plan))[trials == FEW :]:
            found = Trials(law, mean).run(method, trials)
            assert not found.is_biased_beyond(float(method.biases[0])), law
            assert not found.errs_beyond(method.rmse), law
            assert not found.misses_too_often(), law
            missed += found.misses(noise_alone=True)
            runs += trials
        noises.append(found.noise)
    noise = np.concatenate(noises)
    error = float(method.noise.standard_error[0])
    fourth = 6.0 if kind.startswith("laplace") else 3.0
    assert abs(noise.mean()) < ERRORS * error / math.sqrt(len(noise))
    ratio, spread = np.mean((noise / error) ** 2), math.sqrt((fourth - 1) / len(noise))
    assert abs(ratio - 1) < ERRORS * spread
    # Planted: intervals that cover the noise alone.
    assert missed > binom.isf(1e-8, runs, 0.05)
    # Planted: noise that is said to be a third of what it is.
    assert abs(9 * ratio - 1) > 5 * ERRORS * spread


@pytest.mark.parametrize("kind", KINDS)
def test_bias_noise_and_error_of_clipped_means_are_within_their_formulas(kind: str) -> None:
    check_clipped(kind, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_clipped_means_are_within_their_formulas(kind: str) -> None:
    check_clipped(kind, MANY)


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_records_reach_the_bias_and_a_pad_too_small_exceeds_it(kind: str) -> None:
    method = at_bias(clipped_plan(kind))
    learnt = method.location is not None
    mean = 137.3 if learnt else 1.0
    found = Trials("two points", mean, seed=2).run(method, 4 * FEW)
    if not learnt:
        # The mean is at the end of the interval, so the pad is all there is, and the bound sharp.
        assert found.bias > 0.05 - ERRORS * found.bias_error
    narrow = replace(method, pads=method.pads / 4)
    if learnt:
        # The pad counts where the interval lies as far below as it may.
        assert method.location is not None
        certain = replace(method.location, known=np.zeros_like(method.location.known))
        narrow = replace(narrow, location=certain)
        assert bias_bound(float(narrow.half_widths[0]), 2, 1.0) > 0.15
    planted = Trials("two points", mean, seed=2).run(narrow, 4 * FEW)
    assert planted.is_biased_beyond(0.05, by=ERRORS)


def symmetric_plan(order: float = 2.0) -> mh.Plan:
    return mh.plan_mean(
        domain=mh.Reals(dim=1),
        n=RECORDS,
        privacy=APPROX,
        moment=(order, 1.0),
        symmetric=True,
    )


def check_symmetric(trials: int) -> None:
    plan = symmetric_plan()
    assert plan.mechanism == "symmetric"
    for law in SYMMETRIC:
        found = Trials(law, -71.6).run(plan.method, trials)
        assert not found.is_biased_beyond(plan.bias)
        assert not found.errs_beyond(plan.rmse)
        assert not found.misses_too_often()


def test_symmetric_means_have_no_bias_and_the_error_they_say() -> None:
    check_symmetric(2 * FEW)


@pytest.mark.slow
def test_many_symmetric_means_have_no_bias() -> None:
    check_symmetric(2 * MANY)


def test_no_bias_is_a_matter_of_the_random_offset() -> None:
    # Clipped to a bin and a half, half a bin is lost on one side without the offset.
    method = symmetric_plan().method
    assert isinstance(method, SymmetricMethod)
    (column,) = method.means.columns
    tight = replace(column, clip=0.55 * column.width)
    for offset in (True, False):
        mean = replace(tight, offset=offset)
        narrow = replace(method, means=replace(method.means, columns=(mean,)))
        found = Trials("laplace", 0.45 * column.width, seed=3).run(narrow, 4 * FEW)
        assert found.is_biased_beyond(1e-9, by=ERRORS) == (not offset)


def unknown_plan() -> mh.Plan:
    plan = mh.plan_mean(
        domain=mh.Reals(dim=1, magnitude=1e3),
        n=None,
        n_min=400,
        privacy=mh.ApproxDP(epsilon=20, delta=1e-3),
        moment=(2, 1.0),
        max_bias=0.05,
    )
    # A plan takes longer than a release, and there are few numbers that come up.
    mean = plan["mean"]
    return mh.Plan.of(replace(mean, mean_for=functools.cache(mean.mean_for)))


def check_unknown(trials: int) -> None:
    plan = unknown_plan()
    assert plan.mechanism == "unknown-n, clipped-laplace"
    limit = plan.error_at(RECORDS)
    assert limit is not None

    class Wrapped:
        def run(self, source: Any) -> Any:
            found, averaged = plan["mean"].averaged(source)
            assert averaged is not None
            assert plan.n_min <= averaged <= RECORDS
            return found

    for law in LAWS:
        found = Trials(law, 137.3).run(Wrapped(), trials)
        assert plan.bias is not None
        assert not found.is_biased_beyond(plan.bias), law
        assert not found.errs_beyond(limit), law
        assert not found.misses_too_often(), law
        found.errors += 0.3
        assert found.is_biased_beyond(plan.bias, by=ERRORS), law
        assert found.errs_beyond(limit, by=ERRORS), law


def test_means_of_a_secret_number_are_within_their_formulas() -> None:
    check_unknown(FEW)


@pytest.mark.slow
def test_many_means_of_a_secret_number_are_within_their_formulas() -> None:
    check_unknown(MANY)


def smooth_noise(law: str, trials: int) -> np.ndarray:
    """Noise in standard errors: fresh records each time, so many of them that none knows."""
    plan = mh.plan_mean(
        domain=mh.Box([-3.0], [5.0]), n=None, privacy=mh.PureDP(epsilon=1), unbiased=True
    )
    rng, noise = np.random.default_rng(len(law)), []
    for _ in range(trials):
        rows = LAWS[law](rng, int(rng.integers(1, 300))) + 1.0
        released = float(plan.release(rows))
        error = plan.recipe.standard_error_at(len(rows))[0]
        noise.append((released - np.clip(rows, -3.0, 5.0).mean()) / error)
    return np.array(noise)


def check_smooth(trials: int) -> None:
    # Student's noise has no fourth moment: bounded functions of it are compared.
    noise = np.concatenate([smooth_noise(law, trials) for law in LAWS])
    grid = (np.arange(200_000) + 0.5) / 200_000
    exact = t.ppf(grid, 3) / math.sqrt(3)
    for shift, planted in ((0.0, False), (0.5, True)):
        odd = np.arctan(noise + shift)
        error = odd.std() / math.sqrt(len(odd))
        assert (abs(odd.mean()) > ERRORS * error) == planted
    for factor, planted in ((1.0, False), (1.7, True)):
        even = np.arctan(np.abs(noise) * factor)
        error = even.std() / math.sqrt(len(even))
        distance = abs(even.mean() - np.arctan(np.abs(exact)).mean())
        assert (distance > ERRORS * error) == planted


def test_smooth_means_have_no_bias_and_the_noise_they_say() -> None:
    check_smooth(4 * FEW)


@pytest.mark.slow
def test_many_smooth_means_have_no_bias() -> None:
    check_smooth(MANY)
