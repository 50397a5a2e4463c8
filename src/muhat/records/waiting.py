"""Records put aside until there are enough of them to be worked on fast."""

from __future__ import annotations

import numpy as np

from muhat.records.columns import FloatArray
from muhat.records.tiles import Indices, is_wide, transposed

_ENOUGH_VALUES = 1 << 18
_FEWEST_ROWS, _MOST_ROWS = 1 << 10, 1 << 15


class Waiting:
    """Records of d coordinates, taken from tiles of any layout; not shared between threads."""

    def __init__(self, dim: int) -> None:
        self._enough = min(max(_ENOUGH_VALUES // dim, _FEWEST_ROWS), _MOST_ROWS)
        self._wide = np.empty((0, dim))
        self._wide_rows = 0
        self._tall: list[FloatArray] = []
        self._tall_rows = 0
        # Where wide ones are transposed to; kept, because page faults cost more than the copy.
        self._taken = np.empty(0)

    def put(self, values: FloatArray, places: Indices) -> bool:
        """Keep some records of a tile of shape (rows, d); whether there are enough now."""
        if is_wide(values):
            stop = self._wide_rows + len(places)
            if len(self._wide) < stop:
                self._grow(max(stop, self._enough) + len(values))
            # In any other mode numpy would fill a copy first.
            np.take(values, places, axis=0, out=self._wide[self._wide_rows : stop], mode="clip")
            self._wide_rows = stop
        else:
            self._tall.append(np.take(values.T, places, axis=1))
            self._tall_rows += len(places)
        return self._wide_rows + self._tall_rows >= self._enough

    def take(self) -> FloatArray:
        """All of them, shape (d, rows), valid until the next is put."""
        rows, dim = self._wide_rows, self._wide.shape[1]
        taken = self._taken[: rows * dim].reshape(dim, rows)
        transposed(self._wide[:rows], taken)
        if self._tall:
            taken = np.concatenate([taken, *self._tall], axis=1)
        self._wide_rows = self._tall_rows = 0
        self._tall = []
        return taken

    def _grow(self, rows: int) -> None:
        wide = np.empty((rows, self._wide.shape[1]))
        wide[: self._wide_rows] = self._wide[: self._wide_rows]
        self._wide, self._taken = wide, np.empty(wide.size)
