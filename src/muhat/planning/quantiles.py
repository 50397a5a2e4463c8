"""Quantiles: planned by `mh.plan_quantile`, or from data in one call by `mh.quantile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from muhat.ledger import LedgerLike, as_ledger
from muhat.planning.group_quantiles import quantiles_of
from muhat.planning.plan import Plan
from muhat.planning.run import run
from muhat.planning.terms import COUNTED, Counted, Terms, number_for
from muhat.privacy import Privacy
from muhat.release.release import Release
from muhat.statistics.groups import By, groups_of
from muhat.statistics.quantiles import Quantiles

if TYPE_CHECKING:
    from muhat.data.categories import Cells


def quantile(
    data: Any,
    q: float | Sequence[float] = 0.5,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    privacy: Privacy | None = None,
    n: int | Counted | None = COUNTED,
    columns: Sequence[str] | Sequence[int] | None = None,
    resolution: ArrayLike | None = None,
    relative: ArrayLike | None = None,
    missing: str = "drop",
    contributions: int = 1,
    by: By = None,
    groups: Cells | None = None,
    categories: Mapping[Any, Any] | None = None,
    interval: bool = True,
    ledger: LedgerLike = None,
) -> Release:
    """Private quantiles of a file, a dataframe or an array, by a choice or a noisy binary search.

    `q` is a quantile between 0 and 1, or a list of them; `lower` and `upper` are public bounds, one
    number for one column and a list for several. All columns share the promise evenly, and so do
    quantiles, unless those of a column are chosen together, which errs less. The quantile q of n
    values is the value of the rank ⌈q·n⌉; 0 is the least of them and 1 the greatest, which noise in
    ranks cannot tell from the few next to them.

    A missing or non-finite value is left out ("drop"): the quantile is that of the recorded values
    of each column, whose number is released with noise. missing="none" declares, as a public fact,
    that nothing is missing; "center" counts a missing value as the middle of the bounds.

    `resolution` is the step of the grid that values lie on: its default is a round number with
    at most 2^20 steps between the bounds. Give the data's own step (1 for whole numbers, 0.01 for
    prices) where it is coarser: each halving of the number of steps saves a round of noise. A
    finer one costs little, 2^30 steps are the most. For positive numbers over many orders of
    magnitude, `relative` asks for steps by a share instead: 0.01 for values 1 % apart.

    n left out: the rows are counted and their number is declared public, unless the ledger's
    relation is add-remove. `n=None`: secret, and nothing is paid for that.

    `by` names a column, or several, whose public categories make groups: `groups` those of one
    column, `categories` a dict as for `plan_queries`, {"sex": ["f", "m"], "age": {"bins": [0, 18,
    99]}}. Every group has its own quantiles and a noisy number of values, all for one promise;
    records of other values are in no group. `release["f", "[0, 18)"]` is that of one group.

    `interval=False` spends all on the values: a choice by rank then has only its rank error, which
    shrinks by a quarter, and intervals reach from bound to bound.

    >>> import numpy as np, muhat as mh
    >>> incomes = np.arange(100_000)
    >>> release = mh.quantile(incomes, 0.5, lower=0, upper=1e6, privacy=mh.ZCDP(rho=0.1))
    >>> bool(abs(float(release) - 50_000) <= release.rank_error(1 - 1e-9)[0] + 1)
    True
    """
    account = as_ledger(ledger)
    asked = Quantiles.of(
        q,
        lower,
        upper,
        resolution=resolution,
        relative=relative,
        missing=missing,
        categories=groups_of(by, groups, categories),
        interval=interval,
    )
    terms = Terms.checked(privacy, number_for(n, None, account), contributions=contributions)
    return run(Plan.of(quantiles_of(asked, terms)), data, columns, account)


def plan_quantile(
    q: float | Sequence[float] = 0.5,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    privacy: Privacy | None = None,
    n: int | None = None,
    resolution: ArrayLike | None = None,
    relative: ArrayLike | None = None,
    missing: str = "drop",
    contributions: int = 1,
    by: By = None,
    groups: Cells | None = None,
    categories: Mapping[Any, Any] | None = None,
    interval: bool = True,
) -> Plan:
    """Plan private quantiles: their rank errors are known before anything is paid.

    The arguments are those of `quantile`. `n=None`: the number of records is secret. Rank errors
    are those of each group, if there are any.

    >>> import muhat as mh
    >>> plan = mh.plan_quantile(0.5, lower=0, upper=1e6, n=100_000, privacy=mh.ZCDP(rho=0.1))
    >>> plan.rank_error(0.95).tolist()
    [46]
    """
    asked = Quantiles.of(
        q,
        lower,
        upper,
        resolution=resolution,
        relative=relative,
        missing=missing,
        categories=groups_of(by, groups, categories),
        interval=interval,
    )
    return Plan.of(quantiles_of(asked, Terms.checked(privacy, n, contributions=contributions)))
