"""Statistics that are read off moments: numbers of records, sums, squares and products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from muhat import _check
from muhat._plain import Key
from muhat._words import Parameter, given
from muhat.errors import InvalidInput
from muhat.statistics.asked_base import (
    COMMON,
    Asked,
    By,
    Target,
    Term,
    column_list,
    moments,
    one_column,
)
from muhat.statistics.formula import variables, written
from muhat.statistics.schema import Schema

MOST_COLUMNS = 1000
"""Of which all products are asked for."""

Per = Literal["unit"] | None


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OfRowsOrPeople(Asked):
    """A statistic of rows, or (per="unit") of people, each with one record made of its rows."""

    per: Per

    def _check_more(self, schema: Schema) -> None:
        if self.per and schema.unit is None:
            with self._said("per"):
                raise InvalidInput(
                    given("per", "unit"),
                    " needs a schema that says whose row it is: ",
                    given("unit", "person"),
                    ", say, and max_rows.",
                )


class Count(OfRowsOrPeople, keys=(Key("per", optional=True), *COMMON)):
    """How many records there are, or are in each group; with per="unit", how many people.

    Of people with rows in several groups one of the rows that enter decides.

    >>> Count(by=["region", "sex"]).name, Count(per="unit").name
    ('count by region and sex', 'count per unit')
    """

    kind = "count"

    def __init__(
        self,
        *,
        by: By = None,
        per: Per = None,
        weight: float = 1.0,
        target: Target = None,
        n_group: int | None = None,
        name: str | None = None,
    ) -> None:
        self._ask((), by, weight, target, n_group, name, per=_per(per))

    def subject(self) -> str:
        return f"{self.kind}{' per unit' if self.per else ''}"

    def terms(self) -> tuple[Term, ...]:
        return ((),)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OfColumn(OfRowsOrPeople, keys=("column", Key("per", optional=True), *COMMON)):
    """A statistic of one column of numbers, of rows or (per="unit") of people."""

    column: str

    def __init__(
        self,
        column: str,
        *,
        by: By = None,
        per: Per = None,
        weight: float = 1.0,
        target: Target = None,
        n_group: int | None = None,
        name: str | None = None,
    ) -> None:
        own = {"column": self._one(column), "per": _per(per)}
        self._ask((column,), by, weight, target, n_group, name, **own)

    def subject(self) -> str:
        return f"{self.kind} {self.column}{' per unit' if self.per else ''}"

    def terms(self) -> tuple[Term, ...]:
        return moments(self.columns)

    def _one(self, column: str) -> str:
        return one_column("column", column, type(self).__name__)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Weighted(
    OfColumn,
    keys=("column", Key("per", optional=True), Key("weight_column", optional=True), *COMMON),
):
    """A sum or a mean, in which a column of survey weights may say how much a record counts."""

    weight_column: str | None

    def __init__(
        self,
        column: str,
        *,
        by: By = None,
        per: Per = None,
        weight_column: str | None = None,
        weight: float = 1.0,
        target: Target = None,
        n_group: int | None = None,
        name: str | None = None,
    ) -> None:
        own: dict[str, Any] = {"column": self._one(column), "per": _per(per)}
        columns: tuple[str, ...] = (column,)
        if weight_column is not None:
            one_column("weight_column", weight_column, type(self).__name__)
            if weight_column == column:
                raise InvalidInput(
                    "must be another column than the one it weights", parameter="weight_column"
                )
            if per is not None:
                rows = given("per", "unit")
                raise InvalidInput("weight_column is for rows; leave out ", rows, ".")
            columns = (column, weight_column)
        self._ask(columns, by, weight, target, n_group, name, **own, weight_column=weight_column)

    @property
    def reading(self) -> str:
        return self.kind if self.weight_column is None else f"weighted {self.kind}"

    def subject(self) -> str:
        weights = "" if self.weight_column is None else f" weighted by {self.weight_column}"
        return f"{super().subject()}{weights}"

    def _check_more(self, schema: Schema) -> None:
        super()._check_more(schema)
        if self.weight_column is not None and schema.bounds(self.weight_column)[0] < 0:
            with self._said("weight_column"):
                raise InvalidInput(
                    f"weights are not negative: the lower bound of {self.weight_column!r:.60} must "
                    "be at least 0."
                )

    def _parameter_of(self, column: str) -> str:
        return "weight_column" if column == self.weight_column else super()._parameter_of(column)


class Sum(Weighted):
    """The sum of a column. With per="unit" a person's rows are added up, then clipped.

    >>> Sum("salary", by="region").terms()
    ((), ('salary',), ('salary', 'salary'))
    """

    kind = "sum"


class Mean(Weighted):
    """The mean of a column. With per="unit" a person's rows are averaged first.

    >>> Mean("salary", by="region", weight=2)
    Mean('salary', by='region', weight=2.0)
    """

    kind = "mean"
    target_needs_size = True


class Variance(OfColumn):
    """The variance of a column. With per="unit" that of people's averages.

    >>> Variance("age").name
    'variance age'
    """

    kind = "variance"
    target_needs_size = True


class StandardDeviation(OfColumn):
    """The root of the variance of a column. With per="unit" that of people's averages.

    >>> StandardDeviation("age", by="sex").name
    'standard deviation age by sex'
    """

    kind = "standard deviation"
    target_keys = ()


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Covariance(Asked, keys=("columns", *COMMON)):
    """The covariance matrix of several columns; a target is for the covariance of two.

    >>> Covariance(["salary", "age"]).terms()[-2:]
    (('age', 'salary'), ('age', 'age'))
    """

    kind = "covariance"
    about = "columns"
    target_needs_size = True

    def __init__(
        self,
        columns: Sequence[str],
        *,
        by: By = None,
        weight: float = 1.0,
        target: Target = None,
        n_group: int | None = None,
        name: str | None = None,
    ) -> None:
        names = column_list("columns", columns, least=2)
        _check_number("columns", names)
        if target is not None and len(names) > 2:
            raise InvalidInput(
                "is for two columns, since others have other units",
                parameter="target",
                hint="Ask for the covariance of two columns, or give this one a greater weight=.",
            )
        self._ask(names, by, weight, target, n_group, name)

    def subject(self) -> str:
        return f"{self.kind} {', '.join(self.columns)}"

    def terms(self) -> tuple[Term, ...]:
        return moments(self.columns)


class Correlation(Covariance):
    """The correlations of several columns.

    >>> Correlation(["salary", "age"]).name
    'correlation salary, age'
    """

    kind = "correlation"
    target_keys = ()


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Regression(Asked, keys=("formula", *COMMON)):
    """Least squares of a column on others, with an intercept.

    The formula is `response ~ predictor + predictor + …`; a name with any other sign than letters,
    digits, dots, spaces and _ stands in `backquotes`.

    >>> asked = Regression("salary ~ age+tenure")
    >>> asked.name, asked.response, asked.predictors
    ('regression salary ~ age + tenure', 'salary', ('age', 'tenure'))
    """

    kind = "regression"
    about = "formula"
    target_keys = ()
    formula: str

    def __init__(
        self,
        formula: str,
        *,
        by: By = None,
        weight: float = 1.0,
        target: Target = None,
        n_group: int | None = None,
        name: str | None = None,
    ) -> None:
        names = variables(formula)
        _check_number("formula", names)
        self._ask(names, by, weight, target, n_group, name, formula=written(names))

    @property
    def response(self) -> str:
        """The column that is explained."""
        return self.columns[0]

    @property
    def predictors(self) -> tuple[str, ...]:
        """The columns that explain it."""
        return self.columns[1:]

    def subject(self) -> str:
        return f"{self.kind} {self.formula}"

    def terms(self) -> tuple[Term, ...]:
        return moments(self.columns)


def _check_number(parameter: str, columns: Sequence[str]) -> None:
    number = Parameter(parameter, "the number of columns")
    _check.count(number, len(columns), most=MOST_COLUMNS)


def _per(given: object) -> Per:
    if given is None:
        return None
    if given == "unit" and isinstance(given, str):
        return "unit"
    raise InvalidInput(
        'must be "unit" (a person\'s rows are made one record first) or left out',
        parameter="per",
        value=f"{given!r:.60}" if isinstance(given, str) else type(given).__name__,
    )
