"""Deterministic CBOR: the examples of RFC 8949, one form for every number, and nothing else."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muhat as mh
from muhat import _cbor

RFC_8949_APPENDIX_A = [
    (0, "00"),
    (23, "17"),
    (24, "1818"),
    (1000, "1903e8"),
    (1000000, "1a000f4240"),
    (18446744073709551615, "1bffffffffffffffff"),
    (18446744073709551616, "c249010000000000000000"),
    (-18446744073709551616, "3bffffffffffffffff"),
    (-18446744073709551617, "c349010000000000000000"),
    (-1000, "3903e7"),
    (1.1, "fb3ff199999999999a"),
    (1.5, "f93e00"),
    (3.4028234663852886e38, "fa7f7fffff"),
    (1e300, "fb7e37e43c8800759c"),
    (5.960464477539063e-08, "f90001"),
    (-4.1, "fbc010666666666666"),
    (False, "f4"),
    (True, "f5"),
    (None, "f6"),
    (b"\x01\x02\x03\x04", "4401020304"),
    ("\u6c34", "63e6b0b4"),
    ("\U00010151", "64f0908591"),
    ([1, [2, 3], [4, 5]], "8301820203820405"),
    ({"a": 1, "b": [2, 3]}, "a26161016162820203"),
]

REFUSED = {
    "nothing": "",
    "two items": "0000",
    "a longer head": "1817",
    "a head of two bytes": "1900ff",
    "a head of eight bytes": "1b00000000ffffffff",
    "a longer float": "fa3fc00000",
    "a float of a whole number": "f93c00",
    "minus zero": "f98000",
    "an infinity": "f97c00",
    "not a number": "f97e00",
    "a bignum that is short": "c24100",
    "a bignum with a zero": "c24a00010000000000000000",
    "a bignum of a text": "c26161",
    "another tag": "c100",
    "a list without a length": "9f00ff",
    "a text without a length": "7f6161ff",
    "keys in another order": "a2616200616100",
    "a key twice": "a2616100616100",
    "a key that is no text": "a10000",
    "half a text": "6261",
    "a list that is cut": "8200",
    "no UTF-8": "61ff",
    "half a character": "63eda080",
    "undefined": "f7",
    "a simple value": "f820",
    "a break": "ff",
    "reserved": "1c",
    "a list of 2^60": "9b1000000000000000",
    "a text of 2^60": "7b1000000000000000",
    "too deep": "81" * 70 + "00",
}

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(("value", "encoded"), RFC_8949_APPENDIX_A)
def test_what_the_standard_lists_is_written_and_read_so(value, encoded):
    assert _cbor.written(value).hex() == encoded
    assert _cbor.read(bytes.fromhex(encoded)) == value


@pytest.mark.parametrize("encoded", REFUSED.values(), ids=REFUSED)
def test_what_is_written_in_another_way_is_refused(encoded):
    with pytest.raises(mh.InvalidInput):
        _cbor.read(bytes.fromhex(encoded))


@given(plain)
def test_what_was_written_is_read_again_and_written_the_same(value):
    data = _cbor.written(value)
    assert _cbor.written(_cbor.read(data)) == data
    assert _cbor.read(data) == value


@given(st.binary(max_size=40))
def test_any_bytes_are_refused_or_are_the_only_ones_that_say_so(data):
    try:
        found = _cbor.read(data)
    except mh.InvalidInput:
        return
    assert _cbor.written(found) == data


def test_a_whole_number_is_written_in_one_way_whatever_its_type():
    for number in (0.0, -0.0, 1.0, -5.0, 2.0**53, 2.0**63, -(2.0**63)):
        assert _cbor.written(number) == _cbor.written(int(number))
    for number in (2.0**64, -(2.0**64), 1e300):
        assert _cbor.read(_cbor.written(number)) == number
        assert _cbor.written(number) != _cbor.written(int(number))


@pytest.mark.parametrize(
    "value", [math.inf, math.nan, "\ud800", {1: 2}, Fraction(1, 2), {"a": {2}}, [[]] * 3 + [set()]]
)
def test_what_has_no_form_is_not_written(value):
    with pytest.raises(mh.InvalidInput):
        _cbor.written(value)


def test_what_is_all_brackets_is_not_read_to_the_end(monkeypatch):
    monkeypatch.setattr(_cbor, "MOST_PARTS", 10)
    assert _cbor.read(b"\x89" + bytes(9)) == [0] * 9
    with pytest.raises(mh.InvalidInput, match="at most 10"):
        _cbor.read(b"\x8a" + bytes(10))
