"""Tables into cells: the same counts from every kind of source, and nothing said of values."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import subprocess
import sys
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

from muhat.data import cell_kernel, memory, text_file
from muhat.data.base import paced
from muhat.data.categories import Categories, categories_of
from muhat.data.cell_kernel import CellTables, counted_together
from muhat.data.coding import Coder
from muhat.data.histogram import open_cells, require_every_record
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.records.columns import Integers

CANARY = "canary-93120077"
NAMES = ["sex", "code", "score", "flag"]
CELLS = {
    "sex": ["f", "m", "ü", "a\0b", "a,\"b'"],
    "code": [3, 0, 7, -2],
    "score": {"bins": [0, 0.1, 1, 2.5]},
    "flag": [False, True],
}
EVERY_SET = [axes for order in range(5) for axes in itertools.combinations(range(4), order)]


def count_cells(data, columns, categories, sets):
    return open_cells(data, columns, categories).count(sets)


def records() -> dict[str, list[Any]]:
    """Columns with everything in them: unknown, missing, Unicode, embedded NUL and commas."""
    rng = np.random.default_rng(40)
    texts = ["f", "m", "ü", "a\0b", "a,\"b'", "F", " f", "u\u0308", CANARY, None]
    codes = [3, 0, 7, -2, 4, 10**9, None]
    scores = [0.0, -0.0, 0.1, 0.05, 1.0, 2.5, 2.6, -1.0, math.nan, None]
    flags = [True, False, None]
    rows = 3000
    return {
        "sex": [texts[index] for index in rng.integers(len(texts), size=rows)],
        "code": [codes[index] for index in rng.integers(len(codes), size=rows)],
        "score": [scores[index] for index in rng.integers(len(scores), size=rows)],
        "flag": [flags[index] for index in rng.integers(len(flags), size=rows)],
    }


def expected(made: dict[str, list[Any]], missing: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The histogram, counted one record at a time."""
    extra = int(missing == "other")
    table = np.zeros((5 + extra, 4 + extra, 3 + extra, 2 + extra), np.int64)
    for sex, code, score, flag in zip(*made.values(), strict=True):
        cell: list[int | None] = [
            CELLS["sex"].index(sex) if sex in CELLS["sex"] else None,  # type: ignore[attr-defined]
            CELLS["code"].index(code) if code in CELLS["code"] else None,  # type: ignore[attr-defined]
            None,
            None if flag is None else int(flag),
        ]
        if score is not None and 0 <= score <= 2.5:
            cell[2] = 0 if score < 0.1 else 1 if score < 1 else 2
        if missing == "other":
            cell = [-1 if part is None else part for part in cell]
        if None not in cell:
            table[tuple(cell)] += 1  # type: ignore[arg-type]
    return table


