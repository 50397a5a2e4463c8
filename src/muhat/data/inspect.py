"""A look at the data for their owner: NOT private, used by `muhat check` and nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from muhat._plain import Plain
from muhat.data.base import Source
from muhat.data.engine import require_here
from muhat.errors import InvalidInput, SourceFailed
from muhat.records.columns import Batch, Column, Floats
from muhat.records.exact import split


@dataclass(frozen=True)
class ColumnReport(Plain):
    """What is in one column. Values are seen as the nearest floats.

    `missing` counts nulls and cells that are no numbers, ragged lines included; `non_finite`
    NaN and infinities (in text they are missing); `below` and `above` the finite values outside
    the bounds, None where there is no bound. `minimum` and `maximum` are of the finite values,
    None if there are none. `not_numbers` counts those of the missing in which something is
    written that is no number, None where that cannot be.
    """

    name: str
    type: str
    missing: int
    non_finite: int
    below: int | None
    above: int | None
    minimum: float | None
    maximum: float | None
    not_numbers: int | None = None


@dataclass(frozen=True)
class Report(Plain):
    """What is in a source: records, records of which nothing could be read, and its columns."""

    rows: int
    ragged: int
    columns: tuple[ColumnReport, ...]


def inspect(
    source: Source,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
) -> Report:
    """Read everything once and report what is there. Not private: for the data's owner alone.

    `lower` and `upper` have one bound a coordinate, or are left out.
    """
    here = require_here(source)
    lows, highs = _bounds("lower", lower, source.dim), _bounds("upper", upper, source.dim)
    tallies = [_Tally(low, high) for low, high in zip(lows, highs, strict=True)]
    rows = ragged = 0
    failed = False
    try:
        with np.errstate(all="ignore"):
            for partition in here.partitions():
                for batch in partition.batches():
                    rows += batch.rows + batch.absent
                    ragged += batch.absent
                    for tally, column in zip(tallies, _columns(batch), strict=True):
                        tally.add(column)
    except Exception:
        failed = True
    if failed:
        raise SourceFailed("the data could not be read to the end: the file may be damaged.")
    labels = zip(source.columns, source.types, tallies, strict=True)
    columns = tuple(tally.report(name, kind, ragged) for name, kind, tally in labels)
    return Report(rows, ragged, columns)


@dataclass
class _Tally:
    """Running counts of one column."""

    low: float | None
    high: float | None
    missing: int = 0
    non_finite: int = 0
    below: int = 0
    above: int = 0
    minimum: float = field(default=math.inf)
    maximum: float = field(default=-math.inf)

    def add(self, column: Column) -> None:
        values = split(column)[0]
        if column.valid is not None:
            self.missing += int(np.count_nonzero(~column.valid))
            values = values[column.valid]
        finite = values[np.isfinite(values)]
        self.non_finite += len(values) - len(finite)
        if not len(finite):
            return
        self.minimum = min(self.minimum, float(finite.min()))
        self.maximum = max(self.maximum, float(finite.max()))
        if self.low is not None:
            self.below += int(np.count_nonzero(finite < self.low))
        if self.high is not None:
            self.above += int(np.count_nonzero(finite > self.high))

    def report(self, name: str, kind: str, ragged: int) -> ColumnReport:
        seen = self.minimum <= self.maximum
        unread = self.non_finite if kind == "text" else 0
        return ColumnReport(
            name=name,
            type=kind,
            missing=self.missing + ragged + unread,
            non_finite=self.non_finite - unread,
            below=None if self.low is None else self.below,
            above=None if self.high is None else self.above,
            minimum=self.minimum if seen else None,
            maximum=self.maximum if seen else None,
        )


def _columns(batch: Batch) -> Sequence[Column]:
    if batch.matrix is None:
        return batch.columns
    return [Floats(values) for values in batch.matrix.T]


def _bounds(name: str, bounds: Sequence[float] | None, dim: int) -> list[float | None]:
    if bounds is None:
        return [None] * dim
    if len(bounds) != dim:
        raise InvalidInput(
            f"must have one bound a column: {dim}", parameter=name, value=str(len(bounds))
        )
    return [float(bound) for bound in bounds]
