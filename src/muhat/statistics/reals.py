"""Means of records that nobody has bounded: with nothing assumed, or with a bounded bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat._words import Parameter, example_of_reals, given
from muhat.domains.reals import Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.moment_error import Moment
from muhat.mechanisms.learning.names import PAPERS, PRINTED

if TYPE_CHECKING:
    from muhat.data import Source

Columns = Sequence[str] | Sequence[int] | None

LARGEST_WEIGHTED = 2_000
"""Columns up to which errors may be weighted: the last ellipsoid is a matrix."""


@dataclass(frozen=True, eq=False, kw_only=True)
class InReals:
    """The mean of records in `Reals`.

    `insist`: a plan is wanted even for fewer records than it needs. `is_default`: nobody chose the
    rule for missing values, so a schema may.
    """

    domain: Reals
    weights: Floats
    missing: str
    mechanism: str | None
    insist: bool
    is_default: bool

    statistic: ClassVar[str] = "mean"
    needs_n: ClassVar[bool] = True
    columns: ClassVar[None] = None

    def completed(self) -> Self:
        """The same where a schema says that nothing is missing, unless a rule was chosen."""
        return replace(self, missing="none") if self.is_default else self


@dataclass(frozen=True, eq=False, kw_only=True)
class Unassuming(InReals):
    """The mean of records of which nothing is assumed: centre and radius are to be learnt.

    `faithful` and `scale` are for the estimators of a paper, `PAPERS`.
    """

    p: float
    faithful: bool
    scale: tuple[float, float] | None

    def __post_init__(self) -> None:
        if self.domain.magnitude is None:
            raise InvalidInput(
                "must be given to learn centre and radius: a generous public bound on every "
                "coordinate, for instance ",
                example_of_reals(self.domain.dim),
                parameter="magnitude",
            )
        if self.domain.dim > LARGEST_WEIGHTED and (self.weights != 1).any():
            raise InvalidInput(f"weights are for at most {LARGEST_WEIGHTED} columns in Reals.")
        if self.mechanism is not None:
            where = Parameter("mechanism", "mechanism in Reals", "--mechanism with --magnitude")
            _check.one_of(where, self.mechanism, ["recentring", *PAPERS])
        if self.faithful and self.mechanism not in PAPERS:
            raise InvalidInput(f"faithful is for the estimators of a paper: {', '.join(PAPERS)}.")
        if (self.scale is not None) != (self.mechanism == "statistical"):
            raise InvalidInput(
                Parameter("scale", "scale=(lowest, highest)", "--scale LOW:HIGH"),
                " and ",
                given("mechanism", "statistical"),
                " go together: public bounds on the standard deviation of the records in every "
                "direction.",
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class LowBias(InReals):
    """The mean of the distribution that records are drawn from, with a bounded bias.

    What is assumed: a `moment`, and symmetry if `symmetric`. `limits` are the most bias of every
    column (None: whichever has the least error), `max_error` the most error; `unbiased`: none.
    `faithful` is for one column by a mechanism of Kamath et al. (2024), as they have it.
    """

    moment: Moment | None
    limits: Floats | None
    max_error: float | None
    symmetric: bool
    unbiased: bool
    faithful: bool = False

    p: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        if not self.faithful:
            return
        if self.mechanism not in PRINTED:
            raise InvalidInput(
                f"{self.mechanism} is in no paper as it is here; faithful is for means of bounded "
                f"bias by {' or '.join(PRINTED)}."
            )
        if self.domain.dim != 1:
            raise InvalidInput(ONE_COLUMN)
        if self.mechanism == "clipped-laplace" and self.assumed.order < 2:
            raise InvalidInput(
                "Proposition 3.5 of Kamath et al. (2024) has a moment of order 2 or more; leave "
                "faithful out for others."
            )

    @property
    def assumed(self) -> Moment:
        """The moment; InvalidInput says how to give one if it was left out."""
        return assumed_moment(None, self.domain.dim) if self.moment is None else self.moment


ONE_COLUMN = "faithful keeps what a paper has for one column: release one, or leave faithful out."


def open_records(domain: Reals, data: Any, columns: Columns) -> Source:
    """The data as records; arguments and metadata are checked, nothing is read."""
    from muhat.data import open_source
    from muhat.data.selection import column_names

    return open_source(data, column_names(columns), domain.dim)


def real_weights(weights: ArrayLike | Mapping[str, float] | None, dim: int) -> Floats:
    """Weights in Reals, where columns have no names."""
    if isinstance(weights, Mapping):
        raise InvalidInput(
            "must be numbers in Reals, one a column, not a dict of names", parameter="weights"
        )
    return np.ones(dim) if weights is None else weight_vector(weights, dim)


def reals_rule(
    missing: str | None, mechanism: str | None, *, named: bool = False, faithful: bool = False
) -> str:
    """The rule: "drop" by default where columns are named, else "center".

    The estimators of a paper are what they are, with a missing value at the centre.
    """
    of_paper = faithful or mechanism in PAPERS
    if missing is None:
        return "drop" if named and not of_paper else "center"
    _check.one_of("missing", missing, ["drop", "center", "none"])
    if missing == "drop" and of_paper:
        raise InvalidInput(
            f"{mechanism or 'faithful'} is the estimator of a paper, for complete records: use ",
            given("missing", "center"),
            " or ",
            given("missing", "none"),
            ", or leave the mechanism out.",
        )
    return missing


def by_column(columns: Columns, moment: Any, max_bias: Any) -> tuple[Any, Any]:
    """moment = (λ, {column: ψ}) and max_bias = {column: bias} as lists; others as they are.

    >>> by_column(["age", "pay"], (2, {"pay": 900.0, "age": 15.0}), 0.1)
    ((2, [15.0, 900.0]), 0.1)
    """
    if isinstance(moment, tuple | list) and len(moment) == 2 and isinstance(moment[1], Mapping):
        moment = (moment[0], _ordered("moment", moment[1], columns))
    if isinstance(max_bias, Mapping):
        max_bias = _ordered("max_bias", max_bias, columns)
    return moment, max_bias


def _ordered(option: str, given: Mapping[str, Any], columns: Columns) -> list[Any]:
    from muhat.data.selection import column_names

    names = column_names(columns)
    if names is None:
        raise InvalidInput(f"{option} by column needs columns=[...], in the order of the value.")
    for name in {*map(str, names)} ^ {*given}:
        raise InvalidInput(f"{option} and columns must name the same; {name!r:.60} is in one only.")
    return [given[str(name)] for name in names]


def largest_biases(max_bias: Any, dim: int) -> Floats:
    """The most bias of every column, of shape (d,): one number, or one a column; or all are 0."""
    if isinstance(max_bias, Mapping):
        raise InvalidInput(Parameter("max_bias"), _UNNAMED)
    listed = isinstance(max_bias, list | tuple) or getattr(max_bias, "ndim", 0) == 1
    sizes = list(max_bias) if listed else [max_bias] * dim
    if len(sizes) != dim:
        rule = f"must be a number, or one for each of the {dim} columns"
        raise InvalidInput(rule, parameter="max_bias")
    limits = np.array([_check.real("max_bias", size) for size in sizes])
    if (limits < 0).any():
        least = f"{limits.min():g}"
        raise InvalidInput("must not be negative", parameter="max_bias", value=least)
    if limits.any() and not limits.all():
        raise InvalidInput("must be above 0 in every column, or 0 in all", parameter="max_bias")
    return limits


_UNNAMED = (
    " has column names, and a plan in Reals has none: give a list, one a column, or name the "
    "columns of the data, mh.mean(data, columns=[...], ...)."
)


def assumed_moment(moment: Any, dim: int) -> Moment:
    """(λ, ψ) with one ψ, or one a column."""
    if isinstance(moment, tuple | list) and any(isinstance(each, Mapping) for each in moment):
        raise InvalidInput(Parameter("moment"), _UNNAMED)
    try:
        order, scales = moment
        wide = np.broadcast_to(np.asarray(scales, np.float64), (dim,)).copy()
    except (TypeError, ValueError):
        raise InvalidInput(
            "must say what is assumed of the records' distribution: (λ, ψ) with "
            "E|X − μ|^λ ≤ ψ^λ, for instance ",
            Parameter("moment", "moment=(2, 1.0)", "--moment 2,1"),
            " for a standard deviation of at most 1",
            Parameter("moment", "; ψ may be a list, one a column", ""),
            parameter="moment",
        ) from None
    order = _check.real("moment order λ", order)
    if not 1 < order <= 1000:
        raise InvalidInput(f"the moment order λ must be above 1 and at most 1000; got {order:g}.")
    for scale in wide:
        _check.positive("moment scale ψ", scale)
    return Moment(order, wide)
