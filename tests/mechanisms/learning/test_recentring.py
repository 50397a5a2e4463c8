"""The recentring chain: its exact cost, its errors, and control flow that hides every record."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import muhat as mh
from keyed_entropy import drawn_once
from muhat.data import open_source
from muhat.mechanisms.learning import line_ends
from muhat.mechanisms.learning.last_radius import ASIDE_PLACES, EDGES, MOST_AGAIN, steps_of
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.recentring import Recentring, recentred_mean
from muhat.mechanisms.learning.recentring_schedule import MOST_ROUNDS, Schedule
from muhat.mechanisms.learning.sharing import Sharing, around
from muhat.mechanisms.learning.shrinking import shrunk, together
from muhat.mechanisms.learning.steps import SourceReader, Step, Transcript
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.rank_choice import RankChoice
from muhat.mechanisms.quantiles.search_walk import Walk
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
from muhat.noise import FRACTION_BITS, rounded_normal
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors

PROMISES = [mh.ZCDP(rho=0.5), mh.GDP(mu=0.7), mh.ApproxDP(epsilon=1, delta=1e-6)]


def schedule_for(
    dim: int, n: int, promise: Any, *, contributions: int = 1, weights: Any = None
) -> Schedule:
    protection = Protection(promise, Neighbors.SUBSTITUTE, contributions)
    scales = np.ones(dim) if weights is None else np.asarray(weights)
    return Schedule(1e4, scales, n, protection, NoiseKind.named_by(promise))


def run(rows: np.ndarray, promise: Any, **options: Any) -> Learnt:
    schedule = schedule_for(rows.shape[1], len(rows), promise, **options)
    source = open_source(rows, None, rows.shape[1])
    return recentred_mean(schedule, SourceReader(source, schedule))


def gaussian(rows: int, dim: int, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(rows + dim).standard_normal((rows, dim)) + shift


class Watch:
    """Adds up the exact privacy loss of everything that the chain adds noise to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spent = Fraction(0)
        self.events = 0
        make, start, choose = Sharing.recipe_in, NoisySearch.start, RankChoice.find
        count = LinearRecipe.run

        def watched_recipe(schedule: Sharing, ball: Any, share: Fraction, weights: Any) -> Any:
            recipe = make(schedule, ball, share, weights)
            protection = recipe.protection
            moved = recipe.query.sensitivity(
                recipe.law.sensitivity_norm, protection.neighbors, protection.contributions
            )
            self._add(moved, schedule.pure)
            return recipe

        def watched_start(search: NoisySearch, *args: Any, **options: Any) -> Walk:
            for _ in range(search.rounds):
                pure = search.law.name == "laplace"
                self._add(Fraction(search.sensitivity), pure=pure, event=0)
            self.events += 1
            return start(search, *args, **options)

        def watched_choose(choice: RankChoice, *args: Any, **options: Any) -> int:
            # Every loss moves by at most k, hence every weight and their sum by at most e^(ηk).
            self._add(Fraction(2 * choice.rate * choice.contributions), pure=True)
            return choose(choice, *args, **options)

        def watched_count(recipe: LinearRecipe, *args: Any) -> Any:
            protection = recipe.protection
            sensitivity = recipe.query.sensitivity
            moved = sensitivity(2, protection.neighbors, protection.contributions)
            self._add(moved, pure=False)
            return count(recipe, *args)

        monkeypatch.setattr(LinearRecipe, "run", watched_count)
        monkeypatch.setattr(Sharing, "recipe_in", watched_recipe)
        monkeypatch.setattr(NoisySearch, "start", watched_start)
        monkeypatch.setattr(RankChoice, "find", watched_choose)

    def _add(self, moved: Fraction, pure: bool, event: int = 1) -> None:
        loss = moved / (1 << FRACTION_BITS)
        self.spent += loss if pure else loss**2
        self.events += event


