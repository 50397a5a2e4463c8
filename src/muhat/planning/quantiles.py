"""Quantiles: planned by `mh.plan_quantile`, or from data in one call by `mh.quantile`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._words import Parameter
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike, as_ledger
from muhat.mechanisms.quantiles.quantile import QuantileRecipe
from muhat.mechanisms.sums.recipe import Protection
from muhat.noise.law import LAWS
from muhat.planning.quantile_plan import QuantilePlan, QuantileWork
from muhat.planning.run import run
from muhat.planning.shortcuts import COUNTED, Counted, number_for
from muhat.privacy import Neighbors, Privacy, as_typed, check_promise
from muhat.release.quantile_display import MISSING
from muhat.release.quantile_release import QuantileRelease

if TYPE_CHECKING:
    from muhat.data.grids import UniformGrid

MOST_QUANTILES = 1000


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
    ledger: LedgerLike = None,
) -> QuantileRelease:
    """Private quantiles of a file, a dataframe or an array, by a noisy binary search.

    `q` is a quantile strictly between 0 and 1, or a list of them; `lower` and `upper` are public
    bounds, one number for one column and a list for several. All columns and quantiles share the
    promise evenly. The quantile q of n values is the value of the rank ⌈q·n⌉.

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

    >>> import numpy as np, muhat as mh
    >>> incomes = np.arange(100_000)
    >>> release = mh.quantile(incomes, 0.5, lower=0, upper=1e6, privacy=mh.ZCDP(rho=0.1))
    >>> bool(abs(float(release) - 50_000) <= release.rank_error(1 - 1e-9)[0] + 1)
    True
    """
    account = as_ledger(ledger)
    n = number_for(n, None, account)
    plan = plan_quantile(
        q,
        lower=lower,
        upper=upper,
        privacy=privacy,
        n=1 if n is COUNTED else n,
        resolution=resolution,
        relative=relative,
        missing=missing,
        contributions=contributions,
    )
    return run(QuantileWork(plan, count=n is COUNTED), data, columns, account)


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
) -> QuantilePlan:
    """Plan private quantiles: their rank errors are known before anything is paid.

    The arguments are those of `quantile`. `n=None`: the number of records is secret.

    >>> import muhat as mh
    >>> plan = mh.plan_quantile(0.5, lower=0, upper=1e6, n=100_000, privacy=mh.ZCDP(rho=0.1))
    >>> plan.rank_error(0.95).tolist()
    [31]
    """
    check_promise(privacy)
    assert privacy is not None
    asked = _fractions(q)
    grids = _grids(lower, upper, resolution, relative)
    number = None if n is None else _check.count("n", n)
    _check.one_of("missing", missing, tuple(MISSING))
    neighbors = Neighbors.ADD_REMOVE if number is None else Neighbors.SUBSTITUTE
    protection = Protection.of(privacy, neighbors, _check.count("contributions", contributions))
    recipe = QuantileRecipe.of(
        grids,
        [as_typed(one) for one in (asked if isinstance(asked, tuple) else (asked,))],
        number,
        LAWS["laplace" if protection.pure else "normal"],
        protection,
        recorded=missing == "drop",
        intervals=True,
    )
    return QuantilePlan(q=asked, privacy=privacy, missing=missing, recipe=recipe)


def _fractions(q: float | Sequence[float]) -> float | tuple[float, ...]:
    """One quantile or several, each strictly between 0 and 1."""
    given = _listed("q", q)
    if not isinstance(given, tuple):
        return _check.probability("q", given)
    _check.count("the number of quantiles", len(given), most=MOST_QUANTILES)
    return tuple(_check.probability("q", one) for one in given)


def _grids(
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    resolution: ArrayLike | None,
    relative: ArrayLike | None,
) -> list[UniformGrid]:
    """A grid a column, from a number or a list for each of the arguments."""
    from muhat.data.grids import UniformGrid
    from muhat.release.quantile_grids import RelativeGrid

    if lower is None or upper is None:
        raise InvalidInput(
            Parameter("lower"),
            " and ",
            Parameter("upper"),
            " must say between which public bounds the search runs, for instance ",
            Parameter("lower", "lower=0, upper=1e6", "--lower 0 --upper 1e6"),
            "; generous bounds cost little.",
        )
    if resolution is not None and relative is not None:
        both = (Parameter("resolution"), " and ", Parameter("relative"))
        raise InvalidInput(*both, " are two ways to choose a step; give one.")
    lows, highs = _listed("lower", lower), _listed("upper", upper)
    steps = _listed("resolution", resolution if relative is None else relative)
    if not isinstance(lows, tuple) and not isinstance(highs, tuple):
        lows, highs = (lows,), (highs,)
        steps = steps if isinstance(steps, tuple) else (steps,)
    if not isinstance(lows, tuple) or not isinstance(highs, tuple) or len(lows) != len(highs):
        raise InvalidInput("lower and upper must be two numbers, or two lists of equal length.")
    if steps is None or (relative is not None and not isinstance(steps, tuple)):
        steps = (steps,) * len(lows)
    if not lows or not isinstance(steps, tuple) or len(steps) != len(lows):
        raise InvalidInput("lower, upper and the steps must have one number for each column.")
    kind = UniformGrid if relative is None else RelativeGrid
    # Searches know grids by their cells alone: the two kinds are the same to them.
    return [cast(UniformGrid, kind.between(*each)) for each in zip(lows, highs, steps, strict=True)]


def _listed(name: str, value: Any) -> Any:
    """A single thing as it is, a list or an array of one axis as a tuple."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.item()
    if isinstance(value, np.ndarray) and value.ndim > 1:
        raise InvalidInput("must be a number or a list of numbers", parameter=name)
    if isinstance(value, list | tuple | range | np.ndarray):
        return tuple(value)
    return value
