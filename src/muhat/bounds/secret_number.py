"""What no mechanism can beat for a mean whose number of records is secret.

The truth is not the only thing that moves with a record: the number that divides it does, too. From
k records whose mean is a, with y_j people more at each of N places x_j of the domain, every y_j up
to m, the mean moves along a curve that is never slower than k/(k + mN)² of a straight line. On one
of these datasets, of k to k + mN records, any mechanism has at least

    RMS_p ≥ c(m)·k/(k + mN)²·Γ_p(±(K − a)),

c(m) that of `steps.any_floor`. With m ~ √(k/N) what is lost falls as √(N/k).
Proof: docs/proofs/steps.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

from muhat import _check
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.steps import Floor, any_floor
from muhat.bounds.unbiased import ADD_REMOVE, about, quotient
from muhat.privacy import Privacy

GROWTH = 1.2
"""Numbers of copies are tried that grow by so much: the best is missed by less than 1 %."""


def secret_mean_bounds(
    gamma: float, *, n: int, privacy: Privacy, places: int, contributions: int = 1
) -> tuple[LowerBound, ...]:
    """A lower bound on the error of any mean, on some dataset of n records or a few more.

    Args:
        gamma: a certified floor of Γ_p(±(K − a)) for a point a of K, weights included.
        n: the least number of records.
        privacy: the promise, about adding or removing one record.
        places: how many points x − a support the dual measure behind `gamma`.
        contributions: how many records one person may have.

    >>> from muhat.privacy import GDP
    >>> bound, = secret_mean_bounds(1.0, n=10_000, privacy=GDP(mu=1.0), places=1)
    >>> round(bound.value * 10_000, 3), bound.records
    (0.946, (10000, 10147))
    """
    n = _check.count("n", n)
    places = _check.count("places", places)
    rows = _check.count("contributions", contributions)
    found = _best(privacy, n, places * rows)
    if found is None:
        return ()
    copies, floor = found
    most = n + copies * places * rows
    # (n/most)² rounded down by `quotient`, as the floor is.
    value = quotient(gamma * rows / n * (n / most) ** 2, -floor.log_square)
    given = (ADD_REMOVE, *about(rows), "The mechanism may be biased and may depend on the data.")
    return (
        LowerBound(
            value,
            "any",
            "some",
            f"{floor.theorem}, for any mechanism and a secret n",
            "derived",
            given,
            privacy.describe(),
            "docs/proofs/steps.md",
            records=(n, most),
        ),
    )


@lru_cache(maxsize=1024)
def _best(privacy: Privacy, n: int, step: int) -> tuple[int, Floor] | None:
    """The number of copies for which the bound is largest, at most n of all records added."""
    copies, best = 1, None
    while copies * step <= n:
        floor = any_floor(privacy, copies)
        if floor is not None:
            size = floor.log_square - 4 * math.log1p(copies * step / n)
            if best is None or size > best[0]:
                best = size, copies, floor
        copies = max(copies + 1, math.ceil(copies * GROWTH))
    return None if best is None else best[1:]
