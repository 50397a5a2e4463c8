"""Tables of moments: the sums of a slow reference, for every split, engine and hostile value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
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

from muhat._integers import round_half_even
from muhat.data import memory, moment_kernel
from muhat.data.base import paced
from muhat.data.categories import categories_of
from muhat.data.moment_kernel import ValueKernel
from muhat.data.moments import Family, MomentColumn, MomentSource, open_moments, reach, step
from muhat.errors import InvalidInput, SourceFailed
from muhat.records.columns import Column, Decimals, Floats, Integers

CANARY = "canary-77120044"
REGIONS = ["north", "süd"]
COLUMNS = [
    MomentColumn("x", -1, 2),
    MomentColumn("income", 0, 1000),
    MomentColumn("tiny", 0.1, 0.1 + 1e-9),
]
CATEGORIES = categories_of(
    {"region": REGIONS, "income": {"bins": [0, 250, 500, 1000]}, "code": 3}, missing="drop"
)
FAMILIES = [
    Family((), ()),
    Family(("x",), ()),
    Family(("x",), ("x",)),
    Family(("income", "x"), ("x",)),
    Family((), ("x",)),
    Family((), ("tiny",)),
    Family(("income", "x"), ("income", "x")),
    Family(("tiny",), ("income", "x")),
    Family((), ("income", "tiny")),
]
SQUARES = [family for family in FAMILIES if len(family.term) == 1]
GROUPINGS = ((), (0,), (1,), (2, 0), (1, 2), (0, 1, 2))
WANTED = {family: GROUPINGS[place % 3 :] for place, family in enumerate(FAMILIES)}

BOUNDS = [
    (0, 1),
    (-1.5, 2.5),
    (0.1, 0.7),
    (0, 200_000),
    (1e300, 1.1e300),
    (-1e307, 1.7e308),
    (1e15, 1e15 + 1),
    (2**63, 2**64),
    (-5e-308, 1e-307),
    (3, 3),
    (0.1, 0.1),
]
HOSTILE = [
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.8e308 / 10, -1e308),
    *(0.1, 0.5, 1.0, 2.5, 1e15, 1e15 + 0.5, 1e300, 1.05e300, 2.0**63, 2.0**64, 1e5, -1e-307),
]


def exact_k(value: Any, column: MomentColumn) -> int | None:
    """k of one value, in fractions; None if it is missing."""
    if value is None or not math.isfinite(value):
        return None
    lattice = column.lattice
    place = Fraction(value) / lattice.grid[0] - lattice.center_units[0]
    q = round_half_even(place.numerator, place.denominator)
    return round_half_even(min(max(q, lattice.lower[0]), lattice.upper[0]), 1 << 21)


def slow_tables(made: Mapping[str, Any], wanted: Any, squares: Any) -> dict[Any, Any]:
    """The tables record by record, in Python's integers."""
    columns = {column.name: column for column in COLUMNS}
    shape = tuple(each.size for each in CATEGORIES)
    found = {
        (family, squared): {
            axes: np.zeros([shape[axis] for axis in axes], object) for axes in wanted[family]
        }
        for family in wanted
        for squared in ([False, True] if family in squares else [False])
    }
    edges = CATEGORIES[1].edges
    for index in range(len(made["x"])):
        record = {name: values[index] for name, values in made.items()}
        ks = {name: exact_k(record[name], column) for name, column in columns.items()}
        income, region, code = record["income"], record["region"], record["code"]
        bins = [
            place
            for place, (low, high) in enumerate(itertools.pairwise(edges))
            if income is not None and (low <= income < high or income == high == edges[-1])
        ]
        cell = [
            REGIONS.index(region) if region in REGIONS else None,
            bins[0] if bins else None,
            code if code is not None and 0 <= code < 3 else None,
        ]
        for (family, squared), tables in found.items():
            if any(ks[name] is None for name in family.recorded):
                continue
            parts = [ks[name] or 0 for name in family.term]
            if squared:
                m = columns[family.term[0]].reach
                adds = (m * m - parts[0] ** 2) // m
            elif len(parts) == 2:
                adds = round_half_even(parts[0] * parts[1], 1 << 24)
            else:
                adds = parts[0] if parts else 1
            for axes, table in tables.items():
                place = tuple(cell[axis] for axis in axes)
                if None not in place:
                    table[place] += adds
    return found


