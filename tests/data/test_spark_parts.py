"""What muhat does for Spark where no Spark is: plans read, batches folded, modules packed."""

from __future__ import annotations

import pickle
import sys
import zipfile
import zipimport
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muhat.data import exact_sums, open_source
from muhat.data.engine import Accumulator
from muhat.data.spark import _field, fields_of, is_spark, quoted, spark_data
from muhat.data.spark_plan import reason_in
from muhat.data.spark_rows import Numbered
from muhat.data.spark_ship import packed_package
from muhat.data.spark_worker import WorkerPass, forget_zips, run, vectors
from muhat.data.states import unpacked
from muhat.domains.lattice import BoxLattice
from muhat.errors import InvalidInput

PAIR = BoxLattice.around([0, 0], [4, 4])
MAKE = partial(Accumulator, PAIR)


WINDOW = "windowspecdefinition(g#2L ASC NULLS FIRST, specifiedwindowframe("
FIRST = "unboundedpreceding$()"


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("Project [x#1]\n+- Sample 0.0, 0.5, false, 1\n   +- Range (0, 9)", "a sample"),
        (
            "GlobalLimit 5\n+- LocalLimit 5\n   +- Sort [x#1 ASC], true\n      +- Project [x#1]",
            None,
        ),
        (
            "GlobalLimit 5\n+- LocalLimit 5\n   +- Project [x#1]\n      +- Sort [x#1 ASC], true"
            "\n         +- SubqueryAlias f\n            +- Relation [x#1] parquet",
            None,
        ),
        (
            "Offset 5\n+- Sort [y#2L DESC NULLS FIRST, x#1 ASC], true\n   "
            "+- Project [(z#3 + 1) AS x#1, y#2L]",
            None,
        ),
        ("Offset 5\n+- Sort [x#1 ASC], true\n   +- Project [x#1, y#2L]", "a limit by an order"),
        ("Offset 5\n+- Sort [abs(x#1) ASC], true\n   +- Project [x#1]", "a limit by an order"),
        ("Offset 5\n+- Sort [x#1 ASC], true\n   +- Join Inner", "a limit by an order"),
        (f"Window [sum(x#1) {WINDOW}RowFrame, -1, currentrow$())) AS y#3]", "a window"),
        (f"Window [sum((x#1 + 2)) {WINDOW}RowFrame, {FIRST}, currentrow$())) AS y#3]", "a window"),
        (f"Window [rank(g#2L) {WINDOW}RowFrame, {FIRST}, currentrow$())) AS y#3]", None),
        (f"Window [sum(x#1) {WINDOW}RangeFrame, {FIRST}, currentrow$())) AS y#3]", None),
        (f"Window [max(x#1) {WINDOW}RowFrame, {FIRST}, unboundedfollowing$())) AS y#3]", None),
        (
            f"Window [row_number() {WINDOW}RowFrame, {FIRST}, currentrow$())) AS y#3]",
            "row_number()",
        ),
        ("Aggregate [g#1], [g#1, max_by(x#2, y#3) AS x#4]", "max_by()"),
        ("GlobalLimit 5\n+- LocalLimit 5\n   +- Join Inner\n      :- Sort [x#1]", "a limit"),
        ("GlobalLimit 5\n+- LocalLimit 5\n   +- Range (0, 9)", "a limit"),
        ("Join Inner\n:- Range\n+- GlobalLimit 5\n   +- LocalLimit 5\n      +- Range", "a limit"),
        ("Union\n:- Tail 5\n:  +- Range\n+- Sort [x#1 ASC], true", "a limit"),
        ("Project [operand(x#1), `rand`#3, x#1 AS rand(x)#4]", None),
        ("Project [(x#1 + rand(7)) AS y#4]", "rand()"),
        ("Aggregate [g#1], [g#1, first(x#2, false) AS first(x)#3]", "first()"),
        ("Aggregate [g#1], [g#1, max(x#2) AS first(x)#3]", None),
    ],
)
def test_plans_are_read_as_spark_writes_them(plan: str, reason: str | None) -> None:
    found = reason_in(plan, plan)
    assert (found is None) == (reason is None)
    assert (found or "").startswith(reason or "")


def test_duplicates_in_all_columns_are_alike_and_those_in_some_are_not() -> None:
    plan = "Deduplicate [x#1, g#2]\n+- Range (0, 9)"
    assert reason_in(plan, "Aggregate [x#1, g#2], [x#1, g#2]") is None
    assert reason_in(plan, "Aggregate [g#2], [first(x#1, false) AS x#3, g#2]") is not None


def lists(*values: Any, large: bool = False) -> Any:
    kind = (pa.large_list if large else pa.list_)(pa.float64())
    return pa.array(values, kind)


@pytest.mark.parametrize("large", [False, True])
def test_lists_become_vectors_and_those_of_another_length_missing(large: bool) -> None:
    same = lists([1, 2], [3, 4], [5, 6], large=large)
    assert vectors(same.slice(1), 2).to_pylist() == [[3, 4], [5, 6]]
    mixed = lists([1, 2], None, [3], [], [None, 4], [5, 6, 7], large=large)
    nothing = [None, None]
    assert vectors(mixed, 2).to_pylist() == [[1, 2], nothing, nothing, nothing, [None, 4], nothing]
    assert vectors(mixed.slice(3, 2), 2).to_pylist() == [nothing, [None, 4]]
    assert len(vectors(mixed.slice(0, 0), 2)) == 0


