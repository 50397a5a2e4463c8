"""Where a mean lies: private medians and how far from them it may be."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import muhat as mh
from muhat.data import open_source
from muhat.data.grids import UniformGrid
from muhat.errors import DataChanged
from muhat.mechanisms.learning import location
from muhat.mechanisms.learning.location import Location, rarity, tail_reach
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.noise.kinds import NoiseKind
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors


def law_of(part: float, order: float) -> tuple[float, float]:
    """The two points, far and near, of the law with E|X|^λ = 1 that has this part farthest out."""
    powers = (1 - order) * math.log(part), (1 - order) * math.log1p(-part)
    m = math.exp(-np.logaddexp(*powers) / order)
    return m / part, -m / (1 - part)


def search(
    n: int,
    *,
    promise: Any = None,
    magnitude: float = 1e3,
    scale: float = 1.0,
    order: float = 2.0,
    failure: float = 1e-7,
    dim: int = 1,
) -> Location | None:
    promise = mh.ZCDP(rho=1) if promise is None else promise
    protection = Protection(promise, Neighbors.SUBSTITUTE, 1)
    isinstance(promise, mh.PureDP)
    scales = np.full(dim, scale)
    found = Location.of(magnitude, scales, order, n, protection, NoiseKind.named_by(promise))
    level = round(-math.log10(failure / dim)) - 1
    return None if found is None or level >= len(found.known) else found.at(level)


CASES = [(1, 5), (3, 20), (20, 60), (180, 400), (400, 1000), (4900, 10_000), (499_000, 1_000_000)]


@pytest.mark.parametrize("order", [1.05, 1.5, 2.0, 3.0, 8.0, 500.0])
@pytest.mark.parametrize("failure", [0.05, 1e-9, 1e-30])
def test_the_reach_is_above_that_of_exact_binomial_tails_and_close_to_it(
    order: float, failure: float
) -> None:
    for outside, n in CASES:
        reach = tail_reach(outside, n, order, failure)
        # The largest part of which so many records are that rare, exactly.
        low, high = -700.0, math.log(0.5)
        for _ in range(60):
            middle = (low + high) / 2
            rare = binom.logsf(outside - 1, n, math.exp(middle)) <= math.log(failure)
            low, high = (middle, high) if rare else (low, middle)
        exact, _ = law_of(math.exp(low), order) if low > -600 else (math.inf, 0.0)
        if reach is None:
            assert exact > 1e7
            continue
        assert reach >= exact * (1 - 1e-9)
        assert math.log(reach) <= 1.2 * math.log(exact) + 0.35


def test_the_worst_law_on_either_side_is_within_reach() -> None:
    for order in (1.5, 2.0, 5.0):
        for outside, n in CASES:
            reach = tail_reach(outside, n, order, 1e-6)
            assert reach is not None
            for part in np.geomspace(1e-6, 0.499, 200):
                far, near = law_of(part, order)
                if far > reach:
                    assert binom.sf(outside - 1, n, part) <= 1e-6
                if -near > reach:
                    assert binom.sf(outside - 1, n, 1 - part) <= 1e-6


def test_the_reach_is_monotone() -> None:
    for order in (1.2, 2.0, 6.0):
        reaches = [tail_reach(outside, 1000, order, 1e-9) for outside in range(40, 500, 20)]
        assert reaches == sorted(reaches, reverse=True)
        rarer = [tail_reach(400, 1000, order, 10.0**-power) for power in range(1, 30)]
        assert rarer == sorted(rarer)
    assert tail_reach(0, 1000, 2.0, 1e-9) is None
    assert tail_reach(-3, 1000, 2.0, 1e-9) is None
    assert tail_reach(1, 3, 1.1, 1e-200) is None


@given(
    n=st.integers(1, 10**6),
    share=st.floats(0, 1),
    part=st.floats(1e-12, 0.999),
)
def test_rarity_is_below_the_exact_one(n: int, share: float, part: float) -> None:
    events = math.ceil(share * n)
    assert 0 <= rarity(events, n, part) <= -binom.logsf(events - 1, n, part) + 1e-6


def test_rarity_keeps_its_digits_for_many_records() -> None:
    # 2·(x − p)² + … in decimals: KL(½ + 1e-6 ‖ ½) = 2e-12·(1 + (2/3)·4e-12 …).
    assert rarity(500_001 * 10**9, 10**15, 0.5) == pytest.approx(2000, rel=1e-6)


def test_failures_may_be_rarer_than_floats_tell_from_certainty() -> None:
    for law in ("normal", "laplace"):
        noisy = NoisySearch(1 << 20, LAWS[law], Fraction(1))
        assert noisy.rank_error_but_for(0.05) == noisy.rank_error(0.95)
        errors = [noisy.rank_error_but_for(10.0**-power) for power in range(1, 290)]
        assert errors == sorted(errors)
        assert errors[-1] > 3 * errors[10]


@given(
    magnitude=st.floats(1e-90, 1e90),
    cells=st.floats(2, location.MOST_CELLS),
    place=st.floats(-1, 1),
)
def test_a_record_is_half_a_step_from_its_point_of_the_grid(
    magnitude: float, cells: float, place: float
) -> None:
    grid = location._grid(magnitude, 4 * magnitude / cells)
    value = place * magnitude
    (code,) = grid.codes(np.array([value]))
    assert abs(grid.value(int(code)) - value) <= location._HALF_STEP * grid.step


def test_the_grid_is_as_fine_as_the_scale_or_as_cells_allow() -> None:
    assert location._grid(1000.0, 2.0).step == 1.0
    assert location._grid(1.0, 100.0) == UniformGrid(-1.0, 1.0, 1.0)
    assert location._grid(1e100, 1.0).cells <= location.MOST_CELLS + 2


def draws(law: str, rng: np.random.Generator, n: int) -> np.ndarray:
    if law == "lognormal":
        e = math.e
        return (rng.lognormal(size=n) - math.sqrt(e)) / math.sqrt(e * (e - 1))
    if law == "t3":
        return rng.standard_t(3, n) / math.sqrt(3)
    if law in ("far above", "far below"):
        # Nearly half of the records lie as far on one side as they may.
        far, near = law_of(0.45, 2.0)
        sign = 1 if law == "far above" else -1
        return sign * np.where(rng.random(n) < 0.45, far, near)
    if law == "one":
        return np.zeros(n)
    return rng.standard_normal(n)


LAWS_OF_RECORDS = ["normal", "t3", "lognormal", "far above", "far below", "one"]


@pytest.mark.parametrize("promise", [mh.ZCDP(rho=1), mh.PureDP(epsilon=8)])
def test_the_mean_is_within_reach_in_every_run(promise: Any) -> None:
    rng = np.random.default_rng(5)
    # A failure has a probability of at most 1e-7, and there are a few hundred runs.
    found = search(400, promise=promise, failure=1e-9)
    assert found is not None
    for law in LAWS_OF_RECORDS:
        for mean in (-1000.0, -3.21, 0.0, 999.9):
            for _ in range(10):
                rows = draws(law, rng, 400) + mean
                (center,) = found.run(open_source(rows, None, 1))
                assert abs(center - mean) <= found.reaches[0], (law, mean)
    # Planted: a third of the reach is missed by laws that are far on one side.
    missed = [
        abs(found.run(open_source(draws("far above", rng, 400), None, 1))[0]) for _ in range(30)
    ]
    assert max(missed) > found.reaches[0] / 3


def test_every_column_has_its_own_scale_and_share() -> None:
    protection = Protection(mh.ZCDP(rho=1), Neighbors.SUBSTITUTE, 1)
    scales = np.array([0.01, 1.0, 50.0])
    found = Location.of(1e3, scales, 2.0, 4000, protection, NoiseKind.NORMAL)
    assert found is not None
    found = found.at(8)
    assert found.failure == pytest.approx(3e-9)
    assert (found.reaches / scales < 6).all()
    rng = np.random.default_rng(2)
    means = np.array([-300.0, 0.0, 700.0])
    rows = rng.standard_normal((4000, 3)) * scales + means
    centers = found.run(open_source(rows, None, 3))
    assert (np.abs(centers - means) <= found.reaches).all()
    assert search(4000, dim=3).reaches[0] > search(4000).reaches[0]


def test_too_few_records_tell_nothing_and_more_tell_more() -> None:
    assert search(20) is None
    reaches = [search(n).reaches[0] for n in (300, 1000, 10_000, 10**8)]
    assert reaches == sorted(reaches, reverse=True)
    found = search(1000)
    assert (np.diff(found.known[:, 0]) >= 0).all()
    assert len(search(300, promise=mh.PureDP(epsilon=3), failure=0.1).known) < len(found.known)


def test_what_a_failed_search_adds_is_that_of_reaches_that_are_exceeded() -> None:
    found = search(1000, failure=1e-3)
    reaches, chances = found.known[2:, 0], np.array(location.FAILURES[2 : len(found.known)])
    rng = np.random.default_rng(1)
    # The worst that the reaches allow: beyond each as often as may be, then up to the next.
    beyond = [*reaches[1:], 2 * found.magnitude]
    for power in (1, 2):
        exact = sum(
            (chance - rarer) * place**power
            for chance, rarer, place in zip(chances, [*chances[1:], 0.0], beyond, strict=True)
        )
        assert found.astray(power)[0] == pytest.approx(exact, rel=1e-6)
        # Any law within the reaches has less: its distances are drawn between two of them.
        inside = sum(
            (chance - rarer) * rng.uniform(near, far) ** power
            for chance, rarer, near, far in zip(
                chances, [*chances[1:], 0.0], reaches, beyond, strict=True
            )
        )
        assert inside < found.astray(power)[0]


def test_a_changed_number_of_rows_is_noticed() -> None:
    found = search(400)
    with pytest.raises(DataChanged, match="number of rows"):
        found.run(open_source(np.zeros(399), None, 1))


def test_hostile_values_count_as_one_record_each() -> None:
    rows = np.full(400, 5.0)
    rows[:40] = [np.nan, np.inf, -np.inf, 1e308, -1e308] * 8
    found = search(400)
    assert abs(found.run(open_source(rows, None, 1))[0] - 5.0) <= found.reaches[0]


def test_all_that_decides_the_search_is_told() -> None:
    texts = {
        str(made.to_dict())
        for made in (
            search(400),
            search(401),
            search(400, magnitude=2e3),
            search(400, scale=2.0),
            search(400, order=3.0),
            search(400, failure=1e-8),
            search(400, promise=mh.PureDP(epsilon=8)),
        )
    }
    assert len(texts) == 7
