"""Quantiles by noisy searches or by choices: which errs less, and how far off ranks may be."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muhat import bounds
from muhat.errors import DataChanged, InvalidInput
from muhat.mechanisms.quantiles.choice import Choice
from muhat.mechanisms.quantiles.joint_choice import JointChoice
from muhat.mechanisms.quantiles.nested_choice import NestedChoice
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.quantile import Answers, QuantileRecipe, rank_errors
from muhat.mechanisms.quantiles.rank_choice import RankChoice
from muhat.noise.kinds import NoiseKind
from muhat.noise.laws import independent_law
from muhat.noise.protection import Protection
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.picture import INK, NOISE, blank_figure
from muhat.planning.planned import PlannedStatistic
from muhat.planning.run import HasRows, counted_terms
from muhat.planning.terms import Terms, kinds_of_noise
from muhat.privacy import Privacy, as_typed
from muhat.release.answer import CONFIDENCE
from muhat.release.certificate import Certificate
from muhat.release.display import certificate_lines
from muhat.release.quantile_answer import QuantileAnswer, end_notes, ranks_note
from muhat.release.quantile_grids import words
from muhat.statistics.quantiles import Quantiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data import Source
    from muhat.data.grid_counts import Window, WindowCounts
    from muhat.data.shared import Reading

CONFIDENCES = (0.5, 0.9, 0.95, 0.99, 0.999)
BOUND_GAIN = 1.05
"""What has the larger bound for the worst data must err less by this factor elsewhere."""
DRAWN = [0.5 + 0.499 * step / 60 for step in range(61)]


class HasColumns(Protocol):
    """Records with the names of the columns that are searched."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QuantileSearch(Mechanism):
    """Quantiles of columns by noisy searches, or by the exponential mechanism.

    `apart` says that of a person no two records lie in one group. Rank errors depend on no data,
    and not on n either: they are known before anything is paid, and have a certificate; errors of
    values depend on the data. The one that errs least where records lie evenly is taken
    (`typical_rank_error`); several quantiles of a column may be one joint choice, or choices one
    inside the other.
    """

    q: float | tuple[float, ...]
    missing: str
    recipe: QuantileRecipe
    apart: bool = False

    def keeps(self, terms: Terms) -> bool:
        """Whether the searches were made for them."""
        kind = self.recipe.law.kind
        return self.recipe.protection == protection_of(terms, kind, apart=self.apart)

    @property
    def name(self) -> str:
        """The mechanism and its noise."""
        part = self.recipe.searches[0][0]
        return part.name if isinstance(part, Choice) else f"noisy-search ({self.recipe.law.name})"

    @property
    def typical_rank_error(self) -> float:
        """The root mean square rank error where records lie evenly, the largest of all; about."""
        return max(search.typical_error for row in self.recipe.searches for search in row)

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the noise of a comparison, in records, the largest of all."""
        return max(search.scale for row in self.recipe.searches for search in row)

    @property
    def contenders(self) -> tuple[QuantileSearch, ...]:
        """This mechanism and the other ones, from the least typical error on."""
        return (self, *(one for one in self.rivals if isinstance(one, QuantileSearch)))

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The other mechanism, if there is one, with its typical rank error."""
        return tuple((one.name, one.typical_rank_error) for one in self.contenders[1:])

    @property
    def chosen(self) -> str:
        return "the bounds, the resolution and q"

    @property
    def fractions(self) -> tuple[float, ...]:
        """The quantiles that are asked for, one or more."""
        return self.q if isinstance(self.q, tuple) else (self.q,)

    def rank_error(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> NDArray[np.int64]:
        """As of the release: each value will lie within so many ranks of its quantile's."""
        errors = rank_errors(self.recipe.searches, confidence, simultaneous=simultaneous)
        return errors if isinstance(self.q, tuple) else errors[0]

    @cached_property
    def certificate(self) -> Certificate:
        """Of the largest rank error, beside what one quantile at the whole promise must have."""
        terms = self.terms
        # Of a person with records in several groups one is in the group that is looked at.
        rows = 1 if self.apart else terms.contributions
        found = [
            bounds.rank_error(
                min(grid.cells for grid in self.recipe.grids),
                privacy=terms.privacy,
                q=fraction,
                n=terms.n,
                confidence=CONFIDENCE,
                neighbors=terms.neighbors,
                contributions=rows,
                dim=len(self.recipe.grids),
            )
            for fraction in self.fractions
        ]
        best = max(found, key=lambda bound: bound.value or 0.0)
        metric = f"rank error that is kept with {100 * CONFIDENCE:g} % confidence"
        return Certificate(
            metric, math.inf, float(self.rank_error(CONFIDENCE).max()), "bound", (best,)
        )

    def planned_as(self, name: str) -> PlannedStatistic:
        """With the rank error of 95 of 100 releases."""
        error = float(self.rank_error().max())
        return replace(super().planned_as(name), error=error, in_ranks=True)

    def errors(self) -> list[tuple[float, int]]:
        """The largest rank error for confidences from a half to 0.999."""
        return [(level, int(self.rank_error(level).max())) for level in CONFIDENCES]

    def decisive(self) -> dict[str, Any]:
        """The rule for missing values, and the searches."""
        return {"missing": self.missing, "recipe": self.recipe.to_dict()}

    def details(self) -> dict[str, Any]:
        """What is searched for, and how far off ranks may be."""
        errors = [{"confidence": level, "records": error} for level, error in self.errors()]
        return {
            "q": list(self.fractions),
            "grids": [grid.to_dict() for grid in self.recipe.grids],
            "missing": self.missing,
            "typical_rank_error": self.typical_rank_error,
            "rank_errors": errors,
        }

    @property
    def title(self) -> str:
        """What is planned."""
        return f"private quantiles {', '.join(f'{q:g}' for q in self.fractions)}"

    def facts(self) -> Rows:
        """The grid and the search of every column."""
        rows = []
        for grid, search in zip(self.recipe.grids, self.recipe.searches[0], strict=True):
            rows += [["grid", words(grid)], ["mechanism", f"{search.finder}: {search.words()}"]]
        typical = f"± {self.typical_rank_error:.3g} where records lie evenly"
        others = [f"{name} ± {error:.3g}" for name, error in self.alternatives]
        return [*rows, ["typical rank error", "; instead of ".join([typical, *others])]]

    def tables(self) -> list[Rows]:
        """The rank error for every confidence, whatever the data are."""
        head, (_, *others) = ["with probability", "rank error at most"], self.contenders
        if others:
            head = [head[0], f"{head[1]}: {self.name}", *(one.name for one in others)]
        lines = zip(*(one.errors() for one in self.contenders), strict=True)
        errors = [
            [f"{100 * line[0][0]:g} %", *(f"{error:,}" for _, error in line)] for line in lines
        ]
        return [[head, *errors]]

    def notes(self) -> list[str]:
        """What the errors mean."""
        return [
            ranks_note("each value will lie", self.typical_rank_error),
            *certificate_lines(self.certificate),
            *end_notes(self.fractions),
        ]

    def figure(self) -> Figure:
        """The rank error against the confidence."""
        figure = blank_figure(6)
        axes = figure.subplots()
        errors = [int(self.rank_error(level).max()) for level in DRAWN]
        axes.step([100 * level for level in DRAWN], errors, color=NOISE, lw=1.5)
        axes.set_xlabel("confidence, per cent")
        axes.set_ylabel("rank error, records")
        axes.set_ylim(bottom=0)
        asked = ", ".join(f"{q:g}" for q in self.fractions)
        title = f"Private quantiles {asked}, {self.privacy.describe()}"
        figure.suptitle(title, color=INK, fontsize="medium")
        return figure

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as a column for every grid."""
        from muhat.data import open_source
        from muhat.data.selection import column_names

        chosen = self.columns if columns is None else columns
        people = self.terms.people()
        return open_source(data, column_names(chosen), len(self.recipe.grids), people=people)

    def counted(self, source: HasRows) -> QuantileSearch:
        """The same for these records; a public n is compared, or counted."""
        return self._under(counted_terms(self.terms, source, self.statistic))

    def _under(self, terms: Terms) -> QuantileSearch:
        rivals = tuple(one._under(terms) for one in self.contenders[1:])
        return replace(self, terms=terms, recipe=replace(self.recipe, n=terms.n), rivals=rivals)

    def note(self, source: HasColumns) -> str:
        """The quantiles and the columns."""
        named = ", ".join(f"{one:g}" for one in self.fractions)
        return f"quantile {named} of {', '.join(source.columns)}"

    def read(self, source: Source) -> QuantileAnswer:
        """The quantiles by themselves."""
        (answer,) = self.answers(source)
        assert isinstance(answer, QuantileAnswer)
        return answer

    def reading(self, source: Source) -> Reading[tuple[QuantileAnswer]]:
        """Count, and search among the counts."""
        from muhat.data.grid_counts import counting_windows
        from muhat.data.shared import answered

        recipe, rule = self.recipe, self.missing_rule

        def counting(windows: Sequence[Window]) -> Reading[list[WindowCounts]]:
            found = yield from counting_windows(source, recipe.grids, windows, missing=rule)
            return self.checked(found)

        (found,) = yield from answered(recipe.searching(), counting)
        return (self.answer(found, source.columns),)

    @property
    def missing_rule(self) -> str:
        """Where missing values are counted: nowhere, or in the middle."""
        return "drop" if self.missing == "drop" else "center"

    def checked(self, tables: list[WindowCounts]) -> list[WindowCounts]:
        """The counts of a pass, if it read as many records as are public."""
        n = self.recipe.n
        if n is not None and any(table.rows != n for table in tables):
            raise DataChanged("the number of rows changed between counting and reading.")
        return tables

    def answer(self, found: Answers, columns: tuple[str, ...], **basis: Any) -> QuantileAnswer:
        """What searches found, as it is released."""
        recipe = self.recipe
        return QuantileAnswer(
            q=self.q,
            columns=columns,
            grids=recipe.grids,
            searches=recipe.searches,
            found=found.found,
            missing=self.missing,
            recorded=found.recorded,
            counts=recipe.counts,
            **(basis or self.basis()),
        )


def protection_of(terms: Terms, kind: NoiseKind, *, apart: bool) -> Protection:
    """What searches must guarantee; in groups where a person has one record at most, if `apart`."""
    return terms.protection.apart(kind) if apart else terms.protection


def quantile_search(
    asked: Quantiles,
    terms: Terms,
    columns: tuple[str, ...] | None = None,
    *,
    apart: bool = False,
) -> QuantileSearch:
    """The search or the choice for quantiles that errs less, of each group if there are any."""

    def of(kind: NoiseKind, finder: type[NoisySearch]) -> QuantileSearch:
        return QuantileSearch(
            terms=terms,
            statistic="quantile",
            columns=columns,
            premises=asked.premises(),
            q=asked.q,
            missing=asked.missing,
            apart=apart,
            recipe=QuantileRecipe.of(
                asked.grids,
                [as_typed(one) for one in asked.fractions],
                terms.n,
                independent_law(kind),
                protection_of(terms, kind, apart=apart),
                recorded=asked.missing == "drop",
                intervals=asked.interval,
                groups=math.prod(one.size for one in asked.categories)
                if asked.categories
                else None,
                finder=finder,
            ),
        )

    found = [of(NoiseKind.named_by(terms.privacy), NoisySearch)]
    several = [JointChoice, NestedChoice] if len(asked.fractions) > 1 else []
    choices: list[type[Choice]] = [RankChoice, *several]
    for kind, choice in product(_kinds_of_choices(terms.privacy, apart=apart), choices):
        # Where the grids are too fine for a few passes, or the promise too strong, there is none.
        with contextlib.suppress(InvalidInput):
            found.append(of(kind, choice))
    best = _taken(found)
    others = sorted(found, key=lambda one: one.typical_rank_error)
    others.remove(best)
    return replace(best, rivals=tuple(others))


def _taken(found: Sequence[QuantileSearch]) -> QuantileSearch:
    """That of the least typical error, unless one with a smaller bound errs hardly more."""
    best, *others = sorted(
        found, key=lambda one: (int(one.rank_error().max()), one.typical_rank_error)
    )
    for one in others:
        if one.typical_rank_error * BOUND_GAIN < best.typical_rank_error:
            best = one
    return best


def _kinds_of_choices(promise: Privacy, *, apart: bool) -> list[NoiseKind]:
    """In what the privacy of a choice may be counted: a choice keeps no Gaussian promise.

    A share that records `apart` leave of a promise is one of Gaussian privacy.
    """
    kinds = kinds_of_noise(promise, 1)
    normal = promise.rho_within is not None and not apart
    return [kind for kind in kinds if normal or kind is NoiseKind.PURE]
