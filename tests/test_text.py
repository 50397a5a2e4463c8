"""Names that others chose are printed without harm."""

from __future__ import annotations

import pickle
import sys
import unicodedata

import pytest

import muhat as mh
from muhat._text import joined, printable
from muhat.errors import MuhatError


def test_every_character_that_steers_or_hides_is_escaped():
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        kind = unicodedata.category(letter)
        shown = printable(letter)
        if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            assert shown.isascii(), hex(code)
            assert shown.startswith("\\"), hex(code)
            assert shown.isprintable(), hex(code)
        else:
            assert shown == letter, hex(code)


def test_what_is_escaped_can_be_read_back_and_is_left_alone_the_second_time():
    name = "a\x1b[31m\u202e\n\r\t\x7f\x9b\u200b\U000e0041\ud800é年"
    shown = printable(name)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert shown.startswith(r"a\x1b[31m\u202e\n\r\t\x7f\x9b\u200b\U000e0041\ud800")
    assert shown.endswith("é年")


def test_no_line_can_begin_another_one():
    assert joined(["a\nb", "c\u2028d"]) == "a\\nb\nc\\u2028d"


@pytest.mark.parametrize("kind", [MuhatError, *MuhatError.__subclasses__()])
def test_every_error_says_a_name_without_harm(kind):
    error = kind("no column \x1b]0;gone\x07 in \u202efile")
    assert str(error) == r"no column \x1b]0;gone\x07 in \u202efile"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)


def test_a_refusal_that_names_a_column_is_one_line():
    with pytest.raises(mh.InvalidInput) as caught:
        mh.plan_mean(domain={"a\nError: b\x1b[2J": (1, 0)}, n=10, privacy=mh.ZCDP(rho=1))
    assert str(caught.value).isprintable()
