"""Two ends from a curve of counts: the curve's sensitivity, its tails, and the choice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.learning.line_ends import (
    CURVE_SHARE,
    LARGEST_DEVIATION,
    LineTail,
    best_ends,
    best_prefix,
    falling,
    most_beyond,
    offsets_around,
    prefix_recipe,
    tails,
)
from muhat.mechanisms.learning.recentring_schedule import Schedule
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

RHO = mh.ZCDP(rho=0.5)


def schedule(n: int = 10_000, contributions: int = 1) -> Schedule:
    protection = Protection(RHO, Neighbors.SUBSTITUTE, contributions)
    return Schedule(1e6, np.ones(1), n, protection, NoiseKind.NORMAL)


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("cells", [3, 40, 188])
def test_a_moved_record_moves_the_integers_of_the_curve_by_its_share_at_most(
    cells: int, contributions: int
) -> None:
    recipe = prefix_recipe(schedule(contributions=contributions), cells, CURVE_SHARE)
    allowed = recipe.protection.strength_squared(recipe.law.kind)
    assert allowed == Fraction(1, 5)
    encoded = [recipe.query.encode(row) for row in contributions * np.eye(cells, dtype=np.int64)]
    pairs = [(0, cells - 1), (0, 1), (cells // 2, cells // 2 - 1), (cells - 2, 1)]
    moved = [sum(int(each) ** 2 for each in encoded[one] - encoded[two]) for one, two in pairs]
    assert max(moved) <= allowed * (1 << 2 * FRACTION_BITS)
    assert max(moved) >= Fraction(9, 10) * allowed * (1 << 2 * FRACTION_BITS)


def test_edges_reach_as_far_as_records_may_lie_and_no_farther() -> None:
    for radius in (1e-7, 1.0, 3e5, 1.9e6):
        offsets = offsets_around(radius, 2e6)
        assert (np.diff(offsets) > 0).all()
        assert offsets[0] == radius
        assert offsets[-1] <= max(2e6, 4 * radius) * (1 + 1e-12)
        assert offsets[-1] * 2**0.5 > 2e6


def test_no_curve_has_more_noise_than_is_said() -> None:
    made = schedule()
    cells = 2 * len(offsets_around(float(made.edges[0]), made.largest_radius)) + 2
    assert best_prefix(cells).standard_deviations.max() < LARGEST_DEVIATION
    assert made.is_enough
    assert 4 * most_beyond(made) <= 10_000


def test_a_sequence_is_made_to_fall_by_averaging() -> None:
    values = np.random.default_rng(0).standard_normal(50) - np.arange(50) / 10
    fitted = falling(values)
    assert (np.diff(fitted) <= 0).all()
    assert fitted.sum() == pytest.approx(values.sum())
    assert np.array_equal(falling(fitted), fitted)
    # No falling sequence near it is closer.
    for shift in (0.9, 1.1):
        assert np.sum((values - fitted) ** 2) <= np.sum((values - falling(shift * fitted)) ** 2)


OFFSETS = np.array([1.0, 2.0, 4.0, 8.0])


def both(left: list[float], right: list[float], centre: float = 500.0) -> tuple[LineTail, LineTail]:
    """Tails of counts beyond the four edges, with a noise of 10."""
    up_to = np.array([*left[::-1], centre, *(1000 - each for each in right)])
    return tails(up_to, OFFSETS, 1000, 10.0)


@pytest.mark.parametrize(
    ("left", "right", "ends"),
    [
        ([90, 31, 0, 0], [0, 0, 0, 0], (3, 1)),
        ([90, 31, 6, 0], [4, 0, 0, 0], (4, 1)),
        ([99, 99, 99, 99], [6, 0, 0, 0], (4, 2)),
        # As far as the other side goes, two deviations are enough; alone, they are not.
        ([90, 31, 0, 0], [90, 21, 0, 0], (3, 3)),
        ([90, 29, 0, 0], [90, 21, 0, 0], (3, 3)),
        ([90, 0, 0, 0], [90, 29, 19, 0], (2, 3)),
        ([90, 80, 70, 0], [90, 29, 25, 0], (4, 4)),
    ],
)
def test_a_tail_ends_where_it_is_not_clear_or_a_little_later(
    left: list[float], right: list[float], ends: tuple[int, int]
) -> None:
    assert tuple(tail.last for tail in both(left, right)) == ends


def test_a_loss_is_the_area_beyond_an_edge_and_its_doubt_grows_with_the_way_to_the_end() -> None:
    tail, _ = both([100, 0, 0, 0], [0, 0, 0, 0])
    assert tail.loss().tolist() == [350.0, 50.0, 0.0]
    assert tail.doubt().tolist() == [20.0, 10.0, 0.0]


def curve(rows: np.ndarray, offsets: np.ndarray) -> tuple[LineTail, LineTail]:
    """Both tails without noise, as if there were a little of it."""
    edges = np.concatenate([-offsets[::-1], [0.0], offsets])
    return tails(np.searchsorted(np.sort(rows), edges, "right") * 1.0, offsets, len(rows), 5.0)


def test_a_long_tail_on_one_side_has_an_end_of_its_own() -> None:
    offsets = offsets_around(1.0, 1e6)
    rows = np.random.default_rng(1).exponential(1.0, 10_000)
    left, right = curve(rows, offsets)
    first, second = best_ends(left, right, 1.0)
    assert left.offsets[first] == 1.0
    assert 5 <= right.offsets[second] <= 12


def test_what_is_lost_on_both_sides_alike_is_no_bias() -> None:
    offsets = offsets_around(1.3, 1e6)
    half = np.abs(np.random.default_rng(2).standard_normal(5000))
    left, right = curve(np.concatenate([half, -half]), offsets)
    first, second = best_ends(left, right, 1.0)
    assert first == second
    assert left.offsets[first] < 4.5
