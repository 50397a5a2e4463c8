"""From data to a release in one call: `mh.mean`, `mh.sum`, `mh.count`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, overload

from numpy.typing import ArrayLike

from muhat.domains import Domain, Reals
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike, as_ledger
from muhat.planning.candidates import mechanism_for
from muhat.planning.groups import check_groups, group_means
from muhat.planning.mechanism import Columns
from muhat.planning.plan import Plan
from muhat.planning.planners import plan_count
from muhat.planning.run import counted_terms, run
from muhat.planning.terms import COUNTED, Counted, Terms, number_for
from muhat.privacy import Neighbors, Privacy, check_promise
from muhat.release.release import Release
from muhat.statistics.bounded import Bounded, NamedBounds, in_order
from muhat.statistics.mean import bounded_of, mean_of
from muhat.statistics.reals import LowBias, Unassuming, by_column, open_records

if TYPE_CHECKING:
    from muhat.data import Source
    from muhat.data.categories import Cells
    from muhat.statistics.options import BoundedOptions, RealsOptions, UnbiasedOptions


@overload
def mean(
    data: Any,
    columns: str | Sequence[str],
    *,
    bounds: tuple[float, float] | NamedBounds,
    privacy: Privacy,
    by: str | Sequence[str],
    categories: Mapping[str, Any],
    n: int | Counted | None = COUNTED,
    neighbors: Neighbors | str | None = None,
    ledger: LedgerLike = None,
) -> Release: ...


@overload
def mean(
    data: Any,
    columns: str | Sequence[str],
    *,
    bounds: tuple[float, float] | NamedBounds,
    by: None = None,
    n: int | Counted | None = COUNTED,
    ledger: LedgerLike = None,
    **options: Unpack[BoundedOptions],
) -> Release: ...


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
) -> Release: ...


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
    **options: Unpack[UnbiasedOptions],
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
    columns: str | Sequence[str] | Sequence[int] | None = None,
    *,
    domain: Domain | NamedBounds | Reals | None = None,
    bounds: tuple[float, float] | NamedBounds | None = None,
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
    by: str | int | Sequence[str] | None = None,
    groups: Cells | None = None,
    categories: Mapping[str, Any] | None = None,
    ledger: LedgerLike = None,
) -> Release:
    """A private mean of a file, a dataframe or an array.

    n left out: the rows are counted and their number is declared public, unless the relation is
    add-remove, by `neighbors` or by that of the ledger. `n=None`: secret.
    In `Reals` nobody has bounded the records: centre and radius are learnt privately, or with a
    `moment` an interval of bounded bias; all options are those of `plan_mean`.
    With `by`, the mean of every one of the public `groups` of that column, whose sizes are secret;
    or, with `bounds` and `categories` by column, of every combination of several columns:
    `mh.mean(people, "pay", by=["region", "sex"], bounds=(0, 90), categories={…}, privacy=…)`.

    >>> import numpy as np, muhat as mh
    >>> ages = np.arange(16, 91).repeat(1000)
    >>> release = mh.mean(ages, domain=mh.Box([16], [90]), privacy=mh.ZCDP(rho=0.5))
    >>> bool(abs(release.value[0] - ages.mean()) < 0.05)
    True
    """
    account = as_ledger(ledger)
    if bounds is not None or categories is not None:
        named = _bounds_of(columns, bounds, domain)
        if categories is not None:
            # Sets of statistics take as many modules as means do, which need none of them.
            from muhat.planning.several import means_by_groups

            number = number_for(n, neighbors, account)
            planned = means_by_groups(
                named,
                by,
                categories,
                privacy=privacy,
                n=number,
                neighbors=neighbors,
                missing=missing,
            )
            return planned.release(data, ledger=account)
        domain, columns = named, list(named)
    names = _names(columns)
    if moment is not None or max_bias is not None:
        moment, max_bias = by_column(names, moment, max_bias)
    if by is not None or groups is not None:
        check_groups(domain, n, by, unbiased=unbiased or n_min is not None)
        n = None
    terms = Terms.checked(
        privacy,
        number_for(n, neighbors, account),
        neighbors=neighbors,
        contributions=contributions,
        n_min=n_min,
    )
    asked = mean_of(
        domain,
        names,
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
    released: Release
    if by is None:
        released = run(Request.of(asked, terms), data, names, account)
        return released
    assert isinstance(asked, Bounded)  # anything else was refused with the groups
    released = run(Plan.of(group_means(asked, terms, by, groups)), data, names, account)
    return released


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
    names, account = _names(columns), as_ledger(ledger)
    terms = Terms.checked(
        privacy,
        number_for(n, neighbors, account),
        neighbors=neighbors,
        contributions=contributions,
    )
    asked = bounded_of(
        "sum",
        domain,
        names,
        p=p,
        weights=weights,
        missing=missing,
        population=population,
        mechanism=mechanism,
        clip=clip,
    )
    released: Release = run(Request.of(asked, terms), data, names, account)
    return released


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


def _bounds_of(
    columns: object, bounds: object, domain: Domain | NamedBounds | Reals | None
) -> dict[str, tuple[float, float]]:
    """The bounds of every column: a dict, or one pair for all columns that are named."""
    if domain is not None or bounds is None:
        raise InvalidInput(
            "says where values lie, by column or as one pair, and takes the place of domain",
            parameter="bounds",
        )
    if isinstance(bounds, Mapping):
        return dict(in_order(dict(bounds), _names(columns) or tuple(bounds)))
    names = _names(columns)
    if names is None:
        raise InvalidInput('must be named, as in mh.mean(data, "pay", …)', parameter="columns")
    return {str(name): bounds for name in names}  # type: ignore[misc]


def _names(columns: Any) -> Columns:
    """The columns that are asked for, as a list of names or numbers."""
    from muhat.data.selection import column_names

    return column_names(columns)


@dataclass(frozen=True, eq=False)
class Request:
    """A mean or a sum under given terms.

    What a schema says of missing values enters when the data are opened, and so does a number of
    records that is counted; until then `plan` is the one for what is known, or None if that is too
    little.
    """

    asked: Bounded | Unassuming | LowBias
    terms: Terms
    plan: Plan | None

    @classmethod
    def of(cls, asked: Bounded | Unassuming | LowBias, terms: Terms) -> Request:
        """Plan now whatever can be, so that what cannot is refused before anything is opened."""
        waits = asked.needs_n and terms.n is None and not terms.is_secret
        return cls(asked, terms, None if waits else Plan.of(mechanism_for(asked, terms)))

    def open(self, data: Any, columns: Columns) -> list[Source]:
        """The data as records; arguments and metadata are checked alone."""
        if self.plan is not None:
            return self.plan.open(data, columns)
        assert not isinstance(self.asked, Bounded)  # whose plan does not wait for n
        return [open_records(self.asked.domain, data, columns)]

    def planned(self, sources: list[Source]) -> Plan:
        """The plan for these records."""
        (source,) = sources
        asked = self.asked.completed() if source.complete else self.asked
        waits = asked.needs_n or (asked.missing == "drop" and self.terms.n is None)
        if asked is self.asked and self.plan is not None and not waits:
            return self.plan.planned(sources)
        terms = counted_terms(self.terms, source) if waits else self.terms
        return Plan.of(mechanism_for(asked, terms)).planned(sources)
