"""Means of public groups: the sum and the count of every group, one linear query for one promise.

Adding or removing a record moves the sum and the count of its own group and nothing else, so each
group has the whole promise. Proof: docs/proofs/joint.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muhat import _check
from muhat.domains import Box
from muhat.domains.lattice import ColumnsLattice
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike, approved, charged
from muhat.planning.answers import answer
from muhat.planning.plan import Plan
from muhat.release.group_release import GroupRelease
from muhat.release.release import Release

MOST_GROUPS = 100_000


def group_means(
    plan: Plan,
    data: Any,
    columns: Sequence[str] | Sequence[int],
    by: str | int,
    groups: Any,
    ledger: LedgerLike,
) -> GroupRelease:
    """Release the plan's mean for every group of records.

    `plan` is for a secret number of records; `by` is a column and `groups` its public categories,
    as for queries. Records of any other group are left out.
    """
    from muhat.data.categories import categories_of
    from muhat.data.groups import open_groups

    lattice = plan.recipe.query.lattice
    if not isinstance(plan.domain, Box) or not isinstance(lattice, ColumnsLattice):
        raise InvalidInput("means of groups are of a box: give bounds for every column.")
    if not isinstance(by, str | int):
        raise InvalidInput(f"by must be the name or number of a column; got {type(by).__name__}.")
    if groups is None:
        raise InvalidInput(
            f"groups must list the public categories of {by!r:.60}, as groups=[…]: those that "
            "occur in the data are not public."
        )
    if not plan.privacy.admits_normal and plan.contributions > 1:
        raise InvalidInput(
            "means of groups with several records a person need normal noise: use ApproxDP, ZCDP "
            "or GDP."
        )
    approval = approved(ledger, plan.privacy, plan.neighbors, plan.contributions)
    (categories,) = categories_of({by: groups}, missing="drop")
    _check.count("the number of groups", categories.size, most=MOST_GROUPS)
    source = open_groups(data, columns, [by], [categories], dim=plan.domain.dim)
    note = f"mean of {', '.join(source.columns)} by {by}"
    head = charged(approval, plan.digest, note)
    sums = source.sums(lattice)
    releases = []
    for totals, count in zip(sums.total, sums.rows, strict=True):
        found = answer(plan, plan.recipe.run(totals, count))
        releases.append(
            Release(
                statistic="mean",
                value=found.value,
                columns=source.columns,
                mechanism=plan.mechanism,
                privacy=plan.privacy,
                neighbors=plan.neighbors,
                n=None,
                contributions=plan.contributions,
                domain=plan.domain,
                noise=found.noise,
                recorded=found.recorded,
                squares=found.squares,
                missing=plan.missing,
                certificate=None,
                assumptions=(
                    *plan.assumptions,
                    f"records of no listed group of {by} are left out",
                    "one promise covers all groups, since a record lies in one of them",
                ),
                plan_digest=plan.digest,
                ledger_head=head,
            )
        )
    return GroupRelease(str(by), categories.labels, tuple(releases))
