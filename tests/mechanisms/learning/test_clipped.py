"""The clipped mean of Theorem 2, and what the papers' estimators share: cost, ranks, radii."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.data import open_source
from muhat.mechanisms.learning.clipped import Clipped
from muhat.mechanisms.learning.clipping_stage import (
    FAILURE,
    ClippingStage,
    PrintedRank,
    mean_length,
)
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.radius_grids import SquaredLengths, geometric_radii
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

RHO = mh.ZCDP(rho=0.5)
PROMISES = [RHO, mh.GDP(mu=0.7), mh.ApproxDP(epsilon=1, delta=1e-6), mh.PureDP(epsilon=2)]
METHODS: list[dict[str, Any]] = [
    {"mechanism": "clipped"},
    {"mechanism": "shifted-clipped"},
    {"mechanism": "statistical", "scale": (0.1, 10)},
]


def sharing_for(dim: int, n: int, promise: Any = RHO, weights: Any = None) -> Sharing:
    protection = Protection(promise, Neighbors.SUBSTITUTE, 1)
    scales = np.ones(dim) if weights is None else np.asarray(weights)
    return Sharing(100.0, scales, n, protection, NoiseKind.named_by(promise))


def run(method: Clipped, rows: np.ndarray) -> Learnt:
    return method.run(open_source(rows, None, rows.shape[1]))


def typical(method: Clipped, rows: np.ndarray) -> Learnt:
    """The run with the middle radius of five.

    The τ that the paper prints is too small: one faithful search in a thousand is led beyond all
    records. Three of five are rarer than 1e-7.
    """
    return sorted((run(method, rows) for _ in range(5)), key=lambda found: found.steps[-1].radius)[
        2
    ]


def gaussian(rows: int, dim: int, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(rows + dim).standard_normal((rows, dim)) + shift


class Watch:
    """Adds up the exact privacy loss of everything that a method adds noise to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spent = Fraction(0)
        self.means = self.searches = 0
        make, start = Sharing.recipe_in, NoisySearch.start

        def watched_recipe(sharing: Sharing, ball: Any, share: Fraction, weights: Any) -> Any:
            recipe = make(sharing, ball, share, weights)
            protection = recipe.protection
            moved = recipe.query.sensitivity(
                recipe.law.sensitivity_norm, protection.neighbors, protection.contributions
            )
            self.means += 1
            self._add(moved, sharing.pure)
            return recipe

        def watched_start(search: NoisySearch, *args: Any, **options: Any) -> Any:
            self.searches += 1
            for _ in range(search.rounds):
                self._add(Fraction(search.sensitivity), search.law.name == "laplace")
            return start(search, *args, **options)

        monkeypatch.setattr(Sharing, "recipe_in", watched_recipe)
        monkeypatch.setattr(NoisySearch, "start", watched_start)

    def _add(self, moved: Fraction, pure: bool) -> None:
        loss = moved / (1 << FRACTION_BITS)
        self.spent += loss if pure else loss**2


@pytest.mark.parametrize("options", METHODS, ids=lambda options: options["mechanism"])
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
@pytest.mark.parametrize(("dim", "faithful"), [(1, False), (3, True), (40, False)])
def test_the_cost_recomputed_from_the_integers_is_the_promise(
    options: dict[str, Any],
    promise: Any,
    dim: int,
    faithful: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pure = isinstance(promise, mh.PureDP)
    plan = mh.plan_mean(
        domain=mh.Reals(dim, 100.0),
        n=900,
        privacy=promise,
        contributions=2,
        insist=True,
        faithful=faithful and not pure,
        **options,
    )
    watch = Watch(monkeypatch)
    found = plan.method.run(open_source(gaussian(900, dim), None, dim))
    whole = Strength.of(promise, NoiseKind.named_by(promise)).squared
    allowed = Fraction(2) if pure else whole
    assert watch.spent <= allowed
    assert sum(step.share for step in found.steps) == 1
    if found.steps[0].name == "public default":
        assert watch.spent == 0
        return
    assert watch.spent > allowed * Fraction(999, 1000)
    padded = 1 << (dim - 1).bit_length()
    medians = 0 if options["mechanism"] == "clipped" else padded
    assert (watch.searches, watch.means) == (medians + 1, 1)


def test_shares_are_those_of_the_paper() -> None:
    method = Clipped(sharing_for(8, 1000))
    assert method.shares == {"radius": 0.25, "the mean": 0.75}
    assert method.final_share == 0.75


def test_the_mean_length_of_normals() -> None:
    assert mean_length(1) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-14)
    assert mean_length(2) == pytest.approx(math.sqrt(math.pi / 2), rel=1e-14)
    for dim in (1, 2, 50, 1000):
        assert mean_length(dim + 2) == pytest.approx(mean_length(dim) * (dim + 1) / dim, rel=1e-12)
        assert math.sqrt(dim - 0.5) <= mean_length(dim) <= math.sqrt(dim)


