"""A table of Ibis as a source: sums are made by its backend, or here from batches of its rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from muhat.data.base import Added
from muhat.data.ibis_sql import WORDS, as_tried, chosen, rows_text, sql_column, text_of
from muhat.data.selection import Coders, Columns
from muhat.data.sql import LOG, Ask, answered, queries_of
from muhat.data.sql_query import Query
from muhat.data.tables import StreamSource, open_table
from muhat.data.tallies import tallies_of
from muhat.data.trial import same, trial_table, trial_values
from muhat.errors import InvalidInput


class IbisSource(StreamSource):
    """Some columns of a table of Ibis: added up by its backend, or read here as Arrow.

    Not all backends can be tried beforehand. So each adds up public rows first, by the query that
    records will be added up by, and what it finds in them must be what the embedded engine finds
    (`trial.py`). If it is not, records are read here.
    """

    def __init__(
        self, table: Any, backend: Any | None, columns: Columns, dim: int | None, coders: Coders
    ) -> None:
        """`backend` is who may add up; None if rows are read whatever is asked."""
        super().__init__(table, columns, dim, coders)
        self._backend: Any = backend
        kinds = [table.schema()[name] for name in self._names]
        self._sql = [sql_column(f"x{place}", kind) for place, kind in enumerate(kinds)]
        self._tried = {f"x{place}": as_tried(kind) for place, kind in enumerate(kinds)}

    @property
    def is_slow(self) -> bool:  # type: ignore[override]
        """Rows of a server come over a network."""
        return self._backend is not None

    def rows(self) -> int:
        """Counted by the backend."""
        if self._rows is None:
            with contextlib.suppress(Exception):  # raised outside, where nothing of it hangs on
                self._rows = int(self._data.count().to_pyarrow().as_py())
        if self._rows is None:
            raise InvalidInput("data could not be counted to the end.")
        return self._rows

    def fold(self, accumulator: Callable[[], Added]) -> list[Added] | None:
        """In SQL where the backend shows that it can, else from rows that are read here."""
        total = accumulator()
        queries = None if self._backend is None else queries_of(total, self._sql, WORDS)
        if queries is None:
            return super().fold(accumulator)
        if self._names and not self._is_shown(accumulator, queries):
            LOG.info("this backend does not show the sums of muhat: muhat reads the rows")
            return super().fold(accumulator)
        return answered(total, queries, self._asking(self._data, self._names))

    def _is_shown(self, accumulator: Callable[[], Any], queries: Sequence[Sequence[Query]]) -> bool:
        """Whether the backend finds in public rows what the embedded engine finds in them."""
        tallies, kinds = tallies_of(accumulator()) or [], self._kinds()
        with contextlib.suppress(Exception):  # what a backend refuses it does not show
            values = [trial_values(tallies, place, kind) for place, kind in enumerate(kinds)]
            rows = trial_table(self._given_back(values), kinds)
            here = open_table(rows, rows.column_names, None, self._coders).fold(accumulator)
            asking = self._asking(self._written(rows), rows.column_names)
            there = answered(accumulator(), queries, asking)
            if here is not None and there is not None:
                return np.array_equal(here[0].state(), there[0].state())
        return False

    def _given_back(self, values: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Those values that the backend has: some know no infinities."""
        found = self._written(trial_table(values, self._kinds(), missing=False)).to_pyarrow()
        kept = [
            [each for each in one if any(same(each, back) for back in column.to_pylist())]
            for one, column in zip(values, found.columns, strict=True)
        ]
        if any(2 * len(some) < len(one) for some, one in zip(kept, values, strict=True)):
            raise ValueError("a backend of other numbers")
        return kept

    def _written(self, rows: Any) -> Any:
        """Rows of Arrow as a table of the backend's, which has them in its query alone."""
        return self._backend.sql(rows_text(rows, self._tried, self._backend), schema=self._tried)

    def _kinds(self) -> list[Any]:
        return [kind.to_pyarrow() for kind in self._tried.values()]

    def _asking(self, table: Any, names: Sequence[str]) -> Ask:
        """What asks a query over columns of a table."""

        def ask(query: Query) -> list[Any]:
            records = str(self._backend.compile(chosen(table, names)))
            text = text_of(query, records, self._backend)
            schema = dict.fromkeys(query.answer, "string")
            found = self._backend.sql(text, schema=schema).to_pyarrow()
            numbers = (map(int, column.to_pylist()) for column in found.columns)
            return list(zip(*numbers, strict=True))

        return ask

    @property
    def _names(self) -> list[str]:
        return [self._data.columns[position] for position in self._positions]

    def _schema(self) -> Any:
        return self._data.schema().to_pyarrow()

    def _chosen(self) -> Iterator[list[Any]]:
        for part in self._reader():
            yield list(part.columns[: len(self._positions)])

    def _reader(self) -> Any:
        table = self._data.select(*(self._names or self._data.columns[:1]))
        # What libraries of this process hold comes whole, and from some in no other way.
        return table.to_pyarrow_batches() if self._backend else table.to_pyarrow().to_reader()
