"""The big-integer path: enclosures that enclose, verdicts that survive every completion."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import noise_reference as reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noise_reference import OPEN, REJECT, Replay

from muhat.noise import exact
from muhat.noise.density import LAPLACE, NORMAL

LAWS = {"normal": NORMAL, "laplace": LAPLACE}
ONES = 2**64 - 1

both_laws = pytest.mark.parametrize("law", LAWS)


@given(
    numerator=st.integers(0, 2**80),
    shift=st.integers(60, 200),
    precision=st.sampled_from([64, 128, 512]),
)
@settings(max_examples=300, deadline=None)
def test_the_exponential_is_enclosed(numerator: int, shift: int, precision: int) -> None:
    lower, upper = exact.exponential(numerator, shift, precision)
    with mpmath.workprec(precision + 400):
        true = mpmath.exp(-mpmath.mpf(numerator) / 2**shift) * 2**precision
        assert lower <= true <= upper
    assert upper - lower <= 2
    assert lower >= 0
    assert upper <= 1 << precision


def test_the_exponential_of_zero_is_nearly_exact_and_of_much_is_nearly_zero() -> None:
    assert exact.exponential(0, 0, 64)[1] == 1 << 64
    assert exact.exponential(10**6, 0, 64) == (0, 1)


@both_laws
@pytest.mark.parametrize("precision", [512, 1024])
def test_the_stack_encloses_every_sum_and_the_total(law: str, precision: int) -> None:
    stack = exact.stack(LAWS[law], precision)
    with mpmath.workprec(reference.PRECISION):
        for k in range(len(stack.lower)):
            true = reference.partial_sum(law, k) * 2**precision
            assert stack.lower[k] <= true <= stack.upper[k]
            assert stack.upper[k] - stack.lower[k] < 2**40
        total = reference.height(law) * 2**precision
        assert stack.total[0] <= total <= stack.total[1]
        # What the table leaves out is below 2^(−precision/4), up to the strips in a unit.
        assert stack.total[1] - stack.lower[-1] < 2 ** (precision - precision // 4 + 8)


@both_laws
@given(place=st.integers(0, 2**60), bits=st.integers(0, 60))
def test_the_exponent_is_exact(law: str, place: int, bits: int) -> None:
    t = Fraction(place, 2**bits) / 64
    numerator, shift = LAWS[law].exponent(place, bits)
    assert Fraction(numerator, 2**shift) == (t * t / 2 if law == "normal" else t)


@both_laws
def test_an_open_trial_draws_more_bits_and_keeps_those_of_x(law: str) -> None:
    x = 0x1_2345_6789_ABCD
    u = reference.boundary(law, 70, Fraction(2 * x + 1, 2**50), 78)
    first, second = reference.words_of(u, 78, x)
    assert exact.verdict(LAWS[law], u, 78, x, 49) is None
    outcomes = set()
    for more_u in (0, ONES):
        for more_x in (0, ONES):
            words = [first, second, more_u, more_x, 7, 11]
            replay = Replay(words[2:])
            sample = exact.settle(LAWS[law], first, second, replay)
            expected = reference.trial(law, words)
            assert expected != OPEN
            assert (REJECT if sample is None else sample.floor) == expected
            assert len(replay.words) <= 2
            if sample is not None:
                assert sample.next_words[0] == more_x
            outcomes.add(expected == REJECT)
    assert outcomes == {True, False}


@both_laws
def test_a_trial_on_the_edge_of_a_strip_draws_more_bits(law: str) -> None:
    u = reference.threshold(law, 90, 78)
    first, second = reference.words_of(u, 78, 2**48)
    below = reference.trial(law, [first, second, 0, 0])
    above = reference.trial(law, [first, second, ONES, 0])
    assert below != above
    for more_u, expected in ((0, below), (ONES, above)):
        sample = exact.settle(LAWS[law], first, second, Replay([more_u, 0, 1, 1]))
        assert (REJECT if sample is None else sample.floor) == expected


@both_laws
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("negative", [False, True])
def test_the_tail_is_sampled_as_far_out_as_the_words_go(
    law: str, depth: int, negative: bool
) -> None:
    first, second = reference.words_of(2**78 - 1, 78, 2**30, negative=negative)
    words = [first, second, *[ONES, 5] * depth, 1 << 60, 9, 3, 3]
    expected = reference.trial(law, words)
    sample = exact.settle(LAWS[law], first, second, Replay(words[2:]))
    assert expected not in (OPEN, REJECT)
    assert sample is not None
    assert sample.floor == expected
    assert abs(expected) > 2**55 * (10 if law == "normal" else 95)
    assert sample.next_words[0] == 5
