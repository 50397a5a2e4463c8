"""Values of a column and the people who have them: told apart exactly, everybody once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muhat.data.unit_choice import Mixer
from muhat.data.units import People
from muhat.data.values import LONGEST, open_values
from muhat.errors import InvalidInput


def people(data: Any, rows: int | None = None) -> dict[Any, int]:
    return open_values(data, "v", None if rows is None else People("id", rows)).people()


def test_values_are_text_numbers_or_booleans_as_the_column_is() -> None:
    assert people({"v": ["b", "a", "b", None, ""]}) == {"a": 1, "b": 2}
    assert people({"v": np.array([2, 1, 2])}) == {1: 1, 2: 2}
    floats = people({"v": np.array([2.0, 0.5, np.nan, np.inf, -0.0, 0.0, 2.0**100])})
    assert floats == {0: 2, 0.5: 1, 2: 1}
    assert people({"v": np.array([True, False, True])}) == {False: 1, True: 2}
    assert all(isinstance(value, bool) for value in people({"v": np.array([True, False])}))
    encoded = pa.table({"v": pa.array(["x", "y", "x"]).dictionary_encode()})
    assert people(encoded) == {"x": 2, "y": 1}


def test_texts_are_told_apart_to_the_last_byte_and_never_stripped() -> None:
    texts = ["a", "a ", "A", "a\0", "ä", "x" * LONGEST, "x" * (LONGEST - 1), "7", "7.0"]
    assert people({"v": texts * 2}) == dict.fromkeys(texts, 2)
    assert list(people({"v": texts})) == list(people({"v": texts[::-1]})) == sorted(texts)


def test_what_is_too_long_or_no_text_is_no_value() -> None:
    odd = ["x" * (LONGEST + 1), "ä" * 32, b"\xff", None, ["a"], "\ud800", float("nan"), "fine"]
    assert people({"v": odd}) == {"fine": 1}


def test_objects_are_texts_or_numbers_each_by_itself() -> None:
    mixed = [1, 1.0, np.int8(1), "1", 2.5, 2**70, 2**101, True, "\0" + "1", b"1"]
    source = open_values({"v": mixed}, "v")
    found = source.people()
    assert found == {1: 4, 2.5: 1, 2**70: 1, "1": 2}
    assert list(found) == [1, 2.5, 2**70, "1"]
    assert source.alike(list(found)) == (1, 2.5, 2**70)
    assert source.alike(["a", 1]) == ("a",)
    assert source.alike([]) == ()


def test_cells_of_files_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("id,v\n1,ä\n1,ä\n2,1.0\n3,\n4,1\n", encoding="utf-8")
    assert people(path) == {"1": 1, "1.0": 1, "ä": 2}
    assert people(path, 2) == {"1": 1, "1.0": 1, "ä": 1}


def test_everybody_counts_once_for_a_value_and_for_so_many_values() -> None:
    data = {"id": [1, 1, 1, 1, 2, 2, None, None], "v": ["a", "a", "b", "c", "a", "a", "a", "a"]}
    assert people(data, 3) == {"a": 4, "b": 1, "c": 1}
    assert sum(people(data, 2).values()) == 5
    assert sum(people(data, 1).values()) == 4


def test_one_persons_rows_move_so_many_values_by_one_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """300 pairs of tables under one key: a person leaves, and another one comes in its place."""
    monkeypatch.setattr(Mixer, "fresh", classmethod(lambda cls: cls(bytes(range(32)))))
    rng = np.random.default_rng(3)
    for _ in range(100):
        rows = int(rng.integers(1, 60))
        ids = rng.integers(0, 8, rows).tolist()
        values = [f"value {code}" for code in rng.integers(0, 9, rows)]
        most = int(rng.integers(1, 4))
        whole = Counter(people({"id": ids, "v": values}, most))
        gone = [(i, v) for i, v in zip(ids, values, strict=True) if i != 0]
        new = [(0, f"value {code}") for code in rng.integers(0, 99, int(rng.integers(0, 9)))]
        for other, allowed in ((gone, most), ([*gone, *new], 2 * most), ([*new, *gone], 2 * most)):
            table = {"id": [i for i, _ in other] or [5], "v": [v for _, v in other] or [None]}
            moved = Counter(people(table, most))
            moved.subtract(whole)
            assert all(abs(change) <= 1 for change in moved.values())
            assert sum(map(abs, moved.values())) <= allowed


def test_columns_of_other_types_are_refused_by_their_type() -> None:
    dates = pa.table({"v": pa.array([0, 1], pa.date32())})
    with pytest.raises(InvalidInput, match="convert it first"):
        open_values(dates, "v")
    with pytest.raises(InvalidInput, match="not in the data"):
        open_values({"w": [1]}, "v")
