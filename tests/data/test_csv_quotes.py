"""Records of a CSV text, against a reading of the rule one character at a time."""

from __future__ import annotations

import csv
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.data.csv_quotes import Layout, cleaned, layout


def attempt(text: bytes, start: int, delimiter: bytes) -> tuple[int, bool] | None:
    """Where a record with well-formed quotes ends, and whether a carriage return is stray in it."""
    index, stray = start, False
    while True:
        if text[index : index + 1] == b'"':
            index += 1
            while True:
                index = text.find(b'"', index) + 1
                if not index:
                    return None
                if text[index : index + 1] != b'"':
                    break
                index += 1
            if text[index : index + 1] not in (b"", b"\n", b"\r", delimiter):
                return None
        while text[index : index + 1] not in (b"", b"\n", delimiter):
            if text[index : index + 1] == b'"':
                return None
            stray |= text[index : index + 1] == b"\r" and text[index + 1 : index + 2] not in (
                b"",
                b"\n",
            )
            index += 1
        if text[index : index + 1] != delimiter:
            return min(index + 1, len(text)), stray
        index += 1


def reference(text: bytes, delimiter: bytes = b",") -> list[tuple[bytes, bool]]:
    """Every record of a whole text, and whether something of it can be read."""
    records, start = [], 0
    while start < len(text):
        found = attempt(text, start, delimiter)
        end, bad = found or (text.find(b"\n", start) + 1 or len(text), True)
        records.append((text[start:end], bad))
        start = end
    return records


def blanked(record: bytes, bad: bool) -> bytes:
    end = b"\n" if record.endswith(b"\n") else b""
    return b" " * (len(record) - len(end)) + end if bad else record


TEXTS = st.text(alphabet='"",\n\r;a', max_size=40).map(str.encode)


@given(TEXTS, st.sampled_from([b",", b";"]))
@settings(max_examples=600, deadline=None, derandomize=True)
def test_records_are_those_of_the_rule(text: bytes, delimiter: bytes) -> None:
    require_those_of_the_rule(text, delimiter)


def require_those_of_the_rule(text: bytes, delimiter: bytes) -> None:
    expected = reference(text, delimiter)
    found = layout(text, delimiter, final=True)
    if found is None:
        assert not text
        return
    assert found.end == len(text)
    assert cleaned(text, found) == b"".join(blanked(*each) for each in expected)
    assert len(expected) == found.count
    assert found.first == len(expected[0][0])


LONG = st.sampled_from(
    [b'"', b'""', b",", b"\n", b"\r\n", b"a" * 7, b"a" * 62, b"a" * 63, b"a" * 64]
)


@given(st.lists(LONG, max_size=40).map(b"".join))
@settings(max_examples=600, deadline=None, derandomize=True)
def test_records_of_any_length_are_those_of_the_rule(text: bytes) -> None:
    """Quotes are far from each other, or at the ends of the words that bits are taken in."""
    require_those_of_the_rule(text, b",")


QUOTED = st.sampled_from([b"a" * 61, b"a" * 62, b"a" * 63, b"\n", b"\r\n", b'""', b","])


@given(st.lists(st.lists(QUOTED, max_size=6).map(b"".join), min_size=1, max_size=8), st.booleans())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_long_cells_that_are_quoted_end_where_they_are_closed(
    cells: list[bytes], ended: bool
) -> None:
    records = [b'1,"' + cell + b'"\n' for cell in cells]
    text = b"".join(records) if ended else b"".join(records)[:-1]
    first = len(records[0]) - (len(cells) == 1 and not ended)
    assert layout(text, b",", final=True) == Layout(first, len(text), len(cells))
    assert cleaned(text, Layout(first, len(text), len(cells))) == text


SHORT = st.sampled_from([b"x", b'""', b'"a"', b'"a""b"', b'"\r"', b'"\n"', b'"a\nb"', b'"a\n\nb"'])


@given(st.lists(SHORT, min_size=1, max_size=6), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_cells_beside_long_ones_may_have_line_breaks(
    cells: list[bytes], end: bytes, ended: bool
) -> None:
    records = [b"1234567890" * 8 + b"," + cell + end for cell in cells]
    text = b"".join(records) if ended else b"".join(records).removesuffix(end)
    found = layout(text, b",", final=True)
    assert found is not None
    first = len(text) if len(cells) == 1 else len(records[0])
    assert found == Layout(first, len(text), len(cells))
    assert cleaned(text, found) == text


@given(TEXTS, TEXTS)
@settings(max_examples=600, deadline=None, derandomize=True)
def test_what_is_decided_early_stays_so_whatever_follows(text: bytes, more: bytes) -> None:
    found = layout(text, b",", final=False)
    if found is None:
        return
    records = reference(text + more)
    ends = [0]
    for record, _ in records:
        ends.append(ends[-1] + len(record))
    assert found.end in ends
    whole = records[: ends.index(found.end)]
    assert cleaned(text, found) == b"".join(blanked(*each) for each in whole)


CELLS = st.text(alphabet='"",;\n\r\x00a1 \t\'\\é', max_size=8)


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from([",", ";", "\t"]),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_what_a_writer_wrote_is_found_record_by_record(
    rows: list[list[str]], end: str, quoting: int, delimiter: str
) -> None:
    texts = []
    for row in rows:
        file = io.StringIO(newline="")
        # Cells with a carriage return are quoted by every writer of RFC 4180; Python's leaves
        # one alone where lines end otherwise.
        kept = [cell.replace("\r", "\r\n") if end == "\n" else cell for cell in row]
        csv.writer(file, lineterminator=end, quoting=quoting, delimiter=delimiter).writerow(kept)
        texts.append(file.getvalue().encode())
    whole = b"".join(texts)
    found = layout(whole, delimiter.encode(), final=True)
    assert found is not None
    assert cleaned(whole, found) == whole
    assert found == Layout(len(texts[0]), len(whole), len(texts))


def test_a_stray_quote_costs_its_own_line_and_no_other() -> None:
    good = [b'1,"a\nb"\n', b"2,c\n", b'3,"d"\n', b'4,"x\n\ny""\n"\n']
    for stray in (b'"oops,1\n', b'5" nails,1\n', b'a,"b" c\n', b'1,2"\n', b'"""\n'):
        for place in range(len(good) + 1):
            text = b"".join([*good[:place], stray, *good[place:]])
            found = layout(text, b",", final=True)
            assert found is not None
            assert found.bad is not None
            assert found.bad.tolist() == [index == place for index in range(len(good) + 1)]


def test_a_clean_text_is_not_touched() -> None:
    text = b"1,2\r\n3,4\r\n"
    found = layout(text, b",", final=True)
    assert found is not None
    assert cleaned(text, found) == text
