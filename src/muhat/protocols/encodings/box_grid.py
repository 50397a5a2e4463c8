"""The integers of a record of a box, in full, so that any device makes the same of a number.

A column has the grid c + q·2^e. A number x becomes the q nearest to (x − c)/2^e, halves to even,
between the ends of the column, and 0 if it is missing; and q becomes

    v = ⌊(b·q + 2^(t−1))/2^t⌋        with the column's multiplier b (t = 0: v = b·q),

all of it exact (docs/proofs/integers.md). A description has e, c (in steps of 2^e), the ends, b and
t: a device needs neither floats nor a plan, and can see for itself how far one record moves v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery
from muhat.mechanisms.sums.integer_query import IntegerQuery

_ALIKE_BITS = 30
"""Two machines may find multipliers that differ in their last digits: this is far below noise."""


@dataclass(frozen=True)
class BoxGrid(Plain):
    """What every column of a box is measured by, one number a column; t is `fraction_bits`."""

    exponents: tuple[int, ...]
    centers: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    multipliers: tuple[int, ...]
    fraction_bits: int

    @classmethod
    def of(cls, query: PartQuery | BlockQuery) -> Self | None:
        """That of a query about a box; None of another one."""
        if not isinstance(query, IntegerQuery) or query.lattice is None:
            return None
        box = query.lattice.plain_box
        if box is None or box != query.lattice:
            return None
        return cls(
            box.exponents,
            box.center_units,
            box.lower,
            box.upper,
            query.multipliers,
            query.fraction_bits,
        )

    def _is_like(self, other: BoxGrid) -> bool:
        mine, others = self.multipliers, other.multipliers
        if self._lattice != other._lattice or len(mine) != len(others):
            return False
        return all(abs(a - b) << _ALIKE_BITS <= b for a, b in zip(mine, others, strict=True))

    @property
    def _lattice(self) -> tuple[object, ...]:
        return self.exponents, self.centers, self.lower, self.upper, self.fraction_bits


def check_grid(found: BoxGrid | None, described: BoxGrid | None) -> None:
    """Refuse a description whose devices would put records on another grid than its server."""
    if found is None and described is None:
        return
    if found is None or described is None or not described._is_like(found):
        raise InvalidInput(
            "this machine finds another grid of the box than the description was made with: its "
            "messages would be misread."
        )
