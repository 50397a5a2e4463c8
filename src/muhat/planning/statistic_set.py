"""What is asked of a table, until shares of the promise are chosen: a plan of one or more parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from muhat import workloads
from muhat.data.shared import TableColumns
from muhat.data.units import People
from muhat.errors import Impossible
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import ScaleFamily
from muhat.planning.allocation import TargetedError, as_fractions, best_shares, needed_shares
from muhat.planning.group_quantiles import GroupQuantiles, group_quantiles, rank_noise
from muhat.planning.linear_answers import LinearAnswers
from muhat.planning.mechanism import Mechanism
from muhat.planning.moment_set import MomentSet
from muhat.planning.moments import LEAST_GAIN
from muhat.planning.plan import Part, Plan
from muhat.planning.quantile_search import QuantileSearch
from muhat.planning.queries import linear_answers
from muhat.planning.query_tables import QueryTables
from muhat.planning.terms import Terms, kinds_of_noise
from muhat.privacy import adding_up
from muhat.release.query_table import Attributes
from muhat.statistics.asked import Asked, Quantile, Queries
from muhat.statistics.queries import LinearQueries
from muhat.statistics.schema import Schema

if TYPE_CHECKING:
    from muhat.data.categories import Categories

TOLERANCE = 1e-6
"""How near to the best strategies of queries are."""

CONFIDENCE = 0.95
"""That of rank errors which are wished for."""

ROOM = 1e-9
"""What targets may take of a promise beyond the whole, by rounding."""


@dataclass(frozen=True)
class Apart:
    """A statistic with noise of its own: how it is made, and its errors at the whole promise.

    `error` is weighted and relative, `own` in the unit of its target.
    """

    asked: Asked
    make: Callable[[Terms], Mechanism]
    error: float
    own: float


@dataclass(frozen=True, eq=False)
class SetOfStatistics:
    """What is asked of a table, until shares of the promise are chosen.

    `terms` are those of the whole promise, `shared` those of one that implies it and adds up.
    """

    terms: Terms
    shared: Terms
    kind: NoiseKind
    moments: tuple[MomentSet, ...]
    others: tuple[Apart, ...]
    reads: TableColumns

    @classmethod
    def of(cls, asked: Sequence[Asked], schema: Schema, terms: Terms) -> SetOfStatistics:
        """With noise of the kind that has the least error, of those that may keep the promise."""
        kinds = kinds_of_noise(terms.privacy, dim=1)
        return min((cls.with_noise(kind, asked, schema, terms) for kind in kinds), key=_merit)

    @classmethod
    def with_noise(
        cls,
        kind: NoiseKind,
        asked: Sequence[Asked],
        schema: Schema,
        terms: Terms,
        learnt: Collection[str] = (),
    ) -> SetOfStatistics:
        """Sort the statistics by how they are answered; some columns' groups may be `learnt`.

        Queries that are tables of counts are answered with the counts, where that has less error.
        """
        apart = cls._sorted(kind, asked, schema, terms, learnt, {})
        if kind is NoiseKind.PURE or learnt:
            return apart
        tables: dict[str, QueryTables] = {}
        for other in apart.others:
            if isinstance(other.asked, Queries):
                queries = _linear_queries(other.asked, schema)
                found = QueryTables.of(other.asked, queries, other.error)
                tables |= {} if found is None else {other.asked.name: found}
        if not tables:
            return apart
        together = cls._sorted(kind, asked, schema, terms, learnt, tables)
        (needs, error), (alone, own) = _shown_merit(together), _shown_merit(apart)
        return together if (needs, error * LEAST_GAIN) < (alone, own) else apart

    @classmethod
    def _sorted(
        cls,
        kind: NoiseKind,
        asked: Sequence[Asked],
        schema: Schema,
        terms: Terms,
        learnt: Collection[str],
        tables: Mapping[str, QueryTables],
    ) -> SetOfStatistics:
        """The statistics by how they are answered, some queries as `tables` of counts."""
        promise = adding_up(terms.privacy, pure=kind is NoiseKind.PURE)
        shared = replace(terms, privacy=promise)
        alone = [each for each in asked if not each.terms() and each.name not in tables]
        others = [_apart(each, schema, shared) for each in alone]
        linear: dict[People | None, list[Asked]] = {}
        for each in asked:
            if each.terms():
                linear.setdefault(_people(each, schema, terms), []).append(each)
        rows = _entering(schema, terms)
        if tables:
            linear.setdefault(rows, [])
        moments = [
            MomentSet.of(
                own, schema, shared, kind, people, learnt, [*tables.values()] * (people == rows)
            )
            for people, own in linear.items()
        ]
        reads = _reads(asked, schema, terms)
        return cls(terms, shared, kind, tuple(moments), tuple(others), reads)

    @property
    def errors(self) -> list[float]:
        """The weighted error of every portion of noise, if it had all of the promise."""
        first = [error for each in self.moments for error in each.errors]
        return [*first, *(other.error for other in self.others)]

    @property
    def wishes(self) -> list[TargetedError]:
        """The targets, in terms of the portions that each statistic is read off."""
        found, start = [], 0
        for each in self.moments:
            found += [wish.moved(start) for wish in each.wishes]
            start += len(each.errors)
        return found + [
            TargetedError(other.asked.name, other.asked.wish, 1.0, {place: other.own})
            for place, other in enumerate(self.others, start)
            if other.asked.wish is not None
        ]

    def needed(self) -> float:
        """What the targets take of the promise at the least; 1 is all of it."""
        return float(needed_shares(self.wishes, len(self.errors), self.kind).sum())

    def shares(self) -> list[Fraction]:
        """The best shares; what the targets need comes first."""
        needed = needed_shares(self.wishes, len(self.errors), self.kind)
        total = float(needed.sum())
        if total > 1 + ROOM:
            raise Impossible(self._refused(needed / total))
        rest = best_shares(self.errors, self.kind)
        return as_fractions((needed + max(0.0, 1 - total) * rest).tolist())

    def plan(self, shares: Sequence[Fraction] | None = None) -> Plan:
        """The plan with these shares, the best ones if none are given."""
        parts = self._parts(self.shares() if shares is None else shares)
        return Plan(self.terms, tuple(parts), self.shared.privacy, self.reads)

    def _parts(self, shares: Sequence[Fraction]) -> list[Part]:
        parts, start = [], 0
        alone = len(self.moments) + len(self.others) == 1
        for each in self.moments:
            own = shares[start : start + len(each.errors)]
            share = Fraction(1) if alone else sum(own, Fraction(0))
            terms, within = self.shared.part(share), [one / (share or 1) for one in own]
            mechanism: Mechanism = each.mechanism(terms, within)
            parts.append(Part("sums by groups", mechanism, share))
            start += len(own)
        for other, share in zip(self.others, shares[start:], strict=True):
            mechanism = other.make(self.shared.part(share))
            parts.append(Part(other.asked.name, mechanism, share))
        return parts

    def _refused(self, shares: np.ndarray) -> str:
        """What the targets would need, and the least errors in their proportions."""
        reached = [(wish, wish.error(shares, self.kind)) for wish in self.wishes]
        least = ", ".join(f"{wish.name}: {error / wish.scale:.4g}" for wish, error in reached)
        return (
            f"the targets need {self.needed():.3g} times what {self.terms.privacy.describe()} "
            f"allows. The least errors in their proportions are {least}. Ask for larger errors or "
            "for a weaker promise; mh.privacy_for(statistics=…) says which is enough."
        )


def _merit(one: SetOfStatistics) -> tuple[float, float]:
    """What the targets take, if it is too much, and the weighted error with all of the promise."""
    return _at_best(one, one.errors)


def _shown_merit(one: SetOfStatistics) -> tuple[float, float]:
    """The same of what is shown: queries have no cells for values that are not declared."""
    shown = [error for each in one.moments for error in each.shown]
    return _at_best(one, [*shown, *(other.error for other in one.others)])


def _at_best(one: SetOfStatistics, errors: Sequence[float]) -> tuple[float, float]:
    shares = best_shares(one.errors, one.kind)
    both = zip(errors, shares.tolist(), strict=True)
    error = math.hypot(*(each / one.kind.strength_of(share) for each, share in both if each))
    return max(1.0, one.needed()), error


def _people(asked: Asked, schema: Schema, terms: Terms) -> People | None:
    """Whose rows a statistic is of: those that enter, or one record a person made of them."""
    people = _entering(schema, terms)
    if people is None or _is_of_rows(asked):
        return people
    return replace(people, per="sum" if asked.kind == "sum" else "mean")


def _entering(schema: Schema, terms: Terms) -> People | None:
    """Whose rows enter, and how many of them; None if every row is a person."""
    if schema.unit is None:
        return None
    each = () if schema.one_row_per is None else (schema.one_row_per,)
    return People(schema.unit, terms.contributions, each)


def _reads(asked: Sequence[Asked], schema: Schema, terms: Terms) -> TableColumns:
    """The columns of all statistics, and that by which rows of a person are chosen."""
    groups = dict.fromkeys(name for each in asked for name in each.axes)
    if schema.one_row_per is not None:
        groups[schema.one_row_per] = None
    columns: dict[str, Categories | None] = {
        name: None for each in asked for name in each.columns if name not in groups
    }
    columns |= {name: schema.categories(name) for name in groups}
    return TableColumns(columns, _entering(schema, terms))


def _apart(asked: Asked, schema: Schema, terms: Terms) -> Apart:
    """Quantiles and linear queries, each by its own mechanism."""
    maker = _quantiles if isinstance(asked, Quantile) else _queries
    return maker(asked, schema, terms)  # type: ignore[arg-type]


def _quantiles(asked: Quantile, schema: Schema, terms: Terms) -> Apart:
    categories = tuple(schema.categories(name) for name in asked.by)
    known = schema.is_complete(asked.column) and not terms.unit
    missing = "none" if known else "drop"

    bounds = schema.bounds(asked.column)
    # Pure noise adds up over groups as over records, so that it has nothing to win.
    normal = NoiseKind.named_by(terms.privacy) is NoiseKind.NORMAL
    apart = normal and schema.one_row_per in asked.by

    def make(given: Terms) -> QuantileSearch | GroupQuantiles:
        return group_quantiles(
            asked.column, asked.q, bounds, given, categories, missing, apart=apart
        )

    groups = math.prod(one.size for one in categories)
    strength = Strength.of(terms.privacy, NoiseKind.named_by(terms.privacy))
    unit = rank_noise(asked.q, bounds, terms, categories, missing, apart=apart)
    noise = unit / math.sqrt(strength.squared)
    own = float(make(terms).rank_error(CONFIDENCE).max())
    return Apart(asked, make, math.sqrt(asked.weight) * groups * noise, own)


def _is_of_rows(asked: Asked) -> bool:
    """Whether its records are rows, and not people."""
    return getattr(asked, "per", None) != "unit"


def _linear_queries(asked: Queries, schema: Schema) -> LinearQueries:
    """The queries on the histogram of all their columns, those of the groups first."""
    categories = tuple(schema.categories(name) for name in asked.axes)
    groups = [workloads.identity(schema.categories(name).size) for name in asked.by]
    workload = workloads.kron(*groups, asked.workload) if groups else asked.workload
    labels = tuple(tuple(map(str, one.labels)) for one in categories)
    return LinearQueries(workload, 2.0, categories, Attributes(asked.axes, labels), TOLERANCE)


def _queries(asked: Queries, schema: Schema, terms: Terms) -> Apart:
    queries = _linear_queries(asked, schema)

    def make(given: Terms) -> LinearAnswers:
        return linear_answers(queries, given)

    rows, best = queries.workload.shape[0], make(terms)
    # Shares are divided by errors in proportion to the promise, which those of stairs are not.
    whole = next(
        one
        for one in (best, *best.rivals)
        if isinstance(one, LinearAnswers) and isinstance(one.recipe.law, ScaleFamily)
    )
    weighted = math.sqrt(asked.weight * rows) * whole.expected_error
    return Apart(asked, make, weighted, float(whole.standard_error.max()))
