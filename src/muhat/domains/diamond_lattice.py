"""The integers of an ℓ₁ ball: whole steps from its centre whose sizes add up to a public total.

The kernel has element-wise + − × ÷ and comparisons, coordinates in ascending order: a record's
integers never depend on its neighbours. docs/proofs/integers.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from muhat import _check
from muhat.domains.integers import StepsKernel, SumLattice
from muhat.domains.parts_lattice import LARGEST_DIM
from muhat.errors import InvalidInput
from muhat.records.columns import Column, FloatArray
from muhat.records.exact import Steps, split
from muhat.records.norms import largest, total


@dataclass(frozen=True)
class DiamondLattice(SumLattice):
    """Integers q with Σ|q| ≤ 2^44, standing for the points center + half_widths∘q·2^−44.

    A record outside moves to the boundary along the ray from the centre; a missing coordinate is
    the centre's.

    >>> lattice = DiamondLattice((0.0, 1.0), (2.0, 1.0))
    >>> lattice.sensitivity([1], 1, replaced=True, from_zero=False) == 2 * lattice.unit
    True
    """

    kind = "diamond"
    unit: ClassVar[int] = 1 << 44
    """What stands for a half-width."""

    center: tuple[float, ...]
    half_widths: tuple[float, ...]

    def __post_init__(self) -> None:
        _check.count("dim", len(self.center), most=LARGEST_DIM)
        if len(self.half_widths) != len(self.center) or not min(self.half_widths) > 0:
            raise InvalidInput("half_widths must be as many numbers as center, above 0.")

    @property
    def dim(self) -> int:
        return len(self.center)

    @property
    def record_dim(self) -> int:
        return len(self.center)

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return (Fraction(1, self.unit),)

    def largest(self, multipliers: Sequence[int]) -> int:
        return multipliers[0] * self.unit

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        # ‖q − q'‖₁ ≤ 2·2^44, attained at opposite corners, where all norms are the same.
        return multipliers[0] * self.unit * (2 if replaced else 1)

    def kernel(self) -> DiamondKernel:
        return DiamondKernel(self)


class DiamondKernel(StepsKernel):
    """Puts blocks of records on the lattice of an ℓ₁ ball."""

    def __init__(self, lattice: DiamondLattice) -> None:
        self._places = list(zip(lattice.center, lattice.half_widths, strict=True))
        self._unit = lattice.unit

    def steps(self, columns: Sequence[Column]) -> Steps:
        """Rounded steps; what rounding adds to the total is taken off the largest, the first.

        The check at the end is in integers, and all that the promise rests on.
        """
        parts = self._inside(columns) * float(self._unit)
        steps: Steps = np.rint(parts).astype(np.int64)
        first, rows = np.argmax(np.abs(steps), axis=0), np.arange(steps.shape[1])
        beyond = np.maximum(np.add.reduce(np.abs(steps), axis=0) - self._unit, 0)
        steps[first, rows] -= np.sign(steps[first, rows]) * beyond
        proved = (np.abs(steps) <= self._unit).all(axis=0)
        proved &= np.add.reduce(np.abs(steps), axis=0) <= self._unit
        steps[:, ~proved] = 0
        return steps

    def _inside(self, columns: Sequence[Column]) -> FloatArray:
        """(x − center)/half_widths, clipped along its ray, in floats, of shape (d, rows)."""
        points = np.empty((len(columns), len(columns[0].values)))
        for column, (center, width), place in zip(columns, self._places, points, strict=True):
            high, low = split(column)
            place[:] = high - center
            if low is not None:
                place += low
            place /= width
            place[~column.present()] = 0.0
        # Measured by the largest first, so that nothing overflows: it is 1 for what is far out.
        points = np.clip(np.nan_to_num(points, posinf=1e300, neginf=-1e300), -1e300, 1e300)
        points /= np.maximum(largest(np.abs(points)), 1.0)
        return np.asarray(points / np.maximum(total(np.abs(points)), 1.0))
