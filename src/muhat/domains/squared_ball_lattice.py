"""The integers of a ball, and the squares of each coordinate beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muhat.domains.ball_lattice import BallLattice
from muhat.errors import InvalidInput


@dataclass(frozen=True)
class SquaredBallLattice:
    """Σ q_j of every coordinate, then Σ s_j, with s_j the integer nearest to q_j²/2^45.

    As in `columns_lattice.py`, up to one rounding of q_j² to a float. The ball's coordinates are
    those of its records up to their scale, so that squares are those of single columns.

    >>> SquaredBallLattice(BallLattice.around([0.0, 0.0], 1.0)).dim
    4
    """

    ball: BallLattice

    def __post_init__(self) -> None:
        if self.ball.whitening is not None:
            raise InvalidInput("squares of a ball are those of its columns: no whitening matrix.")

    @property
    def dim(self) -> int:
        """The number of sums: first those of the values, then of the squares."""
        return 2 * self.ball.dim

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        return self.ball.record_dim

    def to_dict(self) -> dict[str, Any]:
        """Stable, for a digest."""
        return {"kind": "squared-ball", "ball": self.ball.to_dict()}
