"""The integers of a product: the columns of a record go to the lattices of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat.domains.integers import Kernel, Lattice
from muhat.errors import InvalidInput
from muhat.records.columns import Column, whole_records
from muhat.records.exact import Steps


@dataclass(frozen=True)
class ProductLattice(Lattice):
    """The sums of every part, one after the other.

    >>> from muhat.domains.lattice import BoxLattice, SimplexLattice
    >>> parts_and_a_number = ProductLattice((SimplexLattice(3), BoxLattice.around([0], [1])))
    >>> parts_and_a_number.record_dim, parts_and_a_number.dim
    (4, 4)
    """

    kind = "product"
    parts: tuple[Lattice, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("a product of lattices needs at least one part.")

    @property
    def record_dim(self) -> int:
        return sum(part.record_dim for part in self.parts)

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def width(self) -> int:
        return sum(part.width for part in self.parts)

    def kernel(self) -> ProductKernel:
        return ProductKernel(self)


class ProductKernel:
    """Puts blocks of records on a product of lattices."""

    def __init__(self, lattice: ProductLattice) -> None:
        self._parts: list[tuple[slice, Kernel]] = []
        absent, start = [], 0
        for part in lattice.parts:
            stop = start + part.record_dim
            made = part.kernel()
            self._parts.append((slice(start, stop), made))
            absent.append(np.zeros(part.dim, np.int64) if made.absent is None else made.absent)
            start = stop
        self.absent: Steps | None = np.concatenate(absent)

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        if drop:
            # A record is dropped from all parts alike.
            rows = np.flatnonzero(whole_records(columns))
            columns = [column.pick(rows) for column in columns]
        totals: list[int] = []
        for block, kernel in self._parts:
            totals += [int(total) for total in kernel.sums(columns[block], drop=False)[0]]
        return totals, len(columns[0].values)

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, dim); dropped records are rows of zeros."""
        parts = [kernel.integers(columns[block], drop=False) for block, kernel in self._parts]
        stacked = np.hstack(parts)
        if drop:
            stacked[~whole_records(columns)] = 0
        return stacked
