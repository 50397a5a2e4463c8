"""Who is asked what in the local chain, and what follows from the answers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh
from muhat.protocols.estimators.range_counts import RangeCounts, range_counts
from muhat.protocols.means import local_chain_schedule as rules
from muhat.protocols.means.local_chain_place import ChainStep, Place
from muhat.protocols.means.local_chain_schedule import LocalChainSchedule

PROMISES = [
    mh.PureDP(epsilon=1.0),
    mh.PureDP(epsilon=0.2),
    mh.ZCDP(rho=0.05),
    mh.GDP(mu=0.5),
    mh.ApproxDP(epsilon=1, delta=1e-9),
]


def schedule(**changed) -> LocalChainSchedule:
    usual = LocalChainSchedule(dim=3, magnitude=100.0, n=100_000, privacy=mh.PureDP(epsilon=1.0))
    return replace(usual, **changed)


def counts_of(plan: LocalChainSchedule, place: Place, distances: np.ndarray) -> RangeCounts:
    """What very loud answers would tell about these distances."""
    loud = replace(plan, privacy=mh.PureDP(epsilon=8.0)).distances(
        replace(place, center=(0.0,) * plan.dim)
    )
    generator = np.random.default_rng(3)
    records = np.zeros((len(distances), plan.dim))
    records[:, 0] = distances
    nonces = generator.integers(0, 256, (len(distances), 16), np.uint8)
    words = lambda count: generator.integers(0, 1 << 64, count, np.uint64)  # noqa: E731
    return range_counts(loud, nonces, loud.randomize(records, nonces, words))


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
@pytest.mark.parametrize("dim", [1, 2, 16, 200])
def test_groups_leave_most_people_for_the_mean(dim, promise):
    plan = schedule(dim=dim, privacy=promise)
    single = [
        step
        for step in ChainStep
        if step not in (ChainStep.CENTER, ChainStep.RADIUS, ChainStep.MEAN)
    ]
    fixed = sum(plan.users(replace(plan.first(), step=step)) for step in single)
    pair = plan.center_users + plan.radius_users
    assert fixed + pair <= 0.581 * plan.n
    assert rules.LEAST_LEFT - rules.WIDE_PART > 0.13
    assert min(plan.first_users, plan.center_users, plan.radius_users) >= 1


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_noise_is_that_of_the_messages(promise):
    plan = schedule(privacy=promise)
    for radius, users in ((0.1, 50), (7.0, 3000)):
        found = plan.ball((1.0, 2.0, 3.0), radius).expected_error(users)
        assert plan.noise(radius, users) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("magnitude", [1e-90, 1.0, 1e90])
def test_grids_have_as_many_cells_as_planned_on_every_scale(magnitude):
    plan = schedule(magnitude=magnitude)
    reach = plan.reach
    for radius, noise in itertools.product((reach, 0.3 * reach, 1e-9 * reach), (0.01, 0.3, 2.0)):
        for step, cells in (
            (ChainStep.FIRST, rules.FIRST_CELLS),
            (ChainStep.RADIUS, rules.RADIUS_CELLS),
            (ChainStep.FAR, 2),
            (ChainStep.WIDE, rules.WIDE_CELLS),
            (ChainStep.LAST, rules.LAST_CELLS),
            (ChainStep.OUTSIDE, 2),
        ):
            place = Place(step, (0.0, 0.0, 0.0), radius, noise * radius, 0)
            grid = plan.grid(place)
            assert grid.cells == cells
            assert math.isfinite(grid.largest)
            assert 0 < grid.smallest < grid.largest


def test_the_first_radius_is_looked_for_on_thirty_scales_if_there_are_people_enough():
    grid = schedule().grid(schedule().first())
    assert grid.largest == schedule().reach
    assert grid.largest / grid.smallest == pytest.approx(2.0**31)
    assert schedule().first().step is ChainStep.FIRST
    assert schedule(n=3000).first().step is ChainStep.CENTER


def test_distances_lead_to_a_centre_and_a_centre_to_distances():
    plan = schedule()
    first = plan.first()
    found = plan.counted(first, counts_of(plan, first, np.full(9000, 30.0)), 0)
    assert found.step is ChainStep.CENTER
    assert 30.0 <= found.radius <= 60.0
    assert found.asked == plan.first_users
    moved = plan.centered(found, np.array([10.0, -500.0, 3.0]), 400)
    assert moved.step is ChainStep.RADIUS
    assert moved.center == (10.0, -100.0, 3.0)
    assert moved.noise == plan.noise(found.radius, 400)
    assert moved.asked == found.asked + plan.center_users


def around(noise: float) -> Place:
    return Place(ChainStep.RADIUS, (0.0, 0.0, 0.0), 10.0, noise, 20_000)


@pytest.mark.parametrize(
    ("noise", "distance", "step"),
    [
        (1.5, 1.5, ChainStep.CENTER),  # nothing but the noise of the centre is seen
        (1.5, 3.0, ChainStep.CENTER),  # that may still be noise
        (1.5, 7.0, ChainStep.FAR),  # people are much farther off than the noise
        (4.0, 9.5, ChainStep.FAR),  # the radius stays
        (9.0, 14.0, ChainStep.CENTER),  # most people are outside: another ball is needed
    ],
)
def test_centres_are_sought_until_their_noise_is_small_beside_the_radius(noise, distance, step):
    plan, place = schedule(), around(noise)
    found = plan.counted(place, counts_of(plan, place, np.full(9000, distance)), 1)
    assert found.step is step
    assert distance <= found.radius <= 1.5 * distance


def test_centres_are_not_sought_when_there_are_no_people_left_or_no_end_in_sight():
    plan, place = schedule(), around(1.5)
    counts = counts_of(plan, place, np.full(9000, 1.5))
    assert plan.counted(place, counts, rules.MOST_CENTERS).step is ChainStep.FAR
    assert plan.counted(replace(place, asked=60_000), counts, 1).step is ChainStep.FAR
    tiny = replace(place, radius=rules.SMALLEST * plan.reach, noise=0.1 * rules.SMALLEST)
    assert plan.counted(tiny, counts_of(plan, tiny, np.zeros(9000)), 1).step is ChainStep.FAR


def test_a_ball_does_not_shrink_around_most_people_while_others_stay_far_behind():
    """Four in five at the centre and the rest anywhere: what made the ball collapse."""
    plan, place = schedule(), around(1.5)
    distances = np.where(np.arange(9000) % 5, 0.0, 40.0)
    assert plan.counted(place, counts_of(plan, place, distances), 1).step is ChainStep.FAR
    alone = plan.counted(place, counts_of(plan, place, np.zeros(9000)), 1)
    assert alone.step is ChainStep.CENTER


@pytest.mark.parametrize(("share", "step"), [(0.0, ChainStep.FINE), (0.2, ChainStep.WIDE)])
def test_people_far_outside_are_looked_for_on_all_scales(share, step):
    plan, place = schedule(), replace(around(1.0), step=ChainStep.FAR, radius=1e-6)
    distances = np.where(np.arange(9000) < share * 9000, 50.0, 0.0)
    found = plan.counted(place, counts_of(plan, place, distances), 1)
    assert (found.step, found.radius) == (step, 1e-6)
    assert found.asked == place.asked + 4_000
    if step is ChainStep.WIDE:
        wide = plan.counted(found, counts_of(plan, found, distances), 1)
        assert wide.step is ChainStep.FINE
        assert 50.0 <= wide.radius < 250.0


def test_the_last_steps_follow_one_another_and_the_rest_is_for_the_mean():
    plan = schedule()
    place = replace(around(1.0), step=ChainStep.FINE)
    fine = plan.centered(place, np.ones(3), plan.users(place))
    assert (fine.step, fine.asked) == (ChainStep.LAST, 26_000)
    last = plan.counted(fine, counts_of(plan, fine, np.full(9000, 8.0)), 3)
    assert (last.step, last.asked) == (ChainStep.OUTSIDE, 34_000)
    assert 6.0 < last.radius < 10.0
    mean = plan.counted(last, counts_of(plan, last, np.full(9000, 8.0)), 3)
    assert (mean.step, mean.asked, mean.radius) == (ChainStep.MEAN, 39_000, last.radius)
    assert plan.users(mean) == 61_000


def test_a_last_radius_at_the_end_of_its_grid_is_looked_for_further_out():
    plan = schedule(dim=1)
    place = replace(around(1.0), step=ChainStep.LAST, center=(0.0,))
    counts = counts_of(plan, place, np.full(9000, 90.0))
    assert plan.counted(place, counts, 3).step is ChainStep.FAR
    assert plan.counted(replace(place, asked=60_000), counts, 3).step is ChainStep.OUTSIDE


def test_people_outside_the_last_ball_are_counted_without_bias():
    plan, place = schedule(), replace(around(1.0), step=ChainStep.OUTSIDE)
    distances = np.where(np.arange(9000) % 10, 9.0, 11.0)
    share, error = plan.counted(place, counts_of(plan, place, distances), 3).outside
    assert abs(share - 0.1) < 6 * error
    assert 0.003 < error < 0.01


def test_places_survive_json_and_nonsense_is_refused():
    place = around(1.5)
    assert Place.from_dict(place.to_dict()) == place
    counted = replace(place, outside=(-0.01, 0.02))
    assert Place.from_dict(counted.to_dict()) == counted
    for wrong in (3, [1.0], [0.1, 0.0], ["x", 1.0]):
        with pytest.raises(mh.InvalidInput):
            Place.from_dict({**place.to_dict(), "outside": wrong})
    for change in ({"next": "home"}, {"radius": 0}, {"center": 3}, {"noise": "?"}, {"asked": -1}):
        with pytest.raises(mh.InvalidInput):
            Place.from_dict({**place.to_dict(), **change})
    with pytest.raises(mh.InvalidInput):
        Place.from_dict({})


def test_least_n_grows_with_dimension_and_caution():
    assert schedule(dim=1).least_n < schedule(dim=8).least_n < schedule(dim=64).least_n
    assert schedule().least_n < schedule(privacy=mh.PureDP(epsilon=0.1)).least_n
    plan = schedule(dim=64)
    enough = replace(plan, n=plan.least_n)
    assert enough.noise(1.0, enough.center_users) <= 0.5 + 1e-9
