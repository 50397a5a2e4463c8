"""Sums by group: the same integers as without groups, in one pass, for every kind of source."""

from __future__ import annotations

import itertools
import math
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

from muhat.data import exact_sums, groups, memory, open_source
from muhat.data.base import paced
from muhat.data.categories import categories_of
from muhat.data.groups import GroupSums, open_groups
from muhat.domains import box_kernel, box_loops
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.errors import InvalidInput, SourceFailed
from muhat.records.loader import WORTH_LOADING, Loader

CANARY = "canary-40021177"
LATTICE = BoxLattice.around([-1, 0], [2, 1000])
REGIONS = ["north", "süd", "east"]


def group_sums(data, columns, by, categories, lattice, missing="center") -> GroupSums:
    source = open_groups(data, columns, by, categories, dim=lattice.record_dim)
    return source.sums(lattice, missing=missing)


def records() -> dict[str, Any]:
    rng = np.random.default_rng(60)
    rows = 2500
    values = rng.standard_normal(rows)
    values[:5] = [np.nan, np.inf, 1e308, -np.inf, 5e-324]
    incomes = rng.integers(-100, 1500, rows)
    regions = [[*REGIONS, CANARY, None][index] for index in rng.integers(5, size=rows)]
    return {"x": values, "income": incomes, "region": regions}


def by_selection(made: dict[str, Any], missing: str, other: bool) -> GroupSums:
    """One pass a group, by the engine that knows no groups."""
    table = pa.table(made)
    totals, rows = [], []
    regions = np.array([region or "?" for region in made["region"]])
    masks = [regions == region for region in REGIONS]
    if other:
        masks.append(~np.isin(regions, REGIONS))
    for mask in masks:
        source = open_source(table.filter(pa.array(mask)), ["x", "income"], 2)
        sums = exact_sums(source, LATTICE, missing=missing)
        totals.append(sums.total)
        rows.append(sums.rows)
    return GroupSums(tuple(totals), tuple(rows))


@pytest.mark.parametrize("missing", ["center", "drop"])
@pytest.mark.parametrize("unknown", ["other", "drop"])
def test_groups_are_summed_as_each_would_be_alone(
    missing: str, unknown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = records()
    expected = by_selection(made, missing, unknown == "other")
    table = pa.table(made)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=300)
    lines = ["region,x,income"]
    for x, income, region in zip(*made.values(), strict=True):
        lines.append(f"{region or ''},{float(x)!r},{income}")
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    encoded = table.set_column(2, "region", table["region"].dictionary_encode())
    categories = categories_of({"region": REGIONS}, missing=unknown)
    kinds = {
        "dict": made,
        "pandas": pd.DataFrame(made),
        "polars": pl.DataFrame(made, nan_to_null=False),
        "arrow": table,
        "dictionary": encoded,
        "parquet": tmp_path / "x.parquet",
        "csv": tmp_path / "x.csv",
    }
    monkeypatch.setattr("muhat.data.parquet._PARTITION_BYTES", 1000)
    for values in (1 << 20, 333):
        monkeypatch.setattr(memory, "PARTITION_VALUES", values)
        monkeypatch.setattr(groups, "_BLOCK_ROWS", values)
        for name, data in kinds.items():
            source = open_groups(data, ["x", "income"], "region", categories, dim=2)
            assert source.rows() == 2500
            assert (source.columns, source.by) == (("x", "income"), ("region",))
            for threads in (1, 3):
                with paced(threads=threads):
                    sums = source.sums(LATTICE, missing=missing)
                assert sums == expected, name
    assert repr(expected) == f"GroupSums(groups={3 + (unknown == 'other')})"


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.floats(width=64)), max_size=30), st.integers(1, 30)
)
def test_sums_are_exact_for_every_batch_split(rows: list[Any], size: int) -> None:
    lattice = BoxLattice.around([-3.0], [5.0])
    table = pa.table(
        {
            "g": pa.array([row[0] for row in rows], pa.int8()),
            "x": pa.array([row[1] for row in rows], pa.float64()),
        }
    )
    chunks = [table.slice(start, size) for start in range(0, len(rows), size)] or [table]
    categories = categories_of({"g": 3})
    found = group_sums(pa.concat_tables(chunks), "x", "g", categories, lattice)
    total, count = [0] * 4, [0] * 4
    for code, value in rows:
        group = code if 0 <= code < 3 else 3
        alone = exact_sums(open_source(np.array([value]), dim=1), lattice)
        total[group] += alone.total[0]
        count[group] += 1
    assert found == GroupSums(tuple((each,) for each in total), tuple(count))


