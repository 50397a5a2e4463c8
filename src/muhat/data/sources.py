"""From whatever a user hands over to a source: arguments and metadata only, no value is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from muhat.data.base import Source
from muhat.data.coding import Coder
from muhat.data.files import FileData, open_files
from muhat.data.formats import KINDS
from muhat.data.selection import Coders, Columns, coders_for, column_names
from muhat.data.shared import OpenTable, TableColumns
from muhat.data.unit_ids import IdentityCoder
from muhat.data.units import EnteringRows, People, of_people
from muhat.errors import InvalidInput

_ACCEPTED = (
    "a numpy array, a pandas, polars, Spark or Dask frame, an Arrow or Ibis table, a dict or list "
    f"of numbers, or the path of a file that ends in {KINDS}"
)


def open_source(
    data: Any,
    columns: object = None,
    dim: int | None = None,
    *,
    coders: Coders = (),
    people: People | None = None,
) -> Source:
    """A source of records of `dim` coordinates, or InvalidInput.

    `data` is a numpy array (1-D, or 2-D with one record a row), a pandas or polars DataFrame or
    Series, a polars LazyFrame, of which only the columns asked for are collected, an Arrow table,
    record batch or array, any object that hands out an Arrow stream again and again
    (`__arrow_c_stream__`), a dict of columns, a list of numbers or of records, a path, a glob or a
    list of paths, what `csv_data` makes of them, or a Spark or Dask DataFrame, a DuckDB relation or
    a table of Ibis, whose records stay there. Readers that can be read only once are refused.

    `columns` are names, or numbers for an array (`column_names` says how they may be given);
    None takes all numeric columns if they are `dim`. A column of fixed-size lists is as many
    coordinates. With dim=None, any number. `coders` has an entry for each of the columns, which
    must be named then: those with one are read as the codes of their categories. With `people`,
    of whom one may have several rows, the source has the rows or records that enter.

    >>> open_source(np.zeros((3, 2))).columns
    ('0', '1')
    """
    if isinstance(data, OpenTable):
        return data.view(column_names(columns) if columns else (), coders, people)
    if people is not None:
        return _open_people(data, columns, dim, coders, people)
    chosen = column_names(columns)
    if isinstance(data, str | os.PathLike | FileData) or _is_list_of_paths(data):
        return open_files(data, chosen, dim, coders)
    if isinstance(data, np.ndarray):
        from muhat.data.memory import open_array

        return open_array(data, chosen, dim, coders)
    if isinstance(data, Mapping):
        from muhat.data.memory import open_mapping

        return open_mapping(data, chosen, dim, coders)
    if isinstance(data, list | tuple):
        from muhat.data.memory import open_list

        return open_list(data, chosen, dim, coders)
    return _open_foreign(data, chosen, dim, coders)


def open_table(data: Any, reads: TableColumns) -> OpenTable:
    """The data, opened once for all who read these columns, or InvalidInput; no value is read.

    `open_source` takes it in the place of the data, for some of the columns.
    """
    names, people = tuple(reads.columns), reads.people
    coders = [None if each is None else Coder(each) for each in reads.columns.values()]
    if people is not None:
        rows = open_source(data, names, len(names), coders=coders, people=people)
        assert isinstance(rows, EnteringRows)
        return OpenTable(reads, rows, rows.records)
    # Without columns there is only something to count.
    rows = open_source(data, names, len(names), coders=coders) if names else open_source(data)
    return OpenTable(reads, rows)


def _open_people(
    data: Any, columns: object, dim: int | None, coders: Coders, people: People
) -> Source:
    chosen = people.chosen(columns)
    coders = coders_for(chosen, coders)
    every = (*coders, IdentityCoder())
    dim = None if people.per == "rows" else dim
    source = open_source(data, (*chosen, people.unit), dim, coders=every)
    coded = [str(name) for name, coder in zip(chosen, coders, strict=True) if coder is not None]
    return of_people(source, people, coded)


def _open_foreign(data: Any, columns: Columns, dim: int | None, coders: Coders) -> Source:
    """Objects of other libraries, recognised by their module so that none has to be imported."""
    from muhat.data import tables

    library = type(data).__module__.partition(".")[0]
    kind = type(data).__name__
    if any(parent.__module__.startswith("pyspark.") for parent in type(data).__mro__):
        # Before anything else: a frame of Spark's offers its records as an Arrow stream too.
        return _open_spark(data, columns, dim, coders)
    if (library, kind) == ("muhat", "SparkData"):
        return _open_spark(data, columns, dim, coders)
    if kind == "DuckDBPyRelation" or (library, kind) == ("muhat", "DuckDBData"):
        from muhat.data.duckdb import open_relation

        return open_relation(data, columns, dim, coders)
    if (library, kind) == ("muhat", "PostgresData"):
        from muhat.data.postgres import open_postgres

        return open_postgres(data, columns, dim, coders)
    if library == "ibis":
        from muhat.data.ibis import is_ibis, open_ibis

        if is_ibis(data):
            return open_ibis(data, columns, dim, coders)
    if library == "dask" and kind == "DataFrame":
        from muhat.data.dask import DaskSource

        return DaskSource(data, columns, dim, coders)
    if library == "pandas" and kind in ("DataFrame", "Series"):
        return tables.open_pandas(data, columns, dim, coders)
    if library == "polars" and kind in ("DataFrame", "Series", "LazyFrame"):
        return tables.open_polars(data, columns, dim, coders)
    if any(hasattr(data, name) for name in ("__next__", "read_next_batch", "read")):
        raise InvalidInput(
            f"must be readable more than once; a {kind} is not",
            parameter="data",
            hint="Read it into a table, or pass the path of the file.",
        )
    if library == "pyarrow" and tables.is_arrow(data):
        return tables.open_arrow(data, columns, dim, coders)
    if hasattr(data, "__arrow_c_stream__"):
        return tables.open_stream(data, columns, dim, coders)
    raise InvalidInput(f"must be {_ACCEPTED}", parameter="data", value=kind)


def _open_spark(data: Any, columns: Columns, dim: int | None, coders: Coders) -> Source:
    from muhat.data.spark import SparkData, is_spark, open_spark

    if not isinstance(data, SparkData) and not is_spark(data):
        raise InvalidInput(
            "must be a Spark DataFrame",
            parameter="data",
            value=f"{type(data).__module__}.{type(data).__name__}",
            hint="A pandas-on-Spark frame has .to_spark().",
        )
    return open_spark(data, columns, dim, coders)


def _is_list_of_paths(data: object) -> bool:
    return (
        isinstance(data, list | tuple)
        and len(data) > 0
        and all(isinstance(item, str | os.PathLike) for item in data)
    )
