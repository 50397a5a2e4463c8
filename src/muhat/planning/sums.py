"""Noise on the exact integer sums of bounded records: means, sums and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat import _check, bounds
from muhat._arrays import Floats
from muhat.bounds.lower_bound import rounded_down
from muhat.domains import Domain
from muhat.domains.lattice import Lattice
from muhat.ellipsoids import smallest_ellipsoid
from muhat.ellipsoids.result import norm
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.mechanisms.sums.counted_sum import NUMBER_SHARE, CountedSum
from muhat.mechanisms.sums.joint import farthest_from, farthest_point
from muhat.mechanisms.sums.mechanisms import MECHANISMS
from muhat.mechanisms.sums.pair import PairRecipe
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.normal import absolute_moment
from muhat.noise.spread import Spread
from muhat.planning.answers import Estimate, answer
from muhat.planning.display import alternatives_line
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.run import counted_terms, note_of
from muhat.planning.terms import Terms
from muhat.release.certificate import Certificate, metric_name, unit_of
from muhat.release.display import certificate_lines, shortened, significant
from muhat.release.vector_answer import VectorAnswer
from muhat.statistics.bounded import chosen_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data import Source

WORDS = {
    **{each.name: each.summary for each in MECHANISMS.values()},
    "geometric": "stairs, the least noise for one number",
    "pair": "stairs on the sum and on the number of its values together",
    "joint": "sum and count together, normal or K-norm noise",
    "ratio": "a noisy sum divided by a noisy count",
}

SQUARES_WORTH = 1.01
"""Squares that cost less than this are released unasked."""

LARGEST_ENDED = 1024
"""Dimensions in which the ellipsoid around all that can be added at an end is sought."""

END_ERROR = 2.0**-48
"""Of a coordinate of an end, relative to the numbers that it is computed from."""

NUMBERS = (100, 1_000, 10_000, 100_000, 1_000_000)
"""Numbers of records whose errors are shown, where n is secret."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NoisySums(Mechanism):
    """A private mean, sum or count of bounded records, by one recipe."""

    domain: Domain | None
    p: float
    weights: Floats
    missing: str
    recipe: Recipe

    def keeps(self, terms: Terms) -> bool:
        """Whether the recipe was proved for them."""
        return self.recipe.protection == terms.protection

    @property
    def name(self) -> str:
        """The recipe's name; "ratio" for a mean whose number of values is secret."""
        return "ratio" if self.is_ratio else self.recipe.name

    @property
    def words(self) -> str:
        """The name in more words."""
        both = self.is_ratio and isinstance(self.recipe, PairRecipe)
        stairs = ", with stairs on both" if both else ""
        if isinstance(self.recipe, CountedSum):
            part = f"{100 * float(NUMBER_SHARE):.2g} %"
            stairs = f"; {part} of ε for the number of recorded values"
        return WORDS[self.name] + stairs

    @property
    def is_ratio(self) -> bool:
        """Whether the answer is a noisy sum divided by a noisy count."""
        return self.statistic == "mean" and (self.terms.is_secret or self.counts_columns)

    @property
    def counts_columns(self) -> bool:
        """Whether the number of recorded values of every column is released."""
        return self.recipe.query.column_counts > 0

    @property
    def dim(self) -> int:
        """The number of values released."""
        return 1 if self.domain is None else self.domain.dim

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the promise and the errors rest on; of a count, the person alone."""
        whole = super().assumptions
        return (self.terms.person(), *self.said) if self.domain is None else whole

    @property
    def caveats(self) -> tuple[str, ...]:
        """Of a ratio, whether it is biased."""
        if not self.is_ratio:
            return ()
        secret = self.terms.is_secret
        known = "slightly biased" if secret else "unbiased to first order"
        return (f"a ratio of a noisy sum and a noisy count: {known}",)

    @cached_property
    def spread(self) -> Spread | None:
        """The noise on the released value; None for a ratio, where the data decide."""
        recipe = self.recipe
        if self.is_ratio or self._waits_for_n:
            return None
        rows = recipe.noise_rows
        if self.domain is None:
            return Spread(recipe.law, rows, recipe.row_scales)
        if isinstance(recipe, PairRecipe):
            return recipe.from_zero_spread
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

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The number of values, for a ratio or until they are counted."""
        return ("n",) if self.is_ratio or self._waits_for_n else ()

    @property
    def _waits_for_n(self) -> bool:
        """Whether sums will be divided by a public n that has not been counted yet."""
        return self.statistic == "mean" and self.n is None and not self.terms.is_secret

    def error_if(self, n: int) -> float:
        """Of a ratio asymptotic in n, at the mean for which it is largest, with nothing missing."""
        n = _check.count("n", n)
        if not self.is_ratio:
            return self.with_records(n).expected_error or 0.0
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

    @property
    def error_by_record(self) -> float:
        """What mechanisms are compared by: the error, or of a mean the error times n."""
        n = self.n or 1
        return n * self.error_if(n) if self.unknowns else self.expected_error or 0.0

    @property
    def handicap(self) -> float:
        """By how much its error must be smaller for what others release beside."""
        return 1.0 if self.recipe.query.square_rows else SQUARES_WORTH

    def with_records(self, n: int) -> NoisySums:
        """The same noise on the sums of n records."""
        return replace(self, terms=replace(self.terms, n=n))

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The other mechanisms that were possible, with their errors; none where n is unknown.

        Of a ratio these are errors at the worst mean.
        """
        if not self.unknowns:
            return super().alternatives
        if self.n is None:
            return ()
        sums = [rival for rival in self.rivals if isinstance(rival, NoisySums)]
        return tuple((each.full_name, each.error_if(self.n)) for each in sums)

    @property
    def full_name(self) -> str:
        """The name among ratios."""
        return f"{self.recipe.name} {self.name}"

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

    @cached_property
    def _metric(self) -> str:
        return metric_name(self.p, self.statistic, self.weights, self.domain)

    @cached_property
    def certificate(self) -> Certificate | None:
        """How close to the best possible; None if n is secret: see `certificate_at`.

        Where values may be missing it is about complete data, to first order, at the worst mean.
        """
        metric = self._metric
        if self.is_ratio and self.n is not None:
            metric += ", if nothing is missing, at the worst mean, to first order"
            error, method = self.error_if(self.n), "first order"
            return Certificate(metric, self.p, error, method, self._lower_bounds(), None)
        if self._error is None:
            return None
        error, method = self._error
        return Certificate(metric, self.p, error, method, self._lower_bounds(), self._power_error)

    def certificate_at(self, n: int) -> Certificate:
        """How close to the best possible a mean is if n, which is secret, were this number.

        About complete data, to first order, at the worst mean.
        """
        n = _check.count("n", n)
        if not (self.is_ratio and self.terms.is_secret):
            raise InvalidInput("n is not secret, or not divided by: see certificate.")
        metric = f"{self._metric}, at the worst mean, to first order, if there are {n:,} records"
        found = [
            bounds.secret_mean_bounds(
                gamma, n=n, privacy=self.privacy, places=places, contributions=self.contributions
            )
            for gamma, places in self._at_the_end
        ]
        best = max(found, key=lambda each: each[0].value or 0.0 if each else 0.0)
        return Certificate(metric, self.p, self.error_if(n), "first order", best, None)

    @cached_property
    def _at_the_end(self) -> list[tuple[float, int]]:
        """Γ_p(±(K − a)) for a mean a at an end of the domain, and how many points hold it.

        Of the smallest ellipsoid, and of the one segment to the other end, which is all of a line:
        few records have no room for many points.
        """
        domain, weights, center = self.domain, self.weights, self.recipe.center
        assert domain is not None
        assert center is not None
        end = farthest_point(domain, center, weights)
        other = farthest_point(domain, end, weights)
        found = [(norm(weights * (other - end), self.p) * (1 - 1e-12), 1)]
        if 1 < self.dim <= LARGEST_ENDED:
            body = smallest_ellipsoid(domain + -end, self.p, "symmetric", weights=weights)
            found.append((body.floor, bounds.contact_pairs(body)))
        # Ends are points of the domain up to their rounding, and Γ of a sum is at most both Γ's.
        rounding = norm(weights * domain.point_sizes(), self.p) * END_ERROR
        return [(max(0.0, gamma - rounding), places) for gamma, places in found]

    @property
    def _power_error(self) -> float | None:
        """(E‖noise‖_p^p)^{1/p} for normal noise: m_p·√tr_{p/2}, exact for every correlation."""
        if self.spread is None or not self.spread.law.stable or math.isinf(self.p):
            return None
        return absolute_moment(self.p) * norm(self.weights * self.spread.scales, self.p)

    def _lower_bounds(self) -> tuple[bounds.LowerBound, ...]:
        privacy, contributions = self.privacy, self.contributions
        if self.domain is None:
            return bounds.sum_bounds(1.0, privacy=privacy, contributions=contributions, dim=1)
        if self.n is None:
            body = smallest_ellipsoid(self.domain, self.p, "symmetric", weights=self.weights)
            found = bounds.sum_bounds(
                body.floor, privacy=privacy, contributions=contributions, dim=self.dim
            )
            if not self.domain.is_centered:
                return found
            return found + self._of_convex(1.0, body.floor, bounds.ADD_REMOVE)
        body = smallest_ellipsoid(self.domain, self.p, weights=self.weights)
        scale = 1 if self.statistic == "mean" else self.n
        found = bounds.mean_bounds(
            body.floor * scale,
            n=self.n,
            privacy=privacy,
            contact_pairs=bounds.contact_pairs(body),
            contributions=contributions,
            dim=self.dim,
        )
        radius = self.domain.euclidean_radius
        if radius is not None and self._is_plain:
            found = bounds.any_mean(self.n, self.dim, radius * scale, privacy) + found
        gamma = body.floor * scale / self.n
        found += self._of_convex(2 * scale / self.n, gamma, bounds.SUBSTITUTION)
        # A noisy sum divided by a noisy count is not additive noise.
        return tuple(each for each in found if not (self.is_ratio and each.is_of_noise))

    def _of_convex(self, size: float, gamma: float, given: str) -> tuple[bounds.LowerBound, ...]:
        """Where neighbours move answers by all of a convex body, `size`·(K − K)/2."""
        assert self.domain is not None
        terms: dict[str, Any] = {"privacy": self.privacy, "contributions": self.contributions}
        volume = bounds.volume_bound(
            self.domain, size, given, p=self.p, weights=self.weights, **terms
        )
        return volume + bounds.every_shift(self.domain, gamma, given, **terms)

    @property
    def _is_plain(self) -> bool:
        """Whether the bounds on any private mean in a ball speak of this error."""
        return self.p == 2 and self.contributions == 1 and not (self.weights != 1).any()

    def errors(self) -> list[tuple[Any, Any]]:
        """The standard error of every column; of a ratio at the worst mean, for numbers of records.

        Where values may be missing: of every column in the middle and at the ends of its bounds.
        """
        names = self.columns or [str(index) for index in range(self.dim)]
        if self.counts_columns and self.is_ratio and self.n is not None:
            assert self.domain is not None
            halves = self.domain.half_widths
            ends = (self.standard_error_at(self.n, at * halves) for at in (0.0, 1.0))
            return list(zip(names, zip(*ends, strict=True), strict=True))
        if self.standard_error is None:
            return [(number, self.error_if(number)) for number in NUMBERS]
        return list(zip(names, self.standard_error, strict=True))

    def decisive(self) -> dict[str, Any]:
        """The domain, how errors are measured, and the recipe."""
        return {
            "domain": None if self.domain is None else self.domain.to_dict(),
            "p": str(self.p),
            "weights": [float(weight).hex() for weight in self.weights],
            "missing": self.missing,
            "recipe": self.recipe.to_dict(),
        }

    def details(self) -> dict[str, Any]:
        """The domain and how errors are measured."""
        return {
            "p": "inf" if math.isinf(self.p) else self.p,
            "weights": self.weights.tolist(),
            "missing": self.missing,
            "domain": None if self.domain is None else self.domain.to_dict(),
        }

    def facts(self) -> Rows:
        """The domain and the recipe."""
        return [
            ["domain", "any record" if self.domain is None else repr(self.domain)],
            ["mechanism", f"{self.name}: {self.words}"],
        ]

    def tables(self) -> list[Rows]:
        """The expected errors, a line a column, or for numbers of records."""
        errors = self.errors()
        if self.counts_columns and self.is_ratio and self.n is not None:
            header = ["column", "error in the middle", "error at the bounds"]
            rows = [[name, *map(significant, ends)] for name, ends in errors]
        elif self.standard_error is None:
            # Beyond p = 2 the count's part is measured in ℓ₂.
            limit = "" if self.p == 2 else ", at most"
            weighted, unit = unit_of(self.weights, self.domain)
            header = ["number of records", f"{weighted}error at the worst mean{unit}{limit}"]
            if not (self.is_ratio and self.terms.is_secret):
                return [[header, *([str(number), significant(error)] for number, error in errors)]]
            header.append("least possible")
            rows = [
                [str(number), significant(error), self._least(number)] for number, error in errors
            ]
            return [[header, *rows]]
        else:
            header = ["column", "standard error"]
            rows = [[name, significant(error)] for name, error in errors]
        return [shortened([header, *rows])]

    def _least(self, n: int) -> str:
        """What any mechanism errs at least for so many records, as it is printed."""
        found = self.certificate_at(n).bounds
        return rounded_down(found[0].value) if found and found[0].value else "not known"

    def notes(self) -> list[str]:
        """The certificate, the alternatives, and what projecting would gain."""
        lines = [] if self.is_ratio and self.n is None else certificate_lines(self.certificate)
        lines += [*alternatives_line(self, self.p), *self._counts_line(), *self._squares_line()]
        if self.projected_error is not None and self.spread is not None:
            plain, _ = self.spread.root_mean_square(2)
            if self.projected_error < 0.95 * plain:
                lines.append(
                    f"Projected onto the domain (release.projected()) the ℓ₂ error is at most "
                    f"{self.projected_error:.4g} instead of {plain:.4g}, but no longer unbiased."
                )
        return lines

    def _counts_line(self) -> list[str]:
        """Why a rival of less error was not taken."""
        sums = [rival for rival in self.rivals if isinstance(rival, NoisySums)]
        better = [each for each in sums if each.error_by_record < self.error_by_record]
        return [
            f"The {each.full_name} would have more noise on the number of recorded values."
            for each in better
            if each.handicap > SQUARES_WORTH and self.alternatives
        ]

    def _squares_line(self) -> list[str]:
        """What an interval for the population would cost, where this noise has no squares."""
        sums = [rival for rival in self.rivals if isinstance(rival, NoisySums)]
        others = [rival for rival in sums if rival.recipe.query.square_rows]
        if self.recipe.query.square_rows or self.unknowns or not others:
            return []
        return [
            "Squares, for the population's interval, do not ride on this noise: with "
            f"population=True (--population) the error is at most {others[0].expected_error:.4g}."
        ]

    def figure(self, coordinates: Sequence[int | str] | None = None) -> Figure:
        """For two coordinates: what one record can move, the sphere that is commonly used, our
        ellipse; and the error beside its lower bounds.
        """
        from muhat.planning.picture import plan_figure

        return plan_figure(self, coordinates)

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as records."""
        from muhat.data import open_source

        lattice = self.recipe.query.lattice
        dim = None if lattice is None or lattice.of_any_width else lattice.record_dim
        source = open_source(data, chosen_columns(self.columns, columns), dim)
        self._lattice_for(source)
        return source

    def counted(self, source: Source) -> NoisySums:
        """The same for these records; a public n is compared with the data, or counted."""
        terms = counted_terms(self.terms, source, self.statistic)
        if terms is self.terms:
            return self
        rivals = tuple(replace(rival, terms=terms) for rival in self.rivals)
        return replace(self, terms=terms, rivals=rivals)

    def admit(self, source: Source) -> None:
        """Refuse errors without bound."""
        if self.certificate is not None and not math.isfinite(self.certificate.error):
            raise InvalidInput("the expected error is not finite; nothing was spent.")
        if self.is_ratio and self.terms.is_secret:
            self.certificate_at(1)  # geometry that may fail, before anything is paid

    def note(self, source: Source) -> str | None:
        """A domain of one point has one answer, which costs nothing."""
        return note_of(self.statistic, source.columns) if self.recipe.query.rows else None

    def read(self, source: Source) -> VectorAnswer:
        """One pass over the records."""
        totals, rows = self._sums(source)
        if self.n is not None and rows != self.n:
            raise DataChanged("the number of rows changed between counting and reading.")
        return self.certified(self.answer(self.recipe.run(totals, rows), self._names(source)))

    def certified(self, found: VectorAnswer) -> VectorAnswer:
        """With a certificate; where n is secret, for the noisy number of values, if it is known."""
        certificate, noise, recorded = self.certificate, found.noise, found.recorded
        if noise is not None and recorded is not None and self.is_ratio and self.terms.is_secret:
            known = np.isfinite(noise.standard_error).all()
            number = max(1, round(float(recorded.value.max())))
            certificate = self.certificate_at(number) if known else None
        return replace(found, certificate=certificate)

    def answer(self, noisy: list[Fraction], columns: tuple[str, ...]) -> VectorAnswer:
        """What the noisy rows of the query say, without a certificate."""
        return self._told(answer(self, noisy), columns)

    def _told(self, found: Estimate, columns: tuple[str, ...]) -> VectorAnswer:
        return VectorAnswer(
            statistic=self.statistic,
            value=found.value,
            columns=columns,
            domain=self.domain,
            noise=found.noise,
            recorded=found.recorded,
            squares=found.squares,
            missing=self.missing,
            **self.basis(),
        )

    def _lattice_for(self, source: Source) -> Lattice | None:
        """The lattice for this source: of points, one column of codes or all their coordinates."""
        lattice = self.recipe.query.lattice
        return None if lattice is None else lattice.for_width(source.dim)

    def _sums(self, source: Source) -> tuple[tuple[int, ...], int]:
        """The exact integer sums and the number of records."""
        from muhat.data import exact_sums

        lattice = self._lattice_for(source)
        if lattice is None:
            return (), _count(source)
        whole_records = self.missing == "drop" and not lattice.by_column
        sums = exact_sums(source, lattice, missing="drop" if whole_records else "center")
        return sums.total, sums.rows

    def _names(self, source: Source) -> tuple[str, ...]:
        """What the values are called: the columns, if there is one for each."""
        if self.domain is None:
            return ("count",)
        if source.dim == self.dim:
            return source.columns
        return tuple(str(index) for index in range(self.dim))


def best_of(found: Sequence[NoisySums]) -> NoisySums:
    """The mechanism with the least error; the others are its rivals.

    Squares beside the sums, and with them an interval for the population, are worth one per cent.
    """

    def rank(each: NoisySums) -> float:
        return float(f"{each.error_by_record * each.handicap:.9e}")

    best, *others = sorted(found, key=rank)
    return replace(best, rivals=tuple(others))


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
