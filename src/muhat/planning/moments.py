"""Statistics that are read off noisy counts, sums, squares and products by groups, all in one pass.

Counts, sums, means, variances, covariances, correlations and regressions of any groups are linear
in the same cells or follow from what is. All tables of one kind (the counts, the sums of one
column) have one strategy together, and the kinds share the promise so that the weighted sum of
squared relative errors is least: the best noise for all of them at once has no covariance between
kinds (docs/proofs/moment-tables.md).
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat import bounds
from muhat._arrays import Floats
from muhat.data.moments import Family, MomentColumn, MomentSource, step
from muhat.data.units import People
from muhat.errors import DataChanged
from muhat.mechanisms.queries.moment_block import Axes, MomentBlock, floor_of
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.noise.stairs import Stairs
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.planned import PlannedStatistic
from muhat.planning.query_tables import QueryTables
from muhat.planning.run import counted_terms
from muhat.planning.terms import Terms
from muhat.privacy import Neighbors
from muhat.release.answer_noise import AnswerNoise
from muhat.release.certificate import Certificate
from muhat.release.display import certificate_lines
from muhat.release.moments import NoisyMoments, NoisySum, NoisyTable
from muhat.release.query_answer import QueryAnswer
from muhat.release.spent import Spent
from muhat.release.statistic_answer import StatisticAnswer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data.categories import Categories
    from muhat.data.shared import Reading as PassReading
    from muhat.statistics.asked import Asked

Term = tuple[str, ...]

COUNTS = Family((), ())
"""The number of all records."""

LEAST_GAIN = 1.01
"""What is won by planning together is told from here on."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A statistic, the axes of its groups, the columns that must be recorded, and its terms.

    Axes ascend, whatever order the statistic has its columns in, so that one table serves all.
    """

    asked: Asked
    axes: Axes
    recorded: Term
    terms: tuple[Term, ...]

    def family(self, term: Term) -> Family:
        """Where a term is summed: squares with their column."""
        return Family(self.recorded, tuple(dict.fromkeys(term)))

    @property
    def families(self) -> tuple[Family, ...]:
        """All that it reads."""
        return tuple(dict.fromkeys(map(self.family, self.terms)))

    def place(self, term: Term) -> tuple[Family, bool]:
        """Where a term is found: its family, and whether it is a square."""
        return self.family(term), len(set(term)) < len(term)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellMoments(Mechanism):
    """All statistics of a set that follow from sums by groups.

    `blocks` are the noisy tables, and `block_shares`, their parts of this mechanism's
    promise; a count without a share rides free (`free_count`). Where the number of records is
    public, that of all of them needs no noise. `people` says whose rows they are. `queries` are
    answered from counts that are among the readings. `apart` is how much larger errors would be if
    every statistic had noise of its own.
    """

    readings: tuple[Reading, ...]
    categories: tuple[Categories, ...]
    scales: tuple[MomentColumn, ...]
    blocks: tuple[MomentBlock, ...]
    block_shares: tuple[Fraction, ...]
    people: People | None = None
    queries: tuple[QueryTables, ...] = ()
    apart: float | None = None

    def keeps(self, terms: Terms) -> bool:
        """Whether the blocks were made for shares of the promise that are no more than all."""
        made = all(
            block.protection == self._protection(terms, block, share)
            for block, share in zip(self.blocks, self.block_shares, strict=True)
        )
        return made and sum(self.block_shares) <= 1

    def _protection(self, terms: Terms, block: MomentBlock, share: Fraction) -> Protection | None:
        """What a block must guarantee; without a share, what the sums beside a count leave it."""
        if share:
            strength = Strength.of(terms.privacy, block.kind).part(share)
            return protection_of(strength, terms, self.people, self._names(block))
        family, replaced = block.family, not terms.is_secret
        beside = [
            other
            for other in self.blocks
            if other.family.term and other.family.recorded == family.recorded
        ]
        alone = all(other.groupings == block.groupings for other in beside)
        if family.term or not (replaced and beside and alone and len(block.groupings) == 1):
            return None
        groups = math.prod(block.cells[axis] for axis in block.groupings[0])
        return free_count([other.protection for other in beside], groups)

    def _names(self, block: MomentBlock) -> list[set[str]]:
        """The columns of every table."""
        return [set(self._grouped_by(axes)) for axes in block.groupings]

    @property
    def name(self) -> str:
        """The noise, and that all tables are one release."""
        return _named(self.blocks)

    @property
    def kind(self) -> NoiseKind:
        """In what its privacy is counted."""
        return self.blocks[0].kind

    @property
    def chosen(self) -> str:
        """What was chosen before anybody looked at the data."""
        return "the schema and the statistics"

    @cached_property
    def _deviations(self) -> dict[tuple[tuple[Family, bool], Axes], float]:
        """The standard deviation of every table's noise, in records of full weight."""
        return {
            (place, axes): block.deviation(axes, what)
            for block in self.blocks
            for place, what in block.held.items()
            for axes in block.groupings
        }

    def deviation(self, reading: Reading, term: Term) -> float:
        """The standard deviation of the noise on each cell of what a statistic reads."""
        return self._deviations.get((reading.place(term), reading.axes), 0.0)

    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """What is known of every statistic beforehand."""
        own = tuple(self._planned(reading) for reading in self._own)
        return (*own, *(self._planned_queries(each) for each in self.queries))

    @cached_property
    def _own(self) -> tuple[Reading, ...]:
        """The readings that are statistics themselves."""
        of_queries = {id(count) for each in self.queries for count in each.counts}
        return tuple(each for each in self.readings if id(each.asked) not in of_queries)

    def _planned_queries(self, queries: QueryTables) -> PlannedStatistic:
        tables = [self._planned(self._reading(count)) for count in queries.counts]
        return replace(
            tables[0],
            groups=1,
            share=max(each.share for each in tables),
            error=max(each.error or 0.0 for each in tables),
            certificate=self._of_queries[queries.asked.name][1],
        )

    def _reading(self, count: Asked) -> Reading:
        return next(each for each in self.readings if each.asked is count)

    @cached_property
    def _of_queries(self) -> dict[str, tuple[AnswerNoise, Certificate]]:
        """The noise on the answers to queries, and how good they are."""
        found = {}
        for queries in self.queries:
            block, share = next(
                both
                for both in zip(self.blocks, self.block_shares, strict=True)
                if both[0].family == COUNTS
            )
            tables = [self._reading(count) for count in queries.counts]
            cells = [(each.axes, self._cells(each.asked.by, each.axes)) for each in tables]
            noise = queries.noise(block, cells)
            # A count without a share has what others leave it of all of them.
            promise = self.terms.part(share or sum(self.block_shares, Fraction(0))).privacy
            found[queries.asked.name] = noise, queries.certificate(noise, self.terms, promise)
        return found

    def _planned(self, reading: Reading) -> PlannedStatistic:
        read = {reading.place(term) for term in reading.terms}
        both = [
            (block, part)
            for block, part in zip(self.blocks, self.block_shares, strict=True)
            if not read.isdisjoint(block.held) and reading.axes in block.groupings
        ]
        return PlannedStatistic(
            name=reading.asked.name,
            groups=math.prod(self.categories[axis].size for axis in reading.axes),
            share=sum(float(part) for _, part in both),
            mechanism=_named([block for block, _ in both]),
            error=self._error(reading),
            of_group=reading.asked.target_needs_size,
        )

    def spent(self) -> tuple[Spent, ...]:
        """The noise of every block."""
        both = zip(self.blocks, self.block_shares, strict=True)
        return tuple(Spent(self._noise(block), share) for block, share in both)

    def _noise(self, block: MomentBlock) -> str:
        """What a block has noise on, in words."""
        term, recorded = block.family.term, block.family.recorded
        said = ["numbers of records"] * (not term or block.counts is not None)
        if term:
            said.append(f"{'products' if len(term) > 1 else 'sums'} of {' and '.join(term)}")
        elif recorded:
            said[0] += f" with {' and '.join(recorded)}"
        each = "" if self.people is None or self.people.per == "row" else " per unit"
        by = [" and ".join(map(str, names)) for names in map(self._grouped_by, block.groupings)]
        grouped = ", ".join(f"by {names}" if names else "in all" for names in by)
        return f"{' and '.join(said)}{each} {grouped}"

    def _grouped_by(self, axes: Axes) -> list[str]:
        return [str(self.categories[axis].name) for axis in axes]

    def _error(self, reading: Reading) -> float | None:
        """The standard error of a statistic; of one that is divided by a size, times that size."""
        known = coefficients(reading.asked, self.scales)
        if known is None:
            return None
        return math.hypot(*(each * self.deviation(reading, term) for term, each in known.items()))

    @cached_property
    def certificate(self) -> Certificate | None:
        """Of all tables together, weighted, beside what is possible for complete records.

        Where records are replaced it is about the sums of columns alone.
        """
        if not self.blocks:
            return None
        if self.terms.is_secret:
            error, floors, _ = self._error_and_floors(self.blocks)
            rows, floor = self._farthest(floors)
            found = bounds.sum_bounds(floor, privacy=self.privacy, contributions=rows)
            metric = "weighted root mean square error of all counts and sums together"
            return Certificate(metric, 2.0, error, "exact", found, error)
        sums = [block for block in self.blocks if len(block.family.term) == 1]
        if not sums or self.n is None:
            return None
        error, floors, pairs = self._error_and_floors(sums)
        found = bounds.mean_bounds(
            2 * math.fsum(floors.values()) * self.n,
            n=self.n,
            privacy=self.privacy,
            contact_pairs=pairs,
            contributions=records_of(self.terms, self.people),
        )
        metric = "weighted root mean square error of all sums together"
        return Certificate(metric, 2.0, error, "exact", found, error)

    def _farthest(self, floors: Mapping[Term, float]) -> tuple[int, float]:
        """How many records of a person in one cell, times which floor, bound the error.

        Where no two rows of a person have one value of a column with Y cells, j of them with
        signs of their own move signed sums by √j of one row, counts by √(j(Y − j)/(Y − 1)) of it.
        """
        rows, total = records_of(self.terms, self.people), math.fsum(floors.values())
        apart = {*map(str, self.people.one_row_per)} if self.people is not None else set()
        if rows == 1 or not apart:
            return rows, total
        cells = math.prod(cells_of(each) for each in self.categories if each.name in apart)
        counts = floors.get((), 0.0)
        return 1, max(
            math.sqrt(j) * (total - counts + counts * math.sqrt((cells - j) / max(cells - 1, 1)))
            for j in range(1, max(min(rows, cells - 1), 1) + 1)
        )

    def _error_and_floors(
        self, blocks: Sequence[MomentBlock]
    ) -> tuple[float, dict[Term, float], int]:
        """The weighted error of tables, floors of it at μ = 1, and how many records that takes.

        Complete records at the corners of the box, all signs alike and all groups alike, have no
        correlation between different terms, so that the floors of the terms add up. Tables of one
        term for different sets of recorded columns are the same for complete records.
        """
        merged: dict[Term, dict[Axes, float]] = defaultdict(dict)
        for block in blocks:
            own = merged[block.family.term]
            for axes, weight in zip(block.groupings, block.weights, strict=True):
                own[axes] = math.hypot(own.get(axes, 0.0), weight)
        cells = blocks[0].cells
        floors = {term: floor_of(cells, groupings) for term, groupings in merged.items()}
        error = math.sqrt(math.fsum(block.error**2 for block in blocks))
        columns = {name for block in blocks for name in block.family.term}
        return error, floors, math.prod(cells) * 2 ** len(columns)

    def errors(self) -> list[tuple[str, float | None]]:
        """The standard error of every statistic; None where the data decide."""
        return [(each.name, each.standard_error) for each in self.statistics()]

    def decisive(self) -> dict[str, Any]:
        """The statistics, the columns, the noise of all tables."""
        return {
            "statistics": [reading.asked.to_dict() for reading in self.readings],
            "categories": [each.to_dict() for each in self.categories],
            "columns": [each.to_dict() for each in self.scales],
            "people": None if self.people is None else dataclasses.asdict(self.people),
            "blocks": [block.to_dict() for block in self.blocks],
            "shares": [str(share) for share in self.block_shares],
            **(
                {"queries": [each.asked.to_dict() for each in self.queries]} if self.queries else {}
            ),
        }

    @property
    def title(self) -> str:
        """What is planned."""
        asked = [*(each.asked for each in self._own), *(each.asked for each in self.queries)]
        return ", ".join(each.name for each in asked)

    def facts(self) -> Rows:
        """The noise."""
        return [["mechanism", self.name]]

    def tables(self) -> list[Rows]:
        """A line a statistic."""
        return [PlannedStatistic.rows(self.statistics())]

    def notes(self) -> list[str]:
        """How good the tables are together."""
        lines = [] if self.certificate is None else certificate_lines(self.certificate)
        return [*lines, *self._gain()]

    def set_notes(self, name: str) -> list[str]:
        """The same, in a line each."""
        certified = "counts and sums together" if self.terms.is_secret else "sums together"
        alone = self.title if len(self.readings) == 1 else certified
        return [*super().set_notes(alone), *self._gain()]

    def _gain(self) -> list[str]:
        if self.apart is None or self.apart < LEAST_GAIN:
            return []
        saved = f"{100 * (1 - 1 / self.apart):.0f} %"
        return [f"Planned together, they have {saved} less error than one by one at best shares."]

    def figure(self) -> Figure:
        """The standard error of every statistic against the size of a group."""
        from muhat.planning.set_picture import set_figure

        return set_figure(self.statistics())

    def open(self, data: Any, columns: Columns) -> MomentSource:
        """The data as records in groups, of people if rows have a unit."""
        from muhat.data.moments import open_moments

        return open_moments(data, self.scales, self.categories, people=self.people)

    def counted(self, source: MomentSource) -> CellMoments:
        """The same for these records; a public n is compared, or counted."""
        return replace(self, terms=counted_terms(self.terms, source, "set of statistics"))

    def note(self, source: MomentSource) -> str:
        """The statistics."""
        return self.title

    def read(self, source: MomentSource) -> tuple[StatisticAnswer | QueryAnswer, ...]:
        """Every statistic, read off the tables."""
        return self.answers(source)

    def reading(
        self, source: MomentSource
    ) -> PassReading[tuple[StatisticAnswer | QueryAnswer, ...]]:
        """Every statistic, read off the tables."""
        tables = yield from self._noisy(source)
        own = tuple(self._answer(reading, tables) for reading in self._own)
        counts = tables[COUNTS, False] if self.queries else {}
        return (*own, *(self._query_answer(each, counts) for each in self.queries))

    def _query_answer(self, queries: QueryTables, tables: Mapping[Axes, NoisySum]) -> QueryAnswer:
        noise, certificate = self._of_queries[queries.asked.name]
        values = []
        for reading in map(self._reading, queries.counts):
            (table,) = tables[reading.axes]
            values.append(table.values[self.in_order(reading.asked.by, reading.axes)])
        value = queries.in_order(values)
        recorded = queries.recorded(noise)
        return QueryAnswer(
            value=value,
            workload=queries.queries.workload,
            attributes=queries.queries.attributes,
            missing=queries.rules,
            recorded=None if recorded is None else float(recorded[0] @ value),
            recorded_noise=None if recorded is None else recorded[1],
            noise=noise,
            certificate=certificate,
            **self.basis(),
        )

    def _noisy(
        self, source: MomentSource
    ) -> PassReading[dict[tuple[Family, bool], dict[Axes, NoisySum]]]:
        """Noisy sums, by family, and whether they are of squares; one pass."""
        wanted: dict[Family, tuple[Axes, ...]] = {}
        for block in self.blocks:
            for family, _ in block.held:
                own = wanted.get(family, ())
                wanted[family] = (*own, *(axes for axes in block.groupings if axes not in own))
        squares = {block.family for block in self.blocks if block.squares}
        exact = yield from source.reading(wanted, squares, undeclared=True)
        found: dict[tuple[Family, bool], dict[Axes, NoisySum]] = defaultdict(dict)
        for block in self.blocks:
            noisy = block.noisy({what: exact[place] for place, what in block.held.items()})
            full, law = self._full(block), block.recipe.law
            stairs = law if isinstance(law, Stairs) else None
            for axes in block.groupings:
                scale = block.scales[axes] * full
                tables = [
                    NoisyTable(self._declared(axes, each[axes]) * full, scale, law.name, stairs)
                    for each in noisy
                ]
                for place, what in block.held.items():
                    parts = zip(tables, block.strands, strict=True)
                    found[place][axes] = {
                        table: strand.read[what] for table, strand in parts if strand.read[what]
                    }
        return found

    def _declared(self, axes: Axes, values: Floats) -> Floats:
        """The cells of a noisy table, flat, that stand for groups: not those of other values."""
        return values[self._groups(axes)]

    def _groups(self, axes: Axes) -> NDArray[np.intp]:
        """Which cells of a flat table stand for groups."""
        groups = [self.categories[axis] for axis in axes]
        table = np.arange(math.prod(map(cells_of, groups))).reshape([*map(cells_of, groups)])
        return table[tuple(slice(each.size) for each in groups)].reshape(-1)

    def _cells(self, by: Sequence[str], axes: Axes) -> NDArray[np.intp]:
        """The same, in the order of columns."""
        return self._groups(axes)[self.in_order(by, axes)]

    def _full(self, block: MomentBlock) -> float:
        """What a record of full weight adds: 1, but for the rounding of products."""
        columns = {column.name: column for column in self.scales}
        return float(block.reach * step(block.family, columns))

    def _answer(
        self,
        reading: Reading,
        tables: Mapping[tuple[Family, bool], Mapping[Axes, NoisySum]],
    ) -> StatisticAnswer:
        asked, axes = reading.asked, reading.axes
        found = {}
        for term in reading.terms:
            noisy = tables.get(reading.place(term), {}).get(axes)
            found[term] = {self._all: 1.0} if noisy is None else noisy
        own = [column for column in self.scales if column.name in asked.columns]
        moments = NoisyMoments.of(
            found,
            {column.name: column.center for column in own},
            {column.name: column.half_width for column in own},
        )
        groups = [self._by[name] for name in asked.by]
        return StatisticAnswer(
            kind=asked.reading,
            name=asked.name,
            columns=asked.columns,
            by=tuple(str(one.name) for one in groups),
            labels=tuple(one.labels for one in groups),
            moments=moments.picked(self.in_order(asked.by, axes)),
            missing="drop" if reading.recorded else "none",
            rows_in_group=rows_in_group(self.terms, self.people, asked.by),
            complete_by=tuple(str(one.name) for one in groups if one.keeps_every_record),
            **self.basis(),
        )

    @cached_property
    def _by(self) -> dict[str, Categories]:
        return {str(each.name): each for each in self.categories}

    def in_order(self, by: Sequence[str], axes: Axes) -> NDArray[np.intp]:
        """Where in a table over axes the groups of columns are, in the order of these."""
        sizes = [self.categories[axis].size for axis in axes]
        names = [str(self.categories[axis].name) for axis in axes]
        places = np.arange(math.prod(sizes)).reshape(sizes)
        return places.transpose([names.index(name) for name in by]).reshape(-1)

    @property
    def _all(self) -> NoisyTable:
        """The number of all records, which is public."""
        if self.n is None:
            raise DataChanged("the number of records is not known.")
        return NoisyTable(np.array([float(self.n)]), 0.0, "none")


