"""Blocks and units of work do not matter: every record is read once, as the whole text has it."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_csv_quotes import blanked, reference

from muhat.data import text_file
from muhat.data.text_file import pieces

TEXTS = st.text(alphabet='"",\n\n\r;a', max_size=60).map(str.encode)


@given(TEXTS, st.integers(1, 30))
@settings(max_examples=500, deadline=None, derandomize=True)
def test_every_record_is_read_once_however_the_file_is_cut(text: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "BLOCK_BYTES", block)
        found = list(pieces(io.BytesIO(text), 0, b","))
    expected = reference(text)
    assert b"".join(piece.cleaned() for piece in found) == b"".join(
        blanked(*each) for each in expected
    )
    assert sum(piece.count for piece in found) == len(expected)
    assert not text or found[-1].end == len(text)


@given(TEXTS, st.integers(1, 10), st.integers(0, 60))
@settings(max_examples=500, deadline=None, derandomize=True)
def test_overlong_records_are_passed_over_and_counted(text: bytes, block: int, cut: int) -> None:
    expected = reference(text)
    starts = [0]
    for record, _ in expected:
        starts.append(starts[-1] + len(record))
    first = min(cut, len(expected))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "BLOCK_BYTES", block)
        patch.setattr(text_file, "LONGEST_RECORD", 10)
        found = list(pieces(io.BytesIO(text), starts[first], b","))
    # What is malformed is missing, whether it is blanked or passed over.
    kept = [record for record, bad in expected[first:] if len(record) <= 10 and not bad]
    read = [record for record, _ in reference(b"".join(piece.cleaned() for piece in found))]
    assert [each for each in read if each.strip(b" \n")] == [
        each for each in kept if each.strip(b" \n")
    ]
    assert sum(piece.count for piece in found) == len(expected) - first
