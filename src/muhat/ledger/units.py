"""Whose loss an account counts: how many records, and whether they are replaced or come and go.

Losses about different units cannot be added up as they are: a person with five records loses more
than a promise about one record says. Group privacy translates them, where it can.
"""

from __future__ import annotations

from dataclasses import dataclass

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors

CHANGES = {Neighbors.SUBSTITUTE: "replaced", Neighbors.ADD_REMOVE: "added or removed"}
LONGEST_NAME = 1_000


@dataclass(frozen=True)
class Unit:
    """What may differ between neighbours: all records of a person, by this relation.

    Without a `column` a person has at most `contributions` of them, which is taken on trust. With
    one, records of one value of that column belong together, however many there are;
    `contributions` are then those that enter a release, and no part of what is promised.

    >>> print(Unit.of("substitute", 3))
    3 records replaced
    >>> print(Unit.of("add-remove", 3, "person"))
    all records of one person added or removed
    """

    neighbors: Neighbors
    contributions: int
    column: str | None = None

    @classmethod
    def of(cls, neighbors: Neighbors | str, contributions: int, column: str | None = None) -> Unit:
        """The unit of what a user gives, checked."""
        if column is not None and not (isinstance(column, str) and 0 < len(column) <= LONGEST_NAME):
            rule = f"must be the name of a column, of at most {LONGEST_NAME} characters"
            raise InvalidInput(rule, parameter="unit", value=type(column).__name__)
        count = _check.count("contributions", contributions)
        return cls(Neighbors.parse(neighbors), count, column)

    def steps_to(self, other: Unit) -> int | None:
        """How many changes of this unit make up any change of the other; None if none do.

        K records are ⌈K/k⌉ times k records, and all records of a person are however many there
        are; nobody knows how often k records make up all of them. Replacing is removing and then
        adding. Replacing never changes the number of records, so it makes up no adding or removing.
        """
        if other.column not in (None, self.column):
            return None
        times = 1 if self.column else -(-other.contributions // self.contributions)
        if self.neighbors is other.neighbors:
            return times
        return 2 * times if self.neighbors is Neighbors.ADD_REMOVE else None

    def is_same(self, other: Unit) -> bool:
        """Whether promises about the two are about the same changes."""
        counted = self.column is not None or self.contributions == other.contributions
        return self.neighbors is other.neighbors and self.column == other.column and counted

    def is_charged_to(self, account: Unit) -> bool:
        """Whether an account takes a promise about this unit as it is, without being asked to."""
        return self.is_same(account) or (self.column is not None and self.steps_to(account) == 1)

    @property
    def person(self) -> str:
        """Whose records belong together, for the end of a sentence; nothing if each is alone."""
        if self.column is not None:
            return f", all records of one {self.column}"
        return "" if self.contributions == 1 else f", {self.contributions} records a person"

    def __str__(self) -> str:
        if self.column is not None:
            return f"all records of one {self.column} {CHANGES[self.neighbors]}"
        records = "record" if self.contributions == 1 else "records"
        return f"{self.contributions} {records} {CHANGES[self.neighbors]}"
