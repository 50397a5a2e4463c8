"""Clipped means with a pad: their exact cost, their grids, and what their bounds rest on."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muhat as mh
from muhat.data import open_source
from muhat.domains.lattice import BoxLattice
from muhat.errors import DataChanged
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.location import FAILURES
from muhat.mechanisms.learning.moment_error import Moment
from muhat.mechanisms.learning.padded import PaddedMean
from muhat.mechanisms.learning.padded_error import PLACING, ROUNDING, astray_bias, moved_part
from muhat.mechanisms.learning.padded_means import LOCATION_SHARES, PaddedMeans
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.tails import bias_bound, closed_bias, closed_pad
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

PROMISES = [mh.PureDP(epsilon=20), mh.ZCDP(rho=5), mh.GDP(mu=3), mh.ApproxDP(epsilon=8, delta=1e-6)]


def made(
    promise: Any,
    *,
    learnt: bool,
    n: int = 2000,
    dim: int = 1,
    magnitude: float = 1e3,
    bias: float = 0.05,
    order: float = 2.0,
    contributions: int = 1,
    weights: Any = None,
) -> PaddedMean:
    protection = Protection(promise, Neighbors.SUBSTITUTE, contributions)
    scaled = np.ones(dim) if weights is None else np.asarray(weights, float)
    sharing = Sharing(magnitude, scaled, n, protection, NoiseKind.named_by(promise))
    moment = Moment(order, np.linspace(1, 2, dim))
    means = PaddedMeans(sharing, moment)
    found = (means.located if learnt else means.wide)(np.full(dim, bias))
    assert found is not None
    return found


def records(n: int = 2000, dim: int = 1, mean: float = 77.7) -> np.ndarray:
    return np.random.default_rng(n + dim).standard_normal((n, dim)) + mean


def run(method: PaddedMean, rows: np.ndarray) -> Learnt:
    return method.run(open_source(rows, None, rows.shape[1]))


class Watch:
    """Adds up the exact privacy loss of everything that noise is added to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spent = Fraction(0)
        self.sums = self.searches = 0
        add_noise, start = Recipe.run, NoisySearch.start

        def watched_run(recipe: Recipe, *args: Any) -> Any:
            protection = recipe.protection
            moved = recipe.query.sensitivity(
                recipe.law.sensitivity_norm, protection.neighbors, protection.contributions
            )
            self._add(moved, recipe.law.sensitivity_norm != 2 or recipe.law.name != "normal")
            self.sums += 1
            return add_noise(recipe, *args)

        def watched_start(search: NoisySearch, *args: Any, **options: Any) -> Any:
            for _ in range(search.rounds):
                self._add(Fraction(search.sensitivity), search.law.name == "laplace")
            self.searches += 1
            return start(search, *args, **options)

        monkeypatch.setattr(Recipe, "run", watched_run)
        monkeypatch.setattr(NoisySearch, "start", watched_start)

    def _add(self, moved: Fraction, pure: bool) -> None:
        loss = moved / (1 << FRACTION_BITS)
        self.spent += loss if pure else loss**2


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("learnt", [True, False])
@pytest.mark.parametrize(("dim", "contributions"), [(1, 1), (1, 2), (3, 1)])
def test_the_cost_recomputed_from_the_integers_is_within_the_promise(
    promise: Any,
    learnt: bool,
    dim: int,
    contributions: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = made(promise, learnt=learnt, dim=dim, contributions=contributions)
    watch = Watch(monkeypatch)
    found = run(method, records(dim=dim))
    whole = Strength.of(promise, NoiseKind.named_by(promise)).squared
    allowed = Fraction(20) if isinstance(promise, mh.PureDP) else whole
    assert (watch.sums, watch.searches) == (1, dim if learnt else 0)
    assert allowed * Fraction(99, 100) < watch.spent <= allowed
    assert sum(step.share for step in found.steps) == 1
    assert [step.name for step in found.steps] == ["location"] * learnt + ["mean"]


@pytest.mark.parametrize("promise", [mh.PureDP(epsilon=20), mh.ZCDP(rho=5)])
@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("center", [0.0, 0.3, -987.654321, 1e3])
def test_the_grid_of_a_record_is_as_fine_as_the_rounding_says(
    promise: Any, dim: int, center: float
) -> None:
    for learnt in (True, False):
        for order, bias in ((2.0, 0.05), (1.3, 0.3), (8.0, 1e-5)):
            method = made(promise, learnt=learnt, dim=dim, order=order, bias=bias, n=10**6)
            recipe = method.recipe(method.interval(np.full(dim, center)))
            lattice = recipe.query.lattice
            assert isinstance(lattice, BoxLattice)
            assert recipe.transform is None or recipe.transform.ndim == 1
            factors = np.ones(dim) if recipe.transform is None else np.abs(recipe.transform)
            for step, factor, width in zip(lattice.grid, factors, method.half_widths, strict=True):
                assert float(step) * factor <= 2 * ROUNDING * width


def test_a_clipped_record_is_off_by_less_than_the_rounding() -> None:
    rng = np.random.default_rng(3)
    method = made(mh.ZCDP(rho=5), learnt=True, magnitude=1e7, n=10**6)
    for center in rng.uniform(-1e7, 1e7, 20):
        interval = method.interval(np.array([center]))
        recipe = method.recipe(interval)
        lattice = recipe.query.lattice
        half = Fraction(float(method.half_widths[0]))
        units, step = lattice.center_units[0], lattice.grid[0]
        low, high = ((units + end[0]) * step for end in (lattice.lower, lattice.upper))
        allowed = ROUNDING * half + PLACING * 10**7
        assert abs(low - (Fraction(center) - half)) <= allowed
        assert abs(high - (Fraction(center) + half)) <= allowed


finite = st.floats(-1e6, 1e6)


@given(
    x=finite, mu=finite, pad=st.floats(1e-3, 1e5), below=st.floats(0, 1e5), above=st.floats(0, 1e5)
)
def test_clipping_to_any_interval_about_the_padded_mean_takes_what_lies_beyond_the_pad(
    x: float, mu: float, pad: float, below: float, above: float
) -> None:
    low, high = mu - pad - below, mu + pad + above
    taken = abs(min(max(x, low), high) - x)
    assert taken <= max(abs(x - mu) - pad, 0.0) + 1e-9


@given(
    x=finite, mu=finite, pad=st.floats(1e-3, 1e5), reach=st.floats(0, 1e5), part=st.floats(-1, 1)
)
def test_moving_the_interval_within_reach_moves_a_record_no_farther(
    x: float, mu: float, pad: float, reach: float, part: float
) -> None:
    half, place = reach + pad, mu + part * reach
    about_mean = min(max(x, mu - half), mu + half)
    found = min(max(x, place - half), place + half)
    limit = min(max(abs(x - mu) - pad, 0.0), abs(part) * reach)
    assert abs(found - about_mean) <= limit + 1e-9


@pytest.mark.parametrize("order", [1.2, 1.7, 2.0, 2.5, 6.0])
@pytest.mark.parametrize(("pad", "reach"), [(5.0, 2.0), (0.3, 4.0), (100.0, 1.5), (2.0, 0.01)])
@pytest.mark.parametrize("power", [1, 2])
def test_what_moving_takes_is_bounded_for_every_distance_and_attained(
    order: float, pad: float, reach: float, power: int
) -> None:
    # Records at distance y with probability min(1, y^−λ): the moment is at most 1.
    distances = np.geomspace(1e-3, 1e6, 20_001)
    moved = np.minimum(np.maximum(distances - pad, 0.0), reach) ** power
    exact = float(np.max(moved * np.minimum(1.0, distances**-order)))
    bound = moved_part(order, 1.0, pad, reach, power)
    assert exact <= bound
    assert bound <= reach**power * (1 + 1e-8)
    if pad >= 1:
        assert bound <= exact * 1.01
    # Planted: half of the reach.
    assert moved_part(order, 1.0, pad, reach / 4, power) < bound or pad < reach


def test_a_scale_of_another_unit_changes_nothing() -> None:
    for power in (1, 2):
        one, other = (moved_part(3.0, 1.0 * u, 5.0 * u, 2.0 * u, power) for u in (1.0, 1e-30))
        assert other == pytest.approx(one * 1e-30**power, rel=1e-12)


@pytest.mark.parametrize("learnt", [True, False])
def test_the_bias_of_the_worst_two_points_wherever_the_interval_lies(learnt: bool) -> None:
    method = made(mh.ZCDP(rho=5), learnt=learnt, n=10**5)
    half, pad = float(method.half_widths[0]), float(method.pads[0])
    worst = 0.0
    for p in np.geomspace(1e-6, 0.5, 400):
        far, near = math.sqrt((1 - p) / p), -math.sqrt(p / (1 - p))
        for place in np.linspace(pad - half, half - pad, 41):
            ends = place - half, place + half
            mean = p * np.clip(far, *ends) + (1 - p) * np.clip(near, *ends)
            worst = max(worst, abs(mean))
    allowed = 0.05 - float(astray_bias(method.location, np.ones(1))[0]) if learnt else 0.05
    assert worst <= allowed
    # Sharp: a hundredth less pad would not do for ±magnitude.
    assert learnt or worst > 0.99 * 0.05
    assert learnt or bias_bound(0.98 * pad, 2, 1.0) > 0.05


def test_the_learnt_interval_pays_for_a_search_that_fails() -> None:
    for order in (1.2, 2.0, 5.0):
        method = made(mh.ZCDP(rho=5), learnt=True, n=10**6, order=order, bias=0.1, dim=2)
        location = method.location
        assert location is not None
        for j, (scale, pad) in enumerate(zip(method.moment.scales, method.pads, strict=True)):
            failed = 2 * scale * method.failure / 2
            # Beyond every reach the next one, beyond the last ±magnitude.
            chances = [*FAILURES[location.level : len(location.known)], 0.0]
            places = [*location.known[location.level + 1 :, j], 2e3]
            for chance, rarer, place in zip(chances, chances[1:], places, strict=False):
                failed += (chance - rarer) * place
            assert bias_bound(pad, order, scale) + failed <= 0.1
            # Nor is anything wasted.
            assert bias_bound(0.99 * pad, order, scale) + failed > 0.1
        assert method.location_share in LOCATION_SHARES


def test_the_closed_bias_and_the_closed_pad_belong_together() -> None:
    for order in (1.1, 2.0, 7.0):
        for bias in (1e-6, 0.01, 0.3):
            assert closed_bias(closed_pad(bias, order, 2.0), order, 2.0) <= bias * (1 + 1e-9)
            assert closed_bias(3.0, order, 2.0) >= bias_bound(3.0, order, 2.0)


def test_the_error_rises_where_the_search_cannot_be_trusted() -> None:
    method = made(mh.ZCDP(rho=5), learnt=True)
    assert method.rmse < 0.1
    assert method.location is not None
    assert method.location.astray(2)[0] < 0.2 / method.sharing.n
    # Where the records do not tell more the farthest place there is must be reckoned with.
    few = made(mh.PureDP(epsilon=10), learnt=True, n=120, bias=0.4)
    assert few.location is not None
    rarest = FAILURES[len(few.location.known) - 1]
    assert rarest >= 1e-12
    assert few.location.astray(2)[0] >= rarest * 2e3**2
    assert few.rmse > math.sqrt(rarest) * 2e3


def test_intervals_that_floats_cannot_hold_are_not_offered() -> None:
    sharing = made(mh.ZCDP(rho=5), learnt=False, magnitude=1e3).sharing
    far = Sharing(1e30, sharing.weights, sharing.n, sharing.protection, sharing.kind)
    moment, biases = Moment(2.0, np.ones(1)), np.array([0.05])
    assert PaddedMeans(far, moment).wide(biases) is None
    assert PaddedMeans(far, moment).located(biases) is None
    few = Sharing(1e3, sharing.weights, 10, sharing.protection, sharing.kind)
    assert PaddedMeans(few, moment).located(biases) is None
    assert PaddedMeans(few, moment).wide(biases) is not None


def test_weights_decide_which_column_has_less_noise() -> None:
    even = made(mh.ZCDP(rho=5), learnt=True, dim=2)
    tilted = made(mh.ZCDP(rho=5), learnt=True, dim=2, weights=[10.0, 1.0])
    ratios = tilted.noise.standard_error / even.noise.standard_error
    assert ratios[0] < 1 < ratios[1]


def test_a_changed_number_of_rows_is_noticed() -> None:
    for learnt in (True, False):
        with pytest.raises(DataChanged, match="number of rows"):
            run(made(mh.ZCDP(rho=5), learnt=learnt), records(1999))


def test_hostile_values_are_clipped_like_any_other() -> None:
    rows = records()
    rows[:200, 0] = [np.nan, np.inf, -np.inf, 1e308, -1e308] * 40
    for promise in PROMISES:
        for learnt in (True, False):
            found = run(made(promise, learnt=learnt), rows)
            assert np.isfinite(found.value).all()
            assert found.noise is not None
            shift = 0.1 * (found.ball.upper[0] - found.ball.lower[0])
            assert abs(found.value[0] - 77.7) < shift + 8 * found.noise.standard_error[0] + 80


def test_descriptions_say_what_is_assumed() -> None:
    assert Moment(2.0, np.ones(3)).describe() == "the standard deviation is at most 1"
    assert "(1, 2)" in Moment(2.0, np.array([1.0, 2.0])).describe()
    assert Moment(3.0, np.ones(1)).describe() == "E|X − μ|^3 ≤ ψ^3 with ψ = 1"
    assert ", …" in Moment(2.0, np.arange(1.0, 9.0)).describe()