@pytest.mark.parametrize("promise", [*PROMISES, mh.PureDP(epsilon=2)])
@pytest.mark.parametrize(("dim", "shift"), [(1, 0), (3, 500), (40, 0)])
def test_the_cost_recomputed_from_the_integers_is_within_the_promise(
    promise: Any, dim: int, shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    found = run(gaussian(1500, dim, shift), promise, contributions=2)
    whole = Strength.of(promise, NoiseKind.named_by(promise)).squared
    allowed = whole if not isinstance(promise, mh.PureDP) else Fraction(2)
    assert watch.events == len(found.steps)
    assert watch.spent <= allowed
    assert watch.spent > allowed * Fraction(999, 1000)
    assert sum(step.share for step in found.steps) == 1


def test_a_step_beyond_the_promise_is_refused_before_it_reads() -> None:
    transcript = Transcript([Step("mean", Fraction(9, 10), 1.0)])
    transcript.charge(Fraction(1, 10))
    for share in (Fraction(1, 10) + Fraction(1, 10**9), Fraction(0), Fraction(-1)):
        with pytest.raises(AssertionError, match="exceed"):
            transcript.charge(share)


@pytest.mark.parametrize("promise", [*PROMISES, mh.PureDP(epsilon=0.1)])
@pytest.mark.parametrize("dim", [1, 2, 16, 31, 32, 1000])
@pytest.mark.parametrize("n", [1, 10, 1000, 10**7])
def test_something_is_left_for_the_mean_on_every_path(promise: Any, dim: int, n: int) -> None:
    schedule = schedule_for(dim, n, promise)
    last, first = schedule.last, schedule.first_share
    least = schedule.outside_share + schedule.least_final_share
    assert first + last.most_share + schedule.most_aside + least <= 1
    assert 0 < schedule.outside_share <= Fraction(3, 100)
    assert schedule.affords_round(first, schedule.center_share)
    assert schedule.likely_final_share >= schedule.least_final_share >= Fraction(1, 10)
    assert schedule.radius_places[-1] == EDGES - 1
    cells = len(schedule.radius_places)
    for place in (0, 17, 2000, EDGES - 2, EDGES - 1):
        for noise in (0, place // 2, place - 1):
            if noise < place:
                nearer = schedule.nearer_places(noise, place)
                assert len(nearer) <= cells
                assert schedule.radius_share(len(nearer)) <= first
        places = last.pure_places(place) if schedule.pure else last.near_places(place)
        assert (np.diff(places) > 0).all()
        assert 0 <= places[0] <= places[-1] <= EDGES - 1


def test_a_round_that_would_touch_what_is_reserved_is_not_begun() -> None:
    schedule = schedule_for(8, 500, mh.ZCDP(rho=0.5))
    round_ = schedule.center_share + schedule.question_share + schedule.first_share
    limit = 1 - schedule.reserved - round_
    assert schedule.affords_round(limit, schedule.center_share)
    assert not schedule.affords_round(limit + Fraction(1, 10**9), schedule.center_share)


@pytest.mark.parametrize("dim", [2, 8, 40])
def test_the_last_radius_costs_no_more_than_is_reserved_for_it(dim: int) -> None:
    last = schedule_for(dim, 4000, mh.ZCDP(rho=0.5)).last
    for place in (0, 1000, EDGES - 800, EDGES - 2 - last.far):
        far = last.far_places(place)
        assert far[-1] == EDGES - 1
        for asked, (below, above) in enumerate(itertools.pairwise([place + last.far, *far])):
            finer = last.places_between(below, above)
            assert below < finer[0] <= finer[-1] == above
            assert len(finer) == 1 << MOST_AGAIN or np.diff(finer, prepend=below).max() <= 13
            paid = (1 + min(asked + 1, len(far) - 1)) * last.each_share
            assert paid + last.far_share(len(finer)) <= last.most_share
    assert last.each_share + last.near_share <= last.most_share
    places = last.aside_places(1000, 1040)
    assert places[-1] == 1040
    assert (np.diff(places) > 0).all()
    assert last.aside_places(1000, 1010).tolist() == [1010]


@pytest.mark.parametrize("outer", [1001, 1036, 1037, 1054, 1073, 1091, 3000, EDGES - 1])
def test_a_move_aside_may_always_be_answered_by_no_gain(outer: int) -> None:
    places = schedule_for(1, 4000, mh.ZCDP(rho=0.5)).last.aside_places(1000, outer)
    assert places[-1] == outer
    assert len(places) <= ASIDE_PLACES
    assert (np.diff(places) > 0).all()


def test_a_centre_does_not_move_aside_from_records_far_out_on_both_sides() -> None:
    # A wide group of 5 % pulls a little to one side, by 15 deviations of what is measured. A ball
    # that reaches that side only would be 5 off. One around both sides has noise of 0.01, and the
    # limit is more than ten times that.
    rows = np.random.default_rng(4).standard_normal((1_000_000, 2))
    rows[:50_000] = 1000 * rows[:50_000] + [20, 0]
    found = [run(rows, mh.ZCDP(rho=0.5)) for _ in range(3)]
    assert all(one.count("outer radius aside") for one in found)
    assert max(abs(float((one.value - rows.mean(axis=0))[0])) for one in found) < 0.3


class Shrinking:
    """A reader in whose counts every new centre is far better than the last."""

    def __init__(self, step: int) -> None:
        self.cell, self.step = EDGES - 1, step

    def distance_counts(self, center: np.ndarray, edges: np.ndarray) -> list[int]:
        counts = [0] * len(edges)
        counts[max(self.cell, 0)] = 1000
        self.cell -= self.step
        return counts

    def line_counts(self, center: float, edges: np.ndarray) -> list[int]:
        return self.distance_counts(np.array([center]), edges)

    def excess(self, center: np.ndarray, inner: float, lattice: Any) -> Sequence[int]:
        return [0] * lattice.dim

    def sums(self, lattice: Any) -> Sequence[int]:
        return [0] * lattice.dim

    def filling(self, values: np.ndarray) -> Shrinking:
        return self


@pytest.mark.parametrize("step", [45, 100, 480])
def test_the_longest_paths_end_within_the_promise(step: int) -> None:
    schedule = schedule_for(40, 1000, mh.ZCDP(rho=0.1))
    found = recentred_mean(schedule, Shrinking(step))
    centers = sum(step.name == "center" for step in found.steps)
    assert 4 <= centers <= MOST_ROUNDS
    assert sum(step.share for step in found.steps) == 1
    mean = [step.share for step in found.steps if step.name in ("mean", "shell")]
    assert sum(mean) >= schedule.least_final_share


def test_records_along_a_ray_get_a_ball_around_their_middle() -> None:
    # Of the lengths 1.8 % are equal to the largest, which is 16 deviations of every decision.
    rows = np.minimum(ray(16_000, 2), 4 / math.sqrt(2))
    for _ in range(5):
        found = run(rows, mh.ZCDP(rho=32))
        assert found.count("pull") == 1
        assert found.count("shell") == 0
        assert isinstance(found.ball, mh.Ball)
        assert np.linalg.norm(found.ball.center) > 1.5
        assert found.ball.radius < 0.75 * 4
        assert np.linalg.norm(found.value - rows.mean(axis=0)) < 0.02


@pytest.mark.parametrize(("dim", "step"), [(1, "curve"), (2, "outer radius aside")])
def test_missing_values_stay_where_the_centre_was_before_it_moved_aside(
    dim: int, step: str
) -> None:
    # One in twenty is missing, and the ball moves to the middle of its ends, several times the
    # mean: as that, missing values would make the mean a tenth too large or more. The centre
    # before lies between 0 and the mean, so they draw it towards 0 by a twentieth at most.
    rows = np.random.default_rng(6).lognormal(2.5, 1.2, (8000, dim)).clip(max=300)
    rows[:, 1:] = 0.0
    recorded = float(rows[400:, 0].mean())
    rows[:400] = np.nan
    for _ in range(3):
        found = run(rows, mh.ZCDP(rho=32))
        assert found.count(step) == 1
        assert isinstance(found.ball, mh.Ball)
        assert found.ball.center[0] > 3 * recorded
        assert 0.94 * recorded < float(found.value[0]) < 1.01 * recorded


def test_a_far_group_is_seen_and_a_radius_close_by_is_kept_without_one() -> None:
    # A group of 200 is ten deviations of a comparison beyond the records it leaves outside.
    far = run(cluster(4000, 8), mh.ZCDP(rho=0.5))
    assert isinstance(far.ball, mh.Ball)
    assert far.ball.radius > 12
    near = [run(gaussian(4000, 8), mh.ZCDP(rho=0.5)).ball for _ in range(3)]
    assert all(isinstance(ball, mh.Ball) and ball.radius < 12 for ball in near)
    assert steps_of(2.0) == 97


@pytest.mark.parametrize("n", [500, 4000, 100_000])
@pytest.mark.parametrize("dim", [1, 8, 32, 256])
def test_one_record_in_twenty_is_four_deviations_beyond_what_may_be_lost(n: int, dim: int) -> None:
    last = schedule_for(dim, n, mh.ZCDP(rho=0.5)).last
    noise = 1 / last.sharing.step_strength(float(last.each_share))
    if n / 20 >= 2 * last._group and float(last.each_share) < 0.035:
        assert n / 20 - last.beyond_far >= 3.99 * noise


@pytest.mark.parametrize("dim", [1, 2, 8, 32])
def test_a_pure_choice_strays_too_seldom_for_its_noise_to_count(dim: int) -> None:
    # Nothing is drawn: the law of the last radius for normal records, cell by cell.
    schedule = schedule_for(dim, 20_000, mh.PureDP(epsilon=1.0))
    last, place = schedule.last, EDGES // 2
    lengths = np.sqrt(np.random.default_rng(dim).chisquare(dim, schedule.n))
    found = schedule.edges[place] * lengths / np.quantile(lengths, 0.9)
    places = last.pure_places(place)
    up_to = np.searchsorted(np.sort(found), schedule.edges[places], "right")
    weights = np.array(last.pure_weights(places, place))
    rate = schedule.finder(len(places), last.pure_share).rate / 2.0**FRACTION_BITS
    target = schedule.n - last.beyond_pure - 0.5
    loss = np.maximum(0, np.maximum(np.append(0, up_to[:-1]) - target, target - up_to) + 0.5)

    def expected_square(weights: np.ndarray) -> float:
        law = weights * np.exp(-rate * loss)
        return float(law @ schedule.edges[places] ** 2 / law.sum() / schedule.edges[place] ** 2)

    # Little more than twice the radius that nine records in ten have, where all places alike would
    # add several times that by the few that are hundreds of times as large.
    assert expected_square(weights) <= 2.1**2
    assert expected_square(np.ones(len(places))) > 4 * expected_square(weights)


def test_the_least_number_of_records_is_just_enough() -> None:
    for promise in (*PROMISES, mh.PureDP(epsilon=1)):
        for dim in (1, 8, 300):
            least = schedule_for(dim, 10, promise).least_n
            assert schedule_for(dim, least, promise).is_enough
            assert not schedule_for(dim, least - 1, promise).is_enough


def test_weights_measure_distances_in_other_units() -> None:
    weights = np.array([1.0, 100.0, 0.01])
    rows = gaussian(4000, 3, 5.0)
    found = run(rows / weights, mh.ZCDP(rho=0.5), weights=weights)
    assert isinstance(found.ball, mh.Ellipsoid)
    scaled = found.noise.standard_error * weights
    assert scaled == pytest.approx(np.full(3, scaled[0]), rel=1e-6)
    assert np.linalg.norm(weights * found.value - rows.mean(axis=0)) < 0.1


def test_records_that_are_all_equal_get_the_smallest_radius_and_full_cost() -> None:
    found = run(np.full((1000, 3), 7.5), mh.ZCDP(rho=0.5))
    assert found.steps[-1].radius < 1e-4
    assert found.value == pytest.approx([7.5] * 3, abs=1e-4)
    assert sum(step.share for step in found.steps) == 1


# A search is led beyond all records with the probability of 4 deviations of its noise, and then
# the radius, hence the error, is a few times larger: the limits leave room for that.
@pytest.mark.parametrize(
    ("promise", "dim", "limit"),
    [(mh.ZCDP(rho=0.5), 1, 1), (mh.ZCDP(rho=0.5), 40, 3), (mh.PureDP(epsilon=4), 2, 30)],
)
def test_a_far_shift_costs_rounds_and_hardly_any_error(
    promise: Any, dim: int, limit: float
) -> None:
    rows = gaussian(4000, dim, 1000.0)
    found = run(rows, promise)
    assert found.count("center") >= 2
    assert np.linalg.norm(found.value - rows.mean(axis=0)) < limit


def test_the_shell_is_shrunk_to_nothing_where_it_is_noise_and_kept_where_it_is_not() -> None:
    noise = np.random.default_rng(1).standard_normal(100)
    assert np.linalg.norm(shrunk(0.3 * noise, 0.3)) < 0.5 * np.linalg.norm(0.3 * noise)
    assert not shrunk(0.1 * noise, 0.3).any()
    pull = 20 * noise
    assert shrunk(pull, 0.3) == pytest.approx(pull, rel=1e-3)


@pytest.mark.parametrize("dim", [3, 8, 40])
@pytest.mark.parametrize("pull", [0.0, 1.0, 3.0])
def test_shrinking_is_never_farther_off_in_three_dimensions_or_more(dim: int, pull: float) -> None:
    # 4000 draws; the difference of squares has a standard error below 0.05·d, and five and a half
    # of those are far less than what is saved without a pull.
    generator = np.random.default_rng(dim)
    mean = np.zeros(dim)
    mean[0] = pull
    noisy = mean + generator.standard_normal((4000, dim))
    plain = np.sum((noisy - mean) ** 2, axis=1)
    moved = np.array([np.sum((shrunk(row, 1.0) - mean) ** 2) for row in noisy])
    saved = plain - moved
    assert saved.mean() > -5.5 * saved.std() / math.sqrt(4000)
    if not pull:
        assert saved.mean() > 0.2 * dim


def test_no_coordinate_is_moved_out_of_its_interval() -> None:
    # All of the pull in one coordinate of many: without a limit it would be lost among the noise.
    generator, dim, trials = np.random.default_rng(2), 200, 2_000
    pull = np.zeros(dim)
    pull[0] = 6.0
    shell = pull + generator.standard_normal((trials, dim))
    moved = np.array([shrunk(row, 1.0) for row in shell]) - shell
    assert (
        np.abs(moved).max()
        <= 1.5
        < Spread(LAWS["normal"], 1, np.ones(1)).half_widths(0.95, joint=False)
    )
    g = 1 - (dim - 2) / np.sum(shell**2, axis=1)
    assert np.median((1 - g) * shell[:, 0]) > 4


def test_intervals_are_about_the_mean_before_the_shell_was_shrunk() -> None:
    rows = gaussian(4000, 60)
    found = run(rows, mh.ZCDP(rho=0.5))
    assert found.count("shell") == 1
    assert found.unshrunk is not None
    moved = np.abs(found.value - found.unshrunk)
    assert 0 < moved.max() <= 1.5 * found.noise.scales.max()


@pytest.mark.slow
def test_intervals_hold_where_a_few_records_pull_one_of_many_coordinates() -> None:
    # Nine misses or more of 20 at 5 % each: 3e-7. About the shrunk value, 18 of 20 missed.
    rows = np.random.default_rng(1).standard_normal((20_000, 256))
    rows[:400, 0] += 48
    plan = mh.plan_mean(domain=mh.Reals(256, 1e4), n=20_000, privacy=mh.GDP(mu=0.5))
    missed = 0
    for _ in range(20):
        release = plan.release(rows)
        assert isinstance(release.domain, mh.Ball)
        offset = rows - release.domain.center
        length = np.linalg.norm(offset, axis=1)
        inside = np.minimum(1, release.domain.radius / length)
        exact = release.domain.center[0] + np.mean(offset[:, 0] * inside)
        lower, upper = release.interval()
        missed += not lower[0] <= exact <= upper[0]
    assert missed <= 8


def test_two_independent_noises_add_up() -> None:
    scales = np.array([3.0, 4.0])
    plain = together(Spread(LAWS["normal"], 2, np.array([4.0, 3.0])), scales)
    assert plain.scales == pytest.approx([5.0, 5.0])
    factor = np.array([[1.0, 2.0], [0.0, 2.0]])
    mixed = together(Spread(LAWS["normal"], 2, np.linalg.norm(factor, axis=1), factor), scales)
    assert mixed.covariance == pytest.approx(factor @ factor.T + np.diag(scales**2))
    assert mixed.scales == pytest.approx(np.sqrt(np.diag(mixed.covariance)))


def test_records_that_pull_together_keep_their_weight_and_others_lose_it() -> None:
    # Along a ray the shell's mean is 25 of its deviations; without a pull 18 of 20 are shrunk to a
    # third at least with a probability above 1 − 1e-6.
    ray = np.random.default_rng(3).exponential(1, (4000, 1)) * np.ones(60) / math.sqrt(60)
    exact = ray.mean(axis=0)
    errors = [np.linalg.norm(run(ray, mh.ZCDP(rho=8)).value - exact) for _ in range(10)]
    assert np.median(errors) < 0.01
    found = run(gaussian(4000, 60), mh.ZCDP(rho=0.5))
    assert found.count("shell") == 1


def test_five_passes_are_enough_on_the_common_path() -> None:
    class Counting(ArrayReader):
        def __init__(self, rows: np.ndarray) -> None:
            super().__init__(rows)
            self.calls: Counter[str] = Counter()

        def distance_counts(self, center: np.ndarray, edges: np.ndarray) -> list[int]:
            self.calls["counts"] += 1
            return super().distance_counts(center, edges)

        def excess(self, center: np.ndarray, inner: float, lattice: Any) -> list[int]:
            self.calls["excess"] += 1
            return super().excess(center, inner, lattice)

        def sums(self, lattice: Any) -> list[int]:
            self.calls["sums"] += 1
            return super().sums(lattice)

    taken: Counter[tuple[int, ...]] = Counter()
    for _ in range(15):
        reader = Counting(gaussian(4000, 8))
        recentred_mean(schedule_for(8, 4000, mh.ZCDP(rho=0.5)), reader)
        taken[tuple(reader.calls[name] for name in ("counts", "sums", "excess"))] += 1
    # One run in a hundred or so takes another path; eight of 15 are rarer than 1e-11.
    assert taken.most_common(1)[0][0] == (2, 2, 1)


@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.5), mh.PureDP(epsilon=1)])
def test_with_too_few_records_for_any_rank_the_public_default_is_said_and_released(
    promise: Any,
) -> None:
    class Closed:
        """A reader that must not be read."""

        def __getattr__(self, name: str) -> Any:
            raise AssertionError("the records are not needed")

    schedule = schedule_for(3, 6, promise)
    method = Recentring(schedule)
    assert "public default" in method.summary
    assert method.shares == {"the public default": 1.0}
    found = recentred_mean(schedule, Closed())
    assert found.value.tolist() == [0.0] * 3
    assert found.noise is None
    assert sum(step.share for step in found.steps) == 1
    enough = Recentring(schedule_for(3, schedule.least_n, promise))
    assert "at most" in enough.summary


