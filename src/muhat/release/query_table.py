"""What each answer is about: the rows of a workload in the words of its attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.errors import InvalidInput
from muhat.workloads import Workload
from muhat.workloads.identity import Identity
from muhat.workloads.marginals import Marginals
from muhat.workloads.parity import Parity
from muhat.workloads.prefix import Prefix
from muhat.workloads.ranges import Ranges

Columns = dict[str, NDArray[Any]]

COLUMNS = ("value", "standard_error", "lower", "upper")
"""What a table says of every answer."""


@dataclass(frozen=True)
class Attributes:
    """The names of a histogram's axes and the labels of their categories.

    Without `labels` categories go by their number.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def unnamed(cls, cells: tuple[int, ...]) -> Attributes:
        """Axes that go by their number."""
        if len(cells) == 1:
            return cls(("cell",))
        return cls(tuple(f"attribute {axis}" for axis in range(len(cells))))

    def require(self, cells: tuple[int, ...]) -> None:
        """InvalidInput unless there is a name an axis, and a label a category or none at all."""
        sizes = tuple(len(labels) for labels in self.labels)
        texts = [*self.names, *(label for labels in self.labels for label in labels)]
        if (
            len(self.names) != len(cells)
            or sizes not in ((), cells)
            or not all(isinstance(text, str) for text in texts)
        ):
            raise InvalidInput("a release names every attribute, and all of its categories.")

    def label(self, axis: int, codes: NDArray[np.int64]) -> NDArray[Any]:
        """The labels of codes along an axis."""
        if not self.labels:
            return codes
        return np.array(self.labels[axis], dtype=object)[codes]

    def axis(self, name: str | int) -> int:
        """The axis of a name or number."""
        if isinstance(name, str) and name in self.names:
            return self.names.index(name)
        if isinstance(name, int) and 0 <= name < len(self.names):
            return name
        hint = _check.did_you_mean(str(name), self.names)
        raise InvalidInput(f"{name!r:.60} is not one of the {len(self.names)} attributes.{hint}")


def tidy_table(workload: Workload, attributes: Attributes, most: int | None = None) -> Columns:
    """Columns that say what the answers are about, for the first `most` rows."""
    rows = workload.shape[0] if most is None else min(most, workload.shape[0])
    found = _columns(workload, attributes, rows)
    return {unlike(name, COLUMNS): column for name, column in found.items()}


def unlike(name: str, taken: Sequence[str]) -> str:
    """The name of an attribute among other columns, which may be called the same."""
    return f"{name} of the record" if name in taken else name


def query_names(workload: Workload, attributes: Attributes, most: int) -> tuple[str, list[str]]:
    """A heading, and the first `most` rows in a few words each."""
    columns = tidy_table(workload, attributes, most)
    if len(columns) == 1:
        ((heading, values),) = columns.items()
        return heading, [str(value) for value in values]
    names = []
    for row in zip(*columns.values(), strict=True):
        said = [
            f"{name} = {value}" for name, value in zip(columns, row, strict=True) if value != ""
        ]
        names.append(", ".join(said) or "all records")
    return "query", names


def marginal_table(
    workload: Workload,
    attributes: Attributes,
    names: Sequence[str | int],
    values: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The table of one of the marginals that were asked."""
    if not isinstance(workload, Marginals):
        raise InvalidInput("only marginals are tables; use `value` or `table()`.")
    axes = tuple(sorted(attributes.axis(name) for name in names))
    if axes not in workload.sets:
        asked = ", ".join(attributes.names[axis] for axis in axes) or "nothing"
        raise InvalidInput(f"the marginal of {asked} was not among the queries.")
    index = workload.sets.index(axes)
    start, stop = workload.offsets[index], workload.offsets[index + 1]
    return values[start:stop].reshape(workload.table_shapes[index])


@singledispatch
def _columns(workload: Workload, attributes: Attributes, rows: int) -> Columns:
    return {"query": np.arange(rows)}


@_columns.register
def _(workload: Identity, attributes: Attributes, rows: int) -> Columns:
    # numpy's unravel_index has room for 64 axes only.
    rest, columns = np.arange(rows), {}
    for axis in reversed(range(len(workload.cells))):
        rest, codes = np.divmod(rest, workload.cells[axis])
        columns[attributes.names[axis]] = attributes.label(axis, codes)
    return dict(reversed(columns.items()))


@_columns.register
def _(workload: Prefix, attributes: Attributes, rows: int) -> Columns:
    return {f"{attributes.names[0]} up to": attributes.label(0, np.arange(rows))}


@_columns.register
def _(workload: Ranges, attributes: Attributes, rows: int) -> Columns:
    # Rows are ordered by start, then by end: start s has N − s of them.
    cells = workload.cells[0]
    firsts = np.concatenate([[0], np.cumsum(np.arange(cells, 0, -1))])
    starts = np.searchsorted(firsts, np.arange(rows), side="right") - 1
    ends = starts + np.arange(rows) - firsts[starts]
    name = attributes.names[0]
    return {
        f"{name} from": attributes.label(0, starts),
        f"{name} to": attributes.label(0, ends),
    }


@_columns.register
def _(workload: Parity, attributes: Attributes, rows: int) -> Columns:
    sets = workload.sets[:rows]
    names = [" ⊕ ".join(attributes.names[bit] for bit in chosen) for chosen in sets]
    return {"parity of": np.array(names, dtype=object)}


@_columns.register
def _(workload: Marginals, attributes: Attributes, rows: int) -> Columns:
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in attributes.names}
    for index, axes in enumerate(workload.sets):
        start, stop = workload.offsets[index], min(workload.offsets[index + 1], rows)
        if start >= stop:
            break
        codes = workload.labels(index)[: stop - start]
        for axis, name in enumerate(attributes.names):
            if axis in axes:
                labels = attributes.label(axis, codes[:, axes.index(axis)]).astype(object)
            else:
                labels = np.full(stop - start, "", dtype=object)
            parts[name].append(labels)
    return {name: np.concatenate(labels) for name, labels in parts.items()}
