"""A plan: what will be done, at what cost, with what error, before any data is opened."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check, bounds, privacy
from muhat._arrays import Floats
from muhat.domains import Ball, Domain
from muhat.domains.lattice import ColumnsLattice
from muhat.ellipsoids import smallest_ellipsoid
from muhat.ellipsoids.result import norm
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike
from muhat.mechanisms.sums.joint import farthest_from
from muhat.mechanisms.sums.recipe import Protection, Recipe
from muhat.noise.law import absolute_moment
from muhat.noise.spread import Spread
from muhat.planning.digest import digest_of
from muhat.planning.execution import SumsWork
from muhat.planning.run import run
from muhat.privacy import Neighbors, Privacy
from muhat.release.certificate import Certificate
from muhat.release.release import Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan:
    """A private mean, sum or count, ready to be released; `muhat.planning` makes it.

    `alternatives` lists the other mechanisms that were possible with their expected errors.
    """

    statistic: str
    domain: Domain | None
    n: int | None
    privacy: Privacy
    neighbors: Neighbors
    p: float
    weights: Floats
    missing: str
    contributions: int
    columns: tuple[str, ...] | None
    recipe: Recipe
    assumptions: tuple[str, ...]
    alternatives: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        promised = Protection.of(
            self.privacy, self.neighbors, self.contributions, pure=self.recipe.protection.pure
        )
        if self.recipe.protection != promised:
            raise InvalidInput(
                "a plan's promise, neighbors and contributions are those its noise was made for; "
                "make a new plan instead of changing them."
            )

    @property
    def mechanism(self) -> str:
        """The recipe's name; "ratio" for a mean whose number of values is secret."""
        return "ratio" if self.is_ratio else self.recipe.name

    @property
    def is_ratio(self) -> bool:
        """Whether the answer is a noisy sum divided by a noisy count."""
        return self.statistic == "mean" and (self.n is None or self.counts_columns)

    @property
    def counts_columns(self) -> bool:
        """Whether the number of recorded values of every column is released."""
        lattice = self.recipe.query.lattice
        return isinstance(lattice, ColumnsLattice) and lattice.counts

    @property
    def dim(self) -> int:
        """The number of values released."""
        return 1 if self.domain is None else self.domain.dim

    @cached_property
    def spread(self) -> Spread | None:
        """The noise on the released value; None for a ratio, where the data decide."""
        recipe = self.recipe
        if self.is_ratio:
            return None
        rows = recipe.noise_rows
        if self.domain is None:
            return Spread(recipe.law, rows, recipe.row_scales)
        if recipe.query.count_multiplier is not None:
            root = np.diag(recipe.scales) if recipe.factor is None else recipe.factor
            assert recipe.center is not None
            factor = np.column_stack([root, recipe.center * recipe.row_scales[-1]])
            return Spread(recipe.law, rows, np.linalg.norm(factor, axis=1), factor)
        spread = recipe.sum_spread
        return spread.shrunk(self.n) if self.statistic == "mean" and self.n else spread

    @cached_property
    def _error(self) -> tuple[float, str] | None:
        if self.spread is None:
            return None
        return self.spread.weighted(self.weights).root_mean_square(self.p)

    @property
    def expected_error(self) -> float | None:
        """(E‖diag(weights)·noise‖_p²)^½ against the answer for the clipped records.

        None for a ratio, whose error depends on the data: see `error_at`.
        """
        return None if self._error is None else self._error[0]

    @property
    def expected_error_method(self) -> str | None:
        """How `expected_error` was found: exact, quadrature, bound or monte carlo."""
        return None if self._error is None else self._error[1]

    @cached_property
    def projected_error(self) -> float | None:
        """At most this root mean square ℓ₂ error is left after `release.projected()`.

        None for what is not a mean with a public n.
        """
        if self.spread is None or self.domain is None or self.statistic != "mean":
            return None
        from muhat.planning.projection import projected_error

        return projected_error(self.domain, self.spread)

    def error_at(self, n: int) -> float:
        """The weighted root mean square error if there were n records, with nothing missing.

        For a ratio: asymptotic in n, at the mean for which it is largest.
        """
        n = _check.count("n", n)
        if not self.is_ratio:
            raise InvalidInput("error_at is for a mean that is a ratio; use expected_error.")
        assert self.domain is not None
        recipe = self.recipe
        if self.counts_columns:
            worst = replace(recipe.sum_spread, scales=self._scales_at(self.domain.half_widths))
            return worst.weighted(self.weights).root_mean_square(self.p)[0] / n
        noise, _ = recipe.sum_spread.weighted(self.weights).root_mean_square(self.p)
        count = recipe.row_scales[-1] * math.sqrt(recipe.law.variance(recipe.noise_rows))
        assert recipe.center is not None
        farthest = farthest_from(self.domain, recipe.center, self.weights)
        return math.hypot(noise, count * farthest) / n

    def _scales_at(self, offsets: Floats) -> Floats:
        """The scale of A − τ·N̂ in every column, for means τ at these offsets from the centre."""
        counts = self.recipe.row_scales[-self.dim :]
        return np.hypot(self.recipe.scales, offsets * counts)

    def standard_error_at(self, n: int, offsets: Floats) -> Floats:
        """The asymptotic standard errors of a ratio of n values a column, of shape (d,).

        The means lie at these `offsets` from the middle of their bounds.
        """
        spread = self.recipe.sum_spread
        deviation = math.sqrt(spread.law.variance(spread.rows))
        return np.asarray(self._scales_at(offsets) * deviation / n)

    @property
    def standard_error(self) -> Floats | None:
        """The standard deviation of the noise on each value, of shape (d,); None for a ratio."""
        return None if self.spread is None else self.spread.standard_error

    @property
    def covariance(self) -> Floats | None:
        """The covariance of the noise on the value, of shape (d, d); None for a ratio."""
        return None if self.spread is None else self.spread.covariance

    @cached_property
    def certificate(self) -> Certificate | None:
        """How close to the best possible; None if the number of records is secret too.

        Where values may be missing it is about complete data, to first order, at the worst mean.
        """
        metric = metric_name(self.p, self.statistic, self.weights, self.domain)
        if self.is_ratio and self.n is not None:
            metric += ", if nothing is missing, at the worst mean, to first order"
            error, method = self.error_at(self.n), "first order"
            return Certificate(metric, self.p, error, method, self._lower_bounds(), None)
        if self._error is None:
            return None
        error, method = self._error
        return Certificate(metric, self.p, error, method, self._lower_bounds(), self._power_error)

    @property
    def _power_error(self) -> float | None:
        """(E‖noise‖_p^p)^{1/p} for normal noise: m_p·√tr_{p/2}, exact for every correlation."""
        if self.spread is None or self.spread.law.name != "normal" or math.isinf(self.p):
            return None
        return absolute_moment(self.p) * norm(self.weights * self.spread.scales, self.p)

    def _lower_bounds(self) -> tuple[bounds.LowerBound, ...]:
        if self.domain is None:
            return bounds.unbiased_sum(1.0, privacy=self.privacy, contributions=self.contributions)
        if self.n is None:
            body = smallest_ellipsoid(self.domain, self.p, "symmetric", weights=self.weights)
            return bounds.unbiased_sum(
                body.floor, privacy=self.privacy, contributions=self.contributions
            )
        body = smallest_ellipsoid(self.domain, self.p, weights=self.weights)
        scale = 1 if self.statistic == "mean" else self.n
        found = bounds.unbiased_mean(
            body.floor * scale,
            n=self.n,
            privacy=self.privacy,
            contact_pairs=bounds.contact_pairs(body),
            contributions=self.contributions,
        )
        if self._is_plain_ball:
            assert isinstance(self.domain, Ball)
            size = self.domain.radius * scale
            found = bounds.any_mean(self.n, self.domain.dim, size, self.privacy) + found
        return found

    @property
    def _is_plain_ball(self) -> bool:
        """Whether the bounds on any private mean in a ball speak of this plan's error."""
        plain = self.p == 2 and self.contributions == 1 and not (self.weights != 1).any()
        return plain and isinstance(self.domain, Ball)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""
        fields = {
            "schema": "muhat.planning.plan/1",
            "statistic": self.statistic,
            "domain": None if self.domain is None else self.domain.to_dict(),
            "n": self.n,
            "privacy": privacy.to_dict(self.privacy),
            "p": str(self.p),
            "weights": [float(weight).hex() for weight in self.weights],
            "missing": self.missing,
            "recipe": self.recipe.to_dict(),
        }
        return digest_of(fields)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON."""
        errors = self.standard_error
        return {
            "schema": "muhat.planning.plan/1",
            "statistic": self.statistic,
            "mechanism": self.mechanism,
            "columns": None if self.columns is None else list(self.columns),
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": self.n,
            "p": "inf" if math.isinf(self.p) else self.p,
            "weights": self.weights.tolist(),
            "missing": self.missing,
            "contributions": self.contributions,
            "domain": None if self.domain is None else self.domain.to_dict(),
            "expected_error": self.expected_error,
            "expected_error_method": self.expected_error_method,
            "standard_error": None if errors is None else errors.tolist(),
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
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
    ) -> Release:
        """Read the data once and release the answer, in the order of `planning.run`."""
        return run(SumsWork(self), data, columns, ledger)

    def assuming(self, *sentences: str) -> Plan:
        """The same plan with more assumptions stated."""
        return replace(self, assumptions=(*self.assumptions, *sentences))

    def describe(self) -> str:
        """The plan in words and a table."""
        from muhat.planning.display import plan_text

        return plan_text(self)

    def plot(self, coordinates: Sequence[int | str] | None = None) -> Figure:
        """The plan as a picture (needs the extra `plot`); returns a matplotlib Figure.

        For two coordinates, the first two unless chosen: what one record can move, the sphere
        that is commonly used, our ellipse; and the error beside its lower bounds.
        """
        from muhat.planning.picture import plan_figure

        return plan_figure(self, coordinates)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from muhat.planning.display import plan_html

        return plan_html(self)


def metric_name(
    p: float, statistic: str, weights: ArrayLike | None = None, domain: Domain | None = None
) -> str:
    """What an error is, in words, and in which unit if columns are weighted."""
    order = "ℓ∞" if math.isinf(p) else f"ℓ{p:g}".translate(SUBSCRIPTS)
    plain = f"{order} error of the {statistic}"
    if weights is None or domain is None or np.all(np.equal(weights, 1)):
        return f"root mean square {plain}"
    if np.allclose(np.asarray(weights) * domain.half_widths, 0.5, rtol=1e-12, atol=0.0):
        return f"root mean square {plain}, in widths of the bounds"
    return f"root mean square weighted {plain}"