def trimmed_root_mean_square(rows: np.ndarray, promise: Any, trials: int) -> float:
    exact = rows.mean(axis=0)
    errors = sorted(np.linalg.norm(run(rows, promise).value - exact) for _ in range(trials))
    # Without the two worst: three searches led astray by noise are rarer than 1e-6.
    return math.sqrt(np.mean(np.square(errors[:-2])))


def lognormal(rows: int, dim: int) -> np.ndarray:
    return np.asarray(np.exp(gaussian(rows, dim)))


def cluster(rows: int, dim: int) -> np.ndarray:
    data = gaussian(rows, dim)
    data[: rows // 20] += 10.0
    return data


def ray(rows: int, dim: int) -> np.ndarray:
    lengths = np.random.default_rng(rows).exponential(1.0, (rows, 1))
    return np.asarray(lengths * np.full(dim, 1 / math.sqrt(dim)))


# The limit is the target times a slack of more than 5.5 standard errors of the trials, so a false
# alarm is rarer than 1e-6; a third of the promise's strength must raise one.
@pytest.mark.parametrize(
    ("make", "dim", "target", "slack", "trials"),
    [
        (gaussian, 8, 0.0066, 1.30, 40),
        (gaussian, 128, 0.0756, 1.15, 6),
        (lognormal, 8, 0.0436, 1.45, 30),
        (cluster, 8, 0.0412, 1.40, 30),
        (ray, 2, 0.0054, 1.45, 60),
    ],
)
def test_errors_reach_the_targets(
    make: Any, dim: int, target: float, slack: float, trials: int
) -> None:
    rows = make(4000, dim)
    assert trimmed_root_mean_square(rows, mh.ZCDP(rho=0.5), trials) < target * slack
    assert trimmed_root_mean_square(rows, mh.ZCDP(rho=0.05), trials) > target * slack


def flow(found: Learnt) -> str:
    """What can be seen of the path: the names of the steps, in order."""
    return " ".join(step.name for step in found.steps)


class ArrayReader:
    """The passes in plain numpy, fast for a few records; `copies` plants a wrong sensitivity."""

    def __init__(self, rows: np.ndarray, copies: int = 1) -> None:
        self._rows = np.nan_to_num(np.clip(rows, -1e4, 1e4))
        self._multiplicity = np.ones(len(rows), int)
        self._multiplicity[0] = copies

    def distance_counts(self, center: np.ndarray, edges: np.ndarray) -> list[int]:
        return self._counted(np.linalg.norm(self._rows - center, axis=1), edges)

    def line_counts(self, center: float, edges: np.ndarray) -> list[int]:
        return self._counted(self._rows[:, 0] - center, edges)

    def _counted(self, places: np.ndarray, edges: np.ndarray) -> list[int]:
        cells = np.searchsorted(edges, places)
        cells = np.repeat(np.minimum(cells, len(edges) - 1), self._multiplicity)
        return np.bincount(cells, minlength=len(edges))[: len(edges)].tolist()  # type: ignore[no-any-return]

    def excess(self, center: np.ndarray, inner: float, lattice: Any) -> list[int]:
        offset = self._rows - center
        length = np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-300)
        return self._added(offset * np.maximum(0, 1 - inner / length), lattice)

    def sums(self, lattice: Any) -> list[int]:
        return self._added(self._rows - np.array(lattice.center), lattice)

    def filling(self, values: np.ndarray) -> ArrayReader:
        return self

    @staticmethod
    def _added(offset: np.ndarray, lattice: Any) -> list[int]:
        length = np.linalg.norm(offset, axis=1, keepdims=True)
        clipped = offset * np.minimum(1, lattice.clip_radius / np.maximum(length, 1e-300))
        return [int(total) for total in np.rint(clipped / float(lattice.grid)).sum(axis=0)]


