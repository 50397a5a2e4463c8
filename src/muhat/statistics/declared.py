"""What is public about one column: bounds, categories, bins, or categories that nobody knows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muhat import _check
from muhat._plain import Key, Plain, to_plain
from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.data.categories import Categories, Label

Number = int | float

LEARN = "learn"
"""What is typed for that which nobody knows."""

_MOST_SHOWN = 6

_FORMS = (
    'bounds as a tuple, (0, 200_000); categories as a list, ["north", "south"]; bins, '
    'mh.Bins([2000, 2010, 2020]); or "learn" for categories that nobody knows'
)


@dataclass(frozen=True, repr=False)
class Bounds:
    """A column of numbers, clipped to an interval."""

    words: ClassVar[str] = "bounds"
    low: Number
    high: Number

    def __repr__(self) -> str:
        return f"({_typed(self.low)}, {_typed(self.high)})"

    def describe(self) -> str:
        """In a few words: "0 to 200,000"."""
        return f"{self.low:,} to {self.high:,}"

    def to_plain(self) -> Any:
        """Ready for JSON; `from_plain` reads it."""
        return {"bounds": [self.low, self.high]}


@dataclass(frozen=True, repr=False)
class Labels:
    """A column of categories: all text, all numbers or all booleans."""

    words: ClassVar[str] = "categories"
    values: tuple[Label, ...]

    def __repr__(self) -> str:
        return f"[{_some(self.values, repr)}]"

    def describe(self) -> str:
        """In a few words: "2 groups: f, m"."""
        return _counted(self.values, "group")

    def to_plain(self) -> Any:
        """Ready for JSON; `from_plain` reads it."""
        return {"categories": list(self.values)}


@dataclass(frozen=True, init=False, repr=False)
class Bins(Plain, keys=(Key("edges", infinite=True),)):
    """Groups of a column of numbers: [a, b), the last of them closed, [a, b].

    The edges increase; the first may be -inf, and the last inf.

    >>> Bins([2000, 2010, 2020]).labels
    ('[2000, 2010)', '[2010, 2020]')
    """

    words: ClassVar[str] = "bins"
    edges: tuple[int | float, ...]

    def __init__(self, edges: Iterable[float]) -> None:
        object.__setattr__(self, "edges", _cells("bins", {"bins": edges}).edges)

    @property
    def labels(self) -> tuple[Label, ...]:
        """What the bins are called."""
        return categories("bins", self, complete=False).labels

    def __repr__(self) -> str:
        return f"Bins([{', '.join(map(_typed, self.edges))}])"

    def describe(self) -> str:
        """In a few words: "1 bin: [2000, 2010]"."""
        return _counted(self.labels, "bin")

    def to_plain(self) -> Any:
        """Ready for JSON; `from_plain` reads it."""
        return {"bins": to_plain(self.edges, Key("edges", infinite=True))}


@dataclass(frozen=True, repr=False)
class LearntCategories:
    """A column of categories that nobody knows: those that occur are found privately."""

    words: ClassVar[str] = "categories to learn"

    def __repr__(self) -> str:
        return repr(LEARN)

    def describe(self) -> str:
        """In a few words."""
        return "groups that are learnt privately"

    def to_plain(self) -> Any:
        """Ready for JSON; `from_plain` reads it."""
        return LEARN


Declared = Bounds | Labels | Bins | LearntCategories
"""What a schema knows of a column."""


def declared(name: str, given: object) -> Declared:
    """What somebody typed of a column, checked; or InvalidInput."""
    if isinstance(given, Declared):
        return given
    if isinstance(given, tuple):
        return _bounds(name, given)
    if isinstance(given, list | range):
        return Labels(tuple(_cells(name, list(given)).values))
    if isinstance(given, str) and given == LEARN:
        return LearntCategories()
    got, hint = type(given).__name__, ""
    if isinstance(given, str):
        got, hint = f"{given!r:.60}", _check.did_you_mean(given, [LEARN]).strip()
    elif isinstance(given, np.ndarray) or hasattr(given, "to_numpy"):
        hint = "They must be public facts, typed by somebody, not what occurs in the data."
    raise InvalidInput(f"must be {_FORMS}", parameter=f"column {name!r:.60}", value=got, hint=hint)


def from_plain(name: str, described: Any) -> Declared:
    """What `to_plain` described; a list alone is categories.

    >>> from_plain("age", {"bounds": [16, 90]}), from_plain("sex", ["f", "m"])
    ((16, 90), ['f', 'm'])
    """
    if not isinstance(described, Mapping):
        return declared(name, described)
    where = f"column {name!r:.60}"
    if len(described) != 1:
        raise InvalidInput(f"{where} must have one of bounds, categories and bins.")
    ((key, value),) = described.items()
    _check.one_of(f"the key of {where}", key, ("bounds", "categories", "bins"))
    if not isinstance(value, list):
        raise InvalidInput(f"the {key} of {where} must be a list; got {type(value).__name__}.")
    if key == "bins":
        return Bins(_cells(name, {"bins": value}).edges)
    return declared(name, tuple(value) if key == "bounds" else value)


def categories(name: str, groups: Labels | Bins, *, complete: bool) -> Categories:
    """The cells of a column; records of other values are in none, unless it is complete."""
    from muhat.data.categories import Categories

    values = groups.values if isinstance(groups, Labels) else ()
    edges = groups.edges if isinstance(groups, Bins) else ()
    rule, fallback = ("none", 0) if complete else ("drop", None)
    return Categories(name, values, edges, rule, fallback)


def bins_between(bounds: Bounds) -> str:
    """How bins within bounds are typed."""
    return f"mh.Bins([{_typed(bounds.low)}, …, {_typed(bounds.high)}])"


def _cells(name: str, cells: Any) -> Categories:
    """The cells of a column as typed, checked."""
    from muhat.data.categories import categories_of

    return categories_of({name: cells}, missing="drop")[0]


def _bounds(name: str, given: tuple[Any, ...]) -> Bounds:
    from muhat.domains import Box

    where = f"the bounds of {name!r:.60}"
    listed = "Categories are a list, in [ ] instead of ( )"
    if any(isinstance(end, str) for end in given):
        raise InvalidInput(f"{where} must be numbers. {listed}.")
    if len(given) != 2:
        raise InvalidInput(
            f"{where} must be two numbers, (low, high); got {len(given)}. {listed}, and bins "
            "mh.Bins([…])."
        )
    low, high = (_number(where, end) for end in given)
    if not low < high:
        fix = "Are they swapped?" if low > high else "A constant needs no release."
        raise InvalidInput(f"{where} must increase; got {_typed(low)} before {_typed(high)}. {fix}")
    try:
        Box([low], [high])
    except InvalidInput as error:  # what no integers can stand for
        raise InvalidInput(f"{where}: {error}") from None
    return Bounds(low, high)


def _number(where: str, end: object) -> Number:
    """A whole number if it is one: 0.0 and 0 are the same bound."""
    if isinstance(end, bool | np.bool_) or not isinstance(end, Real):
        raise InvalidInput(f"{where} must be numbers; got {type(end).__name__}.")
    number = _check.real(f"every one of {where}", end)
    if isinstance(end, int | np.integer):
        return int(end)
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number


def _counted(labels: tuple[Label, ...], noun: str) -> str:
    return f"{len(labels):,} {noun}{'' if len(labels) == 1 else 's'}: {_some(labels, str)}"


def _some(labels: tuple[Label, ...], words: Any) -> str:
    more = ", …" if len(labels) > _MOST_SHOWN else ""
    return ", ".join(map(words, labels[:_MOST_SHOWN])) + more


def _typed(number: Number) -> str:
    """As somebody would type it: 200_000, but 2010, which may be a year."""
    if not math.isfinite(number):
        return f'"{number}"'
    return f"{number:_}" if isinstance(number, int) and abs(number) >= 10_000 else repr(number)
