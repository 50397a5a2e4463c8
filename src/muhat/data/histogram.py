"""From a table of records to exact counts of cells, in the order that a release needs.

`open_cells` checks arguments and metadata, `rows` counts, `count` reads the values: whatever can
be refused is refused before the first value is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from muhat._words import SUBSTITUTE
from muhat.data.base import Source
from muhat.data.categories import Categories
from muhat.data.cell_kernel import Axes, CellAccumulator, CellTables, Table
from muhat.data.coding import Coder
from muhat.data.selection import Columns, column_names
from muhat.data.shared import Pass, Reading, carried_out
from muhat.data.sources import open_source
from muhat.data.units import People
from muhat.errors import InvalidInput


class CellSource:
    """Records whose columns are read as cells; made from arguments and metadata alone."""

    def __init__(self, source: Source, coders: Sequence[Coder]) -> None:
        self._source = source
        self._coders = tuple(coders)

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of every column, in order."""
        return self._source.columns

    @property
    def categories(self) -> tuple[Categories, ...]:
        """The categories of every column, in order."""
        return tuple(coder.categories for coder in self._coders)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of every column: the shape of the histogram."""
        return tuple(coder.size for coder in self._coders)

    def rows(self) -> int:
        """How many records there are, from metadata or by counting lines."""
        return self._source.rows()

    def count(self, sets: Iterable[Axes]) -> dict[Axes, Table]:
        """One pass: for each set of columns the exact table of counts, shape (sizes of the set).

        Axes are positions of columns, tables have them in the order given; () is the number of
        records counted. A record is in every table or, if one of its values has no cell, in none:
        the tables are the marginals of one histogram. Raises DataChanged and SourceFailed as
        `exact_sums` does.
        """
        return carried_out(self.reading(sets))

    def reading(self, sets: Iterable[Axes]) -> Reading[dict[Axes, Table]]:
        """`count`, as a reading that may share its pass."""
        coders, tables = self._coders, CellTables(self.shape, sets)
        yield Pass(self._source, lambda: CellAccumulator(coders, tables))
        return tables.tables()


def open_cells(
    data: Any,
    columns: object,
    categories: Sequence[Categories],
    *,
    people: People | None = None,
) -> CellSource:
    """The data as records in cells, or InvalidInput; no value is read.

    `data` is what `open_source` accepts. `columns` has one name (or number, for an array) for
    each of the categories; None takes the names of the categories, or, for an array that has as
    many columns, its columns in order. `people` as `open_source` has them.
    """
    chosen = column_names(columns)
    if chosen is None:
        chosen = _named_by(data, categories)
    if len(chosen) != len(categories):
        raise InvalidInput(
            f"must be as many as have categories: got {len(chosen)} columns and "
            f"{len(categories)} categories",
            parameter="columns",
        )
    coders = [Coder(each) for each in categories]
    source = open_source(data, chosen, len(chosen), coders=coders, people=people)
    return CellSource(source, coders)


def require_every_record(categories: Iterable[Categories]) -> None:
    """Refuse categories that leave records out, for noise that keeps a public total."""
    for each in categories:
        if not each.keeps_every_record:
            raise InvalidInput(
                f"the categories of {each.name!r:.60} drop records, and this plan, for ",
                SUBSTITUTE,
                ", takes every record to have a cell.",
                hint="Name the categories when you plan: plan_queries(…, categories={…}).",
            )


def _named_by(data: Any, categories: Sequence[Categories]) -> tuple[str, ...] | tuple[int, ...]:
    """The columns that the categories name."""
    names = [each.name for each in categories]
    texts = tuple(name for name in names if isinstance(name, str))
    numbers = tuple(name for name in names if isinstance(name, int))
    if isinstance(data, np.ndarray) and len(texts) == len(names):
        width = data.shape[1] if data.ndim == 2 else 1
        if width == len(names):
            return tuple(range(width))
    chosen: Columns = column_names(texts or numbers)
    if chosen is None or len(chosen) != len(names):
        raise InvalidInput("must name columns all by text or all by number", parameter="categories")
    return chosen