def _named(blocks: Sequence[MomentBlock]) -> str:
    """The noise of tables: of the numbers of records alone it may be another than of sums."""
    laws = dict.fromkeys(block.recipe.law.name for block in blocks)
    return f"{' and '.join(laws)} noise on sums by groups" if laws else "exact"


def records_of(terms: Terms, people: People | None) -> int:
    """How many records a person has at most: one, where its rows are made one."""
    return 1 if people is not None and people.per != "row" else terms.contributions


def rows_in_group(terms: Terms, people: People | None, by: Sequence[str]) -> int:
    """How many records a person has at most in one group of these columns."""
    if people is not None and people.one_row_per and set(people.one_row_per) <= set(by):
        return 1
    return records_of(terms, people)


def cells_of(categories: Categories) -> int:
    """The cells of a column of groups: one more where values may be none of those declared.

    Tables over fewer columns then are sums of tables over more, whatever values there are.
    """
    return categories.size + (not categories.keeps_every_record)


def protection_of(
    strength: Strength, terms: Terms, people: People | None, tables: Sequence[set[str]]
) -> Protection:
    """What tables over these columns must guarantee, for a share of the promise.

    A person has several records. If no two of them lie in one cell, k of them move the tables by √k
    in ℓ₂, as one record does by 1: so it is where at most one row of a person enters for every
    value of a column that is among those of the only table.
    """
    rows = records_of(terms, people)
    apart = people is not None and people.per == "row" and {*map(str, people.one_row_per)}
    if apart and strength.kind is NoiseKind.NORMAL and len(tables) == 1 and apart <= tables[0]:
        return Protection(strength, terms.neighbors, rows).apart(strength.kind)
    return Protection(strength, terms.neighbors, rows)


