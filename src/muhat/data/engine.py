"""One pass over the data, wherever they are: every record once, exact sums, or a plain failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from muhat.data.base import Accumulated, Added, PartitionedSource, Source
from muhat.data.kernel import Accumulator
from muhat.domains.lattice import Lattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.records.columns import Batch, FloatArray
from muhat.records.tiles import floats


@dataclass(frozen=True)
class Sums:
    """Σ q of every coordinate (or cell), and the records counted. It is data: never show it."""

    total: tuple[int, ...]
    rows: int

    def __repr__(self) -> str:
        return f"Sums(dim={len(self.total)})"


def exact_sums(source: Source, lattice: Lattice, *, missing: str = "center") -> Sums:
    """One pass over the source: the integer sums of its records on the lattice.

    The result is the same for every engine and number of threads. Raises DataChanged if the source
    is not what was opened, and SourceFailed, without a word of the cause, if it cannot be read.
    """
    if source.dim != lattice.record_dim:
        raise InvalidInput(f"the data have {source.dim} columns, the domain {lattice.record_dim}.")
    accumulators = read_once(source, lambda: Accumulator(lattice, missing))
    total = tuple(sum(parts) for parts in zip(*(each.total for each in accumulators), strict=True))
    return Sums(total, sum(each.counted for each in accumulators))


def read_once(source: Source, accumulator: Callable[[], Accumulated]) -> list[Accumulated]:
    """One pass over the source, every record of it added to one of the accumulators.

    `accumulator` is sent to where the records are: it must hold nothing of the source. Raises
    DataChanged and SourceFailed as `exact_sums` does.
    """
    source.check_unchanged()
    found = source.fold(accumulator)
    return _checked(source, found)


def read_here(source: Source, accumulator: Callable[[], Added]) -> list[Added]:
    """As `read_once`, by something that works on this machine only; see `require_here`."""
    here = require_here(source)
    source.check_unchanged()
    found = here.fold(accumulator)
    return _checked(source, found)


def require_here(source: Source) -> PartitionedSource:
    """Refuse a source whose records are elsewhere: they are never fetched."""
    if not isinstance(source, PartitionedSource):
        raise InvalidInput(
            "must be on this machine for this: it needs all records at once, and those of a "
            "cluster are never fetched",
            parameter="data",
            hint=(
                "Write them to a file and pass its path; some mechanisms can do with numbered "
                "rows: spark_data(frame, materialize=path)."
            ),
        )
    return source


def _checked(source: Source, accumulators: list[Added] | None) -> list[Added]:
    source.check_unchanged()
    if accumulators is None:
        raise SourceFailed(
            "the data could not be read to the end: the file may be damaged. The charge stays."
        )
    if source.known_rows not in (None, sum(each.rows for each in accumulators)):
        raise DataChanged("the data have changed their length since they were counted.")
    return accumulators


def gathered(source: Source) -> FloatArray:
    """One pass: the records as floats, of shape (rows, d), in no order that is to be relied on.

    What is missing or not finite becomes not-a-number. Raises DataChanged and SourceFailed as
    `exact_sums` does.
    """
    dim = source.dim
    parts = [part for each in read_here(source, lambda: _Gatherer(dim)) for part in each.parts]
    return np.concatenate(parts) if parts else np.empty((0, dim))


class _Gatherer:
    """Keeps batches, for one thread."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self.parts: list[FloatArray] = []
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Keep every record of the batch."""
        self.rows += batch.rows + batch.absent
        if batch.matrix is not None:
            values = batch.matrix.copy()
        else:
            values = np.column_stack([floats(column) for column in batch.columns])
        values[~np.isfinite(values)] = np.nan
        self.parts.append(values)
        if batch.absent:
            self.parts.append(np.full((batch.absent, self._dim), np.nan))
