"""The integers of a box's columns, and what is summed of each column beside its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muhat.domains.box_lattice import BITS, BoxLattice

SQUARE_UNIT = 1 << BITS
"""Squares of integers of 45 bits are rounded to multiples of this."""

SQUARE_ERROR = 1
"""s is nearer to q²/SQUARE_UNIT than this: ½ for rounding, 2^−8 for the product of two floats."""


@dataclass(frozen=True)
class ColumnsLattice:
    """Σ q of every column; with `squares` Σ s, with `counts` the number of recorded values too.

    s is the integer nearest to q²/2^45, up to one rounding of q² to a float. A missing value adds
    nothing to any of them, or, if the box says where (`absent`), that integer and its square.

    >>> ColumnsLattice(BoxLattice.around([0, 0], [1, 2]), squares=True, counts=True).dim
    6
    """

    box: BoxLattice
    squares: bool = False
    counts: bool = False

    @property
    def dim(self) -> int:
        """The number of sums: first those of the values, then of the squares, then the counts."""
        return self.box.dim * (1 + self.squares + self.counts)

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        return self.box.dim

    def to_dict(self) -> dict[str, Any]:
        """Stable, for a digest."""
        return {
            "kind": "columns",
            "box": self.box.to_dict(),
            "squares": self.squares,
            "counts": self.counts,
        }