def free_count(sums: Sequence[Protection], groups: int) -> Protection:
    """What noise the count of groups may have beside sums of the same records, for nothing.

    A person's rows, n of them in a cell before and n' after, move the sums there by at most n + n'
    and the count by n − n', and the sums' strengths are for 4k²·Σa². With a_0² = Σa² all of it is
    at most Σa²·Σ 2(n² + n'²) ≤ 4k²·Σa². Of a single cell a_0² = 3Σa² is possible, since
    (n + n')² + 3(n − n')² = 4(n² + n'² − nn') ≤ 4k². The cells of other sets of groups have rows of
    their own, so there must be one set.
    """
    squared = sum((each.strength_squared(NoiseKind.NORMAL) for each in sums), Fraction(0)) / 4
    allowed = squared if groups > 1 else 3 * squared
    rows = sums[0].contributions
    return Protection(Strength(NoiseKind.NORMAL, allowed), Neighbors.ADD_REMOVE, rows)


def coefficients(asked: Asked, scales: Sequence[MomentColumn]) -> dict[Term, float] | None:
    """By what the noise on each term is multiplied in a statistic, at the mean where it is largest.

    Of a statistic that is divided by the number of values of a group, times that number; None
    where more than noise and bounds decides.
    """
    columns = {column.name: column for column in scales}
    if asked.reading == "count":
        return {(): 1.0}
    first = columns[asked.columns[0]]
    name, half = first.name, first.half_width
    if asked.reading == "weighted sum":
        weight = columns[asked.columns[1]]
        return {
            tuple(sorted(asked.columns)): half * weight.half_width,
            (name,): half * abs(weight.center),
            (weight.name,): abs(first.center) * weight.half_width,
            (): abs(first.center * weight.center),
        }
    if asked.reading == "sum":
        return {(name,): half, (): abs(first.center)}
    if asked.reading == "mean":
        return {(name,): half, (): half}
    if asked.kind == "variance":
        # s² = 1 − lack/N − (S/N)² with |S| ≤ N: its derivatives by lack, S and N.
        return {(name, name): half**2, (name,): 2 * half**2, (): half**2}
    if asked.kind == "covariance" and len(asked.columns) == 2:
        both = half * columns[asked.columns[1]].half_width
        return dict.fromkeys(
            [tuple(sorted(asked.columns)), *((c,) for c in asked.columns), ()], both
        )
    return None
