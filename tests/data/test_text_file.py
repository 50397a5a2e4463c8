"""Blocks and units of work do not matter: every record is read once, as the whole text has it."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_csv_quotes import blanked, reference

from muhat.data import text_file
from muhat.data.csv_quotes import layout
from muhat.data.text_file import pieces

TEXTS = st.text(alphabet='"",\n\n\r;a', max_size=60).map(str.encode)
LINES = [b"a\n", b"abcdef\n", b"\r\n", b'"a"\n', b'"a\nb",c\n', b'a"b\n', b'"', b"a"]
LONG_TEXTS = st.lists(st.sampled_from(LINES), min_size=5, max_size=30).map(b"".join)


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


@given(LONG_TEXTS, st.integers(1, 20))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_pieces_are_the_same_from_where_any_of_them_begins(text: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "BLOCK_BYTES", block)
        patch.setattr(text_file, "LONGEST_RECORD", 25)
        ends = [piece.end for piece in pieces(io.BytesIO(text), 0, b",")]
        for place, start in enumerate([0, *ends]):
            again = [piece.end for piece in pieces(io.BytesIO(text), start, b",")]
            assert again == ends[place:]


class Lines(text_file.TextFile):
    """A CSV file that is only looked at."""

    def parser(self, positions, coders):
        raise NotImplementedError

    def looked(self):
        """What a parser would get, and how many records."""
        found = [piece for unit in range(len(self._stops)) for piece in self.unit(unit)]
        return [(piece.end, piece.cleaned(), piece.count) for piece in found]


@given(TEXTS, st.integers(1, 30), st.integers(1, 40))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_file_is_read_as_it_was_when_it_was_counted(text: bytes, block: int, unit: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.NamedTemporaryFile() as kept:
        patch.setattr(text_file, "BLOCK_BYTES", block)
        patch.setattr(text_file, "PARTITION_BYTES", unit)
        Path(kept.name).write_bytes(text)
        file = Lines(Path(kept.name), None, b",")
        counted = file.count_rows()
        first, again = Lines(Path(kept.name), None, b",").looked(), file.looked()
    assert again == first
    assert sum(count for _, _, count in first) == counted == len(reference(text))


def test_quotes_are_looked_for_once(tmp_path, monkeypatch) -> None:
    looks = []
    monkeypatch.setattr(text_file, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(text_file, "layout", lambda *a, **k: looks.append(a) or layout(*a, **k))
    path = tmp_path / "people.csv"
    path.write_text('"a\nb",1\n' * 1000)
    file = Lines(path, None, b",")
    assert file.count_rows() == 1000
    assert looks
    looks.clear()
    assert sum(count for _, _, count in file.looked()) == 1000
    assert not looks


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


@given(LONG_TEXTS, st.integers(1, 20), st.integers(10, 40), st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_whoever_looks_ahead_of_a_reader_goes_on_where_the_reader_ends(
    text: bytes, block: int, unit: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.NamedTemporaryFile() as kept:
        patch.setattr(text_file, "BLOCK_BYTES", block)
        patch.setattr(text_file, "PARTITION_BYTES", unit)
        Path(kept.name).write_bytes(text)
        file = Lines(Path(kept.name), None, b",")
        reader, begun = file.unit(0), []
        for _ in range(data.draw(st.integers(0, 3))):
            begun += [piece.count for piece in [next(reader, None)] if piece is not None]
        later = [piece.count for each in range(1, len(file._stops)) for piece in file.unit(each)]
        counts = [*begun, *(piece.count for piece in reader), *later]
    assert sum(counts) == len(reference(text))
