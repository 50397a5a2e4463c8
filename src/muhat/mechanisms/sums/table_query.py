"""The integer answer for records that are one of finitely many points, or parts of them.

A record in cell k adds the public integer vector Y_k to the sum: v = Σ_k count_k·Y_k, exact. A
record of parts q_k ≥ 0 that add up to T adds Σ_k q_k·Y_k, and v = ⌊Σ_k S_k·Y_k/T⌉. The table is
the points in whitened coordinates, times a scale, rounded; whatever rounding did, the sensitivity
is that of the table itself: parts move within the hull of its rows, so the largest distance
between two rows bounds a replacement, and the longest row a record that comes or goes. In the ℓ₁
norm two rows are at most as far apart as they are long together: unit vectors just so far.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat.domains.integers import TableLattice
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.integer_query import TOO_STRONG
from muhat.mechanisms.sums.sum_query import SumQuery
from muhat.noise.law import ScaleFamily
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

BLOCK = 1 << 11


@dataclass(frozen=True, eq=False)
class TableQuery(SumQuery):
    """v = Σ_k count_k·Y_k for counts of cells, or for parts of corners.

    `table` holds Y as floats that are whole numbers, of shape (N, r), a row a cell or corner, the
    corner 0 last; a row of v is worth 1/`scale` in whitened coordinates.
    """

    lattice: TableLattice
    table: Floats
    scale: float

    count_multiplier = None
    from_zero = False

    @property
    def rows(self) -> int:
        return int(self.table.shape[1])

    @property
    def sum_rows(self) -> int:
        """How many of the rows are sums of values: all."""
        return self.rows

    def answer(self, totals: Sequence[int], count: int) -> list[int]:
        """v for the number of records in every cell, or the sums of parts."""
        bits = self.lattice.part_bits
        sums = [0] * self.rows
        for cell, number in enumerate(self.lattice.corner_totals(totals, count)):
            if number:
                for row, entry in enumerate(self.table[cell].tolist()):
                    sums[row] += number * int(entry)
        half = (1 << bits) >> 1
        return [(total + half) >> bits for total in sums]

    def units(self) -> list[Fraction]:
        """How much one unit of v is worth in each row."""
        return [1 / Fraction(self.scale)] * self.rows

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖v − v'‖₁ or ‖v − v'‖₂ over all neighbours.

        Only parts are rounded after it.
        """
        if norm not in (1, 2):
            raise InvalidInput("listed points and parts are released in the ℓ₁ or the ℓ₂ norm.")
        rounding = _rounding(self.rows, norm) if self.lattice.part_bits else 0.0
        moved = _reach(self.table, neighbors, norm)
        return contributions * Fraction(moved) + Fraction(rounding)

    def to_dict(self) -> dict[str, Any]:
        """For the plan's digest."""
        words = np.ascontiguousarray(self.table, "<f8").tobytes()
        return {"table_sha256": hashlib.sha256(words).hexdigest(), "scale": self.scale.hex()}


def fit_table(
    lattice: TableLattice,
    whitened: Floats,
    law: ScaleFamily,
    protection: Protection,
    share: Fraction,
) -> TableQuery:
    """The table that is as large as a share allows; whitened points of shape (N, r)."""
    contributions, norm = protection.contributions, law.sensitivity_norm
    spread = _reach(whitened, protection.neighbors, norm)
    if spread == 0 or whitened.shape[1] == 0:
        return TableQuery(lattice, np.zeros_like(whitened), 1.0)
    room = math.sqrt(protection.strength_squared(law.kind) * share) * float(law.unit)
    # Rounding the table moves a distance by at most √r, and rounding v by √r more; r in ℓ₁.
    rounding = _rounding(whitened.shape[1], norm) * (1 + 1 / contributions)
    scale = (room / contributions * (1 - 2.0**-40) - rounding) / spread
    if scale * spread < 2.0**20:
        raise InvalidInput(TOO_STRONG)
    return TableQuery(lattice, np.rint(whitened * scale), scale)


def _rounding(rows: int, norm: float) -> float:
    """The norm of (1, …, 1), rounded up."""
    return math.sqrt(rows) * (1 + 2.0**-50) if norm == 2 else float(rows)


def _reach(table: Floats, neighbors: Neighbors, norm: float) -> float:
    """A proved upper bound on how far one record can move the sum of rows."""
    replaced = neighbors is Neighbors.SUBSTITUTE
    if norm == 2 and replaced:
        return largest_distance(table)
    if not table.size:
        return 0.0
    if norm == 1:
        longest = np.sort(np.sum(np.abs(table), axis=1))[-2 if replaced else -1 :]
        return float(longest.sum() * (1 + (table.shape[1] + 8) * 2.0**-53))
    # r squares and their sum round at most r + 1 times, the root once.
    length = math.sqrt(float(np.sum(table**2, axis=1).max()))
    return float(length * (1 + (table.shape[1] + 8) * 2.0**-53))


def largest_distance(points: Floats) -> float:
    """A proved upper bound on the largest distance between two rows, within 10^−12 of it.

    Distances come from inner products, off by at most 4(r + 4)u·(largest norm)² each; only
    points whose norms can reach the record are paired.
    """
    if len(points) < 2 or points.shape[1] == 0:
        return 0.0
    centred = points - (points.max(axis=0) + points.min(axis=0)) / 2
    squares = np.sum(centred**2, axis=1)
    norms = np.sqrt(squares)
    order = np.argsort(-norms)
    centred, squares, norms = centred[order], squares[order], norms[order]
    best = 0.0
    for start in range(0, len(centred), BLOCK):
        if norms[start] + norms[0] <= math.sqrt(best):
            break
        block = centred[start : start + BLOCK]
        partners = np.searchsorted(-norms, -(math.sqrt(best) - norms[start]), side="right")
        near = centred[: max(int(partners), 1)]
        inner = block @ near.T
        found = squares[start : start + BLOCK, None] + squares[None, : len(near)] - 2 * inner
        best = max(best, float(found.max()))
    slack = 8 * (points.shape[1] + 6) * 2.0**-53 * float(squares[0])
    return math.sqrt(best + slack) * (1 + 2.0**-50)
