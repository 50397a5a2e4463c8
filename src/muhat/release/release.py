"""What comes out: the answers of a plan's parts, and what was promised and paid for them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat._delegation import Delegated
from muhat._text import joined
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors, Privacy
from muhat.release.answer import Answer, read_json
from muhat.release.certificate import Certificate
from muhat.release.display import caution_lines, page, table
from muhat.release.outputs import Outputs
from muhat.release.spent import Spent

MANY = "muhat.releases/1"
"""The schema of several answers for one promise."""

KINDS = {
    "muhat.release/1": "muhat.release.vector_answer.VectorAnswer",
    "muhat.quantile/1": "muhat.release.quantile_answer.QuantileAnswer",
    "muhat.quantile/2": "muhat.release.quantile_answer.QuantileAnswer",
    "muhat.group-quantiles/1": "muhat.release.group_quantile_answer.GroupQuantileAnswer",
    "muhat.queries/1": "muhat.release.query_answer.QueryAnswer",
    "muhat.queries/2": "muhat.release.query_answer.QueryAnswer",
    "muhat.groups/1": "muhat.release.group_answer.GroupAnswer",
    "muhat.groups/2": "muhat.release.group_answer.GroupAnswer",
    "muhat.statistic/1": "muhat.release.statistic_answer.StatisticAnswer",
    "muhat.no-groups/1": "muhat.release.no_groups.NoGroups",
    "muhat.protocol-quantile/1": "muhat.protocols.estimators.quantile_result.CountedQuantiles",
    "muhat.protocol-ranges/1": "muhat.protocols.estimators.ranges_result.CountedRanges",
}
"""Where the answers of a schema are read: loaded when there is one."""


class IntervalMethod(Protocol):
    """How a release is asked for intervals; answers that know no population take no target."""

    def __call__(
        self,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        target: str = "records",
        guaranteed: bool = False,
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends: one interval a value, or with `simultaneous` all at once."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Release(Outputs):
    """Private answers, one a part of the plan, and what was promised and paid for all of them.

    One part is the ordinary case: what its answer has, the release has. With several parts
    `release["mean of age"]` is the release of that part, by its name; the means of groups are
    `release["north"]` in the same way. `unit` is the column that says whose rows are protected
    together, if there is one, and `shares` are what each noise of a set took of the promise.
    Nothing in a release depends on the data except through noisy numbers.
    """

    answers: tuple[Answer, ...]
    privacy: Privacy
    neighbors: Neighbors
    plan_digest: str
    ledger_head: dict[str, Any] | None = None
    unit: str | None = None
    names: tuple[str, ...] = ()
    shares: tuple[Spent, ...] = ()

    # Of every answer.
    statistic = Delegated[str]("What was asked: a mean, a quantile, …")
    mechanism = Delegated[str]("What made it.")
    value = Delegated[Floats]("The answer; of shape (d,) for a mean of d columns.")
    interval = Delegated[IntervalMethod]("(lower, upper), each of the shape of `value`.")
    certificate = Delegated[Certificate | None]("How close to the best possible.")
    failure = Delegated[str | None]("Why no value came out.")
    failed = Delegated[bool]("Whether no value came out; the promise is spent all the same.")
    columns = Delegated[tuple[str, ...]]("The columns that it is of.")
    missing = Delegated[Any]("The rule for missing values that was used.")
    recorded = Delegated[Any]("The noisy number of values that there were, if it is known.")
    recorded_error = Delegated[Any]("The standard deviation of `recorded`.")
    recorded_noise = Delegated[Any]("The law of its error, of answers to queries.")
    noise = Delegated[Any]("The law of the error, None if nothing is known about it.")
    standard_error = Delegated[Floats | None]("The deviation of every value's noise, if known.")
    covariance = Delegated[Floats | None]("The covariance of the noise, if known.")

    # Of means, sums and counts.
    domain = Delegated[Domain | None]("The set that records were clipped to.")
    domain_is_learnt = Delegated[bool]("Whether that set came out with the value.")
    bias = Delegated[float | None]("No column's bias is larger, if the assumptions hold.")
    rmse = Delegated[float | None]("The root mean square error at most, if a moment is assumed.")
    moment = Delegated[Any]("What was assumed of the population.")
    moment_error = Delegated[Any]("What follows from that.")
    tells_population = Delegated[bool]("Whether an interval for the population follows.")
    squares = Delegated[Any]("Noisy sums of squares, for the sampling error.")
    outside = Delegated[Any]("How many records lie outside a domain that was learnt.")
    record_mean = Delegated[Any]("Where the mean lies with them.")
    averaged = Delegated[int | None]("Of how many records the value is, if of a part.")
    unprojected = Delegated[Floats | None]("The value before a projection.")
    unshrunk = Delegated[Floats | None]("The value without shrinking.")
    empty = Delegated[NDArray[np.bool_]]("Where no recorded values can be told from none.")

    # Of quantiles.
    q = Delegated[float | tuple[float, ...]]("What was asked for.")
    fractions = Delegated[tuple[float, ...]]("The same, always as several.")
    rank_error = Delegated[Callable[..., NDArray[np.int64]]]("How far ranks may be off.")
    resolution = Delegated[Floats]("The step of every column's grid.")
    noise_scale = Delegated[Floats]("The deviation of every comparison's noise, in records.")
    rounds = Delegated[NDArray[np.int64]]("The comparisons that were made.")

    # Of queries and of groups.
    workload = Delegated[Any]("The queries.")
    attributes = Delegated[Any]("The names of the histogram's axes.")
    variances = Delegated[Any]("The variance of every answer's noise.")
    marginal = Delegated[Callable[..., Floats]]("The table of one marginal.")
    by = Delegated[str | tuple[str, ...]](
        "The column of the groups; for statistics of a set a tuple of columns."
    )
    groups = Delegated[tuple[Hashable, ...]]("The groups.")
    labels = Delegated[tuple[tuple[str | int | float | bool, ...], ...]]("Those of each column.")
    outputs = Delegated[tuple[str, ...]]("What the numbers of a group are called.")
    moments = Delegated[Any]("The noisy counts, sums, squares and products behind a statistic.")
    too_few = Delegated[NDArray[np.bool_]]("Where a group has too few values for a mean.")
    has_population = Delegated[bool]("Whether groups have intervals for their populations.")

    # Of counts of cells.
    edges = Delegated[Floats]("The edges of the cells, of shape (cells + 1,).")
    part = Delegated[Floats]("The part of the people in each cell.")
    between = Delegated[Any]("How many people have a number between two edges.")
    below = Delegated[Any]("How many people have a number below an edge.")

    def __post_init__(self) -> None:
        count = len(self.answers)
        if not count or ((count > 1 or self.names) and len(set(self.names)) != count):
            raise InvalidInput("a release has answers, and if there are several a name for each.")
        if len({(answer.n, answer.contributions) for answer in self.answers}) > 1:
            raise InvalidInput("the answers of a release are about the same records.")
        if sum(each.share for each in self.shares) > 1:
            raise InvalidInput("the shares of a release are more than the whole promise.")

    @property
    def cost(self) -> Privacy:
        """The promise this release was charged with."""
        return self.privacy

    @property
    def n(self) -> int | None:
        """The public number of records; None if it is secret."""
        return self.answers[0].n

    @property
    def contributions(self) -> int:
        """The most records of a person."""
        return self.answers[0].contributions

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the promise and the errors rest on, in sentences."""
        return tuple(dict.fromkeys(line for each in self.answers for line in each.assumptions))

    @property
    def _only(self) -> Answer:
        if len(self.answers) > 1:
            named = f"release[{self.names[0]!r:.60}]"
            raise AttributeError(f"this release has several parts: ask one of them, {named}")
        return self.answers[0]

    @property
    def _called(self) -> str:
        return self._only.called

    def _parts(self) -> Mapping[Hashable, Answer]:
        """The parts by name; of a single one its groups."""
        named = dict[Hashable, Answer](zip(self.names, self.answers, strict=False))
        return named if len(self.answers) > 1 else {**self.answers[0].parts(), **named}

    def __getitem__(self, name: Hashable) -> Release:
        parts = self._parts()
        if isinstance(name, Hashable) and name in parts:
            return replace(self, answers=(parts[name],), names=())
        hint = _check.did_you_mean(str(name), map(str, parts))
        raise InvalidInput(f"{name!r:.60} is not one of the groups or parts.{hint}")

    def __iter__(self) -> Iterator[tuple[Any, Release]]:
        parts = self._parts()
        if not parts:
            raise TypeError(f"{self._called} has no groups to go through")
        return ((name, self[name]) for name in parts)

    @property
    def releases(self) -> tuple[Release, ...]:
        """That of every group or part, in their order."""
        return tuple(release for _, release in self)

    def projected(self, onto: Domain | Mapping[str, tuple[float, float]] | None = None) -> Release:
        """The value moved to the nearest point of a convex set that the exact answer lies in.

        `onto` is a public set: a domain (its convex hull), or intervals by column, which may
        have infinite ends and leave the other columns alone; `{"income": (0, math.inf)}` stands
        for a half-space, one such entry a column for the cone of non-negative values. Left out,
        it is the domain of the records, where their mean lies; for queries, the answers that some
        histogram of non-negative counts could have given.

        Free of privacy cost, no longer unbiased. The certificate is dropped, because its bounds
        speak of unbiased mechanisms; intervals and standard errors stay those of the noise.

        >>> import math
        >>> import numpy as np, muhat as mh
        >>> data, promise = {"debt": np.zeros(900)}, mh.ZCDP(rho=0.1)
        >>> release = mh.mean(data, domain={"debt": (-1, 1)}, privacy=promise)
        >>> float(release.projected(onto={"debt": (0, math.inf)})) >= 0
        True
        """
        return replace(self, answers=(self._only.projected(onto),))

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data, ready for JSON."""
        account = {
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "cost": privacy.to_dict(self.cost),
            "cautions": list(privacy.cautions(self.privacy, self.n)),
            "plan_digest": self.plan_digest,
            "ledger_head": self.ledger_head,
            **({} if self.unit is None else {"unit": self.unit}),
            **({"shares": [each.to_dict() for each in self.shares]} if self.shares else {}),
        }
        if len(self.answers) == 1:
            return self.answers[0].written(account)
        named = zip(self.names, self.answers, strict=True)
        return {
            "schema": MANY,
            "n": self.n,
            **account,
            "answers": [{"name": name, **answer.written({})} for name, answer in named],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The release as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote, of whatever kind."""
        return read_json(text, (*KINDS, MANY), "a muhat release", cls._of)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Release:
        several = fields["schema"] == MANY
        answers = fields["answers"] if several else [fields]
        # Means of groups said before only of every group what was promised.
        account = fields if "privacy" in fields else fields["releases"][0]
        return cls(
            answers=tuple(_kind(each["schema"]).from_dict(each) for each in answers),
            privacy=privacy.from_dict(account["privacy"]),
            neighbors=Neighbors.parse(account["neighbors"]),
            plan_digest=str(account["plan_digest"]),
            ledger_head=account["ledger_head"],
            unit=account.get("unit"),
            names=tuple(str(each["name"]) for each in answers) if several else (),
            shares=tuple(map(Spent.from_dict, account.get("shares", ()))),
        )

    def __float__(self) -> float:
        if self.value.size != 1:
            raise TypeError("only a release of one number is a float")
        return float(self.value.flat[0])

    def describe(self) -> str:
        """The release, how its values were found and what they rest on."""
        return self._text(["", "Assumptions:", *(f"- {line}" for line in self.assumptions)])

    def __repr__(self) -> str:
        return self._text()

    def _repr_html_(self) -> str:
        return "".join(page(title, each.rows(), notes) for title, each, notes in self._shown())

    def _text(self, more: Sequence[str] = ()) -> str:
        """The tables and their notes; with `more` below them, how the values were found too."""
        lines: list[str] = []
        for title, each, notes in self._shown():
            details = ["", *each.details()] if more and each.details() else []
            lines += ["", title, *details, "", *table(each.rows()), *[""] * bool(notes), *notes]
        return joined([*lines[1:], *more])

    def _shown(self) -> Iterator[tuple[str, Answer, list[str]]]:
        """The title, the answer and the notes of every part."""
        spent = f"{self.privacy.describe()} · {self.answers[0].people}"
        said = dict.fromkeys(caution_lines(self.privacy, self.n))
        for place, each in enumerate(self.answers):
            title = self.names[place] if self.names else f"Private {each.heading}"
            # What holds for several parts is said once, below the first of them.
            told = [*each.notes(), *each.remarks]
            notes = [line for line in told if line not in said] if place else told
            more = spent if place == 0 else each.heading
            heading = title if more == title else f"{title} · {more}"
            yield heading, each, notes if place else [*said, *notes]
            said |= dict.fromkeys(notes)


def _kind(schema: str) -> type[Answer]:
    module, _, name = KINDS[schema].rpartition(".")
    found: type[Answer] = getattr(importlib.import_module(module), name)
    return found
