"""Public groups of records: the columns that make them, and their categories."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from muhat import _check
from muhat._words import Parameter
from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.data.categories import Categories, Cells

By = str | int | Sequence[str | int] | None
"""The column of the groups, or several whose categories make them together."""

MOST_GROUPS = 100_000


def groups_of(
    by: By, groups: Cells | None = None, categories: Mapping[Any, Any] | None = None
) -> tuple[Categories, ...]:
    """The public categories of the columns `by`, in their order; none without it.

    Those of one column may be given as `groups`. Records of any other value are in no group.

    >>> sex, area = groups_of(["sex", "area"], categories={"area": 3, "sex": ["f", "m"]})
    >>> sex.labels, area.labels
    (('f', 'm'), (0, 1, 2))
    """
    names = _names(by)
    if groups is not None and categories is not None:
        both = (Parameter("groups"), " and ", Parameter("categories"))
        raise InvalidInput(*both, " are two ways to say the same; give one.")
    if not names:
        if groups is not None or categories is not None:
            raise InvalidInput("groups are the categories of a column: name it with by=….")
        return ()
    if groups is not None:
        if len(names) > 1:
            raise InvalidInput(
                "is for the groups of one column; for several say which are whose, as "
                'categories={"sex": ["f", "m"], …}',
                parameter="groups",
            )
        categories = {names[0]: groups}
    return _declared(names, {} if categories is None else categories)


def _names(by: By) -> list[str | int]:
    if by is None:
        return []
    names = [by] if isinstance(by, str | int) else by
    if (
        not isinstance(names, list | tuple)
        or not names
        or any(isinstance(name, bool) or not isinstance(name, str | int) for name in names)
    ):
        kind = type(by).__name__
        rule = "must be the name or number of a column, or a list of them"
        raise InvalidInput(rule, parameter="by", value=kind)
    if len(set(names)) < len(names):
        raise InvalidInput("must not name a column twice", parameter="by")
    return list(names)


def _declared(names: list[str | int], categories: Mapping[Any, Any]) -> tuple[Categories, ...]:
    from muhat.data.categories import categories_of

    if not isinstance(categories, Mapping):
        categories_of(categories)  # refuses it in its own words
    for name in names:
        if name not in categories:
            raise InvalidInput(
                f"must list the public categories of {name!r:.60}: those that occur in the data "
                "are not public",
                parameter="categories",
            )
    for name in categories:
        if name not in names:
            hint = _check.did_you_mean(str(name), map(str, names)).strip()
            raise InvalidInput(
                f"must be of columns in by; {name!r:.60} is none of them",
                parameter="categories",
                hint=hint,
            )
    declared = categories_of({name: categories[name] for name in names}, missing="drop")
    _check.count("the number of groups", math.prod(one.size for one in declared), most=MOST_GROUPS)
    return declared
