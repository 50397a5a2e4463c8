"""The cells of a column, declared in public: listed labels, bins of numbers, or codes.

Every record falls in one cell, whatever its value is: a value that is none of those declared,
or missing, goes to the cell "other", to a declared default, or the record is left out. Nothing
about a value can raise.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from muhat import _check
from muhat.errors import InvalidInput

OTHER = "other"
"""The name of the cell for values that are none of those declared."""

MOST_CELLS = (1 << 31) - 1
LARGEST_NUMBER = 1 << 100

Label = str | int | float | bool
Number = int | float
Cells = Iterable[Label] | int | Mapping[str, Any]
"""What users type for the cells of a column; `categories_of` says what it means."""

_KEYS = ("labels", "bins", "size", "missing", "default")


@dataclass(frozen=True)
class Categories:
    """The cells of one column, as `categories_of` makes them from what users type.

    `values` are the labels (all text, all booleans or all numbers; a range for codes), or
    `edges` the increasing edges of bins [a, b), the last of them closed, [a, b]. A value that is
    in none of them goes to the cell `fallback`; None means that its record is left out
    (`missing` is "drop"). With missing="other" that cell is one more, the last, by the name
    "other", or the label "other" if there is one; with "default" it is one of those declared, and
    with "none", which declares that there is no such value, the first.
    """

    name: str | int
    values: tuple[Label, ...] | range
    edges: tuple[Number, ...]
    missing: str
    fallback: int | None

    @property
    def declared(self) -> int:
        """The number of cells without the one that was added for other values."""
        return len(self.edges) - 1 if self.edges else len(self.values)

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.declared + (self.fallback == self.declared)

    @property
    def keeps_every_record(self) -> bool:
        """Whether every record has a cell; if not, records of other values are left out."""
        return self.fallback is not None

    @property
    def kind(self) -> str:
        """What values are compared as: "text", "boolean" or "number"."""
        if self.edges or isinstance(self.values, range):
            return "number"
        if isinstance(self.values[0], bool):
            return "boolean"
        return "text" if isinstance(self.values[0], str) else "number"

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """What the cells are called, in their order; bins by their ends."""
        named: tuple[Label, ...] = tuple(self.values)
        if self.edges:
            ends = list(pairwise(self.edges))
            named = tuple(_bin(*pair, closed=pair is ends[-1]) for pair in ends)
        return (*named, OTHER) if self.size > self.declared else named

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `from_dict` reads them."""
        described: dict[str, Any] = {"name": self.name}
        if self.edges:
            described["bins"] = [edge if math.isfinite(edge) else str(edge) for edge in self.edges]
        elif isinstance(self.values, range):
            described["size"] = len(self.values)
        else:
            described["labels"] = list(self.values)
        described["missing"] = self.missing
        if self.missing == "default":
            assert self.fallback is not None
            described["default"] = self.fallback if self.edges else self.values[self.fallback]
        return described

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Categories:
        """What `to_dict` described."""
        cells = {key: value for key, value in described.items() if key != "name"}
        return _categories(described["name"], cells, OTHER)


def categories_of(columns: Mapping[Any, Any], *, missing: str = OTHER) -> tuple[Categories, ...]:
    """The categories of every column of a dict, in its order, or InvalidInput.

    A column's cells are a list of labels (all text, all booleans, or all numbers), a whole
    number k for the codes 0 … k − 1, or a dict with one of the keys "labels", "size" and "bins"
    (the edges of [a, b), the last closed; -inf and inf are allowed). Such a dict may also have
    "missing", or "default": the label (for bins the position) of the cell for all other values.

    `missing` says where values go that are not declared: to one more cell, "other" (a label
    "other" is that cell if there is one), or nowhere, "drop", which leaves the record out. "none"
    declares, as a public fact, that all values are among those declared; one that is not counts as
    the first.

    >>> sex, age = categories_of({"sex": ["f", "m"], "age": {"bins": [0, 18, 65, 120]}})
    >>> sex.labels, age.labels
    (('f', 'm', 'other'), ('[0, 18)', '[18, 65)', '[65, 120]', 'other'))
    >>> categories_of({"code": 256}, missing="drop")[0].size
    256
    """
    if not isinstance(columns, Mapping):
        raise InvalidInput(
            'must be a dict from a column to its cells, as {"sex": ["f", "m"]}',
            parameter="categories",
            value=type(columns).__name__,
        )
    if not columns:
        raise InvalidInput("must have at least one column", parameter="categories")
    return tuple(_categories(name, cells, missing) for name, cells in columns.items())


