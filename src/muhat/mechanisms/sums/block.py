"""One block of a body: some coordinates of a domain, their integers, and the noise they get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat._arrays import Floats
from muhat.domains.lattice import BoxLattice, PartLattice, PointsLattice, SimplexLattice
from muhat.mechanisms.sums.block_query import PartQuery
from muhat.mechanisms.sums.integer_query import fit
from muhat.mechanisms.sums.recipe import Protection
from muhat.mechanisms.sums.table_query import fit_table


@dataclass(frozen=True, eq=False)
class Block:
    """Some coordinates of a domain, ready to be summed and hidden.

    `axes` are the scales of the noise, up to a factor, one a multiplier of the lattice's sums;
    `center`, of shape (d,), is the point that sums are measured from, `transform` maps the
    lattice's coordinates to the domain's as in `Recipe`. `table`, of shape (N, r), holds whitened
    points where records are one of N points, or shares of them.
    """

    lattice: PartLattice
    axes: Floats
    center: Floats
    transform: Floats | None = None
    from_zero: bool = False
    table: Floats | None = None

    def query(self, norm: float, protection: Protection, share: Fraction) -> PartQuery:
        """The integer answer that takes a share of the squared sensitivity."""
        strength_squared = protection.strength_squared * share
        if self.table is not None:
            assert isinstance(self.lattice, PointsLattice | SimplexLattice)
            return fit_table(
                self.lattice,
                self.table,
                neighbors=protection.neighbors,
                strength_squared=strength_squared,
                contributions=protection.contributions,
            )
        assert not isinstance(self.lattice, PointsLattice)
        exponents: Sequence[int] = (
            self.lattice.exponents
            if isinstance(self.lattice, BoxLattice)
            else (self.lattice.exponent,)
        )
        return fit(
            self.lattice,
            [2.0**e / float(s) for e, s in zip(exponents, self.axes, strict=False)],
            from_zero=self.from_zero,
            norm=norm,
            neighbors=protection.neighbors,
            strength_squared=strength_squared,
            contributions=protection.contributions,
        )

    def scales(self, query: PartQuery) -> Floats:
        """The scale of the query's noise on each coordinate of the domain, up to 2^54."""
        rows = np.array([float(unit) for unit in query.units()])
        if self.transform is None:
            return rows
        if self.transform.ndim == 1:
            return np.asarray(rows * self.transform)
        return np.asarray(np.linalg.norm(self.transform * rows, axis=1))
