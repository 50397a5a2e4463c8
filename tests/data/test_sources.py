"""Sources: what is accepted, what is refused and how, and that all kinds agree."""

from __future__ import annotations

import io
import os
import shutil
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
from pyarrow import feather, orc

from muhat.data import exact_sums, open_source
from muhat.domains.lattice import BallLattice, BoxLattice, Lattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed

CANARY = "canary-81549300"
NAMES = ["a", "b", "c"]
LATTICES: list[Lattice] = [
    BoxLattice.around([-1, -2, -0.5], [2, 1, 3]),
    BallLattice.around([0.1, 0.0, 0.2], 1.3),
    BallLattice.whitened([0.1, 0.0, 0.2], [[1.0], [0.3, 2.0], [0.1, -0.7, 0.5]]),
]


def records() -> np.ndarray[Any, np.dtype[np.float64]]:
    made = np.random.default_rng(20).standard_normal((3000, 3))
    poison = [[np.nan, 1, 1], [np.inf, 0, 0], [0, -np.inf, 1], [-0.0, 5e-324, 1e308]]
    made[:4] = poison
    made[4] = [-1e308, 1e308, 1e308]
    return made


class Stream:
    """An object that knows nothing but the Arrow stream protocol."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class OddPath:
    """A path that is not text."""

    def __init__(self, path: Any) -> None:
        self.path = path

    def __fspath__(self) -> Any:
        return self.path


class OneShot(Stream):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if self.table is None:
            raise RuntimeError(CANARY)
        table, self.table = self.table, None
        return table.__arrow_c_stream__(requested_schema)


def write_csv(path: Path, made: Any, names: list[str] = NAMES) -> Path:
    lines = [",".join(names), *(",".join(map(repr, record)) for record in made.tolist())]
    path.write_text("\n".join(lines) + "\n")
    return path


def all_kinds(folder: Path) -> dict[str, Any]:
    made = records()
    columns = {name: made[:, j] for j, name in enumerate(NAMES)}
    table = pa.table(columns)
    chunked = pa.concat_tables([table.slice(0, 700), table.slice(700, 1), table.slice(701)])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(made.ravel()), 3)
    pq.write_table(table, folder / "x.parquet", row_group_size=700)
    pq.write_table(pa.table({"v": vectors}), folder / "v.parquet")
    feather.write_feather(table, folder / "x.feather")
    orc.write_table(table, folder / "x.orc", stripe_size=1, batch_size=700)
    with (
        pa.OSFile(str(folder / "x.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=900)
    for part in range(3):
        pq.write_table(table.slice(part * 1000, 1000), folder / f"part-{part}.parquet")
    frame = pd.DataFrame(columns)
    return {
        "numpy": made,
        "fortran": np.asfortranarray(made),
        "big-endian": made.astype(">f8"),
        "strided": np.repeat(made, 2, axis=0)[::2],
        "dict": columns,
        "dict of lists": {name: values.tolist() for name, values in columns.items()},
        "list of records": made.tolist(),
        "pandas": frame,
        "pandas nullable": frame.astype("Float64"),
        "pandas arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.DataFrame(columns),
        "lazy polars": pl.DataFrame(columns).lazy(),
        "lazy polars file": pl.scan_parquet(folder / "x.parquet"),
        "arrow": chunked,
        "arrow slice": pa.concat_tables([table, table]).slice(3000),
        "record batch": table.to_batches()[0],
        "stream": Stream(chunked),
        "vectors": pa.table({"v": pa.chunked_array([vectors[:10], vectors[10:]])}),
        "parquet": folder / "x.parquet",
        "parquet vectors": str(folder / "v.parquet"),
        "parquet parts": str(folder / "part-*.parquet"),
        "list of files": [folder / f"part-{part}.parquet" for part in range(3)],
        "feather": folder / "x.feather",
        "arrow stream": folder / "x.arrow",
        "orc": folder / "x.orc",
        "csv": write_csv(folder / "x.csv", made),
    }


@pytest.mark.parametrize("missing", ["center", "drop"])
def test_sum_is_the_same_for_every_kind_of_source(tmp_path: Path, missing: str) -> None:
    kinds = all_kinds(tmp_path)
    for lattice in LATTICES:
        expected = exact_sums(open_source(kinds["numpy"], dim=3), lattice, missing=missing)
        for name, data in kinds.items():
            source = open_source(data, dim=3)
            assert source.dim == 3
            assert exact_sums(source, lattice, missing=missing) == expected, name
            assert source.rows() == 3000, name


def test_columns_are_chosen_and_ordered_by_name(tmp_path: Path) -> None:
    kinds = all_kinds(tmp_path)
    lattice = BoxLattice.around([-0.5, -1.0], [3.0, 2.0])
    expected = exact_sums(open_source(records(), [2, 0], 2), lattice)
    for name in (
        *("dict", "pandas", "polars", "lazy polars", "lazy polars file", "arrow", "stream"),
        *("parquet", "feather", "orc", "csv"),
    ):
        source = open_source(kinds[name], ["c", "a"], 2)
        assert source.columns == ("c", "a")
        assert exact_sums(source, lattice) == expected, name


def test_of_a_lazy_frame_only_the_columns_asked_for_are_collected_and_once() -> None:
    collected = []

    def seen(name: str) -> Any:
        def look(values: pl.Series) -> pl.Series:
            collected.append(name)
            return values

        return pl.col(name).map_batches(look, return_dtype=pl.Float64)

    frame = pl.LazyFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "^.*$": [5.0, 6.0]})
    source = open_source(frame.with_columns(seen("a"), seen("b")), ["b", "^.*$"], 2)
    assert source.rows() == 2
    assert collected == []
    lattice = BoxLattice.around([0.0, 0.0], [8.0, 8.0])
    sums = exact_sums(source, lattice)
    assert sums == exact_sums(source, lattice)
    assert sums == exact_sums(open_source(np.array([[3.0, 5.0], [4.0, 6.0]])), lattice)
    assert collected == ["b"]


def test_a_lazy_frame_that_fails_says_nothing_of_why() -> None:
    def stumble(values: pl.Series) -> pl.Series:
        raise ValueError(CANARY)

    frame = pl.LazyFrame({"a": [1.0, 2.0]})
    broken = frame.with_columns(pl.col("a").map_batches(stumble, return_dtype=pl.Float64))
    source = open_source(broken, ["a"], 1)
    with pytest.raises(SourceFailed) as failed:
        exact_sums(source, BoxLattice.around([0.0], [8.0]))
    assert CANARY not in str(failed.value)
    assert failed.value.__context__ is None
    lost = open_source(frame.filter(pl.col("a").map_batches(stumble, return_dtype=pl.Boolean)))
    with pytest.raises(InvalidInput, match="could not be read to the end") as refused:
        lost.rows()
    assert refused.value.__context__ is None


def test_the_rows_of_a_lazy_frame_are_counted_without_any_column() -> None:
    assert open_source(pl.LazyFrame({"a": ["x", "y"]})).rows() == 2


def one(data: Any, low: float, high: float) -> int:
    """The sum of one column in steps of its lattice."""
    (total,) = exact_sums(open_source(data, dim=1), BoxLattice.around([low], [high])).total
    return total


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
             pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(9, 2),
             pa.decimal256(60, 2), pa.dictionary(pa.int8(), pa.int64()),
             pa.dictionary(pa.int32(), pa.float64()), pa.decimal32(9, 2), pa.decimal64(12, 2)]
)  # fmt: skip
def test_every_numeric_type_gives_the_same_integers(kind: pa.DataType, tmp_path: Path) -> None:
    plain = [0, 3, None, 100, 7, 1, None, 50]
    expected = one(np.array([np.nan if value is None else value for value in plain]), 0, 20)
    base = kind.value_type if pa.types.is_dictionary(kind) else kind
    exact: list[Any] = [
        value if value is None or not pa.types.is_decimal(base) else Decimal(value)
        for value in plain
    ]
    array = pa.array(exact, base)
    array = array.dictionary_encode().cast(kind) if base is not kind else array
    assert one(pa.table({"x": array}), 0, 20) == expected
    assert one(pa.table({"x": pa.concat_arrays([array, array])}).slice(3, 8), 0, 20) == expected
    if not pa.types.is_float16(kind) and str(kind) != "decimal256(60, 2)":
        pq.write_table(pa.table({"x": array}), tmp_path / "x.parquet")
        assert one(tmp_path / "x.parquet", 0, 20) == expected
    feather.write_feather(pa.table({"x": array}), tmp_path / "x.feather")
    assert one(tmp_path / "x.feather", 0, 20) == expected


def test_booleans_are_zero_and_one() -> None:
    lattice = BoxLattice.around([0], [1])
    expected = (3 * lattice.upper[0] + lattice.lower[0],)
    for data in (
        np.array([True, False, True, True]),
        pa.table({"x": [True, False, True, True, None]}),
        pd.DataFrame({"x": pd.array([True, False, True, True, None], "boolean")}),
        pl.DataFrame({"x": [True, False, True, True, None]}),
    ):
        assert exact_sums(open_source(data, dim=1), lattice).total == expected


def test_whole_numbers_beyond_floats_are_kept_exactly(tmp_path: Path) -> None:
    low = 2**60
    values = [low + 1, low + 3, low + 777, low - 5, low + 2000]
    lattice = BoxLattice.around([low], [low + 1000])
    clipped = sum(min(max(value, low), low + 1000) for value in values)
    center = 5 * int(lattice.center[0])
    exact = (clipped - center) / lattice.grid[0]
    pq.write_table(pa.table({"x": values}), tmp_path / "x.parquet")
    nullable = pd.DataFrame({"x": pd.array([*values, None], "Int64")})
    for data in (
        np.array(values),
        np.array(values, np.uint64),
        pa.table({"x": [*values, None]}),
        pa.table({"x": pa.array([Decimal(value) for value in values])}),
        nullable,
        pl.DataFrame({"x": values}),
        tmp_path / "x.parquet",
    ):
        assert exact_sums(open_source(data, dim=1), lattice).total == (exact,)


def test_missing_vectors_and_missing_parts_of_them(tmp_path: Path) -> None:
    rows = [[0.5, None, 1.0], None, [1.0, 2.0, 3.0], [np.nan, 1.0, 0.0]]
    table = pa.table({"v": pa.array(rows, pa.list_(pa.float64(), 3))})
    plain = np.array([[np.nan] * 3 if row is None else [np.nan if v is None else v for v in row]
                      for row in rows], float)  # fmt: skip
    feather.write_feather(table, tmp_path / "v.feather")
    for lattice in LATTICES:
        expected = exact_sums(open_source(plain, dim=3), lattice)
        source = open_source(table, ["v"], 3)
        assert source.columns == ("v[0]", "v[1]", "v[2]")
        assert exact_sums(source, lattice) == expected
        assert exact_sums(open_source(table.slice(0), dim=3), lattice) == expected
        assert exact_sums(open_source(tmp_path / "v.feather", dim=3), lattice) == expected


def test_lists_are_read_one_by_one_and_never_raise() -> None:
    values = [1.0, 2, True, None, CANARY, 10**400, -(10**400), Decimal("0.5"), 3 + 1j, [1], np.nan]
    lattice = BoxLattice.around([0], [1])
    sums = exact_sums(open_source(values, dim=1), lattice)
    assert sums.rows == len(values)
    assert sums.total == (5 * lattice.upper[0] + lattice.lower[0],)
    rows = [[1, 1], [1, CANARY], [1], 7, (1, 0), None, [1, 1, 1]]
    pair = BoxLattice.around([0, 0], [1, 1])
    sums = exact_sums(open_source(rows, dim=2), pair)
    assert sums.rows == len(rows)
    assert sums.total == (3 * pair.upper[0], 0)
    assert exact_sums(open_source(rows, [1], 1), lattice).rows == len(rows)


def test_a_record_of_one_number_is_that_number() -> None:
    lattice = BoxLattice.around([0], [1])
    masked = np.ma.masked_array([1.0], [True])
    odd = [np.array(1.0), np.array([[1.0]]), [1, 1], [], [[1]], masked]
    rows: list[Any] = [1.0, [1.0], (1.0,), np.array([1.0]), np.array([1], np.int8), *odd]
    for data in (rows, {"x": rows}):
        assert exact_sums(open_source(data, dim=1), lattice).total == (5 * lattice.upper[0],)
    assert exact_sums(open_source(rows, [0], 1), lattice).total == (6 * lattice.upper[0],)
    assert exact_sums(open_source(rows, [1], 1), lattice).total == (lattice.upper[0],)
    assert open_source([[1, 2, 3]], [2, 0]).columns == ("2", "0")


def test_subclasses_of_arrays_are_read_as_arrays() -> None:
    made = records()
    expected = exact_sums(open_source(made, dim=3), LATTICES[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.matrix(made)
    for data in (matrix, matrix.T.copy().T, made.view(np.recarray)):
        assert exact_sums(open_source(data, dim=3), LATTICES[0]) == expected


def test_repeated_names_are_told_apart_by_their_order(tmp_path: Path) -> None:
    arrays = [pa.array([1.0, 2.0]), pa.array(["u", "v"]), pa.array([0.5, 0.5]), pa.array([0.0, 1])]
    table = pa.table(arrays, names=["x", "x", "x", "y"])
    moved = pa.table([arrays[index] for index in (3, 0, 1, 2)], names=["y", "x", "x", "x"])
    pq.write_table(table, tmp_path / "x.parquet")
    pq.write_table(moved, tmp_path / "moved.parquet")
    feather.write_feather(table, tmp_path / "x.feather")
    orc.write_table(table, tmp_path / "x.orc")
    lattice = BoxLattice.around([0] * 3, [4] * 3)
    expected = exact_sums(open_source(table, dim=3), lattice)
    for name in ("x.parquet", "x.feather", "x.orc"):
        assert exact_sums(open_source(tmp_path / name, dim=3), lattice) == expected
        with pytest.raises(InvalidInput, match="more than once"):
            open_source(tmp_path / name, ["x"], 1)
    both = open_source([tmp_path / "x.parquet", tmp_path / "moved.parquet"], dim=3)
    assert exact_sums(both, lattice).total == tuple(2 * part for part in expected.total)
    with pytest.raises(InvalidInput, match="more than once"):
        open_source({1: [1.0], "1": [2.0]}, ["1"], 1)


def test_a_name_with_a_dot_is_a_column_of_an_orc_file(tmp_path: Path) -> None:
    nested = pa.array([{"b": 7.0}, {"b": 7.0}])
    orc.write_table(pa.table({"a": nested, "a.b": [1.0, 2.0]}), tmp_path / "x.orc")
    lattice = BoxLattice.around([0], [4])
    found = exact_sums(open_source(tmp_path / "x.orc", ["a.b"], 1), lattice)
    assert found == exact_sums(open_source({"a.b": [1.0, 2.0]}), lattice)


def test_types_that_arrow_does_not_know_are_in_nobodys_way() -> None:
    frame = pl.DataFrame({"a": [1.0], "^a$": [2.0], "b": pl.Series([1], dtype=pl.Int128)})
    assert open_source(frame, dim=2).columns == ("a", "^a$")
    assert open_source(frame, ["^a$"], 1).columns == ("^a$",)
    assert open_source(frame.select("b")).rows() == 1
    with pytest.raises(InvalidInput, match="'b' has type Int128"):
        open_source(frame, ["b"], 1)


def test_a_series_is_named_by_itself_or_x() -> None:
    for name, expected in ((None, "x"), ("age", "age"), (0, "0"), (pd.NA, "<NA>")):
        assert open_source(pd.Series([1.0], name=name), dim=1).columns == (expected,)


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"x": ["1", CANARY]}),
        pa.table({"x": pa.array([1, 2], pa.date32())}),
        pa.table({"x": pa.array([1, 2], pa.timestamp("us"))}),
        pa.table({"x": pa.array([1, 2], pa.duration("s"))}),
        pa.table({"x": pa.array([1, 2], pa.time32("s"))}),
        pa.table({"x": [[1.0], [2.0]]}),
        pa.table({"x": [{"y": 1.0}]}),
        pa.table({"x": [None, None]}),
        pa.table({"x": pa.array(["1", CANARY]).dictionary_encode()}),
        pd.DataFrame({"x": ["1", CANARY]}),
        pd.DataFrame({"x": [1.0, CANARY]}),
        pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}),
        pd.DataFrame({"x": pd.Categorical(["1", CANARY])}),
        pl.DataFrame({"x": ["1", CANARY]}),
        np.array(["1", CANARY]),
        np.array([1.0, CANARY], object),
        np.array([1 + 1j]),
        np.array(["2020-01-01"], "M8[D]"),
        {"x": np.array(["1", CANARY])},
        {"x": 1.0},
    ],
)
def test_other_types_are_refused_by_type(data: Any) -> None:
    for columns in (None, ["x"]):
        with pytest.raises(InvalidInput) as caught:
            open_source(data, columns if not isinstance(data, np.ndarray) else None, 1)
        assert CANARY not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_text_column_of_a_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"age": [1.0], "name": [CANARY]}), path)
    with pytest.raises(InvalidInput, match="'name' has type string") as caught:
        open_source(path, ["name"], 1)
    assert CANARY not in str(caught.value)
    assert open_source(path, None, 1).columns == ("age",)


@pytest.mark.parametrize(
    ("data", "columns", "dim", "words"),
    [
        (pa.table({"salary": [1.0], "age": [2.0]}), ["salry"], 1, "Did you mean 'salary'"),
        (pa.table({"salary": [1.0], "age": [2.0]}), ["zzz"], 1, "'salary', 'age'"),
        (pa.table({"salary": [1.0], "age": [2.0]}), None, 1, "2 numeric columns"),
        (pa.table({"salary": [1.0], "age": [2.0]}), ["age", "age"], 2, "repeat"),
        (pa.table({"salary": [1.0], "age": [2.0]}), ["age"], 2, "dimension 2"),
        (pa.table({"salary": [1.0], "age": [2.0]}), [], 1, "at least one"),
        (pa.table({"salary": [1.0], "age": [2.0]}), 1.5, 1, "list of names"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), ["a"], 1, "more than once"),
        (np.zeros((2, 3)), None, 2, "dimension 2"),
        (np.zeros((2, 3)), [0, 0], 2, "repeat"),
        (np.zeros((2, 3)), [3], 1, "below 3"),
        (np.zeros((2, 3)), [-1], 1, "at least 0"),
        (np.zeros((2, 3)), ["a"], 1, "numbers for an array"),
        (np.zeros((2, 0)), None, 1, "at least one column"),
        (np.zeros(3), None, 2, "dimension 2"),
        (np.zeros(3), [1], 1, "below 1"),
        (np.zeros((1, 1, 1)), None, 1, "one or two dimensions"),
        (np.zeros(()), None, 1, "one or two dimensions"),
        (np.ma.masked_array([1.0], [True]), None, 1, "masked"),
        ({"a": np.ma.masked_array([1.0], [True])}, None, 1, "'a' must not be a masked"),
        ({}, None, None, "at least one column"),
        ({"a": [1.0], "b": [1.0, 2.0]}, ["a"], 1, "one length"),
        (3.0, None, 1, "got float"),
        (None, None, 1, "got NoneType"),
        (pl.LazyFrame({"a": ["x"]}), ["a"], 1, "numbers"),
        (pl.LazyFrame({"a": [1.0]}), ["b"], 1, "not in the data"),
        (pl.scan_csv("no such file.csv"), None, 1, "columns that polars can tell"),
        (pl.LazyFrame({"a": [1.0]}).select("b"), None, 1, "columns that polars can tell"),
        (iter([1.0]), None, 1, "more than once"),
        ((x for x in [1.0]), None, 1, "more than once"),
        (io.BytesIO(b"a\n1\n"), None, 1, "more than once"),
        (pa.table({"a": [1.0]}).to_reader(), None, 1, "more than once"),
        (OneShot(pa.table({"a": [1.0]})), None, 1, "more than once"),
    ],
)
def test_bad_arguments_are_refused_with_a_hint(
    data: Any, columns: Any, dim: int, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        open_source(data, columns, dim)
    assert caught.value.__context__ is None


def test_bad_paths_are_refused_with_a_hint(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1" + CANARY.encode() + b"PAR1")
    damaged_gzip = tmp_path / "damaged.csv.gz"
    damaged_gzip.write_bytes(b"nothing")
    damaged_feather = tmp_path / "damaged.feather"
    damaged_feather.write_bytes(b"nothing")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "x.txt").write_text("a\n1\n")
    os.mkfifo(tmp_path / "pipe.csv")
    for data, words in [
        (tmp_path / "none.csv", "does not exist"),
        (str(tmp_path / "none-*.csv"), "no file matches"),
        (tmp_path, "directory"),
        ([tmp_path / "folder.csv"], "directory"),
        ([tmp_path / "none.csv"], "does not exist"),
        (tmp_path / "x.txt", "must end in"),
        (damaged, "damaged"),
        (damaged_gzip, "damaged"),
        (damaged_feather, "damaged"),
        ([CANARY, CANARY], "must be a path"),
        ("~nobody-of-that-name/x.csv", "does not exist"),
        ("~nobody-of-that-name/*.csv", "no file matches"),
        (["~nobody-of-that-name/x.csv"], "does not exist"),
        ("x" * 5000 + ".csv", "does not exist"),
        (["x" * 5000 + ".csv"], "does not exist"),
        ("\0.csv", "does not exist"),
        ("\0/*.csv", "no file matches"),
        ("\ud800.csv", "does not exist"),
        (tmp_path / "pipe.csv", "not a regular file"),
        (str(tmp_path / "pi*.csv"), "not a regular file"),
        (OddPath(b"x.csv"), "data must be a path of text"),
        ([OddPath(b"x.csv")], r"data\[0\] must be a path of text"),
        (OddPath(7), "data must be a path of text"),
    ]:
        with pytest.raises(InvalidInput, match=words) as caught:
            open_source(data, None, 1)
        assert CANARY not in str(caught.value)
        assert caught.value.__context__ is None


def test_no_file_is_read_twice_by_whatever_name(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "1.csv", records())
    (tmp_path / "2.csv").symlink_to(path)
    os.link(path, tmp_path / "3.csv")
    for name in ("1.csv", "../" + tmp_path.name + "/1.csv", "2.csv", "3.csv"):
        with pytest.raises(InvalidInput, match="same file"):
            open_source([path, tmp_path / name], ["a"], 1)
    with pytest.raises(InvalidInput, match="same file"):
        open_source(str(tmp_path / "*.csv"), ["a"], 1)
    shutil.copy(path, tmp_path / "4.csv")
    assert open_source([path, tmp_path / "4.csv"], ["a"], 1).rows() == 6000


def test_files_read_together_must_have_the_same_columns(tmp_path: Path) -> None:
    made = records()
    first = write_csv(tmp_path / "1.csv", made[:10])
    swapped = write_csv(tmp_path / "2.csv", made[10:20][:, [1, 0, 2]], ["b", "a", "c"])
    other = write_csv(tmp_path / "3.csv", made[:10], ["a", "b", "d"])
    pq.write_table(pa.table({"a": [1], "b": [2.0], "c": [True]}), tmp_path / "4.parquet")
    pq.write_table(pa.table({"a": [CANARY], "b": [2.0], "c": [1.0]}), tmp_path / "5.parquet")
    lattice = LATTICES[0]
    together = exact_sums(open_source([first, swapped], NAMES, 3), lattice)
    assert together == exact_sums(open_source(made[:20], dim=3), lattice)
    mixed = open_source([first, tmp_path / "4.parquet"], NAMES, 3)
    assert mixed.rows() == exact_sums(mixed, lattice).rows == 11
    with pytest.raises(InvalidInput, match="other columns"):
        open_source([first, other], ["a"], 1)
    with pytest.raises(InvalidInput, match="type string"):
        open_source([first, tmp_path / "5.parquet"], NAMES, 3)


def test_a_file_that_changes_between_passes_is_noticed(tmp_path: Path) -> None:
    made = records()
    csv = write_csv(tmp_path / "x.csv", made)
    parquet = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": made[:, 0]}), parquet)
    for path, columns in ((csv, ["a"]), (parquet, ["a"])):
        source = open_source(path, columns, 1)
        lattice = BoxLattice.around([0], [1])
        exact_sums(source, lattice)
        status = path.stat()
        content = path.read_bytes()
        path.write_bytes(content + b"0\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        with pytest.raises(DataChanged):
            exact_sums(source, lattice)
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        with pytest.raises(DataChanged):
            source.rows()
        path.unlink()
        with pytest.raises(DataChanged):
            source.check_unchanged()


def test_data_in_memory_that_grow_between_passes_are_noticed() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    source = open_source(frame, ["a"], 1)
    frame.loc[2] = [3.0]
    with pytest.raises(DataChanged):
        exact_sums(source, BoxLattice.around([0], [1]))
    stream = Stream(pa.table({"a": [1.0, 2.0]}))
    source = open_source(stream, ["a"], 1)
    assert source.rows() == 2
    stream.table = pa.table({"a": [1.0]})
    with pytest.raises(DataChanged):
        exact_sums(source, BoxLattice.around([0], [1]))


def test_a_damaged_row_group_fails_without_a_word_of_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.arange(10_000.0)}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[100:4000] = (CANARY.encode() * 400)[:3900]
    path.write_bytes(content)
    source = open_source(path, ["a"], 1)
    with pytest.raises(SourceFailed) as caught:
        exact_sums(source, BoxLattice.around([0], [1]))
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_without_a_dimension_everything_numeric_is_taken_and_rows_can_be_counted() -> None:
    table = pa.table({"name": ["x", "y"]})
    assert open_source(table).rows() == 2
    assert open_source(table).columns == ()
    assert open_source(pa.table({"name": ["x"], "a": [1]})).columns == ("a",)


def test_no_rows_are_zero_sums() -> None:
    for data in (np.zeros((0, 3)), pa.table({n: pa.array([], pa.float64()) for n in NAMES})):
        for lattice in LATTICES:
            sums = exact_sums(open_source(data, dim=3), lattice)
            assert (sums.total, sums.rows) == ((0, 0, 0), 0)


def test_opening_an_array_imports_no_engine() -> None:
    script = (
        "import sys, numpy, muhat.data as d; d.open_source(numpy.zeros(3)); "
        "print([m for m in ('pyarrow', 'pandas', 'polars', 'rich', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
