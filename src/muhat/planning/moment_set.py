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
    Term,
    cells_of,
    coefficients,
    free_count,
    protection_of,
    rows_in_group,
)
from muhat.planning.query_tables import QueryTables
from muhat.planning.terms import Terms
from muhat.release.statistic_answer import KINDS
from muhat.statistics.asked import Asked
from muhat.statistics.schema import Schema

if TYPE_CHECKING:
    from muhat.data.categories import Categories


ANYWHERE = 1 / 3
"""The mean square, in half-widths, of values that may lie anywhere between their bounds."""


@dataclass(frozen=True)
class Portion:
    """Tables of a family that have noise together, and how much an error in each matters.

    With `companions`, the places of other portions, their noise takes no share of its own: counts
    beside sums of the same records in the same groups, where records are replaced. With `counts`,
    how much an error in each count matters, the counts of the same groups are read off it.
    """

    family: Family
    groupings: Mapping[Axes, float]
    companions: tuple[int, ...] = ()
    counts: tuple[float, ...] | None = None


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
    queries: tuple[QueryTables, ...] = ()

    @classmethod
    def of(
        cls,
        asked: Sequence[Asked],
        schema: Schema,
        terms: Terms,
        kind: NoiseKind,
        people: People | None,
        learnt: Collection[str] = (),
        queries: Sequence[QueryTables] = (),
    ) -> MomentSet:
        """The groups and columns that the statistics are about, of these people's records.

        Tables by columns that are `learnt` have noise of their own, whatever groups there will be.
        Those of `queries` are counts like others.
        """
        asked = [*asked, *(each for one in queries for each in one.counts)]
        chosen = () if people is None else map(str, people.one_row_per)
        names = list(dict.fromkeys([*(name for each in asked for name in each.by), *chosen]))
        columns = dict.fromkeys(name for each in asked for name in each.columns)
        readings = []
        for each in asked:
            recorded = sorted(name for name in each.columns if not schema.is_complete(name))
            public = not (recorded or each.by or terms.hides_n)
            sized = each.kind != "sum" or public
            drawn = sized and rows_in_group(terms, people, each.by) == 1
            axes = tuple(sorted(names.index(name) for name in each.by))
            readings.append(Reading(each, axes, tuple(recorded), _needed(each, drawn)))
        categories = tuple(schema.categories(name) for name in names)
        scales = tuple(MomentColumn(name, *schema.bounds(name)) for name in columns)
        unknown = frozenset(axis for axis, name in enumerate(names) if name in learnt)
        return cls(
            tuple(readings), categories, scales, terms, kind, people, unknown, tuple(queries)
        )

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of cells of every column that makes groups."""
        return tuple(map(cells_of, self.categories))

    def groupings(self, readings: Sequence[Reading]) -> dict[Family, dict[Axes, float]]:
        """The tables of every family, and how much an error in each of them matters.

        The squared errors of a table's cells, relative to what they would be if groups had the
        same size and values lay anywhere between their bounds, are averaged over the groups, and
        weighted by the statistics that are read off it.
        """
        found: dict[Family, dict[Axes, float]] = {}
        for reading in readings:
            groups = math.prod(self.categories[axis].size for axis in reading.axes)
            for family in reading.families:
                if self._is_public(family, reading.axes):
                    continue
                tables = found.setdefault(family, {})
                own = reading.asked.weight * groups / ANYWHERE ** len(family.term)
                tables[reading.axes] = math.sqrt(tables.get(reading.axes, 0.0) ** 2 + own)
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
        if self.kind is NoiseKind.PURE:
            return tuple(self._ridden(found))
        if self.terms.is_secret:
            return tuple(found)
        return tuple(replace(one, companions=_companions(one, found)) for one in found)

    def _ridden(self, portions: Sequence[Portion]) -> list[Portion]:
        """Counts ride with the first sums of the same records in the same groups, if that pays."""
        found = list(portions)
        for count in portions:
            for place, sums in enumerate(found):
                alike = sums.family.recorded == count.family.recorded
                if count.family.term or len(sums.family.term) != 1 or not alike:
                    continue
                if sums.groupings.keys() != count.groupings.keys():
                    continue
                weights = [*count.groupings.values(), *sums.groupings.values()]
                if _pays(*weights, squares=sums.family in self._squared):
                    found[place] = replace(sums, counts=tuple(count.groupings.values()))
                    found.remove(count)
                break
        return found

    @cached_property
    def _squared(self) -> set[Family]:
        """The families whose squares are asked for."""
        places = (reading.place(term) for reading in self.readings for term in reading.terms)
        return {family for family, square in places if square}

    def _blocks(
        self, portions: Sequence[Portion], strengths: Sequence[Strength], *, stairs: bool = False
    ) -> tuple[MomentBlock, ...]:
        """The noisy tables, each of a strength; that of companions decides if there are some.

        With `stairs` counts that nothing else is read off have the least noise.
        """
        columns = {column.name: column for column in self.scales}
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
                    squares=portion.family in self._squared,
                    counts=portion.counts,
                    stairs=stairs and self._is_shown(portion),
                )
            )
        return tuple(made)

    def _is_shown(self, portion: Portion) -> bool:
        """Whether nothing is read off its tables but the counts that they are."""
        return all(
            reading.asked.reading == "count"
            for reading in self.readings
            if portion.family in reading.families and reading.axes in portion.groupings
        )

    def _names(self, portion: Portion) -> list[set[str]]:
        """The columns of every table."""
        return [{str(self.categories[axis].name) for axis in axes} for axes in portion.groupings]

    def _whole(self, portions: Sequence[Portion]) -> tuple[MomentBlock, ...]:
        """The tables, if each had all of the promise.

        Shares are divided by errors in proportion to the promise, which those of stairs are not.
        """
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
        return _errors(self.portions, [block.error for block in self.unit])

    @property
    def shown(self) -> list[float]:
        """The same without cells of values that are none of those declared: nobody sees them."""
        return _errors(self.portions, self._shown(self.unit))

    def _shown(self, blocks: Sequence[MomentBlock]) -> list[float]:
        cells = [each.size for each in self.categories]
        return [block.error_over(cells) for block in blocks]

    @cached_property
    def apart(self) -> float:
        """The weighted error of all, if every statistic had noise of its own, at the best shares.

        For normal noise, as a part of what it is together.
        """
        counts = {id(count) for each in self.queries for count in each.counts}
        single = [[reading] for reading in self.readings if id(reading.asked) not in counts]
        alone = [(some, self._whole(some)) for some in map(self._portions, single)]
        if not self.queries:
            errors = [_errors(some, [block.error for block in whole]) for some, whole in alone]
            return math.fsum(error for each in errors for error in each) / math.fsum(self.errors)
        # Queries have no cells for values that are not declared, so that nothing counts these.
        errors = [_errors(some, self._shown(whole)) for some, whole in alone]
        errors.append([each.alone for each in self.queries])
        return math.fsum(error for each in errors for error in each) / math.fsum(self.shown)

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
                for place, portion, deviation in self._read_off(reading, term):
                    added = coefficient * deviation
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
    ) -> Iterator[tuple[int, Portion, float]]:
        """The portion whose tables hold a term of a statistic, if it has noise, and how much."""
        for place, (portion, block) in enumerate(zip(self.portions, self.unit, strict=True)):
            what = block.held.get(reading.place(term))
            if what is not None and reading.axes in block.groupings:
                yield place, portion, block.deviation(reading.axes, what)

    def mechanism(self, terms: Terms, shares: Sequence[Fraction]) -> CellMoments:
        """The noisy tables, with these shares of the promise of the terms."""
        whole = Strength.of(terms.privacy, self.kind)
        return CellMoments(
            terms=terms,
            statistic="statistics",
            readings=self.readings,
            categories=self.categories,
            scales=self.scales,
            blocks=self._blocks(
                self.portions, [whole.part(share) for share in shares], stairs=True
            ),
            block_shares=tuple(shares),
            people=self.people,
            queries=self.queries,
            apart=self.apart if self.kind is NoiseKind.NORMAL and self.portions else None,
        )


def _needed(asked: Asked, drawn: bool) -> tuple[Term, ...]:
    """What a statistic is read off: squares only if it is made of them, or is about a draw."""
    squares = KINDS[asked.reading].second or (asked.reading in ("sum", "mean") and drawn)
    return tuple(term for term in asked.terms() if squares or len(set(term)) == len(term))


def _pays(count: float, sums: float, *, squares: bool) -> bool:
    """Whether one noise for the count and the sums of a column errs less than two, at best shares.

    Read off two tables, both have twice the variance of noise of their own, but all of the promise;
    off three, the count has three times that.
    """
    apart = math.pow(math.pow(count, 2 / 3) + math.pow(sums, 2 / 3), 3)
    return (3 if squares else 2) * count**2 + 2 * sums**2 < apart


def _errors(portions: Sequence[Portion], unit: Sequence[float]) -> list[float]:
    """The errors of portions, those of free ones added to those beside which they are."""
    both = list(zip(portions, unit, strict=True))
    errors = [0.0 if portion.companions else error for portion, error in both]
    for portion, error in both:
        for place in portion.companions:
            alike = error / math.sqrt(len(portion.companions))
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
