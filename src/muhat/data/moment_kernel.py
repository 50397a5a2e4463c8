"""Records onto a moment lattice: clip to the unit ball, multiply out, round.

A record that is accepted has a computed x of length at most 1 + 2^−40, and its integers are those
of that very x up to `MomentLattice.slack`: docs/proofs/integers.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.data.box_kernel import whole_records
from muhat.data.clip_kernel import in_unit_ball, monomials, read
from muhat.data.columns import Column, FloatArray
from muhat.data.exact import Steps
from muhat.domains.lattice import MomentLattice

_LIMIT = 1 + 2.0**-42


class MomentKernel:
    """Puts blocks of records on a moment lattice."""

    absent: Steps | None = None
    """A record of which nothing is there is 0, and so are its powers."""

    def __init__(self, lattice: MomentLattice) -> None:
        self._lattice = lattice

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        rows = len(columns[0].values)
        kept = whole_records(columns) if drop else None
        counted = rows if kept is None else int(np.count_nonzero(kept))
        return [int(np.add.reduce(steps)) for steps in self._steps(columns, drop)], counted

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, dim); dropped records are rows of zeros."""
        return np.stack(list(self._steps(columns, drop)), axis=1)

    def _steps(self, columns: Sequence[Column], drop: bool) -> list[Steps]:
        """q, one array a coordinate, the power of the length last."""
        inside = in_unit_ball([read(column, 0.0) for column in columns])
        square = _square(inside)
        accepted = square <= _LIMIT
        if drop:
            accepted &= whole_records(columns)
        if not accepted.all():
            inside = [np.where(accepted, values, 0.0) for values in inside]
            square = np.where(accepted, square, 0.0)
        size = float(self._lattice.steps)
        length = np.full(len(square), 1.0)
        for _ in range(self._lattice.order // 2):
            length = length * square
        powers = [*monomials(self._lattice.order, inside), length]
        return [np.rint(values * size).astype(np.int64) for values in powers]


def _square(vectors: Sequence[FloatArray]) -> FloatArray:
    """Σ x_j², coordinates in ascending order."""
    total: FloatArray = np.square(vectors[0])
    for vector in vectors[1:]:
        total = total + np.square(vector)
    return total
