"""Answers as tidy tables: a line a number, several statistics below each other, dataframes."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat.errors import InvalidInput
from muhat.release.query_table import unlike

if TYPE_CHECKING:
    from muhat.release.answer import Answer

Columns = dict[str, NDArray[Any]]

STATISTIC = "statistic"

WHICH = ("column", "pair", "coefficient", "quantile", "query")
"""Which number of a group it is."""

NUMBERS = (
    *("value", "standard_error", "rank_error", "lower", "upper"),
    *("population_lower", "population_upper", "recorded", "recorded_error"),
)
"""What is said of every number, in the order of a table's columns."""


def combined(answers: Iterable[tuple[str, Answer]], confidence: float) -> Columns:
    """One table of several answers, whose first column names them.

    What is not said of a number is None among words and not-a-number among numbers.
    """
    parts = [(name, _renamed(answer, confidence)) for name, answer in answers]
    sizes = [len(columns["value"]) for _, columns in parts]
    names = dict.fromkeys(name for _, columns in parts for name in columns)
    last = (*WHICH, *NUMBERS)
    ordered = [*(name for name in names if name not in last), *(n for n in last if n in names)]
    said = np.repeat(np.array([name for name, _ in parts], dtype=object), sizes)
    found = [columns for _, columns in parts]
    return {STATISTIC: said, **{name: _stacked(name, found, sizes) for name in ordered}}


def _renamed(answer: Answer, confidence: float) -> Columns:
    """The table of an answer, with names of its groups that no column of another one has."""
    groups = set(group_columns(answer))
    taken = (STATISTIC, *WHICH, *NUMBERS)
    return {
        unlike(name, taken) if name in groups else name: column
        for name, column in answer.table(confidence).items()
    }


def group_columns(answer: Answer) -> tuple[str, ...]:
    """The columns of the data that the table of an answer has labels of."""
    by = getattr(answer, "by", ())
    attributes = getattr(answer, "attributes", None)
    named = () if attributes is None else tuple(attributes.names)
    return (by,) if isinstance(by, str) else (*by, *named)


def _stacked(name: str, parts: Sequence[Columns], sizes: Sequence[int]) -> NDArray[Any]:
    """A column of all parts, below each other."""
    known = [columns[name] for columns in parts if name in columns]
    if len(known) == len(parts):
        return np.concatenate(known)
    # A whole number has no not-a-number: a column with gaps holds floats.
    words = any(column.dtype.kind not in "iuf" for column in known)
    nothing: Any = None if words else np.nan
    kind = object if words else np.float64
    pieces = [
        columns[name].astype(kind) if name in columns else np.full(size, nothing, kind)
        for columns, size in zip(parts, sizes, strict=True)
    ]
    return np.concatenate(pieces)


def csv_lines(columns: Columns) -> Iterator[list[Any]]:
    """The lines of a CSV file, the names first; what is not known is an empty cell.

    >>> list(csv_lines({"region": np.array(["north", None]), "value": np.array([1.5, np.nan])}))
    [['region', 'value'], ['north', 1.5], ['', '']]
    """
    yield list(columns)
    for line in zip(*(column.tolist() for column in columns.values()), strict=True):
        yield ["" if cell is None or cell != cell else cell for cell in line]


def arrow_table(columns: Columns) -> Any:
    """The columns as a pyarrow Table; not-a-number is null, labels of unlike kinds are text."""
    arrow = _loaded("pyarrow", "to_arrow")
    return arrow.table({name: _arrow_column(arrow, column) for name, column in columns.items()})


def _arrow_column(arrow: Any, column: NDArray[Any]) -> Any:
    if column.dtype != object:
        return arrow.array(column, from_pandas=True)
    cells = column.tolist()
    if len({type(cell) for cell in cells if cell is not None}) > 1:
        cells = [None if cell is None else str(cell) for cell in cells]
    return arrow.array(cells)


def pandas_frame(columns: Columns) -> Any:
    """The columns as a pandas DataFrame."""
    return _loaded("pandas", "to_pandas").DataFrame(columns)


def polars_frame(columns: Columns) -> Any:
    """The columns as a polars DataFrame; as `arrow_table` has them."""
    return _loaded("polars", "to_polars").from_arrow(arrow_table(columns))


def _loaded(package: str, asked: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise InvalidInput(f"{asked} needs {package}: pip install {package}.") from None
