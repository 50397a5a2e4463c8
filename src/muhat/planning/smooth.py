"""A plan for an unbiased mean on a box although the number of records is secret.

Nothing that a plan says depends on that number. Errors are None unless a public n_min is given:
then they hold if there are so many records or more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat._words import Parameter
from muhat.domains import Box
from muhat.domains.lattice import BoxLattice
from muhat.domains.norms import p_norm
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike
from muhat.mechanisms.sums.smooth import SmoothRecipe
from muhat.noise.student_spread import StudentSpread
from muhat.planning.digest import digest_of
from muhat.planning.run import Columns, Uncounted, account_of, chosen_columns, note_of, run
from muhat.planning.task import Task, assumptions
from muhat.privacy import Neighbors, Privacy
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.data import Source


_ROOT_BITS = 60


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SmoothPlan:
    """An unbiased mean of a secret number of records in a box; `plan_mean` makes it."""

    domain: Box
    privacy: Privacy
    p: float
    weights: Floats
    missing: str
    contributions: int
    columns: tuple[str, ...] | None
    recipe: SmoothRecipe
    n_min: int | None
    assumptions: tuple[str, ...]

    statistic = "mean"
    mechanism = "smooth"
    neighbors = Neighbors.ADD_REMOVE
    n = None
    certificate = None
    """None: no bound is known for unbiased means of a secret number of records."""
    alternatives: ClassVar[tuple[()]] = ()
    bias: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.recipe.epsilon > pure_epsilon(self.privacy):
            raise InvalidInput(
                "a plan's promise is the one its noise was made for; make a new plan."
            )

    @property
    def dim(self) -> int:
        """The number of values released."""
        return self.domain.dim

    @property
    def spread(self) -> StudentSpread | None:
        """The noise with n_min records, more than with any larger number; None without n_min."""
        if self.n_min is None:
            return None
        return StudentSpread(self.recipe.standard_error_at(self.n_min))

    @property
    def standard_error(self) -> Floats | None:
        """At most this, with n_min records or more, of shape (d,); None without n_min."""
        return None if self.spread is None else self.spread.standard_error

    @property
    def covariance(self) -> Floats | None:
        """At most this, with n_min records or more, of shape (d, d); None without n_min."""
        return None if self.spread is None else self.spread.covariance

    @property
    def expected_error(self) -> float | None:
        """The error with n_min records or more, at most; None without n_min."""
        return None if self.n_min is None else self.error_at(self.n_min)

    @property
    def expected_error_method(self) -> str | None:
        """How `expected_error` was found."""
        if self.n_min is None:
            return None
        return "exact" if self.p == 2 else "bound"

    def error_at(self, n: int) -> float:
        """The weighted root mean square ℓ_p error if there were n records, at most.

        For p > 2 bounded by the ℓ₂ error.
        """
        errors = self.weights * self.recipe.standard_error_at(_check.count("n", n))
        return float(p_norm(errors, 2.0))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""
        fields = {
            "schema": "muhat.planning.smooth/1",
            "privacy": privacy.to_dict(self.privacy),
            "missing": self.missing,
            "recipe": self.recipe.to_dict(),
        }
        return digest_of(fields)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON."""
        errors = self.standard_error
        return {
            "schema": "muhat.planning.smooth/1",
            "statistic": self.statistic,
            "mechanism": self.mechanism,
            "columns": None if self.columns is None else list(self.columns),
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": None,
            "n_min": self.n_min,
            "p": "inf" if math.isinf(self.p) else self.p,
            "weights": self.weights.tolist(),
            "missing": self.missing,
            "contributions": self.contributions,
            "domain": self.domain.to_dict(),
            "bias": self.bias,
            "covers_replacement": self.recipe.covers_replacement,
            "expected_error": self.expected_error,
            "expected_error_method": self.expected_error_method,
            "standard_error": None if errors is None else errors.tolist(),
            "certificate": None,
            "assumptions": list(self.assumptions),
            "cautions": list(privacy.cautions(self.privacy)),
            "digest": self.digest,
        }

    def release(
        self,
        data: Any,
        columns: Sequence[str] | Sequence[int] | None = None,
        ledger: LedgerLike = None,
    ) -> Release:
        """Read the data once and release the mean; see `planning.run`."""
        return run(SmoothWork(self), data, columns, ledger)

    def assuming(self, *sentences: str) -> SmoothPlan:
        """The same plan with more assumptions stated."""
        return replace(self, assumptions=(*self.assumptions, *sentences))

    def describe(self) -> str:
        """The plan in words and a table."""
        from muhat.planning.smooth_display import plan_text

        return plan_text(self)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from muhat.planning.smooth_display import plan_html

        return plan_html(self)


