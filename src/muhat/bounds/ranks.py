"""What no private quantile can beat, in ranks, and how many records an interior point takes.

2τ + 1 records in one of u cells, the others at both ends: a value whose rank is off by τ at most is
that cell. So a quantile that errs by τ with probability β at most tells u datasets apart, any two
of which differ in 2τ + 1 records, and a promise leaves no room for that where τ is small:

    a test of probability 1 − β on one of two datasets and α = β/(u − 1) on the other

(or α = 1/u on the dataset without these records, where records come and go). d columns are u^d
datasets, as a record has a value in each of them.

Huang, Liang and Yi, "Instance-optimal Mean Estimation Under Differential Privacy", 2021 (HLY21),
have the rate for ρ-zCDP (Theorem 6, Corollary 2). Proofs: docs/proofs/ranks.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from muhat import _check
from muhat.bounds.divergences import points
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.steps import any_floor
from muhat.bounds.unbiased import ADD_REMOVE, SUBSTITUTION, about, quotient
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors, Privacy, check_promise, for_groups
from muhat.privacy.conversions import group_delta
from muhat.privacy.rounding import as_typed, float_at_least

_OURS = "docs/proofs/ranks.md"
_RANKS = "The error counts ranks: 0 if the value is the cell of the record of the rank sought."
_ANY = "The mechanism may be biased and may depend on the data."
_MARGIN = 1e-9
"""Far above the rounding of a logarithm, relative to it: what is that near is allowed."""

MOST_STEPS, MOST_CELLS = 1 << 60, 1 << 256


def rank_error(
    cells: int,
    *,
    privacy: Privacy,
    q: float = 0.5,
    n: int | None = None,
    confidence: float | None = 0.95,
    neighbors: Neighbors | str = Neighbors.SUBSTITUTE,
    contributions: int = 1,
    dim: int = 1,
) -> LowerBound:
    """What no private quantile can beat: the rank error that it keeps with a confidence.

    Args:
        cells: how many values there are.
        privacy: the promise.
        q: the quantile, that of rank ⌈qn⌉.
        n: the number of records; None if it may be any.
        confidence: that of a bound on the rank error; None for the root mean square.
        neighbors: which datasets must look alike.
        contributions: how many records one person may have.
        dim: of how many columns the quantile is asked; the error is the largest of them.

    >>> from muhat.privacy import PureDP
    >>> rank_error(10**6, privacy=PureDP(epsilon=1.0)).value
    8.0
    >>> rank_error(10**6, privacy=PureDP(epsilon=1.0), confidence=None).sentence()
    'Every 1-DP (pure) mechanism has error at least 1.356 on some dataset.'
    """
    check_promise(privacy)
    cells, rows = (
        _check.count("cells", cells, most=MOST_CELLS),
        _check.count("contributions", contributions),
    )
    dim = _check.count("dim", dim)
    replaced = Neighbors.parse(neighbors) is Neighbors.SUBSTITUTE
    fraction = as_typed(_check.fraction("q", q))
    room = MOST_STEPS if 0 < fraction < 1 else 0
    if n is not None:
        rank = max(1, math.ceil(fraction * _check.count("n", n)))
        room = min(rank - 1, n - rank)
    given = (SUBSTITUTION if replaced else ADD_REMOVE, *about(rows), _ANY, _RANKS)
    if confidence is None:
        theorem, value = "B11 for ranks", _root_mean_square(privacy, cells, room, rows, replaced)
    else:
        miss = 1 - as_typed(_check.probability("confidence", confidence))
        theorem = "B13, by packing"
        value = float(_least_ranks(privacy, cells, room, miss, rows, dim, replaced))
        given += (f"It errs by so much with a probability of more than {float(miss):.3g}.",)
    promise = privacy.describe()
    return LowerBound(value, "any", "some", theorem, "derived", given, promise, _OURS)


def interior_point(cells: int, *, privacy: Privacy, dim: int = 1, success: float = 2 / 3) -> int:
    """So many records at least are needed for a point between the least and the largest of them.

    In each of `dim` coordinates, of `cells` values each, with the probability `success` on every
    dataset of n records, n public.

    >>> from muhat.privacy import ZCDP
    >>> interior_point(2**20, privacy=ZCDP(rho=0.01), dim=3)  # HLY21 Theorem 6 gives 52
    53
    """
    check_promise(privacy)
    cells, dim = _check.count("cells", cells, most=MOST_CELLS), _check.count("dim", dim)
    miss = 1 - as_typed(_check.probability("success", success))
    beta, level = float(miss), _level(dim * math.log(cells), miss)
    return _first(lambda n: _may_tell(privacy, n, level, beta), MOST_STEPS, start=1)


def _least_ranks(
    privacy: Privacy, cells: int, room: int, miss: Fraction, rows: int, dim: int, replaced: bool
) -> int:
    """The least τ that the promise leaves room for, or one more than there is room for in data."""
    # Of d columns one alone, or as many together as fail together with a probability below 1.
    many = min(dim, math.ceil(1 / miss) - 1)
    tests = []
    for columns in {many, *(1 << power for power in range(many.bit_length()))}:
        missed, log_points = columns * miss, columns * math.log(cells)
        apart = 1 if replaced else 2
        tests.append((apart, _level(log_points, missed), float(missed)))
        if not replaced:
            tests.append((1, log_points, float(missed)))

    def may(ranks: int) -> bool:
        steps = -(-(2 * ranks + 1) // rows)
        return all(_may_tell(privacy, apart * steps, *test) for apart, *test in tests)

    return _first(may, room + 1)


def _level(log_points: float, miss: Fraction) -> float:
    """−ln α, α = miss/(u − 1), u = e^log_points; 0 where there is nothing to be told apart."""
    if log_points <= 0:
        return 0.0
    return max(0.0, log_points + math.log(-math.expm1(-log_points)) - math.log(miss))


def _first(may: Callable[[int], bool], most: int, start: int = 0) -> int:
    """The least whole number from `start` to `most` for which `may` holds, as it does beyond."""
    low, width = start, 1
    while low < most and not may(min(low + width - 1, most - 1)):
        low, width = min(low + width, most), 2 * width
    high = min(low + width - 1, most - 1) if low < most else most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if may(middle) else (middle + 1, high)
    return low


def _may_tell(privacy: Privacy, steps: int, level: float, beta: float) -> bool:
    """Whether datasets so many steps apart may have a test of power 1 − β at α = e^−level.

    True in doubt.
    """
    hits = math.log1p(-beta)
    if level <= -hits:  # a blind guess is as good
        return True
    # What is the test's ratio on both sides: (1 − β)/α and (1 − α)/β.
    ratio = max(level + hits, math.log(-math.expm1(-level)) - math.log(beta))
    slack = 1 + _MARGIN
    if privacy.implied_epsilon is not None:
        return steps * privacy.implied_epsilon * slack >= ratio
    if privacy.implied_mu is not None:
        from scipy.special import ndtri, ndtri_exp

        apart = float(ndtri(1 - beta)) - float(ndtri_exp(-level))
        return steps * privacy.implied_mu * slack >= apart
    if privacy.implied_rho is not None:
        rest = -math.expm1(-level)  # 1 − α
        forth = (1 - beta) * (level + hits) + beta * math.log(beta / rest)
        back = rest * math.log(rest / beta) - math.exp(-level) * (level + hits)
        told = max(forth, back) * (1 - _MARGIN) - 1e-14
        return steps * steps * float_at_least(privacy.implied_rho) >= told
    return all(_approximately(*point, steps, level, beta) for point in points(privacy))


def _approximately(epsilon: float, delta: float, steps: int, level: float, beta: float) -> bool:
    """1 − β ≤ e^{kε}α + δ_k, and 1 − α ≤ e^{kε}β + δ_k."""
    loss, leak = steps * epsilon * (1 + _MARGIN), group_delta(epsilon, delta, steps)
    if leak >= 1 - beta:
        return True
    first = loss - level >= math.log(1 - beta - leak)
    rest = -math.expm1(-level) - leak
    return first and (rest <= 0 or loss + math.log(beta) >= math.log(rest))


def _root_mean_square(
    privacy: Privacy, cells: int, room: int, rows: int, replaced: bool
) -> float | None:
    """A record a cell, and y of others moved from end to end: the cell sought moves by y."""
    copies = max(0, min(room, cells - 3)) // rows
    try:
        promise = privacy if replaced else for_groups(privacy, 2)
    except InvalidInput:
        return 0.0
    floor = any_floor(promise, float(copies))
    return 0.0 if floor is None else quotient(float(rows), -floor.log_square)
