"""The integers of parts: whole steps between 0 and 1 whose total is bounded.

The kernel has element-wise + − × ÷, comparisons and sorting within a record, coordinates in
ascending order: a record's integers never depend on its neighbours. docs/proofs/integers.md and
choices.md have the proofs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from muhat import _check
from muhat.domains.integers import ClipFunction, StepsKernel, SumLattice
from muhat.errors import InvalidInput
from muhat.records.columns import Column, FloatArray
from muhat.records.exact import Steps, split

LARGEST_DIM = 1 << 18
"""So many integers of at most 2^44 have a sum of 63 bits, which the kernel's check needs."""


class PartsLattice(SumLattice):
    """Integers 0 ≤ q ≤ 2^44 with Σ q = total, or Σ q ≤ total, standing for q·2^−44.

    A missing coordinate becomes that of the `center`; a record of which nothing is there becomes
    `center_units`. With an `offset` records are given moved by it; sums are of what they were
    before.
    """

    unit: ClassVar[int] = 1 << 44
    """What stands for 1."""

    size: int
    offset: tuple[float, ...] | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _check.count("dim", self.size, most=LARGEST_DIM))
        if self.offset is not None:
            offset = tuple(_check.real("offset", value) for value in self.offset)
            if len(offset) != self.dim:
                raise InvalidInput("offset must have one number a coordinate.")
            object.__setattr__(self, "offset", offset if any(offset) else None)

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
    @abstractmethod
    def total(self) -> int:
        """What the integers of a record add up to; at most, unless it `is_whole`."""

    @property
    @abstractmethod
    def is_whole(self) -> bool:
        """Whether every record has the same total."""

    @property
    @abstractmethod
    def center(self) -> tuple[float, ...]:
        """What missing coordinates become, before the offset."""

    @property
    @abstractmethod
    def center_units(self) -> tuple[int, ...]:
        """The centre in steps."""

    @abstractmethod
    def nearest(self, points: FloatArray) -> FloatArray:
        """The nearest point of the domain for each column, in floats, shape (d, rows)."""

    def kernel(self) -> PartsKernel:
        return PartsKernel(self)

    def clip_function(self) -> ClipFunction:
        """What moves records to the nearest point of the domain, and by the offset."""
        kernel = self.kernel()
        offset = self.offset or (0.0,) * self.dim

        def function(columns: Sequence[Column]) -> list[FloatArray]:
            nearest = kernel.nearest(columns)
            return [values + shift for values, shift in zip(nearest, offset, strict=True)]

        return function


class PartsKernel(StepsKernel):
    """Puts blocks of records on a lattice of parts."""

    def __init__(self, lattice: PartsLattice) -> None:
        self._lattice = lattice
        offset = lattice.offset or (0.0,) * lattice.dim
        self._places = list(zip(lattice.center, offset, strict=True))
        self.absent: Steps = np.array(lattice.center_units, np.int64)

    def nearest(self, columns: Sequence[Column]) -> FloatArray:
        """The nearest point of the domain for each record, in floats, shape (d, rows)."""
        records = np.empty((len(columns), len(columns[0].values)))
        for column, (center, moved), place in zip(columns, self._places, records, strict=True):
            high, low = split(column)
            place[:] = high if low is None else high + low
            if moved:
                place -= moved
            place[~column.present()] = center
        return self._lattice.nearest(records)

    def steps(self, columns: Sequence[Column]) -> Steps:
        """Parts in whole steps; what rounding leaves over goes to the largest, the first of them.

        The check at the end is in integers, and all that the promise rests on.
        """
        lattice = self._lattice
        unit, total = lattice.unit, lattice.total
        parts = self.nearest(columns) * float(unit)
        steps: Steps = np.clip(np.rint(parts), 0.0, float(unit)).astype(np.int64)
        left = total - np.add.reduce(steps, axis=0)
        if not lattice.is_whole:
            left = np.minimum(left, 0)
        steps[np.argmax(steps, axis=0), np.arange(steps.shape[1])] += left
        sums = np.add.reduce(steps, axis=0)
        proved = (sums == total if lattice.is_whole else sums <= total) & (steps >= 0).all(axis=0)
        if total > unit:
            proved &= (steps <= unit).all(axis=0)
        if not proved.all():
            steps[:, ~proved] = self.absent[:, None]
        return steps
