"""Statistics that are read off sums by groups, until shares of the promise are chosen."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from muhat.data.moments import Family, MomentColumn, reach
from muhat.data.units import People
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.moment_block import Axes, MomentBlock
from muhat.noise.kinds import NoiseKind, Strength
from muhat.planning.allocation import TargetedError
from muhat.planning.moments import (
    CellMoments,
    Reading,
    cells_of,
    coefficients,
    free_count,
    protection_of,
)
from muhat.planning.terms import Terms
from muhat.statistics.asked import Asked
from muhat.statistics.schema import Schema

if TYPE_CHECKING:
    from muhat.data.categories import Categories


@dataclass(frozen=True)
class Portion:
    """Tables of a family that have noise together, and how much an error in each matters.

    With `companions`, the places of other portions, their noise takes no share of its own: counts
    beside sums of the same records in the same groups, where records are replaced.
    """

    family: Family
    groupings: Mapping[Axes, float]
    companions: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class MomentSet:
    """Which tables the statistics need, and what their noise is at the whole promise of `terms`."""

    readings: tuple[Reading, ...]
    categories: tuple[Categories, ...]
    scales: tuple[MomentColumn, ...]
    terms: Terms
    kind: NoiseKind
    people: People | None
    learnt: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        asked: Sequence[Asked],
        schema: Schema,
        terms: Terms,
        kind: NoiseKind,
        people: People | None,
        learnt: Collection[str] = (),
    ) -> MomentSet:
        """The groups and columns that the statistics are about, of these people's records.

        Tables by columns that are `learnt` have noise of their own, whatever groups there will be.
        """
        chosen = () if people is None else map(str, people.one_row_per)
        names = list(dict.fromkeys([*(name for each in asked for name in each.by), *chosen]))
        columns = dict.fromkeys(name for each in asked for name in each.columns)
        readings = tuple(
            Reading(
                each,
                tuple(names.index(name) for name in each.by),
                tuple(sorted(name for name in each.columns if not schema.is_complete(name))),
            )
            for each in asked
        )
        categories = tuple(schema.categories(name) for name in names)
        scales = tuple(MomentColumn(name, *schema.bounds(name)) for name in columns)
        unknown = frozenset(axis for axis, name in enumerate(names) if name in learnt)
        return cls(readings, categories, scales, terms, kind, people, unknown)

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of cells of every column that makes groups."""
        return tuple(map(cells_of, self.categories))

    def groupings(self, readings: Sequence[Reading]) -> dict[Family, dict[Axes, float]]:
        """The tables of every family, and how much an error in each of them matters.

        The squared errors of a table's cells, relative to the mean size of its groups, are
        averaged over the groups, and weighted by the statistics that are read off it.
        """
        found: dict[Family, dict[Axes, float]] = {}
        for reading in readings:
            groups = math.prod(self.categories[axis].size for axis in reading.axes)
            for family in reading.families:
                if self._is_public(family, reading.axes):
                    continue
                tables = found.setdefault(family, {})
                square = tables.get(reading.axes, 0.0) ** 2 + reading.asked.weight * groups
                tables[reading.axes] = math.sqrt(square)
        return found

    def _is_public(self, family: Family, axes: Axes) -> bool:
        """Whether it is the number of all records, which everybody knows."""
        return not (family.term or family.recorded or axes or self.terms.hides_n)

    @cached_property
    def portions(self) -> tuple[Portion, ...]:
        """The noisy tables: those that have noise together are one portion.

        Tables with normal noise have one strategy; with pure noise each has its own, and so has
        each by a column whose groups are learnt.
        """
        return self._portions(self.readings)

    def _portions(self, readings: Sequence[Reading]) -> tuple[Portion, ...]:
        found: list[Portion] = []
        for family, groupings in self.groupings(readings).items():
            together = {}
            for axes, weight in groupings.items():
                if self.kind is NoiseKind.NORMAL and self.learnt.isdisjoint(axes):
                    together[axes] = weight
                else:
                    found.append(Portion(family, {axes: weight}))
            if together:
                found.append(Portion(family, together))
        if self.terms.is_secret or self.kind is NoiseKind.PURE:
            return tuple(found)
        return tuple(replace(one, companions=_companions(one, found)) for one in found)

    def _blocks(
        self, portions: Sequence[Portion], strengths: Sequence[Strength]
    ) -> tuple[MomentBlock, ...]:
        """The noisy tables, each of a strength; that of companions decides if there are some."""
        columns = {column.name: column for column in self.scales}
        squared = {
            reading.family(term)
            for reading in self.readings
            for term in reading.asked.terms()
            if len(set(term)) < len(term)
        }
        protections = [
            protection_of(strength, self.terms, self.people, self._names(portion))
            for portion, strength in zip(portions, strengths, strict=True)
        ]
        made = []
        for portion, protection in zip(portions, protections, strict=True):
            if portion.companions:
                (axes,) = portion.groupings
                beside = [protections[place] for place in portion.companions]
                protection = free_count(beside, math.prod(self.cells[axis] for axis in axes))
            made.append(
                MomentBlock.of(
                    portion.family,
                    self.cells,
                    portion.groupings,
                    reach(portion.family, columns),
                    protection,
                    self.kind,
                    squares=portion.family in squared,
                )
            )
        return tuple(made)

    def _names(self, portion: Portion) -> list[set[str]]:
        """The columns of every table."""
        return [{str(self.categories[axis].name) for axis in axes} for axes in portion.groupings]

    def _whole(self, portions: Sequence[Portion]) -> tuple[MomentBlock, ...]:
        """The tables, if each had all of the promise."""
        whole = Strength.of(self.terms.privacy, self.kind)
        return self._blocks(portions, [whole] * len(portions))

    @cached_property
    def unit(self) -> tuple[MomentBlock, ...]:
        """The tables of every portion, if it had all of the promise."""
        return self._whole(self.portions)

    @cached_property
    def errors(self) -> list[float]:
        """The weighted error of every portion, if it had all of the promise.

        That of tables which take no share is added to those beside which they are free.
        """
        return _errors(self.portions, self.unit)

    @cached_property
    def apart(self) -> float:
        """The weighted error of all, if every statistic had noise of its own, at the best shares.

        For normal noise, as a part of what it is together.
        """
        alone = [self._portions([reading]) for reading in self.readings]
        errors = [_errors(portions, self._whole(portions)) for portions in alone]
        return math.fsum(error for each in errors for error in each) / math.fsum(self.errors)

    @property
    def wishes(self) -> list[TargetedError]:
        """The targets of statistics, in terms of the portions that they are read off."""
        wishes = []
        for reading in self.readings:
            asked, known = reading.asked, coefficients(reading.asked, self.scales)
            if asked.wish is None or known is None:
                continue
            parts: dict[int, float] = {}
            for term, coefficient in known.items():
                for place, portion, block in self._read_off(reading, term):
                    scales = block.square_scales if len(set(term)) < len(term) else block.scales
                    added = coefficient * scales[reading.axes] * block.deviation
                    # As in `_errors`: equal parts with each, which is never too little.
                    beside = portion.companions or (place,)
                    for where in beside:
                        alike = added / math.sqrt(len(beside))
                        parts[where] = math.hypot(parts.get(where, 0.0), alike)
            wishes.append(TargetedError(asked.name, asked.wish, self._size(asked), parts))
        return wishes

    def _size(self, asked: Asked) -> float:
        """The number of values at which a target is judged; 1 where that does not matter."""
        if not asked.target_needs_size:
            return 1.0
        size = asked.n_group or (None if asked.by else self.terms.n)
        if size is None:
            raise InvalidInput(
                f"the target of {asked.name!r:.80} needs a number of records at which it must "
                "hold: n_group=2000, say, or a public n."
            )
        return float(size)

    def _read_off(
        self, reading: Reading, term: tuple[str, ...]
    ) -> Iterator[tuple[int, Portion, MomentBlock]]:
        """The portion whose tables hold a term of a statistic, if it has noise."""
        for place, (portion, block) in enumerate(zip(self.portions, self.unit, strict=True)):
            if block.family == reading.family(term) and reading.axes in block.groupings:
                yield place, portion, block

    def mechanism(self, terms: Terms, shares: Sequence[Fraction]) -> CellMoments:
        """The noisy tables, with these shares of the promise of the terms."""
        whole = Strength.of(terms.privacy, self.kind)
        return CellMoments(
            terms=terms,
            statistic="statistics",
            readings=self.readings,
            categories=self.categories,
            scales=self.scales,
            blocks=self._blocks(self.portions, [whole.part(share) for share in shares]),
            block_shares=tuple(shares),
            people=self.people,
            apart=self.apart if self.kind is NoiseKind.NORMAL else None,
        )


def _errors(portions: Sequence[Portion], unit: Sequence[MomentBlock]) -> list[float]:
    both = list(zip(portions, unit, strict=True))
    errors = [0.0 if portion.companions else block.error for portion, block in both]
    for portion, block in both:
        for place in portion.companions:
            alike = block.error / math.sqrt(len(portion.companions))
            errors[place] = math.hypot(errors[place], alike)
    return errors


def _companions(portion: Portion, others: Sequence[Portion]) -> tuple[int, ...]:
    """The sums that a count rides with: all of its records, in groups of one set of columns."""
    if portion.family.term or len(portion.groupings) > 1:
        return ()
    alike = [
        place
        for place, other in enumerate(others)
        if other.family.term and other.family.recorded == portion.family.recorded
    ]
    same = all(others[place].groupings.keys() == portion.groupings.keys() for place in alike)
    return tuple(alike) if same else ()
