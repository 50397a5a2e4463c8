"""The engine: same bits for every number of threads, bounded memory, and silence."""

from __future__ import annotations

import io
import math
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from muhat import _progress
from muhat.data import engine, exact_sums, memory, open_source
from muhat.data.base import Partition, PartitionedSource, paced
from muhat.data.inspect import inspect
from muhat.domains.lattice import (
    BallLattice,
    BoxLattice,
    Lattice,
    LpGauge,
    PointsLattice,
    SchattenGauge,
    SimplexLattice,
)
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.records.columns import Batch, Floats

CANARY = "canary-7310442"
UNIT = BoxLattice.around([0.0], [1.0])


class Made(PartitionedSource):
    """A source of partitions made by the test."""

    columns = ("x",)
    types = ("float64",)
    known_rows: int | None = None  # type: ignore[assignment]

    def __init__(self, parts: Sequence[Any], change_after: int | None = None) -> None:
        self.parts = parts
        self.checks = 0
        self.change_after = change_after

    def rows(self) -> int:
        return 0

    def partitions(self) -> list[Partition]:
        return [Partition(8, part) for part in self.parts]

    def check_unchanged(self) -> None:
        self.checks += 1
        if self.change_after is not None and self.checks > self.change_after:
            raise DataChanged("changed")


def ones(count: int) -> Any:
    def batches() -> Iterator[Batch]:
        yield Batch(count, [Floats(np.ones(count))])

    return batches


def failing() -> Iterator[Batch]:
    yield Batch(1, [Floats(np.ones(1))])
    raise ValueError(CANARY)


@pytest.mark.parametrize(
    "lattice",
    [
        BoxLattice.around([-1] * 4, [2] * 4),
        BallLattice.around([0.1] * 4, 1.0),
        BallLattice.around([0.1] * 4, 1.0, LpGauge(1.2, (1.0,) * 4)),
        BallLattice.mapped([0.1] * 4, [[0.1, 0.2, 0.3, 0.4]] * 2, SchattenGauge(1, (2, 2), 1.0)),
        BallLattice.scaled([0.1] * 4, [1, 2, 3, 4]),
        SimplexLattice(4),
        SimplexLattice(4, origin=True),
        PointsLattice.of(np.eye(4), nearest=True),
    ],
)
def test_sum_is_the_same_for_every_number_of_threads(
    lattice: Lattice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = np.random.default_rng(30).standard_normal((20_000, 4))
    made[::97, 1] = np.nan
    pq.write_table(
        pa.table({str(j): made[:, j] for j in range(4)}), tmp_path / "x.parquet", row_group_size=999
    )
    monkeypatch.setattr(memory, "PARTITION_VALUES", 4_000)
    monkeypatch.setattr("muhat.data.parquet._PARTITION_BYTES", 1000)
    sums = set()
    for threads in (1, 2, 3, 8):
        with paced(threads=threads):
            for data in (made, tmp_path / "x.parquet"):
                sums.add(exact_sums(open_source(data, dim=4), lattice))
    assert len(sums) == 1
    assert len(sums.pop().total) == lattice.dim


def test_every_partition_is_read_once() -> None:
    parts = [ones(count) for count in range(1, 30)]
    for threads in (1, 4):
        with paced(threads=threads):
            sums = exact_sums(Made(parts), UNIT)
        assert sums.rows == sum(range(1, 30))
        assert sums.total == (sums.rows * UNIT.upper[0],)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_reader_that_fails_says_nothing(threads: int, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SourceFailed) as caught, paced(threads=threads):
        exact_sums(Made([ones(3), failing, ones(3)]), UNIT)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("checks", [0, 1])
def test_changes_before_and_after_the_pass_are_noticed(checks: int) -> None:
    with pytest.raises(DataChanged):
        exact_sums(Made([ones(1)], change_after=checks), UNIT)


def test_a_pass_that_sees_other_rows_than_were_counted_is_refused() -> None:
    source = Made([ones(3)])
    source.known_rows = 4
    with pytest.raises(DataChanged) as caught:
        exact_sums(source, UNIT)
    assert not any(character.isdigit() for character in str(caught.value))


def test_other_dimensions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="columns"):
        exact_sums(Made([ones(1)]), BoxLattice.around([0, 0], [1, 1]))
    with pytest.raises(InvalidInput, match="1 columns, the domain 3"):
        exact_sums(Made([ones(1)]), BallLattice.mapped([0, 0, 0], [[1, 1, 1]]))
    assert exact_sums(Made([ones(1)]), BallLattice.mapped([0], [[0.5], [0.25]])).total == (
        1 << 43,
        1 << 42,
    )


def test_sums_do_not_show_themselves() -> None:
    sums = exact_sums(Made([ones(12345)]), UNIT)
    assert repr(sums) == "Sums(dim=1)"


