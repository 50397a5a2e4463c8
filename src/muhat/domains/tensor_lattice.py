"""The integers of moment tensors: records are lifted to x ⊗ … ⊗ x, then they are a ball's."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muhat import _check
from muhat.domains.ball_lattice import BallLattice


@dataclass(frozen=True)
class TensorLattice:
    """Records x in R^d, moved into the unit ball, as the integers of x^{⊗order} on `ball`.

    `ball` is a lattice of the lifted coordinates, √m(α)·x^α for every multiset α of indices.
    """

    order: int
    record_dim: int
    ball: BallLattice

    def __post_init__(self) -> None:
        _check.count("order", self.order)
        _check.count("record_dim", self.record_dim)

    @property
    def dim(self) -> int:
        """The number of sums."""
        return self.ball.dim

    @property
    def exponent(self) -> int:
        """The grid is 2^exponent."""
        return self.ball.exponent

    @property
    def grid(self) -> Fraction:
        """The step 2^exponent."""
        return self.ball.grid

    @property
    def radius(self) -> int:
        """Σ q² ≤ radius² for the integers of every record."""
        return self.ball.radius

    def to_dict(self) -> dict[str, Any]:
        """Stable, for a digest."""
        return {"kind": "tensor", "order": self.order, "ball": self.ball.to_dict()}