def test_the_rank_is_that_of_the_corrected_theorem() -> None:
    """m = n − ⌈max{κ_d√(2/ρ'), τ}⌉ with ρ' = 3ρ/4 and τ = σΦ⁻¹(1 − β/T) − ½, σ² = T/(2·ρ/4)."""
    for dim in (1, 8, 128, 2000):
        stage = Clipped(sharing_for(dim, 4000)).stage
        balance = mean_length(dim) * math.sqrt(2 / 0.375)
        deviation = math.sqrt(12 / (2 * 0.125))
        tau = math.ceil(
            deviation * -NormalDist().inv_cdf(-math.expm1(math.log1p(-FAILURE) / 12)) - 0.5
        )
        assert stage.beyond == pytest.approx(max(balance, tau), rel=1e-9)
        assert stage.rank == 4000 - math.ceil(max(balance, tau))
    pure = Clipped(sharing_for(100, 4000, mh.PureDP(epsilon=2))).stage
    assert pure.beyond == pytest.approx(max(2 * 100 / 1.5, pure.search.rank_error(1 - FAILURE)))


def test_the_printed_rank_is_that_of_the_paper() -> None:
    rounds = math.log2(8 * 1000)
    tau = 2 * math.sqrt(rounds * math.log(rounds / FAILURE) / 0.5)
    method = Clipped(sharing_for(8, 4000), faithful=True, levels=1000)
    assert method.stage.beyond == pytest.approx(max(math.sqrt(16 / 0.5), tau))
    # `≤` finds the record after the one sought.
    assert method.stage.rank == math.floor(4000 - tau) + 1
    assert method.stage.search.cells == 8 * 1000**2 + 1
    assert PrintedRank(1, 1).beyond(0.5) > 0


