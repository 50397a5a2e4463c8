"""The symmetric mean: unbiased where Karwa and Vadhan's is not, its bounds, its two halves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muhat as mh
from muhat.data import open_source
from muhat.data.bin_counts import BinCounts
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.symmetric import SymmetricMeans, SymmetricOutcome, run_alone
from muhat.mechanisms.learning.symmetric_column import MOST_FIRST, SymmetricMean, least_first
from muhat.mechanisms.learning.symmetric_error import IntervalMoments, Search
from muhat.noise import FRACTION_BITS
from muhat.noise.discrete import discrete_laplace
from muhat.noise.laplace import Laplace

Floats = np.ndarray
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

PROMISE = mh.ApproxDP(epsilon=1, delta=1e-3)

LAWS: dict[str, Draw] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), shape),
    "laplace": lambda rng, shape: rng.laplace(0, math.sqrt(0.5), shape),
    "t3": lambda rng, shape: rng.standard_t(3, shape) / math.sqrt(3),
}
"""All of variance 1."""

# Narrow bins and a tight clip, so that clipping matters.
NARROW = SymmetricMean.planned(270, PROMISE, (4, 2.0), scale=1.0, first=70, reach=(1.5, 1.0))
PLACES = 1000 + NARROW.width * np.arange(10) / 10


def many(mean: SymmetricMean, records: Floats, rng: np.random.Generator) -> Floats:
    """The values of many datasets at once, one a row of records; not-a-number for ⊥.

    The same steps as `run`, for all rows together; the noise is that of the mechanism.
    """
    search, grid = mean.search, mean.search.grid
    runs = len(records)
    shifts = np.array([search.draw_shift() for _ in range(runs)])
    numbers = grid.numbers(records[:, : mean.first], shifts[:, None])
    least = numbers.min()
    span = numbers.max() - least + 1
    keys = (np.arange(runs)[:, None] * span + (numbers - least)).ravel()
    bins, counts = np.unique(keys, return_counts=True)
    noisy = counts + discrete_laplace(search.rate, len(bins))
    owner, number = bins // span, bins % span + least
    # The largest of each row last, equals in random order.
    order = np.lexsort((rng.random(len(bins)), noisy, owner))
    last = order[np.flatnonzero(np.append(owner[1:] != owner[:-1], True))]
    assert owner[last].tolist() == list(range(runs))
    steps = (grid.steps - 1) / 2 - shifts
    centers = number[last] * grid.width + steps * float(grid.step)
    offsets = np.clip(records[:, mean.first :] - centers[:, None], -mean.clip, mean.clip)
    noise = Laplace().sample(runs) * 2.0**-FRACTION_BITS * float(mean.noise.scales[0])
    return np.where(noisy[last] > search.threshold, centers + offsets.mean(axis=1) + noise, np.nan)


def biases(mean: SymmetricMean, law: str, runs: int) -> Floats:
    """How many standard errors the mean of all values lies from μ, for ten μ."""
    found = []
    for index, place in enumerate(PLACES):
        rng = np.random.default_rng([index, len(law)])
        values = many(mean, place + LAWS[law](rng, (runs, mean.n)), rng) - place
        values = values[~np.isnan(values)]
        assert len(values) > 0.9 * runs
        found.append(values.mean() / (values.std() / math.sqrt(len(values))))
    return np.array(found)


@pytest.mark.parametrize("law", LAWS)
def test_there_is_no_bias_wherever_the_records_lie(law: str) -> None:
    # 40 comparisons at 5.5 standard errors: a false alarm in fewer than 1 in 600 000.
    assert np.abs(biases(NARROW, law, 1500)).max() < 5.5


@pytest.mark.parametrize("law", LAWS)
def test_without_the_offset_the_bias_is_seen(law: str) -> None:
    fixed = replace(NARROW, offset=False)
    assert fixed.mechanism == "karwa-vadhan"
    # Uniform records are clipped least, so it takes more runs to see it.
    found = np.abs(biases(fixed, law, 4000 if law == "uniform" else 1200))
    # It vanishes only where μ is in the middle of a bin or between two of them.
    assert found.max() > 11
    assert np.count_nonzero(found > 5.5) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_there_is_no_bias_to_be_seen_in_many_runs(law: str) -> None:
    assert np.abs(biases(NARROW, law, 30_000)).max() < 5.5
    assert np.abs(biases(replace(NARROW, offset=False), law, 30_000)).max() > 40


def test_runs_over_a_source_are_as_unbiased() -> None:
    # 5.5 standard errors, twice: a false alarm in fewer than 1 in 10 million.
    rng = np.random.default_rng(5)
    place = 666.25 * NARROW.width
    for mean, least, most in [(NARROW, 0.0, 5.5), (replace(NARROW, offset=False), 11, math.inf)]:
        data = place + rng.standard_normal((600, mean.n))
        outcomes = [run_alone(mean, open_source(row)).value for row in data]
        values = np.array([value for value in outcomes if value is not None]) - place
        assert len(values) > 540
        assert least <= abs(values.mean()) / (values.std() / math.sqrt(len(values))) < most


@pytest.mark.parametrize("law", ["gaussian", "uniform", "laplace"])
def test_the_error_is_what_was_said(law: str) -> None:
    # Noise rules here, so the bound is nearly attained, and noise of another scale is noticed.
    mean = SymmetricMean.planned(
        1500, mh.ApproxDP(epsilon=0.4, delta=1e-4), (4, 6**0.25), scale=1.0
    )
    rng = np.random.default_rng(8)
    errors = np.empty(0)
    for _ in range(4):
        records = LAWS[law](rng, (1000, mean.n)) - 77.7
        errors = np.append(errors, (many(mean, records, rng) + 77.7) ** 2)
    assert not np.isnan(errors).any()
    found, error = errors.mean(), errors.std() / math.sqrt(len(errors))
    assert found - 5.5 * error < mean.mse_bound
    assert found == pytest.approx(mean.standard_error**2, abs=5.5 * error)
    assert mean.mse_bound < 1.2 * mean.standard_error**2
    assert abs(found - 1.5 * mean.standard_error**2) > 5.5 * error


def test_nothing_is_released_as_rarely_as_said() -> None:
    moments = IntervalMoments(1.0, 4, 3**0.25)
    for first in (40, 60, 80):
        mean = SymmetricMean.planned(first + 1, PROMISE, (4, 3**0.25), scale=1.0, first=first)
        rng = np.random.default_rng(first)
        values = many(mean, rng.standard_normal((4000, mean.n)), rng)
        seen = np.isnan(values).mean()
        bound = mean.failure_probability
        assert seen - 5.5 * math.sqrt(seen * (1 - seen) / 4000) <= bound
        assert Search(first, 10.0, 0.5, mean.search.threshold).nothing(moments) == bound


def test_the_bounds_are_below_those_of_the_paper() -> None:
    for epsilon, delta in [(0.5, 1e-3), (0.9, 1e-6), (0.1, 1e-6)]:
        q = math.exp(-epsilon / 2)
        for order, size in [(2, 1.0), (4, 3**0.25), (8, 105**0.125)]:
            for first in (2000, 6000, 20_000):
                n2 = 50_000
                mean = SymmetricMean.planned(
                    first + n2,
                    mh.ApproxDP(epsilon=epsilon, delta=delta),
                    (order, size),
                    scale=1.0,
                    first=first,
                )
                gamma = delta**2
                failure = math.exp(-first / 128) + first * math.exp(-first * epsilon / 16) / (1 + q)
                if first < 7 + 7 * math.log(1 / delta) / epsilon or failure > gamma:
                    continue
                assert mean.failure_probability <= mean.astray_probability <= failure
                m = n2 * epsilon
                paper = 1 / n2 + (33 * size**2 * m ** (2 / order) + 3200) / m**2
                paper += delta ** (2 - 4 / order) * (
                    16 * size**2 * first ** (2 / order) + 8 * size**2 * m ** (2 / order) + 1200
                )
                assert mean.clip == pytest.approx(10 + size * m ** (1 / order))
                assert mean.standard_error**2 < mean.mse_bound <= paper


@pytest.mark.parametrize("clip", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("order", [2.0, 3.0, 4.0, 8.0])
def test_what_clipping_takes_is_bounded_and_the_bound_attained(clip: float, order: float) -> None:
    # Two points: the mean of the clipped law is furthest off for the far one at λ/(λ − 1)·clip.
    far = clip * order / (order - 1)
    for chance in (1e-2, 1e-3):
        near = -far * chance / (1 - chance)
        moment = (chance * far**order + (1 - chance) * abs(near) ** order) ** (1 / order)
        taken = chance * (far - clip)
        bound = IntervalMoments(moment, order, moment).clipping(clip)
        assert 0.7 * bound * (1 - 2 * chance * 50) < taken <= bound


def test_the_bias_that_is_left_is_far_below_the_error() -> None:
    mean = SymmetricMean.planned(100_000, mh.ApproxDP(epsilon=1, delta=1e-6), (4, 1.32), scale=1.0)
    assert mean.bias_bound < 1e-7 * mean.standard_error
    fixed = replace(mean, offset=False)
    assert 1e-6 < fixed.bias_bound < fixed.standard_error
    hopeless = replace(mean, first=3)
    assert math.isinf(hopeless.bias_bound)
    assert math.isinf(hopeless.mse_bound)


def test_the_first_rows_are_as_many_as_are_needed() -> None:
    promise = mh.ApproxDP(epsilon=1, delta=1e-6)
    mean = SymmetricMean.planned(10**6, promise, (4, 3**0.25), scale=1.0)
    least = least_first(mean.search, mean.moments, 1e-12)
    assert 100 < least <= mean.first <= 4 * least < 2000
    assert mean.least_n == 2 * least
    assert mean.astray_probability <= 1e-12
    assert replace(mean, first=least - 1).astray_probability > 1e-12
    assert SymmetricMean.planned(50, promise, (4, 3**0.25)).first == 25
    narrow = replace(mean, width=1.0)
    assert least_first(narrow.search, narrow.moments, 1e-12) == MOST_FIRST
    assert narrow.astray_probability == 1.0


def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, and bins that stay where they are."""
    name = "muhat.mechanisms.learning.coarse_interval."
    monkeypatch.setattr(name + "discrete_laplace", lambda rate, size: np.zeros(size, np.int64))
    monkeypatch.setattr(name + "uniform_below", lambda bound: bound // 3)
    monkeypatch.setattr(Laplace, "sample", lambda self, dim: np.zeros(dim, np.int64))


def test_without_noise_it_is_the_mean_of_the_clipped_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(monkeypatch)
    rng = np.random.default_rng(2)
    rows = rng.standard_normal(5000) + 123.456
    rows[-5:] = [1e9, -1e9, np.nan, np.inf, 200.0]
    mean = SymmetricMean.planned(5000, mh.ApproxDP(epsilon=1, delta=1e-6), (4, 1.32), scale=1.0)
    outcome = run_alone(mean, open_source(rows))
    assert outcome.interval is not None
    lower, upper = outcome.interval
    assert upper - lower == pytest.approx(2 * mean.clip)
    assert lower < 123.456 < upper
    rest = rows[mean.first :].copy()
    rest[~np.isfinite(rest)] = (lower + upper) / 2
    assert outcome.value == pytest.approx(np.clip(rest, lower, upper).mean(), abs=1e-9)
    assert [step.rows for step in outcome.steps] == [mean.first, mean.second]
    assert [(step.epsilon, step.delta) for step in outcome.steps] == [
        (Fraction(1), Fraction("1e-6")),
        (Fraction(1), Fraction(0)),
    ]


def test_a_row_matters_to_one_half_only(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(monkeypatch)
    rows = np.random.default_rng(3).standard_normal(1000)
    mean = SymmetricMean.planned(1000, PROMISE, (4, 1.32), scale=1.0)
    before = run_alone(mean, open_source(rows))
    for place, value_stays in [(0, True), (mean.first - 1, True), (mean.first, False)]:
        moved = rows.copy()
        moved[place] += 3
        after = run_alone(mean, open_source(moved))
        assert after.interval == before.interval
        assert (after.value == before.value) is value_stays


@pytest.mark.parametrize("kind", ["array", "parquet", "csv", "table"])
def test_every_kind_of_source_has_the_same_halves(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    quiet(monkeypatch)
    rows = np.round(np.random.default_rng(4).standard_normal(3000) * 4 + 50, 3)
    mean = SymmetricMean.planned(3000, PROMISE, (2, 4.0), first=777)
    expected = run_alone(mean, open_source(rows))
    data: Any = rows
    if kind == "parquet":
        for index, part in enumerate(np.array_split(rows, 3)):
            pq.write_table(pa.table({"x": part}), tmp_path / f"{index}.parquet", row_group_size=99)
        data = str(tmp_path / "*.parquet")
    elif kind == "csv":
        data = tmp_path / "x.csv"
        data.write_text("x\n" + "".join(f"{value}\n" for value in rows))
    elif kind == "table":
        data = pa.Table.from_batches(pa.table({"x": rows}).to_batches(max_chunksize=70))
    found = run_alone(mean, open_source(data))
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.interval == expected.interval


def test_nothing_is_an_honest_outcome() -> None:
    rows = np.arange(2000.0) * 1000
    mean = SymmetricMean.planned(2000, mh.ApproxDP(epsilon=1, delta=1e-6), (4, 1.0))
    outcome = run_alone(mean, open_source(rows))
    assert outcome.value is None
    assert outcome.interval is None
    assert outcome.noise is None
    assert [step.name for step in outcome.steps] == ["interval"]


def test_no_magnitude_is_needed_wherever_the_records_lie() -> None:
    promise = mh.ApproxDP(epsilon=1, delta=1e-6)
    for center in (1e12, -1e12, 0.0):
        rows = center + np.random.default_rng(6).standard_normal(4000)
        rows[3] = 1e300
        mean = SymmetricMean.planned(4000, promise, (4, 1.32), scale=1.0)
        value = run_alone(mean, open_source(rows)).value
        assert value is not None
        assert abs(value - center) < 1
        assert abs(center) < mean.reach


def test_records_beyond_all_bins_are_in_the_bias() -> None:
    mean = SymmetricMean.planned(40_000, PROMISE, (2, 1.0))
    near, grid = mean.clip + mean.width / 2, mean.search.grid
    many = mean.first / (grid.reach / 2) ** 2
    largest = math.sqrt(mean.first)
    uneven = mean.first / grid.steps * 2 * (near + largest) + float(grid.step) / 4
    beyond = 2 * (near * many + largest * math.sqrt(many))
    assert mean.bias_bound == pytest.approx(uneven + beyond + 2**-44 * mean.clip, rel=1e-5)
    # It is no small part: without it the bound would be 6 % lower.
    assert mean.bias_bound > 1.05 * (uneven + 2**-44 * mean.clip)


def test_columns_have_their_own_shares_and_one_split() -> None:
    shares = [(Fraction(1, 3), Fraction(1, 2)), (Fraction(2, 3), Fraction(1, 2))]
    promise = mh.ApproxDP(epsilon=1, delta=1e-6)
    means = SymmetricMeans.planned(20_000, promise, [(4, 1.4), (4, 14.0)], shares, scales=[1, 10])
    assert means.spent == (Fraction(1), Fraction("1e-6"))
    first, second = means.columns
    assert first.first == second.first
    assert (first.epsilon, second.epsilon) == (Fraction(1, 3), Fraction(2, 3))
    rng = np.random.default_rng(9)
    rows = rng.standard_normal((20_000, 2)) * [1, 10] + [5, -3000]
    outcomes = means.run(open_source(rows))
    for mean, outcome, center in zip(means.columns, outcomes, [5, -3000], strict=True):
        assert outcome.value is not None
        assert abs(outcome.value - center) < 8 * mean.standard_error
    # A column that finds nothing does not keep the other from its value.
    rows[:, 1] = np.arange(20_000) * 1e4
    outcomes = means.run(open_source(rows))
    assert [outcome.value is None for outcome in outcomes] == [False, True]


def test_contributions_widen_all_noise() -> None:
    one = SymmetricMean.planned(10_000, PROMISE, (4, 1.3), first=2000)
    three = SymmetricMean.planned(10_000, PROMISE, (4, 1.3), first=2000, contributions=3)
    assert three.search.rate == one.search.rate / 3
    assert three.search.threshold > 2.5 * one.search.threshold
    assert three.noise_error == pytest.approx(3 * one.noise_error, rel=1e-9)
    assert three.astray_probability > one.astray_probability


def test_the_noise_is_that_of_the_promise() -> None:
    mean = SymmetricMean.planned(5000, mh.ApproxDP(epsilon=0.5, delta=1e-6), (4, 1.32), scale=1.0)
    scale = 2 * mean.clip / (mean.second * 0.5)
    assert mean.noise_error == pytest.approx(math.sqrt(2) * scale, rel=1e-9)
    moved = mean.recipe.query.sensitivity(1.0, mh.Neighbors.SUBSTITUTE, 1)
    assert moved <= Fraction(1, 2) * (1 << FRACTION_BITS)


def test_a_digest_holds_whatever_decides_the_release() -> None:
    mean = SymmetricMean.planned(5000, PROMISE, (4, 1.32))
    changes = [
        {"n": 5001},
        {"first": mean.first + 1},
        {"epsilon": Fraction(2)},
        {"delta": Fraction(1, 500)},
        {"width": 3.0},
        {"clip": 7.0},
        {"offset": False},
        {"contributions": 2},
    ]
    found = [mean.to_dict(), *(replace(mean, **change).to_dict() for change in changes)]
    assert len({str(fields) for fields in found}) == len(found)


class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return pa.table({"x": np.zeros(270)}).__arrow_c_stream__(requested_schema)


def test_what_was_not_planned_for_is_refused_before_a_value_is_read() -> None:
    for data in (np.zeros(269), np.zeros((270, 2)), Stream()):
        with pytest.raises(InvalidInput):
            SymmetricMeans((NARROW,)).split(open_source(data))


@pytest.mark.parametrize(
    "change",
    [
        {"promise": mh.PureDP(epsilon=1)},
        {"promise": mh.ZCDP(rho=1)},
        {"n": 1},
        {"first": 0},
        {"first": 100},
        {"moment": (1.5, 1.0)},
        {"moment": (4, 0.0)},
        {"scale": -1.0},
        {"reach": (10.0, 0.0)},
        {"reach": (0.0, 1.0)},
        {"contributions": 0},
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any]) -> None:
    options: dict[str, Any] = {"n": 100, "promise": PROMISE, "moment": (4, 1.0), **change}
    with pytest.raises(InvalidInput):
        SymmetricMean.planned(**options)


@pytest.mark.parametrize(
    "shares",
    [
        [(Fraction(1), Fraction(1))],
        [(Fraction(2, 3), Fraction(1, 2))] * 2,
        [(Fraction(1, 2), Fraction(2, 3))] * 2,
        [(Fraction(0), Fraction(1, 2)), (Fraction(1), Fraction(1, 2))],
    ],
)
def test_shares_that_exceed_the_promise_are_refused(shares: Any) -> None:
    with pytest.raises(InvalidInput, match="shares"):
        SymmetricMeans.planned(1000, PROMISE, [(4, 1.0)] * 2, shares)


def test_no_order_of_the_first_rows_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(monkeypatch)
    seen: list[BinCounts] = []
    choose = type(NARROW.search).choose

    def watched(search: Any, bins: BinCounts) -> int | None:
        seen.append(bins)
        return choose(search, bins)

    monkeypatch.setattr(type(NARROW.search), "choose", watched)
    rows = np.random.default_rng(1).standard_normal(270) * 9
    outcomes: list[SymmetricOutcome] = []
    for seed in range(3):
        head = np.random.default_rng(seed).permutation(rows[: NARROW.first])
        outcomes.append(run_alone(NARROW, open_source(np.append(head, rows[NARROW.first :]))))
    assert len({str((b.numbers.tolist(), b.counts.tolist())) for b in seen}) == 1
    assert len({outcome.value for outcome in outcomes}) == 1
