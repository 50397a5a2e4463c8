"""The public facts about a table: where numbers lie, which groups there are, whose rows they are.

Nothing of it may come from the data: bounds and categories are what everybody may know, and what
nobody knows is learnt privately (`"learn"`), for a part of the promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from muhat import _check
from muhat._plain import Plain, well_described
from muhat._text import joined, page, table
from muhat.errors import InvalidInput
from muhat.statistics.declared import (
    LEARN,
    Bins,
    Bounds,
    Declared,
    LearntCategories,
    Number,
    bins_between,
    categories,
    declared,
    from_plain,
)

if TYPE_CHECKING:
    from muhat.data.categories import Categories

__all__ = ["KEYS", "Bins", "Schema"]

KEYS = ("columns", "unit", "max_rows", "complete", "one_row_per")
"""What a schema is made of."""


@dataclass(frozen=True, init=False, repr=False)
class Schema(Plain):
    """What is public about a table, before anybody looks into it.

    Args:
        columns: of each column its bounds (a tuple of two numbers), its categories (a list), its
            bins (`mh.Bins`), or "learn": categories that nobody knows.
        unit: the column that says whose row it is; all rows of a person are hidden together. Left
            out, every row is a person.
        max_rows: how many rows of a person enter, at most; "learn" finds it privately.
        complete: True, or the columns in which, as a public fact, nothing is missing and nothing
            is undeclared. A value that is, all the same, counts as the centre of the bounds or as
            the first category.
        one_row_per: a column of groups: at most one row of a person enters for each of them, so
            that a person's rows lie in different groups wherever it is among `by`.

    >>> people = Schema(
    ...     {"salary": (0, 200_000), "region": ["north", "south"], "joined": Bins([2000, 2010])},
    ...     unit="person", max_rows=3, complete=["salary"])
    >>> people.bounds("salary"), people.categories("region").labels
    ((0, 200000), ('north', 'south'))
    >>> people.is_complete("salary"), people.is_complete("region")
    (True, False)
    """

    columns: dict[str, Declared]
    unit: str | None
    max_rows: int | Literal["learn"] | None
    complete: tuple[str, ...]
    one_row_per: str | None

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        unit: str | None = None,
        max_rows: int | Literal["learn"] | None = None,
        complete: bool | str | Iterable[str] = (),
        one_row_per: str | None = None,
    ) -> None:
        checked = _columns(columns)
        fields = {
            "columns": checked,
            "unit": _unit(unit, max_rows, checked),
            "max_rows": _most_rows(max_rows),
            "complete": _complete(complete, checked),
            "one_row_per": one_row_per,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self._check_one_row_per()

    def column(self, name: str) -> Declared:
        """What is declared of a column, or InvalidInput."""
        if name in self.columns:
            return self.columns[name]
        if name == self.unit:
            raise InvalidInput(
                f"{name!r:.60} says whose row it is; nothing is published about it, nor by it."
            )
        hint = _check.did_you_mean(str(name), self.columns)
        raise InvalidInput(f"the schema has no column {name!r:.60}.{hint}")

    def bounds(self, name: str) -> tuple[Number, Number]:
        """Between which a column of numbers lies, or InvalidInput."""
        found = self.column(name)
        if isinstance(found, Bounds):
            return found.low, found.high
        raise InvalidInput(
            f"column {name!r:.60} is declared by {found.words}, and has no bounds: numbers are "
            'declared by a tuple, (0, 100), and in a file by "0:100".'
        )

    def categories(self, name: str) -> Categories:
        """The groups of a column, listed or bins, or InvalidInput.

        Records of any other value are in none of them, unless the column is complete.
        """
        found = self.column(name)
        if isinstance(found, Bounds):
            raise InvalidInput(
                f"column {name!r:.60} is declared by bounds, and has no groups: to group by it, "
                f"declare bins, {bins_between(found)}, or list its values."
            )
        if isinstance(found, LearntCategories):
            raise InvalidInput(
                f"the categories of column {name!r:.60} are learnt; nobody knows them yet."
            )
        return categories(name, found, complete=self.is_complete(name))

    def is_learnt(self, name: str) -> bool:
        """Whether a column's categories are learnt privately."""
        return isinstance(self.column(name), LearntCategories)

    def is_complete(self, name: str) -> bool:
        """Whether nothing is missing in a column, as a public fact."""
        self.column(name)
        return name in self.complete

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        columns = {name: each.to_plain() for name, each in self.columns.items()}
        return {
            "columns": columns,
            "unit": self.unit,
            "max_rows": self.max_rows,
            "complete": list(self.complete),
            "one_row_per": self.one_row_per,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """What `to_dict` described; InvalidInput if it is malformed."""
        with well_described("a schema"):
            rest = dict(fields)
            for key in rest:
                _check.one_of("a key of the schema", key, KEYS)
            columns = rest.pop("columns")
            return cls({name: from_plain(name, each) for name, each in columns.items()}, **rest)

    def __hash__(self) -> int:
        return hash((*self.columns, self.unit, self.max_rows, self.complete, self.one_row_per))

    def __repr__(self) -> str:
        listed = ", ".join(f"{name!r}: {each!r}" for name, each in self.columns.items())
        options = {name: getattr(self, name) for name in KEYS[1:]} | {
            "complete": list(self.complete)
        }
        words = "".join(f", {name}={value!r}" for name, value in options.items() if value)
        return f"Schema({{{listed}}}{words})"

    def describe(self) -> str:
        """The schema as a table and a sentence.

        >>> print(Schema({"age": (16, 90), "sex": ["f", "m"]}, complete=["sex"]).describe())
        column   declared         missing
        age      16 to 90         may be
        sex      2 groups: f, m   never
        Every row is a person.
        """
        return joined([*table(self._rows(), right=()), *self._notes()])

    def _repr_html_(self) -> str:
        return page("Schema", self._rows(), self._notes(), right=())

    def _rows(self) -> list[list[str]]:
        lines = [
            [name, each.describe(), "never" if name in self.complete else "may be"]
            for name, each in self.columns.items()
        ]
        return [["column", "declared", "missing"], *lines]

    def _notes(self) -> list[str]:
        if self.unit is None:
            return ["Every row is a person."]
        most = "as many as is learnt" if self.max_rows == LEARN else f"at most {self.max_rows:,}"
        each = "" if self.one_row_per is None else f", one for each {self.one_row_per}"
        return [f"Rows of one {self.unit} are hidden together; {most} of them enter{each}."]

    def _check_one_row_per(self) -> None:
        """It names groups, and needs a person whose rows they are."""
        if self.one_row_per is None:
            return
        _text("one_row_per", self.one_row_per, "the name of a column of groups")
        if self.unit is None:
            raise InvalidInput(
                "chooses among the rows of a person, so a column must say whose row it is",
                parameter="one_row_per",
                hint='Add unit="person", say, and max_rows.',
            )
        if not self.is_learnt(self.one_row_per):
            self.categories(self.one_row_per)


def _columns(given: object) -> dict[str, Declared]:
    if not isinstance(given, Mapping):
        raise InvalidInput(
            'must be a dict from a column to what is public about it, as {"age": (16, 90)}',
            parameter="columns",
            value=type(given).__name__,
        )
    return {_text("a column", name, "text"): declared(name, each) for name, each in given.items()}


def _unit(unit: object, max_rows: object, columns: Mapping[str, Declared]) -> str | None:
    """The column that says whose row it is; it goes with the most rows of a person."""
    if unit is None:
        if max_rows is not None:
            raise InvalidInput(
                "is the most rows of a person, so a column must say whose row it is",
                parameter="max_rows",
                hint='Add unit="person", say; without a unit every row is a person.',
            )
        return None
    name = _text("unit", unit, "the name of the column that says whose row it is")
    if name in columns:
        raise InvalidInput(
            "must not be one of the columns that statistics are about",
            parameter="unit",
            value=f"{name!r:.60}",
            hint="Leave it out of the columns: it only says whose row it is.",
        )
    if max_rows is None:
        raise InvalidInput(
            "needs max_rows, how many rows of a person enter at most",
            parameter="unit",
            hint='Add max_rows=3, say, or max_rows="learn" to find it privately.',
        )
    return name


def _most_rows(given: Any) -> int | Literal["learn"] | None:
    if given is None:
        return None
    if not isinstance(given, str):
        return _check.count("max_rows", given)
    if given == LEARN:
        return "learn"
    raise InvalidInput(
        'must be a whole number of at least 1, or "learn"',
        parameter="max_rows",
        value=f"{given!r:.60}",
    )


def _complete(given: object, columns: Mapping[str, Declared]) -> tuple[str, ...]:
    """The columns of which it is said, in the order of the schema."""
    if given is True:
        return tuple(
            name for name, each in columns.items() if not isinstance(each, LearntCategories)
        )
    if given is False:
        return ()
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple | set | frozenset):
        raise InvalidInput(
            "must be True or a list of columns", parameter="complete", value=type(given).__name__
        )
    for name in names:
        if not isinstance(name, str) or name not in columns:
            raise InvalidInput(
                "must name columns of the schema",
                parameter="complete",
                value=f"{name!r:.60}",
                hint=_check.did_you_mean(str(name), columns).strip(),
            )
        if isinstance(columns[name], LearntCategories):
            raise InvalidInput(
                f"must not name {name!r:.60}, whose categories are learnt: records of values that "
                "are not found are left out",
                parameter="complete",
            )
    return tuple(name for name in columns if name in names)


def _text(parameter: str, value: object, what: str) -> str:
    if not (isinstance(value, str) and value):
        got = repr(value) if isinstance(value, str) else type(value).__name__
        raise InvalidInput(f"must be {what}", parameter=parameter, value=got)
    return value
