"""The fullest bin: its privacy in exact probabilities, its threshold, its draws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

from muhat.data.bin_counts import BinCounts
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.coarse_interval import (
    CoarseInterval,
    least_threshold,
    printed_threshold,
)
from muhat.noise.discrete import discrete_laplace

mpmath.mp.dps = 40
Counts = tuple[int, ...]
NOTHING = -1

SETTINGS = [(Fraction(1, 2), Fraction(1, 100)), (Fraction(1), Fraction(1, 50))]
SETTINGS += [(Fraction(3), Fraction(1, 1000)), (Fraction(1, 4), Fraction(1, 5))]


def noise_law(rate: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
    """q = e^−rate, and P(ξ = 0)."""
    q = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
    return q, (1 - q) / (1 + q)


@cache
def outcome_law(counts: Counts, rate: Fraction, threshold: int) -> tuple[mpmath.mpf, ...]:
    """P(each bin is released), and P(⊥) last: from the law of the noise, nothing is sampled.

    Bins with no records take no part. A bin wins at v > t if the others are at v or below, and
    shares its place with those at v. Sums over v end where less than 1e-25 is left.
    """
    q, peak = noise_law(rate)

    def at(k: int) -> mpmath.mpf:
        return peak * q ** abs(k)

    def below(k: int) -> mpmath.mpf:
        return q ** (1 - k) / (1 + q) if k <= 0 else 1 - q**k / (1 + q)

    last = threshold + max(counts) + int(58 / float(rate)) + 2
    wins = [mpmath.mpf(0)] * len(counts)
    for v in range(threshold + 1, last):
        for winner, records in enumerate(counts):
            if not records:
                continue
            ties = [at(v - records)]
            for other, more in enumerate(counts):
                if other == winner or not more:
                    continue
                lower, same = below(v - more), at(v - more)
                ties = [
                    (ties[i] * lower if i < len(ties) else 0) + (ties[i - 1] * same if i else 0)
                    for i in range(len(ties) + 1)
                ]
            wins[winner] += sum(part / (i + 1) for i, part in enumerate(ties))
    return (*wins, 1 - sum(wins))


def divergence(first: Counts, second: Counts, search: CoarseInterval, lower: int = 0) -> float:
    """sup_S P(S) − e^ε·Q(S), for the bin that is released at a threshold lower by so much."""
    pair = [outcome_law(one, search.rate, search.threshold - lower) for one in (first, second)]
    growth = mpmath.exp(mpmath.mpf(search.epsilon.numerator) / search.epsilon.denominator)
    return sum(max(mpmath.mpf(0), p - growth * q) for p, q in zip(*pair, strict=True))


def datasets(records: int, bins: int) -> list[Counts]:
    every = itertools.product(range(records + 1), repeat=bins)
    return [counts for counts in every if sum(counts) == records]


def neighbours(counts: Counts) -> list[Counts]:
    """One record replaced by one in another bin."""
    found = []
    for source, target in itertools.permutations(range(len(counts)), 2):
        if counts[source]:
            moved = list(counts)
            moved[source] -= 1
            moved[target] += 1
            found.append(tuple(moved))
    return found


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
@pytest.mark.parametrize(("records", "bins"), [(1, 2), (2, 3), (3, 3)])
def test_no_neighbours_are_further_apart_than_promised(
    epsilon: Fraction, delta: Fraction, records: int, bins: int
) -> None:
    search, printed = (CoarseInterval(epsilon, delta, 1.0, faithful=kept) for kept in (False, True))
    for counts in datasets(records, bins):
        for other in neighbours(counts):
            assert divergence(counts, other, search) <= float(delta) * (1 + 1e-12)
            assert divergence(counts, other, printed) <= divergence(counts, other, search)


@pytest.mark.parametrize(("epsilon", "target"), [(Fraction(1), 5), (Fraction(1, 2), 12)])
def test_the_promise_is_attained_and_a_lower_threshold_breaks_it(
    epsilon: Fraction, target: int
) -> None:
    q, _ = noise_law(epsilon / 2)
    delta = Fraction(float(q**target / (1 + q))) * Fraction(101, 100)
    search = CoarseInterval(epsilon, delta, 1.0)
    assert search.threshold == target
    worst = dict.fromkeys((0, 1), 0.0)
    for lower in worst:
        for records, bins in [(1, 2), (2, 3), (3, 2)]:
            for counts in datasets(records, bins):
                found = [divergence(counts, other, search, lower) for other in neighbours(counts)]
                worst[lower] = max(worst[lower], *map(float, found))
    assert 0.98 * delta < worst[0] <= delta
    assert worst[1] > 1.2 * delta


@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("pair", [((1, 0), (0, 1)), ((1, 1), (0, 2)), ((2, 0), (1, 1))])
def test_all_noisy_counts_that_pass_may_be_told(
    epsilon: Fraction, pair: tuple[Counts, Counts]
) -> None:
    # Stronger than the bin alone: what the proof is about. 0 stands for a count that did not pass.
    delta = Fraction(1, 10)
    search = CoarseInterval(epsilon, delta, 1.0)
    q, t = math.exp(-float(search.rate)), search.threshold

    def law(records: int) -> np.ndarray:
        values = np.arange(t + 1, t + 2000 + 1)
        passed = (1 - q) / (1 + q) * q ** np.abs(values - records) * (records > 0)
        return np.append(passed, 1 - passed.sum())

    joint = [np.multiply.outer(law(a), law(b)) for a, b in pair]
    for one, other in (joint, joint[::-1]):
        apart = np.maximum(one - math.exp(float(epsilon)) * other, 0).sum()
        assert apart <= float(delta) * (1 + 1e-9)


def test_a_person_with_two_records_is_protected_as_one() -> None:
    search = CoarseInterval(Fraction(1), Fraction(1, 50), 1.0, contributions=2)
    half = math.exp(0.5)
    for counts in datasets(3, 3):
        for other in neighbours(counts):
            # Of one record only half the ε is lost, and the same δ.
            pair = [outcome_law(one, search.rate, search.threshold) for one in (counts, other)]
            apart = sum(max(0.0, float(p - half * q)) for p, q in zip(*pair, strict=True))
            assert apart <= 0.02 * (1 + 1e-12)
            for third in neighbours(other):
                assert divergence(counts, third, search) <= 0.02 * (1 + 1e-12)
    worst = max(float(divergence((1, 1, 0), (0, 0, 2), search, lower)) for lower in (0, 1))
    assert worst > 0.02


def test_the_exact_law_is_that_of_the_code() -> None:
    counts, reach = (3, 2, 2), 9
    search = CoarseInterval(Fraction(2), Fraction(1, 20), 1.0)
    q = math.exp(-float(search.rate))
    expected = [float(p) for p in outcome_law(counts, search.rate, search.threshold)]
    found = np.zeros(4)
    for noise in itertools.product(range(-reach, reach + 1), repeat=3):
        chance = math.prod((1 - q) / (1 + q) * q ** abs(k) for k in noise)
        leaders = search.leaders(np.array(counts), np.array(noise))
        if len(leaders):
            found[leaders] += chance / len(leaders)
        else:
            found[NOTHING] += chance
    missing = 3 * 2 * q ** (reach + 1) / (1 + q)
    assert found.sum() == pytest.approx(1 - missing, abs=missing)
    assert np.abs(found - expected).max() <= missing


def test_draws_have_the_exact_law() -> None:
    # 5.5 standard errors for each of four outcomes: a false alarm in fewer than 1 in 5 million.
    counts, runs = (6, 5, 5), 3000
    search = CoarseInterval(Fraction(1), Fraction(1, 20), 1.0)
    bins = BinCounts(np.array([-4, 0, 11]), np.array(counts))
    found = [search.choose(bins) for _ in range(runs)]

    def worst(rate: Fraction, threshold: int) -> float:
        law = np.array([float(p) for p in outcome_law(counts, rate, threshold)])
        seen = np.array([found.count(value) for value in (-4, 0, 11, None)]) / runs
        return float((np.abs(seen - law) / np.sqrt(law * (1 - law) / runs)).max())

    assert worst(search.rate, search.threshold) < 5.5
    assert worst(search.rate, search.threshold - 1) > 11
    assert worst(search.rate * 2, search.threshold) > 11


def test_ties_are_broken_fairly(monkeypatch: pytest.MonkeyPatch) -> None:
    search = CoarseInterval(Fraction(1), Fraction(1, 20), 1.0)
    bins = BinCounts(np.arange(3), np.array([30, 30, 20]))
    name = "muhat.mechanisms.learning.coarse_interval.discrete_laplace"
    monkeypatch.setattr(name, lambda rate, size: np.zeros(size, np.int64))
    found = [search.choose(bins) for _ in range(4000)]
    assert set(found) == {0, 1}
    assert abs(found.count(0) - 2000) < 5.5 * math.sqrt(1000)


def test_bins_without_records_take_no_part_and_none_is_nothing() -> None:
    search = CoarseInterval(Fraction(1), Fraction(1, 20), 1.0)
    assert search.choose(BinCounts.of(np.array([], np.int64))) is None
    assert all(search.choose(BinCounts.of(np.full(500, 7))) == 7 for _ in range(50))


@pytest.mark.parametrize("contributions", [1, 2, 7])
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "3", "40"])
@pytest.mark.parametrize("delta", ["0.4", "0.01", "1e-6", "1e-30"])
def test_the_threshold_is_the_least_that_keeps_the_promise(
    epsilon: str, delta: str, contributions: int
) -> None:
    k = contributions
    found = least_threshold(Fraction(epsilon), Fraction(delta), k)
    q = mpmath.exp(-mpmath.mpf(epsilon) / (2 * k))

    def chance(threshold: int) -> mpmath.mpf:
        return max(k * q**threshold, q ** (threshold + 1 - k)) / (1 + q)

    assert chance(found) <= mpmath.mpf(delta)
    assert found == k or chance(found - 1) > mpmath.mpf(delta)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "3", "40"])
@pytest.mark.parametrize("delta", ["0.4", "0.01", "1e-6", "1e-30"])
def test_the_printed_threshold_is_the_papers_and_never_below(epsilon: str, delta: str) -> None:
    promise = Fraction(epsilon), Fraction(delta)
    theirs = CoarseInterval(*promise, 1.0, faithful=True).threshold
    # Whole numbers are above the one exactly if they are above the other.
    assert theirs == math.floor(2 + 2 * math.log(1 / float(delta)) / float(epsilon))
    assert theirs == printed_threshold(*promise) >= least_threshold(*promise)
    with pytest.raises(InvalidInput, match="contributions must be 1"):
        CoarseInterval(*promise, 1.0, contributions=2, faithful=True)


def test_a_threshold_next_to_a_whole_number_is_rounded_up() -> None:
    with mpmath.workdps(70):
        exact = mpmath.exp(-mpmath.mpf(9) / 2) / (1 + mpmath.exp(-mpmath.mpf(1) / 2))
        digits = mpmath.nstr(exact, 50)
    delta = Fraction(digits)
    assert least_threshold(Fraction(1), delta * (1 + Fraction(1, 10**40))) == 9
    assert least_threshold(Fraction(1), delta * (1 - Fraction(1, 10**40))) == 10


def test_offsets_are_uniform_over_a_bin_and_symmetric() -> None:
    search = CoarseInterval(Fraction(1), Fraction(1, 100), 10.0)
    grid = search.grid
    assert grid.center(0, 0) + grid.center(0, grid.steps - 1) == 0
    shifts = np.array([search.draw_shift() for _ in range(4000)]) / grid.steps
    assert 0 <= shifts.min() <= shifts.max() < 1
    assert abs(shifts.mean() - 0.5) < 5.5 / math.sqrt(12 * 4000)
    counts = np.bincount((shifts * 4).astype(int), minlength=4)
    assert np.abs(counts - 1000).max() < 5.5 * math.sqrt(750)
    fixed = CoarseInterval(Fraction(1), Fraction(1, 100), 10.0, offset=False)
    assert {fixed.draw_shift() for _ in range(5)} == {grid.middle}
    assert abs(fixed.center(0, grid.middle)) < 1e-13


@pytest.mark.parametrize(
    ("epsilon", "delta", "contributions"),
    [("0", "0.1", 1), ("1", "0", 1), ("1", "1", 1), ("1", "0.1", 0), ("1e-20", "0.1", 1)],
)
def test_impossible_promises_are_refused(epsilon: str, delta: str, contributions: int) -> None:
    with pytest.raises(InvalidInput):
        CoarseInterval(Fraction(epsilon), Fraction(delta), 1.0, contributions=contributions)


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 20), Fraction(7, 3)])
def test_the_noise_is_discrete_laplace(rate: Fraction) -> None:
    # At most 41 values, 5.5 standard errors each: a false alarm in fewer than 1 in 600 000.
    runs = 200_000
    sample = discrete_laplace(rate, runs)
    q = math.exp(-float(rate))
    reach = min(20, int(4 / float(rate)))
    seen = [np.count_nonzero(sample == k) / runs for k in range(-reach, reach + 1)]

    def worst(base: float) -> float:
        law = [(1 - base) / (1 + base) * base ** abs(k) for k in range(-reach, reach + 1)]
        return max(deviations(seen, law, runs))

    assert worst(q) < 5.5
    assert worst(q**1.2) > 10


def deviations(seen: Sequence[float], law: Sequence[float], runs: int) -> list[float]:
    pairs = zip(seen, law, strict=True)
    return [abs(s - p) / math.sqrt(p * (1 - p) / runs) for s, p in pairs]