def flow_rows() -> np.ndarray:
    return np.random.default_rng(5).standard_normal((600, 1)) + 8.0


def flows(rows: np.ndarray, pairs: int, copies: int = 1) -> Counter[str]:
    """How often each path is taken."""
    schedule = schedule_for(1, len(rows), mh.GDP(mu=0.5))
    reader = ArrayReader(rows, copies)
    return Counter(flow(recentred_mean(schedule, reader)) for _ in range(pairs))


@drawn_once
def own_flows(pairs: int) -> Counter[str]:
    return flows(flow_rows(), pairs)


def flow_distance(pairs: int, extreme: float, copies: int = 1) -> tuple[float, float]:
    """The total variation between the flows of neighbours, and what DP and chance allow.

    GDP bounds the first by 2Φ(μ/2) − 1. Each path's frequency adds its own chance, of which 5.5
    deviations are allowed: a false alarm is rarer than 1e-6.
    """
    neighbor = flow_rows()
    neighbor[0] = extreme
    one, two = own_flows(pairs), flows(neighbor, pairs, copies)
    paths = set(one) | set(two)
    distance = sum(abs(one[path] - two[path]) for path in paths) / (2 * pairs)
    deviations = sum(math.sqrt(one[path] + two[path]) for path in paths) / (2 * pairs)
    return distance, math.erf(0.5 / 2 / math.sqrt(2)) + 5.5 * deviations


