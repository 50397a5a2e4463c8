"""Shares of discrete Laplace noise: every decision checked, their law, and what they add up to.

A χ² test has a false-alarm rate of 1e-7, at most 1e-6 for all of this file; a wrong scale or a
wrong number of parts has to be told apart by a p-value below 1e-20.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noise_reference import Replay, mpf
from numpy.typing import NDArray
from scipy import special, stats

from muhat.errors import InvalidInput
from muhat.noise import negative_binomial as module
from muhat.noise.inversion import _number, inverted, table
from muhat.noise.negative_binomial import _MarkedCycles, laplace_part, negative_binomial

FALSE_ALARM = 1e-7
CAUGHT = 1e-20
ONES = 2**64 - 1
HALF = Fraction(1, 2)
TINY = Fraction(1, 1 << 40)

Law = dict[int, Fraction]


# The cycles, by enumeration: every path of choices with its probability, and all permutations.


def fixed_things(monkeypatch: pytest.MonkeyPatch, things: int) -> None:
    """The geometric number is always this one."""
    monkeypatch.setattr(module, "geometric", lambda rate, size, words: np.full(size, things))


def paths(left: int, chances: Iterator[Fraction]) -> list[tuple[list[int], Fraction]]:
    """All words that cycles of `left` things and one coin a cycle may use, with their chances.

    A word below `left` is a length less one; 0 is heads and 2^64 − 1 is tails. A sure coin uses
    no word.
    """
    if not left:
        return [([], Fraction(1))]
    chance, *others = chances
    found = []
    for length in range(1, left + 1):
        rest = paths(left - length, iter(others))
        sides = [([], chance)] if chance == 1 else [([0], chance), ([ONES], 1 - chance)]
        for (side, odds), (words, weight) in itertools.product(sides, rest):
            found.append(([length - 1, *side, *words], weight * odds / left))
    return found


def cycle_lengths(permutation: tuple[int, ...]) -> list[int]:
    seen: set[int] = set()
    lengths = []
    for start in permutation:
        length = 0
        while start not in seen:
            seen.add(start)
            start = permutation[start]
            length += 1
        if length:
            lengths.append(length)
    return lengths


def marked_law(things: int, parts: int) -> Law:
    """How many of so many permuted things lie in marked cycles, over all permutations."""
    law: Counter[int] = Counter()
    mark = Fraction(1, parts)
    for permutation in itertools.permutations(range(things)):
        lengths = cycle_lengths(permutation)
        for marks in itertools.product([0, 1], repeat=len(lengths)):
            total = sum(length for length, marked in zip(lengths, marks, strict=True) if marked)
            odds = math.prod(mark if marked else 1 - mark for marked in marks)
            law[total] += Fraction(odds, math.factorial(things))
    return {total: chance for total, chance in law.items() if chance}


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("things", [0, 1, 2, 3, 5])
def test_marked_cycles_of_all_paths_are_those_of_all_permutations(
    things: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed_things(monkeypatch, things)
    law: Counter[int] = Counter()
    for words, chance in paths(things, iter([Fraction(1, parts)] * things)):
        source = Replay(words)
        law[int(negative_binomial(parts, HALF, 1, source)[0])] += chance
        assert not source.words
    assert {total: chance for total, chance in law.items() if chance} == marked_law(things, parts)


@pytest.mark.parametrize("parts", [1, 2, 5, 1000])
def test_marked_cycles_split_a_geometric_number_as_negative_binomials_do(parts: int) -> None:
    """P(NB(r) = k and NB(1 − r) = n − k) = P(G = n)·P(k of n are marked), r = 1/parts."""
    for things in range(6):
        law = marked_law(things, parts)
        for k in range(things + 1):
            mine, others = Fraction(1, parts), 1 - Fraction(1, parts)
            split = rising(mine, k) * rising(others, things - k)
            assert law.get(k, 0) == split


def rising(start: Fraction, steps: int) -> Fraction:
    """start(start + 1)…(start + steps − 1)/steps!."""
    return math.prod((Fraction(start + i, i + 1) for i in range(steps)), start=Fraction(1))


@pytest.mark.parametrize("things", [1, 2, 3, 5])
def test_a_random_cycle_is_any_cycle_of_any_permutation(
    things: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed_things(monkeypatch, things - 1)
    law: Counter[int] = Counter()
    for words, chance in paths(things, (Fraction(1, i) for i in range(1, things + 1))):
        law[int(module._random_cycle(HALF, 1, Replay(words))[0])] += chance
    expected: Counter[int] = Counter()
    for permutation in itertools.permutations(range(things)):
        lengths = cycle_lengths(permutation)
        for length in lengths:
            expected[length] += Fraction(1, math.factorial(things) * len(lengths))
    assert {length: chance for length, chance in law.items() if chance} == expected


def test_rows_of_different_sizes_keep_their_own_cycles() -> None:
    things = np.array([0, 3, 1, 0, 6])
    totals = np.zeros(5, np.int64)
    rounds = list(module._cycles(things, Replay([1, 0, 4, 0, 0])))
    for rows, lengths in rounds:
        totals[rows] += lengths
    assert [rows.tolist() for rows, _ in rounds] == [[1, 2, 4], [1, 4]]
    assert [lengths.tolist() for _, lengths in rounds] == [[2, 1, 5], [1, 1]]
    assert totals.tolist() == things.tolist()


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**46 + 1, 2**62 + 1, 2**62, 2**63 - 1])
def test_a_word_in_an_incomplete_run_is_drawn_again(bound: int) -> None:
    whole = 2**64 // bound * bound
    bounds = np.array([bound])
    assert module._below(bounds, Replay([whole - 1])).tolist() == [bound - 1]
    assert module._below(bounds, Replay([whole - bound])).tolist() == [0]
    for refused in {whole, (whole + 2**64) // 2, ONES} - {2**64}:
        if refused >= whole:
            assert module._below(bounds, Replay([refused, bound // 2])).tolist() == [bound // 2]


# The number of marked cycles.


def poisson_mean(rate: Fraction, parts: int) -> mpmath.mpf:
    return -mpmath.log(1 - mpmath.exp(-mpf(rate))) / parts


def reference_counts(rate: Fraction, parts: int, ends: list[Fraction]) -> list[int]:
    """The least m with P(count ≤ m) above each of these numbers."""
    with mpmath.workprec(2000):
        mean = poisson_mean(rate, parts)
        weight = cumulative = mpmath.exp(-mean)
        count, found = 0, []
        for end in ends:
            while cumulative <= mpf(end):
                count += 1
                weight *= mean / count
                cumulative += weight
            found.append(count)
        return found


CASES = [
    (HALF, 1),
    (HALF, 33),
    (Fraction(1, 1000), 50),
    (Fraction(3), 40),
    (TINY, 1),
    (TINY, 33),
    (TINY, 10**7),
]


@pytest.mark.parametrize(("rate", "parts"), CASES)
def test_every_short_beginning_is_decided_exactly_if_all_its_continuations_agree(
    rate: Fraction, parts: int
) -> None:
    bits = 11
    whole = 2**bits
    # The last number ends at 1, where the count is infinite: it can never be decided.
    counts = reference_counts(rate, parts, [Fraction(u, whole) for u in range(whole)])
    for u, (first, last) in enumerate(itertools.pairwise(counts)):
        assert _number(_MarkedCycles(rate, parts), u, bits) == (first if first == last else None)
    assert _number(_MarkedCycles(rate, parts), whole - 1, bits) is None


@pytest.mark.parametrize(("rate", "parts"), CASES)
def test_words_at_an_edge_are_continued_until_they_decide(rate: Fraction, parts: int) -> None:
    known_table = table(_MarkedCycles(rate, parts))
    least, most = known_table.least, known_table.most
    assert np.all(most.astype(object) + 1 - least.astype(object) <= 1)
    for m in range(min(6, least.size)):
        for first in {int(least[m]) + step for step in (-1, 0, 1)} | {int(most[m])}:
            if not 0 <= first < 2**64:
                continue
            for second in (0, 1 << 63, ONES - 1):
                source = Replay([first, second, 0x5555555555555555, 1])
                found = inverted(_MarkedCycles(rate, parts), 1, source)
                known = Fraction(first << 64 | second, 1 << 128)
                assert found.tolist() == reference_counts(rate, parts, [known])
    certain = [int(level) for level in least if level < ONES]
    drawn = [word for level in certain for word in (level - 1, level + 1) if 0 <= word <= ONES]
    source = Replay([*drawn, *[1 << 62] * 10])
    found = inverted(_MarkedCycles(rate, parts), len(drawn), source).tolist()
    known = [Fraction(word << 64 | 1 << 62, 1 << 128) for word in sorted(drawn)]
    assert sorted(found) == reference_counts(rate, parts, known)


def test_the_deepest_tail_is_decided_and_a_slightly_wrong_rate_is_another_law() -> None:
    words = [ONES, ONES, ONES, 12345, 0]
    expected = reference_counts(TINY, 33, [Fraction(2**256 - 2**64 + 12345, 2**256)])
    assert inverted(_MarkedCycles(TINY, 33), 1, Replay(words)).tolist() == expected
    assert expected[0] > 20
    honest = module._cumulative(TINY, 33, 512)
    off_by_little = module._cumulative(TINY * (1 + Fraction(1, 1 << 60)), 33, 512)
    assert all(a < b for a, b in zip(honest[1][:20], off_by_little[0], strict=False))


@given(
    numerator=st.integers(1, 2**70),
    beyond=st.integers(0, 2**120),
    precision=st.sampled_from([64, 512, 1024]),
)
@settings(max_examples=200, deadline=None)
def test_the_logarithm_is_enclosed(numerator: int, beyond: int, precision: int) -> None:
    value = Fraction(numerator, numerator + beyond)
    low, high = module._falling_logarithm(value, precision)
    with mpmath.workprec(precision + 300):
        assert low <= -mpmath.log(mpf(value)) * 2**precision <= high
    assert high - low <= 4 + 4 * value.denominator.bit_length()
    assert low >= 0


def test_the_slack_of_the_series_is_needed_and_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the 64 extra bits the roundings show: the sum alone would be too small."""
    monkeypatch.setattr(module, "WORD_BITS", 0)
    for numerator in range(1, 200):
        ratio = Fraction(numerator, 600)
        low, high = module._area_tangent(ratio, 256)
        with mpmath.workprec(600):
            assert low + 1 < mpmath.atanh(mpf(ratio)) * 2**256 < high


