"""All records of a source in memory, for what must draw some of them at random."""

from __future__ import annotations

import numpy as np

from muhat.data.base import Source
from muhat.data.engine import read_here
from muhat.records.columns import Batch, FloatArray
from muhat.records.tiles import floats


def gathered(source: Source) -> FloatArray:
    """One pass: the records as floats, of shape (rows, d), in no order that is to be relied on.

    What is missing or not finite becomes not-a-number. Raises DataChanged and SourceFailed as
    `exact_sums` does.
    """
    dim = source.dim
    parts = [part for each in read_here(source, lambda: _Gatherer(dim)) for part in each.parts]
    return np.concatenate(parts) if parts else np.empty((0, dim))


class _Gatherer:
    """Keeps batches, for one thread."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self.parts: list[FloatArray] = []
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Keep every record of the batch."""
        self.rows += batch.rows + batch.absent
        if batch.matrix is not None:
            values = batch.matrix.copy()
        else:
            values = np.column_stack([floats(column) for column in batch.columns])
        values[~np.isfinite(values)] = np.nan
        self.parts.append(values)
        if batch.absent:
            self.parts.append(np.full((batch.absent, self._dim), np.nan))
