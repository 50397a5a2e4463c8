"""Plans of means, sums and counts: `mh.plan_mean`, `mh.plan_sum`, `mh.plan_count`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Unpack, overload

from numpy.typing import ArrayLike

from muhat._words import given
from muhat.domains import Domain, Reals
from muhat.errors import InvalidInput
from muhat.planning.candidates import mechanism_for, noisy_count
from muhat.planning.groups import check_groups, group_means
from muhat.planning.plan import Plan
from muhat.planning.terms import Terms
from muhat.privacy import Neighbors, Privacy
from muhat.statistics.bounded import Bounded, NamedBounds
from muhat.statistics.mean import bounded_of, mean_of

if TYPE_CHECKING:
    from muhat.data.categories import Cells
    from muhat.statistics.options import (
        BoundedOptions,
        LowBiasOptions,
        RealsOptions,
        UnbiasedOptions,
        UnboundedOptions,
    )


@overload
def plan_mean(
    *,
    domain: Domain | NamedBounds,
    n: None,
    by: str | int,
    groups: Cells,
    **options: Unpack[BoundedOptions],
) -> Plan: ...


@overload
def plan_mean(
    *,
    domain: Domain | NamedBounds,
    n: int,
    unbiased: bool = False,
    **options: Unpack[BoundedOptions],
) -> Plan: ...


@overload
def plan_mean(
    *,
    domain: Domain | NamedBounds,
    n: None,
    unbiased: Literal[False] = False,
    **options: Unpack[BoundedOptions],
) -> Plan: ...


@overload
def plan_mean(
    *,
    domain: Domain | NamedBounds,
    n: None,
    unbiased: Literal[True],
    n_min: int | None = None,
    **options: Unpack[UnbiasedOptions],
) -> Plan: ...


@overload
def plan_mean(
    *, domain: Reals, n: int, moment: None = None, **options: Unpack[UnboundedOptions]
) -> Plan: ...


@overload
def plan_mean(
    *,
    domain: Reals,
    n: int,
    moment: tuple[float, ArrayLike],
    max_bias: ArrayLike | None = None,
    **options: Unpack[LowBiasOptions],
) -> Plan: ...


@overload
def plan_mean(
    *,
    domain: Reals,
    n: None,
    n_min: int,
    moment: tuple[float, ArrayLike] | None = None,
    max_bias: ArrayLike | None = None,
    **options: Unpack[RealsOptions],
) -> Plan: ...


def plan_mean(
    *,
    domain: Domain | NamedBounds | Reals | None = None,
    n: int | None,
    privacy: Privacy,
    p: float = 2,
    weights: ArrayLike | Mapping[str, float] | None = None,
    neighbors: Neighbors | str | None = None,
    missing: str | None = None,
    contributions: int = 1,
    population: bool | None = None,
    mechanism: str | None = None,
    clip: Domain | None = None,
    insist: bool = False,
    faithful: bool = False,
    scale: tuple[float, float] | None = None,
    max_bias: ArrayLike | None = None,
    max_error: float | None = None,
    moment: tuple[float, ArrayLike] | None = None,
    symmetric: bool = False,
    unbiased: bool = False,
    n_min: int | None = None,
    by: str | int | None = None,
    groups: Cells | None = None,
) -> Plan:
    """Plan a private mean.

    `n` is the public number of records, or None if it is secret. `domain` is where records lie
    after clipping: a Domain, or a dict of column names to (lower, upper), whose errors are then
    weighted by 1/width. A person holds at most `contributions` records. `missing` says what
    becomes of missing values: "drop" leaves them out of their column (the default for a dict of
    bounds), "center" puts the centre in their place (the default for a Domain), "none" declares
    that there are none. `population` says whether squares are released beside the sums, for the
    sampling error: None where they cost nothing, True always, False never. `mechanism` overrides
    the choice, for comparison. `clip` is a smaller domain about the same centre that records are
    clipped to, for domains that do not clip themselves (sums, images).

    In `Reals` nobody has bounded the records: centre and radius are learnt privately, and
    `insist` makes a plan even for fewer records than that needs. The `mechanism` is recentring, or
    for comparison an estimator of Huang, Liang and Yi (2021), "clipped", "shifted-clipped" or
    "statistical", with their errors mended or, with `faithful`, as printed where that is private.
    The last of them needs `scale`, public bounds on the standard deviation in every direction.
    `faithful` also keeps what Kamath et al. (2024) print for one column of bounded bias or of a
    secret n; the plan says what that costs.

    Means of bounded bias, in `Reals`: `moment` = (λ, ψ) is what is assumed of the distribution of
    the records, E|X − μ|^λ ≤ ψ^λ, with one ψ or one a column; `max_bias` the most bias in every
    column, one number or one each (left out: the one with the least error), `max_error` the most
    root mean square error; `symmetric` assumes that the
    distribution is symmetric about its mean. What a theorem forbids raises `Impossible`.
    `unbiased` insists on no bias at all: in a box with a secret n that takes other noise, whose
    error is told for a public `n_min` of records. In `Reals` a secret n needs that n_min too.

    With `by`, the mean of every one of the public `groups` of that column, whose sizes are secret.

    >>> import muhat as mh
    >>> plan = mh.plan_mean(domain=mh.Ball(radius=1, dim=10), n=1000, privacy=mh.ZCDP(rho=0.1))
    >>> round(plan.expected_error, 5), round(plan.certificate.ratio, 3)
    (0.01414, 1.0)
    """
    if by is not None or groups is not None:
        check_groups(domain, n, by, unbiased=unbiased or n_min is not None)
    asked = mean_of(
        domain,
        p=p,
        weights=weights,
        missing=missing,
        population=population,
        mechanism=mechanism,
        clip=clip,
        insist=insist,
        faithful=faithful,
        scale=scale,
        max_bias=max_bias,
        max_error=max_error,
        moment=moment,
        symmetric=symmetric,
        unbiased=unbiased,
    )
    terms = Terms.checked(privacy, n, neighbors=neighbors, contributions=contributions, n_min=n_min)
    if by is not None:
        assert isinstance(asked, Bounded)  # anything else was refused with the groups
        return Plan.of(group_means(asked, terms, by, groups))
    return Plan.of(mechanism_for(asked, terms))


def plan_sum(
    *,
    domain: Domain | NamedBounds | None = None,
    n: int | None,
    privacy: Privacy,
    p: float = 2,
    weights: ArrayLike | Mapping[str, float] | None = None,
    neighbors: Neighbors | str | None = None,
    missing: str | None = None,
    contributions: int = 1,
    population: bool | None = None,
    mechanism: str | None = None,
    clip: Domain | None = None,
) -> Plan:
    """Plan a private sum: as `plan_mean`, without dividing; unbiased also when n is secret."""
    asked = bounded_of(
        "sum",
        domain,
        p=p,
        weights=weights,
        missing=missing,
        population=population,
        mechanism=mechanism,
        clip=clip,
    )
    terms = Terms.checked(privacy, n, neighbors=neighbors, contributions=contributions)
    return Plan.of(mechanism_for(asked, terms))


def plan_count(
    *, privacy: Privacy, neighbors: Neighbors | str | None = None, contributions: int = 1
) -> Plan:
    """Plan a private number of records, under adding or removing one record."""
    if neighbors is not None and Neighbors.parse(neighbors) is not Neighbors.ADD_REMOVE:
        raise InvalidInput(
            "a count under substitution is public: replacing a record does not change it.",
            hint=("Use ", given("neighbors", "add-remove"), "."),
        )
    return Plan.of(noisy_count(Terms.checked(privacy, None, contributions=contributions)))
