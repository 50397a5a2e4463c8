"""A plan for mechanisms that must know the number of records, when that is secret.

Half of the promise hides the number: a part of the records of a noisy size N is drawn at random, of
those without missing values if they are left out.
The other half is the plan's for N records. N is released with the value, and the error for it;
nothing else that is said depends on how many records there were.
"""

from __future__ import annotations

import html
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat import _check, privacy
from muhat._text import joined
from muhat._words import APPROXIMATE, SECRET_N, Parameter, rows
from muhat.domains.reals import Reals
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.mechanisms.learning.unknown_number import UnknownNumber
from muhat.planning.digest import digest_of
from muhat.planning.low_bias_method import bias_line
from muhat.planning.low_bias_plan import LowBiasPlan
from muhat.planning.reals_rule import missing_line, require_to_draw
from muhat.planning.run import Columns, Uncounted, note_of, run
from muhat.planning.unbounded import UnboundedPlan
from muhat.privacy import Neighbors, Privacy
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.data import Source

Inner = UnboundedPlan | LowBiasPlan

MOST_RECORDS = 1 << 40
"""What is said of the bias of symmetric means is said for so many records at most."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnknownNumberPlan:
    """A mean of a secret number of records in `Reals`; `plan_mean` makes it.

    `inner` is the plan for n_min records, and `plan_for` makes the one for any number. `bias`
    bounds the bias of every column for all numbers of records, if the assumption holds; None if
    nothing is known.
    """

    domain: Reals
    privacy: Privacy
    number: UnknownNumber
    inner: Inner
    plan_for: Callable[[int], Inner]
    bias: float | None
    missing: str
    assumptions: tuple[str, ...]

    statistic = "mean"
    neighbors = Neighbors.ADD_REMOVE
    n = columns = certificate = None
    expected_error = expected_error_method = standard_error = covariance = None
    """None: they depend on the secret number of records. See `error_at`."""

    def __post_init__(self) -> None:
        together = zip(
            (self.number.epsilon, self.number.delta), self.inner.privacy.amounts, strict=True
        )
        if any(
            sum(parts) > whole for parts, whole in zip(together, self.privacy.amounts, strict=True)
        ):
            raise InvalidInput("the number and the mean would spend more than was promised.")

    @property
    def mechanism(self) -> str:
        """The mechanism for a public number of records, and how the number is hidden."""
        return f"unknown-n, {self.inner.mechanism}"

    @property
    def dim(self) -> int:
        """The number of values released."""
        return self.domain.dim

    @property
    def n_min(self) -> int:
        """The least number of records that is averaged; with fewer no value comes out."""
        return self.number.n0

    @property
    def contributions(self) -> int:
        """The most records of a person."""
        return 1

    def error_at(self, n: int) -> float | None:
        """The root mean square error if there were n records, at most; None if there are too few.

        For a plan of bounded bias. As many records are left out as ever may be.
        """
        left = _check.count("n", n) - 2 * self.number.margin
        if left < self.n_min:
            return None
        plan = self.plan_for(left)
        if isinstance(plan, UnboundedPlan):
            raise InvalidInput("the error depends on the records' radius: see inner.error_at.")
        return plan.rmse

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""
        fields = {
            "schema": "muhat.planning.unknown_number/1",
            "privacy": privacy.to_dict(self.privacy),
            "number": self.number.to_dict(),
            "missing": self.missing,
            "inner": self.inner.digest,
        }
        return digest_of(fields)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON."""
        return {
            "schema": "muhat.planning.unknown_number/1",
            "statistic": self.statistic,
            "mechanism": self.mechanism,
            "columns": None,
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": None,
            "n_min": self.n_min,
            "margin": self.number.margin,
            "missing": self.missing,
            "domain": self.domain.to_dict(),
            "inner": self.inner.to_dict(),
            "bias": self.bias,
            "expected_error": None,
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
        """Read the data into memory once and release the mean, or nothing; see `planning.run`."""
        return run(UnknownNumberWork(self), data, columns, ledger)

    def averaged(self, source: Source) -> tuple[Learnt, int | None]:
        """What came out, and of how many records: N is private output too, and paid for."""
        part = self._part(source)
        if part is None:
            nothing = np.full(self.dim, np.nan)
            return Learnt(nothing, None, None, (), "there may be fewer records than n_min"), None
        averaged = part.rows()
        found = self.plan_for(averaged).method.run(part)
        return found, None if found.failure else averaged

    def _part(self, source: Source) -> Source | None:
        """A random part of the records, or None if they may be too few."""
        from muhat.data import open_source
        from muhat.data.gathered import gathered
        from muhat.data.halves import Splits

        if isinstance(source, Splits):
            left_out = self.number.left_out(source.rows())
            return None if left_out is None else source.without(left_out)
        records = gathered(source)
        if self.missing == "drop":
            records = records[~np.isnan(records).any(axis=1)]
        chosen = self.number.select(records, np.nan)
        return None if chosen is None else open_source(chosen, None, self.dim)

    def assuming(self, *sentences: str) -> UnknownNumberPlan:
        """The same plan with more assumptions stated."""
        return replace(self, assumptions=(*self.assumptions, *sentences))

    def describe(self) -> str:
        """The plan in words: how the number is hidden, then the plan for n_min records."""
        return joined(
            [
                *(f"Caution: {sentence}" for sentence in privacy.cautions(self.privacy)),
                f"A secret number of records, {self.privacy.describe()}, one record added or "
                "removed:",
                f"half of the promise draws a random part of them; at most "
                f"{2 * self.number.margin} are left out.",
                f"With {self.number.enough} records or more a value comes out. For "
                f"{self.n_min} records, the least:",
                "",
                *self.inner.describe().split("\n"),
            ]
        )

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>"


@dataclass(frozen=True)
class UnknownNumberWork(Uncounted[UnknownNumberPlan, "Source"]):
    """The work of a plan for a secret number of records."""

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as records of which a random part can be drawn."""
        from muhat.data.halves import require_random_part
        from muhat.planning.unbounded_execution import open_records

        source = open_records(self.plan.domain, data, columns)
        ordered = isinstance(self.plan.inner.method, SymmetricMethod)
        require_random_part(source, ordered=ordered)
        if self.plan.missing == "drop":
            require_to_draw(source)
        return source

    def note(self, plan: UnknownNumberPlan, source: Source) -> str:
        """The statistic and the columns."""
        return note_of(plan.statistic, source.columns)

    def read(self, plan: UnknownNumberPlan, source: Source, head: dict[str, Any] | None) -> Release:
        """Draw the part, and carry the plan for its number out."""
        from muhat.planning.unbounded_execution import learnt

        found, averaged = plan.averaged(source)
        return learnt(plan, source, found, head, averaged)


FOR_REALS = Parameter("domain", "for records in Reals", "with --magnitude")


def plan_for_unknown_number(
    domain: Reals,
    promise: Privacy,
    n_min: int | None,
    contributions: int,
    make: Callable[..., Inner],
    missing: str,
) -> UnknownNumberPlan:
    """Hide the number of records from a plan that needs it; `make` plans for n and a promise.

    Where records with a missing value are left out, they are so before they are counted: what
    `make` plans for is complete.
    """
    if not promise.spends_delta or n_min is None:
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
    if _check.count("contributions", contributions) != 1:
        rule = ("must be 1 ", FOR_REALS, " if n is secret")
        raise InvalidInput(*rule, parameter="contributions")
    least = _check.count("n_min", n_min)
    epsilon, delta = (amount / 2 for amount in promise.amounts)
    half = promise.part(Fraction(1, 2))
    inner = _quietly(make, n=least, privacy=half)
    return UnknownNumberPlan(
        domain=domain,
        privacy=promise,
        number=UnknownNumber(epsilon, delta, n0=least),
        inner=inner,
        # More than enough records are enough: whatever could be refused was refused for n_min.
        plan_for=_maker(make, inner, half),
        bias=_largest_bias(inner),
        missing=missing,
        assumptions=_assumptions(inner, missing),
    )


def _maker(make: Callable[..., Inner], inner: Inner, half: Privacy) -> Callable[[int], Inner]:
    """Plans for more than n_min records, of the same kind and of no larger bias."""
    if isinstance(inner, UnboundedPlan):
        return lambda n: _quietly(make, n=n, privacy=half, insist=True)
    symmetric = inner.method
    if isinstance(symmetric, SymmetricMethod):
        return lambda n: replace(inner, n=n, method=symmetric.with_records(n))
    fixed = {"mechanism": inner.mechanism, "max_bias": inner.bias, "max_error": None}
    return lambda n: _quietly(make, n=n, privacy=half, insist=True, **fixed)


def _largest_bias(inner: Inner) -> float | None:
    """A bound on the bias for every number of records from n_min on, up to MOST_RECORDS.

    Clipped means are planned for the bias of n_min records. Each term of a symmetric mean's bias
    rises or falls with the number of records, so both ends together are enough.
    """
    if isinstance(inner, UnboundedPlan):
        return None
    if inner.bias is None or not isinstance(inner.method, SymmetricMethod):
        return inner.bias
    return inner.bias + float(inner.method.with_records(MOST_RECORDS).biases.max())


def _assumptions(inner: Inner, missing: str) -> tuple[str, ...]:
    """Those of the plan for n_min records, but for what is true of n_min only."""
    first = "n is secret; at least the public n_min records are averaged or no value comes out"
    lines = [line for line in inner.assumptions if not line.startswith("n = ")]
    if missing == "drop":
        lines = [line for line in lines if not line.startswith("nothing is missing")]
        lines.append(missing_line(missing, inner.dim, ""))
    if isinstance(inner, LowBiasPlan):
        bias, symmetric = _largest_bias(inner), inner.method.assumes_symmetry
        bias = math.inf if bias is None else bias
        records = "complete records" if missing == "drop" else "records"
        lines[0] = bias_line(inner.moment, bias, symmetric=symmetric, records=records)
        if symmetric:
            lines.insert(1, f"there are at most 2^{MOST_RECORDS.bit_length() - 1} records")
    return (first, *lines)


def _quietly(make: Callable[..., Inner], **options: Any) -> Inner:
    """No warning may speak of how many records there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(**options)