def batches(*values: Any) -> list[Any]:
    return [pa.RecordBatch.from_arrays([lists(*part)], ["v"]) for part in values]


def states(task: WorkerPass, work: str, given: list[Any]) -> list[Any]:
    return list(run(pickle.dumps(task), work, iter(given)))


def test_partitions_are_folded_and_their_states_merged() -> None:
    task = WorkerPass(MAKE, (None,), (2,))
    parts = [([1, 2], [3, None]), ([9, 9],)], [([0.5, 0.25], None, [1])], []
    rows = [states(task, "fold", batches(*part)) for part in parts]
    assert [[batch.num_rows for batch in each] for each in rows] == [[1], [1], [1]]
    (merged,) = states(task, "merge", [batch for each in rows for batch in each])
    total = MAKE()
    total.absorb(unpacked(merged.column(0)[0].as_buffer()))
    table = pa.table(
        {"a": [1, 3, 9, 0.5, None, None], "b": [2, None, 9, 0.25, None, None]},
    )
    expected = exact_sums(open_source(table, None, 2), PAIR)
    assert (tuple(total.total), total.counted) == (expected.total, expected.rows)
    assert total.rows == 6


def test_rows_are_left_out_by_their_numbers() -> None:
    task = WorkerPass(MAKE, (None,), (2,), np.array([7, 99], np.int64))
    batch = pa.RecordBatch.from_arrays(
        [lists([1, 2], [3, 4], [5, 6]), pa.array([6, 7, 8])], ["v", "number"]
    )
    kept = MAKE()
    kept.absorb(unpacked(states(task, "fold", [batch])[0].column(0)[0].as_buffer()))
    expected = exact_sums(open_source(np.array([[1.0, 2.0], [5.0, 6.0]])), PAIR)
    assert (tuple(kept.total), kept.rows) == (expected.total, 2)


def test_a_worker_that_breaks_says_nothing_of_why() -> None:
    broken = pa.RecordBatch.from_arrays([pa.array(["canary"])], ["v"])
    with pytest.raises(RuntimeError, match=r"^muhat: a partition could not be read") as caught:
        states(WorkerPass(MAKE, (None,), (2,)), "fold", [broken])
    assert caught.value.__context__ is None


def test_row_numbers_follow_the_places() -> None:
    rows = Numbered(None, ((0, 3), (2, 1), (5, 2)))
    assert rows.count == 6
    numbers = [rows.at(place) for place in range(6)]
    assert numbers == [0, 1, 2, 2 << 33, 5 << 33, (5 << 33) + 1]
    for first in range(1, 7):
        assert [number < rows.bound(first) for number in numbers] == [i < first for i in range(6)]
    with pytest.raises(InvalidInput):
        rows.at(6)


def test_types_of_spark_are_told_apart() -> None:
    def schema(**types: str) -> Any:
        return [
            SimpleNamespace(
                name=name, dataType=SimpleNamespace(simpleString=lambda kind=kind: kind)
            )
            for name, kind in types.items()
        ]

    widths = {
        "double": 1, "bigint": 1, "boolean": 1, "decimal(10,2)": 1,
        "string": 0, "date": 0, "array<string>": 0, "struct<a:double>": 0, "map<string,double>": 0,
    }  # fmt: skip
    for kind, width in widths.items():
        assert _field("x", kind, 0).width == width
    assert [_field("x", kind, 0).is_text for kind in ("string", "varchar(9)", "int")] == [1, 1, 0]
    both = schema(a="double", v="array<float>", w="array<double>")
    assert [field.width for field in fields_of(both, ("a", "v"), 5)] == [1, 4, 4]
    assert [field.width for field in fields_of(both, ("v", "w"), 5)] == [1, 0, 0]
    assert [field.width for field in fields_of(both, None, 5)] == [1, 0, 0]
    assert [field.width for field in fields_of(schema(v="array<double>"), None, 5)] == [5]
    assert [field.width for field in fields_of(schema(v="array<double>"), None, None)] == [0]
    assert quoted("a`b") == "`a``b`"


def test_what_is_no_spark_frame_is_refused() -> None:
    table = pa.table({"x": [1.0]})
    assert not is_spark(table)
    with pytest.raises(InvalidInput, match="must be a Spark DataFrame; got Table"):
        spark_data(table)
    kind = type("DataFrame", (), {"__module__": "pyspark.pandas.frame"})
    with pytest.raises(InvalidInput, match=r"\.to_spark\(\)"):
        open_source(kind())


def test_all_modules_are_packed_and_can_be_imported(tmp_path: Path) -> None:
    first, again = packed_package(tmp_path), packed_package(tmp_path)
    assert first == again
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
    assert "muhat/__init__.py" in names
    assert "muhat/data/spark_worker.py" in names
    assert zipimport.zipimporter(str(first)).find_spec("muhat") is not None


def test_archives_are_forgotten_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.writestr("muhat_test_first.py", "x = 1")
        archive.writestr("muhat_test_second.py", "x = 2")
    monkeypatch.syspath_prepend(tmp_path / "one.zip")
    __import__("muhat_test_first")
    assert any(isinstance(each, zipimport.zipimporter) for each in sys.path_importer_cache.values())
    forget_zips()
    assert not any(
        isinstance(each, zipimport.zipimporter) for each in sys.path_importer_cache.values()
    )
    assert __import__("muhat_test_second").x == 2
