"""From data to a release in one call: `mh.mean`, `mh.sum`, `mh.count`."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from numpy.typing import ArrayLike

from muhat._words import Parameter
from muhat.domains import Domain, Reals
from muhat.errors import InvalidInput
from muhat.ledger import Ledger, LedgerLike, as_ledger
from muhat.planning.execution import SumsWork
from muhat.planning.low_bias_columns import by_column
from muhat.planning.plan import Plan
from muhat.planning.planners import plan_count, plan_mean, plan_sum
from muhat.planning.reals_plan import RealsPlan
from muhat.planning.reals_rule import reals_rule
from muhat.planning.run import count_rows, run
from muhat.planning.task import NamedBounds, as_domain, in_order
from muhat.planning.unbounded_execution import RealsWork
from muhat.privacy import Neighbors, Privacy, check_promise
from muhat.release.group_release import GroupRelease
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.data import Source
    from muhat.data.categories import Cells
    from muhat.planning.options import BoundedOptions, RealsOptions


class Counted(enum.Enum):
    """n was left out: the rows are counted and their number is declared public."""

    COUNTED = "counted"


COUNTED = Counted.COUNTED


def number_for(
    n: int | Counted | None, neighbors: Neighbors | str | None, account: Ledger | None
) -> int | Counted | None:
    """n as given; left out it is secret if the relation is, that of the ledger unless given."""
    if n is not COUNTED:
        return n
    if neighbors is None and account is not None:
        neighbors = account.neighbors
    secret = neighbors is not None and Neighbors.parse(neighbors) is Neighbors.ADD_REMOVE
    return None if secret else COUNTED


@overload
def mean(
    data: Any,
    *,
    domain: Domain | NamedBounds,
    by: str | int,
    groups: Cells,
    columns: Sequence[str] | Sequence[int] | None = None,
    n: Counted | None = COUNTED,
    ledger: LedgerLike = None,
    **options: Unpack[BoundedOptions],
) -> GroupRelease: ...


@overload
def mean(
    data: Any,
    *,
    domain: Domain | NamedBounds,
    by: None = None,
    groups: None = None,
    columns: Sequence[str] | Sequence[int] | None = None,
    n: int | Counted | None = COUNTED,
    n_min: int | None = None,
    unbiased: bool = False,
    ledger: LedgerLike = None,
    **options: Unpack[BoundedOptions],
) -> Release: ...


@overload
def mean(
    data: Any,
    *,
    domain: Reals,
    by: None = None,
    groups: None = None,
    columns: Sequence[str] | Sequence[int] | None = None,
    n: int | Counted | None = COUNTED,
    n_min: int | None = None,
    moment: tuple[float, ArrayLike | Mapping[str, float]] | None = None,
    max_bias: ArrayLike | Mapping[str, float] | None = None,
    ledger: LedgerLike = None,
    **options: Unpack[RealsOptions],
) -> Release: ...


def mean(
    data: Any,
    *,
    columns: Sequence[str] | Sequence[int] | None = None,
    domain: Domain | NamedBounds | Reals | None = None,
    privacy: Privacy | None = None,
    n: int | Counted | None = COUNTED,
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
    max_bias: ArrayLike | Mapping[str, float] | None = None,
    max_error: float | None = None,
    moment: tuple[float, ArrayLike | Mapping[str, float]] | None = None,
    symmetric: bool = False,
    unbiased: bool = False,
    n_min: int | None = None,
    by: str | int | None = None,
    groups: Cells | None = None,
    ledger: LedgerLike = None,
) -> Release | GroupRelease:
    """A private mean of a file, a dataframe or an array.

    n left out: the rows are counted and their number is declared public, unless the relation is
    add-remove, by `neighbors` or by that of the ledger. `n=None`: secret.
    In `Reals` nobody has bounded the records: centre and radius are learnt privately, or with a
    `moment` an interval of bounded bias; all options are those of `plan_mean`.
    With `by`, the mean of every one of the public `groups` of that column, whose sizes are secret.

    >>> import numpy as np, muhat as mh
    >>> ages = np.arange(16, 91).repeat(1000)
    >>> release = mh.mean(ages, domain=mh.Box([16], [90]), privacy=mh.ZCDP(rho=0.5))
    >>> bool(abs(release.value[0] - ages.mean()) < 0.05)
    True
    """
    options: dict[str, Any] = {
        "privacy": privacy,
        "p": p,
        "weights": weights,
        "neighbors": neighbors,
        "missing": missing,
        "contributions": contributions,
        "population": population,
        "mechanism": mechanism,
        "clip": clip,
        "faithful": faithful,
        "scale": scale,
        "max_bias": max_bias,
        "max_error": max_error,
        "moment": moment,
        "symmetric": symmetric,
        "unbiased": unbiased,
        "n_min": n_min,
    }
    if by is not None or groups is not None:
        return _grouped(
            data,
            columns=columns,
            domain=domain,
            n=n,
            by=by,
            groups=groups,
            ledger=ledger,
            **options,
        )
    options["insist"] = insist
    if isinstance(domain, Reals):
        return _unbounded(data, columns=columns, domain=domain, n=n, ledger=ledger, **options)
    return _release(plan_mean, data, columns=columns, domain=domain, n=n, ledger=ledger, **options)


def sum(
    data: Any,
    *,
    columns: Sequence[str] | Sequence[int] | None = None,
    domain: Domain | NamedBounds | None = None,
    privacy: Privacy | None = None,
    n: int | Counted | None = COUNTED,
    p: float = 2,
    weights: ArrayLike | Mapping[str, float] | None = None,
    neighbors: Neighbors | str | None = None,
    missing: str | None = None,
    contributions: int = 1,
    population: bool | None = None,
    mechanism: str | None = None,
    clip: Domain | None = None,
    ledger: LedgerLike = None,
) -> Release:
    """A private sum: as `mean`, without dividing."""
    return _release(
        plan_sum,
        data,
        columns=columns,
        domain=domain,
        privacy=privacy,
        n=n,
        ledger=ledger,
        p=p,
        weights=weights,
        neighbors=neighbors,
        missing=missing,
        contributions=contributions,
        population=population,
        mechanism=mechanism,
        clip=clip,
    )


def count(
    data: Any,
    *,
    privacy: Privacy | None = None,
    neighbors: Neighbors | str | None = None,
    contributions: int = 1,
    ledger: LedgerLike = None,
) -> Release:
    """A private number of rows, under adding or removing one."""
    check_promise(privacy)
    assert privacy is not None
    plan = plan_count(privacy=privacy, neighbors=neighbors, contributions=contributions)
    return plan.release(data, ledger=ledger)


def _release(
    planner: Callable[..., Plan],
    data: Any,
    *,
    columns: Sequence[str] | Sequence[int] | None,
    domain: Domain | NamedBounds | None,
    n: int | Counted | None,
    ledger: LedgerLike,
    **options: Any,
) -> Release:
    from muhat.data.selection import column_names

    check_promise(options["privacy"])
    columns = column_names(columns)
    if isinstance(domain, Mapping) and columns is not None:
        domain = in_order(domain, columns)
    _, names = as_domain(domain)
    account = as_ledger(ledger)
    n = number_for(n, options["neighbors"], account)
    # The plan for any n checks the arguments before the rows are counted.
    trial = planner(domain=domain, n=1 if n is COUNTED else n, **options)
    if not isinstance(trial, Plan):
        return trial.release(data, columns, account)

    def planned(source: Source) -> Plan:
        if options["missing"] is None and source.complete:
            # The schema says so itself, whatever the values are.
            options["missing"] = "none"
        elif n is not COUNTED:
            return trial
        plan = planner(domain=domain, n=count_rows(source) if n is COUNTED else n, **options)
        return plan.assuming("n was counted from the data") if n is COUNTED else plan

    return run(SumsWork(trial, planned), data, names if columns is None else columns, account)


def _unbounded(
    data: Any,
    *,
    columns: Sequence[str] | Sequence[int] | None,
    domain: Reals,
    n: int | Counted | None,
    ledger: LedgerLike,
    **options: Any,
) -> Release:
    check_promise(options["privacy"])
    options |= by_column(columns, moment=options["moment"], max_bias=options["max_bias"])
    wanted, named = options["missing"], columns is not None
    options["missing"] = reals_rule(wanted, options["mechanism"], named=named)
    account = as_ledger(ledger)
    n = number_for(n, options["neighbors"], account)
    if n is not COUNTED:
        release: Release = plan_mean(domain=domain, n=n, **options).release(data, columns, account)
        return release
    # The plan for any n checks the arguments before the rows are counted.
    trial = _try_out(domain, {**options, "insist": True, "max_error": None})

    def planned(source: Source) -> RealsPlan:
        if wanted is None and source.complete:
            # The schema says so itself, whatever the values are.
            options["missing"] = "none"
        plan: RealsPlan = plan_mean(domain=domain, n=count_rows(source), **options)
        return plan.assuming("n was counted from the data")

    return run(RealsWork(trial, planned), data, columns, account)


def _try_out(domain: Reals, options: dict[str, Any]) -> RealsPlan:
    """The plan for more records than anybody has: what that refuses every number would."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan: RealsPlan = plan_mean(domain=domain, n=1 << 40, **options)
    return plan


