"""Records onto the lattices of a product: every part puts its own columns on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from muhat.data.box_kernel import whole_records
from muhat.data.columns import Column
from muhat.data.exact import Steps
from muhat.domains.lattice import PartLattice, ProductLattice


class PartKernel(Protocol):
    """What the kernel of a part does."""

    @property
    def absent(self) -> Steps | None:
        """What a record adds of which nothing is there; None stands for zeros."""

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[Any, int]:
        """Σ q of every coordinate, and records counted."""

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record, shape (rows, dim)."""


class ProductKernel:
    """Puts blocks of records on a product of lattices."""

    def __init__(
        self, lattice: ProductLattice, kernel: Callable[[PartLattice], PartKernel]
    ) -> None:
        self._parts: list[tuple[slice, PartKernel]] = []
        absent, start = [], 0
        for part in lattice.parts:
            stop = start + part.record_dim
            made = kernel(part)
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
