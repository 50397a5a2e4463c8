"""The one kernel: batches of records in, exact integer sums out.

The sum is the same for every batch split, order, thread count and layout, because every
record becomes its own integers first, by itself, and integers add exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.data.states import Numbers, joined
from muhat.domains.integers import Lattice
from muhat.records.columns import Batch, Column, FloatArray, Floats
from muhat.records.exact import Steps
from muhat.records.tiles import transposed

_BLOCK_VALUES = 1 << 19
_MOST_ROWS = 1 << 16
_FEWEST_ROWS = 1 << 10
_MOST_VALUES = 1 << 22


class Accumulator:
    """Adds batches up on a lattice; not shared between threads.

    `total` is Σ q of every sum, `rows` the records seen and `counted` those that count: all of
    them with missing="center", with missing="drop" the complete ones, and known codes only.
    """

    def __init__(self, lattice: Lattice, missing: str = "center") -> None:
        self._drop = _check.one_of("missing", missing, ("center", "drop")) == "drop"
        self._kernel = lattice.kernel()
        self._block_rows = _rows_a_block(lattice.width)
        self._tile = np.empty((lattice.record_dim, 0))
        self._total: NDArray[Any] = np.zeros(lattice.dim, lattice.sum_type)
        self.rows = 0
        self.counted = 0

    @property
    def total(self) -> list[int]:
        """Σ q, one Python integer a sum."""
        return list(self._total.tolist())

    def add(self, batch: Batch) -> None:
        """Add the integers of every record of the batch."""
        self.rows += batch.rows + batch.absent
        if batch.absent and not self._drop:
            self.counted += batch.absent
            if self._kernel.absent is not None:
                self._total += batch.absent * self._kernel.absent.astype(self._total.dtype)
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            for columns in self._blocks(batch):
                sums, counted = self._kernel.sums(columns, drop=self._drop)
                self.counted += counted
                self._total += np.asarray(sums, self._total.dtype)

    def state(self) -> Numbers:
        """The records seen, those that count, and Σ q of every sum."""
        return joined(self.rows, self.counted, self._total)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self.counted += int(state[1])
        self._total += state[2:].astype(self._total.dtype)

    def _blocks(self, batch: Batch) -> Iterator[Sequence[Column]]:
        for start in range(0, batch.rows, self._block_rows):
            stop = min(start + self._block_rows, batch.rows)
            if batch.matrix is None:
                yield [column.part(start, stop) for column in batch.columns]
            else:
                yield [Floats(row) for row in self._transposed(batch.matrix[start:stop])]

    def _transposed(self, rows: FloatArray) -> FloatArray:
        """The block with its coordinates as contiguous rows, shape (d, rows)."""
        if self._tile.shape[1] < len(rows):
            self._tile = np.empty((rows.shape[1], len(rows)))
        return transposed(rows, self._tile[:, : len(rows)])


def record_integers(lattice: Lattice, batch: Batch, missing: str = "center") -> Steps:
    """q of every record of a batch, shape (rows, lattice.dim): what the sums are made of.

    For tests and audits: it is data, not a release. Absent records are not listed. Records of
    listed points are one-hot.
    """
    drop = _check.one_of("missing", missing, ("center", "drop")) == "drop"
    columns = batch.columns
    if batch.matrix is not None:
        columns = [Floats(batch.matrix[:, index]) for index in range(batch.matrix.shape[1])]
    with np.errstate(all="ignore"):
        return lattice.kernel().integers(columns, drop=drop)


def _rows_a_block(dim: int) -> int:
    """Many enough to hide numpy's overhead, few enough to stay in the cache."""
    rows = min(_BLOCK_VALUES // dim, _MOST_ROWS)
    return max(rows, min(_FEWEST_ROWS, _MOST_VALUES // dim), 1)
