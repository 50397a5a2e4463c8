"""The bounds on unbiased means, for a domain."""

from __future__ import annotations

from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.nikolov_tang import paper_mean
from muhat.bounds.unbiased import unbiased_mean
from muhat.domains import Domain
from muhat.ellipsoids import SmallestEllipsoid, smallest_ellipsoid
from muhat.privacy import Privacy


def unbiased(K: Domain, *, n: int, privacy: Privacy, p: float = 2) -> tuple[LowerBound, ...]:
    """What no unbiased mechanism for the mean of n records of K can beat.

    The constants are ours; those of the paper stand beside them (`source="paper"`), smaller.
    """
    body = smallest_ellipsoid(K, p)
    ours = unbiased_mean(body.floor, n=n, privacy=privacy, contact_pairs=contact_pairs(body))
    theirs = paper_mean(smallest_ellipsoid(K, p, "shifted").floor, n=n, privacy=privacy)
    return (*ours, *theirs)


def contact_pairs(body: SmallestEllipsoid) -> int:
    """N*: a dataset of this many records can hold an end of each pair that holds the ellipsoid.

    From the support of the dual solution where it is known, else Carathéodory's number.
    """
    if body.contacts is not None:
        return max(body.contacts, 1)
    rank = len(body.scales) if body.factor is None else min(body.factor.shape)
    return rank * (rank + 1) // 2 + 1
