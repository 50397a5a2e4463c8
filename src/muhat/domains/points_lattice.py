"""The integers of categories: a count of records for each of finitely many cells."""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat.domains.vectors import matrix
from muhat.errors import InvalidInput

MOST_POINTS = 1_000_000


@dataclass(frozen=True)
class PointsLattice:
    """One-hot integers: a record is one of `size` cells, and the sums are counts.

    Without `coordinates` a record is its code 0 … size − 1, in one column. With them (the listed
    points as little-endian float64 in C order) it has d columns, and its cell is that of the
    nearest listed point, the first of them at a tie. A record that is missing, not finite or
    no known code goes to the cell `default`, which is public.

    >>> PointsLattice.of(5).record_dim, PointsLattice.of([[0, 0], [1, 1]], nearest=True).record_dim
    (1, 2)
    """

    size: int
    default: int = 0
    coordinates: bytes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _check.count("points", self.size, most=MOST_POINTS))
        cell = _check.count("default", self.default, least=0, most=self.size - 1)
        object.__setattr__(self, "default", cell)
        if self.coordinates is not None and (
            not self.coordinates or len(self.coordinates) % (8 * self.size)
        ):
            raise InvalidInput("coordinates must be as many float64 for every point.")

    @classmethod
    def of(
        cls, points: int | ArrayLike, *, nearest: bool = False, default: int = 0
    ) -> PointsLattice:
        """The lattice of listed points of shape (n, d), or of their number.

        With `nearest` records are points of R^d, else codes, whatever the points are.
        """
        try:
            size = operator.index(points)  # type: ignore[arg-type]
        except TypeError:
            listed = matrix("points", points, "(n, d), one point a row")
            words = np.ascontiguousarray(listed, "<f8").tobytes() if nearest else None
            return cls(len(listed), default, words)
        if nearest:
            raise InvalidInput("points must be listed for records to move to the nearest one.")
        return cls(size, default)

    @property
    def dim(self) -> int:
        """The number of sums, one count a cell."""
        return self.size

    @property
    def record_dim(self) -> int:
        """The number of columns: 1 for codes, d for points."""
        return 1 if self.coordinates is None else len(self.coordinates) // (8 * self.size)

    @property
    def exponent(self) -> int:
        """Counts are whole: the grid is 2^0."""
        return 0

    @property
    def points(self) -> NDArray[np.float64] | None:
        """The listed points, of shape (n, d), if records move to them."""
        if self.coordinates is None:
            return None
        return np.frombuffer(self.coordinates, "<f8").reshape(self.size, -1).astype(np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Integers, and a digest in place of a long list, so that a digest of it is stable."""
        fields: dict[str, Any] = {"kind": "points", "size": self.size, "default": self.default}
        if self.coordinates is not None:
            fields["record_dim"] = self.record_dim
            fields["coordinates_sha256"] = hashlib.sha256(self.coordinates).hexdigest()
        return fields
