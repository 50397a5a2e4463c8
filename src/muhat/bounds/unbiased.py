"""What no unbiased mechanism can beat, for means and for sums.

The Hammersley–Chapman–Robbins inequality everywhere: if neighbouring outputs have means apart by
a vector x, then ⟨θ, x⟩² ≤ (θᵀ Cov θ)·χ² in every direction θ, so the ellipsoid of the covariance
covers the sensitivity body, and the smallest ellipsoid around the body (Γ_p) bounds the error.
Errors are (E‖answer − truth‖_p²)^½.

Nikolov and Tang, "General Gaussian Noise Mechanisms and Their Optimality for Unbiased Mean
Estimation", 2024 (NT24). Proofs with these constants: docs/proofs/bounds.md.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from muhat import _check
from muhat.bounds.divergences import (
    log_group_approx,
    log_one_sided_approx,
    log_two_sided_approx,
    one_sided,
    pair,
    points,
    two_sided,
)
from muhat.bounds.lower_bound import LowerBound, rounded_down
from muhat.domains import Domain
from muhat.ellipsoids import SmallestEllipsoid, smallest_ellipsoid
from muhat.errors import InvalidInput
from muhat.privacy import Privacy

_NT24 = "Nikolov and Tang 2024, arXiv:2301.13850"
_ANY = "Bassily, Smith and Thakurta 2014; Steinke and Ullman 2015"
_RATE_ONLY = "Only the rate is known: the constant of the theorem is not explicit."
SUBSTITUTION = "n is public and neighbours replace one record."
ADD_REMOVE = "Neighbours add or remove one record."
_UNBIASED = "The mechanism is unbiased for the {what} of every dataset of records in the domain."


def unbiased_mean(
    gamma: float,
    *,
    n: int,
    privacy: Privacy,
    contact_pairs: int,
    contributions: int = 1,
    dim: int | None = None,
) -> tuple[LowerBound, ...]:
    """Lower bounds on the error of unbiased private means of n records, n public.

    Args:
        gamma: a certified floor of Γ_p(K − K), weights included.
        n: the number of records.
        privacy: the promise, about replacing one record.
        contact_pairs: how many differences x⁺ − x⁻ support the dual measure behind `gamma`.
        contributions: how many records one person may have.
        dim: of the records; for (ε, δ), on a dataset or its neighbours.

    >>> from muhat.privacy import ZCDP
    >>> every, some = unbiased_mean(40**0.5, n=1000, privacy=ZCDP(rho=0.1), contact_pairs=10)
    >>> every.sentence()
    'Every unbiased 0.1-zCDP mechanism has error at least 0.01102 on every dataset.'
    >>> some.sentence()
    'Every unbiased 0.1-zCDP mechanism has error at least 0.0139 on some dataset.'
    """
    n = _check.count("n", n)
    pairs = _check.count("contact_pairs", contact_pairs)
    rows = _check.count("contributions", contributions)
    width = _nonnegative("gamma", gamma) * min(rows, n) / n
    assumptions = (SUBSTITUTION, _UNBIASED.format(what="mean"), *about(rows))
    needed = pairs * rows
    promise = privacy.describe()

    def every(log_divergence: float, theorem: str) -> LowerBound:
        value = quotient(width, log_divergence)
        return LowerBound(
            value, "unbiased", "every", theorem, "derived", assumptions, promise, _NT24
        )

    def some(log_divergence: float, theorem: str) -> LowerBound:
        met = n >= needed
        value = quotient(width, log_divergence) if met else None
        condition = (
            f"n is at least {needed}, so that the dataset can touch the body at {pairs} "
            + ("places." if met else f"places; here n is {n}.")
        )
        return LowerBound(
            value, "unbiased", "some", theorem, "derived", (*assumptions, condition), promise, _NT24
        )

    two = two_sided(privacy)
    if privacy.point is not None and two is None:
        worst = some(log_group_approx(*privacy.point, most=n // needed), "B4, worst dataset")
        here = near(width, privacy, dim, assumptions, replaced=True)
        return (*here, worst, _rate(promise, SUBSTITUTION))
    if privacy.implied_epsilon is not None and two is not None:
        return every(two, "B3, every dataset"), some(pair(privacy), "B3, worst dataset")
    worst = some(pair(privacy), f"B5 for {privacy.spoken}, by coins")
    if two is None:
        return (*near(width, privacy, dim, assumptions, replaced=True), worst)
    theorem = "B1, NT24 Theorem 31 with its constant"
    if privacy.implied_rho is None:
        theorem = "B1 by the divergence of order 2"
    return every(two, theorem), worst


def unbiased_sum(
    gamma: float, *, privacy: Privacy, contributions: int = 1, dim: int | None = None
) -> tuple[LowerBound, ...]:
    """Lower bounds on the error of private sums when one record is added or removed.

    Args:
        gamma: a certified floor of Γ_p(K ∪ −K), weights included.
        privacy: the promise, about adding or removing one record.
        contributions: how many records one person may have.
        dim: of the records; for (ε, δ), on a dataset or its neighbours.

    For (ε, δ) there is none on every dataset: an unbiased mechanism may hard-code the answer of
    one dataset at the price of δ, and of errors on its neighbours.

    >>> from muhat.privacy import ZCDP
    >>> every, some = unbiased_sum(2.0, privacy=ZCDP(rho=0.1))
    >>> every.sentence()
    'Every unbiased 0.1-zCDP mechanism has error at least 4.25 on every dataset.'
    >>> some.sentence()
    'Every unbiased 0.1-zCDP mechanism has error at least 4.397 on some dataset.'
    """
    rows = _check.count("contributions", contributions)
    width = _nonnegative("gamma", gamma) * rows
    given = (ADD_REMOVE, _UNBIASED.format(what="sum"), *about(rows))

    def bound(log_divergence: float, datasets: str, theorem: str) -> LowerBound:
        value, promise = quotient(width, log_divergence), privacy.describe()
        return LowerBound(value, "unbiased", datasets, theorem, "derived", given, promise, _NT24)

    one = one_sided(privacy)
    if privacy.implied_epsilon is not None and one is not None:
        return (bound(one, "every", "B3 for sums"),)
    if privacy.point is not None and one is None:
        worst = bound(log_group_approx(*privacy.point), "some", "B4 for sums")
        return (*near(width, privacy, dim, given, replaced=False), worst)
    worst = bound(pair(privacy), "some", f"B5 for {privacy.spoken}, by coins")
    if one is None:
        return (*near(width, privacy, dim, given, replaced=False), worst)
    return bound(one, "every", "B2 for sums"), worst


def near(
    width: float,
    privacy: Privacy,
    dim: int | None,
    given: tuple[str, ...],
    *,
    replaced: bool,
    drawn: bool = False,
) -> tuple[LowerBound, ...]:
    """(ε, δ), on a dataset or a neighbour of it: NT24 Theorem 4 with a constant.

    A·(error on X) + B·(largest error on a neighbour) ≥ `width`: see docs/proofs/bounds.md. If the
    records are `drawn` it is about their distribution, or one within 1/n of it.
    """
    if dim is None:
        return ()
    # A draw of the other distribution has exactly one other record with probability 1/e at least.
    spare = math.e if drawn else 1.0
    found = (_near(width, point, dim * spare, replaced=replaced) for point in points(privacy))
    value, there = max(found)
    if value == 0 and width > 0:
        return ()
    who, datasets = ("one nearby", "nearby") if drawn else ("a neighbour", "near")
    other = f"Where it is less than half of that, {who} has {rounded_down(there)} at least."
    theorem, promise = "B4, NT24 Theorem 4 with a constant", privacy.describe()
    given = (*given, other)
    return (LowerBound(value, "unbiased", datasets, theorem, "derived", given, promise, _NT24),)


def _near(
    width: float, point: tuple[float, float], dim: float, *, replaced: bool
) -> tuple[float, float]:
    """What X or a neighbour has, and what a neighbour has where X has less than half of it."""
    delta = point[1]
    if replaced:
        log_here, kept, times = log_two_sided_approx(*point), 1 - 2 * delta, 2
    else:
        log_here, kept, times = log_one_sided_approx(*point), math.sqrt(1 - delta), 1
    if kept <= 0:
        return 0.0, 0.0
    log_there = math.log(delta * dim * times * times)
    log_both = 2 * float(np.logaddexp(log_here / 2, log_there / 2))
    # With half of that on X, A·(error on X) is less than half of what is to be reached.
    return quotient(width * kept, log_both), quotient(width * kept / 2, log_there)


def _rate(promise: str, neighbours: str) -> LowerBound:
    """What is known for (ε, δ) up to a constant that nobody has written down."""
    return LowerBound(
        None,
        "any",
        "some",
        "BST14 Theorem 5.5, SU15 Theorem 1.1",
        "paper",
        (neighbours, "Records lie in a Euclidean ball.", _RATE_ONLY),
        promise,
        _ANY,
    )


def about(rows: int) -> tuple[str, ...]:
    """What is assumed of the records of a person."""
    if rows == 1:
        return ()
    return (f"One person may have {rows} records, and neighbours may differ in all of them.",)


def quotient(width: float, log_divergence: float) -> float:
    """width/√divergence, rounded down by more than the rounding errors of both."""
    value = width * math.exp(-log_divergence / 2) * (1 - 1e-12)
    return min(value, sys.float_info.max)


def _nonnegative(name: str, value: float) -> float:
    number = _check.real(name, value)
    if number < 0:
        raise InvalidInput("must be at least 0", parameter=name, value=f"{number:g}")
    return number


def paper_mean(gamma: float, *, n: int, privacy: Privacy) -> tuple[LowerBound, ...]:
    """The bound of Nikolov and Tang's own argument, for a certified floor of Γ_p(K).

    Theorem 31 with its constants made explicit: an unbiased ρ-zCDP mean of n records of K has the
    root mean square ℓ_p error Γ_p(K)/(2n·√(e^{2ρ} − 1)) at least, on every dataset, where Γ_p(K)
    is the smallest ellipsoid around K with a free shift. Lemmas 28 and 29 give the same for pure ε
    with 4·sinh²(ε/2) for the divergence. `unbiased_mean` improves both: by the difference body,
    and by neighbours on both sides. Beyond zCDP nothing explicit is known.
    """
    n = _check.count("n", n)
    log_divergence = one_sided(privacy)
    if log_divergence is None or privacy.implied_rho is None:
        return ()
    theorem = "NT24 Theorem 31" if privacy.implied_epsilon is None else "NT24 Lemmas 28 and 29"
    assumptions = (SUBSTITUTION, _UNBIASED.format(what="mean"))
    return (
        LowerBound(
            quotient(gamma / (2 * n), log_divergence),
            "unbiased",
            "every",
            theorem,
            "paper",
            assumptions,
            privacy.describe(),
            _NT24,
        ),
    )


def unbiased(K: Domain, *, n: int, privacy: Privacy, p: float = 2) -> tuple[LowerBound, ...]:
    """What no unbiased mechanism for the mean of n records of K can beat.

    The constants are ours; those of the paper stand beside them (`source="paper"`), smaller.
    """
    body = smallest_ellipsoid(K, p)
    ours = unbiased_mean(
        body.floor, n=n, privacy=privacy, contact_pairs=contact_pairs(body), dim=K.dim
    )
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
