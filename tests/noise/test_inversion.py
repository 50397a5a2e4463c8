"""Draws by inversion: every word decides exactly, or is continued until it does."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from noise_reference import Replay, mpf

from muhat.noise.discrete_gaussian import _Gaussian, discrete_gaussian
from muhat.noise.inversion import CELL_BITS, Cumulative, _number, inverted, table

ONES = 2**64 - 1
VARIANCES = [
    Fraction(1, 16),
    Fraction(1, 3),
    Fraction(1),
    Fraction(22, 7),
    Fraction(2913435, 65536),
]


def cumulative_law(variance: Fraction, terms: int, precision: int) -> list[mpmath.mpf]:
    """P(0), P(0) + P(1), P(0) + P(1) + P(−1), … from mpmath."""
    with mpmath.workprec(precision):
        total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpf(variance))))
        sizes = ((m + 1) // 2 for m in range(terms))
        weights = [mpmath.exp(-mpmath.mpf(k * k) / (2 * mpf(variance))) / total for k in sizes]
        return list(itertools.accumulate(weights))


def expected(law: list[mpmath.mpf], known: Fraction) -> int:
    return next(m for m, level in enumerate(law) if mpf(known) < level)


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(500)])
@pytest.mark.parametrize("precision", [512, 1024])
def test_the_cumulative_gaussian_law_is_enclosed(variance: Fraction, precision: int) -> None:
    lower, upper = _Gaussian(variance).cumulative(precision)
    exact = cumulative_law(variance, len(lower), precision + 500)
    with mpmath.workprec(precision + 500):
        for low, level, high in zip(lower, exact, upper, strict=True):
            assert low <= level * 2**precision <= high
            assert high - low < 2 ** (precision * 7 // 8)
        assert 1 - exact[-1] < mpmath.mpf(2) ** (8 - precision // 4)


@pytest.mark.parametrize("variance", VARIANCES)
def test_every_short_beginning_is_decided_exactly_if_all_its_continuations_agree(
    variance: Fraction,
) -> None:
    whole = 1 << 11
    with mpmath.workprec(700):
        law = cumulative_law(variance, 400, 700)
        numbers = [expected(law, Fraction(u, whole)) for u in range(whole)]
    for u, (first, last) in enumerate(itertools.pairwise(numbers)):
        assert _number(_Gaussian(variance), u, 11) == (first if first == last else None)
    assert _number(_Gaussian(variance), whole - 1, 11) is None


@pytest.mark.parametrize("variance", VARIANCES)
def test_words_at_an_edge_are_continued_until_they_decide(variance: Fraction) -> None:
    known = table(_Gaussian(variance))
    edges = {int(level) for level in known.least[:9]} | {int(level) for level in known.most[:9]}
    with mpmath.workprec(700):
        law = cumulative_law(variance, 400, 700)
        for first in {edge + step for edge in edges for step in (-1, 0, 1)}:
            for second in (0, 1 << 63, ONES - 1):
                if 0 <= first <= ONES:
                    words = Replay([first, second, 0x5555555555555555, 1])
                    found = inverted(_Gaussian(variance), 1, words)
                    asked = Fraction(first << 64 | second, 1 << 128)
                    assert found.tolist() == [expected(law, asked)]


def test_the_first_bits_of_a_word_tell_what_all_of_it_does() -> None:
    known = table(_Gaussian(VARIANCES[-1]))
    assert (known.cells >= 0).mean() > 0.99
    within = 64 - CELL_BITS
    for cell in range(0, 1 << CELL_BITS, 97):
        if known.cells[cell] >= 0:
            for word in (cell << within, (cell + 1 << within) - 1):
                assert _number(_Gaussian(VARIANCES[-1]), word, 64) == known.cells[cell]
    for array in (known.least, known.most, known.cells):
        with pytest.raises(ValueError):
            array[0] = 1


@dataclass(frozen=True)
class Wide:
    """Enclosures that leave much open."""

    def cumulative(self, precision: int) -> Cumulative:
        whole = 1 << precision
        return (whole // 4, whole * 3 // 4), (whole * 3 // 8, whole * 7 // 8)


def test_bits_inside_an_enclosure_decide_nothing() -> None:
    assert [_number(Wide(), u, 3) for u in range(8)] == [0, 0, None, 1, 1, 1, None, None]


def test_numbers_alternate_in_sign_as_the_table_has_them() -> None:
    variance = Fraction(22, 7)
    words = np.random.default_rng(4).integers(0, 1 << 64, 500, np.uint64)
    places = inverted(_Gaussian(variance), 500, lambda count: words[:count])
    found = discrete_gaussian(variance, 500, lambda count: words[:count])
    order = [0, *(sign * k for k in range(1, 30) for sign in (1, -1))]
    assert found.tolist() == [order[place] for place in places.tolist()]
