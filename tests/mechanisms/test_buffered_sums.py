"""A few buffers: the integers under the noise, their sensitivity, and what is decoded."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.mechanisms.queries.buffered import (
    BufferedSum,
    buffered_deviations,
    multipliers,
    term_room,
)
from muhat.mechanisms.queries.streaming import RunningNoise

REACH = 1 << 36


def plan(size: int, strength: Fraction = Fraction(1), contributions: int = 1) -> RunningNoise:
    return RunningNoise(size, (-36,), (REACH,), (Fraction(1),), strength, contributions)


def silent(count: int) -> np.ndarray:
    return np.zeros(count, np.int64)


def measured(one: RunningNoise, terms: list[int]) -> list[int]:
    """The integers to which noise would be added."""
    sums = BufferedSum(one, 0)
    factors = multipliers(term_room(one, 0), sums.root.lengths(0, one.size))
    return [sums.measure(term, factor) for term, factor in zip(terms, factors, strict=True)]


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("strength", [Fraction(1), Fraction(1, 10**8), Fraction(50)])
def test_neighbours_are_at_most_mu_apart_in_the_integers(strength, contributions):
    one = plan(80, strength, contributions)
    rng = np.random.default_rng(1)
    allowed = strength * (1 << 108)
    closest = Fraction(0)
    for trial in range(40):
        terms = rng.integers(-REACH, REACH, 80, endpoint=True).tolist()
        other = list(terms)
        for place in range(contributions):
            other[(trial * 2 + place) % 80] = 0
            terms[(trial * 2 + place) % 80] = REACH
        first, second = measured(one, terms), measured(one, other)
        moved = Fraction(sum((a - b) ** 2 for a, b in zip(first, second, strict=True)))
        assert moved <= allowed
        closest = max(closest, moved / allowed)
    # Events one after the other move the sums almost alike: nothing is wasted.
    assert closest > (Fraction(99, 100) if contributions == 1 else Fraction(60, 100))


def test_twice_the_reach_would_be_caught():
    one = plan(80)
    first, second = measured(one, [0] * 80), measured(one, [2 * REACH] + [0] * 79)
    assert sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) > 1 << 108


def test_without_noise_the_answers_are_the_running_sums():
    one = plan(1500)
    sums = BufferedSum(one, 0, normals=silent)
    terms = np.random.default_rng(2).integers(-REACH, REACH, 1500)
    found = np.array([sums.push(term) for term in terms.tolist()])
    # Off by the rounding to 2^−54 of the noise, a millionth of a unit each.
    assert np.abs(found - np.cumsum(terms)).max() <= 1


@pytest.mark.parametrize("planted", [False, True])
def test_noise_has_the_covariance_of_the_decoder(planted):
    size, count = 5, 1500
    one = plan(size)
    noise = np.empty((size, count))
    for k in range(count):
        sums = BufferedSum(one, 0)
        noise[:, k] = [sums.push(0) / REACH for _ in range(size)]
    if planted:
        noise[1:] = noise[:-1].copy()
    root = BufferedSum(one, 0).root
    c = root.coefficients()
    matrix = np.array([[c[t - s] if s <= t else 0.0 for s in range(size)] for t in range(size)])
    decoder = np.tril(np.ones((size, size))) @ np.diag(root.lengths(0, size))
    decoder = decoder @ np.linalg.inv(matrix)
    assert np.allclose(np.linalg.norm(decoder, axis=1), buffered_deviations(one)[:, 0], rtol=1e-5)
    white = np.linalg.solve(decoder, noise)
    moments = white @ white.T / count
    errors = np.where(np.eye(size), np.sqrt(2 / count), np.sqrt(1 / count))
    assert (np.abs(moments - np.eye(size)) < 6 * errors).all() != planted


def test_a_state_goes_on_where_it_was():
    one = plan(1200)
    sums = BufferedSum(one, 0, normals=silent)
    for term in range(700):
        sums.push(term)
    again = BufferedSum(one, 0, sums.to_dict(), normals=silent)
    assert [sums.push(5) for _ in range(500)] == [again.push(5) for _ in range(500)]
    with pytest.raises(ValueError):
        BufferedSum(plan(5), 0, sums.to_dict())


def test_a_promise_too_strong_for_the_integers_is_refused():
    with pytest.raises(InvalidInput, match="too strong"):
        BufferedSum(plan(100, Fraction(1, 10**24)), 0)