class Stream:
    """An object that knows nothing but the Arrow stream protocol."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def write_csv(path: Path, made: dict[str, list[Any]], order: list[str] = NAMES) -> Path:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(order)
        for record in zip(*(made[name] for name in order), strict=True):
            writer.writerow(["" if value is None else value for value in record])
    return path


def all_kinds(folder: Path) -> dict[str, Any]:
    made = records()
    table = pa.table(made)
    chunked = pa.concat_tables([table.slice(0, 700), table.slice(700, 1), table.slice(701)])
    encoded = table.set_column(0, "sex", table["sex"].dictionary_encode())
    encoded = encoded.set_column(1, "code", table["code"].dictionary_encode())
    views = table.set_column(0, "sex", table["sex"].cast(pa.string_view()))
    raw = table.set_column(0, "sex", table["sex"].cast(pa.binary()))
    large = table.set_column(0, "sex", table["sex"].cast(pa.large_string()))
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in made.items()})
    objects = np.empty((3000, 4), object)
    for index, name in enumerate(NAMES):
        objects[:, index] = made[name]
    decimals = [None if x is None or math.isnan(x) else Decimal(repr(x)) for x in made["score"]]
    exact = table.set_column(2, "score", pa.array(decimals, pa.decimal128(38, 20)))
    exact = exact.set_column(1, "code", table["code"].cast(pa.decimal128(20, 0)))
    flags = [None if flag is None else str(flag).upper() for flag in made["flag"]]
    written = pa.table(
        {
            "sex": made["sex"],
            "code": [None if code is None else f" {code}.0" for code in made["code"]],
            "score": [None if score is None else f"{score!r}\t" for score in made["score"]],
            "flag": ["1" if flag == "TRUE" and row % 2 else flag for row, flag in enumerate(flags)],
        }
    )
    pq.write_table(table, folder / "x.parquet", row_group_size=700)
    pq.write_table(encoded, folder / "d.parquet")
    feather.write_feather(encoded, folder / "d.feather")
    with (
        pa.OSFile(str(folder / "x.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=900)
    parts = []
    for part in range(3):
        slices = {name: values[part * 1000 : part * 1000 + 1000] for name, values in made.items()}
        parts.append(folder / f"part-{part}.parquet")
        if part == 1:
            parts[-1] = write_csv(folder / "part-1.csv", slices, ["flag", "sex", "score", "code"])
        else:
            pq.write_table(pa.table(slices), parts[-1])
    known = ["f", "m", "ü", "a\0b", "a,\"b'", "F", " f", "u\u0308", CANARY]
    enumerated = pl.DataFrame(made).with_columns(pl.col("sex").cast(pl.Enum(known)))
    return {
        "dict of lists": made,
        "dict of arrays": {name: objects[:, index] for index, name in enumerate(NAMES)},
        "list of records": objects.tolist(),
        "numpy objects": objects,
        "pandas objects": frame,
        "pandas": pd.DataFrame(made),
        "pandas converted": pd.DataFrame(made).convert_dtypes(),
        "pandas arrow": pd.DataFrame(made).convert_dtypes(dtype_backend="pyarrow"),
        "pandas categorical": pd.DataFrame(made).astype({"sex": "category", "code": "category"}),
        "polars": pl.DataFrame(made),
        "polars categorical": pl.DataFrame(made).with_columns(pl.col("sex").cast(pl.Categorical)),
        "polars enum": enumerated,
        "arrow": chunked,
        "arrow slice": pa.concat_tables([table, table]).combine_chunks().slice(3000),
        "arrow dictionaries": encoded,
        "arrow dictionary slice": pa.concat_tables([encoded, encoded]).unify_dictionaries()
        .combine_chunks().slice(3000),
        "arrow views": views,
        "arrow bytes": raw,
        "arrow large": large,
        "arrow decimals": exact,
        "arrow texts": written,
        "record batch": table.to_batches()[0],
        "stream": Stream(chunked),
        "parquet": folder / "x.parquet",
        "parquet dictionaries": folder / "d.parquet",
        "feather": folder / "d.feather",
        "arrow stream": folder / "x.arrow",
        "csv": write_csv(folder / "x.csv", made),
        "csv gzipped": write_csv(folder / "z.csv.gz", made),
        "files of several kinds": parts,
    }  # fmt: skip


@pytest.mark.parametrize("missing", ["other", "drop"])
def test_counts_are_the_same_for_every_kind_of_source(tmp_path: Path, missing: str) -> None:
    full = expected(records(), missing)
    categories = categories_of(CELLS, missing=missing)
    assert 0 < full.sum() <= 3000
    for name, data in all_kinds(tmp_path).items():
        columns = range(4) if name in ("list of records", "numpy objects") else None
        source = open_cells(data, columns, categories)
        assert source.rows() == 3000, name
        assert source.shape == full.shape
        tables = source.count(EVERY_SET)
        for axes in EVERY_SET:
            others = tuple(axis for axis in range(4) if axis not in axes)
            assert np.array_equal(tables[axes], full.sum(axis=others)), (name, axes)
            assert tables[axes].dtype == np.int64
            assert tables[axes].shape == tuple(full.shape[axis] for axis in axes)


def test_columns_and_axes_come_in_the_order_asked_for(tmp_path: Path) -> None:
    full = expected(records(), "drop")
    categories = categories_of({name: CELLS[name] for name in NAMES[::-1]}, missing="drop")
    for name, data in all_kinds(tmp_path).items():
        columns: Any = NAMES[::-1]
        if name in ("list of records", "numpy objects"):
            columns = [3, 2, 1, 0]
        found = count_cells(data, columns, categories, [(0, 3), (2, 0, 1)])
        assert np.array_equal(found[0, 3], full.sum(axis=(1, 2)).T), name
        assert np.array_equal(found[2, 0, 1], full.sum(axis=0).transpose(0, 2, 1)), name


def test_other_sizes_of_partitions_threads_and_blocks_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = all_kinds(tmp_path)
    full = expected(records(), "other")
    categories = categories_of(CELLS)
    monkeypatch.setattr(memory, "PARTITION_VALUES", 401)
    monkeypatch.setattr(text_file, "PARTITION_BYTES", 997)
    monkeypatch.setattr(text_file, "BLOCK_BYTES", 129)
    monkeypatch.setattr("muhat.data.parquet._PARTITION_BYTES", 100)
    monkeypatch.setattr("muhat.data.parquet._MOST_BATCH_ROWS", 77)
    monkeypatch.setattr(cell_kernel, "BLOCK_ROWS", 19)
    for name in ("dict of lists", "pandas", "polars enum", "arrow", "parquet", "csv"):
        for threads in (1, 4):
            source = open_cells(kinds[name], None, categories)
            with paced(threads=threads):
                found = source.count([(0, 1, 2, 3)])
            assert np.array_equal(found[0, 1, 2, 3], full), (name, threads)


rows_of = st.lists(
    st.tuples(
        st.sampled_from(["f", "m", "", "é", "x", "\0", None]), st.integers(-2, 6), st.floats()
    ),
    max_size=40,
)


@given(rows_of, st.lists(st.integers(0, 40), max_size=4))
def test_counts_are_the_same_for_every_batch_split(rows: list[Any], cuts: list[int]) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    names = ["a", "b", "c"]
    kinds = [pa.string(), pa.int64(), pa.float64()]
    table = pa.table(
        [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)],
        names=names,
    )
    categories = categories_of({"a": ["m", "", "é"], "b": 5, "c": {"bins": [-1, 0, 1]}})
    whole = count_cells(table, None, categories, [(0, 1, 2), ()])
    assert whole[()] == len(rows)
    ends = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    chunks = [table.slice(a, b - a) for a, b in itertools.pairwise(ends)] or [table]
    split = count_cells(Stream(pa.concat_tables(chunks)), None, categories, [(0, 1, 2), ()])
    assert np.array_equal(whole[0, 1, 2], split[0, 1, 2])
    one_by_one = sum(
        (count_cells(table.slice(row, 1), None, categories, [(0, 1, 2)])[0, 1, 2]
         for row in range(len(rows))), np.zeros((4, 6, 3), np.int64)
    )  # fmt: skip
    assert np.array_equal(whole[0, 1, 2], one_by_one)
    lists = {name: list(column) for name, column in zip(names, columns, strict=True)}
    assert np.array_equal(
        whole[0, 1, 2], count_cells(lists, None, categories, [(0, 1, 2)])[0, 1, 2]
    )


def test_a_ragged_line_is_a_record_of_missing_values(tmp_path: Path) -> None:
    lines = [b"a,b", b"f,1", b"m,2,3", b'"f"x,1', b"f", b"", b'"f","1"', b"f ,1", b"\xff\xfe,1",
             b'"f\n",1', b"m, 1.0 ", b"f,nan", b"f,"]  # fmt: skip
    (tmp_path / "x.csv").write_bytes(b"\r\n".join(lines) + b"\r\n")
    for missing, other in (("other", 1), ("drop", 0)):
        categories = categories_of({"a": ["f", "m"], "b": [1, 2]}, missing=missing)
        source = open_cells(tmp_path / "x.csv", None, categories)
        table = source.count([(0, 1)])[0, 1]
        assert table[:2, :2].tolist() == [[2, 0], [1, 0]]
        assert table.sum() == (source.rows() if other else 3)
        if other:
            assert table[2, 2] == source.rows() - 3 - 3 - 2
            assert (table[0, 2], table[2, 0]) == (2, 3)


def test_text_in_a_csv_file_is_matched_byte_by_byte(tmp_path: Path) -> None:
    labels = ["é", "e\u0301", " é", "", "NA", "Ã©", "a\0"]
    cells = ["é", "e\u0301", " é", "", "NA", "Ã©", "a\0", "a", "null", '"é"', "�"]
    path = tmp_path / "x.csv"
    path.write_bytes("\n".join(["x,y", *(f"{cell},0" for cell in cells)]).encode() + b"\n\xe9,0\n")
    (categories,) = categories_of({"x": labels})
    counts = count_cells(path, None, [categories], [(0,)])[0,]
    assert counts.tolist() == [2, 1, 1, 1, 1, 1, 1, 4]


def test_many_labels_of_every_kind() -> None:
    size = 100_000
    rng = np.random.default_rng(41)
    picked = rng.integers(0, size, 5000)
    full = np.bincount(picked, minlength=size)
    labels = [f"label {index}" for index in range(size)]
    numbers = rng.permutation(size * 7)[:size]
    text = pa.array([labels[index] for index in picked])
    for data, cells in (
        (pa.table({"x": text}), labels),
        (pa.table({"x": text.dictionary_encode()}), labels),
        ({"x": text.to_numpy(zero_copy_only=False)}, labels),
        ({"x": numbers[picked]}, numbers),
        ({"x": numbers[picked].astype(float)}, numbers),
        ({"x": picked}, size),
    ):
        counts = count_cells(data, None, categories_of({"x": cells}, missing="drop"), [(0,)])
        assert np.array_equal(counts[0,], full)


def test_small_tables_are_counted_together_and_large_ones_alone() -> None:
    shape = (2,) * 12 + (1000, 1000, 500)
    sets = [*itertools.combinations(range(15), 2), (12, 13), ()]
    sets = list(dict.fromkeys(sets))
    holders = counted_together(shape, sets)
    assert set(holders) == set(sets)
    assert all(set(axes) <= set(holder) for axes, holder in holders.items())
    assert holders[0, 1] == tuple(range(12))
    assert holders[12, 13] == (12, 13)
    rng = np.random.default_rng(42)
    codes = [rng.integers(0, size, 500) for size in shape]
    tables = CellTables(shape, sets)
    tables.add(codes[:1] + codes[1:])
    found = tables.tables()
    for axes in sets:
        table = np.zeros([shape[axis] for axis in axes], np.int64)
        np.add.at(table, tuple(codes[axis] for axis in axes), 1)
        assert np.array_equal(found[axes], table if axes else 500)


def test_a_histogram_that_is_too_large_is_never_built() -> None:
    shape = (100,) * 20
    rng = np.random.default_rng(43)
    data = {str(index): rng.integers(0, 100, 50) for index in range(20)}
    categories = categories_of({str(index): 100 for index in range(20)}, missing="drop")
    found = count_cells(data, None, categories, [(3, 17), ()])
    assert found[()] == 50
    assert found[3, 17].sum() == 50
    source = open_cells(data, None, categories)
    assert source.shape == shape
    with pytest.raises(InvalidInput, match="written out"):
        source.count([tuple(range(20))])


def test_no_rows_are_tables_of_zeros(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n")
    categories = categories_of({"a": ["f"], "b": 3})
    empty = pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.int8())})
    for data in (empty, {"a": [], "b": []}, tmp_path / "x.csv", empty.to_pandas(),
                 pl.from_arrow(empty), np.zeros((0, 2), object), Stream(empty)):  # fmt: skip
        columns = [0, 1] if isinstance(data, np.ndarray) else None
        tables = count_cells(data, columns, categories, [(0, 1), ()])
        assert tables[0, 1].tolist() == [[0] * 4] * 2
        assert tables[()] == 0


def test_columns_without_a_type_are_missing_altogether() -> None:
    for data in (pa.table({"x": [None, None]}), pl.DataFrame({"x": [None, None]})):
        for cells in (["f"], 3, [True]):
            assert count_cells(data, None, categories_of({"x": cells}), [(0,)])[0,][-1] == 2


@pytest.mark.parametrize(
    ("data", "cells", "words"),
    [
        (pa.table({"x": [1]}), ["1"], "type int64, and its categories are text"),
        (pa.table({"x": [1.5]}), ["1"], "type double, and its categories are text"),
        (pa.table({"x": [True]}), ["true"], "type bool, and its categories are text"),
        (np.array([1]), ["1"], "categories are text"),
        (pd.DataFrame({"x": [1]}), ["1"], "categories are text"),
        (pl.DataFrame({"x": [1]}), ["1"], "categories are text"),
        (pa.table({"x": [CANARY]}), [2**60], r"beyond 2\^53"),
        (pa.table({"x": [CANARY]}), {"bins": [0, 2**60]}, r"beyond 2\^53"),
        (pa.table({"x": pa.array([1], pa.date32())}), ["a"], "cannot have categories"),
        (pa.table({"x": pa.array([1], pa.timestamp("s"))}), 3, "cannot have categories"),
        (pa.table({"x": [[1.0]]}), 3, "cannot have categories"),
        (pa.table({"x": pa.array([[1.0]], pa.list_(pa.float64(), 1))}), 3, "cannot have"),
        (pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}), ["a"], "cannot have categories"),
        (np.array(["2020-01-01"], "M8[D]"), ["a"], "cannot have categories"),
        (np.array([1j]), 3, "cannot have categories"),
        (np.ma.masked_array([1], [True]), 3, "masked"),
        (pa.table({"y": [CANARY]}), ["a"], "'x' is not in the data"),
        ({"x": 3}, ["a"], "1-D numpy array or a list"),
        ([CANARY], ["a"], "path"),
        (np.zeros((2, 2)), 3, "numbers for an array"),
    ],
)
def test_types_that_cannot_match_are_refused_before_anything_is_read(
    data: Any, cells: Any, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        open_cells(data, None, categories_of({"x": cells}))
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_whole_numbers_beyond_floats_are_refused_for_a_csv_file(tmp_path: Path) -> None:
    big = 2**60 + 1
    (tmp_path / "x.csv").write_text(f"x\n{big}\n{big + 1}\n")
    with pytest.raises(InvalidInput, match="Give them as text"):
        open_cells(tmp_path / "x.csv", None, categories_of({"x": [big]}))
    found = count_cells(tmp_path / "x.csv", None, categories_of({"x": [str(big)]}), [(0,)])
    assert found[0,].tolist() == [1, 1]
    kept = count_cells({"x": [big, big + 1, "no"]}, None, categories_of({"x": [big]}), [(0,)])
    assert kept[0,].tolist() == [1, 2]


@pytest.mark.parametrize(
    "sets", [[], [(2,)], [(-1,)], [(0, 0)], [(0, 1), (1, 0)], [(0,), (0,)], [(0.5,)], [("a",)]]
)
def test_sets_of_axes_that_are_none_are_refused(sets: Any) -> None:
    source = open_cells({"a": [1], "b": [1]}, None, categories_of({"a": 2, "b": 2}))
    with pytest.raises(InvalidInput):
        source.count(sets)


def test_columns_must_fit_the_categories() -> None:
    categories = categories_of({"a": 2, "b": 2})
    with pytest.raises(InvalidInput, match="as many as have categories"):
        open_cells({"a": [1], "b": [1]}, ["a"], categories)
    with pytest.raises(InvalidInput, match="all by text or all by number"):
        open_cells({"a": [1]}, None, [*categories, *categories_of({0: 2})])
    array = np.array([[0, 1], [1, 1]])
    for columns in (None, [0, 1]):
        assert open_cells(array, columns, categories).columns == ("0", "1")
    numbered = categories_of({1: 2, 0: 2}, missing="drop")
    assert count_cells(array, None, numbered, [(0, 1)])[0, 1].tolist() == [[0, 0], [1, 1]]
    assert count_cells(array[:, 1], None, categories[:1], [(0,)])[0,].tolist() == [0, 2, 0]
    series = pd.Series([0, 1, 1], name="a")
    assert count_cells(series, None, categories[:1], [(0,)])[0,].tolist() == [1, 2, 0]


def test_a_plan_for_a_public_total_refuses_categories_that_leave_records_out() -> None:
    require_every_record(categories_of({"a": 2, "b": {"labels": ["f"], "default": "f"}}))
    with pytest.raises(InvalidInput, match="'b' drop records"):
        require_every_record(categories_of({"a": 2, "b": {"size": 2, "missing": "drop"}}))


def test_a_source_that_fails_or_changes_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts = [f"{CANARY} {word:x}" for word in np.random.default_rng(44).integers(2**60, size=5000)]
    pq.write_table(pa.table({"a": texts}), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[100:4000] = (CANARY.encode() * 400)[:3900]
    path.write_bytes(content)
    source = open_cells(path, None, categories_of({"a": ["f"]}))
    with pytest.raises(SourceFailed) as caught:
        source.count([(0,)])
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None
    path.write_bytes(bytes(content) + b"0")
    with pytest.raises(DataChanged):
        source.count([(0,)])


def test_no_value_warns_or_raises_while_it_is_read(tmp_path: Path) -> None:
    signalling = np.array([0x7FA00000, 0x3F800000], np.uint32).view(np.float32)
    ends = pa.py_buffer(np.array([0, 2, 3], np.int32))
    invalid = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"\xff\xfef")])
    surrogates = pd.DataFrame({"x": pd.array(["\ud800", "f"], pd.StringDtype("python"))})
    poison: list[tuple[Any, Any]] = [
        ({"x": signalling}, 5),
        ({"x": signalling}, {"bins": [0, 2]}),
        ({"x": signalling.astype(object)}, {"bins": [0, 2]}),
        (pa.table({"x": invalid}), ["f"]),
        (pa.table({"x": invalid}), 5),
        (pa.table({"x": invalid.dictionary_encode()}), ["f"]),
        (surrogates, ["f"]),
        (surrogates, 5),
        ({"x": np.array(["\ud800", "f"])}, ["f"]),
        ({"x": np.array([1e308, -1e308, np.inf, 2.0**63, 5e-324])}, 5),
        ({"x": np.array([1e308, -1e308, np.inf, 2.0**63, 5e-324])}, [2**60, 1]),
        ({"x": np.array([2**63, 2**64 - 1], np.uint64)}, {"bins": [0, 2.5]}),
        (pa.table({"x": pa.array([Decimal(10) ** 75], pa.decimal256(76, 0))}), 5),
        (pa.table({"x": pa.array([Decimal(1).scaleb(-70)], pa.decimal256(76, 75))}), 5),
    ]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for data, cells in poison:
            for missing in ("other", "drop"):
                categories = categories_of({"x": cells}, missing=missing)
                source = open_cells(data, None, categories)
                assert 0 <= source.count([()])[()] <= source.rows()


def test_strings_of_numpy_are_text() -> None:
    (categories,) = categories_of({"x": ["f", "m"]})
    for values in (
        np.array(["f", "m", "x"]),
        np.array([b"f", b"m", b"x"]),
        np.array(["f", "m", "x"], np.dtypes.StringDType()),
        np.array(["f", "m", None], np.dtypes.StringDType(na_object=None)),
    ):
        assert count_cells({"x": values}, None, [categories], [(0,)])[0,].tolist() == [1, 1, 1]
        assert count_cells(values, None, [categories], [(0,)])[0,].tolist() == [1, 1, 1]


def test_decimals_are_whole_numbers_or_the_nearest_float() -> None:
    values = [Decimal("0.1"), Decimal("1"), Decimal("17.99999999999999999999"), Decimal(2**60 + 1)]
    for kind in (pa.decimal256(60, 20), pa.decimal256(76, 30)):
        array = pa.array(values, kind)
        labels: Any = [0.1, 1, 2**60, 2**60 + 1]
        counts = count_cells(pa.table({"x": array}), None, categories_of({"x": labels}), [(0,)])
        assert counts[0,].tolist() == [1, 1, 0, 1, 1]
        bins = {"bins": [0, 0.1, 18, 2**60 + 1, 2**61]}
        counts = count_cells(pa.table({"x": array}), None, categories_of({"x": bins}), [(0,)])
        assert counts[0,].tolist() == [0, 2, 1, 1, 0]


def test_counting_an_array_imports_no_engine() -> None:
    script = (
        "import sys, numpy; from muhat.data.histogram import open_cells; "
        "from muhat.data.categories import categories_of; "
        "open_cells(numpy.zeros(3), None, categories_of({0: 2})).count([(0,)]); "
        "print([m for m in ('pyarrow', 'pandas', 'polars', 'rich') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_categories_of_a_source_are_those_it_was_opened_with() -> None:
    categories = categories_of({"a": ["f"], "b": 2})
    source = open_cells({"a": ["f"], "b": [0]}, None, categories)
    assert source.categories == categories
    assert all(isinstance(each, Categories) for each in source.categories)


@pytest.mark.parametrize(
    "labels",
    [range(5), [3, 1, 7], [1, 2], [-1, 2], [-2, 0, 5], [1 - 2**53], [10**9, 1], [0.5, 2], [2**60]],
)
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_whole_numbers_looked_up_in_a_table_have_the_cells_of_the_same_numbers(labels, kind):
    (categories,) = categories_of({"x": labels})
    ends = np.iinfo(kind)
    values = [0, 1, 2, 3, 5, 7, 10**9, 2**53, 2**53 + 1, 2**60, ends.max, ends.max - 1, ends.min]
    values += [-1, -2, -3] if kind is np.int64 else [2**64 - 2, 2**64 - 1, 2**63]
    column = Integers(np.array(values, kind))
    some = Integers(column.values, np.arange(len(values)) % 3 > 0)
    table, plain = Coder(categories), Coder(categories)
    plain._lookup = None
    for each in (column, some, Integers(column.values[:0])):
        assert table.of_numbers(each).values.tolist() == plain.of_numbers(each).values.tolist()


def test_a_dictionary_is_looked_up_again_when_it_changes():
    (categories,) = categories_of({"x": ["a", "b", "c"]})
    coder = Coder(categories)
    remembering = coder.remembering()
    for words in (["a", "b"], ["a", "b"], ["b", "a"], ["c", "x"], ["c", None], ["a", "b"]):
        array = pa.array(words * 3).dictionary_encode()
        assert remembering.of_arrow(array).values.tolist() == coder.of_arrow(array).values.tolist()
    assert coder._seen is None
