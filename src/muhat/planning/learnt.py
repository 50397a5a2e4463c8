"""A set of statistics of which something is learnt first: groups that nobody knows, rows a person.

Everything is one promise. Under (ε, δ) a tenth of both finds the values that enough people have,
under approximate zCDP a tenth of ρ and all of δ (`mechanisms/learning/selection.py`); of what is
left a twentieth finds how many rows most people have, by a noisy search, and the rest is what the
statistics are planned for. Shares among them are chosen as if a column had ten groups, and its
tables have noise of their own, so that errors are known before any group is. Proof:
docs/proofs/selection.md, docs/proofs/units.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat.data.grids import UniformGrid
from muhat.data.units import People
from muhat.errors import DataChanged, Impossible, InvalidInput
from muhat.mechanisms.learning.selection import Rule, selection_rule
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import independent_law
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.plan import Plan
from muhat.planning.planned import PlannedStatistic
from muhat.planning.statistic_set import SetOfStatistics
from muhat.planning.terms import Terms
from muhat.privacy import Privacy, adding_up
from muhat.release.answer import Answer
from muhat.release.display import significant
from muhat.release.no_groups import NoGroups
from muhat.release.spent import Spent
from muhat.statistics.asked import Asked, Queries
from muhat.statistics.declared import LEARN, Labels
from muhat.statistics.schema import Schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data.base import Source
    from muhat.data.categories import Label
    from muhat.data.shared import Reading
    from muhat.data.values import ValueSource

SELECTION_SHARE = Fraction(1, 10)
"""What finding the groups takes of ε and of δ, or of ρ, all columns together."""

ROWS_SHARE = Fraction(1, 20)
"""What finding the number of rows takes of the rest."""

LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024)
"""How many rows of a person may enter if that is learnt; fewer, if there is no noise for so many.
Four comparisons choose among them."""

ROWS_QUANTILE = Fraction(19, 20)
"""So many people are to have no more rows than enter."""

CONFIDENCE = 0.95
"""How sure it is that no more rows enter than that many people have."""

USUAL_GROUPS = 10
"""As many groups of a column are thought of where shares are chosen."""

SHOWN_ROWS = (1, 2, 4, 8)
SHOWN_SIZE = 1_000


@dataclass(frozen=True, eq=False)
class Opened:
    """Data from which something is learnt first; what it is decides how they are opened again."""

    data: Any
    columns: Columns
    rows: Source | None
    values: Mapping[str, ValueSource]
    plan: Plan
    sources: list[Any]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LearntFirst(Mechanism):
    """Statistics of groups that are learnt, of as many rows of a person as is learnt.

    `learnt` are the columns whose groups nobody knows, `ladder` the numbers of rows of a
    person that one is chosen from. All noise follows from the terms.
    """

    asked: tuple[Asked, ...]
    schema: Schema
    learnt: tuple[str, ...]
    ladder: tuple[int, ...]

    def keeps(self, terms: Terms) -> bool:
        """Whether something is promised that groups can be found for."""
        return terms.privacy.leak > 0 or not self.learnt

    @property
    def learns_rows(self) -> bool:
        """Whether the number of rows of a person is."""
        return self.schema.max_rows == LEARN

    # What every step has of the promise.

    @property
    def _left(self) -> Privacy:
        """What finding the groups leaves."""
        return self.privacy.selecting(SELECTION_SHARE)[1] if self.learnt else self.privacy

    @property
    def kind(self) -> NoiseKind:
        """In what the privacy of the rest is counted."""
        return NoiseKind.named_by(self._left)

    @property
    def _shared(self) -> Privacy:
        """What the number of rows and the statistics share."""
        return adding_up(self._left, pure=self.kind is NoiseKind.PURE)

    @property
    def _rest(self) -> Privacy:
        """What the statistics have."""
        return self._shared.part(1 - ROWS_SHARE) if self.learns_rows else self._left

    @property
    def share(self) -> float:
        """What the statistics have of the whole."""
        return float(self.spent()[-1].share)

    @cached_property
    def search(self) -> NoisySearch | None:
        """How the number of rows of a person is found: one record a person."""
        if not self.learns_rows:
            return None
        return NoisySearch(
            len(self.ladder),
            independent_law(self.kind),
            Strength.of(self._shared, self.kind).part(ROWS_SHARE).squared,
            quantile=ROWS_QUANTILE,
            replaced=not self.terms.is_secret,
        )

    @property
    def supposed(self) -> int:
        """How many people with one row are thought to be there, too.

        As many as make up for the noise of the search: what is found is seldom more than the
        quantile, and 1 if there are too few people to tell.
        """
        assert self.search is not None
        return math.ceil(self.search.rank_error(CONFIDENCE) / (1 - ROWS_QUANTILE))

    def rule(self, rows: int) -> Rule:
        """How the values of each column are kept if so many rows of a person enter."""
        found, _ = self.privacy.selecting(SELECTION_SHARE)
        share = found.part(Fraction(1, len(self.learnt)))
        return selection_rule(share, rows, replaced=not self.terms.is_secret)

    # What is planned.

    def needed(self) -> float:
        """What the targets take of what the statistics have; 1 is all of it."""
        return self._set(self.ladder[0], self._usual).needed()

    @property
    def _usual(self) -> dict[str, Labels]:
        """As many groups of every column as shares are chosen for."""
        return dict.fromkeys(self.learnt, Labels(tuple(range(USUAL_GROUPS))))

    def planned_for(self, rows: int, groups: Mapping[str, Labels] | None = None) -> Plan:
        """The plan of the statistics for these groups, or for any, and so many rows a person.

        Shares are those of a usual number of groups, whichever there are.
        """
        shares = self._set(rows, self._usual).shares()
        return self._set(rows, self._usual if groups is None else groups).plan(shares)

    def _set(self, rows: int, groups: Mapping[str, Labels]) -> SetOfStatistics:
        columns = {**self.schema.columns, **groups}
        schema = Schema(
            columns,
            unit=self.schema.unit,
            max_rows=None if self.schema.unit is None else rows,
            complete=self.schema.complete,
            one_row_per=self.schema.one_row_per,
        )
        terms = replace(self.terms, privacy=self._rest, contributions=rows)
        return SetOfStatistics.with_noise(self.kind, self.asked, schema, terms, self.learnt)

    @cached_property
    def _shown(self) -> dict[int, tuple[PlannedStatistic, ...]]:
        """Every statistic, for some numbers of rows if they are learnt."""
        numbers: Sequence[int] = (self.contributions,)
        if self.learns_rows:
            numbers = [rows for rows in SHOWN_ROWS if rows in self.ladder]
        return {rows: _statistics(self.planned_for(rows)) for rows in numbers}

    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """What is known of every statistic beforehand."""
        by = {each.name: each.by for each in self.asked}
        found = []
        for each in zip(*self._shown.values(), strict=True):
            first, alike = each[0], len({one.error for one in each}) == 1
            unknown = not set(by[first.name]).isdisjoint(self.learnt)
            found.append(
                replace(
                    first,
                    groups=None if unknown else first.groups,
                    share=first.share * self.share,
                    error=first.error if alike else None,
                    certificate=None,
                )
            )
        return tuple(found)

    def spent(self) -> tuple[Spent, ...]:
        """What is learnt, and the statistics, whose own shares what is learnt decides."""
        left, found = Fraction(1), []
        if self.learnt:
            found.append(Spent(f"groups of {', '.join(self.learnt)}", SELECTION_SHARE))
            left -= SELECTION_SHARE
        if self.learns_rows:
            found.append(Spent("rows of a person", left * ROWS_SHARE))
            left *= 1 - ROWS_SHARE
        return (*found, Spent("all statistics", left))

    def errors(self) -> list[tuple[str, float | None]]:
        """The standard error of every statistic; None where what is learnt decides."""
        return [(each.name, each.standard_error) for each in self.statistics()]

    def decisive(self) -> dict[str, Any]:
        """The statistics, the schema, and how the rest is learnt."""
        return {
            "statistics": [each.to_dict() for each in self.asked],
            "schema": self.schema.to_dict(),
            **self.details(),
        }

    def details(self) -> dict[str, Any]:
        """What is learnt, and how."""
        known = bool(self.learnt) and not self.learns_rows
        return {
            "learnt": list(self.learnt),
            "selection": self.rule(self.contributions).to_dict() if known else None,
            "selection_share": str(SELECTION_SHARE if self.learnt else 0),
            "rows": None if self.search is None else self.search.to_dict(),
            "ladder": list(self.ladder),
            "usual_groups": USUAL_GROUPS,
            "rows_share": str(ROWS_SHARE if self.learns_rows else 0),
        }

    # What is said of it.

    @property
    def name(self) -> str:
        """The steps."""
        steps = ["a noisy search for the rows of a person"] * self.learns_rows
        steps += ["a selection of values"] * bool(self.learnt)
        return ", then ".join([*steps, f"{independent_law(self.kind).name} noise"])

    @property
    def chosen(self) -> str:
        return "the schema and the statistics"

    @property
    def assumptions(self) -> tuple[str, ...]:
        if not self.learns_rows:
            return (*super().assumptions, *self._selected())
        person = (
            f"as many rows of each {self.terms.unit} enter as most people have, chosen by a "
            "secret key that nobody else's rows have a part in"
        )
        blind = f"{self.chosen} were chosen without looking at the data"
        return (*self.terms.number(), person, blind, *self._selected(), *self.said)

    def _selected(self) -> tuple[str, ...]:
        return tuple(
            f"values of {name} that too few people have are left out" for name in self.learnt
        )

    @property
    def title(self) -> str:
        """What is planned."""
        return ", ".join(each.name for each in self.asked)

    def facts(self) -> Rows:
        """What is learnt."""
        return [["mechanism", self.name]]

    def tables(self) -> list[Rows]:
        """A line a statistic."""
        return [PlannedStatistic.rows(self.statistics())]

    def notes(self) -> list[str]:
        """What is learnt, for what part of the promise, and how good the rest is."""
        return [*self._rows_notes(), *self._selection_notes(), *self._certified()]

    def _certified(self) -> list[str]:
        """How good the counts and sums are, given what is learnt."""
        if self.learns_rows:
            return []
        number = f"With {USUAL_GROUPS} groups of each learnt column, for what the selection leaves"
        return _closeness(self.planned_for(self.contributions), number)

    def set_notes(self, name: str) -> list[str]:
        """The same."""
        return self.notes()

    def _rows_notes(self) -> list[str]:
        if self.search is None:
            return []
        left = " of what is left after the selection" if self.learnt else ""
        lines = [
            f"{_percent(ROWS_SHARE)} of the promise{left} finds max_rows, between 1 and "
            f"{self.ladder[-1]:,}, so that {_percent(ROWS_QUANTILE)} of people have no more rows, "
            f"or up to {2 * self.search.rank_error(CONFIDENCE) + 1:,} people fewer, with "
            f"probability {_percent(Fraction(str(CONFIDENCE)))}. It is released.",
        ]
        numbers = ", ".join(map(str, self._shown))
        for each in zip(*self._shown.values(), strict=True):
            if len({one.error for one in each}) > 1:
                size = f", n = {SHOWN_SIZE:,}" if each[0].of_group else ""
                ranks = " ranks" * each[0].in_ranks
                listed = ", ".join(
                    significant(one.standard_error_at(SHOWN_SIZE) or 0.0) for one in each
                )
                lines.append(f"For max_rows = {numbers}: {each[0].name}{size} ± {listed}{ranks}.")
        return lines

    def _selection_notes(self) -> list[str]:
        if not self.learnt:
            return []
        columns = ", ".join(self.learnt)
        halves = ", ".join(f"{self.rule(rows).half:,}" for rows in self._shown)
        rows = ", ".join(map(str, self._shown))
        given = f" (for max_rows = {rows})" if self.learns_rows else ""
        return [
            f"{_percent(SELECTION_SHARE)} of {self._taken} finds the values of {columns}: "
            f"one that {halves} people have{given} is kept half of the time, one that few have "
            "almost never. Those that too few people have are left out.",
            f"Shares are chosen as if a column had {USUAL_GROUPS} groups; errors hold for any "
            "number of them.",
        ]

    @property
    def _taken(self) -> str:
        """What the selection takes a share of."""
        first, second = self.privacy.numbers
        whole = self._left.leak == 0
        return f"{first}, with all of {second}," if whole else f"{first} and of {second}"

    def figure(self) -> Figure:
        """What each takes of the promise, and its standard error."""
        from muhat.planning.set_picture import set_figure

        return set_figure(self.statistics())

    # How it is carried out.

    def open(self, data: Any, columns: Columns) -> Opened:
        """The data as each step reads them; with groups of the right kind, to be checked."""
        from muhat.data import open_source
        from muhat.data.values import open_values

        unit = self.schema.unit
        counted = None
        if self.learns_rows:
            assert unit is not None
            counted = open_source(data, people=People(unit, per="rows"))
        people = None if unit is None else People(unit, 1)
        values = {name: open_values(data, name, people) for name in self.learnt}
        groups = {name: Labels((each.nothing,)) for name, each in values.items()}
        plan = self.planned_for(self.contributions, groups)
        return Opened(data, columns, counted, values, plan, plan.open(data, columns))

    def counted(self, source: Opened) -> LearntFirst:
        """The same for these records; a public n is compared, or counted."""
        known = source.plan.planned(source.sources).terms
        return replace(self, terms=replace(self.terms, n=known.n, was_counted=known.was_counted))

    def admit(self, source: Opened) -> None:
        for part, each in zip(source.plan.parts, source.sources, strict=True):
            part.mechanism.admit(each)

    def note(self, source: Opened) -> str:
        """The statistics."""
        return self.title

    def read(self, source: Opened) -> tuple[Answer, ...]:
        """Learn, then plan the statistics for what was learnt, and read them."""
        from muhat.data.shared import carried_out_together

        rows = self._learn_rows(source)
        groups, remarks = self._learn_groups(source, rows)
        if self.learns_rows:
            remarks = (_rows_remark(rows, self.schema), *remarks)
        labels = {
            name: Labels(found or (source.values[name].nothing,)) for name, found in groups.items()
        }
        plan = self.planned_for(rows, labels).assuming(*self._selected(), *self.said)
        sources = plan.open(source.data, source.columns)
        try:
            plan = plan.planned(sources)
        except InvalidInput:
            raise DataChanged("the number of rows changed between counting and reading.") from None
        remarks += tuple(_closeness(plan, "Given what was learnt, for the rest of the promise"))
        work = zip(plan.parts, sources, strict=True)
        read = carried_out_together([part.mechanism.reading(each) for part, each in work])
        answers = []
        asked = {each.name: each for each in self.asked}
        for part, own in zip(plan.parts, read, strict=True):
            for name, answer in zip(part.names, own, strict=True):
                empty = [column for column in asked[name].by if groups.get(column) == ()]
                found = _without_groups(answer, asked[name], empty[0]) if empty else answer
                answers.append(dataclasses.replace(found, remarks=remarks))
        for opened in (source.rows, *source.values.values()):
            if opened is not None:
                opened.check_unchanged()
        return tuple(answers)

    def reading(self, source: Opened) -> Reading[tuple[Answer, ...]]:
        """Every statistic."""
        return self.read(source)
        yield

    def _learn_rows(self, source: Opened) -> int:
        """How many rows of a person enter: declared, or as most people have, with noise."""
        if self.search is None or source.rows is None:
            return self.contributions
        from muhat.data.grid_counts import Window, count_windows

        grid = UniformGrid(1.0, float(self.ladder[-1]), 1.0)
        (found,) = count_windows(source.rows, [grid], [Window(0, 0, 0, grid.cells)])
        people = np.zeros(len(self.ladder), np.int64)
        people[0] = self.supposed
        steps = np.searchsorted(self.ladder, np.arange(1, grid.cells + 1))
        np.add.at(people, steps, found.counts)
        return self.ladder[self.search.find(people)]

    def _learn_groups(
        self, source: Opened, rows: int
    ) -> tuple[dict[str, tuple[Label, ...]], tuple[str, ...]]:
        """The values that are kept of every column, and what is said of that."""
        from muhat.data.values import open_values

        if not self.learnt:
            return {}, ()
        rule, unit = self.rule(rows), self.schema.unit
        people = None if unit is None else People(unit, rows)
        groups, remarks = {}, []
        for name in self.learnt:
            found = open_values(source.data, name, people).people()
            kept = rule.kept(list(found.values()))
            stay = [label for label, stays in zip(found, kept.tolist(), strict=True) if stays]
            groups[name] = source.values[name].alike(stay)
            remarks.append(
                f"The groups of {name} were learnt privately: values that too few people have "
                "are left out."
            )
        return groups, tuple(remarks)


def learnt_columns(asked: Sequence[Asked], schema: Schema) -> tuple[str, ...]:
    """The columns of groups that nobody knows and that the statistics need."""
    used = dict.fromkeys(name for each in asked for name in each.axes)
    if schema.one_row_per is not None:
        used[schema.one_row_per] = None
    return tuple(name for name in used if schema.is_learnt(name))


def learning_set(asked: Sequence[Asked], schema: Schema, terms: Terms) -> LearntFirst:
    """What learns what the schema does not know, or InvalidInput, or Impossible."""
    learnt = learnt_columns(asked, schema)
    if learnt and not terms.privacy.leak:
        raise Impossible(
            f"the groups of {learnt[0]!r:.60} cannot be learnt under {terms.privacy.describe()}: "
            "to show a value that only one person may have, however seldom, takes a delta. List "
            "them in the schema, or promise mh.ApproxDP(epsilon=…, delta=…) or "
            "mh.ApproxZCDP(rho=…, delta=…)."
        )
    for each in asked:
        if isinstance(each, Queries) and not set(each.axes).isdisjoint(learnt):
            raise InvalidInput(
                f"{each.name!r:.80} has known cells, but groups that are learnt. List them in "
                "the schema, or ask for counts by them."
            )
        if each.target is not None and schema.max_rows == LEARN and not _is_of_people(each):
            raise InvalidInput(
                f"the target of {each.name!r:.80} is for an error that grows with the rows of a "
                "person that enter, which nobody knows before they are learnt: give max_rows a "
                "number, or ask for it per person (per='unit')."
            )
    return LearntFirst(
        terms=terms,
        statistic="statistics",
        asked=tuple(asked),
        schema=schema,
        learnt=learnt,
        ladder=LADDER if schema.max_rows == LEARN else (terms.contributions,),
    )


def learnt_first(asked: Sequence[Asked], schema: Schema, terms: Terms) -> Plan:
    """The plan that learns what the schema does not know, or InvalidInput, or Impossible."""
    mechanism = learning_set(asked, schema, terms)
    while True:
        # Whatever is learnt, there is noise for it: what is refused is refused now.
        try:
            mechanism.planned_for(mechanism.ladder[-1])
            if mechanism.learnt:
                mechanism.rule(mechanism.ladder[-1])
            return Plan.of(mechanism)
        except InvalidInput:
            if len(mechanism.ladder) <= 2:
                raise
            mechanism = replace(mechanism, ladder=mechanism.ladder[:-1])


def _statistics(plan: Plan) -> tuple[PlannedStatistic, ...]:
    return tuple(each for part in plan.parts for each in part.statistics())


def _is_of_people(asked: Asked) -> bool:
    """Whether its records are people, however many rows each has."""
    return getattr(asked, "per", None) == "unit"


def _closeness(plan: Plan, given: str) -> list[str]:
    """How close to the best possible the counts and sums of a plan are together."""
    told = []
    for part in plan.parts:
        certificate = part.mechanism.certificate
        if part.mechanism.statistics() and certificate is not None and certificate.ratio:
            about = certificate.metric.removeprefix("weighted root mean square error of ")
            named = f" ({', '.join(part.names)})" if len(plan.parts) > 1 else ""
            told.append(f"{given}, {about}{named}: {certificate.closeness()}")
    return told


def _without_groups(answer: Answer, asked: Asked, column: str) -> NoGroups:
    """What is said of a statistic by groups of which none was found."""
    return NoGroups(
        statistic=asked.kind,
        name=asked.name,
        by=asked.by,
        mechanism=answer.mechanism,
        n=answer.n,
        contributions=answer.contributions,
        assumptions=answer.assumptions,
        failure=f"no value of {column} was found that enough people have",
    )


def _rows_remark(rows: int, schema: Schema) -> str:
    number = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"At most {number} of each {schema.unit} enter: max_rows = {rows} was learnt privately."


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):g} %"
