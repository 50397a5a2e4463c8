"""Picks: a word decides where it can, and the words after it where an end lies within it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from muhat.noise.entropy import system_words
from muhat.noise.picks import Picks, uniform_each

CHANCES = [Fraction(1, 3), Fraction(1, 2), Fraction(1, 7), Fraction(1, 42)]
SUMS = [sum(CHANCES[: k + 1], Fraction(0)) for k in range(3)]


def ends(precision: int) -> list[tuple[int, int]]:
    floors = [int(each * (1 << precision)) for each in SUMS]
    return [(floor, floor + 1) for floor in floors]


class Replayed:
    """Given words, one after the other."""

    def __init__(self, words: Sequence[int]) -> None:
        self.words = list(words)

    def __call__(self, count: int) -> NDArray[np.uint64]:
        taken, self.words = self.words[:count], self.words[count:]
        return np.array(taken, np.uint64)


@pytest.mark.parametrize("thing", range(3))
def test_a_word_on_an_end_is_decided_by_the_words_after_it(thing: int) -> None:
    end = SUMS[thing]
    first = int(end * (1 << 64))
    second = int(end * (1 << 128)) & ((1 << 64) - 1)
    for after, expected in ((second - 1, thing), (second + 1, thing + 1)):
        words = Replayed([first, after])
        assert Picks(ends).draw(1, words).tolist() == [expected]
        assert not words.words


def test_an_end_that_is_met_twice_takes_three_words() -> None:
    end = SUMS[0]
    parts = [int(end * (1 << 64 * k)) & ((1 << 64) - 1) for k in (1, 2, 3)]
    words = Replayed([parts[0], parts[1], parts[2] + 1])
    assert Picks(ends).draw(1, words).tolist() == [1]
    assert not words.words


def test_words_between_ends_decide_alone() -> None:
    places = [0, *(int(each * (1 << 64)) + 2 for each in SUMS), (1 << 64) - 2]
    words = Replayed(places)
    assert Picks(ends).draw(5, words).tolist() == [0, 1, 2, 3, 3]
    assert not words.words


def test_every_thing_is_as_likely_as_it_should_be() -> None:
    """40,000 picks, 4 comparisons within 5.5 standard errors; a chance 10 % larger is 10 off."""
    found = np.bincount(Picks(ends).draw(40_000, system_words), minlength=4) / 40_000
    chances = np.array([float(each) for each in CHANCES])
    errors = np.sqrt(chances * (1 - chances) / 40_000)
    assert (np.abs(found - chances) < 5.5 * errors).all()
    assert abs(found[0] - 1.1 * chances[0]) > 5.5 * errors[0]


def test_uniform_numbers_lie_below_their_own_bounds() -> None:
    """Each of 1, 2, 3 and 2^62 − 1: means within 5.5 standard errors."""
    bounds = np.repeat(np.array([1, 2, 3, (1 << 62) - 1]), 10_000)
    found = uniform_each(bounds, system_words)
    assert (found >= 0).all()
    assert (found < bounds).all()
    means = (found / bounds).reshape(4, -1).mean(axis=1)
    assert means[0] == 0
    assert np.abs(means[1:] - [0.25, 1 / 3, 0.5]).max() < 5.5 * 0.29 / 100
