"""The other way round: how much privacy loss a target error costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import overload

from numpy.typing import ArrayLike

from muhat import _check
from muhat.domains import Domain
from muhat.domains.norms import p_norm
from muhat.errors import InvalidInput
from muhat.planning.plan import Plan
from muhat.planning.planners import plan_mean
from muhat.planning.several import learns, needed_of
from muhat.planning.terms import COUNTED, Counted
from muhat.privacy import GDP, KINDS, Privacy, PureDP
from muhat.statistics.asked import Asked
from muhat.statistics.bounded import NamedBounds, as_domain
from muhat.statistics.schema import Schema

STEPS = 30
CLOSE = 1e-6
"""How near to the least a promise is that is searched for, and in how many steps at most."""


@overload
def privacy_for(
    *,
    domain: Domain | NamedBounds,
    n: int,
    error: float,
    kind: str = "zcdp",
    p: float = 2,
    delta: float | None = None,
    weights: ArrayLike | Mapping[str, float] | None = None,
    contributions: int = 1,
    missing: str | None = None,
) -> Privacy: ...


@overload
def privacy_for(
    *,
    statistics: Sequence[Asked],
    schema: Schema,
    n: int | Counted | None = COUNTED,
    kind: str = "zcdp",
    delta: float | None = None,
) -> Privacy: ...


def privacy_for(
    *,
    domain: Domain | NamedBounds | None = None,
    n: int | Counted | None = COUNTED,
    error: float | None = None,
    kind: str = "zcdp",
    p: float = 2,
    delta: float | None = None,
    weights: ArrayLike | Mapping[str, float] | None = None,
    contributions: int = 1,
    missing: str | None = None,
    statistics: Sequence[Asked] | None = None,
    schema: Schema | None = None,
) -> Privacy:
    """The weakest promise whose best mean has at most this expected error.

    With `statistics` and their `schema`, the weakest that meets the target= of each of them.

    With a dict of bounds the error counts in widths of the columns, as in `plan_mean`; for the
    unit of the data give weights of 1. Where values may be missing (`missing="drop"`, as for a
    dict of bounds) it is the error if none is, at the worst mean.

    >>> import muhat as mh
    >>> mh.privacy_for(domain=mh.Ball(radius=1, dim=10), n=1000, error=0.01, kind="zcdp")
    ZCDP(rho=0.2)
    """
    asked = KINDS[_check.one_of("kind", kind, KINDS)]
    with_delta = "delta" in asked.numbers
    if with_delta and delta is None:
        raise InvalidInput(f'kind="{kind}" needs a delta, for instance delta=1e-6.')
    if not with_delta and delta is not None:
        named = " or ".join(f'"{name}"' for name, each in KINDS.items() if "delta" in each.numbers)
        raise InvalidInput(f"delta goes with kind={named} only; got kind={kind!r}.")
    if statistics is not None:
        if domain is not None or error is not None or schema is None:
            raise InvalidInput(
                "statistics go with a schema, and have targets of their own; leave domain and "
                "error out."
            )
        return _promise_for_set(statistics, schema, n, asked, delta)
    if domain is None:
        raise InvalidInput("must say where records lie", parameter="domain")
    as_domain(domain)
    target = _check.positive("error", error)
    n = _check.count("n", n)

    def plan(promise: Privacy) -> Plan:
        return plan_mean(
            domain=domain,
            n=n,
            privacy=promise,
            p=p,
            weights=weights,
            contributions=contributions,
            missing=missing,
        )

    def beyond(promise: Privacy) -> float:
        return math.log(_error(plan(promise)) / target)

    # The error is about inversely proportional to ε, or to μ: a unit plan says what is needed.
    kinds = [False] * asked.admits_normal + [True] * asked.admits_pure
    found = []
    for pure in kinds:
        first = plan(PureDP(epsilon=1.0) if pure else GDP(mu=1.0))
        _refuse_what_needs_no_data(first, target, weighted=weights is not None)
        achieved = _error(first)
        if not 1e-9 < achieved / target < 1e9:
            raise InvalidInput(
                f"an error of {target:g} is out of reach: at unit privacy loss it is "
                f"{achieved:.3g}."
            )
        found.append(_weakest(asked, delta, pure, achieved / target, beyond, 1e-9))
    return min(found, key=lambda promise: promise.amounts[0])


def _promise_for_set(
    statistics: Sequence[Asked],
    schema: Schema,
    n: int | Counted | None,
    asked: type[Privacy],
    delta: float | None,
) -> Privacy:
    """The targets say what share of a unit promise they need, and so how many units."""
    if learns(statistics, schema):
        return _least_after_learning(statistics, schema, n, asked, delta)
    kinds = [False] * asked.admits_normal + [True] * asked.admits_pure
    found = [_least_for_set(statistics, schema, n, asked, delta, pure) for pure in kinds]
    return min(found, key=lambda promise: promise.amounts[0])


def _least_for_set(
    statistics: Sequence[Asked],
    schema: Schema,
    n: int | Counted | None,
    asked: type[Privacy],
    delta: float | None,
    pure: bool,
) -> Privacy:
    unit: Privacy = PureDP(epsilon=1.0) if pure else GDP(mu=1.0)
    needed = _some(needed_of(statistics, schema=schema, privacy=unit, n=n))
    strength = needed if pure else math.sqrt(needed)
    for slack in (1e-9, 1e-7, 1e-5):
        promise = asked.of_noise(strength * (1 + slack), pure=pure, delta=delta)
        if needed_of(statistics, schema=schema, privacy=promise, n=n) <= 1:
            return promise
    raise InvalidInput("the targets are out of reach of exact arithmetic.")


def _some(needed: float) -> float:
    if needed:
        return needed
    raise InvalidInput(
        'no statistic has a target; give one, as mh.Count(target={"standard_error": 5}).'
    )


def _least_after_learning(
    statistics: Sequence[Asked],
    schema: Schema,
    n: int | Counted | None,
    asked: type[Privacy],
    delta: float | None,
) -> Privacy:
    """Learning takes a fixed share, so what is left grows with the promise."""

    def beyond(promise: Privacy) -> float:
        return math.log(_some(needed_of(statistics, schema=schema, privacy=promise, n=n)))

    return _weakest(asked, delta, not asked.admits_normal, 1.0, beyond)


def _weakest(
    asked: type[Privacy],
    delta: float | None,
    pure: bool,
    strength: float,
    beyond: Callable[[Privacy], float],
    rounding: float = 0.0,
) -> Privacy:
    """The weakest promise that is not `beyond` a target, but for rounding.

    It is ln of how much is missing or, below 0, how much less would do, and falls as promises
    grow, though not always in proportion: errors of stairs and of noise at its own δ do not.
    """
    place = math.log(strength)
    missed: tuple[float, float] | None = None
    reached: tuple[float, float, Privacy] | None = None
    for step in range(STEPS):
        promise = asked.of_noise(math.exp(place), pure=pure, delta=delta)
        lacking = beyond(promise)
        if -CLOSE <= lacking <= rounding:
            return promise
        if lacking > 0:
            missed = place, lacking
        else:
            reached = place, lacking, promise
        if missed is None or reached is None:
            place += lacking + math.copysign(CLOSE / 8, lacking)
        elif step % 3:
            slope = (reached[1] - missed[1]) / (reached[0] - missed[0])
            place = reached[0] - (reached[1] + CLOSE / 2) / slope
        else:
            place = (missed[0] + reached[0]) / 2
    if reached is None:
        raise InvalidInput("the target is out of reach of exact arithmetic.")
    return reached[2]


def _error(plan: Plan) -> float:
    assert plan.certificate is not None
    return plan.certificate.error


def _refuse_what_needs_no_data(plan: Plan, target: float, *, weighted: bool) -> None:
    """A target beyond the domain's own size is a mistake about its unit, more likely than not."""
    assert plan.domain is not None
    diameter = float(p_norm(2 * plan.weights * plan.domain.half_widths, plan.p))
    if target <= diameter:
        return
    hint = ""
    if plan.columns is not None and not weighted:
        ones = ", ".join(f'"{name:.40}": 1' for name in plan.columns[:3])
        more = ", …" if len(plan.columns) > 3 else ""
        hint = (
            " With a dict of bounds an error of 1 is a column's whole width; for errors in the "
            f"unit of the data add weights={{{ones}{more}}}."
        )
    raise InvalidInput(
        f"error = {target:g} is more than records can be apart, {diameter:.4g}, so it needs no "
        f"data at all; ask for less.{hint}"
    )
