"""A secret number of records: the law of N by enumeration, and the records that are chosen."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from muhat.errors import InvalidInput
from muhat.mechanisms.learning.unknown_number import UnknownNumber, _distinct
from muhat.privacy import ZCDP, ApproxDP, PureDP

FALSE_ALARM = 1e-6
PROMISES = [
    (Fraction(1, 10), Fraction(1, 100)),
    (Fraction(1, 10), Fraction(1, 10**6)),
    (Fraction(48, 100), Fraction(1, 10**4)),
    (Fraction(49, 100), Fraction(1, 10**4)),
    (Fraction(1), Fraction(1, 10**9)),
    (Fraction(2), Fraction(1, 3)),
    (Fraction(5), Fraction(1, 1000)),
]


def real(value):
    return mpmath.mpf(value.numerator) / value.denominator


def law_of_offset(epsilon, margin):
    """P(N − n = k), k = −2v … 0, from the law of the discrete Laplace."""
    q = mpmath.exp(-real(epsilon))
    chances = {k - margin: (1 - q) / (1 + q) * q ** abs(k) for k in range(-margin + 1, margin)}
    chances[-2 * margin] = chances[0] = q**margin / (1 + q)
    return chances


def hockey_stick(epsilon, margin):
    """The larger of both divergences at ε between N for n and for n + 1 records."""
    law = law_of_offset(epsilon, margin)
    moved = {k + 1: chance for k, chance in law.items()}
    growth = mpmath.exp(real(epsilon))
    outcomes = law.keys() | moved.keys()
    pairs = [(law.get(k, 0), moved.get(k, 0)) for k in outcomes]
    return max(
        sum(max(first - growth * second, 0) for first, second in pairs),
        sum(max(second - growth * first, 0) for first, second in pairs),
    )


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_the_number_is_private_and_no_smaller_margin_is(epsilon, delta):
    wrapper = UnknownNumber(epsilon, delta)
    with mpmath.workdps(60):
        assert abs(sum(law_of_offset(epsilon, wrapper.margin).values()) - 1) < 1e-50
        found = hockey_stick(epsilon, wrapper.margin)
        assert found <= real(delta)
        assert abs(real(wrapper.leak(wrapper.margin)) - found) < 1e-25 * real(delta)
        if wrapper.margin > 1:
            assert hockey_stick(epsilon, wrapper.margin - 1) > real(delta)


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_the_margin_is_at_most_the_papers_which_is_private_too(epsilon, delta):
    printed = UnknownNumber(epsilon, delta, faithful=True)
    with mpmath.workdps(30):
        papers = mpmath.ceil(mpmath.log(2 / real(delta)) / real(epsilon))
        assert hockey_stick(epsilon, printed.margin) <= real(delta)
    assert UnknownNumber(epsilon, delta).margin <= papers == printed.margin
    assert UnknownNumber.from_dict(printed.to_dict()) == printed


def test_extreme_promises_have_a_margin_too():
    assert UnknownNumber(Fraction(1, 10**11), Fraction(1, 10**300)).margin > 10**13
    assert UnknownNumber(Fraction(10**6), Fraction(1, 10**12)).margin == 1


def test_numbers_lie_within_the_margin_and_too_few_records_give_nothing():
    wrapper = UnknownNumber(Fraction(1), Fraction(1, 1000), n0=50)
    drawn = [wrapper.draw(200) for _ in range(300)]
    assert all(200 - 2 * wrapper.margin <= number <= 200 for number in drawn)
    assert len(set(drawn)) > 3
    assert wrapper.enough == 50 + 2 * wrapper.margin
    assert all(wrapper.draw(wrapper.enough) is not None for _ in range(200))
    assert all(wrapper.draw(49) is None for _ in range(50))
    assert wrapper.draw(0) is None
    assert wrapper.select(np.zeros(49), 0.0) is None


def chi_square(outcomes, expected):
    counts = Counter(outcomes)
    assert set(counts) <= set(expected)
    return stats.chisquare([counts[outcome] for outcome in expected]).pvalue


@pytest.mark.parametrize("rows", [0, 1, 2, 4])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_ordered_choice_is_equally_likely(rows, number):
    """With fewer records than asked for, the filler (−1) takes the places that are left."""
    wrapper = UnknownNumber(Fraction(1), Fraction(1, 10))
    records = np.arange(rows)
    outcomes = [tuple(wrapper.subset(records, number, -1).tolist()) for _ in range(6_000)]
    padded = [*range(rows), *range(-1, -1 - (number - rows), -1)]
    expected = Counter(
        tuple(max(x, -1) for x in choice) for choice in itertools.permutations(padded, number)
    )
    assert len(set(expected.values())) == 1
    if len(expected) > 1:
        assert chi_square(outcomes, expected) > FALSE_ALARM
        planted = [min(expected) if i % 5 == 0 else x for i, x in enumerate(outcomes)]
        assert chi_square(planted, expected) < FALSE_ALARM
    else:
        assert set(outcomes) == set(expected)


def test_rows_of_a_matrix_stay_together():
    wrapper = UnknownNumber(Fraction(1), Fraction(1, 10))
    records = np.arange(20.0).reshape(10, 2)
    part = wrapper.subset(records, 7, [0.0, 0.0])
    assert part.shape == (7, 2)
    assert (part[:, 1] == part[:, 0] + 1).all()
    assert len(set(part[:, 0])) == 7
    padded = wrapper.subset(records[:3], 5, [8.0, 9.0])
    assert sorted(map(tuple, padded.tolist())) == [(0, 1), (2, 3), (4, 5), (8, 9), (8, 9)]
    chosen = UnknownNumber(Fraction(5), Fraction(1, 10)).select(records, [0.0, 0.0])
    assert chosen is not None
    assert 8 <= len(chosen) <= 10


def test_equal_keys_are_drawn_again():
    """Ties would be broken by the order of the records, which is not random."""
    batches = iter([np.array([5, 5, 1], np.uint64), np.array([9, 7, 8], np.uint64)])
    wrapper = UnknownNumber(Fraction(1), Fraction(1, 10))
    part = wrapper.subset(np.array([10, 20, 30]), 3, 0, lambda count: next(batches))
    assert part.tolist() == [20, 30, 10]


def responses(records, orders, keep):
    """The law of all records' randomised responses, averaged over the given choices of records."""
    law = Counter()
    for order in orders:
        for answer in itertools.product((0, 1), repeat=len(order)):
            chance = Fraction(1, len(orders))
            for i, bit in zip(order, answer, strict=True):
                chance *= keep if records[i] == bit else 1 - keep
            law[answer] += chance
    return law


