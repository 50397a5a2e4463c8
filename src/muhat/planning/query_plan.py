"""A plan for linear queries: what will be asked, at what cost, with what error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat import bounds, privacy
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
from muhat.mechanisms.sums.recipe import Protection
from muhat.planning.digest import digest_of
from muhat.planning.plan import metric_name
from muhat.planning.query_execution import QueriesWork
from muhat.planning.run import run
from muhat.privacy import Neighbors, Privacy
from muhat.release.answer_noise import AnswerNoise
from muhat.release.certificate import Certificate
from muhat.release.query_release import QueryRelease
from muhat.release.query_table import Attributes
from muhat.workloads import Workload
from muhat.workloads.factorization import Factorization
from muhat.workloads.total import total_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data.categories import Categories


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QueryPlan:
    """Private answers to a workload, ready to be released; `mh.plan_queries` makes it.

    `n` is the public number of records under substitution, None if it is to be counted, and
    always None under add/remove, where it is secret. `floor` is below every strategy's value for
    data in which nothing is missing. `alternatives` lists the other strategies that were possible
    with their expected errors.
    """

    workload: Workload
    privacy: Privacy
    neighbors: Neighbors
    n: int | None
    p: float
    contributions: int
    categories: tuple[Categories, ...]
    attributes: Attributes
    recipe: LinearRecipe
    floor: float
    assumptions: tuple[str, ...]
    alternatives: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        promised = Protection.of(
            self.privacy, self.neighbors, self.contributions, pure=self.recipe.protection.pure
        )
        if self.recipe.protection != promised or self.factorization.workload != self.workload:
            raise InvalidInput(
                "a plan's workload, promise, neighbors and contributions are those its noise was "
                "made for; make a new plan instead of changing them."
            )

    @property
    def factorization(self) -> Factorization:
        """The strategy and the decoder, with their certified value."""
        return self.recipe.factorization

    @property
    def mechanism(self) -> str:
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
            self.recipe.laplace_sums(),
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

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""
        fields = {
            "schema": "muhat.planning.queries/1",
            "workload": self.workload.to_dict(),
            "privacy": privacy.to_dict(self.privacy),
            "n": self.n,
            "p": str(self.p),
            "categories": [categories.to_dict() for categories in self.categories],
            "recipe": self.recipe.to_dict(),
        }
        return digest_of(fields)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON."""
        factorization = self.factorization
        return {
            "schema": "muhat.planning.queries/1",
            "statistic": "queries",
            "workload": self.workload.to_dict(),
            "answers": self.workload.shape[0],
            "mechanism": self.mechanism,
            "columns": list(self.attributes.names),
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": self.n,
            "p": "inf" if math.isinf(self.p) else self.p,
            "contributions": self.contributions,
            "factorization": {
                "value": factorization.value,
                "floor": factorization.floor,
                "gap": factorization.gap,
                "method": factorization.method,
            },
            "expected_error": self.expected_error,
            "expected_error_method": self.expected_error_method,
            "standard_error": self.standard_error.tolist(),
            "certificate": self.certificate.to_dict(),
            "alternatives": [
                {"mechanism": name, "expected_error": error} for name, error in self.alternatives
            ],
            "assumptions": list(self.assumptions),
            "cautions": list(privacy.cautions(self.privacy, self.n)),
            "digest": self.digest,
        }

    def release(
        self,
        data: Any,
        columns: Sequence[str] | Sequence[int] | None = None,
        ledger: LedgerLike = None,
    ) -> QueryRelease:
        """Count the cells once and release the answers.

        `data` is a histogram (an integer array, a sparse array, a dict from cell to count), or a
        table with one of the `columns` for every attribute, whose values are the categories of
        the plan, or codes 0, 1, … if it has none.

        The order of the steps is that of `planning.run`.
        """
        return run(QueriesWork(self), data, columns, ledger)

    def assuming(self, *sentences: str) -> QueryPlan:
        """The same plan with more assumptions stated."""
        return replace(self, assumptions=(*self.assumptions, *sentences))

    def describe(self) -> str:
        """The plan in words and a table."""
        from muhat.planning.query_display import plan_text

        return plan_text(self)

    def plot(self) -> Figure:
        """The plan as a picture (needs the extra `plot`); returns a matplotlib Figure.

        The standard error of every answer, beside that of adding up noisy cells; and the error
        beside its lower bounds.
        """
        from muhat.planning.query_picture import plan_figure

        return plan_figure(self)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from muhat.planning.query_display import plan_html

        return plan_html(self)
