"""An unbiased mean on a box although the number of records is secret.

Nothing that is said depends on that number. Errors are None unless a public n_min is given: then
they hold if there are so many records or more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat._words import Parameter
from muhat.domains import Box
from muhat.domains.lattice import BoxLattice
from muhat.domains.norms import p_norm
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.names import AS_PRINTED
from muhat.mechanisms.sums.smooth import SmoothRecipe
from muhat.noise.student import StudentSpread
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.picture import error_against_n
from muhat.planning.printed import one_record, printed_note
from muhat.planning.run import note_of
from muhat.planning.terms import Terms
from muhat.privacy import Privacy
from muhat.release.certificate import unit_of
from muhat.release.display import significant
from muhat.release.vector_answer import VectorAnswer
from muhat.statistics.bounded import DROPPED_RECORDS, Bounded, chosen_columns
from muhat.statistics.reals import ONE_COLUMN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data import Source

COUNTS = (1_000, 10_000, 100_000, 1_000_000)
"""Numbers of records whose errors are shown, if they are possible."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnbiasedMean(Mechanism):
    """An unbiased mean of a secret number of records in a box.

    If the recipe is as a paper has it, `ours` is the one to compare it with. No bound is known for
    such means, so there is no certificate.
    """

    domain: Box
    p: float
    weights: Floats
    missing: str
    recipe: SmoothRecipe
    ours: SmoothRecipe | None = None

    name = "smooth"
    bias = 0.0

    def keeps(self, terms: Terms) -> bool:
        """Whether the noise keeps an ε that implies the promise."""
        return self.recipe.epsilon <= pure_epsilon(terms.privacy)

    @property
    def dim(self) -> int:
        """The number of values released."""
        return self.domain.dim

    @property
    def n_min(self) -> int | None:
        """A public number of records that there are at the least, if anybody knows one."""
        return self.terms.n_min

    @property
    def spread(self) -> StudentSpread | None:
        """The noise with n_min records, more than with any larger number; None without n_min."""
        if self.n_min is None:
            return None
        return StudentSpread(self.recipe.standard_error_at(self.n_min))

    @property
    def expected_error(self) -> float | None:
        """The error with n_min records or more, at most; None without n_min."""
        return None if self.n_min is None else self.error_if(self.n_min)

    @property
    def expected_error_method(self) -> str | None:
        """How `expected_error` was found."""
        if self.n_min is None:
            return None
        return "exact" if self.p == 2 else "bound"

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The number of records."""
        return ("n",)

    def error_if(self, n: int) -> float:
        """At most this; for p > 2 bounded by the ℓ₂ error."""
        return self._error(self.recipe, _check.count("n", n))

    def _error(self, recipe: SmoothRecipe, n: int) -> float:
        return float(p_norm(self.weights * recipe.standard_error_at(n), 2.0))

    def errors(self) -> list[tuple[int, float]]:
        """The error for numbers of records that there may be."""
        least = 100 if self.n_min is None else self.n_min
        counts = [least, *(count for count in COUNTS if count > least)]
        return [(count, self.error_if(count)) for count in counts]

    def decisive(self) -> dict[str, Any]:
        """The rule for missing values, and the noise."""
        return {"missing": self.missing, "recipe": self.recipe.to_dict()}

    def details(self) -> dict[str, Any]:
        """The domain, how errors are measured, and what the noise covers."""
        return {
            "n_min": self.n_min,
            "p": "inf" if math.isinf(self.p) else self.p,
            "weights": self.weights.tolist(),
            "missing": self.missing,
            "domain": self.domain.to_dict(),
            "bias": self.bias,
            "covers_replacement": self.recipe.covers_replacement,
        }

    @property
    def title(self) -> str:
        """What is planned."""
        return "private mean without bias"

    @property
    def number_words(self) -> str:
        """Whether a least number is assumed."""
        return "secret" + ("" if self.n_min is None else f"; {self.n_min} or more are assumed")

    def facts(self) -> Rows:
        """The domain and the noise."""
        printed = AS_PRINTED if self.ours is not None else ""
        return [
            ["domain", repr(self.domain)],
            ["mechanism", f"smooth: Student noise whose scale depends on the secret n{printed}"],
        ]

    def tables(self) -> list[Rows]:
        """The error for numbers of records that there may be."""
        weighted, unit = unit_of(self.weights, self.domain)
        limit = "" if self.p == 2 else ", at most"
        header = ["number of records", f"{weighted}error{unit}{limit}"]
        return [[header, *([str(count), significant(error)] for count, error in self.errors())]]

    def notes(self) -> list[str]:
        """What a release will tell of its error."""
        told = "no standard error unless a public n_min is given"
        if self.n_min is not None:
            told = f"the standard error for n_min = {self.n_min} records, the largest there may be"
        notes = [f"The scale of the noise is secret too, so a release tells {told}."]
        if self.ours is not None:
            n, error = self.errors()[0]
            less = significant(self._error(self.ours, n))
            gain = f"the error for {n} records is {less} in place of {significant(error)}"
            notes.insert(0, printed_note("Theorem E.6", gain))
        return notes

    def figure(self) -> Figure:
        """The error for any number of records."""
        title = f"Private mean without bias, {self.privacy.describe()}"
        return error_against_n(self.error_if, "error", title)

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as records."""
        from muhat.data import open_source

        return open_source(data, chosen_columns(self.columns, columns), self.dim)

    def note(self, source: Source) -> str:
        """The statistic and the columns."""
        return note_of(self.statistic, source.columns)

    def read(self, source: Source) -> VectorAnswer:
        """One pass over the records."""
        from muhat.data import exact_sums

        rule = "drop" if self.missing == "drop" else "center"
        sums = exact_sums(source, self.recipe.lattice, missing=rule)
        value = [float(value) for value in self.recipe.run(sums.total, sums.rows)]
        return VectorAnswer(
            statistic=self.statistic,
            value=np.array(value),
            columns=source.columns,
            domain=self.domain,
            noise=self.spread,
            bias=self.bias,
            missing=self.missing,
            **self.basis(),
        )


def smooth_mean(asked: Bounded, terms: Terms) -> UnbiasedMean:
    """The unbiased mean of a secret number of records."""
    if not asked.domain.by_column:
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
    domain = asked.domain
    assert isinstance(domain, Box)
    if asked.faithful:
        one_record(terms)
        if domain.dim != 1:
            raise InvalidInput(ONE_COLUMN)

    def recipe_of(faithful: bool) -> SmoothRecipe:
        return SmoothRecipe.of(
            BoxLattice.around(domain.lower, domain.upper),
            pure_epsilon(terms.privacy),
            contributions=terms.contributions,
            p=asked.p,
            weights=asked.weights,
            n_min=terms.n_min,
            faithful=faithful,
        )

    recipe = recipe_of(asked.faithful)
    clipped, rule = asked.premises()
    known: tuple[str, ...] = ()
    if terms.n_min is not None:
        known = (f"standard errors and intervals hold if there are {terms.n_min} records or more",)
    return UnbiasedMean(
        terms=terms,
        columns=asked.columns,
        premises=(
            clipped,
            DROPPED_RECORDS if asked.missing == "drop" else rule,
            _about_replacement(recipe),
            *known,
        ),
        domain=domain,
        p=asked.p,
        weights=asked.weights,
        missing=asked.missing,
        recipe=recipe,
        ours=recipe_of(False) if asked.faithful else None,
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
