"""The integers of a simplex: whole steps that add up to a public total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat._integers import norm_up
from muhat._plain import Key
from muhat.domains.integers import TableLattice
from muhat.domains.parts_lattice import PartsLattice
from muhat.errors import InvalidInput
from muhat.records.columns import FloatArray
from muhat.records.norms import largest, total


@dataclass(frozen=True)
class SimplexLattice(
    PartsLattice, TableLattice, keys=("dim", "origin", "exponent", Key("offset", optional=True))
):
    """Integers q ≥ 0 with Σ q = total, or Σ q ≤ total with `origin`, standing for q·2^exponent.

    The exponent is −44 and the total 2^44, so that the corners of conv(e_1, …, e_d) and of
    conv(0, e_1, …, e_d) are on the grid. Sums are relative to 0. Missing coordinates become those
    of the centroid.

    >>> lattice = SimplexLattice(3)
    >>> lattice.total == 2**44 == sum(lattice.center_units)
    True
    """

    kind = "simplex"
    size: int
    origin: bool = False
    offset: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.origin, bool):
            raise InvalidInput(f"origin must be True or False; got {self.origin!r:.40}.")

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
        return Fraction(1, self.unit)

    @property
    def total(self) -> int:
        return self.unit

    @property
    def is_whole(self) -> bool:
        return not self.origin

    @property
    def center_units(self) -> tuple[int, ...]:
        """The centroid in steps; without `origin` the first coordinate makes up the total."""
        part = round(Fraction(self.total, self.corners))
        first = part if self.origin else self.total - part * (self.dim - 1)
        return (first,) + (part,) * (self.dim - 1)

    @property
    def center(self) -> tuple[float, ...]:
        """1/d each, 1/(d + 1) with `origin`."""
        return (1 / self.corners,) * self.dim

    def nearest(self, points: FloatArray) -> FloatArray:
        return nearest_parts(points, self.origin)

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return (self.grid,)

    @property
    def part_bits(self) -> int:
        return -self.exponent

    def corner_totals(self, totals: Sequence[int], count: int) -> Sequence[int]:
        # The part of the corner 0 is what the others leave of the total.
        return [*totals, count * self.total - sum(totals)] if self.origin else totals

    def row_multipliers(self, multipliers: Sequence[int], from_zero: bool) -> tuple[int, ...]:
        return tuple(multipliers) * (self.dim if from_zero else self.corners)

    def row_steps(self, from_zero: bool) -> list[Fraction]:
        return [self.grid / self.corners] * (self.dim if from_zero else self.corners)

    def measured(self, totals: Sequence[int], count: int, from_zero: bool) -> Sequence[int]:
        # m times the part of each corner, from the centroid; or of each coordinate, from 0.
        if from_zero:
            return [self.corners * total for total in totals]
        whole = count * self.total
        return [self.corners * total - whole for total in self.corner_totals(totals, count)]

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        # Parts q ≥ 0 that add up to T: ‖q − q'‖² ≤ ‖q‖² + ‖q'‖² ≤ 2T² by ⟨q, q'⟩ ≥ 0, and
        # ‖m·q − T·1‖² = m²‖q‖² − mT² ≤ m(m − 1)T².
        m, size = self.corners, multipliers[0] * self.total
        if replaced:
            return norm_up([m * size] * 2, norm)
        if from_zero:
            return m * size
        return norm_up([(m - 1) * size, *[size] * (m - 1)], norm)


def nearest_parts(x: FloatArray, origin: bool) -> FloatArray:
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
