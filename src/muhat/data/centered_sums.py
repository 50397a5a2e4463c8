"""Exact sums of the columns of a source, each measured from a public centre of its own.

x − centre is computed record by record and put on a public lattice around 0, which clamps it:
whatever the subtraction rounds to, a record adds integers of the lattice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.data.base import Source
from muhat.data.bin_counts import values_of
from muhat.data.distances import bounded
from muhat.data.engine import Accumulator, read_once
from muhat.data.states import Numbers, joined
from muhat.domains.lattice import BoxLattice
from muhat.records.columns import Batch, Floats

_LARGEST = float(np.finfo(np.float64).max)


def centered_sums(
    source: Source, centers: Sequence[float | None], lattices: Sequence[BoxLattice]
) -> list[int]:
    """One pass: Σ q of every column, q the integer of x − centre on the column's own lattice.

    A column without a centre is left out and its sum is 0. A missing or non-finite value counts
    as the centre. Raises DataChanged and SourceFailed
    as `exact_sums` does.
    """
    accumulators = read_once(source, lambda: CenteredAccumulator(centers, lattices))
    return [sum(parts) for parts in zip(*(each.totals for each in accumulators), strict=True)]


class CenteredAccumulator:
    """Adds up batches, each column from its own centre; not shared between threads."""

    def __init__(self, centers: Sequence[float | None], lattices: Sequence[BoxLattice]) -> None:
        self._centers = centers
        self._sums = [Accumulator(lattice) for lattice in lattices]
        self.rows = 0

    @property
    def totals(self) -> list[int]:
        """Σ q of every column."""
        return [each.total[0] for each in self._sums]

    def add(self, batch: Batch) -> None:
        """Add the integers of every record; one of which nothing is there adds none."""
        self.rows += batch.rows + batch.absent
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            floats = bounded(batch, _LARGEST)
            for column, center in enumerate(self._centers):
                if center is not None:
                    offsets = values_of(floats, column) - center
                    self._sums[column].add(Batch(batch.rows, [Floats(offsets)]))

    def state(self) -> Numbers:
        """The records seen, and Σ q of every column."""
        return joined(self.rows, self.totals)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        for sums, total in zip(self._sums, state[1:], strict=True):
            sums.absorb(joined(0, 0, [total]))
