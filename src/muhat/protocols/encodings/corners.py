"""Records as one of finitely many corners: themselves, or drawn so that on average they are.

Listed points are corners; shares of a whole are means of the unit vectors, and a device draws one
of these with its shares as probabilities. The shares are the integers of the domain's lattice, so
the draw is exact. docs/proofs/local.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.data.engine import record_integers
from muhat.domains import Domain
from muhat.domains.integers import TableLattice
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.records.columns import Batch

MOST_CORNERS = 4096
"""A message has a bit for each."""


@dataclass(frozen=True, eq=False)
class Corners:
    """The m corners of a domain, `points` of shape (m, d), and the integers of its records."""

    domain: Domain
    points: Floats
    lattice: TableLattice

    @classmethod
    def of(cls, domain: Domain) -> Self | None:
        """Those of a domain whose records are means of a few corners; None of another one.

        >>> from muhat.domains import Ball, Simplex
        >>> len(Corners.of(Simplex(dim=3)).points), Corners.of(Ball(1.0, dim=3))
        (3, None)
        """
        lattice = domain.preimage().domain.corner_lattice()
        points = None if lattice is None else domain.vertices()
        if lattice is None or points is None or not 2 <= len(points) <= MOST_CORNERS:
            return None
        return cls(domain, points, lattice)

    @property
    def are_records(self) -> bool:
        """Whether every record is a corner, not a mean of several."""
        return self.lattice.part_bits == 0

    @cached_property
    def middle(self) -> Floats:
        """The mean of the corners, of shape (d,)."""
        first = self.points[0]
        return np.asarray(first + (self.points - first).mean(axis=0))

    @cached_property
    def offsets(self) -> Floats:
        """The corners from their mean, of shape (m, d)."""
        return np.asarray(self.points - self.middle)

    def parts(self, records: Floats) -> Integers:
        """How much of every corner a record is, in 2^-part_bits, of shape (rows, m)."""
        inside = self.domain.preimage().domain.clip(records)
        integers = record_integers(self.lattice, Batch(len(inside), matrix=inside))
        return np.stack(list(self.lattice.corner_totals(list(integers.T), 1)), axis=1)

    def drawn(self, records: Floats, words: Words = system_words) -> Integers:
        """A corner for each record, with its parts as probabilities, exactly."""
        ends = np.cumsum(self.parts(records), axis=1)
        unused = np.uint64(WORD_BITS - 1 - self.lattice.part_bits)
        place = ((words(len(records)) >> np.uint64(1)) >> unused).astype(np.int64)
        return np.asarray((ends[:, :-1] <= place[:, None]).sum(axis=1))
