"""Whose loss an account counts: how many records, and whether they are replaced or come and go.

Losses about different units cannot be added up as they are: a person with five records loses more
than a promise about one record says. Group privacy translates them, where it can.
"""

from __future__ import annotations

from dataclasses import dataclass

from muhat import _check
from muhat.privacy import Neighbors

CHANGES = {Neighbors.SUBSTITUTE: "replaced", Neighbors.ADD_REMOVE: "added or removed"}


@dataclass(frozen=True)
class Unit:
    """What may differ between neighbours: at most so many records, by this relation.

    >>> print(Unit.of("substitute", 3))
    3 records replaced
    """

    neighbors: Neighbors
    contributions: int

    @classmethod
    def of(cls, neighbors: Neighbors | str, contributions: int) -> Unit:
        """The unit of what a user gives, checked."""
        return cls(Neighbors.parse(neighbors), _check.count("contributions", contributions))

    def steps_to(self, other: Unit) -> int | None:
        """How many changes of this unit make up any change of the other; None if none do.

        K records are ⌈K/k⌉ times k records; replacing is removing and then adding. Replacing
        never changes the number of records, so it makes up no adding or removing.
        """
        times = -(-other.contributions // self.contributions)
        if self.neighbors is other.neighbors:
            return times
        return 2 * times if self.neighbors is Neighbors.ADD_REMOVE else None

    def __str__(self) -> str:
        records = "record" if self.contributions == 1 else "records"
        return f"{self.contributions} {records} {CHANGES[self.neighbors]}"
