"""Which columns of a source make up a record: by name, or all that are numeric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol, SupportsInt, TypeGuard

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.errors import InvalidInput
from muhat.records.columns import Column

Columns = tuple[str, ...] | tuple[int, ...] | None


@dataclass(frozen=True)
class Field:
    """A column that a source has. `width` is its number of coordinates, 0 if not numeric.

    `is_text` where it holds text, or anything that is told apart one value at a time;
    `nullable` unless the schema says that no value is missing.
    """

    name: str
    type: str
    width: int
    is_text: bool = False
    nullable: bool = True


class Codes(Protocol):
    """What reads a column of any type, value by value, as codes of its own.

    `reads_text` says that text is not only read for the numbers in it, `identifies` that codes are
    no coordinate but say whose record it is.
    """

    reads_text: bool
    identifies: bool

    def require(self, field: Field) -> None:
        """InvalidInput for a column of a type that is not for it."""

    def of_array(self, values: NDArray[Any]) -> Column:
        """Codes of a 1-D numpy array."""

    def of_objects(self, values: Sequence[object]) -> Column:
        """Codes of Python objects."""

    def of_arrow(self, array: Any) -> Column:
        """Codes of an Arrow array."""

    def of_texts(self, cells: Any, *, latin: bool = False) -> Column:
        """Codes of an Arrow array of bytes."""


Coders = Sequence[Codes | None]
"""One entry a column: what puts its values into categories, None where they are numbers."""


@dataclass(frozen=True)
class Selection:
    """The chosen columns by position, and the coordinates they make up.

    `coders` has one entry a position: what makes codes of the column, None for numbers.
    `complete` if the schema says of all of them that no value is missing.
    """

    positions: tuple[int, ...]
    columns: tuple[str, ...]
    types: tuple[str, ...]
    coders: Coders
    complete: bool


def column_names(columns: object) -> Columns:
    """The `columns` argument as a tuple of names or of numbers, each once; None stays None.

    A text is the name of one column. Anything else must be an ordered collection of texts or
    of whole numbers: a list, a tuple, a numpy array, a pandas Index or Series, a generator.

    >>> column_names("age"), column_names(np.array([0, 2]))
    (('age',), (0, 2))
    """
    if columns is None:
        return None
    if isinstance(columns, str):
        return (str(columns),)
    given = None if isinstance(columns, bytes | bytearray | Mapping | Set) else _listed(columns)
    if given is None:
        raise InvalidInput(
            "must be a list of names or of numbers",
            parameter="columns",
            value=type(columns).__name__,
        )
    if not given:
        raise InvalidInput("must have at least one name or number", parameter="columns")
    # A tuple is how pandas names a column that has several levels.
    texts = tuple(str(column) for column in given if isinstance(column, str | tuple))
    numbers = tuple(int(column) for column in given if _is_whole(column))
    if len(given) not in (len(texts), len(numbers)):
        raise InvalidInput(
            "must be nothing but names (text) or nothing but whole numbers", parameter="columns"
        )
    names: tuple[str, ...] | tuple[int, ...] = texts if texts else numbers
    for name, times in Counter[str | int](names).items():
        if times > 1:
            raise InvalidInput(
                "must not repeat a column", parameter="columns", value=f"{name!r:.80} twice"
            )
    return names


def select(
    fields: Sequence[Field],
    columns: Columns,
    dim: int | None,
    *,
    names_are_public: bool = True,
    coders: Coders = (),
) -> Selection:
    """The columns asked for, or InvalidInput. None means all numeric ones, if they are `dim`.

    With dim=None any number will do, also none at all: then there is only something to count.
    `dim` does not count a column that says whose record it is.
    Names that may be values (a CSV file whose first line looks like data) are never shown.
    `coders` has one entry for each of the columns asked for, or none at all.
    """
    names = [field.name for field in fields]
    if columns is None:
        if not names_are_public and dim is not None:
            raise InvalidInput(
                "must be named: the first line of the file looks like data",
                parameter="columns",
                hint="A CSV file must begin with a header.",
            )
        positions = [index for index, field in enumerate(fields) if field.width]
        found = sum(fields[index].width for index in positions)
        if dim is not None and found != dim:
            raise InvalidInput(
                f"must be named: the data have {_numeric(found)} and the domain has dimension "
                f"{dim}",
                parameter="columns",
                hint=f"The columns are {_shown(names)}.",
            )
        return _selection(fields, positions, coders_for(positions, ()))
    positions = [_position(str(name), names, names_are_public) for name in columns]
    coders = coders_for(positions, coders)
    for field, coder in zip((fields[index] for index in positions), coders, strict=True):
        if coder is not None:
            coder.require(field)
        elif not field.width:
            raise InvalidInput(
                f"column {field.name!r:.80} has type {field.type:.80}, which cannot be averaged. "
                "Only numbers, decimals, booleans and fixed-size lists of numbers can: "
                "convert it first."
            )
    selection = _selection(fields, positions, coders)
    require_dim(len(selection.columns) - identities(coders), dim)
    return selection


def require_dim(given: int, dim: int | None) -> None:
    """Refuse a number of coordinates that is not the domain's; nothing is ever broadcast."""
    if dim is not None and given != dim:
        raise InvalidInput(
            f"must be as many as the domain has dimensions: got {given} for a domain of "
            f"dimension {dim}",
            parameter="columns",
        )


