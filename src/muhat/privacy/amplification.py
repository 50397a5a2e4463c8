"""What shuffling adds to the privacy of one message from each of many users, in numbers.

The closed form of `shuffled` loses a factor of about five. Here the divergence of the worst pair is
summed instead, of all ε₀-DP randomisers or of those that raise the probability of a given share of
the outcomes: randomised response, subset selection, caps of a sphere.
docs/proofs/amplification.md.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.approximate import ApproxDP
from muhat.privacy.blanket import LARGEST_USERS, Blanket
from muhat.privacy.gaussian_curve import context
from muhat.privacy.rounding import LEAST_FLOAT, float_at_least
from muhat.privacy.shuffling import LARGEST_EPSILON, shuffled

Share = float | Fraction

LEAST_DELTA = 1e-80
"""Below it the sums would leave the range of floats, and only the closed form is used."""

_MARGIN = Decimal("1e-30")  # covers a few decimal operations with 55 digits
_TAIL = 1e-9  # of δ, spent on what is left out of the sums
_ROUNDING = 1 - 2.0**-50  # δ is a decimal, and the bound on it a binary float
_TOLERANCE = 1e-7
_LEAST_SHARE = 1e-100  # products with it stay within the range of floats


def amplified(epsilon: float, users: int, delta: float, *, share: Share | None = None) -> ApproxDP:
    """What the shuffled messages of n users promise together, each from an ε₀-DP randomiser.

    Every user applies the same randomiser to one record and sends one message; the messages are
    seen in random order. They are (ε, δ)-DP about replacing one record, for the least ε that is
    known: of the worst pair of `share`, of the closed form, and ε₀ itself, rounded up.

    Args:
        epsilon: ε₀ of the randomiser, whatever the record.
        users: n, those who follow the protocol; others neither hide nor reveal anybody.
        delta: δ of the result.
        share: κ, for a randomiser that makes this share of all outcomes more likely than the rest,
            by the same factor of at most e^ε₀ for every record: Fraction(k, M) for a choice of k
            of M outcomes, Fraction(1, M) for randomised response, the part of the sphere that the
            cap of PrivUnit covers. A larger one is safe. None stands for any randomiser; no share
            is worse than 1/2, which is what it comes to.

    >>> amplified(1.0, 10_000, 1e-6).epsilon < 0.044
    True
    >>> amplified(1.0, 10_000, 1e-6, share=Fraction(1, 100)).epsilon < 0.008
    True
    """
    loss = _check.positive("epsilon", epsilon)
    n = _check.count("users", users)
    leak = _check.probability("delta", delta)
    part = _share(share)
    best = min(loss, _closed_form(loss, n, leak))
    if leak >= LEAST_DELTA and loss <= LARGEST_EPSILON:
        excess = _excess(loss)
        worst = Blanket(excess, min(n, LARGEST_USERS), part, _TAIL * leak)
        # Normal tails in place of the sums; √ln only, so that it is rarely too small.
        guess = 2 * math.sqrt(-math.log(leak) / n * min(1 / (2 + excess), part))
        best = min(best, _least_epsilon(worst, excess, leak, guess))
    return ApproxDP(epsilon=best, delta=leak)


def local_epsilon(
    privacy: ApproxDP,
    users: int,
    *,
    share: Share | Callable[[float], Share] | None = None,
) -> float:
    """The largest ε₀ for which the shuffled messages of n users keep the promise, rounded down.

    Args:
        privacy: the promise about replacing one record.
        users: n, those who follow the protocol.
        share: that of `amplified`, or a function that gives it for ε₀. If it jumps, the answer
            keeps the promise but a larger one might too.

    Returns:
        ε₀, between `privacy.epsilon` and 40.

    >>> local_epsilon(ApproxDP(epsilon=0.5, delta=1e-6), 10_000) > 4
    True
    """
    if not isinstance(privacy, ApproxDP):
        raise InvalidInput("must be ApproxDP", parameter="privacy", value=type(privacy).__name__)
    n = _check.count("users", users)

    def slack(loss: float) -> float:
        part = _share(share(loss) if callable(share) else share)
        if loss <= privacy.epsilon or _closed_form(loss, n, privacy.delta) <= privacy.epsilon:
            return math.inf
        if privacy.delta < LEAST_DELTA:
            return -math.inf
        excess = _excess(loss)
        worst = Blanket(excess, min(n, LARGEST_USERS), part, _TAIL * privacy.delta)
        return _slack(worst, _ratio(privacy.epsilon, excess), privacy.delta)

    low = privacy.epsilon
    if low >= LARGEST_EPSILON:
        return low
    worth = slack(low)
    high = min(2 * low, LARGEST_EPSILON)
    while (more := slack(high)) >= 0:
        if high >= LARGEST_EPSILON:
            return high
        low, high, worth = high, min(2 * high, LARGEST_EPSILON), more
    return _crossing(slack, low, high, worth)


def _least_epsilon(worst: Blanket, excess: float, delta: float, guess: float) -> float:
    """The least ε found for which the worst pair is (ε, δ)-close; `guess` is about its ratio."""

    def slack(ratio: float) -> float:
        return _slack(worst, ratio, delta)

    if slack(0.0) >= 0:
        return LEAST_FLOAT
    worth = slack(guess)
    good = _crossing(slack, *((guess, 0.0, worth) if worth >= 0 else (1.0, guess, math.inf)))
    loss = Decimal(good) * Decimal(excess)
    with decimal.localcontext(context(small=loss)):
        return float_at_least((1 + loss).ln() * (1 + _MARGIN))


def _slack(worst: Blanket, ratio: float, delta: float) -> float:
    """At least 0 if the pair is (ln(1 + ratio·excess), δ)-close; about linear in the ratio."""
    if ratio >= 1:
        return math.inf
    found = worst.divergence(ratio)
    if found <= delta * _ROUNDING:
        return math.sqrt(-math.log(found)) - math.sqrt(-math.log(delta))
    return min(-LEAST_FLOAT, math.sqrt(max(0.0, -math.log(found))) - math.sqrt(-math.log(delta)))


def _crossing(slack: Callable[[float], float], good: float, bad: float, worth: float) -> float:
    """A point where the slack is at least 0, verified, next to one where it is not.

    `worth` is the slack at `good`. False position (Illinois) where both ends have a finite slack,
    halving elsewhere, and never so near to an end that it could not be the other one.
    """
    lack, before = slack(bad), 0
    while abs(good - bad) > _TOLERANCE * abs(good):
        part = worth / (worth - lack) if math.isfinite(worth) and math.isfinite(lack) else 0.5
        nearest = min(_TOLERANCE * abs(good) / (2 * abs(good - bad)), 0.25)
        point = good + min(max(part, nearest), 1 - nearest) * (bad - good)
        if point in (good, bad):  # there is no float between them
            break
        value = slack(point)
        if value >= 0:
            good, worth, now = point, value, 1
            lack = lack / 2 if before == now else lack
        else:
            bad, lack, now = point, value, -1
            worth = worth / 2 if before == now else worth
        before = now
    return good


def _closed_form(loss: float, users: int, delta: float) -> float:
    """The ε of Feldman, McMillan and Talwar, or ∞ where their theorem says nothing."""
    try:
        return shuffled(loss, 0.0, users, delta).epsilon
    except InvalidInput:
        return math.inf


def _excess(loss: float) -> float:
    """A float that is not below e^ε − 1."""
    exact = Decimal(repr(loss))
    with decimal.localcontext(context(small=exact)):
        number = float(exact.exp() - 1)
    return math.nextafter(number, math.inf)


def _ratio(central: float, excess: float) -> float:
    """A float r ≥ 0 with r·excess ≤ e^ε − 1."""
    if central == 0:
        return 0.0
    exact = Decimal(repr(central))
    with decimal.localcontext(context(small=exact)):
        number = float((exact.exp() - 1) / Decimal(excess))
    return math.nextafter(number, 0.0)


def _share(value: Share | None) -> float:
    """κ as a float that is not below it, at most 1/2."""
    if value is None:
        return 0.5
    exact = value if isinstance(value, Fraction) else Fraction(repr(_check.real("share", value)))
    if not 0 < exact <= 1:
        raise InvalidInput(
            "must be greater than 0 and at most 1",
            parameter="share",
            value=f"{float(exact):g}",
            hint="It is the part of all outcomes that a record makes more likely.",
        )
    return min(0.5, max(_LEAST_SHARE, math.nextafter(float(exact), 1.0)))
