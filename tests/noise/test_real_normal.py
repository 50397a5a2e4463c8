"""Real normals: refining adds bits and changes none, and the bits are fair."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from muhat.errors import InvalidInput
from muhat.noise.real_normal import RealNormals

FALSE_ALARM = 1e-6


def counting(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def test_refining_keeps_the_bits_that_are_known():
    normals = RealNormals.draw(1000)
    before = normals.integers()
    normals.refine()
    normals.refine()
    assert normals.bits == 55 + 128
    assert [value >> 128 for value in normals.integers()] == before


def test_words_drawn_ahead_are_used_before_new_ones():
    normals = RealNormals(np.array([5, -6, 7]), counting, waiting={1: (70, 90), 2: (80,)})
    for _ in range(3):
        normals.refine()
    assert normals.words[0].tolist() == [0, 70, 80]
    assert normals.words[1].tolist() == [0, 90, 2]
    assert normals.words[2].tolist() == [0, 1, 2]
    assert normals.integers()[1] == ((-6 << 64 | 70) << 64 | 90) << 64 | 1


def test_samples_that_met_the_big_integers_keep_their_words():
    """Trials at the edge of acceptance need more words; these continue the sample."""
    for _ in range(20):
        normals = RealNormals.draw(200_000)
        if normals.waiting:
            break
    for index, drawn in normals.waiting.items():
        while len(normals.words) < len(drawn):
            normals.refine()
        assert [int(word[index]) for word in normals.words[: len(drawn)]] == list(drawn)


@pytest.mark.parametrize("scale", [1.0, 1.05])
def test_samples_are_standard_normal_and_a_wrong_scale_is_caught(scale):
    normals = RealNormals.draw(200_000)
    found = stats.kstest(normals.floors * 2.0**-55 * scale, "norm").pvalue
    assert (found > FALSE_ALARM) == (scale == 1.0)


@pytest.mark.parametrize("mask", [0, 1 << 63])
def test_refined_bits_are_fair_and_a_stuck_bit_is_caught(mask):
    normals = RealNormals.draw(100_000)
    normals.refine()
    word = normals.words[0] | np.uint64(mask)
    ones = [int(np.count_nonzero(word >> np.uint64(bit) & np.uint64(1))) for bit in range(64)]
    worst = max(abs(count - 50_000) / np.sqrt(25_000) for count in ones)
    assert (worst < 6.2) == (mask == 0)


def test_a_source_that_cannot_be_random_is_refused():
    with pytest.raises(InvalidInput, match="size"):
        RealNormals.draw(-1)
