"""A record as exact integers, in a time that does not tell which record it is.

They are those of a plan for one record, which devices and server make anew from a description: it
is no part of the promise that they agree, but without that messages mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from muhat._arrays import Floats
from muhat.data.columns import Batch
from muhat.data.kernel import record_integers
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery
from muhat.planning import Plan
from muhat.privacy import Neighbors

_SELDOM = np.array([[np.nan], [np.inf], [1e308], [-1e308]])
"""Values that kernels put right in a second step, two of each kind: rows of one take longer."""


def exact_numbers(query: PartQuery | BlockQuery, records: Floats) -> list[list[int]]:
    """The integers of every record as the plan for one record has them, r for each.

    Records that kernels treat apart are always among them, whatever the people's are: one record
    by itself would otherwise take half as long again if it is missing or far outside.
    """
    lattice = query.lattice
    assert lattice is not None
    seldom = np.broadcast_to(_SELDOM, (len(_SELDOM), lattice.record_dim))
    rows = np.concatenate([records, seldom])
    integers = record_integers(lattice, Batch(len(rows), matrix=rows))[: len(records)]
    return [query.answer(row, 1) for row in integers.tolist()]


def largest_number(query: PartQuery | BlockQuery) -> int:
    """No number of a record is farther from 0: all are within reach of the record that is missing.

    >>> from muhat import GDP, Ball, plan_mean
    >>> plan = plan_mean(domain=Ball(1.0, dim=2), n=1, privacy=GDP(mu=1.0), population=False)
    >>> largest_number(plan.recipe.query) <= 1 << 54
    True
    """
    lattice = query.lattice
    assert lattice is not None
    (missing,) = exact_numbers(query, np.full((1, lattice.record_dim), np.nan))
    moved = math.ceil(query.sensitivity(2, Neighbors.SUBSTITUTE, 1))
    return max(map(abs, missing)) + moved


def traced_axes(plan: Plan) -> tuple[float, ...] | None:
    """What tells the axes that a plan measures records along from others, d numbers.

    None where they are the coordinates' own. Axes are found in floats: two machines agree on them
    up to the last digits, or not at all where several are as good.
    """
    transform = plan.recipe.transform
    if transform is None or transform.ndim == 1:
        return None
    return tuple((transform @ (1 / np.arange(1, transform.shape[1] + 1))).tolist())


def check_axes(plan: Plan, described: Sequence[float] | None) -> None:
    """Refuse a description whose server would read other axes out of the messages."""
    found = traced_axes(plan)
    agreed = found is None and described is None
    if found is not None and described is not None and len(found) == len(described):
        apart = np.abs(np.subtract(found, described))
        agreed = bool((apart <= _ALIKE * plan.recipe.scales).all())
    if not agreed:
        raise InvalidInput(
            "this machine finds other axes of the domain than the description was made with: its "
            "messages would be misread. Describe the domain in another way, such as mh.Ellipsoid."
        )


_ALIKE = 1e-6
"""Of the noise: far above rounding, far below what would be noticed."""
