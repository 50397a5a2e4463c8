"""Dask DataFrames as a source: every partition is folded where it is, sums come home.

Workers need muhat installed, which is tried out before anything is charged. Dask's graphs hold the
seeds of whatever is random in them, so a frame is the same rows every time it is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from muhat.data.base import Accumulated, PartitionedSource, Source, paced
from muhat.data.selection import Coders, Columns
from muhat.data.states import packed, unpacked
from muhat.data.tables import open_pandas
from muhat.data.unit_choice import places_of
from muhat.data.unit_ids import Identities, IdentityCoder
from muhat.errors import DataChanged, InvalidInput


class DaskSource(Source):
    """Some columns of a Dask DataFrame."""

    def __init__(self, frame: Any, columns: Columns, dim: int | None, coders: Coders) -> None:
        # An empty frame of the same types: what is refused is refused as for pandas.
        opened = open_pandas(frame._meta, columns, dim, coders)
        self.columns, self.types = opened.columns, opened.types
        self._frame, self._dtypes = frame, frame._meta.dtypes
        self._options = (columns, dim, coders)
        self._rows: int | None = None
        self._together = False
        if self._computed([b""], _probe) is None:
            raise InvalidInput("muhat does not run on Dask's workers: install it there.")

    @property
    def known_rows(self) -> int | None:
        """The number of records that were counted, or that the first pass saw."""
        return self._rows

    def rows(self) -> int:
        """By a task a partition."""
        if self._rows is None:
            counts = self._computed(self._frame.to_delayed(), len)
            if counts is None:
                raise InvalidInput("data could not be counted to the end.")
            self._rows = sum(counts)
        return self._rows

    def check_unchanged(self) -> None:
        """Raise DataChanged if columns or types are not what they were."""
        if not self._frame._meta.dtypes.equals(self._dtypes):
            raise DataChanged("the columns of the data have changed since they were opened.")

    def together(self) -> Source:
        """Rows with equal ids in the last column come to one task, through workers' memory."""
        whole = copy(self)
        whole._together = True
        return whole

    def fold(self, accumulator: Callable[[], Accumulated]) -> list[Accumulated] | None:
        """A task a partition."""
        import cloudpickle

        task = cloudpickle.dumps((accumulator, self._options))
        states = self._computed(self._parts(), lambda part: _fold(task, part))
        if states is None or None in states:
            return None
        total = accumulator()
        for state in states:
            total.absorb(unpacked(state))
        self._rows = total.rows if self._rows is None else self._rows
        return [total]

    def _parts(self) -> list[Any]:
        """Partitions, or as many that have all rows of everybody in them."""
        import dask

        parts = list(self._frame.to_delayed())
        if not self._together:
            return parts
        columns, _, _ = self._options
        assert columns is not None
        deal, join = (dask.delayed(work, pure=False) for work in (_dealt, _joined))
        dealt = [deal(part, columns[-1], len(parts)) for part in parts]
        return [join([each[place] for each in dealt]) for place in range(len(parts))]

    def _computed(self, parts: list[Any], work: Callable[[Any], Any]) -> list[Any] | None:
        """What becomes of every part, or None: an exception may quote what was read."""
        import dask

        try:
            return list(dask.compute(*(dask.delayed(work, pure=False)(part) for part in parts)))
        except Exception:
            return None


def _fold(task: bytes, part: Any) -> bytes | None:
    """The state of a partition, or None: workers log what is raised beside what it was about."""
    import pickle

    try:
        # Made anew for every partition: an accumulator may share something with its copies.
        accumulator, (columns, dim, coders) = pickle.loads(task)
        source = open_pandas(part, columns, dim, coders)
        assert isinstance(source, PartitionedSource)
        with paced(threads=1, show_progress=False):
            found = source.fold(accumulator)
        return None if found is None else packed(found[0].state())
    except Exception:
        return None


def _dealt(part: Any, column: str | int, count: int) -> list[Any]:
    """The rows of a partition by ids, in so many frames; nothing in each if that fails."""
    try:
        source = open_pandas(part, (str(column),), None, (IdentityCoder(),))
        assert isinstance(source, PartitionedSource)
        batches = [batch for unit in source.partitions() for batch in unit.batches()]
        ids = [batch.columns[0] for batch in batches]
        found = [places_of(each, count) for each in ids if isinstance(each, Identities)]
        places = np.concatenate([np.zeros(0, np.intp), *found])
        return [part.iloc[places == place] for place in range(count)]
    except Exception:
        return [None] * count


def _joined(parts: list[Any]) -> Any:
    """Frames one after another; nothing if one of them is nothing."""
    import pandas as pd

    try:
        return pd.concat(parts) if all(part is not None for part in parts) else None
    except Exception:
        return None


def _probe(nothing: bytes) -> int:
    return len(nothing)
