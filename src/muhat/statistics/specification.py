"""A release written down: the schema, the promise and the statistics, in a TOML file.

    title = "Income in 2025"
    [privacy]                          # rho, mu, epsilon, epsilon with delta, alpha with epsilon
    rho = 0.5
    [data]
    n = "secret"                       # or a public number; left out, rows are counted
    [schema]
    unit = "person"
    max_rows = 3
    [schema.columns]
    salary = "0:200000"                # or {bounds = [0, 200000]}
    region = ["north", "south"]        # or {categories = [...]}, or "learn"
    joined = {bins = [2000, 2010, 2020]}
    [[statistic]]
    kind = "mean"
    column = "salary"
    by = ["region"]
    target = {standard_error = 200}
    n_group = 2000
    [[statistic]]
    kind = "queries"
    columns = ["region", "joined"]
    workload = {marginals = 2}         # or identity, prefix, ranges = true

It is reviewed and kept as a file, so every mistake in it is said with its line.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from muhat import _check
from muhat._plain import Plain, digest_of, to_plain
from muhat.errors import InvalidInput
from muhat.privacy import KINDS, Neighbors, Privacy, from_flags
from muhat.statistics.asked import Asked, sizes_of
from muhat.statistics.asked_base import check_new, column_list
from muhat.statistics.declared import LEARN, Declared, declared, from_plain
from muhat.statistics.schema import KEYS, Schema
from muhat.statistics.toml_document import Document, Place
from muhat.workloads import Workload, identity, kron, marginals, matrix, prefix, ranges

SECTIONS = ("title", "note", "team", "privacy", "data", "schema", "statistic")
MEANT = ("schema", "statistics", "privacy", "n", "neighbors")
"""What decides a release; the rest is said about it."""


@dataclass(frozen=True)
class Specification(Plain, keys=("title", "note", "team", *MEANT)):
    """What shall be released, and under which promise.

    `n` is a public number of records, "secret", or "counted"; `neighbors` is None where n or an
    account decides. `title`, `note` and `team` go to the report and to the account, and `text` is
    what was read.
    """

    schema: Schema
    statistics: tuple[Asked, ...]
    privacy: Privacy
    n: int | Literal["secret", "counted"] = "counted"
    neighbors: Neighbors | None = None
    title: str = ""
    note: str = ""
    team: str = ""
    text: str = field(default="", compare=False, repr=False)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The specification in a file whose name ends in .toml, or InvalidInput."""
        file = Path(path)
        if file.suffix.lower() != ".toml":
            raise InvalidInput(
                "must be the name of a file that ends in .toml",
                parameter="specification",
                value=f"{file.name!r:.60}",
            )
        try:
            text = file.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidInput(f"{file.name} is no text in UTF-8.") from None
        except OSError as error:
            raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None
        return cls.parse(text, file.name)

    @classmethod
    def parse(cls, text: str, source: str = "the specification") -> Self:
        """The specification in a text, or InvalidInput with the line of the mistake.

        >>> Specification.parse('''
        ... privacy = {rho = 0.5}
        ... schema.columns = {age = "16:90", sex = ["f", "m"]}
        ... [[statistic]]
        ... kind = "mean"
        ... column = "age"
        ... by = "sex"
        ... ''').statistics
        (Mean('age', by='sex'),)
        """
        document = Document.of(text, source)
        sections = document.content
        document.check_keys((), sections, SECTIONS)
        schema = _schema(document)
        n, neighbors = _about_data(document)
        return cls(
            schema=schema,
            statistics=_statistics(document, schema),
            privacy=_promise(document),
            n=n,
            neighbors=neighbors,
            **{name: document.text((name,)) for name in ("title", "note", "team")},
            text=text,
        )

    @property
    def digest(self) -> str:
        """SHA-256 of what is meant: the same however it is written, or in which order."""
        meant = {name: to_plain(getattr(self, name)) for name in MEANT}
        meant["statistics"].sort(key=lambda asked: asked["name"])
        return digest_of(meant)


def _promise(document: Document) -> Privacy:
    ways = "; ".join(" and ".join(kind.flags) for kind in KINDS.values())
    needed = f"a promise is needed: a section [privacy] with {ways}."
    numbers = document.table("privacy", needed=needed)
    names = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.flags))
    document.check_keys(("privacy",), numbers, names)
    with document.at("privacy"):
        if not any(set(kind.flags) == set(numbers) for kind in KINDS.values()):
            raise InvalidInput(f"a promise has exactly one of: {ways}.")
        return from_flags(numbers)