@pytest.mark.parametrize("label", ["few", "text", "many", "both"])
@pytest.mark.parametrize("missing", ["center", "drop"])
@pytest.mark.parametrize("unknown", ["other", "drop"])
def test_compiled_loops_make_the_same_sums(
    label: str, missing: str, unknown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = records()
    rows = len(made["x"])
    rng = np.random.default_rng(61)
    made["few"] = [*rng.integers(-1, 5, rows - 1).tolist(), None]
    made["many"] = rng.integers(0, 400, rows)
    made["both"] = made["few"]
    table = pa.table(made)
    table = table.set_column(0, "x", pa.array(made["x"], mask=rng.random(rows) < 0.1))
    # Batches of several lengths, one of them without rows.
    table = pa.concat_tables([table.slice(0, 900), table.slice(9, 0), table.slice(900)])
    cells = {"few": 4, "text": REGIONS, "many": 350, "both": 4}[label]
    by = {"text": ["region"], "both": ["few", "region"]}.get(label, [label])
    categories = categories_of(
        {name: REGIONS if name == "region" else cells for name in by}, missing=unknown
    )
    lattice = ColumnsLattice(LATTICE, squares=True, counts=True)

    def found() -> GroupSums:
        source = open_groups(table, ["x", "income"], by, categories, dim=2)
        return source.sums(lattice, missing=missing)

    plain = found()
    loader = Loader(box_loops.checked)
    assert loader.after(WORTH_LOADING) is not None
    monkeypatch.setattr(box_kernel, "_LOADER", loader)
    assert found() == plain
    if label in ("text", "few"):
        chosen = table["region" if label == "text" else "few"].to_pylist()
        known = [chosen.count(each) for each in (REGIONS if label == "text" else range(4))]
        if missing == "center":
            assert list(plain.rows[: len(known)]) == known


def test_extreme_sums_are_exact() -> None:
    rows = 100_000
    lattice = BoxLattice.around([0.0], [1.0], [0.0])
    low = BoxLattice.around([-1.0], [0.0], [0.0])
    codes = np.arange(rows) % 2
    for made, which in ((np.full(rows, 2.0), lattice), (np.full(rows, -2.0), low)):
        sums = group_sums(
            {"x": made, "g": codes}, "x", "g", categories_of({"g": 2}, missing="drop"), which
        )
        end = which.upper[0] or which.lower[0]
        assert sums.total == ((rows // 2 * end,),) * 2
        assert abs(end) == 2**45


def test_several_columns_make_a_group_a_combination() -> None:
    data = {"x": [1.0] * 6, "a": ["f", "m", "m", "f", "z", "m"], "b": [0, 1, 1, 2, 1, None]}
    categories = categories_of({"a": ["f", "m"], "b": 2})
    source = open_groups(data, ["x"], ["a", "b"], categories)
    assert source.groups == 9
    sums = source.sums(BoxLattice.around([0], [1]))
    assert sums.rows == (1, 0, 1, 0, 2, 1, 0, 1, 0)
    dropped = categories_of({"a": ["f", "m"], "b": 2}, missing="drop")
    sums = group_sums(data, ["x"], ["a", "b"], dropped, BoxLattice.around([0], [1]))
    assert sums.rows == (1, 0, 0, 2)


def test_ragged_lines_have_no_value_and_no_group(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x,g\n1,f\n1\n1,f,3\n\n,f\n1,z\n")
    lattice = BoxLattice.around([0], [1])
    for unknown, missing, rows in [
        ("other", "center", (2, 4)),
        ("other", "drop", (1, 1)),
        ("drop", "center", (2,)),
        ("drop", "drop", (1,)),
    ]:
        categories = categories_of({"g": ["f"]}, missing=unknown)
        source = open_groups(tmp_path / "x.csv", "x", "g", categories)
        assert source.rows() == 6
        sums = source.sums(lattice, missing=missing)
        assert sums.rows == rows
        assert sums.total[0] == (lattice.upper[0],)


def test_vectors_and_arrays_have_groups_too() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0.0, 0.5, 1.0]), 2)
    lattice = BoxLattice.around([0, 0], [1, 1])
    categories = categories_of({"g": 2}, missing="drop")
    table = pa.table({"v": vectors, "g": [1, 0]})
    sums = group_sums(table, ["v"], "g", categories, lattice)
    array = np.array([[1.0, 0.0, 1.0], [0.5, 1.0, 0.0]])
    for data in (array, array.tolist(), np.asfortranarray(array)):
        assert group_sums(data, [0, 1], [2], categories, lattice) == sums
    assert sums.rows == (1, 1)


@pytest.mark.parametrize(
    ("columns", "by", "words"),
    [
        (None, "g", "must be named"),
        (["x"], None, "must be named"),
        (["x"], ["g", "x"], "as many columns as have categories"),
        (["x", "g"], "g", "must not be one of the columns asked about; got 'g'"),
        (["y"], "g", "'y' is not in the data"),
        (["x"], "y", "'y' is not in the data"),
        (["x", "z"], "g", "got 3 for a domain of dimension 2"),
        (["t"], "g", "cannot be averaged"),
    ],
)
def test_bad_arguments_are_refused_with_a_hint(columns: Any, by: Any, words: str) -> None:
    data = pa.table({"x": [1.0], "z": [1.0], "g": [0], "t": [CANARY]})
    with pytest.raises(InvalidInput, match=words) as caught:
        open_groups(data, columns, by, categories_of({"g": 2}), dim=1)
    assert CANARY not in str(caught.value)


def test_other_lattices_and_options_are_refused() -> None:
    source = open_groups({"x": [1.0], "g": [0]}, "x", "g", categories_of({"g": 2}))
    with pytest.raises(InvalidInput, match="the domain 2"):
        source.sums(LATTICE)
    with pytest.raises(InvalidInput, match="missing"):
        source.sums(BoxLattice.around([0], [1]), missing="other")
    big = categories_of({"g": 2**31 - 1})
    with pytest.raises(InvalidInput, match="written out"):
        open_groups({"x": [1.0], "g": [0]}, "x", "g", big)


def test_a_damaged_file_fails_without_a_word_of_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    made = np.arange(10_000.0)
    pq.write_table(pa.table({"a": made, "g": [CANARY] * 10_000}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[100:4000] = (CANARY.encode() * 400)[:3900]
    path.write_bytes(content)
    source = open_groups(path, "a", "g", categories_of({"g": ["f"]}))
    with pytest.raises(SourceFailed) as caught:
        source.sums(BoxLattice.around([0], [1]))
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None


def test_many_groups_are_one_pass() -> None:
    rng = np.random.default_rng(62)
    size, rows = 10_000, 50_000
    codes, values = rng.integers(0, size, rows), rng.integers(0, 1025, rows)
    lattice = BoxLattice.around([0], [1024], [0])
    sums = group_sums({"x": values, "g": codes}, "x", "g", categories_of({"g": size}), lattice)
    expected = np.bincount(codes, values, size)
    step = lattice.upper[0] // 1024
    assert [total // step for (total,) in sums.total] == [*expected.astype(int).tolist(), 0]
    assert sums.rows == (*np.bincount(codes, minlength=size).tolist(), 0)
    assert all(total % step == 0 for (total,) in sums.total)
    assert math.isclose(sum(itertools.chain(*sums.total)) / step, values.sum())