def _grouped(
    data: Any,
    *,
    columns: Sequence[str] | Sequence[int] | None,
    domain: Domain | NamedBounds | Reals | None,
    n: int | Counted | None,
    by: str | int | None,
    groups: Cells | None,
    ledger: LedgerLike,
    **options: Any,
) -> GroupRelease:
    from muhat.data.selection import column_names
    from muhat.planning.groups import GroupsWork

    check_promise(options["privacy"])
    if options["unbiased"] or options["n_min"] is not None:
        named = (Parameter("unbiased"), " and ", Parameter("n_min"))
        raise InvalidInput("means of groups are ratios: leave ", *named, " out.")
    if by is None:
        raise InvalidInput("groups are the categories of a column: name it with by=….")
    if n is not COUNTED and n is not None:
        raise InvalidInput("the sizes of groups are secret, so n must be left out.")
    columns = column_names(columns)
    if isinstance(domain, Mapping) and columns is not None:
        domain = in_order(domain, columns)
    _, names = as_domain(domain)
    assert isinstance(domain, Domain | Mapping)  # anything else was refused just now
    chosen = names if columns is None else columns
    if chosen is None:
        raise InvalidInput("must be named when there are groups", parameter="columns")
    plan = plan_mean(domain=domain, n=None, **options)
    return run(GroupsWork(plan, by, groups), data, chosen, ledger)