def _categories(name: object, cells: Any, missing: str) -> Categories:
    name = _name(name)
    where = f"the categories of {name!r:.60}"
    given = dict(cells) if isinstance(cells, Mapping) else {_key_for(cells): cells}
    for key in given:
        _check.one_of(f"a key of {where}", key, _KEYS)
    ways = [key for key in ("labels", "bins", "size") if key in given]
    if len(ways) != 1:
        raise InvalidInput(f"{where} must have one of labels, bins and size; got {ways or 'none'}.")
    values: tuple[Label, ...] | range = ()
    edges: tuple[Number, ...] = ()
    if "size" in given:
        values = range(_check.count(where, given["size"], most=MOST_CELLS))
    elif "labels" in given:
        values = _labels(where, given["labels"])
    else:
        edges = _edges(where, given["bins"])
    declared = len(edges) - 1 if edges else len(values)
    if "default" in given:
        if given.get("missing", "default") != "default":
            raise InvalidInput(f"{where} must have missing or default, not both.")
        cell = _position(where, given["default"], values, declared)
        return Categories(name, values, edges, "default", cell)
    ways_out = (OTHER, "drop", "none")
    way = _check.one_of(f"missing for {where}", given.get("missing", missing), ways_out)
    fallback = {OTHER: declared, "drop": None, "none": 0}[way]
    if way == OTHER and not isinstance(values, range) and OTHER in values:
        fallback = values.index(OTHER)
    return Categories(name, values, edges, way, fallback)


def _key_for(cells: object) -> str:
    """A whole number is a size; everything else has to be a list of labels."""
    return "size" if isinstance(cells, int | np.integer) else "labels"


def _name(name: object) -> str | int:
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    if isinstance(name, str | tuple):
        return str(name)
    raise InvalidInput(
        "must name columns by text or by number", parameter="categories", value=type(name).__name__
    )


def _listed(where: str, given: object) -> list[Any]:
    items: list[Any] | None = None
    if isinstance(given, np.ndarray):
        items = given.tolist() if given.ndim else None
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set):
        items = list(given)
    if items is None:
        raise InvalidInput(f"{where} must be a list; got {type(given).__name__}.")
    if len(items) > MOST_CELLS:
        raise InvalidInput(f"{where} must be at most {MOST_CELLS:,}.")
    return items


def _labels(where: str, given: object) -> tuple[Label, ...]:
    labels = [_label(where, item) for item in _listed(where, given)]
    if not labels:
        raise InvalidInput(f"{where} must have at least one label.")
    if len({str if isinstance(label, str) else isinstance(label, bool) for label in labels}) > 1:
        raise InvalidInput(f"{where} must be all text, all numbers or all booleans, not mixed.")
    seen: set[Label] = set()
    for label in labels:
        if label in seen:
            raise InvalidInput(f"{where} must not repeat a label; got {label!r:.60} twice.")
        seen.add(label)
    return tuple(labels)


def _label(where: str, item: Any) -> Label:
    """Text, a boolean or a finite number as Python has it."""
    if isinstance(item, bool | np.bool_):
        return bool(item)
    if isinstance(item, str):
        text = str.__str__(item)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidInput(f"{where} must be text that can be written as UTF-8.")
        return text
    return _number(where, item)


def _number(where: str, item: Any) -> Number:
    """A whole number if it is one, else a finite float."""
    if isinstance(item, int | np.integer):
        number: Number = operator.index(item)
    elif isinstance(item, Real):
        number = _check.real(f"every one of {where}", item)
        number = int(number) if number.is_integer() else number
    else:
        raise InvalidInput(f"{where} must be text, numbers or booleans; got {type(item).__name__}.")
    if abs(number) > LARGEST_NUMBER:
        raise InvalidInput(f"{where} must be numbers of at most 2^100 in size.")
    return number


def _edges(where: str, given: object) -> tuple[Number, ...]:
    edges = [_edge(where, item) for item in _listed(where, given)]
    if len(edges) < 2:
        raise InvalidInput(f"{where} must have at least two edges of bins; got {len(edges)}.")
    for low, high in pairwise(edges):
        if not low < high:
            raise InvalidInput(f"{where} must have increasing edges; got {low} before {high}.")
    return tuple(edges)


def _edge(where: str, item: Any) -> Number:
    if isinstance(item, str) and item in ("inf", "-inf"):
        return float(item)
    if isinstance(item, Real) and not isinstance(item, bool) and abs(item) == math.inf:
        return float(item)
    if isinstance(item, str | bool | np.bool_):
        raise InvalidInput(f"{where} must have numbers for edges; got {type(item).__name__}.")
    return _number(where, item)


def _position(where: str, default: Any, values: Sequence[Label], declared: int) -> int:
    """The cell that a default names: a label, or the position of a bin."""
    if not values:
        return _check.count(f"default for {where}", default, least=0, most=declared - 1)
    label = _label(f"default for {where}", default)
    for position, value in enumerate(values):
        if value == label and isinstance(value, bool) == isinstance(label, bool):
            return position
    raise InvalidInput(f"default for {where} must be one of the labels; got {label!r:.60}.")


def _bin(low: Number, high: Number, *, closed: bool) -> str:
    left = "(" if low == -math.inf else "["
    right = "]" if closed and high != math.inf else ")"
    return f"{left}{low}, {high}{right}"
