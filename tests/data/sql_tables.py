"""Hostile values of every type that a database has, and passes over them; for tests of pushdown."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from muhat.data.arrow import columns_of
from muhat.data.categories import Categories, categories_of
from muhat.data.cell_kernel import CellAccumulator, CellTables
from muhat.data.coding import Coder
from muhat.data.complete import RowCounter
from muhat.data.engine import Accumulator
from muhat.data.grid_counts import Window, _WindowAccumulator
from muhat.data.grids import UniformGrid
from muhat.data.groups import _GroupAccumulator
from muhat.data.moment_kernel import MomentAccumulator, MomentTables, Row, ValueKernel
from muhat.data.moments import MomentColumn
from muhat.data.sql import compiled
from muhat.data.sql_dialect import CannotPush, Dialect, SqlColumn
from muhat.data.tallies import BoxSquare, Summand, SumTable, box_summands
from muhat.domains.box_kernel import BoxKernel
from muhat.domains.lattice import BoxLattice, ColumnsLattice

FLOATS = [
    *(None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308),
    *(1.7976931348623157e308, -1.7976931348623157e308, 1e300, -1e299, 0.1, 1 / 3, 2 / 3, 0.5),
    *(2.0**53 + 2, 2.0**62, -(2.0**63), 2.0**64, 1.5, 2.5, -7.25, 16.0, 89.99999999999999, 90.0),
    *(128.00000000000003, 1 + 2.0**-45, 1 + 2.0**-46, 1 + 3 * 2.0**-47, 3.0, 100000.00000000001),
]
INTEGERS = [
    *(None, 0, 1, -1, 2, 3, 16, 90, 128, 2**31, -(2**31), 2**52 + 1, 2**53, 2**53 + 1, 2**53 + 3),
    *(2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 10**18, 10**18 + 1, -(10**15), 3 * 2**45 + 1),
]
UNSIGNED = [None, 0, 1, 2, 3, 90, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 10**19]
DECIMALS = [
    None if text is None else Decimal(text)
    for text in (
        *(None, "0", "0.001", "-0.001", "1.5", "0.5", "0.125", "0.333", "2.667", "90", "89.999"),
        *("999999999999999.999", "-999999999999999.999", "128", "127.999", "3.000", "-7.25"),
    )
]
TEXTS = [
    None,
    "",
    "f",
    "m",
    "F",
    "o'clock",
    'a "quoted" b',
    "é",
    "m ",
    "x;--",
    "other",
    "\\x66",
    "z",
]

COLUMNS = {
    "real": pa.array(FLOATS, pa.float64()),
    "short": pa.array(FLOATS, pa.float64()).cast(pa.float32(), safe=False),
    "whole": pa.array(INTEGERS, pa.int64()),
    "small": pa.array([v for v in INTEGERS if v is None or abs(v) < 2**31], pa.int32()),
    "unsigned": pa.array(UNSIGNED, pa.uint64()),
    "decimal": pa.array(DECIMALS, pa.decimal128(18, 3)),
    "money": pa.array(
        [v if v is None or abs(v) < 10**9 else None for v in DECIMALS], pa.decimal128(12, 3)
    ),
    "flag": pa.array([None, True, False, True], pa.bool_()),
    "text": pa.array(TEXTS, pa.string()),
}
"""Each with every kind of value that its type has."""

BOXES: list[tuple[Any, Any]] = [
    *((0, 1), (0.0, 128.0), (16, 90), (-3, 7.5), (1 / 3, 2 / 3), (1e15, 1e16), (2.0**60, 2.0**62)),
    *((-1e18, 1e19), (5, 6), (0.1, 0.1), (3, 3), (2**53, 2**53 + 4), (-1e25, 1e25), (0, 200_000)),
    *((-(2.0**52), 2.0**52 + 2), (1, 1 + 2.0**-30), (-1e200, 1e200), (1e-200, 3e-200)),
]


def table(rows: int, names: tuple[str, ...] = tuple(COLUMNS)) -> pa.Table:
    """So many rows, in which every column goes through its values with a step of its own."""
    made = {}
    for place, name in enumerate(names):
        values = COLUMNS[name]
        # Steps without a common divisor, so that values of columns meet in many ways.
        made[name] = values.take(
            pa.array([(k + k // (7 + place)) % len(values) for k in range(rows)], pa.int64())
        )
    return pa.table(made)


def boxes() -> list[BoxLattice]:
    """Lattices of one column of every kind: around their middle, and with 0 for what is missing."""
    found = []
    for low, high in BOXES:
        found.append(BoxLattice.around([low], [high]))
        found.append(BoxLattice.with_zero([low], [high]))
    return found


def summands(column: SqlColumn, words: Dialect) -> tuple[list[Summand], list[BoxLattice]]:
    """What a column of numbers adds at every kind of box; and the boxes that have no SQL."""
    found: list[Summand] = []
    left_out = []
    for box in boxes():
        drops = (False, True) if box.absent is None else (False,)
        whole = ColumnsLattice(box, squares=True, counts=True)
        each = [part for drop in drops for part in box_summands(whole, drop) or ()]
        try:
            compiled(SumTable((), tuple(each)), [column], words)
        except CannotPush:
            left_out.append(box)
        else:
            found += each
    return found, left_out


def made_here(data: pa.Table, chosen: list[Summand]) -> list[int]:
    """The same sums by the kernels, one after another."""
    (column,) = columns_of(data.column(0).combine_chunks())
    there = column.present()
    sums = []
    for each in chosen:
        if each.number is None:
            sums.append(int(there.sum()) if each.recorded else len(there))
            continue
        squared = isinstance(each.number, BoxSquare)
        step = each.number.step if squared else each.number
        kernel = BoxKernel([step.coordinate], squares=squared)
        with np.errstate(all="ignore"):
            made = kernel.integers([column], drop=False)[:, -1]
        sums.append(int(made[there].sum() if each.recorded else made.sum()))
    return sums


def of_windows() -> list[Callable[[], Any]]:
    """Counts in windows of grids of one column."""
    grids = [UniformGrid(0.0, 128.0, 0.25), UniformGrid(-3.0, 7.0, 0.1), UniformGrid(16, 90, 1 / 3)]

    def made(grid: UniformGrid, drop: bool) -> Callable[[], Any]:
        windows = [Window(0, 0, 3, 5), Window(0, 7, 0, 9), Window(0, 12, 1, 4)]
        return lambda: _WindowAccumulator([grid], windows, drop)

    return [made(grid, drop) for grid in grids for drop in (False, True)]


def cells_of_numbers() -> list[Categories]:
    """Categories of numbers of every kind."""
    return [
        categories_of({"x": given}, missing=missing)[0]
        for given in (
            *([0, 1, 90, 0.5, 2**53 + 1], 91, {"bins": [0, 16, 90]}, list(range(-2, 40))),
            list(range(-2, 80, 3)),
            {"bins": [float("-inf"), -1, 1 / 3, 2, 2**53 + 1, float("inf")]},
            {"bins": [0, 0.125, 0.25, 0.5, 1, 1.5, 2, 3, 5, 8, 13, 21, 34, 55, 89.999]},
        )
        for missing in ("other", "drop")
    ]


def cells_of_texts() -> list[Categories]:
    """Categories of text."""
    many = [f"label {k}" for k in range(40)]
    return [
        categories_of({"text": labels}, missing=missing)[0]
        for labels in (["f", "m"], TEXTS[1:], [*many, "é", "f", "o'clock"], ["x"])
        for missing in ("other", "drop")
    ]


def counting(categories: Categories) -> Callable[[], Any]:
    """Counts of the cells of one column."""
    coder = Coder(categories)
    return lambda: CellAccumulator([coder], CellTables((coder.size,), [(0,), ()]))


def of_several() -> dict[str, tuple[tuple[str, ...], tuple[Any, ...], Callable[[], Any]]]:
    """By a name: columns, their coders, and what adds them up."""
    lattice = BoxLattice.around([0, 0.5], [128, 90])
    sexes = Coder(categories_of({"text": ["f", "m", "é"]}, missing="drop")[0])
    ages = Coder(categories_of({"small": {"bins": [0, 2, 16, 90]}}, missing="other")[0])
    columns = [MomentColumn("real", 0, 90), MomentColumn("whole", -3, 128.5)]
    kernels = [ValueKernel(each.lattice, each.reach) for each in columns]
    rows = [
        *(Row((), ()), Row((0,), ()), Row((), (0,)), Row((0,), (0,)), Row((0,), (0,), True)),
        *(Row((), (1,)), Row((0, 1), (0, 1)), Row((), (0, 1)), Row((), (1,), True)),
    ]
    axes = ((), (0,), (1, 0))

    def moments() -> MomentAccumulator:
        tables = MomentTables([sexes, ages], dict.fromkeys(rows, axes))
        return MomentAccumulator(kernels, [sexes, ages], [2, 3], tables)

    def cells() -> CellAccumulator:
        return CellAccumulator([sexes, ages], CellTables((3, 4), [(0,), (1,), (1, 0), ()]))

    return {
        "rows": (("real",), (None,), RowCounter),
        "sums": (("real", "decimal"), (None, None), lambda: Accumulator(lattice, "drop")),
        "groups": (
            ("real", "unsigned", "text", "small"),
            (None, None, sexes, ages),
            lambda: _GroupAccumulator(
                ColumnsLattice(lattice, squares=True, counts=True), [sexes, ages], 12, False
            ),
        ),
        "dropped groups": (
            ("real", "unsigned", "text"),
            (None, None, sexes),
            lambda: _GroupAccumulator(lattice, [sexes], 3, True),
        ),
        "cells": (("text", "small"), (sexes, ages), cells),
        "moments": (("real", "whole", "text", "small"), (None, None, sexes, ages), moments),
    }
