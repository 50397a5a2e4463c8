"""Buffers of the kernel that puts records on a ball lattice."""

from __future__ import annotations

from copy import copy

import numpy as np

from muhat.data.columns import FloatArray


class Workspace:
    """Buffers for blocks of up to `rows` records, allocated once: page faults cost more than √."""

    def __init__(self, record_dim: int, dim: int, dense: bool, rows: int) -> None:
        self._moved = np.empty((record_dim, rows))
        # A dense matrix needs every coordinate to the end; a triangle may overwrite them.
        self._whitened = np.empty((dim, rows)) if dense else self._moved
        self._rounded = np.empty((dim, rows))
        self._vectors = np.empty((4, rows))
        self._assign(rows)

    def _assign(self, rows: int) -> None:
        self.rows = rows
        self.moved: FloatArray = self._moved[:, :rows]
        self.whitened: FloatArray = self._whitened[:, :rows]
        self.rounded: FloatArray = self._rounded[:, :rows]
        self.squares: FloatArray = self._vectors[0, :rows]
        self.term: FloatArray = self._vectors[1, :rows]
        self.shrink: FloatArray = self._vectors[2, :rows]
        self.norms: FloatArray = self._vectors[3, :rows]

    def part(self, rows: int) -> Workspace:
        """The same buffers, cut to fewer records."""
        part = copy(self)
        part._assign(rows)
        return part
