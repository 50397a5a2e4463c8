"""The integers of shares: whole steps that add up to a public total.

The kernel has element-wise + − × ÷, comparisons and sorting within a record, coordinates in
ascending order: a record's integers never depend on its neighbours. docs/proofs/integers.md has
the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat import _check
from muhat._integers import norm_up
from muhat._plain import Key
from muhat.domains.integers import ClipFunction, StepsKernel, SumLattice, TableLattice
from muhat.errors import InvalidInput
from muhat.records.columns import Column, FloatArray
from muhat.records.exact import Steps, split
from muhat.records.norms import largest, total

LARGEST_DIM = 1 << 18


@dataclass(frozen=True)
class SimplexLattice(
    SumLattice, TableLattice, keys=("dim", "origin", "exponent", Key("offset", optional=True))
):
    """Integers q ≥ 0 with Σ q = total, or Σ q ≤ total with `origin`, standing for q·2^exponent.

    The exponent is −44 and the total 2^44, so that the corners of conv(e_1, …, e_d) and of
    conv(0, e_1, …, e_d) are on the grid. Sums are relative to 0. A missing coordinate becomes
    that of the centroid; a record of which nothing is there becomes `center_units`. With an
    `offset` records are given moved by it; sums are of what they were before.

    >>> lattice = SimplexLattice(3)
    >>> lattice.total == 2**44 == sum(lattice.center_units)
    True
    """

    kind = "simplex"
    size: int
    origin: bool = False
    offset: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _check.count("dim", self.size, most=LARGEST_DIM))
        if not isinstance(self.origin, bool):
            raise InvalidInput(f"origin must be True or False; got {self.origin!r:.40}.")
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
        """The number of coordinates of a point of the simplex."""
        return self.size

    @property
    def corners(self) -> int:
        """The number of corners: one a coordinate, and 0 with `origin`."""
        return self.dim + self.origin

    @property
    def exponent(self) -> int:
        """The grid is 2^exponent."""
        return -44

    @property
    def grid(self) -> Fraction:
        """The step 2^exponent."""
        return Fraction(1, self.total)

    @property
    def total(self) -> int:
        """What the integers of a record add up to; with `origin`, at most."""
        return 1 << -self.exponent

    @property
    def center_units(self) -> tuple[int, ...]:
        """The centroid in steps; without `origin` the first coordinate makes up the total."""
        share = round(Fraction(self.total, self.corners))
        first = share if self.origin else self.total - share * (self.dim - 1)
        return (first,) + (share,) * (self.dim - 1)

    @property
    def center(self) -> tuple[float, ...]:
        """What missing coordinates become, before the offset: 1/d each, 1/(d + 1) with `origin`."""
        return (1 / self.corners,) * self.dim

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return (self.grid,)

    @property
    def share_bits(self) -> int:
        return -self.exponent

    def corner_totals(self, totals: Sequence[int], count: int) -> Sequence[int]:
        # The share of the corner 0 is what the others leave of the total.
        return [*totals, count * self.total - sum(totals)] if self.origin else totals

    def row_multipliers(self, multipliers: Sequence[int], from_zero: bool) -> tuple[int, ...]:
        return tuple(multipliers) * (self.dim if from_zero else self.corners)

    def row_steps(self, from_zero: bool) -> list[Fraction]:
        return [self.grid / self.corners] * (self.dim if from_zero else self.corners)

    def measured(self, totals: Sequence[int], count: int, from_zero: bool) -> Sequence[int]:
        # m times the share of each corner, from the centroid; or of each coordinate, from 0.
        if from_zero:
            return [self.corners * total for total in totals]
        whole = count * self.total
        return [self.corners * total - whole for total in self.corner_totals(totals, count)]

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        # Shares q ≥ 0 that add up to T: ‖q − q'‖² ≤ ‖q‖² + ‖q'‖² ≤ 2T² by ⟨q, q'⟩ ≥ 0, and
        # ‖m·q − T·1‖² = m²‖q‖² − mT² ≤ m(m − 1)T².
        m, size = self.corners, multipliers[0] * self.total
        if replaced:
            return norm_up([m * size] * 2, norm)
        if from_zero:
            return m * size
        return norm_up([(m - 1) * size, *[size] * (m - 1)], norm)

    def kernel(self) -> SimplexKernel:
        return SimplexKernel(self)

    def clip_function(self) -> ClipFunction:
        """What moves records to the nearest point of the simplex, and by the offset."""
        kernel = self.kernel()
        offset = self.offset or (0.0,) * self.dim

        def function(columns: Sequence[Column]) -> list[FloatArray]:
            shares = kernel.shares(columns)
            return [values + shift for values, shift in zip(shares, offset, strict=True)]

        return function


class SimplexKernel(StepsKernel):
    """Puts blocks of records on a simplex lattice."""

    def __init__(self, lattice: SimplexLattice) -> None:
        self._lattice = lattice
        offset = lattice.offset or (0.0,) * lattice.dim
        self._places = list(zip(lattice.center, offset, strict=True))
        self.absent: Steps = np.array(lattice.center_units, np.int64)

    def shares(self, columns: Sequence[Column]) -> FloatArray:
        """The nearest point of the simplex for each record, in floats, shape (d, rows)."""
        records = np.empty((len(columns), len(columns[0].values)))
        for column, (center, moved), place in zip(columns, self._places, records, strict=True):
            high, low = split(column)
            place[:] = high if low is None else high + low
            if moved:
                place -= moved
            place[~column.present()] = center
        return nearest_shares(records, self._lattice.origin)

    def steps(self, columns: Sequence[Column]) -> Steps:
        """Shares in whole steps; what rounding leaves over goes to the largest, the first of them.

        The check at the end is in integers, and all that the promise rests on.
        """
        whole, origin = self._lattice.total, self._lattice.origin
        shares = self.shares(columns) * float(whole)
        steps: Steps = np.clip(np.rint(shares), 0.0, float(whole)).astype(np.int64)
        # At most 2^18 coordinates of at most 2^44 fit.
        excess = whole - np.add.reduce(steps, axis=0)
        if origin:
            excess = np.minimum(excess, 0)
        steps[np.argmax(steps, axis=0), np.arange(steps.shape[1])] += excess
        sums = np.add.reduce(steps, axis=0)
        proved = (sums <= whole if origin else sums == whole) & (steps >= 0).all(axis=0)
        if not proved.all():
            steps[:, ~proved] = self.absent[:, None]
        return steps


def nearest_shares(x: FloatArray, origin: bool) -> FloatArray:
    """The nearest y ≥ 0 with Σy = 1, with `origin` Σy ≤ 1, for each column of x.

    max(x − τ, 0) with the τ that makes the sum 1: τ = max over k of (Σ of the k largest − 1)/k.
    Coordinates more than 1 below the largest end at 0 whatever their size, so all are measured
    from the largest and cut there.
    """
    relative = np.maximum(x - largest(x), -1.0)
    rising = np.sort(np.ascontiguousarray(relative.T), axis=1)
    running = np.zeros(x.shape[1])
    threshold = np.full(x.shape[1], -np.inf)
    for index in range(len(x)):
        running += rising[:, -1 - index]
        np.maximum(threshold, (running - 1.0) / (index + 1), out=threshold)
    nearest: FloatArray = np.maximum(relative - threshold, 0.0)
    if not origin:
        return nearest
    positive = np.maximum(x, 0.0)
    return np.where(total(positive) <= 1.0, positive, nearest)
