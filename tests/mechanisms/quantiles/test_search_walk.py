"""A search under way: halvings, and the questions after them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.search_walk import Tally
from muhat.noise.laws import LAWS

NORMAL = LAWS["normal"]
SEARCH = NoisySearch(1024, NORMAL, Fraction(1, 25), further=4)


def seeded(seed):
    rng = np.random.default_rng(seed)
    return lambda rounds: np.rint(rng.standard_normal(rounds) * 2.0**54).astype(np.int64)


def walked(search, counts, rank, seed):
    walk = search.start(int(counts.sum()), rank, sample=seeded(seed))
    walk.descend(0, counts, search.rounds)
    return walk


def test_every_question_is_asked_on_every_path():
    for counts in (np.ones(1024, np.int64), np.eye(1, 1024, 1023, dtype=np.int64)[0] * 900):
        for seed in range(20):
            walk = walked(SEARCH, counts, 500, seed)
            assert len(walk.comparisons) == SEARCH.questions == 14
            assert all(0 <= one.cell < 1024 for one in walk.comparisons)


def test_questions_for_the_interval_do_not_change_what_was_found():
    counts = np.random.default_rng(0).integers(0, 9, 1024)
    alone = replace(SEARCH, further=0, strength_squared=SEARCH.strength_squared * Fraction(10, 14))
    for seed in range(50):
        rng = np.random.default_rng(seed)
        drawn = np.rint(rng.standard_normal(14) * 2.0**54).astype(np.int64)
        rank = int(rng.integers(1, counts.sum()))
        walk = SEARCH.start(0, rank, sample=lambda _, drawn=drawn: drawn)
        walk.descend(0, counts, 10)
        # The same noise in records: S is the same for the same share a question.
        assert alone.multiplier == pytest.approx(SEARCH.multiplier, rel=1e-12)
        assert walk.cell == alone.find(counts, rank, sample=lambda _, drawn=drawn: drawn[:10])


def test_questions_go_where_halving_has_left_a_gap():
    """The rank lies beside the middle, where halving asks first: its next cell below is 511 − 256.

    20 records a cell and noise of 19 records: four questions find an end nearby, each time.
    """
    counts = np.full(1024, 20, np.int64)
    widths, plain = [], []
    for seed in range(100):
        walk = walked(SEARCH, counts, 20 * 512 + 5, seed)
        first, last = SEARCH.enclosing(walk.comparisons, walk.cell, SEARCH.clear(0.95))
        widths.append(last - first)
        first, last = SEARCH.enclosing(walk.comparisons[:10], walk.cell, SEARCH.clear(0.95))
        plain.append(last - first)
    assert np.median(plain) > 100
    assert np.quantile(widths, 0.9) < 30


def test_a_tally_knows_its_blocks():
    tally = Tally.of(8, 2, 5, np.array([1, 0, 3]))
    assert [tally.end(block) for block in range(3)] == [11, 15, 19]
    assert [tally.records(block) for block in range(5)] == [6, 6, 9, 9, 9]
    assert [tally.block(cell) for cell in (7, 8, 11, 12, 19, 20)] == [None, 0, 0, 1, 2, None]
    assert repr(tally).startswith("<muhat.mechanisms.quantiles.search_walk.Tally object at ")


def test_counts_of_another_interval_are_refused():
    walk = SEARCH.start(10, 5, sample=seeded(0))
    with pytest.raises(AssertionError):
        walk.follow(Tally.of(512, 0, 0, np.ones(512, np.int64)), 10)
    with pytest.raises(AssertionError):
        walk.descend(0, np.ones(2048, np.int64), 10)
