"""Some coordinates of the records of a source, as a source of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic

import numpy as np

from muhat.data.base import Accumulated, Source
from muhat.data.states import Numbers
from muhat.records.columns import Batch


class ChosenColumns(Source):
    """The coordinates at these `places`; `whole` is the source of all of them."""

    def __init__(self, whole: Source, places: Sequence[int]) -> None:
        self.whole = whole
        self.places = tuple(places)
        self.columns = tuple(whole.columns[place] for place in places)
        self.types = tuple(whole.types[place] for place in places)
        self.complete = whole.complete

    @property
    def known_rows(self) -> int | None:
        return self.whole.known_rows

    def rows(self) -> int:
        return self.whole.rows()

    def check_unchanged(self) -> None:
        self.whole.check_unchanged()

    def fold(self, accumulator: Callable[[], Accumulated]) -> list[Accumulated] | None:
        found = self.whole.fold(partial(_Chosen, accumulator, self.places))
        return None if found is None else [each.inner for each in found]

    def keep(self) -> None:
        self.whole.keep()


class _Chosen(Generic[Accumulated]):
    """Adds some coordinates of every record to an accumulator."""

    def __init__(self, accumulator: Callable[[], Accumulated], places: tuple[int, ...]) -> None:
        self.inner = accumulator()
        self._places = places

        self.rows = 0

    def add(self, batch: Batch) -> None:
        self.rows += batch.rows + batch.absent
        matrix = batch.matrix
        if matrix is not None:
            matrix = np.ascontiguousarray(matrix[:, list(self._places)])
        columns = [batch.columns[place] for place in self._places] if batch.columns else ()
        self.inner.add(replace(batch, columns=columns, matrix=matrix))

    def state(self) -> Numbers:
        return self.inner.state()

    def absorb(self, state: Numbers) -> None:
        self.inner.absorb(state)
        self.rows = self.inner.rows
