"""Means of groups of records, whose sizes are secret: a noisy sum and a noisy count of each.

A record lies in one group, so one promise covers all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muhat import _check
from muhat._words import Parameter
from muhat.domains import Domain, Reals
from muhat.domains.lattice import ColumnsLattice
from muhat.errors import InvalidInput
from muhat.planning.candidates import ratio
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.sums import NoisySums
from muhat.planning.terms import COUNTED, Counted, Terms
from muhat.release.group_answer import GroupAnswer
from muhat.statistics.bounded import Bounded, NamedBounds, as_domain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data.categories import Categories, Cells
    from muhat.data.groups import GroupSource

MOST_GROUPS = 100_000

MOST_CERTIFIED = 256
"""Groups whose means have a certificate each."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupMeans(Mechanism):
    """A mean for every group of records.

    `each` is the mechanism for a secret number of records; `categories` are the public groups of a
    column, as for queries. Records of any other group are left out.
    """

    each: NoisySums
    categories: Categories

    @property
    def by(self) -> str | int:
        """The column that says which group a record is in."""
        return self.categories.name

    def keeps(self, terms: Terms) -> bool:
        """Whether the noise of a group does: a record is in one of them."""
        return terms.is_secret and self.each.keeps(terms)

    @property
    def name(self) -> str:
        """That of each group."""
        return self.each.name

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of each group, and why one promise is enough."""
        return (
            *self.each.assumptions,
            f"records of no listed group of {self.by} are left out",
            "one promise covers all groups, since a record lies in one of them",
            *self.said,
        )

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The number of records of a group."""
        return self.each.unknowns

    def error_if(self, **values: Any) -> float | None:
        """Of a group of so many records."""
        return self.each.error_at(**values)

    def errors(self) -> list[tuple[Any, Any]]:
        """For sizes that a group may have."""
        return self.each.errors()

    def decisive(self) -> dict[str, Any]:
        """The groups, and the mechanism of each."""
        return {**self.each.decisive(), "by": self.by, "groups": self._labels()}

    def details(self) -> dict[str, Any]:
        """The groups, and what is told of each."""
        return {**self.each.details(), "by": self.by, "groups": self._labels()}

    def _labels(self) -> list[str]:
        return [str(label) for label in self.categories.labels]

    @property
    def title(self) -> str:
        """What is planned."""
        return f"private mean by {self.by}"

    def facts(self) -> Rows:
        """The groups, and the mechanism of each."""
        return [["groups", f"{self.categories.size:,}, public"], *self.each.facts()]

    def tables(self) -> list[Rows]:
        """For sizes that a group may have."""
        return self.each.tables()

    def figure(self) -> Figure:
        """The error against the size of a group."""
        return self.each.figure()

    def open(self, data: Any, columns: Columns) -> GroupSource:
        """The data as records, each in a group."""
        from muhat.data.groups import open_groups

        chosen = self.columns if columns is None else columns
        if chosen is None:
            raise InvalidInput("must be named when there are groups", parameter="columns")
        return open_groups(data, chosen, [self.by], [self.categories], dim=self.each.dim)

    def admit(self, source: GroupSource) -> None:
        """Find whatever certificates of groups rest on before anything is paid."""
        self.each.certificate_at(1)

    def note(self, source: GroupSource) -> str:
        """The columns, and that of the groups."""
        return f"mean of {', '.join(source.columns)} by {self.by}"

    def read(self, source: GroupSource) -> GroupAnswer:
        """One pass over the records of all groups."""
        lattice = self.each.recipe.query.lattice
        assert isinstance(lattice, ColumnsLattice)
        sums = source.sums(lattice)
        answers = [
            self.each.answer(self.each.recipe.run(totals, count), source.columns)
            for totals, count in zip(sums.total, sums.rows, strict=True)
        ]
        if len(answers) <= MOST_CERTIFIED:
            answers = [self.each.certified(each) for each in answers]
        return GroupAnswer(
            by=str(self.by), groups=self.categories.labels, answers=tuple(answers), **self.basis()
        )


def group_means(asked: Bounded, terms: Terms, by: object, groups: Cells | None) -> GroupMeans:
    """The mean of every one of the public groups of a column."""
    from muhat.data.categories import categories_of

    if not asked.by_column:
        raise InvalidInput("means of groups are of a box: give bounds for every column.")
    if not asked.domain.half_widths.all():
        raise InvalidInput(
            "means of groups are of columns whose bounds differ: leave constants out, which are "
            "the same in every group."
        )
    if not isinstance(by, str | int):
        kind = type(by).__name__
        raise InvalidInput(
            "must be the name or number of a column",
            parameter="by",
            value=kind,
            hint="Several columns go with bounds=… and categories={column: […]}.",
        )
    if groups is None:
        raise InvalidInput(
            f"must list the public categories of {by!r:.60}, as groups=[…]: those that occur in "
            "the data are not public",
            parameter="groups",
        )
    if not terms.privacy.admits_normal and terms.contributions > 1:
        raise InvalidInput(
            "means of groups with several records a person need normal noise: use ApproxDP, "
            "ZCDP or GDP."
        )
    (categories,) = categories_of({by: groups}, missing="drop")
    _check.count("the number of groups", categories.size, most=MOST_GROUPS)
    return GroupMeans(
        terms=terms, columns=asked.columns, each=ratio(asked, terms), categories=categories
    )


def check_groups(
    domain: Domain | NamedBounds | Reals | None,
    n: int | Counted | None,
    by: object,
    *,
    unbiased: bool,
) -> None:
    """Refuse what does not go with groups: their sizes are secret, and means of them are ratios."""
    as_domain(domain)
    if unbiased:
        named = (Parameter("unbiased"), " and ", Parameter("n_min"))
        raise InvalidInput("means of groups are ratios: leave ", *named, " out.")
    if by is None:
        raise InvalidInput("groups are the categories of a column: name it with by=….")
    if n is not COUNTED and n is not None:
        raise InvalidInput("the sizes of groups are secret, so n must be left out.")
