"""Which columns of a source make up a record: by name, or all that are numeric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muhat import _check
from muhat.errors import InvalidInput


@dataclass(frozen=True)
class Field:
    """A column that a source has. `width` is its number of coordinates, 0 if not numeric."""

    name: str
    type: str
    width: int


@dataclass(frozen=True)
class Selection:
    """The chosen columns by position, and the coordinates they make up."""

    positions: tuple[int, ...]
    columns: tuple[str, ...]
    types: tuple[str, ...]


def select(
    fields: Sequence[Field], columns: object, dim: int | None, *, names_are_public: bool = True
) -> Selection:
    """The columns asked for, or InvalidInput. None means all numeric ones, if they are `dim`.

    With dim=None any number will do, also none at all: then there is only something to count.
    Names that may be values (a CSV file whose first line looks like data) are never shown.
    """
    names = [field.name for field in fields]
    if columns is None:
        if not names_are_public and dim is not None:
            raise InvalidInput(
                "columns must be named: the first line of the file looks like data. "
                "A CSV file must begin with a header."
            )
        positions = [index for index, field in enumerate(fields) if field.width]
        found = sum(fields[index].width for index in positions)
        if dim is not None and found != dim:
            raise InvalidInput(
                f"columns must be named: the data have {_numeric(found)} and the domain "
                f"has dimension {dim}. The columns are {_listed(names)}."
            )
        return _selection(fields, positions)
    positions = [_position(name, names, names_are_public) for name in _as_names(columns)]
    repeated = [names[index] for index, times in Counter(positions).items() if times > 1]
    if repeated:
        raise InvalidInput(f"columns must not repeat a name; got {repeated[0]!r:.80} twice.")
    for field in (fields[index] for index in positions):
        if not field.width:
            raise InvalidInput(
                f"column {field.name!r:.80} has type {field.type:.80}, which cannot be averaged. "
                "Only numbers, decimals, booleans and fixed-size lists of numbers can: "
                "convert it first."
            )
    selection = _selection(fields, positions)
    require_dim(len(selection.columns), dim)
    return selection


def require_dim(given: int, dim: int | None) -> None:
    """Refuse a number of coordinates that is not the domain's; nothing is ever broadcast."""
    if dim is not None and given != dim:
        raise InvalidInput(
            f"columns must be as many as the domain has dimensions: "
            f"got {given} for a domain of dimension {dim}."
        )


def _selection(fields: Sequence[Field], positions: Sequence[int]) -> Selection:
    columns: list[str] = []
    types: list[str] = []
    for field in (fields[index] for index in positions):
        several = field.width > 1 or field.type.startswith("fixed_size_list")
        columns += (
            [f"{field.name}[{part}]" for part in range(field.width)] if several else [field.name]
        )
        types += [field.type] * field.width
    return Selection(tuple(positions), tuple(columns), tuple(types))


def _as_names(columns: object) -> list[str]:
    if isinstance(columns, str | int):
        columns = [columns]
    if not isinstance(columns, Iterable):
        raise InvalidInput(f"columns must be a list of names; got {type(columns).__name__}.")
    names = [str(name) for name in columns]
    if not names:
        raise InvalidInput("columns must name at least one column.")
    return names


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
        + (_check.did_you_mean(name, names) or f" The columns are {_listed(names)}.")
    )


def _numeric(found: int) -> str:
    return f"{found} numeric column" + "s" * (found != 1)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name!r:.40}" for name in names[:12])
    return shown + (", …" if len(names) > 12 else "") if names else "none"