@pytest.mark.parametrize(("rate", "parts"), [*CASES, (Fraction(1000), 50), (Fraction(1, 3), 999)])
@pytest.mark.parametrize("precision", [512, 1024])
def test_the_cumulative_law_is_enclosed(rate: Fraction, parts: int, precision: int) -> None:
    lower, upper = module._cumulative(rate, parts, precision)
    with mpmath.workprec(precision + 1500):
        mean = poisson_mean(rate, parts)
        total = mpmath.mpf(0)
        for m, (low, high) in enumerate(zip(lower, upper, strict=True)):
            total += mpmath.exp(-mean) * mean**m / mpmath.factorial(m)
            assert low <= total * 2**precision <= high
            assert high - low < 2 ** (precision // 4)
        assert 1 - total < mpmath.mpf(2) ** (8 - precision // 4)


def test_a_rate_beyond_every_table_gives_zeros_and_still_decides() -> None:
    rate = Fraction(10**6)
    assert not negative_binomial(100, rate, 1000).any()
    assert inverted(_MarkedCycles(rate, 100), 1, Replay([ONES, 5])).tolist() == [0]


# The law.


def negative_binomial_law(rate: Fraction, parts: int, size: int) -> NDArray[np.float64]:
    """P(0), …, P(size − 2) and the chance of more, from mpmath."""
    with mpmath.workdps(50):
        decay, shape = mpmath.exp(-mpf(rate)), mpmath.mpf(1) / parts
        chances = [(1 - decay) ** shape]
        for k in range(size - 2):
            chances.append(chances[-1] * decay * (k + shape) / (k + 1))
        return np.array([float(p) for p in [*chances, 1 - mpmath.fsum(chances)]])


def p_value(draws: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    counts = np.bincount(np.minimum(draws, law.size - 1), minlength=law.size)
    return float(stats.chisquare(counts, law / law.sum() * draws.size).pvalue)


@pytest.mark.parametrize("few", [0, 1000], ids=["counted", "all-cycles"])
@pytest.mark.parametrize(
    ("rate", "parts", "cells"), [(HALF, 3, 9), (Fraction(1, 20), 50, 12), (Fraction(3, 2), 1, 6)]
)
def test_a_part_has_its_law_and_others_are_told_apart(
    rate: Fraction, parts: int, cells: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW_PARTS", few)
    draws = negative_binomial(parts, rate, 200_000)
    assert draws.dtype == np.int64
    assert p_value(draws, negative_binomial_law(rate, parts, cells)) > FALSE_ALARM
    assert p_value(draws, negative_binomial_law(rate * 3 / 2, parts, cells)) < CAUGHT
    assert p_value(draws, negative_binomial_law(rate, parts + 1 + parts // 5, cells)) < CAUGHT


def test_a_part_of_a_thousand_has_its_law() -> None:
    draws = negative_binomial(1000, Fraction(1, 100), 2_000_000)
    law = negative_binomial_law(Fraction(1, 100), 1000, 40)
    assert p_value(draws, law) > FALSE_ALARM
    # Among the parts that are not 0 the law hardly depends on how many people there are.
    assert p_value(draws, negative_binomial_law(Fraction(1, 100), 1200, 40)) < CAUGHT
    assert p_value(draws, negative_binomial_law(Fraction(1, 50), 1000, 40)) < CAUGHT


@pytest.mark.parametrize("parts", [5, 50])
def test_a_tiny_rate_gives_parts_of_every_size(parts: int) -> None:
    """Octaves up to 2^44, against the incomplete beta function: P(X ≤ k) = I_{1−a}(1/h, k + 1)."""
    draws = negative_binomial(parts, TINY, 60_000)
    octaves = np.where(draws > 0, np.frexp(draws.astype(float))[1], 0)

    def law(rate: float) -> NDArray[np.float64]:
        ends = 2.0 ** np.arange(43) - 1
        below = special.betainc(1 / parts, ends + 1, -np.expm1(-rate))
        return np.diff(np.concatenate([[0.0], below, [1.0]]))

    low = 0 if parts == 50 else 8  # below it octaves are too rare for χ²

    def compare(rate: float) -> float:
        chances = law(rate)
        merged = np.concatenate([[chances[: low + 1].sum()], chances[low + 1 :]])
        return p_value(np.maximum(octaves - low, 0), merged)

    assert compare(float(TINY)) > FALSE_ALARM
    assert compare(2 * float(TINY)) < CAUGHT


@pytest.mark.parametrize("parts", [6, 40])
def test_parts_of_all_people_add_up_to_discrete_laplace_noise(parts: int) -> None:
    size, ends = 30_000, 6
    drawn = np.array([laplace_part(HALF, parts, size) for _ in range(parts)])
    sums, short = drawn.sum(axis=0), drawn[parts // 6 :].sum(axis=0)

    def law(rate: float) -> NDArray[np.float64]:
        decay = np.exp(-rate)
        chances = (1 - decay) / (1 + decay) * decay ** np.abs(np.arange(-ends, ends + 1.0))
        chances[[0, -1]] = decay**ends / (1 + decay)
        return chances

    assert p_value(np.clip(sums, -ends, ends) + ends, law(0.5)) > FALSE_ALARM
    assert p_value(np.clip(sums, -ends, ends) + ends, law(0.4)) < CAUGHT
    assert p_value(np.clip(short, -ends, ends) + ends, law(0.5)) < CAUGHT


def test_sizes_and_refusals() -> None:
    for parts in (3, 100):
        assert negative_binomial(parts, HALF, 0).shape == (0,)
        assert laplace_part(HALF, parts, 7).shape == (7,)
    with pytest.raises(InvalidInput, match="2\\^-50"):
        negative_binomial(3, Fraction(1, 1 << 51), 1)
    with pytest.raises(InvalidInput, match="parts"):
        negative_binomial(0, HALF, 1)
    with pytest.raises(InvalidInput, match="size"):
        laplace_part(HALF, 3, -1)
