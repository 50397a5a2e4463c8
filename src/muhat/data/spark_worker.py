"""What runs in Spark's Python workers: Arrow batches in, one row of whole numbers out.

The accumulators are those of the embedded engine. Nothing raised here says why: Spark writes the
messages of its workers to its logs, and a reader's message may quote what it read.
"""

from __future__ import annotations

import pickle
import sys
import zipimport
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.data.arrow import batch_of, is_text
from muhat.data.base import Accumulates
from muhat.data.selection import Coders
from muhat.data.states import Numbers, packed, unpacked
from muhat.data.text_numbers import numbers_in
from muhat.records.columns import Batch

SCHEMA = "state binary"
"""What a partition becomes: the state of its accumulator."""


@dataclass(frozen=True)
class WorkerPass:
    """What a pass does with the columns of Arrow batches, in their order.

    `widths` has the number of coordinates of a column of lists, 0 for a column of plain values.
    Where rows are `left_out`, one more column has their numbers. (Spark shows its plans, so this
    is no part of one.)
    """

    accumulator: Callable[[], Accumulates]
    coders: Coders
    widths: Sequence[int]
    left_out: Numbers | None = None

    def fold(self, batches: Iterator[Any]) -> Accumulates:
        """Add all records of a partition up."""
        accumulator = self.accumulator()
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            for batch in batches:
                accumulator.add(self._batch(batch))
        return accumulator

    def merge(self, batches: Iterator[Any]) -> Accumulates:
        """Add the states of partitions up."""
        accumulator = self.accumulator()
        for batch in batches:
            for state in batch.column(0):
                accumulator.absorb(unpacked(state.as_buffer()))
        return accumulator

    def _batch(self, batch: Any) -> Batch:
        if self.left_out is not None:
            kept = ~np.isin(batch.columns[-1].to_numpy(), self.left_out)
            batch = batch.select(range(len(self.widths))).filter(kept)
        columns = [
            vectors(column, width) if width else column
            for column, width in zip(batch.columns, self.widths, strict=True)
        ]
        # Numbers in text, where they are asked for: that of CSV files.
        columns = [
            numbers_in(column) if coder is None and is_text(column.type) else column
            for column, coder in zip(columns, self.coders, strict=True)
        ]
        return batch_of(columns, self.coders)


def run(task: bytes, work: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Carry out the "fold" or the "merge" of a pickled pass; yields one batch of one row."""
    import pyarrow as pa

    state = None
    try:
        # Made anew for every partition: an accumulator may share something with its copies.
        this: WorkerPass = pickle.loads(task)
        state = packed((this.fold if work == "fold" else this.merge)(batches).state())
    except Exception:
        state = None
    if state is None:
        raise RuntimeError("muhat: a partition could not be read to the end")
    forget_zips()
    yield pa.RecordBatch.from_arrays([pa.array([state], pa.binary())], names=["state"])


def vectors(array: Any, width: int) -> Any:
    """A column of lists as one of lists of fixed size; a list of another length is missing."""
    import pyarrow as pa

    offsets = np.asarray(array.offsets, np.int64)
    lengths = np.diff(offsets)
    if not array.null_count and (lengths == width).all():
        child = array.values.slice(int(offsets[0]), len(array) * width)
        return pa.FixedSizeListArray.from_arrays(child, width)
    good = lengths == width
    if array.null_count:
        good &= np.asarray(array.is_valid())
    places = np.where(good, offsets[:-1], 0)[:, None] + np.arange(width)
    absent = np.repeat(~good, width)
    child = array.values.take(pa.array(places.reshape(-1), pa.int64(), mask=absent))
    return pa.FixedSizeListArray.from_arrays(child, width)


def forget_zips() -> None:
    """Have this process forget the archives it imported from.

    Spark has its workers look for new modules before every task, and Python 3.11 then reads the
    whole directory of every archive again, once for each package in it: more work than a small
    partition is. An archive that is needed again is found again.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
