"""The last radius: what clipping takes is counted as far as it is seen, and balanced with noise."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.privacy import PureDP
from muhat.protocols.encodings.range_cells import Distance
from muhat.protocols.estimators.range_choice import best_ranges
from muhat.protocols.estimators.range_counts import RangeCounts, range_counts
from muhat.protocols.means.local_chain_place import (
    PULL,
    SURER,
    _area_errors,
    least_radius,
    sure_excess,
)
from muhat.release.quantile_grids import RelativeGrid

GRID = RelativeGrid(0.5, 16.0, 1.2)
EDGES = np.array([GRID.value(cell) for cell in range(GRID.cells)])


def counted(distances: np.ndarray, epsilon: float, seed: int = 0) -> RangeCounts:
    generator = np.random.default_rng(seed)
    randomizer = best_ranges(Distance((0.0,)), GRID, PureDP(epsilon=epsilon))
    nonces = generator.integers(0, 256, (len(distances), 16), np.uint8)
    words = lambda count: generator.integers(0, 1 << 64, count, np.uint64)  # noqa: E731
    return range_counts(randomizer, nonces, randomizer.randomize(distances[:, None], nonces, words))


def true_excess(distances: np.ndarray) -> np.ndarray:
    """Of distances rounded up to the grid, as far as it reaches."""
    seen = EDGES[GRID.codes(distances)]
    return np.array([np.maximum(seen - edge, 0).mean() for edge in EDGES])


DISTANCES = {
    "close": np.abs(np.random.default_rng(1).normal(3, 0.5, 60_000)),
    "heavy": np.abs(np.random.default_rng(2).standard_t(3, 60_000)) * 2,
    "far group": np.where(np.arange(60_000) % 20, 1.5, 12.0),
    "one place": np.full(60_000, 2.0),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_the_excess_is_never_overstated_and_nearly_all_of_it_is_seen_by_many(name):
    """Seeded: with 60,000 loud answers, within a hundredth of the largest radius."""
    found = sure_excess(counted(DISTANCES[name], epsilon=6.0), EDGES)
    truth = true_excess(DISTANCES[name])
    assert (found <= truth + 1e-9).all()
    assert (found >= truth - 0.16).all()


def test_what_few_people_seem_to_see_counts_for_nothing():
    """All of them at one place: 40 noisy answers show no tail, and the radius is about there."""
    for seed in range(20):
        counts = counted(np.full(40, 2.0), epsilon=1.0, seed=seed)
        assert sure_excess(counts, EDGES, SURER)[GRID.codes(np.array([4.0]))[0] :].max() < 1.0


def test_errors_of_areas_are_those_of_simulated_answers():
    """The root mean square of 200 errors has a standard error of a twentieth of itself.

    Areas of raw prefixes; the records are spread evenly over the cells, as the formula has it.
    """
    distances = np.repeat(EDGES, 40)
    widths = np.append(np.diff(EDGES), 0.0)
    areas = []
    for seed in range(200):
        counts = counted(distances, epsilon=1.0, seed=seed)
        beyond = 1 - counts.prefix()[1:]
        areas.append(np.concatenate([[0.0], np.cumsum(beyond * widths)]))
    spread = np.array(areas)
    predicted = _area_errors(counts, widths)
    for first, last in ((0, 5), (0, len(EDGES) - 1), (7, 12), (10, len(EDGES) - 1)):
        found = np.std(spread[:, last] - spread[:, first])
        ratio = found / predicted[first, last]
        # Given the records, an estimate varies a little less than the formula says.
        assert 0.7 < ratio < 1.3, (first, last, ratio)
        assert not 0.7 < 2 * ratio < 1.3


@pytest.mark.parametrize("noise", [1e-4, 0.003, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("name", DISTANCES)
def test_the_radius_has_nearly_the_least_error_when_counts_are_good(name, noise):
    """Seeded: at most a fifth above the least error that any edge has."""
    found = least_radius(counted(DISTANCES[name], epsilon=6.0), noise)
    risks = np.hypot(PULL * true_excess(DISTANCES[name]), noise * EDGES)
    assert risks[EDGES.tolist().index(found)] <= 1.2 * risks.min() + 0.12


def test_more_noise_makes_the_radius_smaller():
    counts = counted(DISTANCES["heavy"], epsilon=6.0)
    radii = [least_radius(counts, noise) for noise in np.geomspace(1e-4, 1.0, 12)]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] > 15.9
    assert radii[-1] < 3.0


def test_answers_that_leave_a_level_out_show_no_excess():
    counts = counted(np.full(2, 2.0), epsilon=1.0)
    assert (sure_excess(counts, EDGES) == 0).all()
    assert least_radius(counts, 0.1) == EDGES[0]
