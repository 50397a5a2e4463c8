"""What came out for one part of a plan; every kind of statistic has its kind of answer."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import MALFORMED
from muhat.errors import InvalidInput
from muhat.release.certificate import Certificate
from muhat.release.display import MOST_ROWS

CONFIDENCE = 0.95
"""That of the intervals that are written and shown."""

TARGETS = ("records", "population")
"""What an interval may be for: these records, or what they are independent draws of."""

POPULATION = ("population_lower", "population_upper")
"""The columns of a table for the second kind."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(ABC):
    """Values, how far off they may be, and what that rests on.

    `n` is the public number of records, None if it is secret, and `contributions` the most records
    of a person. With a `failure`, the reason why, no value came out. `remarks` are sentences on
    what was learnt on the way. Nothing here depends on the data except through noisy numbers.
    """

    mechanism: str
    n: int | None
    contributions: int
    assumptions: tuple[str, ...]
    certificate: Certificate | None = None
    failure: str | None = None
    remarks: tuple[str, ...] = ()

    schema: ClassVar[str]
    """The meaning of an existing field never changes; a new meaning is a new schema."""

    def __post_init__(self) -> None:
        _check.count("contributions", self.contributions)
        if self.n is not None:
            _check.count("n", self.n, least=0)

    @property
    def failed(self) -> bool:
        """Whether no value came out; the promise is spent all the same."""
        return self.failure is not None

    @property
    @abstractmethod
    def called(self) -> str:
        """What it is, where something is said of it: "a mean"."""

    @property
    @abstractmethod
    def heading(self) -> str:
        """What it is, in a title: "mean", "means by region"."""

    @property
    def people(self) -> str:
        """What is known of n."""
        return "n secret" if self.n is None else f"n = {self.n}"

    def details(self) -> list[str]:
        """How the values were found, in sentences for a full description."""
        return []

    @abstractmethod
    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """The table for people: a header, then a line a value, at most so many of them."""

    @abstractmethod
    def table(self, confidence: float = CONFIDENCE) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a value: what it is, then `value` and what is said of it."""

    @abstractmethod
    def notes(self) -> list[str]:
        """What to know about the table, in sentences."""

    def parts(self) -> Mapping[Hashable, Answer]:
        """The answers of its groups, by name; none if it has none."""
        return {}

    def projected(self, onto: Any = None) -> Answer:
        """The values moved to the nearest that are possible; see the release."""
        raise InvalidInput(f"{self.called} is not projected: its values are possible ones.")

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""

    @classmethod
    @abstractmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The answer that `to_dict` described."""

    def written(self, account: dict[str, Any]) -> dict[str, Any]:
        """The answer beside what was promised and paid for it."""
        return {"schema": self.schema, **self.to_dict(), **account}

    def _common(self) -> dict[str, Any]:
        """What every answer says, as plain data."""
        return {
            "mechanism": self.mechanism,
            "n": self.n,
            "contributions": self.contributions,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "assumptions": list(self.assumptions),
            **({"remarks": list(self.remarks)} if self.remarks else {}),
        }


def read_common(fields: dict[str, Any]) -> dict[str, Any]:
    """What every answer says, from plain data, as arguments."""
    n, certificate = fields["n"], fields["certificate"]
    return {
        "mechanism": str(fields["mechanism"]),
        "n": None if n is None else _check.count("n", n, least=0),
        "contributions": _check.count("contributions", fields["contributions"]),
        "certificate": None if certificate is None else Certificate.from_dict(certificate),
        "assumptions": tuple(map(str, fields["assumptions"])),
        "remarks": tuple(map(str, fields.get("remarks", ()))),
    }


NOT_INDEPENDENT = (
    "records of one person are not independent draws, so the sampling error is unknown"
)
"""Why people with several records have no interval for a population."""


def refuse_population(why: str | None) -> None:
    """Refuse an interval for the population, if there is a reason."""
    if why is not None:
        raise InvalidInput(f'{why}; use target="records".')


def interval_fields(interval: tuple[Floats, Floats], target: str = "records") -> dict[str, Any]:
    """The interval around the exact answer for the clipped records, or for their population."""
    lower, upper = interval
    return {
        "confidence": CONFIDENCE,
        "target": target,
        "lower": lower.tolist(),
        "upper": upper.tolist(),
    }


Read = TypeVar("Read")


def read_json(
    text: str, schemas: Collection[str], what: str, build: Callable[[dict[str, Any]], Read]
) -> Read:
    """What `build` makes of the fields of a text of these schemas, or InvalidInput."""
    try:
        fields = json.loads(text, parse_constant=_refuse)
    except MALFORMED:
        raise InvalidInput(f"the text is not the JSON of {what}.") from None
    return read_fields(fields, schemas, f"the JSON of {what}", build)


def read_fields(
    fields: Any, schemas: Collection[str], what: str, build: Callable[[dict[str, Any]], Read]
) -> Read:
    """What `build` makes of fields of these schemas, whatever they were read from."""
    try:
        if fields["schema"] not in schemas:
            found, read = fields["schema"], ", ".join(schemas)
            raise InvalidInput(f"the text has schema {found!r:.40}; {read} is read.")
        return build(fields)
    except MALFORMED as error:
        if isinstance(error, InvalidInput):
            raise
    raise InvalidInput(f"the text is not {what}.")


def _refuse(name: str) -> None:
    """NaN and infinities are not JSON, although Python would read them."""
    raise ValueError(name)
