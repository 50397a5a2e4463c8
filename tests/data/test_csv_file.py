"""CSV files: cells, ragged lines, stray quotes; one record never changes another."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_csv_quotes import reference

from muhat.data import exact_sums, open_source, text_file, text_numbers
from muhat.data.csv_file import Parser
from muhat.data.csv_quotes import layout
from muhat.data.files import csv_data
from muhat.data.text_file import Piece
from muhat.domains.lattice import BoxLattice
from muhat.errors import InvalidInput
from muhat.records.columns import Floats

UNIT = BoxLattice.around([0.0], [1.0])

NUMBERS = {
    b"3": 3.0,
    b" 3 ": 3.0,
    b"\t-3.5": -3.5,
    b"+3": 3.0,
    b"3.": 3.0,
    b".5": 0.5,
    b"-.5": -0.5,
    b"1e5": 1e5,
    b"1E+5": 1e5,
    b"1e-320": 1e-320,
    b"1e-400": 0.0,
    b'"3"': 3.0,
    b'" 3"': 3.0,
    b"0.1": 0.1,
    b"0" * 500 + b"1": 1.0,
    b"9007199254740993": 9007199254740992.0,
}
MISSING = [
    b"", b"   ", b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1e400", b"-1e400", b"abc", b"N/A",
    b"-", b"+-3", b"--3", b"3e", b"1e+", b"1 2", b"0x10", b"1_000", b"1d5", b"3f", b"3;", b"TRUE",
    b"\xff3", b"\xa03", b"\x0b3", b"3\x00", b"\x00", b'""', b'"a"', b'"""3"""', b"nan(3)",
    b"infinit", b"1" * 400, "３".encode(), "٣".encode(), "−3".encode(),
]  # fmt: skip


def cells(text: bytes, width: int = 1, position: int = 0) -> tuple[list[float], int]:
    """The finite values that a block gives (nan where missing), and the absent records."""
    piece = Piece(len(text), text, layout(text, b",", final=True))
    batch = Parser(width, [position]).batch(piece)
    assert batch.rows + batch.absent == piece.count
    (column,) = batch.columns
    assert isinstance(column, Floats)
    return np.where(column.present(), column.values, np.nan).tolist(), batch.absent


@pytest.mark.parametrize("neighbor", [b"1", b"not a number", b'"', b"1e400"])
@pytest.mark.parametrize("cell", NUMBERS)
def test_a_number_is_read_the_same_beside_any_neighbor(cell: bytes, neighbor: bytes) -> None:
    values, absent = cells(neighbor + b",0\n" + cell + b",0\n", width=2)
    assert values[-1] == NUMBERS[cell]
    assert math.copysign(1, values[-1]) == math.copysign(1, NUMBERS[cell])
    assert absent == (neighbor == b'"')


@pytest.mark.parametrize("neighbor", [b"1", b"not a number"])
@pytest.mark.parametrize("cell", MISSING)
def test_what_is_no_finite_number_is_missing(cell: bytes, neighbor: bytes) -> None:
    values, absent = cells(neighbor + b",0\n" + cell + b",0\n", width=2)
    assert len(values) + absent == 2
    assert math.isnan(values[-1])


LETTERS = st.sampled_from(list("0123456789+-.eE \t\"'infa,;x\x00\r"))
CELL = st.text(alphabet=LETTERS, max_size=8).map(str.encode) | st.binary(max_size=6).map(
    lambda cell: cell.replace(b"\n", b"")
)


@given(CELL)
@settings(max_examples=600, deadline=None)
def test_a_cell_has_one_value_on_the_fast_and_on_the_slow_path(cell: bytes) -> None:
    alone, absent_alone = cells(b"7,0\n" + cell + b",0\n", width=2)
    beside, absent_beside = cells(b"x,0\n" + cell + b",0\n", width=2)
    assert absent_alone == absent_beside
    if not absent_alone:
        assert np.array_equal(alone[1:], beside[1:], equal_nan=True)


def slow_reading(record: bytes, bad: bool, width: int, position: int) -> float | None:
    """One record by the rules in plain Python: None if nothing of it can be read."""
    body = record.removesuffix(b"\n").removesuffix(b"\r")
    if bad or not body:
        return None
    fields = next(csv.reader(io.StringIO(body.decode("latin1"), newline=""), strict=True))
    if len(fields) != width:
        return None
    cell = fields[position].strip(" \t")
    number = float(cell) if re.fullmatch(text_numbers.NUMBER, cell) else math.nan
    return number if math.isfinite(number) else math.nan


@given(
    st.integers(1, 3),
    st.lists(st.text(alphabet='",,,12.5e-+ \ra\x00\t\x80', max_size=9), min_size=1, max_size=8),
)
@settings(max_examples=600, deadline=None)
def test_blocks_are_read_as_record_after_record_would_be(width: int, lines: list[str]) -> None:
    text = "\n".join(lines).encode("latin1") + b"\n"
    values, _ = cells(text, width, width - 1)
    expected = [slow_reading(*record, width, width - 1) for record in reference(text)]
    assert [v for v in values if v == v] == [v for v in expected if v is not None and v == v]


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=500, deadline=None)
def test_every_float_survives_its_repr_on_both_paths(value: float) -> None:
    text = repr(value).encode()
    assert cells(text + b"\n")[0] == [value]
    assert cells(b"x\n" + text + b"\n")[0][1] == value


def test_ragged_empty_and_badly_quoted_lines_are_records_of_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = [b"1,1", b"", b"1", b"1,1,1", b'1,1"', b'"1,1', b"1,1", b'1,"1"', b"1\r,1", b"x,1"]
    path.write_bytes(b"a,b\n" + b"\n".join(lines) + b"\n")
    source = open_source(path, ["a"], 1)
    assert source.rows() == len(lines)
    sums = exact_sums(source, UNIT)
    assert sums.rows == len(lines)
    assert sums.total[0] == 3 * UNIT.upper[0]
    kept = exact_sums(open_source(path, ["a"], 1), UNIT, missing="drop")
    assert kept.rows == 3
    assert kept.total == sums.total


def written(cells_of_one: list[str]) -> bytes:
    """A record as a writer writes it, without the end of its last line."""
    file = io.StringIO(newline="")
    csv.writer(file).writerow(cells_of_one)
    return file.getvalue().removesuffix("\r\n").encode()


LINES = st.lists(
    st.binary(max_size=10).map(lambda line: line.translate(None, b'"\n'))
    | st.lists(st.text(alphabet='"\n\r,1x', max_size=5), min_size=2, max_size=3).map(written),
    max_size=6,
)


@given(LINES, LINES)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_poison_records_never_change_the_others(
    tmp_path: Path, before: list[bytes], after: list[bytes]
) -> None:
    path = tmp_path / "x.csv"
    middle = [b"0.25,0.5", b"1,0", b"0.75,x"]
    totals = []
    for records in (before + after, before + middle + after):
        path.write_bytes(b"a,b\n" + b"".join(record + b"\n" for record in records))
        source = open_source(path, ["a", "b"], 2)
        sums = exact_sums(source, BoxLattice.around([0.0, 0.0], [1.0, 1.0]))
        assert sums.rows == source.rows() == len(records)
        totals.append(sums.total)
    unit = 1 << 46
    assert totals[1][0] - totals[0][0] == unit // 2
    assert totals[1][1] - totals[0][1] == -unit // 2


@pytest.mark.parametrize("block", [7, 64, 1 << 22])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_sum_is_the_same_for_every_block_and_byte_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, ending: bytes
) -> None:
    path = tmp_path / "x.csv"
    values = np.random.default_rng(3).random(400)
    records = [repr(value).encode() + b",z" for value in values.tolist()]
    path.write_bytes(b"\xef\xbb\xbfa,b" + ending + ending.join(records))
    expected = exact_sums(open_source(values), UNIT)
    monkeypatch.setattr(text_file, "BLOCK_BYTES", block)
    monkeypatch.setattr(text_file, "PARTITION_BYTES", 100)
    source = open_source(path, ["a"], 1)
    assert len(source.partitions()) > 50
    assert source.rows() == 400
    assert exact_sums(source, UNIT) == expected
    compressed = tmp_path / "x.csv.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    assert exact_sums(open_source(compressed, ["a"], 1), UNIT) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "header"),
        (b"\n1\n", "header"),
        (b"\xef\xbb\xbf\n", "header"),
        (b'"a\n1\n', "quotes"),
        (b"a,b\r1,2\r", "carriage return"),
        (b"a,b\r1,2\n3,4\n", "carriage return"),
        (b"a,b\r\r\n1,2\r\r\n", "carriage return"),
    ],
)
def test_a_file_without_a_header_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=words):
        open_source(path, None, 1)


def test_a_first_line_of_data_is_never_quoted(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"canary,81234567\nother,2\n")
    for columns, dim in ((None, 2), (["canari", "b"], 2), (["salary"], 1)):
        with pytest.raises(InvalidInput, match="header") as caught:
            open_source(path, columns, dim)
        assert "canary" not in str(caught.value)
        assert "8123" not in str(caught.value)


def test_names_in_the_header_may_be_quoted_and_padded(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'"net, salary", age \n1,0.5\n')
    source = open_source(path, ["age", "net, salary"], 2)
    assert source.columns == ("age", "net, salary")
    total = exact_sums(source, BoxLattice.around([0.0, 0.0], [1.0, 2.0])).total
    assert total == (0, 0)


def test_a_million_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    header = b",".join(b"c%d" % number for number in range(100_000))
    path.write_bytes(header + b"\n" + b",".join([b"1"] * 100_000) + b"\n")
    assert exact_sums(open_source(path, ["c99999"], 1), UNIT).total == (UNIT.upper[0],)


@pytest.mark.parametrize(
    ("header", "delimiter", "words"),
    [
        (b"a;b", ";", "semicolons.*--delimiter ';'.*delimiter=';'"),
        (b"a\tb", "\t", "tabs.*--delimiter 'tab'"),
        (b"a|b", "|", "bars"),
        (b"id;b, net;a", ";", "semicolons"),
        (b'"a, x";"b"', ";", "semicolons"),
    ],
)
def test_a_file_with_another_delimiter_gets_a_hint_that_names_it(
    tmp_path: Path, header: bytes, delimiter: str, words: str
) -> None:
    path = tmp_path / "x.csv"
    cells_of_one = delimiter.join(["0.5"] * (header.decode().count(delimiter) + 1))
    path.write_bytes(header + b"\n" + cells_of_one.encode() + b"\n")
    for columns, dim in ((["b"], 1), (None, 1), (None, 2)):
        with pytest.raises(InvalidInput, match=f"x.csv': the header has more {words}"):
            open_source(path, columns, dim)
    names = next(csv.reader([header.decode()], delimiter=delimiter))
    source = open_source(csv_data(path, delimiter=delimiter), [names[-1]])
    assert exact_sums(source, UNIT, missing="drop").rows == 1


def test_a_name_that_ends_in_tsv_has_tabs_and_a_given_delimiter_needs_no_ending(
    tmp_path: Path,
) -> None:
    (tmp_path / "x.tsv").write_bytes(b'a\tb\n"x\ny"\t0.5\n')
    (tmp_path / "x.txt").write_bytes(b"a b\nx 0.5\n")
    for data in (tmp_path / "x.tsv", csv_data(str(tmp_path / "x.txt"), delimiter=" ")):
        source = open_source(data, ["b"], 1)
        assert source.rows() == exact_sums(source, UNIT, missing="drop").rows == 1
    (tmp_path / "quoted.csv").write_bytes(b'"a;b","c;d;e"\n1,2\n')
    assert open_source(tmp_path / "quoted.csv", ["c;d;e"], 1).rows() == 1
    (tmp_path / "one.csv").write_bytes(b"a;b\n1\n")
    assert open_source(csv_data(tmp_path / "one.csv"), ["a;b"], 1).rows() == 1


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "\0", "§", 5, None])
def test_a_delimiter_is_one_plain_character(delimiter: object) -> None:
    with pytest.raises(InvalidInput, match="delimiter"):
        csv_data("x.csv", delimiter=delimiter)  # type: ignore[arg-type]


@pytest.mark.parametrize("paths", [5, None, [], (), {"x.csv"}, b"x.csv", [5], [None]])
def test_paths_are_paths(paths: object) -> None:
    with pytest.raises(InvalidInput, match="path"):
        open_source(csv_data(paths), ["a"], 1)  # type: ignore[arg-type]


def test_a_delimiter_is_for_csv_files_alone(tmp_path: Path) -> None:
    for name in ("x.parquet", "x.arrow", "x.jsonl", "x.jsonl.gz"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(InvalidInput, match="no CSV file"):
            open_source(csv_data(tmp_path / name, delimiter=";"), ["a"], 1)
    assert "x.csv" not in repr(csv_data("x.csv"))


def test_a_header_may_have_line_breaks_in_its_names(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'\xef\xbb\xbf"a\nb",c\n1,0.5\n')
    source = open_source(path, ["a\nb", "c"], 2)
    assert source.columns == ("a\nb", "c")
    assert source.rows() == 1