def records(rows: int = 1500) -> dict[str, Any]:
    rng = np.random.default_rng(61)
    values = rng.standard_normal(rows)
    values[:5] = [np.nan, np.inf, 1e308, -np.inf, 5e-324]
    income = [
        None if miss else int(each)
        for each, miss in zip(rng.integers(-100, 1200, rows), rng.random(rows) < 0.1, strict=True)
    ]
    region = [[*REGIONS, CANARY, None][index] for index in rng.integers(4, size=rows)]
    tiny = 0.1 + 1e-9 * rng.uniform(-0.1, 1.1, rows)
    return {
        "x": values.tolist(),
        "income": income,
        "tiny": tiny.tolist(),
        "region": region,
        "code": rng.integers(-1, 5, rows).tolist(),
    }


def same(found: dict[Any, Any], expected: dict[Any, Any]) -> bool:
    assert found.keys() == expected.keys()
    for key, tables in expected.items():
        assert found[key].keys() == tables.keys()
        for axes, table in tables.items():
            if found[key][axes].shape != table.shape or (found[key][axes] != table).any():
                return False
    return True


def test_tables_are_those_of_a_slow_reference_from_every_kind_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = records()
    expected = slow_tables(made, WANTED, SQUARES)
    table = pa.table(made)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=300)
    pq.write_table(table, tmp_path / "plain.parquet", row_group_size=300, use_dictionary=False)
    lines = [",".join(made)]
    for record in zip(*made.values(), strict=True):
        lines.append(",".join("" if value is None else str(value) for value in record))
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    kinds = {
        "dict": made,
        "arrays": made | {"x": np.array(made["x"]), "code": np.array(made["code"])},
        "pandas": pd.DataFrame(made).astype({"income": "Int64"}),
        "polars": pl.DataFrame(made, nan_to_null=False, strict=False),
        "arrow": table,
        "parquet": tmp_path / "x.parquet",
        "parquet, every label written out": tmp_path / "plain.parquet",
        "csv": tmp_path / "x.csv",
    }
    monkeypatch.setattr("muhat.data.parquet._PARTITION_BYTES", 1000)
    for values, together in ((1 << 20, 1 << 14), (777, 30), (333, 1)):
        monkeypatch.setattr(memory, "PARTITION_VALUES", values)
        monkeypatch.setattr(moment_kernel, "_BLOCK_ROWS", values)
        monkeypatch.setattr("muhat.data.cell_kernel.TOGETHER_CELLS", together)
        for name, data in kinds.items():
            source = open_moments(data, COLUMNS, CATEGORIES)
            assert source.rows() == 1500
            assert source.columns == ("x", "income", "tiny")
            assert (source.by, source.shape) == (("region", "income", "code"), (2, 3, 3))
            for threads in (1, 3):
                with paced(threads=threads):
                    assert same(source.tables(WANTED, SQUARES), expected), name


def test_with_a_cell_for_undeclared_values_tables_are_marginals_of_one_histogram() -> None:
    source = open_moments(records(400), COLUMNS, CATEGORIES)
    assert (source.shape, source.cells) == ((2, 3, 3), (3, 4, 4))
    wanted = dict.fromkeys(FAMILIES, GROUPINGS)
    found = source.tables(wanted, SQUARES, undeclared=True)
    declared = source.tables(wanted, SQUARES)
    for key, tables in found.items():
        full = tables[0, 1, 2]
        for axes, table in tables.items():
            others = tuple({0, 1, 2} - set(axes))
            kept = sorted(axes)
            order = [kept.index(axis) for axis in axes]
            assert (full.sum(axis=others).transpose(order) == table).all()
            inside = tuple(slice(source.shape[axis]) for axis in axes)
            assert (table[inside] == declared[key][axes]).all()
    kept = categories_of({"code": 3})
    other = open_moments({"code": [0, 7]}, [], kept)
    assert other.shape == other.cells == (4,)