def _about_data(
    document: Document,
) -> tuple[int | Literal["secret", "counted"], Neighbors | None]:
    """n, and the relation, which must not contradict it."""
    table = document.table("data")
    document.check_keys(("data",), table, ("n", "neighbors"))
    relation, n = table.get("neighbors"), table.get("n", "counted")
    with document.at("data"):
        neighbors = None if relation is None else Neighbors.parse(relation)
        if n == "secret" and isinstance(n, str):
            if neighbors is Neighbors.SUBSTITUTE:
                raise InvalidInput(
                    'is not secret where records are replaced: neighbors = "add-remove", or leave '
                    "one of the two out",
                    parameter="n",
                )
            return "secret", neighbors
        if isinstance(n, str) and "n" in table:
            raise InvalidInput(
                'must be a whole number, or "secret"',
                parameter="n",
                value=f"{n!r:.60}",
                hint="Left out, rows are counted.",
            )
        if "n" not in table:
            return "counted", neighbors
        if neighbors is Neighbors.ADD_REMOVE:
            raise InvalidInput(
                "is secret where records are added or removed: leave it out, or write "
                'neighbors = "substitute"',
                parameter="n",
            )
        return _check.count("n", n), neighbors


def _schema(document: Document) -> Schema:
    table = document.table("schema", needed="a section [schema] is needed, with [schema.columns].")
    document.check_keys(("schema",), table, KEYS)
    columns = {}
    for name, described in document.table("schema", "columns").items():
        with document.at("schema", "columns", name):
            columns[name] = _column(name, described)
    rest = {key: value for key, value in table.items() if key != "columns"}
    with document.at("schema"):
        return Schema(columns, **rest)


def _column(name: str, described: Any) -> Declared:
    """A column as it stands in a file: "0:100", "learn", a list, or a table of one key."""
    if not isinstance(described, str) or described == LEARN:
        if not isinstance(described, str | list | dict):
            raise _no_column(name, type(described).__name__)
        return from_plain(name, described)
    low, _, high = described.partition(":")
    try:
        ends = _number(low), _number(high)
    except ValueError:
        raise _no_column(name, f"{described!r:.60}") from None
    return declared(name, ends)


def _number(text: str) -> int | float:
    """A number as typed; integers stay exact."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _no_column(name: str, got: str) -> InvalidInput:
    return InvalidInput(
        'must be bounds, "0:200000"; a list of categories, ["north", "south"]; bins, '
        '{bins = [2000, 2010, 2020]}; or "learn"',
        parameter=f"column {name!r:.60}",
        value=got,
    )


def _statistics(document: Document, schema: Schema) -> tuple[Asked, ...]:
    entries = document.content.get("statistic", [])
    if isinstance(entries, dict):
        raise document.refusal(("statistic",), "write [[statistic]], in two pairs of brackets.")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise document.refusal(("statistic",), "statistics are tables: [[statistic]].")
    if not entries:
        raise document.refusal((), 'nothing is asked for: add [[statistic]] and kind = "count".')
    seen: dict[str, Asked] = {}
    for position, entry in enumerate(entries):
        asked = _asked(document, ("statistic", position), entry, schema)
        with document.at("statistic", position):
            check_new(asked, seen, schema)
    return tuple(seen.values())


def _asked(document: Document, path: Place, entry: Mapping[str, Any], schema: Schema) -> Asked:
    """The statistic that a table describes."""
    kinds = Asked._plain_kinds
    with document.at(*path):
        given = entry.get("kind")
        words = given.replace("_", " ") if isinstance(given, str) else given
        maker: Any = kinds[_check.one_of("kind", words, kinds)]
    parameters = inspect.signature(maker).parameters
    document.check_keys(path, entry, ("kind", *parameters))
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in entry:
            raise document.refusal(path, f"kind = {given!r} needs {name} = … .")
    rest = {key: value for key, value in entry.items() if key != "kind"}
    if "workload" in rest:
        with document.at(*path, "columns"):
            names = column_list("columns", rest["columns"], least=1)
            sizes = sizes_of(names, schema)
        with document.at(*path, "workload"):
            rest["workload"] = _workload(rest["workload"], names, sizes)
    with document.at(*path):
        made: Asked = maker(**rest)
    return made


_WORKLOADS = ("marginals", "identity", "prefix", "ranges", "matrix")


def _workload(described: Any, names: tuple[str, ...], sizes: tuple[int, ...]) -> Workload:
    """A workload on the table of these columns: one that their sizes complete."""
    if not isinstance(described, dict) or len(described) != 1:
        raise InvalidInput(
            "must be a table of one key, as {marginals = 2} or {prefix = true}",
            parameter="workload",
        )
    ((kind, value),) = described.items()
    _check.one_of("workload", kind, _WORKLOADS)
    if kind == "matrix":
        return matrix(value, sizes)
    if kind == "marginals":
        return _marginals(value, names, sizes)
    if value is not True:
        raise InvalidInput(f"must be {{{kind} = true}}", parameter="workload")
    if kind == "identity":
        return identity(sizes)
    return kron(*(prefix(size) if kind == "prefix" else ranges(size) for size in sizes))


def _marginals(value: Any, names: tuple[str, ...], sizes: tuple[int, ...]) -> Workload:
    """Of an order, of several orders, or of sets of columns by their names."""
    if not isinstance(value, list) or not any(isinstance(each, list) for each in value):
        return marginals(sizes, order=value)
    sets = []
    for each in value:
        chosen = column_list("a set of marginals", each, least=0)
        sets.append([names.index(_check.one_of("a marginal", name, names)) for name in chosen])
    return marginals(sizes, sets=sets)
