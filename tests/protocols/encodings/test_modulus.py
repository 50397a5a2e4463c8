"""Sums from their remainders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat.errors import InvalidInput
from muhat.protocols.encodings.modulus import check_modulus, modulus_bits, signed


@given(
    people=st.integers(1, 10**6),
    low=st.integers(-(10**6), 10**6),
    width=st.integers(1, 10**6),
    reach=st.integers(0, 10**7),
    place=st.floats(0, 1),
)
def test_every_sum_within_reach_is_read_rightly(people, low, width, reach, place):
    high = low + width
    bits = modulus_bits(people, low, high, reach)
    least, most = people * low - reach, people * high + reach
    assert 1 << (bits - 1) <= most - least < 1 << bits
    for total in (least, most, least + int(place * (most - least))):
        assert signed([total % (1 << bits)], bits, people, low, high) == [total]


def test_a_sum_beyond_the_modulus_is_misread():
    bits = modulus_bits(10, 0, 7, 5)
    assert signed([(80 - (1 << bits)) % (1 << bits)], bits, 10, 0, 7) == [80]
    assert signed([(80 + (1 << bits) // 2) % (1 << bits)], bits, 10, 0, 7) != [
        80 + (1 << bits) // 2
    ]


def test_too_many_people_are_refused_with_the_reason():
    bits = modulus_bits(1000, 0, 7, 50)
    check_modulus(bits, 1000, 0, 7, 50)
    with pytest.raises(InvalidInput, match=r"2\^13 is too small for 2000 people.*2\^14"):
        check_modulus(bits, 2000, 0, 7, 50)
