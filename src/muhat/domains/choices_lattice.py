"""The integers of choices: whole steps between 0 and 1 whose total is bounded.

Element-wise + − × ÷, comparisons and sorting within a record, coordinates in ascending order: a
record's integers never depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat import _check
from muhat._integers import norm_up
from muhat._plain import Key
from muhat.domains.integers import ClipFunction, StepsKernel, SumLattice
from muhat.records.columns import Column, FloatArray
from muhat.records.exact import Steps, read
from muhat.records.norms import total

LARGEST_DIM = 1 << 18
_HALVINGS = 52


@dataclass(frozen=True)
class ChoicesLattice(SumLattice, keys=("dim", "most", "with_total", Key("offset", optional=True))):
    """Integers 0 ≤ q ≤ 2^44 with Σq ≤ most·2^44, standing for q·2^−44.

    Sums have a row a thing and, `with_total`, one more for all of them together, whose multiplier
    is the second. With an `offset` records are given moved by it; sums are of what they were
    before.

    >>> ChoicesLattice(5, 2).sensitivity([1], 1, replaced=True, from_zero=False) / 2**44
    4.0
    """

    kind = "choices"
    size: int
    most: int
    with_total: bool = False
    offset: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        # So many integers of at most 2^44 have a sum of 63 bits, which the kernel's check needs.
        _check.count("dim", self.size, most=LARGEST_DIM)
        object.__setattr__(self, "offset", self.offset if any(self.offset or ()) else None)

    @property
    def dim(self) -> int:
        return self.size

    @property
    def record_dim(self) -> int:
        return self.size

    @property
    def clipped_dim(self) -> int:
        """The number of coordinates of a point of the domain."""
        return self.size

    @property
    def unit(self) -> int:
        """What stands for 1."""
        return 1 << 44

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return (Fraction(1, self.unit),) * (1 + self.with_total)

    def row_multipliers(self, multipliers: Sequence[int], from_zero: bool) -> tuple[int, ...]:
        return (multipliers[0],) * self.size + tuple(multipliers[1:])

    def row_steps(self, from_zero: bool) -> list[Fraction]:
        return [Fraction(1, self.unit)] * (self.size + self.with_total)

    def measured(self, totals: Sequence[int], count: int, from_zero: bool) -> Sequence[int]:
        return [*totals, sum(totals)] if self.with_total else totals

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        # Norms are convex, so the farthest is a corner: k things more, and either none or as many
        # others as possible less.
        each, *total = (b * self.unit for b in multipliers)
        k = self.most
        fewer = {0, min(k, self.size - k) if replaced else 0}
        moves = ([*[each] * (k + m), *[c * (k - m) for c in total]] for m in fewer)
        return max(norm_up(moved, norm) for moved in moves)

    def kernel(self) -> ChoicesKernel:
        return ChoicesKernel(self)

    def clip_function(self) -> ClipFunction:
        """What moves records to the nearest point of the domain, and by the offset."""
        kernel = self.kernel()
        offset = self.offset or (0.0,) * self.size

        def function(columns: Sequence[Column]) -> list[FloatArray]:
            nearest = kernel.nearest(columns)
            return [values + shift for values, shift in zip(nearest, offset, strict=True)]

        return function


class ChoicesKernel(StepsKernel):
    """Puts blocks of records on a lattice of choices."""

    def __init__(self, lattice: ChoicesLattice) -> None:
        self._lattice = lattice
        self._center = lattice.most / (2 * lattice.size)
        middle = lattice.unit * lattice.most // (2 * lattice.size)
        self.absent: Steps = np.full(lattice.size, middle, np.int64)

    def nearest(self, columns: Sequence[Column]) -> FloatArray:
        """The nearest point of the domain for each record, in floats, shape (d, rows)."""
        offset = self._lattice.offset or (0.0,) * self._lattice.size
        pairs = zip(columns, offset, strict=True)
        records = [read(column, self._center + shift) - shift for column, shift in pairs]
        return nearest_choices(np.stack(records), self._lattice.most)

    def steps(self, columns: Sequence[Column]) -> Steps:
        """Whole steps; what rounding leaves over is taken from the largest.

        The check at the end is in integers, and all that the promise rests on.
        """
        unit, most = self._lattice.unit, self._lattice.most * self._lattice.unit
        nearest = self.nearest(columns) * float(unit)
        steps: Steps = np.clip(np.rint(nearest), 0.0, float(unit)).astype(np.int64)
        excess = np.maximum(np.add.reduce(steps, axis=0) - most, 0)
        steps[np.argmax(steps, axis=0), np.arange(steps.shape[1])] -= excess
        proved = (np.add.reduce(steps, axis=0) <= most) & (steps >= 0).all(axis=0)
        proved &= (steps <= unit).all(axis=0)
        if not proved.all():
            steps[:, ~proved] = self.absent[:, None]
        return steps


def nearest_choices(x: FloatArray, most: int) -> FloatArray:
    """The nearest y with 0 ≤ y ≤ 1 and Σy ≤ k, for each column of x: clip(x − τ, 0, 1), τ ≥ 0.

    τ is 0, or within 1 of the (k+1)-th largest coordinate: one below leaves k + 1 ones, one above
    k coordinates at most. So all are measured from that one, and cut where they end at 0 or at 1
    anyway. Each record by itself, its sums in ascending order.
    """
    nearest: FloatArray = np.clip(x, 0.0, 1.0)
    outside = np.flatnonzero(~(total(nearest) <= most))
    if len(outside):
        pivot = np.sort(x[:, outside], axis=0)[-1 - most]
        relative = np.clip(x[:, outside] - pivot, -1.0, 2.0)
        low, high = np.maximum(-pivot, -1.0), np.ones(len(outside))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            much = total(np.clip(relative - middle, 0.0, 1.0)) > most
            low, high = np.where(much, middle, low), np.where(much, high, middle)
        nearest[:, outside] = np.clip(relative - high, 0.0, 1.0)
    return nearest
