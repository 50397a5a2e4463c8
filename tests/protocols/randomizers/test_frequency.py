"""Subset selection: its exact likelihoods, its moments, its draws."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from muhat.errors import InvalidInput
from muhat.noise.entropy import system_words
from muhat.protocols.randomizers.frequency import MOST_ANSWERS, SubsetResponse

FALSE_ALARM = 1e-7
SHAPES = [
    (bits, chosen)
    for bits in range(1, 9)
    for chosen in range(1, 2 ** (bits - 1) + 1)
    if math.comb(2**bits, chosen) <= MOST_ANSWERS
]


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 2.0, 7.3, 40.0])
@pytest.mark.parametrize(("bits", "chosen"), SHAPES)
def test_no_two_buckets_make_an_answer_more_than_e_to_epsilon_times_as_likely(
    bits, chosen, epsilon
):
    response = SubsetResponse(bits, chosen, epsilon)
    buckets = range(response.buckets) if bits < 6 else range(0, response.buckets, 37)
    answers = range(response.answers)
    table = [[response.likelihood(answer, bucket) for answer in answers] for bucket in buckets]
    assert all(sum(row) == 1 for row in table)
    with localcontext() as context:
        context.prec = 80
        limit = Fraction(Decimal(repr(epsilon)).exp())
    for column in zip(*table, strict=True):
        largest, smallest = max(column), min(column)
        assert smallest > 0
        assert largest <= limit * smallest
    ratio = response.likelihood(0, 0) / response.likelihood(response.answers - 1, 0)
    assert limit * (1 - Fraction(1, 1 << 59)) < ratio <= limit


@pytest.mark.parametrize(("bits", "chosen"), SHAPES)
def test_moments_are_those_of_the_likelihoods(bits, chosen):
    response = SubsetResponse(bits, chosen, 1.3)
    bucket = response.buckets - 1
    chances = np.array(
        [float(response.likelihood(answer, bucket)) for answer in range(response.answers)]
    )
    phi = response.characters[:, 1:]
    signs = 1.0 - 2.0 * (np.bitwise_count(np.arange(1, response.buckets) & bucket) & 1)
    np.testing.assert_allclose(chances @ phi * signs, response.attenuation, rtol=1e-12)
    products = (phi * signs).T @ (chances[:, None] * (phi * signs))
    np.testing.assert_allclose(np.diag(products), response.power, rtol=1e-12)
    other = products[~np.eye(len(products), dtype=bool)]
    np.testing.assert_allclose(other, response.common, rtol=1e-9, atol=1e-12)
    both = [(bucket in members) != (0 in members) for members in response.sets.tolist()]
    assert chances[both].sum() == pytest.approx(float(response.exposure), rel=1e-12)


def test_the_variance_is_that_of_the_literature():
    e = math.exp(1.0)
    assert SubsetResponse(1, 1, 1.0).variance == pytest.approx(((e + 1) / (e - 1)) ** 2)
    least = 4 * e / (e - 1) ** 2
    assert least < SubsetResponse(2, 1, 1.0).variance < 1.003 * least
    assert SubsetResponse(3, 3, 0.5).variance == pytest.approx(
        4 * math.exp(0.5) / (math.exp(0.5) - 1) ** 2, rel=1e-3
    )


@pytest.mark.parametrize(("bits", "chosen"), [(1, 1), (2, 1), (3, 3), (5, 1)])
def test_answers_have_their_likelihoods_and_a_larger_epsilon_is_told_apart(bits, chosen):
    response, other = (SubsetResponse(bits, chosen, epsilon) for epsilon in (1.0, 1.3))
    size, bucket = 40_000, response.buckets // 3
    drawn = response.respond(np.full(size, bucket))
    counts = np.bincount(drawn, minlength=response.answers)
    exact, wrong = (
        np.array([float(each.likelihood(answer, bucket)) for answer in range(each.answers)])
        for each in (response, other)
    )
    assert stats.chisquare(counts, exact * size).pvalue > FALSE_ALARM
    assert stats.chisquare(counts, wrong * size).pvalue < 1e-12


def test_as_many_words_are_asked_for_whatever_the_buckets_are():
    response = SubsetResponse(3, 3, 1.0)

    def asked(bucket: int) -> list[int]:
        calls, stream = [], np.random.default_rng(5)

        def words(count: int) -> np.ndarray:
            calls.append(count)
            return stream.integers(0, 1 << 64, count, np.uint64)

        response.respond(np.full(1000, bucket), words)
        return calls

    assert all(asked(bucket) == asked(0) for bucket in range(8))
    assert len(response.respond(np.empty(0, np.int64), system_words)) == 0


@pytest.mark.parametrize(
    ("bits", "chosen", "epsilon"),
    [(0, 1, 1.0), (9, 1, 1.0), (2, 3, 1.0), (2, 0, 1.0), (4, 3, 1.0), (1, 1, 0.0), (1, 1, np.nan)],
)
def test_responses_that_are_none_are_refused(bits, chosen, epsilon):
    with pytest.raises(InvalidInput):
        SubsetResponse(bits, chosen, epsilon)
