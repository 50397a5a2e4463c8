"""Noisy tables of one kind of sum by groups: counts, sums with their squares, or products.

Of every record a family has one whole number w, |w| ≤ reach, that is added up within the groups of
several columns at once. A record of weight w moves every table at most as |w| records that come or
go, so the strategy for counts of these groups serves, for a person with `reach` times as many
records; where records are replaced, twice as many. Squares l ride with their sums k: k² + l² ≤ m²
in the ℓ₂ norm, and 2|k| + l ≤ 2m in the ℓ₁ norm, so both have the noise that the sums alone need.

In the ℓ₁ norm the count may ride with sums, too: m − k and m + k are not negative and add up to
2m, so noise on their tables is that of one table, and both the count and the sums are read off
them; and so do 2m − 2k − l, 2l and 2m + 2k − l, which add up to 4m. Proof:
docs/proofs/moment-tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat import workloads
from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.data.moments import Family
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.laws import independent_law
from muhat.noise.protection import Protection
from muhat.noise.stairs import Stairs
from muhat.privacy import Neighbors
from muhat.workloads import Workload
from muhat.workloads.factorization import Factorization
from muhat.workloads.factorize import factorize

Axes = tuple[int, ...]
Tables = Mapping[Axes, NDArray[Any]]

COUNT, SUM, SQUARES = 0, 1, 2
"""What is summed over the records of a cell: 1, k and l."""


class Strand(NamedTuple):
    """A whole number of every record that is added up with noise of its own.

    `made` are its coefficients of 1, k and l; `read`, how often its sum, in records of full weight,
    is in the number of records, in Σu and in Σ(1 − u²).
    """

    made: tuple[int, int, int]
    read: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class MomentBlock(
    Plain,
    keys=(
        "family",
        "cells",
        "groupings",
        "weights",
        Key("counts", optional=True),
        "reach",
        "squares",
        "recipe",
    ),
):
    """The tables of a family over `groupings`, sets of axes of a histogram of shape `cells`.

    `weights`, one a grouping, say how much an error in a table matters; with `counts`, weights
    too, the numbers of records ride with sums, in pure noise. `protection` is what the block must
    guarantee, in all.
    """

    family: Family
    cells: tuple[int, ...]
    groupings: tuple[Axes, ...]
    weights: tuple[float, ...]
    reach: int
    squares: bool
    protection: Protection
    recipe: LinearRecipe
    counts: tuple[float, ...] | None = None

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
        counts: Sequence[float] | None = None,
        stairs: bool = False,
    ) -> MomentBlock:
        """The block whose noise just keeps what is asked of it.

        The counts of a single table may have `stairs`, which err less than Laplace noise.
        """
        factorization = strategy(cells, tuple(groupings.items()))
        ridden = None if counts is None else tuple(counts)
        moved = protection
        if family.term:
            moved = _weighted(protection, _unit(reach, squares, ridden is not None, kind))
        absent = not family.term and protection.neighbors is Neighbors.SUBSTITUTE
        single = stairs and kind is NoiseKind.PURE and not family.term and len(groupings) == 1
        least = LinearRecipe.on_cells(factorization, moved, absent=absent) if single else None
        recipe = least or LinearRecipe.of(
            factorization, independent_law(kind), moved, absent=absent
        )
        tables, weights = tuple(groupings), tuple(groupings.values())
        return cls(family, cells, tables, weights, reach, squares, protection, recipe, ridden)

    def __post_init__(self) -> None:
        counts, expected = not self.family.term, self.protection
        if not counts:
            expected = _weighted(expected, self.unit)
        if self.recipe.protection != expected or (counts and (self.squares or self.reach != 1)):
            raise AssertionError("the noise of a block was made for another weight of records")
        if not (counts and len(self.groupings) == 1) and isinstance(self.recipe.law, Stairs):
            raise AssertionError("stairs are for the counts of a single table")
        if expected.neighbors is Neighbors.SUBSTITUTE and not self.recipe.absent:
            raise AssertionError("a record that is replaced may be in no group")
        if self.counts is not None and (
            self.kind is NoiseKind.NORMAL or len(self.family.term) != 1
        ):
            raise AssertionError("counts ride with the sums of a column, in pure noise")

    @property
    def kind(self) -> NoiseKind:
        """In what its privacy is counted."""
        assert self.recipe.law.kind is not None
        return self.recipe.law.kind

    @cached_property
    def unit(self) -> int:
        """What one record adds at most to the integers of all strands together."""
        return _unit(self.reach, self.squares, self.counts is not None, self.kind)

    @cached_property
    def strands(self) -> tuple[Strand, ...]:
        """The whole numbers of a record that get noise."""
        if not self.family.term:
            return (Strand((1, 0, 0), (1.0, 0.0, 0.0)),)
        m, times = self.reach, self.unit // self.reach
        if self.counts is None:
            sums = Strand((0, times, 0), (0.0, 1.0, 0.0))
            squares = Strand((0, 0, 1), (0.0, 0.0, float(times)))
            return (sums, squares) if self.squares else (sums,)
        half, lack = times // 2, int(self.squares)
        low = Strand((half * m, -half, -lack), (1.0, -1.0, 0.0))
        high = Strand((half * m, half, -lack), (1.0, 1.0, 0.0))
        middle = Strand((0, 0, 2), (1.0, 0.0, 2.0))
        return (low, middle, high) if self.squares else (low, high)

    @cached_property
    def held(self) -> dict[tuple[Family, bool], int]:
        """The sums that can be read off it: families, whether they are squares, and which it is."""
        if not self.family.term:
            return {(self.family, False): COUNT}
        found = {(self.family, False): SUM}
        if self.squares:
            found[self.family, True] = SQUARES
        if self.counts is not None:
            found[Family(self.family.recorded, ()), False] = COUNT
        return found

    @cached_property
    def scales(self) -> dict[Axes, float]:
        """The scale of the noise on every cell of a strand, in records of full weight."""
        found = self.recipe.query.scales
        return {
            axes: float(found[start]) / (weight * self.unit) for axes, weight, start in self._rows()
        }

    def deviation(self, axes: Axes, what: int = SUM) -> float:
        """The standard deviation of the noise on every cell of a table that is read off it."""
        law = math.sqrt(self.recipe.law.variance(1))
        return law * self.scales[axes] * math.hypot(*(each.read[what] for each in self.strands))

    @cached_property
    def error(self) -> float:
        """The root of the weighted sum of the squared errors of all cells of all tables."""
        return self.error_over(self.cells)

    def error_over(self, cells: Sequence[int]) -> float:
        """The same of so many cells of every axis."""
        kinds = {SUM if self.family.term else COUNT: self.weights}
        if self.counts is not None:
            kinds[COUNT] = self.counts
        return math.sqrt(
            sum(
                math.prod(cells[axis] for axis in axes) * (weight * self.deviation(axes, what)) ** 2
                for what, weights in kinds.items()
                for axes, weight in zip(self.groupings, weights, strict=True)
            )
        )

    def noisy(self, tables: Mapping[int, Tables]) -> list[dict[Axes, Floats]]:
        """Noisy tables of every strand, flat, in records of full weight.

        `tables` are the exact ones of 1, k and l, as far as strands are made of them.
        """
        return [self._noisy(strand, tables) for strand in self.strands]

    def rows_of(self, axes: Axes) -> tuple[int, float]:
        """Where the answers of a table begin, and what they are multiplied by."""
        return next((start, weight) for each, weight, start in self._rows() if each == axes)

    def _rows(self) -> Iterator[tuple[Axes, float, int]]:
        """Every table, what its answers are multiplied by, and the place of the first of them."""
        start = 0
        for axes, weight in zip(self.groupings, self.weights, strict=True):
            # A single table is answered as it is.
            yield axes, weight if len(self.groupings) > 1 else 1.0, start
            start += self._size(axes)

    def _size(self, axes: Axes) -> int:
        return math.prod(self.cells[axis] for axis in axes)

    def _noisy(self, strand: Strand, tables: Mapping[int, Tables]) -> dict[Axes, Floats]:
        """Draw the noise, once for all groupings, on sums in Python's integers."""
        place = {axis: index for index, axis in enumerate(_used(self.groupings))}
        margins = {
            tuple(place[axis] for axis in axes): np.array(
                sum(
                    np.asarray(tables[what][axes]).astype(object) * times
                    for what, times in enumerate(strand.made)
                    if times
                ),
                dtype=object,
            )
            for axes in self.groupings
        }
        if len(self.groupings) == 1:
            (table,) = margins.values()
            margins = {(0,): table.reshape(-1)}
        answers = self.recipe.run({axes: margins[axes] for axes in self.recipe.query.sets}, None)
        return {
            axes: answers[start : start + self._size(axes)] / (weight * self.unit)
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


def _unit(reach: int, squares: bool, counts: bool, kind: NoiseKind) -> int:
    """What a record adds: in the ℓ₁ norm squares count half, so that all is doubled.

    And doubled once more beside counts, of which each end of the bounds has half.
    """
    return reach << (int(squares) + int(counts) if kind is NoiseKind.PURE else 0)


def _weighted(protection: Protection, weight: int) -> Protection:
    """What records of a weight ask of noise on counts: so many records that come or go."""
    times = 2 if protection.neighbors is Neighbors.SUBSTITUTE else 1
    rows = protection.contributions * weight * times
    return Protection(protection.promise, Neighbors.ADD_REMOVE, rows)
