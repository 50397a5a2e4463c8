"""How many fragments a number must be split into, so that mixed fragments tell its sum and no more.

h people split each number of theirs into m fragments: uniform modulo q, but for their sum. What is
seen of all h·m fragments, in random order, is within η in total variation of what could be made up
from the sum alone, whatever the numbers are, with

    η = ½·√(e_h − 1),    e_1 = 1,    e_k = 1 + q·Σ_{0<j<k} (j/k)·ρ_j(k)·e_{k−j},
    ρ_j(k) = C(k, j)²/C(mk, mj),

for the sum of one number a person, and η = ½·√(e_h^r − 1) for those of r numbers. The leading
term is e_h − 1 ≈ q·h²/C(mh, m). docs/proofs/shuffle-sums.md proves it, and that the evaluation
here errs upwards only.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb, prod
from operator import mul

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.rounding import root_at_least

MOST_HONEST = 1 << 40
MOST_FRAGMENTS = 256
LARGEST_MODULUS = 1 << 64

_LISTS = (32, 64, 128, 256, 512, 1024)
"""e_k is computed for every k up to the first of these from which a sharp bound follows."""

SHARP = Fraction(21, 20)
"""A bound is sharp if it is at most so many times what e_h − 1 is at least, q·h²/C(mh, m)."""

_LEAST, _MOST = Decimal("1e-200"), Decimal("1e200")

# All terms are positive, so that rounding each step up gives upper bounds; the other context is
# for what is divided by.
_UP, _DOWN = (
    decimal.Context(prec=50, rounding=rounding, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    for rounding in (decimal.ROUND_CEILING, decimal.ROUND_FLOOR)
)


@lru_cache(maxsize=4096)
def excess(honest: int, fragments: int, modulus: int) -> Fraction | None:
    """An upper bound on e_h − 1; None where no useful one is known.

    The least of what the lists give, up to the first that is sharp.

    >>> float(excess(2, 3, 5)) == 5 * 2 / 20
    True
    """
    h = _check.count("honest", honest, most=MOST_HONEST)
    m = _check.count("fragments", fragments, least=2, most=MOST_FRAGMENTS)
    q = _check.count("modulus", modulus, least=2, most=LARGEST_MODULUS)
    if h == 1:
        return Fraction(0)
    least, best = Fraction(q * h * h, comb(m * h, m)), None
    with decimal.localcontext(_UP):
        for last in _LISTS:
            listed = _listed(m, q, min(h, last))
            found = listed[h] if h <= last else _beyond(h, m, q, listed)
            if found is None:
                continue
            found = min(max(found, _LEAST), _MOST)
            best = found if best is None else min(best, found)
            if h <= last or found <= max(SHARP * least, Fraction(_LEAST)):
                break
    return None if best is None else Fraction(best)


def distance(honest: int, fragments: int, modulus: int, numbers: int = 1) -> float:
    """η for r numbers a person, rounded up; 1 where nothing is known.

    Args:
        honest: h, the people whose fragments nobody knows.
        fragments: m, for each number.
        modulus: q.
        numbers: r; the fragments of each of the r sums are mixed on their own.

    >>> distance(1000, 12, 1 << 32) < 2.0**-40 < distance(1000, 11, 1 << 32)
    True
    """
    r = _check.count("numbers", numbers)
    single = excess(honest, fragments, modulus)
    if single is None or r * single >= 1:
        return 1.0
    # (1 + x)^r ≤ e^{rx} ≤ 1/(1 − rx).
    together = single if r == 1 else r * single / (1 - r * single)
    return root_at_least(together / 4)


def least_fragments(honest: int, modulus: int, numbers: int, within: float) -> int:
    """The least m with η ≤ `within`.

    >>> [least_fragments(h, 1 << 32, 1, 2.0**-40) for h in (10**3, 10**4, 10**6)]
    [12, 10, 8]
    """
    limit = _check.probability("within", within)
    for fragments in range(2, MOST_FRAGMENTS + 1):
        # What `excess` is at least, before it is computed with care.
        leading = Fraction(modulus * honest * (honest - 1), comb(fragments * honest, fragments))
        if numbers * leading <= 4 * Fraction(limit) ** 2 and (
            distance(honest, fragments, modulus, numbers) <= limit
        ):
            return fragments
    raise InvalidInput(
        f"more than {MOST_FRAGMENTS} fragments would be needed for {honest} honest people; "
        "ask for more of them, or for a larger delta."
    )


@lru_cache(maxsize=64)
def _listed(m: int, q: int, last: int) -> list[Decimal]:
    """e_k − 1 for k = 1, …, last, by the recursion itself; the entry 0 is not used.

    With a_j = (mj)!/j!² it is ρ_j(k) = a_j·a_{k−j}/a_k.
    """
    found, above, below = [Decimal(0)] * 2, [Decimal(1)], Decimal(1)
    weighted, reached = [Decimal(0)], [Decimal(0)]
    for k in range(1, last + 1):
        factor = prod(range(m * (k - 1) + 1, m * k + 1))
        above.append(above[-1] * factor / (k * k))
        below = _DOWN.divide(_DOWN.multiply(below, Decimal(factor)), Decimal(k * k))
        if k > 1:
            total = sum(map(mul, weighted[1:], reached[:0:-1]), Decimal(0))
            found.append(q * total / _DOWN.multiply(below, Decimal(k)))
        weighted.append(k * above[k])
        reached.append(above[k] * (1 + found[k]))
    return found


def _beyond(h: int, m: int, q: int, listed: list[Decimal]) -> Decimal | None:
    """e_h − 1 for an h beyond the list; None if it comes out above 1.

    Doubling: with all e_k up to `top` bounded, those up to 2·top are bounded together.
    """
    top = len(listed) - 1
    before = 1 + max(listed[top // 2 :])
    largest = 1 + max(listed)
    while True:
        fixed, slope = _sums(top, m, q, listed, largest)
        if 2 * slope > 1:
            return None
        after = max((1 + fixed) / _DOWN.subtract(Decimal(1), slope), 1 + fixed + slope * before)
        if h <= 2 * top:
            fixed, slope = _sums(h, m, q, listed, largest)
            found = fixed + slope * max(before, after)
            return found if found <= 1 else None
        top, before, largest = 2 * top, after, max(largest, after)


def _sums(
    k: int, m: int, q: int, listed: list[Decimal], largest: Decimal
) -> tuple[Decimal, Decimal]:
    """a and b with e_i ≤ 1 + a + b·N for all i in [k, 2k], N the largest of e_{i/2}, …, e_{i−1}.

    From the terms j and i − j for j up to half the list, with ρ_j(i) ≤ ρ_j(k); for every j between,
    ρ_j(i) is at most that of the last of them. No e up to i/2 is above `largest`.
    """
    fixed = slope = Decimal(0)
    ratio = Decimal(q)
    for j in range(1, len(listed) // 2 + 1):
        rises = (k - j + 1) ** 2 * prod(range(m * (j - 1) + 1, m * j + 1))
        falls = j**2 * prod(range(m * (k - j) + 1, m * (k - j + 1) + 1))
        ratio = ratio * rises / falls
        fixed += ratio * (1 + listed[j])
        slope += ratio * j / k
    return fixed + ratio * k * largest, slope + ratio * k