@pytest.mark.parametrize("extreme", [1e4, -1e4, 1e300])
def test_neighbours_with_an_extreme_record_take_the_same_paths(extreme: float) -> None:
    distance, allowed = flow_distance(250, extreme)
    assert distance <= allowed


def test_a_record_that_counts_many_times_would_be_caught() -> None:
    distance, allowed = flow_distance(250, 0.0, copies=4000)
    assert distance > allowed + 0.1


class Drawn:
    """The exact normal noise, drawn many at a time: a single draw costs as much as a thousand."""

    def __init__(self) -> None:
        self._left = np.zeros(0, np.int64)

    def __call__(self, size: int) -> np.ndarray:
        if len(self._left) < size:
            self._left = rounded_normal(100_000)
        taken, self._left = self._left[:size], self._left[size:]
        return taken


@pytest.mark.slow
def test_many_neighbours_with_an_extreme_record_take_the_same_paths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(LAWS["normal"]), "sample", Drawn())
    # A search is the same whenever its cells and its share are: made once, checked once.
    monkeypatch.setattr(Schedule, "finder", functools.lru_cache(Schedule.finder))
    cached = functools.lru_cache(line_ends.prefix_recipe)
    monkeypatch.setattr(line_ends, "prefix_recipe", cached)
    distance, allowed = flow_distance(10_000, -1e300)
    assert distance <= allowed


def test_a_recipe_for_a_share_has_the_noise_of_that_share() -> None:
    schedule = schedule_for(4, 1000, mh.ZCDP(rho=0.5))
    ball = around(np.zeros(4), 3.0, schedule.weights)
    recipe = schedule.recipe_in(ball, Fraction(1, 4), schedule.weights)
    expected = schedule.noise(3.0, 0.25) * 1000 / 2
    assert recipe.scales == pytest.approx(np.full(4, expected), rel=1e-9)
