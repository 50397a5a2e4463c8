"""A plan: what will be done, at what cost, with what error, before any data is opened."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._delegation import Delegated
from muhat._plain import digest_of
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike
from muhat.noise.kinds import NoiseKind, Strength
from muhat.planning.display import plan_html, plan_text
from muhat.planning.mechanism import Columns, Mechanism
from muhat.planning.planned import PlannedStatistic
from muhat.planning.run import run
from muhat.planning.terms import Terms, UnderTerms
from muhat.privacy import Privacy
from muhat.release.certificate import Certificate
from muhat.release.release import Release
from muhat.release.spent import Spent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    # Named as text below: they are loaded by whoever plans with them.
    from muhat.bounds.trilemma import Trilemma  # noqa: F401
    from muhat.data.shared import TableColumns
    from muhat.planning.tradeoff import Tradeoff  # noqa: F401
    from muhat.workloads import Workload  # noqa: F401
    from muhat.workloads.factorization import Factorization  # noqa: F401


SCHEMA = "muhat.plan/2"


@dataclass(frozen=True, eq=False)
class Part:
    """A mechanism for one or more statistics, and the share of the promise that it takes."""

    name: str
    mechanism: Mechanism
    share: Fraction = Fraction(1)

    @property
    def names(self) -> tuple[str, ...]:
        """What its answers are called."""
        return tuple(each.name for each in self.mechanism.statistics()) or (self.name,)

    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """What is known of each beforehand, with its share of the whole promise."""
        share = float(self.share)
        known = self.mechanism.statistics() or (self.mechanism.planned_as(self.name),)
        return tuple(replace(each, share=share * each.share) for each in known)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(UnderTerms):
    """What will be released under which terms; `mh.plan_mean` and its like make it.

    A plan of one part has the attributes of its mechanism as its own. Parts have shares of the
    promise, or of one that implies it and adds up: `shared`. Where it `reads` columns of a table
    that a schema names, all parts read the same rows, which are opened and chosen once.
    """

    terms: Terms
    parts: tuple[Part, ...]
    shared: Privacy | None = None
    reads: TableColumns | None = None

    def __post_init__(self) -> None:
        if sum(part.share for part in self.parts) > 1:
            raise InvalidInput("the parts of a plan take more than the whole promise.")
        if self.shared is not None and not _implies(self.shared, self.privacy):
            raise InvalidInput("what the parts of a plan share implies less than was promised.")
        whole = self.terms if self.shared is None else replace(self.terms, privacy=self.shared)
        for part in self.parts:
            if part.mechanism.terms != whole.part(part.share):
                raise InvalidInput(
                    "a plan's terms are those its parts were made for; make a new plan instead of "
                    "changing them."
                )

    @classmethod
    def of(cls, mechanism: Mechanism) -> Plan:
        """The plan of one mechanism, which takes the whole promise."""
        return cls(mechanism.terms, (Part(mechanism.statistic, mechanism),))

    @property
    def mechanism(self) -> str:
        """What the mechanism is called, or the mechanisms of all parts."""
        return "; ".join(dict.fromkeys(part.mechanism.name for part in self.parts))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the promise and the errors rest on, in sentences."""
        lines = [line for part in self.parts for line in part.mechanism.assumptions]
        return tuple(dict.fromkeys(lines))

    statistic = Delegated[str]("What is asked.")
    columns = Delegated[tuple[str, ...] | None]("The columns that are named already.")
    expected_error = Delegated[float | None]("The root mean square error; None: see `error_at`.")
    expected_error_method = Delegated[str | None]("How that was found.")
    standard_error = Delegated[Floats | None]("Of the noise on each value, of shape (d,).")
    covariance = Delegated[Floats | None]("Of the noise on the value, of shape (d, d).")
    certificate = Delegated[Certificate | None]("How close to the best possible.")
    certificate_at = Delegated[Callable[..., Certificate]]("The same, if a secret n were this.")
    alternatives = Delegated[tuple[tuple[str, float], ...]]("What else was possible, its error.")
    bias = Delegated[float | None]("No value's bias is larger; None if no bound is known.")
    unknowns = Delegated[tuple[str, ...]]("What nobody knows and the error depends on.")
    error_at = Delegated[Callable[..., float | None]]("The error if the unknowns were these.")
    errors = Delegated[Callable[[], list[tuple[Any, Any]]]]("A table of errors.")

    domain = Delegated[Domain | None]("Where records lie.")
    dim = Delegated[int]("The number of values released.")
    p = Delegated[float]("Errors are measured in ℓ_p.")
    weights = Delegated[Floats]("What errors of columns are multiplied by.")
    missing = Delegated[str]("What becomes of missing values.")
    n_min = Delegated[int | None]("A public number of records, if n is secret.")
    recipe = Delegated[Any]("Integer query and law of noise, with their proof.")
    projected_error = Delegated[float | None]("At most this is left after `release.projected()`.")
    standard_error_at = Delegated[Callable[..., Floats]]("Of a ratio, for n values a column.")
    method = Delegated[Any]("How the records' place is learnt.")
    least_n = Delegated[int]("The least number of records for which every step works.")
    _step_shares = Delegated[dict[str, float]]("What each step takes.", "shares")
    instance_ratio = Delegated[float]("The error in units of half the diameter over n.")
    moment = Delegated[Any]("What is assumed of the distribution.")
    rmse = Delegated[float]("The most root mean square error against the distribution's mean.")
    trilemma = Delegated["Trilemma | None"]("What no mechanism of so small a bias can beat.")
    tradeoff = Delegated["Callable[..., Tradeoff]"]("Error against bias.")
    q = Delegated[float | tuple[float, ...]]("The quantiles asked for.")
    rank_error = Delegated[Callable[..., NDArray[np.int64]]]("How far off ranks may be.")
    workload = Delegated["Workload"]("The linear queries.")
    factorization = Delegated["Factorization"]("The strategy and the decoder.")
    variances = Delegated[Callable[[], Floats]]("Of the noise on every answer.")
    horizon = Delegated[int]("How many events can be pushed in all.")

    @property
    def _only(self) -> Mechanism:
        if len(self.parts) > 1:
            names = ", ".join(repr(part.name) for part in self.parts)
            raise AttributeError(f"this plan has several parts, each with its own: plan[{names}]")
        return self.parts[0].mechanism

    @property
    def _called(self) -> str:
        return f"the plan of a {self._only.statistic} by {self._only.name}"

    @property
    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """What is known beforehand of every statistic of a set."""
        if len(self.parts) == 1 and not self.parts[0].mechanism.statistics():
            return ()
        return tuple(each for part in self.parts for each in part.statistics())

    @property
    def shares(self) -> dict[str, float]:
        """What each statistic, or each step, takes of the promise.

        Statistics that are read off the same noisy numbers share those.
        """
        return {each.name: each.share for each in self.statistics} or self._step_shares

    @property
    def spent(self) -> tuple[Spent, ...]:
        """Every noise of a set, and its exact share of the promise: they add up to 1 at most."""
        if not self.statistics:
            return ()
        return tuple(
            replace(each, share=part.share * each.share)
            for part in self.parts
            for each in part.mechanism.spent() or (Spent(part.name, Fraction(1)),)
        )

    def __getitem__(self, name: str) -> Mechanism | PlannedStatistic:
        named: dict[str, Mechanism | PlannedStatistic] = {}
        for part in self.parts:
            own = {each.name: each for each in part.statistics()}
            named |= own if part.mechanism.statistics() else {part.name: part.mechanism}
        if name in named:
            return named[name]
        known = [own for part in self.parts for own in part.names]
        names = ", ".join(map(repr, known))
        raise InvalidInput(f"the plan has no part {name!r:.60}; it has {names}.")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""
        return digest_of(
            {
                "schema": SCHEMA,
                **self.terms.to_dict(),
                **self._chosen(),
                "parts": [
                    {
                        "share": str(part.share),
                        "statistic": part.mechanism.statistic,
                        "mechanism": part.mechanism.name,
                        **part.mechanism.decisive(),
                    }
                    for part in self.parts
                ],
            }
        )

    def _chosen(self) -> dict[str, Any]:
        """By which columns rows of a person are chosen, if there are some."""
        people = None if self.reads is None else self.reads.people
        each = () if people is None else people.one_row_per
        return {"one_row_per": list(each)} if each else {}

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON; the fields of the only part are its own."""
        parts = [_fields(part.mechanism) for part in self.parts]
        told: dict[str, Any] = {"parts": parts}
        if len(parts) == 1:
            (told,) = parts
        if self.statistics:
            told["statistics"] = [each.to_dict() for each in self.statistics]
        return {
            "schema": SCHEMA,
            **self.terms.to_dict(),
            **told,
            "assumptions": list(self.assumptions),
            "cautions": list(self.terms.cautions),
            "digest": self.digest,
        }

    def release(self, data: Any, columns: Columns = None, ledger: LedgerLike = None) -> Release:
        """Read the data and release what was planned, in the order of `planning.run`.

        `columns` names the columns of the data, where the plan does not. For queries `data` may be
        a histogram too: an integer array, a list, a sparse array, or a dict from cell to count.
        """
        released: Release = run(self, data, columns, ledger)
        return released

    def open(self, data: Any, columns: Columns) -> list[Any]:
        """The data as each part reads them; arguments and metadata are checked alone."""
        if self.reads is not None:
            from muhat.data.sources import open_table

            data = open_table(data, self.reads)
        return [part.mechanism.open(data, columns) for part in self.parts]

    def planned(self, sources: list[Any]) -> Plan:
        """The plan for these records, whose number is compared or counted if it is public."""
        work = zip(self.parts, sources, strict=True)
        return self._with([part.mechanism.counted(source) for part, source in work])

    def assuming(self, *sentences: str) -> Plan:
        """The same plan with more assumptions stated."""
        return self._with([part.mechanism.assuming(*sentences) for part in self.parts])

    def _with(self, mechanisms: list[Mechanism]) -> Plan:
        """The same parts, by other mechanisms of the same promise."""
        first = mechanisms[0].terms
        parts = tuple(
            replace(part, mechanism=mechanism)
            for part, mechanism in zip(self.parts, mechanisms, strict=True)
        )
        terms = replace(self.terms, n=first.n, was_counted=first.was_counted)
        return replace(self, terms=terms, parts=parts)

    def describe(self) -> str:
        """The plan in words and tables."""
        return plan_text(self)

    def plot(self, *chosen: Any) -> Figure:
        """The plan as a picture (needs the extra `plot`); returns a matplotlib Figure.

        Of a mean in several coordinates two are drawn, the first unless others are chosen.
        """
        return self._only.figure(*chosen)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        return plan_html(self)


def _implies(shared: Privacy, promise: Privacy) -> bool:
    """Whether what adds up is at most what was promised, in noise of its own kind."""
    kind = NoiseKind.named_by(shared)
    return Strength.of(shared, kind).keeps(promise)


def _fields(mechanism: Mechanism) -> dict[str, Any]:
    """What is told of a mechanism."""
    errors, certificate = mechanism.standard_error, mechanism.certificate
    return {
        "statistic": mechanism.statistic,
        "mechanism": mechanism.name,
        "columns": None if mechanism.columns is None else list(mechanism.columns),
        "expected_error": mechanism.expected_error,
        "expected_error_method": mechanism.expected_error_method,
        "standard_error": None if errors is None else errors.tolist(),
        "certificate": None if certificate is None else certificate.to_dict(),
        "alternatives": [
            {"mechanism": name, "expected_error": error if math.isfinite(error) else None}
            for name, error in mechanism.alternatives
        ],
        **mechanism.details(),
    }