class Unread:
    """A source that must not be read."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("the records were read")


@pytest.mark.parametrize("faithful", [False, True])
def test_the_public_default_is_released_exactly_where_the_theorem_says(faithful: bool) -> None:
    method = Clipped(sharing_for(200, 1000), faithful)
    edge = math.floor(method.stage.beyond)
    assert method.least_n == edge + 1
    few = replace(method, sharing=replace(method.sharing, n=edge))
    assert not few.is_enough
    found = few.run(Unread())  # type: ignore[arg-type]
    assert not found.value.any()
    assert (found.noise, found.ball) == (None, None)
    assert [(step.name, step.share) for step in found.steps] == [("public default", 1)]
    assert any("says nothing" in line for line in few.assumptions)
    enough = replace(method, sharing=replace(method.sharing, n=edge + 1))
    found = run(enough, np.full((edge + 1, 200), 3.0))
    assert [step.name for step in found.steps] == ["radius", "mean"]
    assert found.value.any()


@pytest.mark.parametrize("options", METHODS, ids=lambda options: options["mechanism"])
def test_too_few_records_are_refused_and_cost_everything_if_one_insists(
    options: dict[str, Any],
) -> None:
    task: dict[str, Any] = {"domain": mh.Reals(3, 100.0), "n": 20, "privacy": RHO, **options}
    with pytest.raises(mh.InvalidInput, match=r"too small.*insist"):
        mh.plan_mean(**task)
    plan = mh.plan_mean(**task, insist=True)
    release = plan.release(np.full((20, 3), 50.0))
    assert not release.value.any()
    assert release.cost == RHO
    assert any("public default 0" in line for line in release.assumptions)
    assert mh.Release.from_json(release.to_json()).value.tolist() == [0, 0, 0]
    assert "TOO FEW" in plan.describe()


STRONG = NoisySearch(1, LAWS["normal"], Fraction(1)).strength_squared * 10**12
"""A strength at which the noise moves no comparison: half a record is 10^5 deviations."""


def lengths_found(grid: SquaredLengths, squares: np.ndarray, ranks: list[int]) -> list[float]:
    search = NoisySearch(grid.cells, LAWS["normal"], STRONG)

    def count(edges: np.ndarray) -> np.ndarray:
        places = np.searchsorted(np.square(edges), squares, side="left")
        return np.bincount(np.minimum(places, len(edges) - 1), minlength=len(edges))

    return [grid.find(search, len(squares), rank, count) for rank in ranks]


@pytest.mark.parametrize("largest", [1, 2, 3, 99, 4096, 4097, 10**6 + 3, 2**50 + 1])
def test_the_search_over_squares_finds_every_order_statistic(largest: int) -> None:
    generator = np.random.default_rng(largest)
    squares = np.sort(np.floor(generator.random(40) ** 3 * (largest + 1)))
    squares[0], squares[-1] = 0, largest
    found = lengths_found(SquaredLengths(largest), squares, list(range(1, 41)))
    assert found == [math.sqrt(square) for square in squares]


def test_squares_beyond_the_rounds_are_searched_in_blocks() -> None:
    grid = SquaredLengths(3 * 10**30)
    assert 2**60 <= grid.cells <= 2**62
    squares = np.array([0.0, 1e20, 5e25, 3e30])
    found = lengths_found(grid, squares, [2, 3, 4])
    assert found == pytest.approx(np.sqrt(squares[1:]), rel=1e-6)
    assert all(
        radius**2 >= square * (1 - 1e-12) for radius, square in zip(found, squares[1:], strict=True)
    )
    assert grid.to_dict()["largest_square"] == str(3 * 10**30)


def test_geometric_radii_end_at_the_largest() -> None:
    radii = geometric_radii(50.0, pure=False)
    assert (radii.cells, radii.edges[-1]) == (4096, 50.0)
    assert geometric_radii(50.0, pure=True).cells == 256
    assert geometric_radii(50.0, 1.0, pure=False).edges[0] == 1.0
    assert geometric_radii(50.0, 90.0, pure=False).edges[0] == 25.0


@pytest.mark.parametrize("levels", [997, 1 << 20])
def test_the_faithful_radius_is_that_of_the_printed_rank(levels: int) -> None:
    """At a huge promise the noise vanishes, and `≤` shows as one record more inside."""
    rows = gaussian(500, 3)
    method = Clipped(sharing_for(3, 500, mh.GDP(mu=1e6)), faithful=True, levels=levels)
    step = 100.0 / levels
    whole = np.rint(rows / step)
    found = run(method, rows)
    assert method.stage.rank == 500  # max{…} is far below 1
    radius = np.sort(np.linalg.norm(whole, axis=1))[-1]
    assert found.steps[0].radius == pytest.approx(radius, rel=1e-12)
    assert found.value == pytest.approx(whole.mean(axis=0) * step, abs=1e-4)
    assert isinstance(found.ball, mh.Ball)
    assert found.ball.radius == pytest.approx(radius * step)


@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("dim", [1, 5, 64])
def test_the_radius_lies_within_the_rank_error_of_its_rank(dim: int, faithful: bool) -> None:
    rows = gaussian(3000, dim)
    method = Clipped(sharing_for(dim, 3000), faithful)
    stage = method.stage
    lengths = np.sort(np.linalg.norm(rows, axis=1))
    error = stage.search.rank_error(1 - 1e-8)
    unit = 100.0 / method.levels if faithful else 1.0
    for _ in range(5):
        radius = run(method, rows).steps[0].radius * unit
        assert lengths[stage.rank - error - 1] * 0.999 <= radius
        if stage.rank + error <= 3000:
            assert radius <= lengths[stage.rank + error - 1] * 1.01


@pytest.mark.parametrize("faithful", [False, True])
def test_the_error_is_that_of_the_noise_for_records_around_zero(faithful: bool) -> None:
    rows = gaussian(4000, 8)
    method = Clipped(sharing_for(8, 4000), faithful)
    ratios = []
    for _ in range(30):
        found = run(method, rows)
        assert found.noise is not None
        error = np.sum((found.value - rows.mean(axis=0)) ** 2)
        expected = method.sharing.noise(found.ball.radius, 0.75)  # type: ignore[union-attr]
        assert found.noise.root_mean_square(2)[0] == pytest.approx(expected, rel=1e-6)
        ratios.append(error / expected**2)
    # A mean of χ² with 240 degrees over 240, which exceeds 1.6 with a probability below 1e-7 and
    # is below 0.55 with less than that; the bias of clipping adds a hundredth. Twice or half the
    # noise would show as 4 or ¼.
    assert 0.55 < np.mean(ratios) < 1.65


def test_the_error_grows_with_the_distance_from_zero() -> None:
    method = Clipped(sharing_for(8, 4000))
    near, far = run(method, gaussian(4000, 8)), run(method, gaussian(4000, 8, 30.0))
    assert far.noise is not None
    assert near.noise is not None
    assert far.noise.root_mean_square(2)[0] > 10 * near.noise.root_mean_square(2)[0]


@pytest.mark.parametrize("faithful", [False, True])
def test_records_that_are_all_zero_cost_everything_too(faithful: bool) -> None:
    method = Clipped(sharing_for(3, 1000, mh.GDP(mu=1e6)), faithful)
    found = run(method, np.zeros((1000, 3)))
    assert [(step.name, step.share) for step in found.steps] == [
        ("radius", Fraction(1, 4)),
        ("mean", Fraction(3, 4)),
    ]
    assert np.abs(found.value).max() < 1e-9
    if faithful:
        assert found.steps[0].radius == 0
        assert not found.value.any()
        assert isinstance(found.ball, mh.Points)
        assert found.noise is not None
        assert not found.noise.standard_error.any()


@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e308])
def test_rows_of_anything_are_averaged(poison: float, faithful: bool) -> None:
    rows = gaussian(2000, 3)
    rows[:5] = poison
    found = typical(Clipped(sharing_for(3, 2000), faithful), rows)
    assert np.linalg.norm(found.value) < 0.3
    assert found.ball is not None
    assert found.ball.half_widths.max() < 10


def test_weights_measure_distances_in_other_units() -> None:
    weights = np.array([1.0, 100.0, 0.01])
    rows = gaussian(4000, 3) / weights
    method = Clipped(sharing_for(3, 4000, weights=weights))
    found = run(method, rows)
    assert isinstance(found.ball, mh.Ellipsoid)
    assert np.linalg.norm(weights * (found.value - rows.mean(axis=0))) < 0.1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mechanism": "clipped", "faithful": True, "weights": [1, 2, 3]}, "no weights"),
        ({"mechanism": "shifted-clipped", "weights": [1, 2, 3]}, "no weights"),
        ({"mechanism": "clipped", "scale": (1, 2)}, "scale"),
        ({"mechanism": "recentring", "faithful": True}, "faithful"),
        ({"faithful": True}, "faithful"),
        ({"mechanism": "median"}, "shifted-clipped"),
        (
            {"mechanism": "clipped", "faithful": True, "privacy": mh.PureDP(epsilon=1)},
            "no pure version",
        ),
        ({"domain": mh.Ball(radius=1, dim=3), "faithful": True}, "mh.Reals"),
        ({"domain": mh.Ball(radius=1, dim=3), "scale": (1, 2)}, "mh.Reals"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], words: str) -> None:
    task = {"domain": mh.Reals(3, 100.0), "n": 1000, "privacy": RHO, **options}
    with pytest.raises(mh.InvalidInput, match=words):
        mh.plan_mean(**task)


def test_the_plan_says_what_differs_from_the_paper() -> None:
    task: dict[str, Any] = {"domain": mh.Reals(3, 100.0), "n": 1000, "privacy": RHO}
    plans = [
        mh.plan_mean(**task, mechanism=mechanism, faithful=faithful)
        for mechanism in ("clipped", "shifted-clipped")
        for faithful in (False, True)
    ]
    assert len({plan.digest for plan in plans}) == 4
    for plan in plans:
        printed = plan.method.summary.endswith("as printed")
        assert any("would break the promise" in line for line in plan.assumptions) == printed
        assert plan.mechanism in plan.describe()
        assert plan.error_at(2.0) == pytest.approx(2 * plan.error_at(1.0))
        assert plan.to_dict()["least_n"] == plan.least_n


@pytest.mark.parametrize("mechanism", ["clipped", "shifted-clipped"])
def test_one_call_releases_a_mean(mechanism: str) -> None:
    rows = gaussian(2000, 3)
    release = mh.mean(rows, domain=mh.Reals(3, 100.0), privacy=RHO, mechanism=mechanism)
    assert release.mechanism == mechanism
    assert np.linalg.norm(release.value - rows.mean(axis=0)) < 0.3
    with pytest.raises(mh.InvalidInput, match="learnt"):
        release.interval(target="population")


def test_a_stage_takes_its_share_of_the_promise_alone() -> None:
    sharing = sharing_for(4, 1000)
    radii = geometric_radii(100.0, pure=False)
    whole, part = (
        ClippingStage(sharing, Fraction(1), radii),
        ClippingStage(sharing, Fraction(3, 4), radii),
    )
    assert (part.radius_share, part.mean_share) == (Fraction(3, 16), Fraction(9, 16))
    assert part.beyond > whole.beyond
    assert part.search.strength_squared == Fraction(3, 16) * sharing.whole.squared
