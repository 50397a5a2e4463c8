"""Picks the recipe before any data is seen.

Normal noise shaped by the smallest ellipsoid is the best under zCDP and Gaussian privacy, and under
approximate privacy in many dimensions. Under pure privacy, and in few dimensions under approximate
privacy, several mechanisms compete: the one with the least expected error wins, and the others are
listed in `plan.alternatives`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._words import IN_REALS, Parameter, given
from muhat.domains import Box, Domain, Reals
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.joint import count_only, share_for_mean, share_for_sum
from muhat.mechanisms.sums.recipe import Protection
from muhat.planning.low_bias import LOW_BIAS_MECHANISMS, plan_low_bias_mean
from muhat.planning.low_bias_plan import LowBiasPlan
from muhat.planning.noise_kinds import kinds_of_noise
from muhat.planning.plan import Plan
from muhat.planning.reals_checks import check_low_bias, check_unbounded
from muhat.planning.reals_rule import reals_rule
from muhat.planning.smooth import SmoothPlan, plan_smooth_mean
from muhat.planning.task import (
    NamedBounds,
    Task,
    assumptions,
    best_plan,
)
from muhat.planning.unbounded import UnboundedPlan, plan_unbounded_mean
from muhat.planning.unknown_number import UnknownNumberPlan, plan_for_unknown_number
from muhat.privacy import Neighbors, Privacy, check_promise

if TYPE_CHECKING:
    from muhat.planning.options import (
        BoundedOptions,
        LowBiasOptions,
        RealsOptions,
        UnboundedOptions,
    )


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
    **options: Unpack[BoundedOptions],
) -> SmoothPlan: ...


@overload
def plan_mean(
    *, domain: Reals, n: int, moment: None = None, **options: Unpack[UnboundedOptions]
) -> UnboundedPlan: ...


@overload
def plan_mean(
    *,
    domain: Reals,
    n: int,
    moment: tuple[float, ArrayLike],
    max_bias: ArrayLike | None = None,
    **options: Unpack[LowBiasOptions],
) -> LowBiasPlan: ...


@overload
def plan_mean(
    *,
    domain: Reals,
    n: None,
    n_min: int,
    moment: tuple[float, ArrayLike] | None = None,
    max_bias: ArrayLike | None = None,
    **options: Unpack[RealsOptions],
) -> UnknownNumberPlan: ...


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
) -> Plan | UnboundedPlan | LowBiasPlan | SmoothPlan | UnknownNumberPlan:
    """Plan a private mean.

    `n` is the public number of records, or None if it is secret. `domain` is where records lie
    after clipping: a Domain, or a dict of column names to (lower, upper), whose errors are then
    weighted by 1/width. A person holds at most `contributions` records. `missing` says what
    becomes of missing values: "drop" leaves them out of their column (the default for a dict of
    bounds), "center" puts the centre in their place (the default for a Domain), "none" declares
    that there are none. `population` says whether squares are released beside the sums, for the
    sampling error: None where they cost nothing, True always, False never. `mechanism` overrides
    the choice, for comparison. `clip` is a smaller domain about the same centre that records are
    clipped to, for domains that do not clip themselves (zonotopes, sums, images).

    In `Reals` nobody has bounded the records: centre and radius are learnt privately, and
    `insist` makes a plan even for fewer records than that needs. The `mechanism` is recentring, or
    for comparison an estimator of Huang, Liang and Yi (2021), "clipped", "shifted-clipped" or
    "statistical", with their errors mended or, with `faithful`, as printed where that is private.
    The last of them needs `scale`, public bounds on the standard deviation in every direction.

    Means of bounded bias, in `Reals`: `moment` = (λ, ψ) is what is assumed of the distribution of
    the records, E|X − μ|^λ ≤ ψ^λ, with one ψ or one a column; `max_bias` the most bias in every
    column, one number or one each (left out: the one with the least error), `max_error` the most
    root mean square error; `symmetric` assumes that the
    distribution is symmetric about its mean. What a theorem forbids raises `Impossible`.
    `unbiased` insists on no bias at all: in a box with a secret n that takes other noise, whose
    error is told for a public `n_min` of records. In `Reals` a secret n needs that n_min too.

    >>> import muhat as mh
    >>> plan = mh.plan_mean(domain=mh.Ball(radius=1, dim=10), n=1000, privacy=mh.ZCDP(rho=0.1))
    >>> round(plan.expected_error, 5), round(plan.certificate.ratio, 3)
    (0.01414, 1.052)
    """
    if mechanism is not None and not isinstance(mechanism, str):
        got = type(mechanism).__name__
        raise InvalidInput("must be a name", parameter="mechanism", value=got)
    low_bias: dict[str, Any] = {
        "max_bias": max_bias,
        "max_error": max_error,
        "moment": moment,
        "symmetric": symmetric,
        "unbiased": unbiased,
    }
    if population and (unbiased or isinstance(domain, Reals)):
        raise InvalidInput(
            given("population", True),
            " is for bounded records, without ",
            given("unbiased", True),
            ".",
        )
    if isinstance(domain, Reals):
        check_promise(privacy)
        options: dict[str, Any] = {
            "weights": weights,
            "contributions": contributions,
            "mechanism": mechanism,
            "insist": insist,
        }
        rule = reals_rule(missing, mechanism)
        # With a secret n records are left out before they are counted: the others are complete.
        options["missing"] = "none" if n is None and rule == "drop" else rule
        asked = any(each is not None and each is not False for each in low_bias.values())
        if asked or mechanism in LOW_BIAS_MECHANISMS:
            check_low_bias(
                n,
                neighbors=neighbors,
                clip=clip,
                p=p,
                faithful=faithful,
                scale=scale,
            )
            make: Any = partial(plan_low_bias_mean, domain, **options, **low_bias)
        else:
            check_unbounded(
                n,
                neighbors=neighbors,
                mechanism=mechanism,
                clip=clip,
                faithful=faithful,
                scale=scale,
            )
            make = partial(
                plan_unbounded_mean, domain, p=p, faithful=faithful, scale=scale, **options
            )
        if n is None:
            return plan_for_unknown_number(domain, privacy, n_min, contributions, make, rule)
        if n_min is not None:
            raise InvalidInput(Parameter("n_min"), " is for a secret n; leave it out.")
        plan: UnboundedPlan | LowBiasPlan = make(n=n, privacy=privacy)
        return plan
    if insist:
        raise InvalidInput(
            Parameter("insist"), " is for ", IN_REALS, "; with bounds every n is enough."
        )
    if faithful or scale is not None:
        both = Parameter("scale", "faithful and scale are", "--scale is")
        raise InvalidInput(both, " for ", IN_REALS, ".")
    if max_bias is not None or max_error is not None or moment is not None or symmetric:
        raise InvalidInput(
            Parameter(
                "max_bias",
                "max_bias, max_error, moment and symmetric",
                "--max-bias, --moment and --symmetric",
            ),
            " are for ",
            IN_REALS,
            "; with bounds a mean has no bias but that of clipping.",
        )
    task = Task.of(
        "mean",
        domain=domain,
        n=n,
        privacy=privacy,
        p=p,
        weights=weights,
        neighbors=neighbors,
        missing=missing,
        contributions=contributions,
        clip=clip,
        population=population,
    )
    if n is not None:
        if n_min is not None:
            raise InvalidInput(Parameter("n_min"), " is for a secret n; leave it out.")
        return task.best(task.with_columns(task.candidates(mechanism)))
    if mechanism is not None and not (unbiased and mechanism == "smooth"):
        raise InvalidInput(
            "with a secret n the mechanism is the ratio, or smooth if unbiased; leave it out."
        )
    if unbiased:
        return plan_smooth_mean(task, n_min)
    if n_min is not None:
        raise InvalidInput(
            Parameter("n_min"), " is for ", given("unbiased", True), ", or for ", IN_REALS, "."
        )
    return task.best(task.joint(share_for_mean(task.body, task.p, task.weights)))


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
    task = Task.of(
        "sum",
        domain=domain,
        n=n,
        privacy=privacy,
        p=p,
        weights=weights,
        neighbors=neighbors,
        missing=missing,
        contributions=contributions,
        clip=clip,
        population=population,
    )
    names = task.candidates(mechanism)
    if n is not None or (task.missing == "drop" and isinstance(task.domain, Box)):
        return task.best(task.with_columns(names))
    # A secret number of records: measure them from 0, or release their number too and add the
    # centre that many times.
    body = None if clip else Body.from_origin(task.domain, task.p, task.weights)
    if body is None and not task.body.center.any():
        body = task.body
    recipes = [] if body is None else task.recipes(body, names)
    if mechanism is None and task.body.center.any():
        share = share_for_sum(task.body, task.p, task.weights)
        recipes += task.joint(share)
    if not recipes:
        raise InvalidInput(
            "with a secret n, the sum over a domain around a centre other than 0 is released "
            "together with the count; leave the mechanism out."
        )
    return task.best(recipes)


def plan_count(
    *, privacy: Privacy, neighbors: Neighbors | str | None = None, contributions: int = 1
) -> Plan:
    """Plan a private number of records, under adding or removing one record."""
    relation = Neighbors.ADD_REMOVE if neighbors is None else Neighbors.parse(neighbors)
    if relation is not Neighbors.ADD_REMOVE:
        raise InvalidInput(
            "a count under substitution is public: replacing a record does not change it.",
            hint=("Use ", given("neighbors", "add-remove"), "."),
        )
    check_promise(privacy)
    contributions = _check.count("contributions", contributions)
    plans = [
        Plan(
            statistic="count",
            domain=None,
            n=None,
            privacy=privacy,
            neighbors=relation,
            p=2.0,
            weights=np.ones(1),
            missing="center",
            contributions=contributions,
            columns=None,
            recipe=count_only(Protection.of(privacy, relation, contributions, pure=pure)),
            assumptions=assumptions(
                "count", relation, None, "center", contributions, by_column=False
            ),
        )
        for pure in kinds_of_noise(privacy, 1)
    ]
    return best_plan(plans)
