"""The integers a record becomes: a public grid inside a domain, shared by plan and kernel.

A lattice is made of public integers only. The plan computes the sensitivity on it, the kernel
puts every record on it, so no rounding direction in between can matter for privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from muhat._plain import Plain
from muhat.records.columns import Column, FloatArray, whole_records
from muhat.records.exact import Steps
from muhat.records.tiles import Indices, Tiles

if TYPE_CHECKING:
    from muhat.domains.box_lattice import BoxLattice

ClipFunction = Callable[[Sequence[Column]], list[FloatArray]]
"""Columns of records in, coordinates of points of a domain out, each record by itself.

A coordinate that is missing or not finite counts as the centre's."""


class Kernel(Protocol):
    """Puts blocks of records on a lattice; may hold buffers, so one a thread."""

    @property
    def absent(self) -> Steps | None:
        """What a record adds of which nothing is there; None stands for zeros."""

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[Any, int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, dim); dropped records are rows of zeros."""


class StepsKernel(ABC):
    """A kernel that makes all integers of a block before it adds them up."""

    absent: Steps | None = None
    """What a record adds of which nothing is there; None stands for zeros."""

    @abstractmethod
    def steps(self, columns: Sequence[Column]) -> Steps:
        """q of every record of a block, shape (dim, rows)."""

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        steps, counted = self._kept(columns, drop)
        return np.add.reduce(steps, axis=1).tolist(), counted

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, dim); dropped records are rows of zeros."""
        return np.ascontiguousarray(self._kept(columns, drop)[0].T)

    def _kept(self, columns: Sequence[Column], drop: bool) -> tuple[Steps, int]:
        steps = self.steps(columns)
        if not drop:
            return steps, steps.shape[1]
        kept = whole_records(columns)
        steps[:, ~kept] = 0
        return steps, int(np.count_nonzero(kept))


class TiledSums(Protocol):
    """Adds up tiles of records that have been moved to a centre; not shared between threads."""

    @property
    def is_about_zero(self) -> bool:
        """Whether records are where they should be without being moved: y = x."""

    @property
    def total(self) -> list[int]:
        """Σ q, one Python integer a sum."""

    def tiles(self, magnitude: float) -> Tiles:
        """What moves records to the centre, after clipping their coordinates to ±magnitude."""

    def add(self, values: FloatArray, squares: FloatArray, strays: Indices) -> None:
        """Add records but for some: y of shape (rows, d), and Σ y_j² up to rounding.

        The sums of squares of all but the strays are below `LARGEST`. The values are overwritten.
        """


class Clip(Protocol):
    """How a record is moved into a domain, in floats, before it is mapped.

    It acts on the record alone; privacy does not rest on it: an integer check comes after.
    """

    @property
    def record_dim(self) -> int:
        """The number of columns it reads."""

    @property
    def clipped_dim(self) -> int:
        """The number of coordinates it gives."""

    def clip_function(self) -> ClipFunction:
        """What moves blocks of records."""

    def to_dict(self) -> dict[str, Any]:
        """Stable, for a digest."""


class Lattice(Plain, ABC, tag="kind", exact=True):
    """The integers that stand for records."""

    kind: ClassVar[str]
    sum_type: ClassVar[type] = object
    """What sums are kept in: Python integers, of any size."""
    by_column: ClassVar[bool] = False
    """Whether it leaves missing values out of their column by itself, and not whole records."""
    of_any_width: ClassVar[bool] = False
    """Whether records may have other columns than `record_dim`: `for_width` decides."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of sums."""

    @property
    @abstractmethod
    def record_dim(self) -> int:
        """The number of coordinates of a record."""

    @property
    def width(self) -> int:
        """Floats a record has on its way."""
        return max(self.record_dim, self.dim)

    @property
    def plain_box(self) -> BoxLattice | None:
        """The grid of the columns, where sums are those of their values; else None."""
        return None

    @property
    def axis_radius(self) -> float | None:
        """How far coordinates reach, where squares of each may stand beside the sums; else None."""
        return None

    def for_width(self, columns: int) -> Lattice:
        """The lattice for records of so many columns."""
        return self

    @abstractmethod
    def kernel(self) -> Kernel:
        """What makes the integers of records."""

    def tiled_sums(self) -> TiledSums | None:
        """What adds up records that are bounded and moved elsewhere; None if only a kernel does."""
        return None


class SumLattice(Lattice):
    """A lattice whose sums are released as they are, times integers: its exact sensitivity.

    A query has rows, each a multiplier times a sum that is measured from somewhere: from 0 if
    `from_zero`, as a sum with a secret number of records needs it, else from where it is best.
    """

    @property
    @abstractmethod
    def steps(self) -> tuple[Fraction, ...]:
        """The grid of the coordinates that share a multiplier, one a multiplier."""

    def row_multipliers(self, multipliers: Sequence[int], from_zero: bool) -> tuple[int, ...]:
        """The multiplier of every row."""
        return tuple(multipliers) * self.dim

    def row_steps(self, from_zero: bool) -> list[Fraction]:
        """What one unit of the sum in every row is worth."""
        return list(self.steps) * self.dim

    def measured(self, totals: Sequence[int], count: int, from_zero: bool) -> Sequence[int]:
        """The sums from where they are measured, one a row, for the number of records."""
        return totals

    def largest(self, multipliers: Sequence[int]) -> int | None:
        """The largest number of a record, times its multiplier; None where it must be looked for.

        Of sums that are measured from the centre.
        """
        return None

    @abstractmethod
    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        """How far one record can move the rows in the ℓ₁, ℓ₂ or ℓ_∞ norm, rounded up.

        A record that is `replaced` by another, or one that comes or goes.
        """


class TableLattice(Lattice):
    """A lattice whose records are means of finitely many corners: counts, or parts of them."""

    @property
    @abstractmethod
    def part_bits(self) -> int:
        """A record's parts of the corners are integers that add up to 2^bits."""

    @abstractmethod
    def corner_totals(self, totals: Sequence[int], count: int) -> Sequence[int]:
        """The sum of the parts of every corner, from the sums and the number of records."""
