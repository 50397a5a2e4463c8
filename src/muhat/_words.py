"""Sentences whose words for parameters are marked, so that nobody searches a text for them.

A sentence is a tuple of parts: text, and `Parameter`s. Python and the command line write the same
parts, each with its own words for the parameters; a column that is called like one is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muhat._text import printable


@dataclass(frozen=True)
class Parameter:
    """A parameter as a sentence names it.

    `python` are Python's words for it, if they are more than the name, and `shell` those of the
    command line. Without `shell`, that is the flag of this name, if the command has one.

    >>> str(Parameter("n_min")), str(Parameter("n", "n=None", "--secret-n"))
    ('n_min', 'n=None')
    """

    name: str
    python: str = ""
    shell: str | None = None

    def __str__(self) -> str:
        return self.python or self.name


Part = str | Parameter
Sentence = Part | tuple[Part, ...]


def given(name: str, value: bool | int | str) -> Parameter:
    """A parameter with a value that a sentence proposes.

    >>> [str(given("symmetric", True)), str(given("missing", "drop")), given("p", 2).shell]
    ['symmetric=True', 'missing="drop"', '--p 2']
    """
    flag = "--" + name.replace("_", "-")
    shown = f'"{value}"' if isinstance(value, str) else value
    return Parameter(name, f"{name}={shown}", flag if value is True else f"{flag} {value}")


def rows(n: int | None = None) -> Parameter:
    """The number of rows, or of people, which need not be typed: it may have been counted.

    >>> str(rows()), str(rows(10)), rows(10).shell
    ('n', 'n = 10', 'n = 10')
    """
    words = "n" if n is None else f"n = {n}"
    return Parameter("n", words, words)


def given_rows(n: int) -> Parameter:
    """The number of rows as somebody has typed it.

    >>> str(given_rows(10)), given_rows(10).shell
    ('n = 10', '--n 10')
    """
    return Parameter("n", f"n = {n}", f"--n {n}")


def example_of_reals(dim: int) -> Parameter:
    """Records whose size alone is bounded."""
    return Parameter("domain", f"mh.Reals(dim={dim}, magnitude=1e6)", "--magnitude 1e6")


def parts(sentence: Sentence) -> tuple[Part, ...]:
    """A sentence as a tuple."""
    return sentence if isinstance(sentence, tuple) else (sentence,)


def written(sentence: Iterable[Part], word: Callable[[Parameter], str] = str) -> str:
    """The sentence as one text; whatever could steer a terminal is escaped.

    >>> written(("a column n_min needs ", Parameter("n_min")), lambda each: f"--{each.name}")
    'a column n_min needs --n_min'
    """
    return printable("".join(each if isinstance(each, str) else word(each) for each in sentence))


SECRET_N = Parameter("n", "n=None", "--secret-n")
SUBSTITUTE = Parameter("neighbors", 'neighbors="substitute"', "--substitute")
IN_REALS = Parameter("domain", "records in mh.Reals", "--magnitude")
BOX = Parameter("domain", "mh.Box", "--bounds")
BALL_OR_BOX = Parameter("domain", "mh.Ball, mh.Box", "--ball, --bounds")
APPROXIMATE = Parameter("privacy", "mh.ApproxDP(epsilon=..., delta=...)", "--epsilon with --delta")
"""What sentences of several rooms propose."""
