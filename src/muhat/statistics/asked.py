"""The statistics of a set: what users type, frozen, and checked against a schema.

    mh.Count(by=["region", "sex"]); mh.Mean("salary", by="region", target={"standard_error": 200})
    mh.Quantile("salary", q=[0.25, 0.5, 0.75], by="sex"); mh.Regression("salary ~ age + tenure")

All of them have `by`, the columns whose groups they are asked for; `weight`, how much their error
counts; `target`, an error that must not be exceeded; `n_group`, a public size of groups at which
that is judged; and `name`, by which plans and releases are indexed. Only records in which all
columns of a statistic are recorded count for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from muhat import _check
from muhat._words import Parameter
from muhat.errors import InvalidInput
from muhat.statistics.asked_base import (
    COMMON,
    Asked,
    By,
    Target,
    Term,
    checked_set,
    column_list,
    one_column,
)
from muhat.statistics.asked_moments import (
    Correlation,
    Count,
    Covariance,
    Mean,
    Regression,
    StandardDeviation,
    Sum,
    Variance,
)
from muhat.statistics.schema import Schema
from muhat.workloads import Workload, matrix

__all__ = [
    "Asked",
    "Correlation",
    "Count",
    "Covariance",
    "Mean",
    "Quantile",
    "Queries",
    "Regression",
    "StandardDeviation",
    "Sum",
    "Term",
    "Variance",
    "checked_set",
]

MOST_QUANTILES = 1000


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Quantile(Asked, keys=("column", "q", *COMMON)):
    """Quantiles of a column; 0 is the least and 1 the greatest of its values.

    >>> Quantile("salary", q=[0.25, 0.5, 0.75], by="sex").name
    'quantile salary by sex'
    """

    kind = "quantile"
    target_keys = ("rank_error",)
    column: str
    q: tuple[float, ...]

    def __init__(
        self,
        column: str,
        q: float | Sequence[float] = 0.5,
        *,
        by: By = None,
        weight: float = 1.0,
        target: Target = None,
        n_group: int | None = None,
        name: str | None = None,
    ) -> None:
        one_column("column", column, type(self).__name__)
        own = {"column": column, "q": _fractions(q)}
        self._ask((column,), by, weight, target, n_group, name, **own)

    def subject(self) -> str:
        return f"{self.kind} {self.column}"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Queries(Asked, keys=("workload", "columns", *COMMON)):
    """Linear queries on the table of columns of groups: any workload.

    `columns` are the axes of its histogram, in their order.

    >>> from muhat.workloads import prefix
    >>> Queries(prefix(4), columns="joined").name
    'queries joined'
    """

    kind = "queries"
    about = "columns"
    workload: Workload

    def __init__(
        self,
        workload: Workload | ArrayLike,
        columns: By,
        *,
        by: By = None,
        weight: float = 1.0,
        target: Target = None,
        n_group: int | None = None,
        name: str | None = None,
    ) -> None:
        names = column_list("columns", columns, least=1)
        own = {"workload": workload if isinstance(workload, Workload) else matrix(workload)}
        self._ask(names, by, weight, target, n_group, name, **own)

    @property
    def numeric(self) -> tuple[str, ...]:
        return ()

    @property
    def axes(self) -> tuple[str, ...]:
        return (*self.by, *self.columns)

    def subject(self) -> str:
        return f"{self.kind} {', '.join(self.columns)}"

    def _check_more(self, schema: Schema) -> None:
        with self._said("columns"):
            column_list("by and columns", self.axes, least=1)
            sizes = sizes_of(self.columns, schema)
        if self.workload.cells != sizes:
            with self._said("workload"):
                raise InvalidInput(
                    f"the columns make a histogram of shape {sizes}, the workload asks about "
                    f"{self.workload.cells}. Build it for this shape, as "
                    f"mh.workloads.identity({sizes})."
                )


def sizes_of(columns: Sequence[str], schema: Schema) -> tuple[int, ...]:
    """The shape of the histogram of columns whose categories are known, or InvalidInput."""
    for column in columns:
        if schema.is_learnt(column):
            raise InvalidInput(
                f"a workload has known cells, but the categories of {column!r:.60} are learnt. "
                "List them in the schema, or ask for counts by it."
            )
    return tuple(schema.categories(column).size for column in columns)


def _fractions(q: object) -> tuple[float, ...]:
    given = list(q) if isinstance(q, Sequence) and not isinstance(q, str) else [q]
    if hasattr(q, "tolist"):
        listed = q.tolist()
        given = listed if isinstance(listed, list) else [listed]
    number = Parameter("q", "the number of quantiles")
    _check.count(number, len(given), most=MOST_QUANTILES)
    fractions = tuple(_check.real("q", each) for each in given)
    for each in fractions:
        if not 0 <= each <= 1:
            hint = f"{each:g} per cent is {each / 100:g}." if 1 < each <= 100 else ""
            raise InvalidInput(
                "must lie between 0 and 1", parameter="q", value=f"{each:g}", hint=hint
            )
        if fractions.count(each) > 1:
            raise InvalidInput("must not repeat a number", parameter="q", value=f"{each:g}")
    return fractions
