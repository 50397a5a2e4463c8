"""Several lower bounds that belong together: a sequence that prints as a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from muhat._plain import Plain
from muhat._text import joined, page, table
from muhat.bounds.lower_bound import LowerBound

NUMBERS = {1}
"""The column of a table that has them."""


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
