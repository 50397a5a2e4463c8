"""The numbers of proved implications between promises; each proof is in docs/proofs.

Every result is rounded to the safe side: the float that comes back, read as the decimal it
prints as, is never below the exact value.

And what a promise about one step between datasets says about several in a row: a person with
several records, or a record that is replaced instead of added or removed, is a few steps away. The
proofs are in docs/proofs/conversions.md, section 9.
"""

from __future__ import annotations

import decimal
import functools
from decimal import Decimal
from fractions import Fraction
from math import inf

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.gaussian_curve import context, monotone_root
from muhat.privacy.promise import Privacy
from muhat.privacy.rounding import LEAST_FLOAT, MARGIN, float_at_least


def pure_rho(epsilon: float) -> float:
    """The least ρ for which every ε-DP mechanism is ρ-zCDP, ε·tanh(ε/2), rounded up.

    >>> f"{pure_rho(1.0):.6f}"
    '0.462117'
    """
    loss = Decimal(repr(_check.positive("epsilon", epsilon)))
    with decimal.localcontext(context(small=loss)):
        decay = (-loss).exp()
        # tanh is below 1, which the margin must not hide where e^−ε is 0.
        return float_at_least(min(loss, loss * (1 - decay) / (1 + decay) * MARGIN))


def gaussian_mu_squared(promise: Privacy) -> Fraction:
    """The largest μ² for which μ-Gaussian DP keeps the promise, as a rational.

    >>> from muhat.privacy import ZCDP
    >>> gaussian_mu_squared(ZCDP(rho=0.1))
    Fraction(1, 5)
    """
    return promise.normal_mu_squared


@functools.lru_cache(maxsize=1024)
def pure_within(promise: Privacy) -> float:
    """The largest ε whose pure promise implies this one, rounded down.

    >>> from muhat.privacy import ZCDP
    >>> f"{pure_within(ZCDP(rho=0.5)):.6f}"
    '1.043627'
    """
    if promise.implied_epsilon is not None:
        return promise.implied_epsilon
    low, high = 0.0, 1.0
    while promise.follows_from_pure(high):
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if promise.follows_from_pure(middle) else (low, middle)
    if low == 0:
        raise InvalidInput(f"no pure promise implies {promise.describe()} in floats.")
    return low


def pure_delta(pure: float, epsilon: float) -> float:
    """The least δ for which every `pure`-DP mechanism is (ε, δ)-DP, rounded up; 0 if ε ≥ pure.

    The worst mechanism is randomised response: δ = (e^pure − e^ε)/(1 + e^pure).
    """
    if epsilon >= pure:
        return 0.0
    larger, smaller = Decimal(repr(pure)), Decimal(repr(epsilon))
    with decimal.localcontext(context(small=larger - smaller)):
        gap = 1 - (smaller - larger).exp()
        return float_at_least(gap / (1 + (-larger).exp()) * MARGIN)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The least ε ≥ 0 with (ε, δ)-DP that the Rényi bounds of ρ-zCDP prove, rounded up.

    ε = inf over α > 1 of αρ + [ln(1/δ) + (α−1) ln(1−1/α) − ln α]/(α−1). The derivative vanishes
    where ρ(α−1)² + ln α = ln(1/δ), which rises with α; any α gives a valid ε.

    >>> f"{zcdp_epsilon(0.1, 1e-6):.4f}"
    '2.1419'
    """
    rate = Decimal(repr(_check.positive("rho", rho)))
    target = Decimal(repr(_check.probability("delta", delta)))
    with decimal.localcontext(context(small=rate, large=rate)):
        level = -target.ln()

        def stationary(logarithm: Decimal) -> tuple[Decimal, Decimal]:
            s = logarithm.exp()
            return rate * s * s + (1 + s).ln() - level, 2 * rate * s * s + s / (1 + s)

        # ln α ≤ α − 1 and ρ(α−1)² ≤ ln(1/δ) enclose the root; the function is convex.
        high = (level / rate).ln() / 2
        low = (2 * level / (1 + (1 + 4 * rate * level).sqrt())).ln()
        s = monotone_root(stationary, low, high, start=high, rises=True)[0].exp()
    with decimal.localcontext(context(small=min(s, rate), large=max(s, rate))):
        entropy = s * s.ln() - (1 + s) * (1 + s).ln()
        moments, tail = (1 + s) * rate, (level + entropy) / s
        slack = (moments + abs(tail)) * (MARGIN - 1)
        return max(0.0, float_at_least(moments + tail + slack))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least δ with (ε, δ)-DP that the Rényi bounds of ρ-zCDP prove, rounded up; at most 1.

    δ = inf over α > 1 of e^{(α−1)(αρ−ε)} (1−1/α)^α/(α−1), whose logarithm is convex in α with
    the derivative (2α−1)ρ − ε + ln(1−1/α); any α gives a valid δ.

    >>> f"{zcdp_delta(0.1, 2.0):.3e}"
    '4.325e-06'
    """
    rate = Decimal(repr(_check.positive("rho", rho)))
    loss = Decimal(repr(_check.positive("epsilon", epsilon)))
    with decimal.localcontext(context(small=rate, large=max(rate, loss))):

        def stationary(s: Decimal) -> tuple[Decimal, Decimal]:
            value = 2 * rate * s + rate - loss - (1 + 1 / s).ln()
            return value / rate, 2 + 1 / (rate * s * (1 + s))

        # The function of s = α − 1 is concave and negative at `low`, unless its root is so small
        # that 1 − δ = 1 − e^{−ρs²}/(1 + s) vanishes next to 1.
        low = max(max(-3 * rate, Decimal(-100)).exp(), (loss - rate) / (2 * rate))
        if stationary(low)[0] > 0:
            return 1.0
        high = max(Decimal(1), (loss + 1) / (2 * rate))
        s = monotone_root(stationary, low, high, start=low, rises=True)[0]
    with decimal.localcontext(context(small=min(s, rate), large=max(s, rate, loss))):
        entropy = s * s.ln() - (1 + s) * (1 + s).ln()
        least = float_at_least((s * ((1 + s) * rate - loss) + entropy).exp() * MARGIN)
        return min(1.0, max(LEAST_FLOAT, least))


def for_groups(promise: Privacy, size: int) -> Privacy:
    """What holds for datasets that are `size` steps apart, rounded up. Never done silently.

    kε; (kε, δ·(e^{kε} − 1)/(e^ε − 1)); k²ρ; kμ.

    >>> from muhat.privacy import ZCDP, PureDP
    >>> for_groups(ZCDP(rho=0.1), 2), for_groups(PureDP(epsilon=0.1), 3)
    (ZCDP(rho=0.4), PureDP(epsilon=0.3))
    """
    size = _check.count("the size of a group", size)
    return promise if size == 1 else promise.for_groups(size)


def group_delta(epsilon: float, delta: float, size: int) -> float:
    """δ·(1 + e^ε + … + e^{(k−1)ε}), rounded up; infinite where it is certainly above 1."""
    loss, probability = Decimal(repr(epsilon)), Decimal(repr(delta))
    if loss * (size - 1) > 1000:
        return inf  # e^1000 is above 1/δ for every float δ
    # Both e^{kε} − 1 and e^ε − 1 lose the digits of ε.
    with decimal.localcontext(context(small=loss, large=loss * size)):
        steps = ((loss * size).exp() - 1) / (loss.exp() - 1)
        return float_at_least(steps * probability * MARGIN)
