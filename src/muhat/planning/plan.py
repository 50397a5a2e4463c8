"""A plan: what will be done, at what cost, with what error, before any data is opened."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check, bounds, privacy
from muhat.domains import Ball, Domain
from muhat.domains.lattice import BoxLattice
from muhat.ellipsoids import smallest_ellipsoid
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.ledger import Ledger, as_ledger
from muhat.mechanisms.ratio import Ratio
from muhat.mechanisms.recipe import Protection, Recipe
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors, Privacy, PureDP
from muhat.release.certificate import Certificate
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.data import Source

Floats = NDArray[np.float64]
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
        promised = Protection.of(self.privacy, self.neighbors, self.contributions)
        if self.recipe.protection != promised:
            raise InvalidInput(
                "a plan's promise, neighbors and contributions are those its noise was made for; "
                "make a new plan instead of changing them."
            )

    @property
    def mechanism(self) -> str:
        """The recipe's name; "ratio" for a mean whose number of records is secret."""
        return "ratio" if self._is_ratio else self.recipe.name

    @property
    def _is_ratio(self) -> bool:
        return self.statistic == "mean" and self.n is None

    @property
    def dim(self) -> int:
        """The number of values released."""
        return 1 if self.domain is None else self.domain.dim

    @cached_property
    def spread(self) -> Spread | None:
        """The noise on the released value; None for a ratio, where the data decide."""
        recipe = self.recipe
        if self._is_ratio:
            return None
        rows = recipe.query.rows
        if self.domain is None:
            return Spread(recipe.law, rows, recipe.row_scales)
        if recipe.query.count_multiplier is not None:
            root = np.diag(recipe.scales) if recipe.factor is None else recipe.factor
            factor = np.column_stack([root, self.domain.center * recipe.row_scales[-1]])
            return Spread(recipe.law, rows, np.linalg.norm(factor, axis=1), factor)
        spread = Spread(recipe.law, rows, recipe.scales, recipe.factor)
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

    def error_at(self, n: int) -> float:
        """The weighted root mean square error if there were n records.

        For a ratio: asymptotic in n, at the mean for which it is largest.
        """
        n = _check.count("n", n)
        if not self._is_ratio:
            raise InvalidInput("error_at is for a mean with a secret n; use expected_error.")
        assert self.domain is not None
        recipe = self.recipe
        spread = Spread(recipe.law, recipe.query.rows, recipe.scales, recipe.factor)
        noise, _ = spread.weighted(self.weights).root_mean_square(self.p)
        count = recipe.row_scales[-1] * math.sqrt(recipe.law.variance(recipe.query.rows))
        return math.hypot(noise, count * self.domain.farthest(self.weights)) / n

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
        """How close to the best possible; None for a ratio, which is biased."""
        if self._error is None:
            return None
        error, method = self._error
        order = "ℓ∞" if math.isinf(self.p) else f"ℓ{self.p:g}".translate(SUBSCRIPTS)
        weighted = "weighted " if (self.weights != 1).any() else ""
        metric = f"root mean square {weighted}{order} error of the {self.statistic}"
        return Certificate(metric, self.p, error, method, self._lower_bounds())

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
            contact_pairs=bounds.contact_pairs(self.domain),
            contributions=self.contributions,
        )
        if self._has_packing_bound:
            assert isinstance(self.domain, Ball)
            size = self.domain.radius * scale
            found += bounds.ball(self.n, self.domain.dim, size, self.privacy)
        return found

    @property
    def _has_packing_bound(self) -> bool:
        """Whether the bound on any purely private mechanism speaks of this plan's error."""
        plain = self.p == 2 and self.contributions == 1 and not (self.weights != 1).any()
        return plain and isinstance(self.domain, Ball) and isinstance(self.privacy, PureDP)

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
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

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
            "digest": self.digest,
        }

    def release(
        self,
        data: Any,
        columns: Sequence[str] | Sequence[int] | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
    ) -> Release:
        """Read the data once and release the answer.

        Order: arguments and metadata are checked; if n is public the rows are counted, and the
        only outcome is equal or not; the ledger is charged; then values are read. A failure
        after the charge keeps the charge.
        """
        from muhat.data import open_source
        from muhat.data.selection import column_names

        columns = column_names(columns)
        if self.columns and columns and tuple(map(str, columns)) != self.columns:
            raise InvalidInput(
                "the plan names its columns already: "
                f"{', '.join(self.columns or ())}; leave columns out."
            )
        account = as_ledger(ledger)
        counted_only = self.domain is None
        source = open_source(
            data,
            columns=self.columns if columns is None else columns,
            dim=None if counted_only else self.dim,
        )
        if self.n is not None and source.rows() != self.n:
            raise InvalidInput(
                f"n = {self.n}, but the data have another number of rows. "
                "Leave n out to have the rows counted, or use n=None to keep it secret."
            )
        return self.release_from(source, account)

    def release_from(self, source: Source, ledger: Ledger | None) -> Release:
        """Charge, read, add the noise: the second half of `release`."""
        from muhat.data import exact_sums

        # Whatever can fail without the data fails before the charge.
        certificate, digest = self.certificate, self.digest
        if certificate is not None and not math.isfinite(certificate.error):
            raise InvalidInput("the expected error is not finite; nothing was spent.")
        head = None
        if ledger is not None:
            entry = ledger.charge(
                self.privacy,
                neighbors=self.neighbors,
                plan_digest=digest,
                note=_note(self.statistic, source.columns),
            )
            head = entry.head.to_dict()
        lattice = self.recipe.query.lattice
        totals: tuple[int, ...] = ()
        if lattice is None:
            rows = _count(source)
        else:
            sums = exact_sums(source, lattice, missing=self.missing)
            totals, rows = sums.total, sums.rows
        if self.n is not None and rows != self.n:
            raise DataChanged("the number of rows changed between counting and reading.")
        value, noise = self._read(self.recipe.run(totals, rows))
        return Release(
            statistic=self.statistic,
            value=value,
            columns=("count",) if self.domain is None else source.columns,
            mechanism=self.mechanism,
            privacy=self.privacy,
            neighbors=self.neighbors,
            n=self.n,
            contributions=self.contributions,
            domain=self.domain,
            noise=noise,
            certificate=certificate,
            assumptions=self.assumptions,
            plan_digest=digest,
            ledger_head=head,
        )

    def _read(self, noisy: list[Fraction]) -> tuple[Floats, Spread | Ratio]:
        """The value, and its spread, from the noisy sums: from here on everything is public."""
        recipe = self.recipe
        if self._is_ratio:
            return self._read_ratio(noisy)
        assert self.spread is not None
        if self.domain is None:
            return np.array([float(noisy[0])]), self.spread
        weight = Fraction(1)
        if self.statistic == "mean":
            noisy = [total / self.n for total in noisy]  # type: ignore[operator]
        elif recipe.query.from_zero:
            weight = Fraction(0)
        elif self.n is not None:
            weight = Fraction(self.n)
        else:
            weight = noisy[-1] if recipe.query.count_multiplier is not None else Fraction(0)
        totals = noisy[:-1] if recipe.query.count_multiplier is not None else noisy
        lattice = recipe.query.lattice
        if isinstance(lattice, BoxLattice):
            # Exact up to the last step: a centre far from 0 must not swallow the digits.
            exact = [
                weight * units * step + total
                for units, step, total in zip(
                    lattice.center_units, lattice.grid, totals, strict=True
                )
            ]
            return np.array([float(x) for x in exact]), self.spread
        return float(weight) * self.domain.center + recipe.to_domain(totals), self.spread

    def _read_ratio(self, noisy: list[Fraction]) -> tuple[Floats, Ratio]:
        assert self.domain is not None
        recipe = self.recipe
        spread = Spread(recipe.law, recipe.query.rows, recipe.scales, recipe.factor)
        ratio = Ratio(
            recipe.to_domain(noisy[:-1]),
            float(noisy[-1]),
            spread,
            float(recipe.row_scales[-1]),
            self.domain.half_widths,
        )
        return self.domain.clip(self.domain.center + ratio.offset), ratio

    def assuming(self, *sentences: str) -> Plan:
        """The same plan with more assumptions stated."""
        return replace(self, assumptions=(*self.assumptions, *sentences))

    def describe(self) -> str:
        """The plan in words and a table."""
        from muhat.planning.display import plan_text

        return plan_text(self)

    def plot(self) -> Any:
        """The plan as a picture (needs the extra `plot`); returns a matplotlib Figure."""
        from muhat.planning.picture import plan_figure

        return plan_figure(self)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from muhat.planning.display import plan_html

        return plan_html(self)


def _count(source: Source) -> int:
    """The number of records, when it is itself what is released."""
    try:
        rows: int | None = source.rows()
    except DataChanged:
        raise
    except Exception:
        rows = None
    if rows is None:
        # Raised outside the handler: a reader's exception may quote what it read.
        raise SourceFailed("the records could not be counted to the end. The charge stays.")
    return rows


def _note(statistic: str, columns: Sequence[str]) -> str:
    """What the ledger's entry says, in characters that every file can hold."""
    text = f"{statistic} of {', '.join(columns)}" if columns else statistic
    return text[:200].encode("utf-8", "replace").decode()
