"""A lower bound with everything that limits it: which mechanisms, which datasets, whose theorem;
and several that belong together, which print as a table.
"""

from __future__ import annotations

import decimal
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from muhat import _check
from muhat._plain import Key, Plain
from muhat._text import joined, page, table
from muhat.errors import InvalidInput

NUMBERS = {1}
"""The column of a table of bounds that has them."""

_MECHANISMS = {"unbiased": "unbiased ", "additive": "additive-noise ", "any": ""}
_DATASETS = {
    "every": "on every dataset",
    "near": "on every dataset or on a neighbour of it",
    "some": "on some dataset",
    "class": "for some distribution of its class",
    "population": "for every distribution of the records",
    "nearby": "for every distribution of the records or one within 1/n of it",
}
_WHERE = {
    "near": "dataset or neighbour",
    "class": "some distribution",
    "population": "every distribution",
    "nearby": "distribution or one nearby",
}
_SOURCES = ("paper", "derived")
_ONLY_IF = "Conditional on"
"""An assumption that begins so is nobody's to check: the number is never shown without it."""


@dataclass(frozen=True)
class LowerBound(
    Plain,
    keys=(
        *("value", "mechanisms", "datasets", "theorem", "source", "assumptions", "promise"),
        *("citation", Key("records", optional=True)),
    ),
):
    """What no mechanism of a class can beat.

    Attributes:
        value: the error that cannot be beaten, rounded down; None where only a rate is known or
            a condition is not met, which the last of the assumptions then says.
        mechanisms: "unbiased", "additive" (noise whose law does not depend on the data) or "any".
        datasets: "every", "near" (every dataset or a neighbour of it), "some" or "class" (some
            distribution of a class), "population" (every distribution that the records are drawn
            from) or "nearby" (that, or one within 1/n of it in total variation).
        theorem: the name of the theorem.
        source: "paper" if the constant is the paper's own, "derived" if it is proved here
            (docs/proofs/bounds.md).
        assumptions: sentences that must hold for the bound to apply.
        promise: the promise in words, "0.1-zCDP".
        citation: where to read it.
        records: the least and the largest number of records of such a dataset, where it is secret.
    """

    value: float | None
    mechanisms: str
    datasets: str
    theorem: str
    source: str
    assumptions: tuple[str, ...] = ()
    promise: str = ""
    citation: str = ""
    records: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            value = _check.real("value", self.value)
            if value < 0:
                raise InvalidInput("must be at least 0", parameter="value", value=f"{value:g}")
            object.__setattr__(self, "value", value)
        _check.one_of("mechanisms", self.mechanisms, _MECHANISMS)
        _check.one_of("datasets", self.datasets, _DATASETS)
        _check.one_of("source", self.source, _SOURCES)
        if not self.theorem:
            raise InvalidInput(
                "must name the theorem", parameter="theorem", value="an empty string"
            )
        object.__setattr__(self, "assumptions", tuple(map(str, self.assumptions)))

    def sentence(self) -> str:
        """The bound in words; the number is shown with four digits, rounded down.

        >>> LowerBound(0.011029, "unbiased", "every", "B1", "derived", (), "0.1-zCDP").sentence()
        'Every unbiased 0.1-zCDP mechanism has error at least 0.01102 on every dataset.'
        """
        who = " ".join(f"{_MECHANISMS[self.mechanisms]}{self.promise} mechanism".split())
        where = _DATASETS[self.datasets]
        if self.records is not None:
            least, most = self.records
            where += f" of {least:,} to {most:,} records"
        if self.value is None:
            why = "".join(f" {reason}" for reason in self.assumptions[-1:])
            return f"No number is proved for every {who} {where} ({self.theorem}).{why}"
        conditions = "".join(f" {given}" for given in self._conditions)
        return f"Every {who} has error at least {rounded_down(self.value)} {where}.{conditions}"

    @property
    def where(self) -> str:
        """On which datasets, in a few words: "some dataset"."""
        return _WHERE.get(self.datasets, f"{self.datasets} dataset")

    @property
    def is_of_noise(self) -> bool:
        """Whether it speaks of additive noise alone."""
        return self.mechanisms == "additive"

    @property
    def is_conditional(self) -> bool:
        """Whether it rests on a statement that is not proved here."""
        return bool(self._conditions)

    @property
    def _conditions(self) -> list[str]:
        return [given for given in self.assumptions if given.startswith(_ONLY_IF)]


def rounded_down(value: float) -> str:
    """Four digits, never more than the value.

    >>> rounded_down(0.011029)
    '0.01102'
    """
    four_digits = decimal.Context(prec=4, rounding=decimal.ROUND_DOWN)
    return f"{float(four_digits.create_decimal(repr(value))):.4g}"


class BoundTable(Plain, ABC):
    """A sequence of lower bounds; subclasses add a title, rows and notes."""

    bounds: tuple[LowerBound, ...]

    def __iter__(self) -> Iterator[LowerBound]:
        return iter(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, index: int) -> LowerBound:
        return self.bounds[index]

    @abstractmethod
    def _title(self) -> str:
        """One line: the promise and the problem."""

    @abstractmethod
    def _rows(self) -> list[list[str]]:
        """A header, then a line a bound; the second column holds the numbers."""

    @abstractmethod
    def _notes(self) -> list[str]:
        """Sentences under the table."""

    def describe(self) -> str:
        """The table for a terminal."""
        lines = table(self._rows(), right=NUMBERS)
        return joined([self._title(), "", *lines, "", *self._notes()]).rstrip()

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        return page(self._title(), self._rows(), self._notes(), right=NUMBERS)