def test_the_order_of_the_records_does_not_matter() -> None:
    made = pa.table(records(400))
    order = np.random.default_rng(3).permutation(400)
    tables = [
        open_moments(data, COLUMNS, CATEGORIES).tables(WANTED, SQUARES)
        for data in (made, made.take(pa.array(order)))
    ]
    assert same(*tables)


def test_more_records_than_64_bits_hold_become_python_integers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = records(300)
    monkeypatch.setattr(moment_kernel, "_NARROW_ROWS", 120)
    monkeypatch.setattr(memory, "PARTITION_VALUES", 500)
    found = open_moments(made, COLUMNS, CATEGORIES).tables(WANTED, SQUARES)
    assert found[FAMILIES[2], True][0, 1, 2].dtype == object
    assert same(found, slow_tables(made, WANTED, SQUARES))


def test_many_groups_are_summed_where_few_records_fall() -> None:
    rng = np.random.default_rng(62)
    size, rows = 200_000, 30_000
    codes, values = rng.integers(0, size + 5, rows), rng.integers(0, 1025, rows)
    column = MomentColumn("x", 0, 1024)
    source = open_moments(
        {"x": values, "g": codes}, [column], categories_of({"g": size}, missing="drop")
    )
    family = Family(("x",), ("x",))
    found = source.tables({family: ((0,), ())}, [family])
    ks = (values - 512) * (column.reach // 512)
    inside = codes < size
    expected = np.zeros(size, np.int64)
    np.add.at(expected, codes[inside], ks[inside])
    assert (found[family, False][0,] == expected).all()
    assert found[family, False][()] == ks.sum()
    assert found[family, True][()] == ((column.reach**2 - ks**2) // column.reach).sum()


def test_lines_that_cannot_be_read_are_at_the_centre_of_families_that_ask_for_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "x.csv").write_text("x,g\n1,f\n1\n1,f,3\n\n,f\n1,z\n")
    column = MomentColumn("x", 0, 1)
    complete, asked, count = Family((), ("x",)), Family(("x",), ("x",)), Family((), ())
    m = column.reach
    for missing, cells in (("drop", [2]), ("other", [2, 4])):
        groups = categories_of({"g": ["f"]}, missing=missing)
        source = open_moments(tmp_path / "x.csv", [column], groups)
        assert source.rows() == 6
        found = source.tables(
            dict.fromkeys([complete, asked, count], ((), (0,))), [complete, asked]
        )
        assert found[count, False][()] == 6
        assert found[count, False][0,].tolist() == cells
        # Two records have a value: both are at the upper end.
        assert found[complete, False][()] == found[asked, False][()] == 2 * m
        assert found[complete, True][()] == 4 * m
        assert found[asked, True][()] == 0


@pytest.mark.parametrize("bounds", BOUNDS)
def test_integers_stay_within_the_declared_reach_whatever_the_values_are(
    bounds: tuple[float, float],
) -> None:
    column = MomentColumn("x", *bounds)
    lattice, m = column.lattice, column.reach
    assert 1 <= m <= 1 << 24
    assert bounds[0] == bounds[1] or m > 1 << 22
    rng = np.random.default_rng(7)
    low, high = map(float, bounds)
    values = np.concatenate(
        [
            np.array(HOSTILE),
            low + (high - low) * rng.uniform(-0.01, 1.01, 50_000),
            np.frombuffer(rng.bytes(8 * 50_000), np.float64),
        ]
    )
    whole = np.frombuffer(rng.bytes(8 * 2000), np.int64)
    unsigned = np.concatenate([whole.view(np.uint64), np.array([0, 2**64 - 1], np.uint64)])
    limbs = np.frombuffer(rng.bytes(16 * 500), np.uint64).reshape(-1, 2)
    kernel = ValueKernel(lattice, m)
    columns: list[Column] = [
        Floats(values),
        Floats(values, rng.random(len(values)) < 0.5),
        Integers(whole, rng.random(len(whole)) < 0.5),
        Integers(unsigned),
        Decimals(limbs, 3),
        Decimals(limbs, 30, rng.random(len(limbs)) < 0.5),
    ]
    for each in columns:
        with np.errstate(all="ignore"):
            steps, present = made_steps(kernel, each)
        squares = np.empty(len(steps))
        kernel.squares(steps, squares)
        assert (steps == np.rint(steps)).all()
        k, s = steps.astype(np.int64), squares.astype(np.int64)
        assert (k.astype(float) == steps).all()
        assert (s.astype(float) == squares).all()
        assert (np.abs(k) <= m).all()
        assert (s == (m * m - k * k) // m).all()
        assert (k * k + s * s <= m * m).all()
        assert (2 * np.abs(k) + s <= 2 * m).all()
        assert (s >= 0).all()
        missing = ~each.present()
        assert (k[missing] == 0).all()
        assert (s[missing] == m).all()
        assert (present is None and not missing.any()) or (present == ~missing).all()
    with np.errstate(all="ignore"):
        steps, _ = made_steps(kernel, Floats(values))
    for value, found in zip(values[:2000].tolist(), steps[:2000].tolist(), strict=True):
        assert (exact_k(value, column) or 0) == found


def test_a_number_is_the_same_integer_whichever_type_carries_it() -> None:
    column = MomentColumn("x", -50, 333)
    numbers = list(range(-60, 340))
    arrays = {
        "float": pa.array([float(each) for each in numbers]),
        "float32": pa.array([float(each) for each in numbers], pa.float32()),
        "int16": pa.array(numbers, pa.int16()),
        "int64": pa.array(numbers, pa.int64()),
        "decimal": pa.array([Decimal(each) for each in numbers], pa.decimal128(30, 7)),
    }
    family = Family(("x",), ("x",))
    groups = categories_of({"g": len(numbers)})
    found = []
    for array in arrays.values():
        table = pa.table({"x": array, "g": pa.array(range(len(numbers)))})
        tables = open_moments(table, [column], groups).tables({family: ((0,),)}, [family])
        found.append([tables[family, squared][0,].tolist() for squared in (False, True)])
    assert all(each == found[0] for each in found)
    ends = [exact_k(end, column) for end in (-50, 333)]
    assert found[0][0][:3] == [ends[0]] * 3
    assert found[0][0][-8:-1] == [ends[1]] * 7


@pytest.mark.parametrize("seed", range(6))
def test_one_record_moves_every_family_within_its_reach(seed: int) -> None:
    """10^5 pairs of records, drawn and hostile, of every type: all that a family adds for one of
    them, what taking it away does, and what replacing it by the other does, squares and all."""
    rng = np.random.default_rng(seed)
    rows = 200_000
    first, second = rng.choice(len(BOUNDS), 2, replace=False).tolist()
    columns = {
        "a": MomentColumn("a", *BOUNDS[first]),
        "b": MomentColumn("b", *BOUNDS[second]),
    }
    table = pa.table(
        {
            "a": pa.array(hostile_values(rng, BOUNDS[first], rows), mask=rng.random(rows) < 0.1),
            "b": other_type(rng, seed, hostile_values(rng, BOUNDS[second], rows)),
            # Every record has a cell of its own, so that the tables list what each of them adds.
            "row": np.arange(rows),
        }
    )
    families = [
        Family(recorded, term)
        for recorded in ((), ("a",), ("a", "b"))
        for term in ((), ("a",), ("b",), ("a", "b"))
    ]
    squares = [family for family in families if len(family.term) == 1]
    cells = categories_of({"row": rows}, missing="drop")
    source = open_moments(table, list(columns.values()), cells)
    added = source.tables(dict.fromkeys(families, ((0,),)), squares)
    group = np.arange(rows), rng.integers(0, 3, rows)
    for family in families:
        most = reach(family, columns)
        vectors = np.zeros((rows, 3, 2), np.int64)
        vectors[*group, 0] = added[family, False][0,]
        if family in squares:
            vectors[*group, 1] = added[family, True][0,]
        moved = vectors[::2] - vectors[1::2]
        for change, times in ((vectors, 1), (moved, 2)):
            assert ((change**2).sum(axis=(1, 2)) <= (times * most) ** 2).all()
            assert ((np.abs(change) * [2, 1]).sum(axis=(1, 2)) <= 2 * times * most).all()
        if len(family.recorded) == 2:
            there = added[Family(family.recorded, ()), False][0,].astype(bool)
            assert 0 < there.sum() < rows
            assert not vectors[~there].any()


def other_type(rng: np.random.Generator, seed: int, values: Any) -> pa.Array:
    """A column of another type than floats with nulls: whole numbers, decimals, halves."""
    bits = np.frombuffer(rng.bytes(8 * len(values)), np.int64)
    absent = rng.random(len(values)) < 0.1
    small = rng.integers(-300_000, 300_000, len(values))
    with np.errstate(all="ignore"):
        halves, singles = values.astype(np.float16), values.astype(np.float32)
    kinds = [
        pa.array(np.where(bits % 3 == 0, small, bits), mask=absent),
        pa.array(bits.view(np.uint64) >> rng.integers(0, 64, len(bits)).astype(np.uint64)),
        pa.array(small % 100, pa.int8(), mask=absent),
        pa.array(halves, mask=absent),
        pa.array(small, mask=absent).cast(pa.decimal128(38, 4)),
        pa.array(singles, mask=absent),
    ]
    return kinds[seed]


def made_steps(kernel: ValueKernel, column: Column) -> tuple[Any, Any]:
    steps = np.empty(len(column.values))
    return steps, kernel.steps(column, steps)


def hostile_values(rng: np.random.Generator, bounds: tuple[float, float], rows: int) -> Any:
    low, high = map(float, bounds)
    kinds = [
        low + (high - low) * rng.uniform(-0.2, 1.2, rows),
        np.frombuffer(rng.bytes(8 * rows), np.float64),
        rng.choice(HOSTILE, rows),
        rng.choice([low, high, np.nextafter(low, high), np.nextafter(high, low)], rows),
    ]
    return np.choose(rng.integers(0, 4, rows), kinds)


@given(st.lists(st.tuples(st.sampled_from(HOSTILE), st.integers(-1, 3)), min_size=1, max_size=12))
def test_one_record_of_a_table_moves_the_tables_by_what_it_adds(rows: list[Any]) -> None:
    """All of it at once: the tables with and without a record, and with another in its place."""
    column = MomentColumn("x", -1, 2)
    m = column.reach
    families = [Family((), ()), Family(("x",), ("x",)), Family((), ("x",))]
    groups = categories_of({"g": 3}, missing="drop")

    def vectors(made: list[Any]) -> dict[Family, Any]:
        table = pa.table(
            {
                "x": pa.array([row[0] for row in made], pa.float64()),
                "g": pa.array([row[1] for row in made], pa.int64()),
            }
        )
        found = open_moments(table, [column], groups).tables(
            dict.fromkeys(families, ((0,),)), families[1:]
        )
        return {
            family: np.concatenate(
                [
                    found[family, squared][0,]
                    for squared in (False, True)
                    if (family, squared) in found
                ]
            )
            for family in families
        }

    everything, fewer = vectors(rows), vectors(rows[1:])
    other = vectors([(math.nan, 0), *rows[1:]])
    for family, most in zip(families, (1, m, m), strict=True):
        assert most == reach(family, {"x": column})
        assert ((everything[family] - fewer[family]) ** 2).sum() <= most**2
        assert ((everything[family] - other[family]) ** 2).sum() <= (2 * most) ** 2


def test_steps_say_what_integers_are_worth() -> None:
    columns = {each.name: each for each in COLUMNS}
    x, income = columns["x"], columns["income"]
    assert step(Family((), ()), columns) == 1
    assert step(Family((), ("x",)), columns) == Fraction(1, x.reach)
    both = Family((), ("income", "x"))
    assert step(both, columns) == Fraction(1 << 24, x.reach * income.reach)
    assert abs(step(both, columns) * reach(both, columns) - 1) <= step(both, columns) / 2
    for each in COLUMNS:
        assert Fraction(each.half_width) == each.step * each.reach
        assert (
            abs(each.center - each.half_width - each.low) <= each.step / 2 + abs(each.low) * 2e-16
        )
        assert (
            abs(each.center + each.half_width - each.high) <= each.step / 2 + abs(each.low) * 2e-16
        )
    constant = MomentColumn("c", 7, 7)
    assert (constant.center, constant.half_width, constant.reach) == (7.0, 0.0, 1)


def test_families_and_columns_are_plain_data() -> None:
    for each in (*FAMILIES, *COLUMNS):
        assert type(each).from_dict(each.to_dict()) == each
    assert sorted(FAMILIES)[0] == Family((), ())


def test_records_without_columns_can_be_counted() -> None:
    count = Family((), ())
    found = open_moments({"t": [CANARY, "b"]}, [], []).tables({count: ((),)})
    assert found == {(count, False): {(): 2}}
    groups = categories_of({"t": ["b"]}, missing="drop")
    found = open_moments({"t": [CANARY, "b"]}, [], groups).tables({count: ((0,),)})
    assert found[count, False][0,].tolist() == [1]
    assert open_moments({"t": [CANARY]}, [], groups).tables({}) == {}
    x = MomentColumn("x", -1, 1)
    array = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0.5]), 1)
    total = open_moments(pa.table({"x": array}), [x], []).tables({Family((), ("x",)): ((),)})
    assert total[Family((), ("x",)), False][()] == 3 * x.reach // 2


