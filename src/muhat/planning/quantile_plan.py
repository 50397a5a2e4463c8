"""A plan for quantiles: what will be searched, at what cost, and how far off ranks may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from muhat import privacy
from muhat._words import SECRET_N
from muhat.errors import DataChanged
from muhat.ledger import LedgerLike
from muhat.mechanisms.quantiles.quantile import QuantileRecipe, rank_errors
from muhat.planning.caution import warn_of_large_delta
from muhat.planning.digest import digest_of
from muhat.planning.run import COUNT_THEM, Columns, check_rows, count_rows, run
from muhat.privacy import Neighbors, Privacy
from muhat.release.quantile_display import MISSING
from muhat.release.quantile_release import QuantileRelease

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data import Source
    from muhat.data.grid_counts import Window, WindowCounts

CONFIDENCES = (0.5, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QuantilePlan:
    """Quantiles of columns by noisy searches, ready to be released; `plan_quantile` makes it.

    Rank errors depend on no data, and not on n either: they are known before anything is paid.
    """

    q: float | tuple[float, ...]
    privacy: Privacy
    missing: str
    recipe: QuantileRecipe
    is_counted: bool = False

    statistic = "quantile"
    columns = certificate = expected_error = None
    """No lower bound on rank errors is proved yet; errors of values depend on the data."""
    alternatives: ClassVar[tuple[()]] = ()

    @property
    def mechanism(self) -> str:
        """The mechanism and its noise."""
        return f"noisy-search ({self.recipe.law.name})"

    @property
    def n(self) -> int | None:
        """The public number of records; None if it is secret."""
        return self.recipe.n

    @property
    def neighbors(self) -> Neighbors:
        """The relation that the promise is about."""
        return self.recipe.protection.neighbors

    @property
    def contributions(self) -> int:
        """The most records of a person."""
        return self.recipe.protection.contributions

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

    def errors(self) -> list[tuple[float, int]]:
        """The largest rank error for confidences from a half to 0.999."""
        return [(level, int(self.rank_error(level).max())) for level in CONFIDENCES]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the promise and the errors rest on, in sentences."""
        records = "one record" if self.contributions == 1 else f"{self.contributions} records"
        number = "n is secret" if self.n is None else f"n = {self.n} is public"
        return (
            "records outside the bounds are clipped to them and all are rounded to the grid; "
            "ranks are about these records",
            MISSING[self.missing],
            number,
            *(["n was counted from the data"] if self.is_counted else []),
            f"a person contributes at most {records}",
            "the bounds, the resolution and q were chosen without looking at the data",
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""
        fields = {
            "schema": "muhat.planning.quantiles/1",
            "statistic": self.statistic,
            "privacy": privacy.to_dict(self.privacy),
            "missing": self.missing,
            "recipe": self.recipe.to_dict(),
        }
        return digest_of(fields)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON."""
        return {
            "schema": "muhat.planning.quantiles/1",
            "statistic": self.statistic,
            "mechanism": self.mechanism,
            "q": list(self.fractions),
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": self.n,
            "contributions": self.contributions,
            "grids": [grid.to_dict() for grid in self.recipe.grids],
            "missing": self.missing,
            "rank_errors": [
                {"confidence": level, "records": error} for level, error in self.errors()
            ],
            "certificate": None,
            "assumptions": list(self.assumptions),
            "cautions": list(privacy.cautions(self.privacy)),
            "digest": self.digest,
        }

    def release(
        self, data: Any, columns: Columns = None, ledger: LedgerLike = None
    ) -> QuantileRelease:
        """Read the data, one to three times, and release the quantiles; see `planning.run`."""
        return run(QuantileWork(self), data, columns, ledger)

    def describe(self) -> str:
        """The plan in words and a table."""
        from muhat.planning.quantile_display import plan_text

        return plan_text(self)

    def plot(self) -> Figure:
        """The rank error against the confidence (needs the extra `plot`), a matplotlib Figure."""
        from muhat.planning.quantile_display import plan_figure

        return plan_figure(self)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from muhat.planning.quantile_display import plan_html

        return plan_html(self)


@dataclass(frozen=True)
class QuantileWork:
    """The work of a plan for quantiles; with `count` the rows are counted and declared public."""

    plan: QuantilePlan
    count: bool = False

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as a column for every grid."""
        from muhat.data import open_source
        from muhat.data.selection import column_names

        return open_source(data, column_names(columns), len(self.plan.recipe.grids))

    def counted(self, source: Source) -> QuantilePlan:
        """The plan for these records; a public n is compared, or counted."""
        plan, n = self.plan, self.plan.n
        if n is None:
            return plan
        if self.count:
            n = count_rows(source, "quantile")
            plan = replace(plan, recipe=replace(plan.recipe, n=n), is_counted=True)
        else:
            hint = (*COUNT_THEM, ", or use ", SECRET_N, " to keep it secret.")
            check_rows(n, source, hint)
        warn_of_large_delta(plan.privacy, n, stacklevel=4)
        return plan

    def admit(self, plan: QuantilePlan, source: Source) -> None:
        """Nothing else can fail."""

    def note(self, plan: QuantilePlan, source: Source) -> str:
        """The quantiles and the columns."""
        named = ", ".join(f"{one:g}" for one in plan.fractions)
        return f"quantile {named} of {', '.join(source.columns)}"

    def read(
        self, plan: QuantilePlan, source: Source, head: dict[str, Any] | None
    ) -> QuantileRelease:
        """Count, and search among the counts."""
        from muhat.data.grid_counts import count_windows

        recipe = plan.recipe

        def count(windows: Sequence[Window]) -> list[WindowCounts]:
            rule = "drop" if plan.missing == "drop" else "center"
            tables = count_windows(source, recipe.grids, windows, missing=rule)
            if recipe.n is not None and any(table.rows != recipe.n for table in tables):
                raise DataChanged("the number of rows changed between counting and reading.")
            return tables

        answers = recipe.run(count)
        return QuantileRelease(
            q=plan.q,
            columns=source.columns,
            grids=recipe.grids,
            searches=recipe.searches,
            found=answers.found,
            missing=plan.missing,
            recorded=answers.recorded,
            counts=recipe.counts,
            privacy=plan.privacy,
            neighbors=plan.neighbors,
            n=plan.n,
            contributions=plan.contributions,
            assumptions=plan.assumptions,
            plan_digest=plan.digest,
            ledger_head=head,
        )
