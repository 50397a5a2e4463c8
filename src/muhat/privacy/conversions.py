"""From one promise to another, by proved implications only; each proof is in docs/proofs.

Every result is rounded to the safe side: the float that comes back, read as the decimal it
prints as, is never below the exact value.
"""

from __future__ import annotations

import decimal
from decimal import Decimal

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.gaussian_curve import (
    context,
    gaussian_delta,
    gaussian_epsilon,
    monotone_root,
    pure_mu,
)
from muhat.privacy.promises import GDP, KINDS, ZCDP, ApproxDP, Privacy, PureDP
from muhat.privacy.rounding import LEAST_FLOAT, MARGIN, float_at_least

_WHY_NOT = {
    ("approx", "pure"): "an event of probability delta may reveal anything, whatever epsilon is. "
    "Ask the mechanism for PureDP from the start",
    ("approx", "zcdp"): "an event of probability delta may reveal anything, so no rho bounds the "
    "moments of the loss. Ask the mechanism for ZCDP and convert that to ApproxDP",
    ("approx", "gdp"): "one point (epsilon, delta) does not bound the whole trade-off curve. "
    "Ask the mechanism for GDP and convert that to ApproxDP",
    ("zcdp", "pure"): "zCDP bounds the moments of the privacy loss, not the loss itself. "
    "Use to('approx', delta=...)",
    ("zcdp", "gdp"): "zCDP allows mechanisms that are easier to tell apart than Gaussians with "
    "mu = sqrt(2 rho). Ask the mechanism for GDP from the start",
    ("gdp", "pure"): "the privacy loss of Gaussian noise is not bounded. "
    "Use to('approx', delta=...)",
}


def convert(promise: Privacy, kind: str, *, delta: float | None, epsilon: float | None) -> Privacy:
    """The promise of that kind which every mechanism that keeps `promise` keeps too."""
    _check.one_of("kind", kind, KINDS)
    if kind == "approx":
        return _to_approx(promise, delta=delta, epsilon=epsilon)
    if delta is not None or epsilon is not None:
        raise InvalidInput(f"delta and epsilon belong to kind 'approx'; got them with {kind!r}.")
    if promise.kind == kind:
        return promise
    if isinstance(promise, PureDP):
        if kind == "zcdp":
            return ZCDP(rho=pure_rho(promise.epsilon))
        return GDP(mu=pure_mu(promise.epsilon))
    if isinstance(promise, GDP) and kind == "zcdp":
        return ZCDP(rho=float_at_least(promise.amounts[0] / 2))
    raise InvalidInput(
        f"{promise.describe()} implies no promise of kind {kind!r}: {_WHY_NOT[promise.kind, kind]}."
    )


def _to_approx(promise: Privacy, *, delta: float | None, epsilon: float | None) -> ApproxDP:
    if isinstance(promise, ApproxDP):
        return _approx_again(promise, delta=delta, epsilon=epsilon)
    if (delta is None) == (epsilon is None):
        raise InvalidInput(
            "exactly one of delta and epsilon must be given for kind 'approx'; the other one "
            "follows. Example: to('approx', delta=1e-6)."
        )
    if delta is not None:
        delta = _check.probability("delta", delta)
        if isinstance(promise, PureDP):
            return ApproxDP(epsilon=promise.epsilon, delta=delta)
        least = (
            gaussian_epsilon(promise.mu, delta)
            if isinstance(promise, GDP)
            else zcdp_epsilon(promise.rho, delta)
        )
        return ApproxDP(epsilon=max(least, LEAST_FLOAT), delta=delta)
    epsilon = _check.positive("epsilon", epsilon)
    if isinstance(promise, PureDP):
        least = pure_delta(promise.epsilon, epsilon)
    elif isinstance(promise, GDP):
        least = gaussian_delta(promise.mu, epsilon)
    else:
        least = zcdp_delta(promise.rho, epsilon)
    if least >= 1:
        raise InvalidInput(
            f"epsilon must be larger for {promise.describe()} to say anything: at {epsilon:g} "
            "delta would be 1 to the last digit."
        )
    return ApproxDP(epsilon=epsilon, delta=max(least, LEAST_FLOAT))


def _approx_again(promise: ApproxDP, *, delta: float | None, epsilon: float | None) -> ApproxDP:
    enough_delta = delta is None or _check.probability("delta", delta) >= promise.delta
    enough_epsilon = epsilon is None or _check.positive("epsilon", epsilon) >= promise.epsilon
    if enough_delta and enough_epsilon:
        return promise
    raise InvalidInput(
        f"{promise.describe()} is a promise at one point and implies none with a smaller epsilon "
        "or delta. Ask the mechanism for ZCDP or GDP, which cover every delta."
    )


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


def pure_within(promise: Privacy) -> float:
    """The largest ε whose pure promise implies this one, rounded down.

    >>> f"{pure_within(ZCDP(rho=0.5)):.6f}"
    '1.043627'
    """
    if isinstance(promise, PureDP):
        return promise.epsilon
    low, high = 0.0, 1.0
    while _is_implied(promise, high):
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _is_implied(promise, middle) else (low, middle)
    if low == 0:
        raise InvalidInput(f"no pure promise implies {promise.describe()} in floats.")
    return low


def _is_implied(promise: Privacy, epsilon: float) -> bool:
    """Whether every ε-DP mechanism keeps the promise; exact on the side of caution."""
    match promise:
        case ZCDP():
            return pure_rho(epsilon) <= promise.rho
        case GDP():
            return pure_mu(epsilon) <= promise.mu
        case ApproxDP():
            return pure_delta(epsilon, promise.epsilon) <= promise.delta
    raise AssertionError(promise)


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