def worst_ratio(choices):
    """Over all records, of which one is removed, the most that the law of all responses moves."""
    keep, worst = Fraction(3, 4), Fraction(0)
    for records in itertools.product((0, 1), repeat=4):
        first = responses(records, list(choices(range(4), 3)), keep)
        for gone in range(4):
            rest = records[:gone] + records[gone + 1 :]
            second = responses(rest, list(choices(range(3), 3)), keep)
            ratios = [first[answer] / second[answer] for answer in first]
            worst = max(worst, *ratios, *[1 / ratio for ratio in ratios])
    return worst


def test_random_order_makes_a_removed_record_a_replaced_one():
    """Randomised response keeps a factor of 3; the same subset in file order would not."""
    assert worst_ratio(itertools.permutations) <= 3
    assert worst_ratio(itertools.combinations) > 9


def test_promises_add_up():
    wrapper = UnknownNumber(Fraction(1), Fraction(1, 10**6))
    assert wrapper.total(ApproxDP(epsilon=1.0, delta=1e-6)) == ApproxDP(epsilon=2.0, delta=2e-6)
    assert wrapper.total(PureDP(epsilon=0.5)) == ApproxDP(epsilon=1.5, delta=1e-6)
    with pytest.raises(InvalidInput, match="ApproxDP"):
        wrapper.total(ZCDP(rho=0.1))


def test_arguments_are_checked_and_the_description_is_complete():
    for epsilon, delta, n0 in [
        (0, Fraction(1, 9), 1),
        (1, 0, 1),
        (1, 1, 1),
        (1, Fraction(1, 9), 0),
    ]:
        with pytest.raises(InvalidInput):
            UnknownNumber(Fraction(epsilon), Fraction(delta), n0)
    fields = UnknownNumber(Fraction(1, 2), Fraction(1, 10**6), n0=7).to_dict()
    assert json.loads(json.dumps(fields)) == {
        "epsilon": "1/2",
        "delta": "1/1000000",
        "n0": 7,
        "margin": 27,
    }


def pairs_left_out(draws, distinct):
    """How often each pair of four places is left out, from words of a fixed seed."""
    random = np.random.default_rng(5)

    def words(count):
        return random.integers(0, 1 << 64, count, np.uint64)

    return Counter(distinct(4, 2, words) for _ in range(draws))


def test_places_that_are_left_out_are_uniform():
    """5.5 standard errors for each of six pairs: a false alarm in 4 million."""
    draws, limit = 30_000, 5.5 * math.sqrt(30_000 * 5 / 36)
    found = pairs_left_out(draws, _distinct)
    assert sorted(found) == list(itertools.combinations(range(4), 2))
    assert max(abs(count - draws / 6) for count in found.values()) < limit

    def neighbours(size, count, words):
        first = int(words(1)[0]) % size
        return tuple(sorted({first, (first + 1 + int(words(1)[0]) % 2) % size}))

    wrong = pairs_left_out(draws, neighbours)
    assert max(abs(count - draws / 6) for count in wrong.values()) > 3 * limit


def test_the_number_left_out_is_that_of_the_number_drawn():
    wrapper = UnknownNumber(Fraction(1, 2), Fraction(1, 10**6), n0=100)
    for _ in range(50):
        left_out = wrapper.left_out(1000)
        assert len(set(left_out)) == len(left_out) <= 2 * wrapper.margin
        assert all(0 <= place < 1000 for place in left_out)
    assert wrapper.left_out(99) is None