def test_poison_records_have_the_same_outcome_and_warn_of_nothing(tmp_path: Path) -> None:
    poison = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308, -1.7976931348623157e308]
    calm = np.random.default_rng(31).random((1000, 2))
    lattices: list[Lattice] = [
        BoxLattice.around([0, 0], [1, 1]),
        BallLattice.around([0.5, 0.5], 0.3),
        BallLattice.whitened([0.5, 0.5], [[3.0], [1.0, 2.0]]),
        BallLattice.scaled([0.5, 0.5], [3.0, 2.0], LpGauge(1.5, (0.3, 0.2))),
        BallLattice.mapped([0.5, 0.5], [[3.0, 1.0]], SchattenGauge(1, (2, 1), 0.3)),
        SimplexLattice(2),
        SimplexLattice(2, origin=True),
        PointsLattice.of([[0, 0], [1, 1]], nearest=True),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in poison:
            struck = calm.copy()
            struck[17] = value
            struck[18, 1] = value
            path = tmp_path / "x.parquet"
            pq.write_table(pa.table({"a": struck[:, 0], "b": struck[:, 1]}), path)
            for lattice in lattices:
                for data in (struck, path):
                    sums = exact_sums(open_source(data, dim=2), lattice)
                    assert sums.rows == 1000
                    rest = np.delete(struck, [17, 18], axis=0)
                    others = exact_sums(open_source(rest, dim=2), lattice)
                    pair = exact_sums(open_source(struck[17:19], dim=2), lattice)
                    assert sums.total == tuple(
                        a + b for a, b in zip(others.total, pair.total, strict=True)
                    )


def test_a_parquet_pass_holds_a_few_batches_at_a_time(tmp_path: Path) -> None:
    rows = 3_000_000
    table = pa.table({"x": np.random.default_rng(32).random(rows)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=rows // 12, use_dictionary=False)
    del table
    source = open_source(tmp_path / "x.parquet", ["x"], 1)
    pool = pa.default_memory_pool()
    highest = 0
    original = engine.Accumulator.add

    def watch(self: engine.Accumulator, batch: Batch) -> None:
        nonlocal highest
        highest = max(highest, pool.bytes_allocated())
        original(self, batch)

    before = pool.bytes_allocated()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.Accumulator, "add", watch)
        with paced(threads=2):
            exact_sums(source, UNIT)
    assert highest - before < rows * 8 / 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_per_cent_on_a_terminal_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(_progress, "PATIENCE_SECONDS", 0.0)
    exact_sums(Made([ones(4321)] * 3), UNIT)
    assert "reading" in shown.getvalue()
    assert "100%" in shown.getvalue()
    assert "4321" not in shown.getvalue()
    assert "12963" not in shown.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_short_work_and_pipes_see_no_progress(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    stderr = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    # Other tests have read a moment ago: this is new work.
    monkeypatch.setattr(_progress.WorkDone, "ended", -math.inf)
    if not terminal:
        monkeypatch.setattr(_progress, "PATIENCE_SECONDS", 0.0)
    exact_sums(Made([ones(5)] * 3), UNIT)
    with paced(show_progress=False):
        exact_sums(Made([ones(5)] * 3), UNIT)
    assert stderr.getvalue() == ""


def test_passes_close_to_each_other_have_their_patience_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(_progress.WorkDone, "ended", -math.inf)
    exact_sums(Made([ones(5)] * 3), UNIT)
    assert shown.getvalue() == ""
    monkeypatch.setattr(
        _progress.WorkDone, "began", _progress.WorkDone.began - _progress.PATIENCE_SECONDS
    )
    exact_sums(Made([ones(5)] * 3), UNIT)
    assert "100%" in shown.getvalue()


def test_no_thread_is_left_behind() -> None:
    with pytest.raises(SourceFailed), paced(threads=4):
        exact_sums(Made([failing] * 5), UNIT)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("muhat")]


@pytest.mark.parametrize("threads", [1, 3])
def test_no_value_raises_a_warning_or_fails_while_it_is_read(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "PARTITION_VALUES", 1)
    single = np.array([0x7FA00000, 0x3F800000], np.uint32).view(np.float32)
    half = np.array([0x7D00, 0x3C00], np.uint16).view(np.float16)
    for values in (single, half, single.byteswap().view(single.dtype.newbyteorder())):
        kinds: list[Any] = [values, np.stack([values] * 2, axis=1), {"x": values}, list(values)]
        if values.dtype.isnative:
            pair = pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(values, 2)), 2)
            kinds += [pa.table({"x": values}), pa.table({"x": pair})]
        for data in kinds:
            source = open_source(data)
            lattice = BoxLattice.around([0.0] * source.dim, [1.0] * source.dim)
            # What the caller has set for numpy must not matter either.
            with np.errstate(all="raise"):
                with paced(threads=threads):
                    total = exact_sums(source, lattice).total
                assert inspect(source).columns[0].maximum == 1.0
            assert total == lattice.upper
