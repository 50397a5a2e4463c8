"""What every statistic of a set is asked with: groups, a weight, a target and a name."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from muhat import _check
from muhat._plain import Key, Plain
from muhat._words import Parameter
from muhat.errors import InvalidInput
from muhat.statistics.schema import Schema

By = str | Sequence[str] | None
Target = Mapping[str, float] | None
Term = tuple[str, ...]
"""What is summed over records: () is 1, ("a",) the column, ("a", "b") a product."""

COMMON = (
    "by",
    "weight",
    Key("target", optional=True),
    Key("n_group", optional=True),
    "name",
)
"""The keys that all statistics have."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Asked(Plain, tag="statistic"):
    """One statistic of a set: what is asked, without promise, noise or data.

    `columns` are those it is about, `by` those whose groups it is asked for, `weight` how much its
    error counts among those of the set, `target` an error that it must not exceed, `n_group` a
    public number of records of a group at which its error is judged, `name` what it is called.
    """

    kind: ClassVar[str]
    target_keys: ClassVar[tuple[str, ...]] = ("standard_error",)
    """The errors that may be wished for; none if no error is known before the data."""
    target_needs_size: ClassVar[bool] = False
    """Whether the error in a group depends on how many records it has."""

    about: ClassVar[str] = "column"
    """The parameter that names its columns."""

    columns: tuple[str, ...]
    by: tuple[str, ...]
    weight: float
    target: dict[str, float] | None
    n_group: int | None
    name: str

    @abstractmethod
    def subject(self) -> str:
        """What it is about, in the words of its name: "mean salary" without groups."""

    def terms(self) -> tuple[Term, ...]:
        """The sums over records that it is read off; none if it is no function of moments."""
        return ()

    @property
    def numeric(self) -> tuple[str, ...]:
        """The columns of numbers that it is about."""
        return self.columns

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns of groups that it is about, in their order."""
        return self.by

    @property
    def reading(self) -> str:
        """What kind of answer is read off the sums."""
        return self.kind

    @property
    def wish(self) -> float | None:
        """The error of its target, whichever kind that is."""
        return None if self.target is None else next(iter(self.target.values()))

    def checked(self, schema: Schema) -> Self:
        """The statistic itself, or InvalidInput if a schema does not have what it needs."""
        check_schema(schema)
        for column in self.numeric:
            with self._said(self._parameter_of(column)):
                schema.bounds(column)
        for column in self.axes:
            with self._said(self._parameter_of(column)):
                if not schema.is_learnt(column):
                    schema.categories(column)
        if self.target and self.target_needs_size and self.by and self.n_group is None:
            with self._said("target"):
                raise InvalidInput(
                    "a target in groups needs n_group, a public number of records of a group at "
                    "which it must hold: n_group=2000, say."
                )
        self._check_more(schema)
        return self

    def _check_more(self, schema: Schema) -> None:
        """What this kind of statistic needs beside its columns."""

    def _parameter_of(self, column: str) -> str:
        """The parameter that names a column."""
        return "by" if column in self.by else self.about

    @contextmanager
    def _said(self, parameter: str) -> Iterator[None]:
        """Refusals begin with the name: of a long list, this one is meant."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput(Parameter(parameter, self.name, self.name), f": {error}") from None

    def _ask(
        self,
        columns: tuple[str, ...],
        by: By,
        weight: float,
        target: Target,
        n_group: int | None,
        name: str | None,
        **own: Any,
    ) -> None:
        """Set every field of a frozen statistic; its own are checked already."""
        common = {
            "columns": columns,
            "by": column_list("by", by, least=0),
            "weight": _check.positive("weight", weight),
            "target": self._target(target),
            "n_group": None if n_group is None else _check.count("n_group", n_group),
        }
        for key, value in (own | common).items():
            object.__setattr__(self, key, value)
        object.__setattr__(self, "name", self._words() if name is None else text("name", name))

    def _words(self) -> str:
        return f"{self.subject()} by {listed(self.by)}" if self.by else self.subject()

    def _target(self, given: Target) -> dict[str, float] | None:
        if given is None:
            return None
        if not self.target_keys:
            raise InvalidInput(
                f"is not for a {self.kind}, whose error depends on the data",
                parameter="target",
                hint="Give it a greater weight= instead, or a target to a mean.",
            )
        example = f'{{"{self.target_keys[0]}": 2.5}}'
        if not isinstance(given, Mapping) or len(given) != 1:
            raise InvalidInput(
                f"must be a dict of one error, as {example}",
                parameter="target",
                value=type(given).__name__,
            )
        ((key, error),) = given.items()
        wished = Parameter("target", f"the target of a {self.kind}", f"the target of a {self.kind}")
        key = _check.one_of(wished, key, self.target_keys)
        return {key: _check.positive(Parameter("target", f"target {key}"), error)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asked) and other.to_dict() == self.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def __repr__(self) -> str:
        written = []
        for key, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, key)
            if isinstance(value, tuple):
                value = value[0] if len(value) == 1 and key != "columns" else list(value) or None
            if value == parameter.default or (key == "name" and value == self._words()):
                continue
            leads = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
            written.append(repr(value) if leads else f"{key}={value!r}")
        return f"{type(self).__name__}({', '.join(written)})"


