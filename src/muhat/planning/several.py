"""Several statistics for one promise: `mh.plan`.

Counts, sums and all that follows from them, for any groups, are one mechanism: noisy tables, read
in one pass. Quantiles and other linear queries are parts of their own. Shares of the promise are
those with the least weighted sum of squared relative errors: relative to what sums would be if all
groups had the same size and values lay anywhere between their bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muhat import _check
from muhat.planning.learnt import learning_set, learnt_columns, learnt_first
from muhat.planning.plan import Plan
from muhat.planning.statistic_set import SetOfStatistics
from muhat.planning.terms import COUNTED, Counted, Terms
from muhat.privacy import Neighbors, Privacy, check_promise
from muhat.statistics.asked import Asked, Mean, checked_set
from muhat.statistics.declared import LEARN
from muhat.statistics.schema import Schema


def plan(
    statistics: Sequence[Asked],
    *,
    schema: Schema,
    privacy: Privacy,
    n: int | Counted | None = COUNTED,
    neighbors: Neighbors | str | None = None,
) -> Plan:
    """Plan a set of statistics for one promise, complete before any data.

    Args:
        statistics: `mh.Count`, `mh.Mean`, `mh.Quantile`, … with the columns they are about.
        schema: the public facts about the table, `mh.Schema`.
        privacy: the promise for all of them together.
        n: the public number of rows; None keeps it secret; left out it is counted.
        neighbors: what one person can do to the data, if not what n implies.

    >>> import muhat as mh
    >>> people = mh.Schema({"salary": (0, 200_000), "region": ["north", "south"]})
    >>> asked = [mh.Count(by="region"), mh.Mean("salary", by="region")]
    >>> plan = mh.plan(asked, schema=people, privacy=mh.ZCDP(rho=0.5), n=None)
    >>> plan["mean salary by region"].standard_error_at(n=10_000) < 50
    True
    """
    asked = checked_set(statistics, schema)
    if learns(asked, schema):
        return learnt_first(asked, schema, _terms(schema, privacy, n, neighbors))
    return SetOfStatistics.of(asked, schema, _terms(schema, privacy, n, neighbors)).plan()


def means_by_groups(
    bounds: Mapping[str, tuple[float, float]],
    by: Any,
    categories: Mapping[str, Any],
    *,
    privacy: Privacy | None,
    n: int | Counted | None,
    neighbors: Neighbors | str | None,
    missing: str | None,
) -> Plan:
    """The means of columns in the groups of others: one statistic a column, for one promise."""
    check_promise(privacy)
    assert privacy is not None
    if _check.one_of("missing", missing or "drop", ["drop", "none"]) == "none":
        schema = Schema({**bounds, **categories}, complete=True)
    else:
        schema = Schema({**bounds, **categories})
    asked = [Mean(column, by=by) for column in bounds]
    return plan(asked, schema=schema, privacy=privacy, n=n, neighbors=neighbors)


def needed_of(
    statistics: Sequence[Asked],
    *,
    schema: Schema,
    privacy: Privacy,
    n: int | Counted | None = COUNTED,
) -> float:
    """What the targets of statistics take of a promise at the least; 1 is all of it.

    What is learnt first has its fixed share of the promise, and they have the rest.
    """
    asked = checked_set(statistics, schema)
    terms = _terms(schema, privacy, n, None)
    if learns(asked, schema):
        return learning_set(asked, schema, terms).needed()
    return SetOfStatistics.of(asked, schema, terms).needed()


def learns(asked: Sequence[Asked], schema: Schema) -> bool:
    """Whether something is learnt before the statistics can be read."""
    return schema.max_rows == LEARN or bool(learnt_columns(asked, schema))


def _terms(
    schema: Schema,
    privacy: Privacy,
    n: int | Counted | None,
    neighbors: Neighbors | str | None,
) -> Terms:
    """The terms of a schema; rows that are learnt are one until they are."""
    rows = 1 if isinstance(schema.max_rows, str) else schema.max_rows or 1
    return Terms.checked(privacy, n, neighbors=neighbors, contributions=rows, unit=schema.unit)
