"""A record is one physical line, whatever is in it."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.data import csv_lines
from muhat.data.csv_lines import blank_malformed, lines_between, seek_line


def whole(text: bytes, start: int = 0, stop: int | None = None) -> tuple[bytes, int, int]:
    file = io.BytesIO(text)
    start = seek_line(file, start) if start else 0
    blocks = list(lines_between(file, start, stop))
    return (
        b"".join(block.text for block in blocks),
        sum(block.count for block in blocks),
        sum(block.overlong for block in blocks),
    )


@given(
    st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=20),
    st.booleans(),
    st.lists(st.integers(1, 200), max_size=4),
    st.integers(1, 40),
)
@settings(max_examples=300, deadline=None)
def test_every_line_is_read_once_however_the_file_is_cut(
    lines: list[bytes], ends_in_newline: bool, cuts: list[int], block: int
) -> None:
    text = b"\n".join(lines) + (b"\n" if ends_in_newline and lines else b"")
    expected = len(text.split(b"\n")) - (text.endswith(b"\n") or not text)
    edges = [0, *sorted({cut for cut in cuts if cut < len(text)}), None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_lines, "BLOCK_BYTES", block)
        parts = [whole(text, a or 0, b) for a, b in pairwise(edges)]
    assert b"".join(part[0] for part in parts) == text
    assert sum(part[1] for part in parts) == expected


@given(st.integers(1, 30), st.integers(0, 3), st.lists(st.integers(0, 25), max_size=8))
@settings(max_examples=200, deadline=None)
def test_overlong_lines_are_skipped_and_counted(block: int, cut: int, lengths: list[int]) -> None:
    text = b"".join(b"x" * length + b"\n" for length in lengths)
    edges = [0, *([cut * 7] if 0 < cut * 7 < len(text) else []), None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_lines, "BLOCK_BYTES", min(block, 10))
        patch.setattr(csv_lines, "LONGEST_LINE", 10)
        parts = [whole(text, a or 0, b) for a, b in pairwise(edges)]
    kept = [length for length in lengths if length <= 10]
    assert b"".join(part[0] for part in parts) == b"".join(b"x" * k + b"\n" for k in kept)
    assert sum(part[1] for part in parts) == len(kept)
    assert sum(part[2] for part in parts) == len(lengths) - len(kept)


def well_formed(line: bytes) -> bool:
    """The slow reading of the rule, one character at a time."""
    body = line[:-1] if line.endswith(b"\r") else line
    if b"\r" in body:
        return False
    index = 0
    while True:
        if body[index : index + 1] == b'"':
            index += 1
            while True:
                close = body.find(b'"', index)
                if close < 0:
                    return False
                index = close + 1
                if body[index : index + 1] != b'"':
                    break
                index += 1
        else:
            comma = body.find(b",", index)
            end = len(body) if comma < 0 else comma
            if b'"' in body[index:end]:
                return False
            index = end
        if index == len(body):
            return True
        if body[index : index + 1] != b",":
            return False
        index += 1


@given(st.lists(st.text(alphabet='",a1\r', max_size=9).map(str.encode), min_size=1, max_size=12))
@settings(max_examples=500, deadline=None)
def test_malformed_lines_become_blank_and_others_stay(lines: list[bytes]) -> None:
    cleaned = blank_malformed(b"\n".join(lines)).split(b"\n")
    assert len(cleaned) == len(lines)
    for number, (before, after) in enumerate(zip(lines, cleaned, strict=True)):
        if well_formed(before):
            assert after == before, number
        else:
            assert after == b" " * len(before), number


def test_a_clean_block_is_not_touched() -> None:
    text = b"1,2\r\n3,4\r\n"
    assert blank_malformed(text) is text
