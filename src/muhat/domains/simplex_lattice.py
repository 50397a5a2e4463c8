"""The integers of shares: whole steps that add up to a public total."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muhat import _check
from muhat.errors import InvalidInput

LARGEST_DIM = 1 << 18


@dataclass(frozen=True)
class SimplexLattice:
    """Integers q ≥ 0 with Σ q = total, or Σ q ≤ total with `origin`, standing for q·2^exponent.

    The exponent is −44 and the total 2^44, so that the corners of conv(e_1, …, e_d) and of
    conv(0, e_1, …, e_d) are on the grid. Sums are relative to 0. A missing coordinate becomes
    that of the centroid; a record of which nothing is there becomes `center_units`. With an
    `offset` records are given moved by it; sums are of what they were before.

    >>> lattice = SimplexLattice(3)
    >>> lattice.total == 2**44 == sum(lattice.center_units)
    True
    """

    dim: int
    origin: bool = False
    offset: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _check.count("dim", self.dim, most=LARGEST_DIM))
        if not isinstance(self.origin, bool):
            raise InvalidInput(f"origin must be True or False; got {self.origin!r:.40}.")
        if self.offset is not None:
            offset = tuple(_check.real("offset", value) for value in self.offset)
            if len(offset) != self.dim:
                raise InvalidInput("offset must have one number a coordinate.")
            object.__setattr__(self, "offset", offset if any(offset) else None)

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        return self.dim

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

    def to_dict(self) -> dict[str, Any]:
        """Integers, and floats as hexadecimal text, so that a digest of it is stable."""
        fields: dict[str, Any] = {
            "kind": "simplex",
            "dim": self.dim,
            "origin": int(self.origin),
            "exponent": self.exponent,
        }
        if self.offset is not None:
            fields["offset"] = [value.hex() for value in self.offset]
        return fields
