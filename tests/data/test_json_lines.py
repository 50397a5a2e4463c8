"""JSON lines: an object a line, each by itself."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muhat.data import exact_sums, open_source, text_file
from muhat.data.base import paced
from muhat.data.categories import categories_of
from muhat.data.engine import gathered
from muhat.data.histogram import open_cells
from muhat.domains.lattice import BoxLattice
from muhat.errors import InvalidInput

NUMBERS = {
    b'{"x": 1.5}': 1.5,
    b'{"x": -3, "y": 1}': -3.0,
    b' {"y": {"x": 7}, "x": 2e3} \r': 2000.0,
    b'{"x": "4.5"}': 4.5,
    b'{"x": " 4 "}': 4.0,
    b'{"x": true}': 1.0,
    b'{"x": false}': 0.0,
    b'{"x": 1, "x": 2}': 2.0,
    b'{"x": 9007199254740993}': 9007199254740992.0,
    b'{"\\u0078": 6}': 6.0,
    b'{"y": "line\\nbreak \\" {", "x": 8}': 8.0,
}
MISSING = [
    b"", b" ", b"{}", b"null", b"5", b"[5]", b'{"x": null}', b'{"x": [5]}', b'{"x": {"x": 5}}',
    b'{"x": NaN}', b'{"x": Infinity}', b'{"x": -Infinity}', b'{"x": 1e999}', b'{"x": "a"}',
    b'{"x": 5', b'{"x": 5}}', b'{"x": 5} {"x": 5}', b'{"x": 05}', b'{"X": 5}', b"{'x': 5}",
    b'{"x": 5,}', b"\xff", b'{"x": "\xff"}', b'{"x": "\\ud800"}', b"[" * 100_000,
    b'{"x":' * 100_000, b'{"x": ' + b"9" * 5000 + b"}", b"\x00", b'{"x": "5\\n"}',
]  # fmt: skip


def values(path: Path) -> list[float]:
    return [float(value) for value in gathered(open_source(path, ["x"], 1))[:, 0]]


def test_numbers_texts_and_booleans_are_read_and_all_else_is_missing(tmp_path: Path) -> None:
    lines = [*NUMBERS, *MISSING]
    for name, data in (
        ("x.jsonl", b"\n".join(lines) + b"\n"),
        ("x.ndjson", b"\xef\xbb\xbf" + b"\n".join(lines)),
        ("x.jsonl.gz", gzip.compress(b"\n".join(lines) + b"\n")),
    ):
        (tmp_path / name).write_bytes(data)
        assert open_source(tmp_path / name, ["x"], 1).rows() == len(lines)
        found = values(tmp_path / name)
        assert found[: len(NUMBERS)] == list(NUMBERS.values())
        assert all(math.isnan(value) for value in found[len(NUMBERS) :])


def test_columns_must_be_named_and_a_key_that_nobody_has_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"x": 1}\n{"x": 2}\n')
    with pytest.raises(InvalidInput, match="columns must be named"):
        open_source(path, None, 1)
    source = open_source(path, ["nobody"], 1)
    assert source.rows() == 2
    assert np.isnan(gathered(source)).all()


def test_labels_are_matched_as_in_other_files(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        b'{"a": "f\\nm", "b": true, "c": 3}\n{"a": "m", "b": "false", "c": "3.0"}\n'
        b'{"a": null, "b": 1, "c": 4}\n{"a": 5, "c": [3]}\n'
    )
    categories = categories_of(
        {"a": ["f\nm", "m", "5"], "b": [False, True], "c": [3, 4]}, missing="other"
    )
    counts = open_cells(path, ["a", "b", "c"], categories).count([(0,), (1,), (2,)])
    assert counts[0,].tolist() == [1, 1, 1, 1]
    assert counts[1,].tolist() == [1, 2, 1]
    assert counts[2,].tolist() == [2, 1, 1]


@given(st.lists(st.sampled_from([*NUMBERS, *MISSING[:-5]]), max_size=9), st.integers(1, 60))
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_blocks_and_units_of_work_change_nothing(
    tmp_path: Path, lines: list[bytes], block: int
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    lattice = BoxLattice.around([0.0], [16.0])
    expected = exact_sums(open_source(path, ["x"], 1), lattice, missing="drop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "BLOCK_BYTES", block)
        patch.setattr(text_file, "PARTITION_BYTES", 50)
        source = open_source(path, ["x"], 1)
        assert source.rows() == len(lines)
        with paced(threads=3):
            assert exact_sums(source, lattice, missing="drop") == expected


def test_a_line_longer_than_memory_should_hold_is_one_missing_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "LONGEST_RECORD", 1 << 10)
    monkeypatch.setattr(text_file, "BLOCK_BYTES", 1 << 8)
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"x": 1}\n{"x": "' + b"9" * 5000 + b'"}\n{"x": 2}\n')
    source = open_source(path, ["x"], 1)
    assert source.rows() == 3
    assert [value for value in values(path) if value == value] == [1.0, 2.0]
