"""Records onto a simplex lattice: the nearest shares, in whole steps that add up.

Element-wise + − × ÷, comparisons and sorting within a record, coordinates in ascending order: a
record's integers never depend on its neighbours. docs/proofs/integers.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.data.box_kernel import whole_records
from muhat.data.columns import Column, FloatArray, Mask
from muhat.data.exact import Steps, split
from muhat.domains.lattice import SimplexLattice


class SimplexKernel:
    """Puts blocks of records on a simplex lattice."""

    def __init__(self, lattice: SimplexLattice) -> None:
        self._lattice = lattice
        self.absent: Steps = np.array(lattice.center_units, np.int64)

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        steps, kept = self._steps(columns, drop)
        counted = steps.shape[1] if kept is None else int(np.count_nonzero(kept))
        return np.add.reduce(steps, axis=1).tolist(), counted

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, d); dropped records are rows of zeros."""
        return np.ascontiguousarray(self._steps(columns, drop)[0].T)

    def shares(self, columns: Sequence[Column]) -> FloatArray:
        """The nearest point of the simplex for each record, in floats, shape (d, rows)."""
        lattice = self._lattice
        records = np.empty((len(columns), len(columns[0].values)))
        offset = lattice.offset or (0.0,) * lattice.dim
        for column, center, moved, place in zip(
            columns, lattice.center, offset, records, strict=True
        ):
            high, low = split(column)
            place[:] = high if low is None else high + low
            if moved:
                place -= moved
            place[~column.present()] = center
        return self._projected(records)

    def _steps(self, columns: Sequence[Column], drop: bool) -> tuple[Steps, Mask | None]:
        """q, shape (d, rows), and which records are kept; None for all."""
        steps = self._adjusted(self.shares(columns))
        if not drop:
            return steps, None
        kept = whole_records(columns)
        steps[:, ~kept] = 0
        return steps, kept

    def _projected(self, records: FloatArray) -> FloatArray:
        """The nearest point of the simplex for each record, shape (d, rows)."""
        face = _onto_face(records)
        if not self._lattice.origin:
            return face
        positive = np.maximum(records, 0.0)
        total = positive[0].copy()
        for values in positive[1:]:
            total += values
        return np.where(total <= 1.0, positive, face)

    def _adjusted(self, shares: FloatArray) -> Steps:
        """Shares in whole steps; what rounding leaves over goes to the largest, the first of them.

        The check at the end is in integers, and all that the promise rests on.
        """
        total = self._lattice.total
        steps = np.clip(np.rint(shares * float(total)), 0.0, float(total)).astype(np.int64)
        excess = total - _total(steps)
        if self._lattice.origin:
            excess = np.minimum(excess, 0)
        steps[np.argmax(steps, axis=0), np.arange(steps.shape[1])] += excess
        proved = _total(steps) <= total if self._lattice.origin else _total(steps) == total
        proved &= (steps >= 0).all(axis=0)
        if not proved.all():
            steps[:, ~proved] = self.absent[:, None]
        return steps


def _onto_face(records: FloatArray) -> FloatArray:
    """The nearest point with y ≥ 0 and Σy = 1: max(x − τ, 0) with the τ that makes the sum 1.

    τ = max over k of (Σ of the k largest − 1)/k. Coordinates more than 1 below the largest end
    at 0 whatever their size, so all are measured from the largest and cut there.
    """
    largest = records[0].copy()
    for values in records[1:]:
        np.maximum(largest, values, out=largest)
    relative = np.maximum(records - largest, -1.0)
    rising = np.sort(np.ascontiguousarray(relative.T), axis=1)
    running = np.zeros(records.shape[1])
    threshold = np.full(records.shape[1], -np.inf)
    for index in range(len(records)):
        running += rising[:, -1 - index]
        np.maximum(threshold, (running - 1.0) / (index + 1), out=threshold)
    nearest: FloatArray = np.maximum(relative - threshold, 0.0)
    return nearest


def _total(steps: Steps) -> Steps:
    """Σ q of every record; at most 2^18 coordinates of at most 2^44 fit."""
    total: Steps = np.add.reduce(steps, axis=0)
    return total
