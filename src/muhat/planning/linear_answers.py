"""Private answers to linear queries: what will be asked, at what cost, with what error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muhat import bounds
from muhat._arrays import Floats
from muhat._words import Parameter, given_rows
from muhat.errors import DataChanged, InvalidInput
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
from muhat.planning.display import alternatives_line
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.terms import Terms
from muhat.privacy import Neighbors
from muhat.release.answer_noise import AnswerNoise
from muhat.release.certificate import Certificate, metric_name
from muhat.release.display import MOST_ROWS, certificate_lines, significant
from muhat.release.query_answer import QueryAnswer
from muhat.release.query_table import Attributes, query_names
from muhat.workloads import Workload
from muhat.workloads.factorization import Factorization
from muhat.workloads.total import total_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data.categories import Categories
    from muhat.data.histogram import CellSource
    from muhat.data.shared import Reading

Axes = tuple[int, ...]

_KEPT = {"noise", "_error", "certificate", "recorded_weights", "recorded_noise"}
"""What is found once, whatever n is."""


class Counts(Protocol):
    """Records that can be counted by cell; nothing is read before `reading`."""

    @property
    def rules(self) -> tuple[str, ...]:
        """What becomes of missing and undeclared values of each column; () if counts are given."""

    def total(self) -> int:
        """The number of records, where it is public."""

    def reading(self, sets: Iterable[Axes]) -> Reading[Mapping[Axes, NDArray[np.int64]]]:
        """The exact marginal tables of counts over sets of axes."""


@dataclass(frozen=True)
class TableCounts:
    """The records of a table, each in one cell."""

    source: CellSource

    @property
    def rules(self) -> tuple[str, ...]:
        """The rule of every column, in order."""
        return tuple(categories.missing for categories in self.source.categories)

    def total(self) -> int:
        """The number of rows."""
        return self.source.rows()

    def reading(self, sets: Iterable[Axes]) -> Reading[Mapping[Axes, NDArray[np.int64]]]:
        """One pass over the rows."""
        return self.source.reading(sets)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearAnswers(Mechanism):
    """Private answers to a workload.

    `floor` is below every strategy's value for data in which nothing is missing.
    """

    workload: Workload
    p: float
    categories: tuple[Categories, ...]
    attributes: Attributes
    recipe: LinearRecipe
    floor: float

    def keeps(self, terms: Terms) -> bool:
        """Whether the recipe was proved for them, and for the workload."""
        promised = terms.protection
        return self.recipe.protection == promised and self.factorization.workload == self.workload

    @property
    def chosen(self) -> str:
        return "the workload and the categories"

    @property
    def factorization(self) -> Factorization:
        """The strategy and the decoder, with their certified value."""
        return self.recipe.factorization

    @property
    def name(self) -> str:
        """The law of the noise, and the strategy that it goes on."""
        return self.recipe.name

    @cached_property
    def noise(self) -> AnswerNoise:
        """The noise on the answers."""
        return AnswerNoise(
            self.recipe.law,
            self.recipe.query.scales,
            self.factorization.is_diagonal,
            self.recipe.decoder,
            self.recipe.unit,
            self.recipe.sums,
        )

    @cached_property
    def recorded_weights(self) -> Floats | None:
        """What makes the number of records of the answers; None if they do not tell it."""
        return total_weights(self.workload)

    @cached_property
    def recorded_noise(self) -> AnswerNoise | None:
        """The noise on that number."""
        if self.recorded_weights is None:
            return None
        scale, sums = self.recipe.total_noise(self.recorded_weights)
        return AnswerNoise(self.recipe.law, np.array([scale]), False, sums=sums)

    @cached_property
    def _error(self) -> tuple[float, str]:
        return self.noise.root_mean_square(self.p)

    @property
    def expected_error(self) -> float:
        """(E‖noise‖_p²)^½ over all answers."""
        return self._error[0]

    @property
    def expected_error_method(self) -> str:
        """How `expected_error` was found: exact, quadrature, monte carlo or a bound."""
        return self._error[1]

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The other mechanisms, with errors by the measure that they were compared by."""
        _, *errors = comparable_errors([self, *self.rivals])
        return tuple((rival.name, error) for rival, error in zip(self.rivals, errors, strict=True))

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of the noise on every answer, of shape (m,)."""
        return self.noise.standard_error

    def variances(self) -> Floats:
        """The variance of the noise on every answer, of shape (m,)."""
        return np.asarray(self.standard_error**2)

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise on the answers, of shape (m, m)."""
        return self.noise.covariance

    @cached_property
    def certificate(self) -> Certificate:
        """How close to the best possible."""
        error, method = self._error
        return Certificate(
            metric_name(self.p, "answers"),
            self.p,
            error,
            method,
            self._lower_bounds(),
            self.noise.power_error(self.p),
        )

    def _lower_bounds(self) -> tuple[bounds.LowerBound, ...]:
        return bounds.linear_queries(
            self.workload,
            self.privacy,
            self.p,
            neighbors=self.neighbors,
            floor=self.floor,
            contributions=self.contributions,
        )

    def errors(self) -> list[tuple[str, float]]:
        """The standard error of the answers, the first ones."""
        _, names = query_names(self.workload, self.attributes, MOST_ROWS)
        return list(zip(names, self.standard_error, strict=False))

    def decisive(self) -> dict[str, Any]:
        """The workload, the categories, how errors are measured, and the recipe."""
        return {
            "workload": self.workload.to_dict(),
            "p": str(self.p),
            "categories": [categories.to_dict() for categories in self.categories],
            "recipe": self.recipe.to_dict(),
        }

    def details(self) -> dict[str, Any]:
        """The workload and its factorisation."""
        factorization = self.factorization
        return {
            "workload": self.workload.to_dict(),
            "answers": self.workload.shape[0],
            "columns": list(self.attributes.names),
            "p": "inf" if math.isinf(self.p) else self.p,
            "factorization": {
                "value": factorization.value,
                "floor": factorization.floor,
                "gap": factorization.gap,
                "method": factorization.method,
            },
        }

    @property
    def title(self) -> str:
        """What is asked."""
        return f"private answers to {self.workload.describe()}"

    def facts(self) -> Rows:
        """The noise and the strategy."""
        order = "∞" if math.isinf(self.p) else f"{self.p:g}"
        value, gap = self.factorization.value, self.factorization.gap
        strategy = f"γ_({order}) = {value:.6g}, within {100 * gap:.2g} % of the least"
        return [["mechanism", self.name], ["strategy", strategy]]

    def tables(self) -> list[Rows]:
        """The expected errors, a line an answer, the first ones."""
        header, _ = query_names(self.workload, self.attributes, MOST_ROWS)
        rows = [[name, significant(error)] for name, error in self.errors()]
        errors = self.standard_error
        if len(errors) > MOST_ROWS:
            most = f"up to {significant(errors.max())}"
            rows.append([f"… {len(errors) - MOST_ROWS:,} more", most])
        return [[[header, "standard error"], *rows]]

    def notes(self) -> list[str]:
        """The certificate and the alternatives."""
        return [*certificate_lines(self.certificate), *alternatives_line(self, self.p)]

    def figure(self) -> Figure:
        """The standard error of every answer, and the error beside its lower bounds."""
        from muhat.planning.picture import answers_figure

        return answers_figure(self)

    def open(self, data: Any, columns: Columns) -> Counts:
        """The data as counts of the plan's cells."""
        from muhat.data.categories import categories_of
        from muhat.data.cell_kernel import checked_sets
        from muhat.data.counts import histogram_counts
        from muhat.data.histogram import open_cells, require_every_record
        from muhat.data.selection import column_names

        cells = self.workload.cells
        chosen = column_names(columns)
        checked_sets(cells, self.recipe.query.sets)
        if chosen is None and not self.categories:
            if isinstance(data, Mapping) and self.neighbors is Neighbors.SUBSTITUTE:
                raise InvalidInput(
                    "under substitution every record has a cell, and a dict may have keys that are "
                    "none: give the counts as an array or a sparse array."
                )
            return histogram_counts(data, cells)
        if chosen is not None and len(chosen) != len(cells):
            raise InvalidInput(
                f"the workload asks about {len(cells)} attributes, so as many columns are needed; "
                f"got {len(chosen)}."
            )
        categories = self.categories
        if not categories:
            assert chosen is not None
            categories = categories_of(dict(zip(chosen, cells, strict=True)), missing="drop")
            if self.neighbors is Neighbors.SUBSTITUTE:
                require_every_record(categories)
        return TableCounts(open_cells(data, chosen, categories, people=self.terms.people()))

    def counted(self, source: Counts) -> LinearAnswers:
        """The same for these records, whose number is public under substitution."""
        if self.terms.hides_n:
            return self
        total = source.total()
        if self.n not in (None, total):
            raise InvalidInput(
                given_rows(self.n),
                ", but the data have another number of records.",
                hint=("Leave ", Parameter("n"), " out to have them counted."),
            )
        if self.n is not None:
            return self
        terms = self.terms.counted(total)
        self.certificate  # noqa: B018  found once for all releases of a plan
        rivals = tuple(replace(rival, terms=terms) for rival in self.rivals)
        return self.beside(rivals, terms)

    def beside(self, rivals: tuple[Mechanism, ...], terms: Terms) -> LinearAnswers:
        """The same with these rivals and a counted n: no error rests on them, so it is kept."""
        found = replace(self, rivals=rivals, terms=terms)
        vars(found).update((name, value) for name, value in vars(self).items() if name in _KEPT)
        return found

    def admit(self, source: Counts) -> None:
        """Refuse errors without bound."""
        if not math.isfinite(self.certificate.error):
            raise InvalidInput("the expected error is not finite; nothing was spent.")
        if "drop" in source.rules:
            self.recorded_noise  # noqa: B018  what can fail without the data fails here

    def note(self, source: Counts) -> str:
        """What was asked."""
        return self.workload.describe()

    def read(self, source: Counts) -> QueryAnswer:
        """The answers by themselves."""
        (answer,) = self.answers(source)
        assert isinstance(answer, QueryAnswer)
        return answer

    def reading(self, source: Counts) -> Reading[tuple[QueryAnswer]]:
        """Count the cells in one pass."""
        margins = yield from source.reading(self.recipe.query.sets)
        known = None if self.recipe.absent else self.n
        counted = int(next(iter(margins.values())).sum())
        if self.n is not None and (counted > self.n or known not in (None, counted)):
            raise DataChanged("the number of records changed between counting and reading.")
        value = self.recipe.run(margins, known)
        weights = self.recorded_weights if "drop" in source.rules else None
        answer = QueryAnswer(
            value=value,
            workload=self.workload,
            attributes=self.attributes,
            missing=source.rules,
            recorded=None if weights is None else float(weights @ value),
            recorded_noise=None if weights is None else self.recorded_noise,
            noise=self.noise,
            certificate=self.certificate,
            **self.basis(),
        )
        return (answer,)


def comparable_errors(found: Sequence[Mechanism]) -> list[float]:
    """The errors of mechanisms by one measure: by bounds, if no more is known of one of them."""
    linear = [each for each in found if isinstance(each, LinearAnswers)]
    if any(each.expected_error_method == "bound" for each in linear):
        return [each.noise.bound(each.p) for each in linear]
    return [each.expected_error for each in linear]