def coders_for(columns: Sequence[object], coders: Coders) -> Coders:
    """The coders, or None for each of the columns if there are none."""
    return tuple(coders) or (None,) * len(columns)


def identities(coders: Coders) -> int:
    """How many columns are no coordinates, but say whose record it is."""
    return sum(coder is not None and coder.identifies for coder in coders)


def places(names: Iterable[str]) -> dict[tuple[str, int], int]:
    """Where every name stands; how often it came before tells repeated ones apart.

    >>> places(["x", "y", "x"])
    {('x', 0): 0, ('y', 0): 1, ('x', 1): 2}
    """
    before: Counter[str] = Counter()
    found = {}
    for position, name in enumerate(names):
        found[name, before[name]] = position
        before[name] += 1
    return found


def _selection(fields: Sequence[Field], positions: Sequence[int], coders: Coders) -> Selection:
    columns: list[str] = []
    types: list[str] = []
    for field, coder in zip((fields[index] for index in positions), coders, strict=True):
        if coder is not None:
            columns.append(field.name)
            types.append(field.type)
            continue
        several = field.width > 1 or field.type.startswith("fixed_size_list")
        columns += (
            [f"{field.name}[{part}]" for part in range(field.width)] if several else [field.name]
        )
        types += [field.type] * field.width
    complete = not any(
        fields[index].nullable
        for index, coder in zip(positions, coders, strict=True)
        if coder is None or not coder.identifies
    )
    return Selection(tuple(positions), tuple(columns), tuple(types), coders, complete)


def _listed(columns: object) -> list[object] | None:
    """The items in their order, or None if there are none to be had."""
    try:
        return list(columns)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        return None


def _is_whole(column: object) -> TypeGuard[SupportsInt]:
    return isinstance(column, int | np.integer) and not isinstance(column, bool)


def _position(name: str, names: Sequence[str], names_are_public: bool) -> int:
    count = names.count(name)
    if count == 1:
        return names.index(name)
    if count:
        raise InvalidInput(f"column {name!r:.80} occurs more than once in the data; rename one.")
    if not names_are_public:
        raise InvalidInput(
            f"column {name!r:.80} is not in the first line of the file, which looks like data. "
            "A CSV file must begin with a header."
        )
    raise InvalidInput(
        f"column {name!r:.80} is not in the data."
        + (_check.did_you_mean(name, names) or f" The columns are {_shown(names)}.")
    )


def _numeric(found: int) -> str:
    return f"{found} numeric column" + "s" * (found != 1)


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name!r:.40}" for name in names[:12])
    return shown + (", …" if len(names) > 12 else "") if names else "none"
