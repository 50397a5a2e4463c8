"""Several integer answers released together: each has a share of the squared sensitivity.

One record moves the parts by at most Δ_1, Δ_2, … at a time, so all of them by at most
√(Δ_1² + Δ_2² + …) in the Euclidean norm. With Δ_i² ≤ s_i·μ² and Σ s_i ≤ 1 the whole keeps the
promise μ; in the ℓ₁ norm all of them by Δ_1 + Δ_2 + …, and with Δ_i ≤ s_i·ε and Σ s_i ≤ 1 it keeps
ε. For a product of domains that is what the smallest ellipsoid around it does too:
each part has the noise of its own, 1/s_i as much of it (docs/proofs/ellipsoids.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat._arrays import Floats
from muhat.domains.blocks import Block
from muhat.domains.integers import SumLattice, TableLattice
from muhat.domains.lattice import Lattice, ProductLattice
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.integer_query import IntegerQuery, fit
from muhat.mechanisms.sums.sum_query import SumQuery
from muhat.mechanisms.sums.table_query import TableQuery, fit_table
from muhat.noise.law import ScaleFamily
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

PartQuery = IntegerQuery | TableQuery


@dataclass(frozen=True, eq=False)
class BlockQuery(SumQuery):
    """The rows of every part, one after the other; the number of records, if at all, comes last."""

    parts: tuple[PartQuery, ...]

    @property
    def lattice(self) -> Lattice | None:
        """What records become integers on: the product of the parts' lattices."""
        lattices = tuple(part.lattice for part in self.parts if part.lattice is not None)
        if len(lattices) > 1:
            return ProductLattice(lattices)
        return lattices[0] if lattices else None

    @property
    def count_multiplier(self) -> int | None:
        """The multiplier of the number of records; None if it is not released."""
        return self.parts[-1].count_multiplier

    @property
    def from_zero(self) -> bool:
        """Whether all sums are measured from 0; one that has no other centre is, either way."""
        return all(part.from_zero for part in self.parts)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def sum_rows(self) -> int:
        return sum(part.sum_rows for part in self.parts)

    def answer(self, totals: Sequence[int], count: int) -> list[int]:
        answers: list[int] = []
        start = 0
        for part in self.parts:
            stop = start + (0 if part.lattice is None else part.lattice.dim)
            answers += part.answer(totals[start:stop], count)
            start = stop
        return answers

    def units(self) -> list[Fraction]:
        """How much one unit of v is worth in each row, in the coordinates of its lattice."""
        return [unit for part in self.parts for unit in part.units()]

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖v − v'‖₁ or ‖v − v'‖₂ over all neighbours."""
        if norm not in (1, 2):
            raise InvalidInput("several parts are released together in the ℓ₁ or the ℓ₂ norm.")
        moved = [part.sensitivity(norm, neighbors, contributions) for part in self.parts]
        if len(moved) == 1 or norm == 1:
            return sum(moved, Fraction(0))
        return length_up(moved)


def length_up(moved: Sequence[Fraction]) -> Fraction:
    """The root of the sum of squares, rounded up."""
    scaled = math.ceil(sum(each**2 for each in moved) * (1 << 128))
    return Fraction(math.isqrt(scaled) + 1, 1 << 64)


def block_query(
    block: Block, law: ScaleFamily, protection: Protection, share: Fraction
) -> PartQuery:
    """The integer answer that takes a share of the squared sensitivity."""
    if block.table is not None:
        assert isinstance(block.lattice, TableLattice)
        return fit_table(block.lattice, block.table, law, protection, share)
    assert isinstance(block.lattice, SumLattice)
    steps = [float(step) for step in block.lattice.steps]
    proportions = [step / float(axis) for step, axis in zip(steps, block.axes, strict=False)]
    return fit(block.lattice, proportions, law, protection, share, from_zero=block.from_zero)


def noise_scales(block: Block, query: PartQuery) -> Floats:
    """The scale of the query's noise on each coordinate of the domain, up to 2^54."""
    rows = np.array([float(unit) for unit in query.units()])
    if block.transform is None:
        return rows
    if block.transform.ndim == 1:
        return np.asarray(rows * block.transform)
    return np.asarray(np.linalg.norm(block.transform * rows, axis=1))
