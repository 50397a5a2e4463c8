"""A TOML text, and in which line each of its tables and keys stands.

`tomllib` says it of texts that it cannot read only; whatever else is wrong is found later, and is
to be said with its line too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from muhat import _check
from muhat.errors import InvalidInput

Place = tuple[str | int, ...]
"""Where something stands: ("statistic", 1, "column") is a key of the second [[statistic]]."""

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[A-Za-z0-9_-]+"
    r"|[^ \t\r]",
    flags=re.DOTALL,
)
"""A string, a comment, a bare key, or a single sign."""


@dataclass(frozen=True)
class Document:
    """A text that was read as TOML, and where everything in it stands."""

    content: dict[str, Any]
    lines: dict[Place, int]
    source: str

    @classmethod
    def of(cls, text: str, source: str) -> Document:
        """A text, or InvalidInput with the line where it is no TOML."""
        try:
            return cls(tomllib.loads(text), toml_lines(text), source)
        except tomllib.TOMLDecodeError as error:
            said, _, place = str(error).partition(" (at ")
            line = re.match(r"line (\d+)", place)
            number = int(line[1]) if line else len(text.splitlines())
            words = f"{source}, line {number}: {said[:1].lower()}{said[1:]}."
            raise InvalidInput(words, hint='Text stands in quotes: kind = "mean".') from None
        except RecursionError:
            raise InvalidInput(f"{source} is nested too deeply.") from None

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Refusals begin with the line of something, or of the key below it that is refused."""
        try:
            yield
        except InvalidInput as error:
            below = (*path, str(error.parameter))
            raise self.refusal(below if below in self.lines else path, str(error)) from None

    def refusal(self, path: Place, sentence: str) -> InvalidInput:
        """What is wrong, with its line."""
        line = self.line_of(path)
        return InvalidInput(f"{self.source}{'' if line is None else f', line {line}'}: {sentence}")

    def line_of(self, path: Place) -> int | None:
        """The line of something, or else of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def table(self, *path: str, needed: str = "") -> dict[str, Any]:
        """A table, empty if it may be left out."""
        found: dict[str, Any] = self.content
        for depth, name in enumerate(path, 1):
            found = found.get(name, {})
            if not isinstance(found, dict):
                words = ".".join(path[:depth])
                raise self.refusal(path[:depth], f"{words} must be a table: [{words}].")
        if needed and not found:
            raise self.refusal(path, needed)
        return found

    def check_keys(self, path: Place, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        """Every key of a table is one of these."""
        for key in table:
            if key not in allowed:
                hint = _check.did_you_mean(key, allowed) or f" There are {', '.join(allowed)}."
                raise self.refusal((*path, key), f"nothing is called {key!r:.60} here.{hint}")

    def text(self, path: tuple[str, ...]) -> str:
        """A text of the top of the document, or none."""
        found = self.content.get(path[0], "")
        if not isinstance(found, str):
            raise self.refusal(path, f"{path[0]} must be text, in quotes.")
        return found


def toml_lines(text: str) -> dict[Place, int]:
    """The lines of all tables and keys of a text that `tomllib` can read.

    What stands inside an inline table or a list is in the line where that begins.

    >>> lines = toml_lines('title = "x"\\n[[a]]\\nb = [\\n1]\\n[[a]]\\n[a.c]\\nd.e = 2')
    >>> lines["title",], lines["a", 0, "b"], lines["a", 1], lines["a", 1, "c", "d", "e"]
    (1, 3, 5, 7)
    """
    lines: dict[Place, int] = {}
    lengths: dict[Place, int] = {}
    table: Place = ()
    for number, tokens in _statements(text):
        if tokens[0] != "[":
            key = tokens[: tokens.index("=")]
            _note(lines, table, (*table, *_names(key)), number)
            continue
        path: Place = ()
        many, names = tokens[1] == "[", _names(tokens)
        for depth, name in enumerate(names, 1):
            path = (*path, name)
            if many and depth == len(names):
                lengths[path] = lengths.get(path, 0) + 1
                lines.setdefault(path, number)
            if path in lengths:
                path = (*path, lengths[path] - 1)
        table = path
        _note(lines, (), path, number)
    return lines


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """The tokens of every header and every key with its value, and the line of the first."""
    tokens: list[str] = []
    depth, number, first = 0, 1, 1
    for found in _TOKEN.finditer(text + "\n"):
        token = found[0]
        if token == "\n":
            if tokens and depth == 0:
                yield first, tokens
                tokens = []
        elif not token.startswith("#"):
            first = first if tokens else number
            tokens.append(token)
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token, 0)
        number += token.count("\n")


def _names(tokens: list[str]) -> list[str]:
    """The parts of a key or of a header; quoted ones mean what TOML says."""
    parts = [token for token in tokens if token not in (".", "[", "]")]
    return [tomllib.loads(f"name = {part}")["name"] if part[0] in "\"'" else part for part in parts]


def _note(lines: dict[Place, int], within: Place, path: Place, number: int) -> None:
    """Note the line of a path, and of the tables that it makes on its way."""
    for end in range(len(within) + 1, len(path) + 1):
        lines.setdefault(path[:end], number)
