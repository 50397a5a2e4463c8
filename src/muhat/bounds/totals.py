"""What nobody can beat, for means and for sums: any mechanism, unbiased ones, additive noise.

Each class has a bound of its own, and a certificate says which. "Any" and "additive" are those of
`steps`, "unbiased" those of `unbiased`. Proofs: docs/proofs/steps.md and bounds.md.
"""

from __future__ import annotations

import math

from muhat import _check
from muhat.bounds.every_shift import every_shift
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.steps import ADDITIVE, Floor, any_floor, noise_floor
from muhat.bounds.unbiased import (
    ADD_REMOVE,
    SUBSTITUTION,
    about,
    contact_pairs,
    paper_mean,
    quotient,
    unbiased_mean,
    unbiased_sum,
)
from muhat.bounds.volumes import volume_bound
from muhat.domains import Domain
from muhat.ellipsoids import smallest_ellipsoid
from muhat.privacy import Privacy

_OURS = "docs/proofs/steps.md"
_ANY = "The mechanism may be biased and may depend on the data."


def mean_bounds(
    gamma: float,
    *,
    n: int,
    privacy: Privacy,
    contact_pairs: int,
    contributions: int = 1,
    dim: int | None = None,
) -> tuple[LowerBound, ...]:
    """Lower bounds on the error of private means of n records, n public; see `unbiased_mean`.

    >>> from muhat.privacy import GDP
    >>> anybody, *_, noise = mean_bounds(2.0, n=1000, privacy=GDP(mu=1.0), contact_pairs=1)
    >>> anybody.sentence()
    'Every 1-GDP mechanism has error at least 0.001992 on some dataset.'
    >>> noise.sentence()
    'Every additive-noise 1-GDP mechanism has error at least 0.001999 on every dataset.'
    """
    limited = unbiased_mean(
        gamma,
        n=n,
        privacy=privacy,
        contact_pairs=contact_pairs,
        contributions=contributions,
        dim=dim,
    )
    width = gamma * min(contributions, n) / n
    copies = n // (contact_pairs * contributions)
    places = f"The dataset holds {copies} records at each of {contact_pairs} places of the domain."
    given = (SUBSTITUTION, *about(contributions))
    return (
        *anybody(width, privacy, copies, (*given, _ANY, places)),
        *limited,
        additive(width, privacy, (*given, ADDITIVE)),
    )


def sum_bounds(
    gamma: float,
    *,
    privacy: Privacy,
    contributions: int = 1,
    copies: float = math.inf,
    dim: int | None = None,
) -> tuple[LowerBound, ...]:
    """Lower bounds on the error of private sums when records are added or removed.

    See `unbiased_sum`; a dataset may hold as many `copies` of a record, for any mechanism.

    >>> from muhat.privacy import PureDP
    >>> sum_bounds(1.0, privacy=PureDP(epsilon=1.0))[0].sentence()
    'Every 1-DP (pure) mechanism has error at least 1.356 on some dataset.'
    """
    width, given = gamma * contributions, (ADD_REMOVE, *about(contributions))
    many = "The dataset may hold any number of records."
    return (
        *anybody(width, privacy, copies, (*given, _ANY, many)),
        *unbiased_sum(gamma, privacy=privacy, contributions=contributions, dim=dim),
        additive(width, privacy, (*given, ADDITIVE)),
    )


def anybody(
    width: float, privacy: Privacy, copies: float, given: tuple[str, ...]
) -> tuple[LowerBound, ...]:
    """What any mechanism errs on some dataset with so many copies of each place; () if nothing."""
    floor = any_floor(privacy, copies)
    if floor is None:
        return ()
    theorem = f"{floor.theorem}, for any mechanism"
    return (_bound(width, floor, "any", "some", theorem, given, privacy),)


def additive(width: float, privacy: Privacy, given: tuple[str, ...]) -> LowerBound:
    """What additive noise errs on every dataset."""
    floor = noise_floor(privacy)
    return _bound(width, floor, "additive", "every", floor.theorem, given, privacy)


def _bound(
    width: float,
    floor: Floor,
    mechanisms: str,
    datasets: str,
    theorem: str,
    given: tuple[str, ...],
    privacy: Privacy,
) -> LowerBound:
    value = quotient(width, -floor.log_square)
    promise = privacy.describe()
    return LowerBound(value, mechanisms, datasets, theorem, "derived", given, promise, _OURS)


def mean(K: Domain, *, n: int, privacy: Privacy, p: float = 2) -> tuple[LowerBound, ...]:
    """What nobody can beat for the mean of n records of K: any mechanism, unbiased, additive noise.

    The constants are ours; those of the paper stand beside them (`source="paper"`), smaller.

    >>> from muhat.domains import Box
    >>> from muhat.privacy import ZCDP
    >>> for bound in mean(Box([0.0], [1.0]), n=1000, privacy=ZCDP(rho=0.1)):
    ...     print(bound.mechanisms, bound.datasets, f"{bound.value:.6f}")
    any some 0.002178
    unbiased every 0.001744
    unbiased some 0.002199
    additive every 0.002236
    unbiased every 0.000531
    """
    n, p = _check.count("n", n), _check.norm_order(p)
    body = smallest_ellipsoid(K, p)
    ours = mean_bounds(
        body.floor, n=n, privacy=privacy, contact_pairs=contact_pairs(body), dim=K.dim
    )
    ours += volume_bound(K, 2 / n, SUBSTITUTION, privacy=privacy, p=p)
    ours += every_shift(K, body.floor / n, SUBSTITUTION, privacy=privacy)
    theirs = paper_mean(smallest_ellipsoid(K, p, "shifted").floor, n=n, privacy=privacy)
    return (*ours, *theirs)