def checked_set(statistics: object, schema: Schema) -> tuple[Asked, ...]:
    """All statistics of a set, each checked and none twice; or InvalidInput.

    >>> from muhat.statistics.asked import Count, Mean
    >>> people = Schema({"age": (16, 90), "sex": ["f", "m"]})
    >>> checked_set([Count(by="sex"), Mean("age", by="sex")], people)
    (Count(by='sex'), Mean('age', by='sex'))
    """
    if isinstance(statistics, Asked):
        statistics = (statistics,)
    if not isinstance(statistics, list | tuple) or not statistics:
        got = "none" if isinstance(statistics, list | tuple) else type(statistics).__name__
        raise InvalidInput(
            'must be a list of statistics, as [mh.Count(), mh.Mean("age")]',
            parameter="statistics",
            value=got,
        )
    seen: dict[str, Asked] = {}
    for asked in statistics:
        check_new(asked, seen, schema)
    return tuple(statistics)


def check_new(asked: object, seen: dict[str, Asked], schema: Schema) -> None:
    """One more statistic of a set, added to those that are there by their names."""
    if not isinstance(asked, Asked):
        raise _no_statistic(asked)
    asked.checked(schema)
    if asked.name in seen:
        fix = "leave one out" if asked == seen[asked.name] else "give one of them a name="
        raise InvalidInput(f"{asked.name!r:.80} is asked for twice; {fix}.")
    seen[asked.name] = asked


def check_schema(schema: object) -> None:
    """A schema, or InvalidInput that says how one is typed."""
    if not isinstance(schema, Schema):
        raise InvalidInput(
            'must be the public facts about the table, as mh.Schema({"age": (16, 90)})',
            parameter="schema",
            value=type(schema).__name__,
        )


def text(parameter: str, value: object) -> str:
    """Some text, or InvalidInput."""
    if not (isinstance(value, str) and value.strip()):
        got = repr(value) if isinstance(value, str) else type(value).__name__
        raise InvalidInput("must be text", parameter=parameter, value=got)
    return value


def one_column(parameter: str, value: object, ask: str) -> str:
    """The name of one column, or InvalidInput that says how several are asked for."""
    if isinstance(value, str) and value:
        return value
    several = isinstance(value, list | tuple)
    raise InvalidInput(
        "must be the name of a column",
        parameter=parameter,
        value=type(value).__name__ if not isinstance(value, str) else repr(value),
        hint=f"Ask for one after the other: [mh.{ask}(each) for each in …]." if several else "",
    )


def column_list(parameter: str, given: object, *, least: int) -> tuple[str, ...]:
    """The names of columns, each once, or InvalidInput; one may stand alone."""
    names = (given,) if isinstance(given, str) else () if given is None else given
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n for n in names):
        raise InvalidInput(
            'must be the name of a column, or a list of names, as ["region", "sex"]',
            parameter=parameter,
            value=type(given).__name__,
        )
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                "must not name a column twice", parameter=parameter, value=f"{name!r:.60}"
            )
    if len(names) < least:
        raise InvalidInput(
            f"must name at least {least}", parameter=parameter, value=str(len(names))
        )
    return tuple(names)


def listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def moments(columns: Sequence[str]) -> tuple[Term, ...]:
    """All moments of columns up to the second: the number, the sums, squares and products.

    >>> moments(["b", "a"])
    ((), ('b',), ('a',), ('b', 'b'), ('a', 'b'), ('a', 'a'))
    """
    pairs = [(a, b) for i, a in enumerate(columns) for b in columns[i:]]
    return ((), *((a,) for a in columns), *((min(pair), max(pair)) for pair in pairs))


def _no_statistic(asked: object) -> InvalidInput:
    got = type(asked).__name__
    hint = ""
    if isinstance(asked, type) and issubclass(asked, Asked):
        got, hint = f"the class {asked.__name__}", f"Write mh.{asked.__name__}(…)."
    elif callable(asked):
        name = getattr(asked, "__name__", "")
        got, hint = f"the function {name}", f"Statistics are in capitals: mh.{name.title()}(…)."
    return InvalidInput(
        'must be made of mh.Count(), mh.Mean("age") and the like',
        parameter="statistics",
        value=got,
        hint=hint,
    )
