"""Records onto an image lattice: clip part by part, then as a ball's records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.data.ball_kernel import BallKernel
from muhat.data.clip_kernel import blanked, clip_function
from muhat.data.columns import Column, Floats
from muhat.data.exact import Steps
from muhat.domains.lattice import ImageLattice


class ImageKernel:
    """Puts blocks of records on an image lattice; holds buffers, so one a thread."""

    def __init__(self, lattice: ImageLattice) -> None:
        self._functions, start = [], 0
        for clip in lattice.clips:
            stop = start + clip.record_dim
            self._functions.append((slice(start, stop), clip_function(clip)))
            start = stop
        self._ball = BallKernel(lattice.ball)
        nothing = [Floats(np.full(1, np.nan))] * lattice.record_dim
        with np.errstate(all="ignore"):
            self.absent: Steps | None = self.integers(nothing, drop=False)[0]

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        return self._ball.sums(self._clipped(columns, drop), drop=drop)

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, r); dropped records are rows of zeros."""
        return self._ball.integers(self._clipped(columns, drop), drop=drop)

    def _clipped(self, columns: Sequence[Column], drop: bool) -> list[Floats]:
        clipped = []
        for block, function in self._functions:
            clipped += function(columns[block])
        if drop:
            clipped = blanked(clipped, columns)
        return [Floats(values) for values in clipped]
