"""Linear queries on a histogram, and the columns of a table whose cells they are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from muhat import _check, workloads
from muhat.ellipsoids.finite import check_tolerance
from muhat.errors import InvalidInput
from muhat.release.query_table import Attributes
from muhat.workloads import Workload

if TYPE_CHECKING:
    from muhat.data.categories import Categories

MOST_LABELS = 1 << 22
"""Names of categories are kept for every release, and written with it."""


@dataclass(frozen=True, eq=False)
class LinearQueries:
    """A workload, and the public categories of the columns that it is about."""

    workload: Workload
    p: float
    categories: tuple[Categories, ...]
    attributes: Attributes
    tol: float

    @classmethod
    def of(
        cls,
        workload: Workload | ArrayLike,
        categories: Mapping[str, Any] | None,
        *,
        p: float,
        missing: str | None,
        tol: float,
    ) -> LinearQueries:
        """Check every argument."""
        p, tol = _check.norm_order(p), check_tolerance(tol)
        if not isinstance(workload, Workload):
            workload = workloads.matrix(workload)
        return cls(workload, p, *_attributes(workload, categories, missing), tol)

    def premises(self) -> tuple[str, ...]:
        """What becomes of other values, in sentences."""
        lines = []
        for one in self.categories:
            where = "are left out"
            if one.fallback is not None:
                where = f"count as {one.labels[one.fallback]!s}"
            declares = "nothing is missing, as was declared; " if one.missing == "none" else ""
            lines.append(f"{declares}records with any other value of {one.name} {where}")
        return tuple(lines)


def _attributes(
    workload: Workload,
    categories: Mapping[str, Any] | None,
    missing: str | None,
) -> tuple[tuple[Categories, ...], Attributes]:
    """The declared categories, and how the axes are called."""
    if categories is None:
        if missing is not None:
            raise InvalidInput("missing goes with categories; it is about values in a table.")
        return (), Attributes.unnamed(workload.cells)
    from muhat.data.categories import categories_of

    ways = ("other", "drop") if missing is None else (missing,)
    found = [categories_of(categories, missing=way) for way in ways]
    shapes = [tuple(one.size for one in declared) for declared in found]
    if workload.cells not in shapes:
        asked = " or ".join(str(shape) for shape in dict.fromkeys(shapes))
        raise InvalidInput(
            f"the categories make a histogram of shape {asked}, the workload asks about "
            f"{workload.cells}."
        )
    declared = found[shapes.index(workload.cells)]
    if sum(one.size for one in declared) > MOST_LABELS:
        raise InvalidInput(
            f"more than {MOST_LABELS:,} categories have no names. Leave categories out, and give "
            "codes 0, 1, … in the columns that release(data, columns=[…]) names."
        )
    names = tuple(str(one.name) for one in declared)
    if len(set(names)) < len(names):
        raise InvalidInput("must not name a column twice", parameter="categories", value=str(names))
    return declared, Attributes(names, tuple(tuple(map(str, one.labels)) for one in declared))
