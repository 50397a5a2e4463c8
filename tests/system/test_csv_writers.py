"""Files that a CSV writer wrote: one record more adds one record's integers, whatever is in it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import muhat as mh
from muhat.data import exact_sums, open_source, text_file
from muhat.data.base import paced
from muhat.data.categories import categories_of
from muhat.data.histogram import open_cells
from muhat.domains.lattice import BoxLattice

LATTICE = BoxLattice.around([0.0], [8.0])
HOSTILE = [
    "", " ", "3", " 4 ", "5\n", "\n", "\r\n", "\n\n\n", '"', '""', '"""', '","', "a,b", '"\n"',
    '\n"', '",\n,"', ";", "\t", "\\", '\\"', "'", "nan", "1e400", "é", "\u2028", "\x0b", "=1+1",
    "x" * 50, "\n" * 50, '"' * 50, "1\n2", "7\r\n7,7\r\n7", '6"', '"6', "#", "a\nb",
]  # fmt: skip
CELLS = st.sampled_from(HOSTILE) | st.text(alphabet='"\n\r,;1 x', max_size=6)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12)
DIALECTS = st.fixed_dictionaries(
    {
        "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
        "delimiter": st.sampled_from([",", ";", "\t", "|"]),
    }
)
LIGHT = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
COMPRESS = {
    "csv": bytes,
    "csv.gz": gzip.compress,
    "csv.bz2": bz2.compress,
    "csv.zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}


def written(folder, rows, kind="csv", **dialect):
    file = io.StringIO(newline="")
    writer = csv.writer(file, **dialect)
    writer.writerow(["a", "b", "c\nwith a break"])
    writer.writerows(rows)
    path = folder / f"d.{kind}"
    path.write_bytes(COMPRESS[kind](file.getvalue().encode()))
    return path


def read(path, delimiter=",", missing="drop", threads=None):
    """The integer sum of column b, the records that have it, and all records."""
    source = open_source(mh.csv_data(path, delimiter=delimiter), ["b"], 1)
    counted = source.rows()
    with paced(threads=threads):
        found = exact_sums(source, LATTICE, missing=missing)
    everything = exact_sums(source, LATTICE, missing="center")
    assert everything.rows == counted
    return np.array([*found.total, found.rows, counted], object)


@given(ROWS, st.integers(0, 11), st.tuples(CELLS, CELLS, CELLS), DIALECTS)
@LIGHT
def test_one_record_more_adds_that_record_alone(tmp_path, rows, place, one, dialect):
    delimiter = dialect["delimiter"]
    with pytest.MonkeyPatch.context() as patch:
        # Blocks and units of work begin and end anywhere, also inside of cells.
        patch.setattr(text_file, "PARTITION_BYTES", 37)
        patch.setattr(text_file, "BLOCK_BYTES", 11)
        without = read(written(tmp_path, rows, **dialect), delimiter, threads=3)
        more = [*rows[:place], one, *rows[place:]]
        beside = read(written(tmp_path, more, **dialect), delimiter, threads=3)
    alone = read(written(tmp_path, [one], **dialect), delimiter)
    assert (beside == without + alone).all()
    assert alone[-1] == 1
    assert without[-1] == len(rows)


@given(ROWS, DIALECTS, st.sampled_from(sorted(COMPRESS)))
@LIGHT
def test_rows_are_those_that_pandas_reads(tmp_path, rows, dialect, kind):
    delimiter = dialect["delimiter"]
    path = written(tmp_path, rows, **dialect)
    frame = pd.read_csv(path, sep=delimiter, dtype=str, keep_default_na=False)
    compressed = written(tmp_path, rows, kind, **dialect)
    assert read(compressed, delimiter)[-1] == len(frame) == len(rows)


@given(ROWS)
@LIGHT
def test_text_with_line_breaks_is_matched_as_it_is(tmp_path, rows):
    path = written(tmp_path, rows)
    labels = sorted({row[0] for row in rows if "\0" not in row[0]})
    categories = categories_of({"a": labels}, missing="other")
    counts = open_cells(path, ["a"], categories).count([(0,)])[0,]
    expected = [sum(row[0] == label for row in rows) for label in labels]
    assert counts.tolist() == [*expected, 0]


def test_one_cell_with_a_thousand_line_breaks_is_one_record(tmp_path, monkeypatch):
    rows = [["", str(20 + place % 30), ""] for place in range(200)]
    rows.insert(77, ["x", "35", "\n".join(["90,90,90"] * 1000)])
    for kind in COMPRESS:
        release = mh.mean(
            written(tmp_path, rows, kind), domain={"b": (0, 100)}, privacy=mh.ZCDP(rho=1)
        )
        assert release.n == 201
    assert read(written(tmp_path, rows))[1:].tolist() == [201, 201]


def test_a_quoted_record_longer_than_memory_should_hold_is_one_missing_record(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(text_file, "LONGEST_RECORD", 1 << 16)
    monkeypatch.setattr(text_file, "BLOCK_BYTES", 1 << 14)
    good = [["x", "1", "y"], ["x", "2", "y\nz"]]
    long = ["x", "3", "7,7,7\n" * (1 << 14)]
    for kind in ("csv", "csv.zst"):
        path = written(tmp_path, [good[0], long, good[1]], kind)
        assert read(path)[1:].tolist() == [2, 3]


def test_an_open_quote_costs_its_own_line_even_in_a_file_without_other_quotes(
    tmp_path, monkeypatch
):
    lines = [b"a,b", *(b"%d,1" % place for place in range(5000))]
    lines.insert(40, b'"7,1')
    for kind in ("csv", "csv.zst"):
        path = tmp_path / f"stray.{kind}"
        path.write_bytes(COMPRESS[kind](b"\n".join(lines) + b"\n"))
        for longest in (1 << 24, 1 << 9):
            monkeypatch.setattr(text_file, "LONGEST_RECORD", longest)
            monkeypatch.setattr(text_file, "BLOCK_BYTES", longest)
            assert read(path)[1:].tolist() == [5000, 5001]
