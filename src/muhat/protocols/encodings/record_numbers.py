"""A record as exact integers, in a time that does not tell which record it is.

They are those of a plan for one record, which devices and server make anew from a description: it
is no part of the promise that they agree, but without that messages mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.data.engine import record_integers
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.ball_query import BallQuery
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery
from muhat.mechanisms.sums.columns_query import ColumnsQuery
from muhat.mechanisms.sums.parts_query import PartsQuery
from muhat.noise.spread import Spread
from muhat.planning.answers import answer
from muhat.planning.candidates import mean_of_sums
from muhat.planning.sums import NoisySums
from muhat.planning.terms import Terms
from muhat.privacy import Neighbors, Privacy
from muhat.records.columns import Batch
from muhat.statistics.bounded import Bounded

AIMS: tuple[str | Key, ...] = ("domain", Key("p", infinite=True), "weights")
"""What an estimate is about, and which of its errors, ‖diag(weights)·error‖_p, is made small."""

_SELDOM = np.array([[np.nan], [np.inf], [1e308], [-1e308]])
"""Values that kernels put right in a second step, two of each kind: rows of one take longer."""


class OneRecord(Plain):
    """What is read off the plan for one record, by devices and server: its numbers, and back.

    `axes` follow from the other fields (`traced_axes`).
    """

    if TYPE_CHECKING:  # fields

        @property
        def p(self) -> float:
            """The order of the norm of errors."""

        @property
        def axes(self) -> tuple[float, ...] | None:
            """What tells the plan's axes from others."""

        @property
        def plan(self) -> NoisySums:
            """The plan for one record."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _check.norm_order(self.p))
        if self.axes is None:
            object.__setattr__(self, "axes", traced_axes(self.plan))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """What was described, if this machine finds the same axes."""
        made = super().from_dict(fields)
        check_axes(made.plan, fields.get("axes"))
        return made

    @property
    def query(self) -> PartQuery | BlockQuery:
        """The integers of a record."""
        query = self.plan.recipe.query
        # A message is a record's values, no more: no squares, no counts.
        assert not isinstance(query, ColumnsQuery | BallQuery | PartsQuery)
        return query

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        assert self.query.lattice is not None
        return self.query.lattice.record_dim

    def mean_from(self, totals: Sequence[int], people: int, dropped: int) -> Floats:
        """The mean of so many records, from sums of numbers that lack their last binary digits."""
        units = zip(totals, self.query.units(), strict=True)
        noisy = [Fraction(total << dropped) * unit for total, unit in units]
        return answer(self.plan.with_records(people), noisy).value

    @property
    def alone(self) -> Spread:
        """The noise of the plan for one record."""
        assert self.plan.spread is not None
        return self.plan.spread


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
    return query.each(integers)


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


@lru_cache(maxsize=64)
def sums_of_one(
    domain: Domain,
    privacy: Privacy,
    p: float,
    weights: tuple[float, ...] | None,
    mechanism: str = "gaussian",
) -> NoisySums:
    """The plan for one record, with normal noise unless stated: device and server make the same."""
    asked = Bounded.of("mean", domain, p=p, weights=weights, mechanism=mechanism)
    return mean_of_sums(asked, Terms.checked(privacy, 1))


def traced_axes(plan: NoisySums) -> tuple[float, ...] | None:
    """What tells the axes that a plan measures records along from others, d numbers.

    None where they are the coordinates' own. Axes are found in floats: two machines agree on them
    up to the last digits, or not at all where several are as good.
    """
    transform = plan.recipe.transform
    if transform is None or transform.ndim == 1:
        return None
    return tuple((transform @ (1 / np.arange(1, transform.shape[1] + 1))).tolist())


def check_axes(plan: NoisySums, described: Sequence[float] | None) -> None:
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
