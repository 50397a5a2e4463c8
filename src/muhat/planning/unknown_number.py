"""A mean by what must know the number of records, when that is secret.

Half of the promise hides the number: a part of the records of a noisy size N is drawn at random, of
those without missing values if they are left out.
The other half is the mechanism's for N records. N is released with the value, and the error for it;
nothing else that is said depends on how many records there were.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat import _check
from muhat._words import APPROXIMATE, SECRET_N, Parameter, rows
from muhat.data.halves import require_random_part
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.mechanisms.learning.unknown_number import UnknownNumber
from muhat.planning.low_bias import low_bias_mean
from muhat.planning.low_bias_mean import LowBiasMean
from muhat.planning.low_bias_method import bias_line
from muhat.planning.mechanism import Columns, Rows
from muhat.planning.plan import Plan
from muhat.planning.printed import printed_note
from muhat.planning.reals_mean import MeanInReals, missing_line, require_to_draw
from muhat.planning.terms import Terms
from muhat.planning.unbounded import LearntMean, learnt_mean
from muhat.privacy import Neighbors
from muhat.release.vector_answer import VectorAnswer
from muhat.statistics.reals import LowBias, Unassuming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data import Source

Inner = LearntMean | LowBiasMean

MOST_RECORDS = 1 << 40
"""What is said of the bias of symmetric means is said for so many records at most."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnknownNumberMean(MeanInReals):
    """A mean of a secret number of records in `Reals`.

    `inner` is the mechanism for n_min records, and `mean_for` makes the one for any number.
    `most_bias` bounds the bias of every column for all numbers of records, if the assumption holds;
    None if nothing is known.
    """

    number: UnknownNumber
    inner: Inner
    mean_for: Callable[[int], Inner]
    most_bias: float | None

    def keeps(self, terms: Terms) -> bool:
        """Whether the number and the mean together spend no more than was promised."""
        spent = (self.number.epsilon, self.number.delta)
        together = map(sum, zip(spent, self.inner.privacy.amounts, strict=True))
        within = zip(together, terms.privacy.amounts, strict=True)
        return terms.contributions == 1 and all(parts <= whole for parts, whole in within)

    @property
    def name(self) -> str:
        """The mechanism for a public number of records, and how the number is hidden."""
        return f"unknown-n, {self.inner.name}"

    @property
    def bias(self) -> float | None:
        """No column's bias is larger, whatever the number of records is."""
        return self.most_bias

    @property
    def n_min(self) -> int:
        """The least number of records that is averaged; with fewer no value comes out."""
        return self.number.n0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the mechanism for n_min records, but for what is true of n_min only."""
        first = "n is secret; at least the public n_min records are averaged or no value comes out"
        blind = f"{self.inner.chosen} were chosen without looking at the data"
        return (first, *self.premises, self.terms.person(), blind, *self.said)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The number of records, and what else the mechanism does not know."""
        return ("n", *self.inner.unknowns)

    def error_if(self, n: int, **values: float) -> float | None:
        """At most this, as many records being left out as ever may be; None if too few remain."""
        left = _check.count("n", n) - 2 * self.number.margin
        if left < self.n_min:
            return None
        mean = self.mean_for(left)
        return mean.rmse if isinstance(mean, LowBiasMean) else mean.error_at(**values)

    def errors(self) -> list[tuple[Any, Any]]:
        """Those with n_min records."""
        return self.inner.errors()

    def decisive(self) -> dict[str, Any]:
        """How the number is hidden, and the mechanism for n_min records."""
        return {
            "number": self.number.to_dict(),
            "missing": self.missing,
            "inner": Plan.of(self.inner).digest,
        }

    def details(self) -> dict[str, Any]:
        """How the number is hidden, and the plan for n_min records."""
        return {
            "n_min": self.n_min,
            "margin": self.number.margin,
            "missing": self.missing,
            "domain": self.domain.to_dict(),
            "inner": Plan.of(self.inner).to_dict(),
            "bias": self.bias,
        }

    @property
    def number_words(self) -> str:
        """How it is hidden."""
        return (
            f"A secret number of records: half of the promise draws a random part of them; at most "
            f"{2 * self.number.margin} are left out"
        )

    def facts(self) -> Rows:
        """From how many records on a value comes out; then those of n_min records."""
        least = ["a value", f"comes out of {self.number.enough} records or more"]
        return [least, *self.inner.facts(), ["below", f"for {self.n_min} records, the least"]]

    def tables(self) -> list[Rows]:
        """Those with n_min records."""
        return self.inner.tables()

    def notes(self) -> list[str]:
        """Those with n_min records."""
        if not self.number.faithful:
            return self.inner.notes()
        ours = replace(self.number, faithful=False)
        gain = (
            f"at most {2 * ours.margin} records are left out in place of {2 * self.number.margin}"
        )
        return [printed_note("Proposition E.1", gain), *self.inner.notes()]

    def figure(self) -> Figure:
        """That of n_min records."""
        return self.inner.figure()

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as records of which a random part can be drawn."""
        source = super().open(data, columns)
        require_random_part(source, ordered=isinstance(self.inner.method, SymmetricMethod))
        if self.missing == "drop":
            require_to_draw(source)
        return source

    def read(self, source: Source) -> VectorAnswer:
        """Draw the part, and average it by the mechanism for its number."""
        found, averaged = self.averaged(source)
        return self.answer(source, found, averaged)

    def averaged(self, source: Source) -> tuple[Learnt, int | None]:
        """What came out, and of how many records: N is private output too, and paid for."""
        part = self._part(source)
        if part is None:
            nothing = np.full(self.dim, np.nan)
            return Learnt(nothing, None, None, (), "there may be fewer records than n_min"), None
        averaged = part.rows()
        found = self.mean_for(averaged).method.run(part)
        return found, None if found.failure else averaged

    def _part(self, source: Source) -> Source | None:
        """A random part of the records, or None if they may be too few."""
        from muhat.data import open_source
        from muhat.data.engine import gathered
        from muhat.data.halves import Splits

        if isinstance(source, Splits):
            left_out = self.number.left_out(source.rows())
            return None if left_out is None else source.without(left_out)
        records = gathered(source)
        if self.missing == "drop":
            records = records[~np.isnan(records).any(axis=1)]
        chosen = self.number.select(records, np.nan)
        return None if chosen is None else open_source(chosen, None, self.dim)


FOR_REALS = Parameter("domain", "for records in Reals", "with --magnitude")


def unknown_number_mean(asked: Unassuming | LowBias, terms: Terms) -> UnknownNumberMean:
    """Hide the number of records from a mechanism that needs it.

    Where records with a missing value are left out, they are so before they are counted: what is
    averaged is complete.
    """
    promise, least = terms.privacy, terms.n_min
    if not promise.spends_delta or least is None:
        raise InvalidInput(
            rows(),
            " must be public ",
            FOR_REALS,
            ", or hidden at a cost: give n, or with ",
            SECRET_N,
            " approximate privacy, ",
            APPROXIMATE,
            ", and ",
            Parameter("n_min"),
            ", a public number of records below which no value comes out.",
            hint=(
                "Or bound the records, for instance by ",
                Parameter("domain", "mh.Ball or mh.Box", "--ball or --bounds"),
                ".",
            ),
        )
    if terms.contributions != 1:
        rule = ("must be 1 ", FOR_REALS, " if n is secret")
        raise InvalidInput(*rule, parameter="contributions")
    epsilon, delta = (amount / 2 for amount in promise.amounts)
    half = Terms(privacy=promise.part(Fraction(1, 2)), neighbors=Neighbors.SUBSTITUTE, n=least)
    complete = replace(asked, missing="none") if asked.missing == "drop" else asked
    inner = mean_in_reals(complete, half)
    return UnknownNumberMean(
        terms=terms,
        domain=asked.domain,
        number=UnknownNumber(epsilon, delta, n0=least, faithful=asked.faithful),
        inner=inner,
        # More than enough records are enough: whatever could be refused was refused for n_min.
        mean_for=_maker(complete, inner, half),
        most_bias=_largest_bias(inner),
        missing=asked.missing,
        premises=_premises(inner, asked.missing),
    )


def mean_in_reals(asked: Unassuming | LowBias, terms: Terms) -> Inner:
    """The mean of a public number of records, by what is assumed of them."""
    if isinstance(asked, Unassuming):
        return learnt_mean(asked, terms)
    return low_bias_mean(asked, terms)


def _maker(asked: Unassuming | LowBias, inner: Inner, half: Terms) -> Callable[[int], Inner]:
    """Mechanisms for more than n_min records, of the same kind and of no larger bias."""
    wanted: Unassuming | LowBias = replace(asked, insist=True)
    if isinstance(inner, LowBiasMean):
        symmetric = inner.method
        if isinstance(symmetric, SymmetricMethod):
            return lambda n: replace(
                inner, terms=replace(half, n=n), method=symmetric.with_records(n)
            )
        assert isinstance(wanted, LowBias)
        limits = None if inner.bias is None else np.full(inner.dim, inner.bias)
        wanted = replace(wanted, mechanism=inner.name, limits=limits, max_error=None)
    return lambda n: mean_in_reals(wanted, replace(half, n=n))


def _largest_bias(inner: Inner) -> float | None:
    """A bound on the bias for every number of records from n_min on, up to MOST_RECORDS.

    Clipped means are planned for the bias of n_min records. Each term of a symmetric mean's bias
    rises or falls with the number of records, so both ends together are enough.
    """
    if isinstance(inner, LearntMean):
        return None
    if inner.bias is None or not isinstance(inner.method, SymmetricMethod):
        return inner.bias
    return inner.bias + float(inner.method.with_records(MOST_RECORDS).biases.max())


def _premises(inner: Inner, missing: str) -> tuple[str, ...]:
    """Those of the mechanism for n_min records; the bias is that for any number."""
    lines = list(inner.premises)
    if missing == "drop":
        lines = [line for line in lines if not line.startswith("nothing is missing")]
        lines.append(missing_line(missing, inner.dim, ""))
    if isinstance(inner, LowBiasMean):
        bias, symmetric = _largest_bias(inner), inner.method.assumes_symmetry
        bias = math.inf if bias is None else bias
        records = "complete records" if missing == "drop" else "records"
        lines[0] = bias_line(inner.moment, bias, symmetric=symmetric, records=records)
        if symmetric:
            lines.insert(1, f"there are at most 2^{MOST_RECORDS.bit_length() - 1} records")
    return tuple(lines)
