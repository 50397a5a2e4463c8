"""Noisy tables of one kind of sum by groups: counts, sums with their squares, or products.

Of every record a family has one whole number w, |w| ≤ reach, that is added up within the groups of
several columns at once. A record of weight w moves every table at most as |w| records that come or
go, so the strategy for counts of these groups serves, for a person with `reach` times as many
records; where records are replaced, twice as many. Squares l ride with their sums k: k² + l² ≤ m²
in the ℓ₂ norm, and 2|k| + l ≤ 2m in the ℓ₁ norm, so both have the noise that the sums alone need.
Proof: docs/proofs/moment-tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import workloads
from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.data.moments import Family
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.laws import independent_law
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors
from muhat.workloads import Workload
from muhat.workloads.factorization import Factorization
from muhat.workloads.factorize import factorize

Axes = tuple[int, ...]
Tables = Mapping[Axes, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class MomentBlock(
    Plain, keys=("family", "cells", "groupings", "weights", "reach", "squares", "recipe")
):
    """The tables of a family over `groupings`, sets of axes of a histogram of shape `cells`.

    `weights`, one a grouping, say how much an error in a table matters; `protection` is what the
    block must guarantee, in all.
    """

    family: Family
    cells: tuple[int, ...]
    groupings: tuple[Axes, ...]
    weights: tuple[float, ...]
    reach: int
    squares: bool
    protection: Protection
    recipe: LinearRecipe

    @classmethod
    def of(
        cls,
        family: Family,
        cells: tuple[int, ...],
        groupings: Mapping[Axes, float],
        reach: int,
        protection: Protection,
        kind: NoiseKind,
        *,
        squares: bool = False,
    ) -> MomentBlock:
        """The block whose noise just keeps what is asked of it."""
        factorization = strategy(cells, tuple(groupings.items()))
        counts = not family.term
        moved = protection if counts else _weighted(protection, _doubled(reach, squares, kind))
        absent = counts and protection.neighbors is Neighbors.SUBSTITUTE
        recipe = LinearRecipe.of(factorization, independent_law(kind), moved, absent=absent)
        tables, weights = tuple(groupings), tuple(groupings.values())
        return cls(family, cells, tables, weights, reach, squares, protection, recipe)

    def __post_init__(self) -> None:
        counts, expected = not self.family.term, self.protection
        if not counts:
            expected = _weighted(expected, self.unit)
        if self.recipe.protection != expected or (counts and (self.squares or self.reach != 1)):
            raise AssertionError("the noise of a block was made for another weight of records")
        if expected.neighbors is Neighbors.SUBSTITUTE and not self.recipe.absent:
            raise AssertionError("a record that is replaced may be in no group")

    @property
    def kind(self) -> NoiseKind:
        """In what its privacy is counted."""
        assert self.recipe.law.kind is not None
        return self.recipe.law.kind

    @cached_property
    def unit(self) -> int:
        """What one record of full weight adds to the integers of the sums."""
        return _doubled(self.reach, self.squares, self.kind)

    @cached_property
    def scales(self) -> dict[Axes, float]:
        """The scale of the noise on every cell of each table, in records of full weight."""
        found = self.recipe.query.scales
        return {
            axes: float(found[start]) / (weight * self.unit) for axes, weight, start in self._rows()
        }

    @property
    def square_scales(self) -> dict[Axes, float]:
        """The same for the tables of squares."""
        times = self.unit / self.reach
        return {axes: scale * times for axes, scale in self.scales.items()}

    @property
    def deviation(self) -> float:
        """The standard deviation of noise of scale 1."""
        return math.sqrt(self.recipe.law.variance(1))

    @cached_property
    def error(self) -> float:
        """The root of the weighted sum of the squared errors of all cells of all tables."""
        return self.deviation * math.sqrt(
            sum(
                self._size(axes) * (weight * self.scales[axes]) ** 2
                for axes, weight in zip(self.groupings, self.weights, strict=True)
            )
        )

    def sums(self, tables: Tables) -> dict[Axes, Floats]:
        """Noisy tables of the sums, flat, in records of full weight."""
        return self._noisy(tables, self.unit // self.reach, self.unit)

    def squared(self, tables: Tables) -> dict[Axes, Floats]:
        """Noisy tables of Σ(1 − u²), flat."""
        return self._noisy(tables, 1, self.reach)

    def _rows(self) -> Iterator[tuple[Axes, float, int]]:
        """Every table, what its answers are multiplied by, and the place of the first of them."""
        start = 0
        for axes, weight in zip(self.groupings, self.weights, strict=True):
            # A single table is answered as it is.
            yield axes, weight if len(self.groupings) > 1 else 1.0, start
            start += self._size(axes)

    def _size(self, axes: Axes) -> int:
        return math.prod(self.cells[axis] for axis in axes)

    def _noisy(self, tables: Tables, times: int, unit: int) -> dict[Axes, Floats]:
        """Draw the noise, once for all tables, which are multiplied before in Python's integers."""
        used = _used(self.groupings)
        place = {axis: index for index, axis in enumerate(used)}
        margins = {
            tuple(place[axis] for axis in axes): np.array(
                np.asarray(tables[axes]).astype(object) * times, dtype=object
            )
            for axes in self.groupings
        }
        if len(self.groupings) == 1:
            (table,) = margins.values()
            margins = {(0,): table.reshape(-1)}
        answers = self.recipe.run({axes: margins[axes] for axes in self.recipe.query.sets}, None)
        return {
            axes: answers[start : start + self._size(axes)] / (weight * unit)
            for axes, weight, start in self._rows()
        }


@lru_cache(maxsize=256)
def strategy(cells: tuple[int, ...], groupings: tuple[tuple[Axes, float], ...]) -> Factorization:
    """The best strategy for the tables, for records that come or go; solved once for all."""
    return factorize(workload_of(cells, groupings), p=2, neighbors=Neighbors.ADD_REMOVE)


def floor_of(cells: tuple[int, ...], groupings: Mapping[Axes, float]) -> float:
    """No strategy for the tables has less weighted error at μ = 1, for one record of weight 1."""
    floor = strategy(cells, tuple(groupings.items())).floor
    return floor if len(groupings) > 1 else floor * next(iter(groupings.values()))


def workload_of(cells: Sequence[int], groupings: Sequence[tuple[Axes, float]]) -> Workload:
    """The tables as linear queries on the axes that they have, each times its weight."""
    if len(groupings) == 1:
        ((axes, _),) = groupings
        return workloads.identity(math.prod(cells[axis] for axis in axes))
    used = _used(axes for axes, _ in groupings)
    place = {axis: index for index, axis in enumerate(used)}
    shape = [cells[axis] for axis in used] or [1]
    return workloads.stack(
        [
            workloads.marginals(shape, sets=[tuple(place[axis] for axis in axes)])
            for axes, _ in groupings
        ],
        [weight for _, weight in groupings],
    )


def _used(groupings: Iterable[Axes]) -> tuple[int, ...]:
    return tuple(sorted({axis for axes in groupings for axis in axes}))


def _doubled(reach: int, squares: bool, kind: NoiseKind) -> int:
    """The weight of a record: in the ℓ₁ norm squares count half, so that all is doubled."""
    return 2 * reach if squares and kind is NoiseKind.PURE else reach


def _weighted(protection: Protection, weight: int) -> Protection:
    """What records of a weight ask of noise on counts: so many records that come or go."""
    times = 2 if protection.neighbors is Neighbors.SUBSTITUTE else 1
    rows = protection.contributions * weight * times
    return Protection(protection.promise, Neighbors.ADD_REMOVE, rows)
