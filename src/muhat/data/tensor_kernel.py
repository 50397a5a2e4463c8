"""Records onto a tensor lattice: clip to the unit ball, multiply out, then as a ball's records.

Products and quotients of single coordinates only, in a fixed order: a record's bits never depend
on its neighbours. Privacy rests on the ball's integer check alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.data.ball_kernel import BallKernel
from muhat.data.columns import Column, FloatArray, Floats
from muhat.data.exact import Steps, split
from muhat.data.gauge_kernel import norms
from muhat.domains.lattice import TensorLattice
from muhat.domains.moment_tensor import MomentTensor


class TensorKernel:
    """Puts blocks of records on a tensor lattice; holds buffers, so one a thread."""

    def __init__(self, lattice: TensorLattice) -> None:
        tensors = MomentTensor(lattice.order, lattice.record_dim)
        self._indices = tensors.indices.tolist()
        self._roots = np.sqrt(tensors.multiplicities).tolist()
        self._ball = BallKernel(lattice.ball)
        nothing = [Floats(np.full(1, np.nan))] * lattice.record_dim
        with np.errstate(all="ignore"):
            self.absent: Steps | None = self.integers(nothing, drop=False)[0]

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        return self._ball.sums(self._lifted(columns, drop), drop=drop)

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, r); dropped records are rows of zeros."""
        return self._ball.integers(self._lifted(columns, drop), drop=drop)

    def _lifted(self, columns: Sequence[Column], drop: bool) -> list[Floats]:
        """√m(α)·x^α of every record; not-a-number all over where a record is to be dropped."""
        inside = _in_unit_ball([_finite(column, drop) for column in columns])
        lifted = []
        for multiset, root in zip(self._indices, self._roots, strict=True):
            product = inside[multiset[0]] * root
            for index in multiset[1:]:
                product = product * inside[index]
            lifted.append(Floats(product))
        return lifted


def _finite(column: Column, drop: bool) -> FloatArray:
    """The values, and 0, the centre, for those that are missing; or not-a-number to drop them."""
    values, low = split(column)
    if low is not None:
        values = values + low
    return np.where(column.present(), values, np.nan if drop else 0.0)


def _in_unit_ball(values: list[FloatArray]) -> list[FloatArray]:
    """x/max(‖x‖, 1), by way of x/max(‖x‖_∞, 1), whose squares cannot overflow."""
    largest = np.maximum(norms(values, np.inf), 1.0)
    near = [value / largest for value in values]
    length = np.maximum(norms(near, 2), 1.0)
    # A value that was scaled down has the length 1 at least, and ends on the sphere.
    return [value / length for value in near]
