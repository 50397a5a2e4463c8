"""What every mechanism brings: how a statistic is answered under given terms, before any data.

A mechanism is complete before data are seen: its proof, its errors, its certificate and its words.
Then `open`, `counted`, `admit` and `note` look at arguments and metadata alone, and `read` reads
the values; `planning.run` knows the order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.noise.spread import Spread
from muhat.noise.student import StudentSpread
from muhat.planning.planned import PlannedStatistic
from muhat.planning.terms import Terms, UnderTerms
from muhat.release.certificate import Certificate
from muhat.release.spent import Spent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data.shared import Reading

Columns = Sequence[str] | Sequence[int] | None
Rows = list[list[str]]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Mechanism(UnderTerms, ABC):
    """How a statistic is answered under given terms.

    `premises` are what its errors rest on beside the terms, in sentences; `said` what else was
    stated. `rivals` are the mechanisms that would have erred more.
    """

    terms: Terms
    statistic: str = "mean"
    columns: tuple[str, ...] | None = None
    premises: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    rivals: tuple[Mechanism, ...] = ()

    def __post_init__(self) -> None:
        if not self.keeps(self.terms):
            raise InvalidInput(
                "a plan's terms and its statistic are those its noise was made for; make a new "
                "plan instead of changing them."
            )

    @property
    @abstractmethod
    def name(self) -> str:
        """What users call it."""

    @abstractmethod
    def keeps(self, terms: Terms) -> bool:
        """Whether its noise was made for these terms."""

    # What is said of it

    @property
    def chosen(self) -> str:
        """What was chosen before anybody looked at the data."""
        return "the domain, the weights and p"

    @property
    def caveats(self) -> tuple[str, ...]:
        """What follows from what is known of n."""
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the promise and the errors rest on, in sentences."""
        known = (*self.terms.number(), *self.caveats, self.terms.person())
        blind = f"{self.chosen} were chosen without looking at the data"
        return (*self.premises, *known, blind, *self.said)

    @property
    def expected_error(self) -> float | None:
        """(E‖diag(weights)·noise‖_p²)^½; None where the data decide: see `error_at`."""
        return None

    @property
    def expected_error_method(self) -> str | None:
        """How `expected_error` was found: exact, quadrature, bound or monte carlo."""
        return None

    @property
    def spread(self) -> Spread | StudentSpread | None:
        """The noise on the released value; None where the data decide."""
        return None

    @property
    def standard_error(self) -> Floats | None:
        """The standard deviation of the noise on each value, of shape (d,)."""
        return None if self.spread is None else self.spread.standard_error

    @property
    def covariance(self) -> Floats | None:
        """The covariance of the noise on the value, of shape (d, d)."""
        return None if self.spread is None else self.spread.covariance

    @property
    def certificate(self) -> Certificate | None:
        """How close to the best possible; None where no bound is proved."""
        return None

    @property
    def bias(self) -> float | None:
        """No value's bias is larger, if the assumptions hold; None if no bound is known."""
        return None

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The other mechanisms that were possible, with their errors."""
        return tuple((rival.name, rival.expected_error or 0.0) for rival in self.rivals)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """What nobody knows beforehand and the error depends on: "n", "radius"."""
        return ()

    def error_at(self, *values: float, **named: float) -> float | None:
        """The expected error if the unknowns had these values; None if no value would come out.

        One number for each of the `unknowns`, in their order or by name.
        """
        wanted = self.unknowns
        given = {**dict(zip(wanted, values, strict=False)), **named}
        if not wanted:
            raise InvalidInput("nothing unknown decides this error: see expected_error.")
        if set(given) != set(wanted) or len(values) + len(named) != len(wanted):
            names = ", ".join(f"{name}=…" for name in wanted)
            raise InvalidInput(f"the error depends on what nobody knows: error_at({names}).")
        return self.error_if(**given)

    def error_if(self, *values: Any, **named: Any) -> float | None:
        """`error_at`, by names."""
        return None

    def statistics(self) -> tuple[PlannedStatistic, ...]:
        """What is known beforehand of each of the statistics of a set; none if it is for one."""
        return ()

    def spent(self) -> tuple[Spent, ...]:
        """Noise for several statistics, and what each takes of its promise; none if it is one."""
        return ()

    def planned_as(self, name: str) -> PlannedStatistic:
        """The same of its only statistic, by the name that it has in a set."""
        errors = self.standard_error
        return PlannedStatistic(
            name=name,
            groups=self.groups,
            share=1.0,
            mechanism=self.name,
            error=None if errors is None else float(errors.max()),
            certificate=self.certificate,
        )

    @property
    def groups(self) -> int:
        """In how many groups of records it is answered."""
        return 1

    @abstractmethod
    def errors(self) -> list[tuple[Any, Any]]:
        """A table of errors: of each value, or for cases that there may be."""

    @abstractmethod
    def decisive(self) -> dict[str, Any]:
        """All that decides the release beside the terms, for the digest."""

    def details(self) -> dict[str, Any]:
        """What `to_dict` of a plan tells of this mechanism alone."""
        return {}

    # How it is shown

    @property
    def title(self) -> str:
        """What is planned, in a few words."""
        return f"private {self.statistic}"

    @property
    def relation(self) -> str:
        """What one person can do to the data, in words."""
        return self.terms.relation()

    @property
    def number_words(self) -> str:
        """What is known of n."""
        if self.terms.hides_n:
            return "secret"
        return "counted from the data" if self.n is None else f"{self.n}, public"

    @abstractmethod
    def facts(self) -> Rows:
        """What is planned beside the terms, a fact a line."""

    @abstractmethod
    def tables(self) -> list[Rows]:
        """Tables of errors, each with a line of headings; the last is the one for a page."""

    def notes(self) -> list[str]:
        """Sentences below the tables."""
        return []

    def set_notes(self, name: str) -> list[str]:
        """The same in a set of statistics, where the part has this name: how good it is."""
        if self.certificate is None or self.certificate.ratio is None:
            return []
        return [f"{name[:1].upper()}{name[1:]}: {self.certificate.closeness()}"]

    @abstractmethod
    def figure(self, *chosen: Any) -> Figure:
        """The mechanism as a picture."""

    # How it is carried out

    @abstractmethod
    def open(self, data: Any, columns: Columns) -> Any:
        """The data as the mechanism reads them: arguments and metadata are checked alone."""

    def counted(self, source: Any) -> Mechanism:
        """The mechanism for these records: their number compared, or counted, if it is public."""
        return self

    def admit(self, source: Any) -> None:
        """Refuse whatever can be refused without a value."""
        return

    @abstractmethod
    def note(self, source: Any) -> str | None:
        """What the ledger's entry says; None if nothing is told, so that nothing is paid."""

    @abstractmethod
    def read(self, source: Any) -> Any:
        """Read the values, add the noise, and say what came out: an `Answer`."""

    def reading(self, source: Any) -> Reading[tuple[Any, ...]]:
        """What comes out for each of its `statistics`, as a reading.

        Passes that the parts of a plan ask for at the same time are one.
        """
        return (self.read(source),)
        yield

    def answers(self, source: Any) -> tuple[Any, ...]:
        """The same, by itself."""
        from muhat.data.shared import carried_out

        return carried_out(self.reading(source))

    def basis(self, *said: str) -> dict[str, Any]:
        """What an answer says of how it was made, of how many records, and what it rests on."""
        return {
            "mechanism": self.name,
            "n": self.n,
            "contributions": self.contributions,
            "assumptions": (*self.assumptions, *said),
        }

    def assuming(self, *sentences: str) -> Self:
        """The same mechanism with more assumptions stated."""
        return replace(self, said=(*self.said, *sentences))
