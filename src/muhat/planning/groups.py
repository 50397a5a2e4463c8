"""Means of public groups: the sum and the count of every group, one linear query for one promise.

Adding or removing a record moves the sum and the count of its own group and nothing else, so each
group has the whole promise. Proof: docs/proofs/joint.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muhat import _check
from muhat.domains import Box
from muhat.domains.lattice import ColumnsLattice
from muhat.errors import InvalidInput
from muhat.planning.answers import answer
from muhat.planning.execution import released
from muhat.planning.plan import Plan
from muhat.planning.run import Columns, Uncounted
from muhat.release.group_release import GroupRelease

if TYPE_CHECKING:
    from muhat.data.categories import Cells
    from muhat.data.groups import GroupSource

MOST_GROUPS = 100_000


@dataclass(frozen=True)
class GroupsWork(Uncounted[Plan, "GroupSource"]):
    """The work of a plan's mean for every group of records.

    `plan` is for a secret number of records; `by` is a column and `groups` its public categories,
    as for queries. Records of any other group are left out.
    """

    by: str | int
    groups: Cells | None

    def __post_init__(self) -> None:
        if not isinstance(self.plan.domain, Box) or self._lattice is None:
            raise InvalidInput("means of groups are of a box: give bounds for every column.")
        if not isinstance(self.by, str | int):
            kind = type(self.by).__name__
            raise InvalidInput("must be the name or number of a column", parameter="by", value=kind)
        if self.groups is None:
            raise InvalidInput(
                f"must list the public categories of {self.by!r:.60}, as groups=[…]: those "
                "that occur in the data are not public",
                parameter="groups",
            )
        if not self.plan.privacy.admits_normal and self.plan.contributions > 1:
            raise InvalidInput(
                "means of groups with several records a person need normal noise: use ApproxDP, "
                "ZCDP or GDP."
            )

    @property
    def _lattice(self) -> ColumnsLattice | None:
        lattice = self.plan.recipe.query.lattice
        return lattice if isinstance(lattice, ColumnsLattice) else None

    def open(self, data: Any, columns: Columns) -> GroupSource:
        """The data as records, each in a group."""
        from muhat.data.categories import categories_of
        from muhat.data.groups import open_groups

        (categories,) = categories_of({self.by: self.groups}, missing="drop")
        _check.count("the number of groups", categories.size, most=MOST_GROUPS)
        assert columns is not None
        return open_groups(data, columns, [self.by], [categories], dim=self.plan.dim)

    def note(self, plan: Plan, source: GroupSource) -> str:
        """The columns, and that of the groups."""
        return f"mean of {', '.join(source.columns)} by {self.by}"

    def read(self, plan: Plan, source: GroupSource, head: dict[str, Any] | None) -> GroupRelease:
        """One pass over the records of all groups."""
        assert self._lattice is not None
        sums = source.sums(self._lattice)
        said = (
            f"records of no listed group of {self.by} are left out",
            "one promise covers all groups, since a record lies in one of them",
        )
        found = [
            answer(plan, plan.recipe.run(totals, count))
            for totals, count in zip(sums.total, sums.rows, strict=True)
        ]
        releases = (released(plan, each, source.columns, None, head, *said) for each in found)
        (categories,) = source.categories
        return GroupRelease(str(self.by), categories.labels, tuple(releases))