def test_bad_arguments_are_refused_before_a_value_is_read() -> None:
    data = pa.table({"x": [1.0], "g": [0], "t": [CANARY]})
    x, groups = MomentColumn("x", 0, 1), categories_of({"g": 2})
    for columns, categories, words in [
        ([MomentColumn("y", 0, 1)], groups, "'y' is not in the data"),
        ([MomentColumn("t", 0, 1)], groups, "cannot be averaged"),
        ([x, x], groups, "columns must not name a column twice"),
        ([x], [*groups, *groups], "categories must not name a column twice"),
        ([x], categories_of({"x": ["a"]}), "'x' has bounds, so its categories must not be text"),
    ]:
        with pytest.raises(InvalidInput, match=words) as caught:
            open_moments(data, columns, categories)
        assert CANARY not in str(caught.value)
    source = open_moments(data, [x], groups)
    family = Family((), ("x",))
    for wanted, squares, words in [
        ({Family((), ("z",)): ((),)}, [], "a column must be one of 'x'"),
        ({family: ((1,),)}, [], "an axis must be"),
        ({family: ()}, [], "at least one set"),
        ({family: ((0,), (0,))}, [], "none twice"),
        ({Family((), ()): ((),)}, [Family((), ())], "families of one column"),
        ({family: ((),)}, [Family(("x",), ("x",))], "families of one column"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            source.tables(wanted, squares)
    big = open_moments(data, [x], categories_of({"g": 2**31 - 1}))
    with pytest.raises(InvalidInput, match="written out"):
        big.tables({family: ((0,),)})
    for recorded, term in [
        (("b", "a"), ()),
        ((), ("b", "a")),
        ((), ("a", "a")),
        ((), tuple("abc")),
    ]:
        with pytest.raises(InvalidInput):
            Family(recorded, term)
    for bounds in [
        (1, 0),
        (math.nan, 1),
        (-1.7976931348623157e308, 1.7976931348623157e308),
    ]:
        with pytest.raises(InvalidInput):
            MomentColumn("x", *bounds)


def test_a_damaged_file_fails_without_a_word_of_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.arange(10_000.0)}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[100:4000] = (CANARY.encode() * 400)[:3900]
    path.write_bytes(content)
    source = open_moments(path, [MomentColumn("x", 0, 1)], [])
    with pytest.raises(SourceFailed) as caught:
        source.tables({Family((), ("x",)): ((),)})
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_pass_elsewhere_finds_what_a_pass_here_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    from data.test_states import Elsewhere

    monkeypatch.setattr(memory, "PARTITION_VALUES", 150)
    made = records(300)
    here = open_moments(made, COLUMNS, CATEGORIES)
    there = MomentSource(Elsewhere(here._source), COLUMNS, CATEGORIES)
    assert same(there.tables(WANTED, SQUARES), here.tables(WANTED, SQUARES))