@dataclass(frozen=True)
class SmoothWork(Uncounted[SmoothPlan, "Source"]):
    """The work of an unbiased mean of a secret number of records."""

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as records."""
        from muhat.data import open_source

        return open_source(data, chosen_columns(self.plan.columns, columns), self.plan.dim)

    def note(self, plan: SmoothPlan, source: Source) -> str:
        """The statistic and the columns."""
        return note_of(plan.statistic, source.columns)

    def read(self, plan: SmoothPlan, source: Source, head: dict[str, Any] | None) -> Release:
        """One pass over the records."""
        from muhat.data import exact_sums

        rule = "drop" if plan.missing == "drop" else "center"
        sums = exact_sums(source, plan.recipe.lattice, missing=rule)
        value = [float(value) for value in plan.recipe.run(sums.total, sums.rows)]
        return Release(
            statistic=plan.statistic,
            value=np.array(value),
            columns=source.columns,
            domain=plan.domain,
            noise=plan.spread,
            certificate=None,
            **account_of(plan, head),
            bias=plan.bias,
            missing=plan.missing,
        )


def plan_smooth_mean(task: Task, n_min: int | None) -> SmoothPlan:
    """The plan for a task whose n is secret."""
    if not isinstance(task.domain, Box):
        raise InvalidInput(
            "an unbiased mean with a secret n is for records in a box: ",
            Parameter(
                "domain", "domain=mh.Box([0], [1]) or a dict of bounds", "--bounds COLUMN=LOW:HIGH"
            ),
            ".",
            hint=(
                "For other domains leave ",
                Parameter("unbiased"),
                " out, or make n public.",
            ),
        )
    lattice = BoxLattice.around(task.domain.lower, task.domain.upper)
    n_min = None if n_min is None else _check.count("n_min", n_min)
    recipe = SmoothRecipe.of(
        lattice,
        pure_epsilon(task.privacy),
        contributions=task.contributions,
        p=task.p,
        weights=task.weights,
        n_min=n_min,
    )
    lines = tuple(
        line
        for line in assumptions(
            "mean", task.neighbors, None, task.missing, task.contributions, by_column=False
        )
        if not line.startswith("a ratio")
    )
    lines = (*lines, _about_replacement(recipe))
    if n_min is not None:
        lines = (*lines, f"standard errors and intervals hold if there are {n_min} records or more")
    return SmoothPlan(
        domain=task.domain,
        privacy=task.privacy,
        p=task.p,
        weights=task.weights,
        missing=task.missing,
        contributions=task.contributions,
        columns=task.columns,
        recipe=recipe,
        n_min=n_min,
        assumptions=lines,
    )


def _about_replacement(recipe: SmoothRecipe) -> str:
    if recipe.covers_replacement:
        return "the promise holds where a record is replaced, too"
    return "a record that is replaced is one removed and one added: it may cost twice as much"


def pure_epsilon(promise: Privacy) -> Fraction:
    """An ε whose pure privacy implies the promise: ε itself, or √(2ρ), rounded down."""
    epsilon = promise.simple_pure
    if epsilon is None:
        raise InvalidInput(
            "an unbiased mean with a secret n keeps pure privacy and what follows from it: use ",
            Parameter(
                "privacy",
                "mh.PureDP, mh.ZCDP or mh.ApproxDP",
                "--epsilon, --rho or --epsilon with --delta",
            ),
            ", or make n public.",
        )
    return epsilon
