"""The integers of a product: the columns of a record go to the lattices of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muhat.domains.ball_lattice import BallLattice
from muhat.domains.box_lattice import BoxLattice
from muhat.domains.image_lattice import ImageLattice
from muhat.domains.moment_lattice import MomentLattice
from muhat.domains.points_lattice import PointsLattice
from muhat.domains.simplex_lattice import SimplexLattice
from muhat.errors import InvalidInput

PartLattice = (
    BoxLattice | BallLattice | SimplexLattice | PointsLattice | ImageLattice | MomentLattice
)


@dataclass(frozen=True)
class ProductLattice:
    """The sums of every part, one after the other.

    >>> shares_and_a_number = ProductLattice((SimplexLattice(3), BoxLattice.around([0], [1])))
    >>> shares_and_a_number.record_dim, shares_and_a_number.dim
    (4, 4)
    """

    parts: tuple[PartLattice, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("a product of lattices needs at least one part.")

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        return sum(part.record_dim for part in self.parts)

    @property
    def dim(self) -> int:
        """The number of sums."""
        return sum(part.dim for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Stable, for a digest."""
        return {"kind": "product", "parts": [part.to_dict() for part in self.parts]}
