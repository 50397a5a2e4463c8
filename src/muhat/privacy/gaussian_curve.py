"""The curve of the Gaussian mechanism, δ(μ, ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

With a = μ/2 − ε/μ and the Mills ratio R(x) = (1 − Φ(x))/φ(x) the curve is

    δ = φ(a)·(R(−a) − R(μ − a)),    ∂δ/∂μ = φ(a),    ∂δ/∂ε = −φ(a)·R(μ − a),

because e^ε φ(−μ/2 − ε/μ) = φ(a). Everything is computed in decimals with so many digits that
what the subtraction cancels does not matter: the relative error of δ is far below 1e-38 for all
floats μ and ε. Roots come back as floats on the safe side, each checked by one evaluation of
the curve at the very decimal that is returned; the solver is not trusted.

Reference: Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018.
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Callable
from decimal import Decimal

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.rounding import LEAST_FLOAT, float_at_least, float_at_most

_ONE = Decimal(1)
_DIGITS = 55
_ERROR = Decimal("1e-38")  # of δ, relative; the arithmetic carries 17 digits more
RESIDUAL = Decimal("1e-36")  # of ln δ, where the solver stops


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The least δ for which every μ-GDP mechanism is (ε, δ)-DP, rounded up; ε ≥ 0.

    >>> f"{gaussian_delta(1.0, 1.0):.6f}"
    '0.126937'
    """
    mean, loss = _decimal(_check.positive("mu", mu)), _nonnegative("epsilon", epsilon)
    with decimal.localcontext(context()):
        return min(1.0, max(LEAST_FLOAT, float_at_least(_ceiling(mean, loss))))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least ε ≥ 0 for which every μ-GDP mechanism is (ε, δ)-DP, rounded up.

    >>> f"{gaussian_epsilon(1.0, 1e-6):.6f}"
    '4.886554'
    """
    mean = _decimal(_check.positive("mu", mu))
    target = _decimal(_check.probability("delta", delta))

    def evaluate(loss: Decimal) -> tuple[Decimal, Decimal]:
        value, density, ratio = _curve(mean, loss)
        return (value / target).ln(), -density * ratio / value

    with decimal.localcontext(context(large=mean)):
        if _ceiling(mean, Decimal(0)) <= target:
            return 0.0
        # δ ≤ Φ(a), so the root has an a above `_least_argument` and lies below this end.
        end = mean * (mean / 2 - _least_argument(target))
        root, slope = monotone_root(evaluate, Decimal(0), end, start=end, rises=False)
        margin = 2 * RESIDUAL / -slope
        while True:
            number = float_at_least(root + margin)
            if _ceiling(mean, _decimal(number)) <= target:
                return number
            margin *= 2


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ for which every μ-GDP mechanism is (ε, δ)-DP, rounded down; ε ≥ 0.

    The Gaussian mechanism of sensitivity Δ then needs the noise scale Δ/μ.

    >>> f"{1 / gaussian_mu(1.0, 1e-6):.4f}"
    '4.2247'
    """
    loss = _nonnegative("epsilon", epsilon)
    target = _decimal(_check.probability("delta", delta))

    def evaluate(logarithm: Decimal) -> tuple[Decimal, Decimal]:
        mean = logarithm.exp()
        value, density, _ = _curve(mean, loss)
        return (value / target).ln(), mean * density / value

    with decimal.localcontext(context(large=loss)):
        # δ ≤ Φ(a) and δ ≤ μφ(0) bound the root from below; a = 60 is above every float δ < 1.
        low = max(_mean_at(_least_argument(target), loss), target * (2 * _pi()).sqrt()).ln()
        high = _mean_at(Decimal(60), loss).ln()
        root, slope = monotone_root(evaluate, low, high, start=low, rises=True)
        margin = 2 * RESIDUAL / slope
        while True:
            number = float_at_most((root - margin).exp())
            if _ceiling(_decimal(number), loss) <= target:
                return number
            margin *= 2


def pure_mu(epsilon: float) -> float:
    """The least μ for which every ε-DP mechanism is μ-GDP, 2Φ⁻¹(e^ε/(1 + e^ε)), rounded up.

    Solves 1 − Φ(m) = 1/(1 + e^ε) for m = μ/2 in logarithms: ln(1 − Φ) is concave, so Newton's
    method descends to the root from any start above it, and 1 − Φ(m) ≤ e^{−m²/2}/2 gives one.

    >>> f"{pure_mu(1.0):.6f}"
    '1.232035'
    """
    loss = _decimal(_check.positive("epsilon", epsilon))
    with decimal.localcontext(context(small=loss, large=loss)):
        level = loss + (1 + (-loss).exp()).ln()
        half = (2 * (level - Decimal(2).ln())).sqrt()
        while True:
            ratio = _mills(half)
            step = ratio * (ratio.ln() - half * half / 2 - (2 * _pi()).ln() / 2 + level)
            half += step
            if abs(step) <= half * Decimal("1e-30"):
                return float_at_least(2 * half * (1 + Decimal("1e-28")))


def context(*, small: Decimal = _ONE, large: Decimal = _ONE) -> decimal.Context:
    """A context of our own (the caller's may be anything), with digits for these magnitudes.

    R(−a) − R(μ − a) cancels about log₁₀(1/μ) + log₁₀|a| digits, and φ(a) multiplies the relative
    error of a by a²: hence the decimal exponent of what is small and thrice that of what is large.
    """
    return decimal.Context(
        prec=_DIGITS + max(0, -small.adjusted()) + 3 * max(0, large.adjusted()),
        Emax=decimal.MAX_EMAX,
        Emin=decimal.MIN_EMIN,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )


def _curve(mean: Decimal, loss: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """δ(μ, ε), φ(a) and R(μ − a)."""
    with decimal.localcontext(context(small=mean, large=max(mean, loss / mean))):
        a = mean / 2 - loss / mean
        if a > 60:
            return Decimal(1), Decimal(0), Decimal(0)  # 1 − δ ≤ 2Φ(−60) < 1e-780
        density = (-a * a / 2).exp() / (2 * _pi()).sqrt()
        ratio = _mills(mean - a)
        return density * (_mills(-a) - ratio), density, ratio


def _ceiling(mean: Decimal, loss: Decimal) -> Decimal:
    """A proved upper bound of δ(μ, ε)."""
    return _curve(mean, loss)[0] * (1 + _ERROR)


def _mills(x: Decimal) -> Decimal:
    """R(x) = (1 − Φ(x))/φ(x) = ∫₀^∞ exp(−xt − t²/2) dt, to the digits of the context."""
    if x < 0:
        return (2 * _pi()).sqrt() * (x * x / 2).exp() - _mills(-x)
    unit = Decimal(10) ** -decimal.getcontext().prec
    if x < 6:
        # √(π/2)·e^{x²/2} − (x + x³/3 + x⁵/(3·5) + …), of which 10 digits cancel at x = 6.
        with decimal.localcontext() as wider:
            wider.prec += 12
            unit = unit.scaleb(-12)
            term = total = x
            odd = 1
            while term > unit * total:
                odd += 2
                term = term * x * x / odd
                total += term
            return (_pi() / 2).sqrt() * (x * x / 2).exp() - total
    # Laplace's continued fraction 1/(x + 1/(x + 2/(x + …))): neighbouring convergents enclose R.
    top_before, top, bottom_before, bottom = Decimal(0), Decimal(1), Decimal(1), x
    value, step = top / bottom, 0
    while True:
        step += 1
        top_before, top = top, x * top + step * top_before
        bottom_before, bottom = bottom, x * bottom + step * bottom_before
        before, value = value, top / bottom
        if abs(before - value) <= unit * value:
            return value


def monotone_root(
    evaluate: Callable[[Decimal], tuple[Decimal, Decimal]],
    low: Decimal,
    high: Decimal,
    *,
    start: Decimal,
    rises: bool,
) -> tuple[Decimal, Decimal]:
    """A root of a monotone function, from its value and slope, and the slope there.

    Newton's method inside a shrinking bracket; best started on the side from which the function
    is bent away (concave: where it is negative).
    """
    point = start
    # Newton needs about ten steps, halving alone about two hundred; who asks checks the answer.
    for _ in range(300):
        value, slope = evaluate(point)
        if abs(value) <= RESIDUAL:
            break
        if (value > 0) == rises:
            high = point
        else:
            low = point
        step = point - value / slope if slope else low
        point = step if low < step < high else (low + high) / 2
    return point, slope


def _least_argument(delta: Decimal) -> Decimal:
    """A number below Φ⁻¹(δ), from Φ(a) ≤ e^{−a²/2}/2 for a ≤ 0."""
    return -(-2 * (2 * delta).ln()).sqrt() if 2 * delta < 1 else Decimal(0)


def _mean_at(a: Decimal, loss: Decimal) -> Decimal:
    """The μ ≥ 0 with μ/2 − ε/μ = a, without cancellation."""
    size = abs(a) + (a * a + 2 * loss).sqrt()
    return size if a >= 0 else 2 * loss / size


def _decimal(value: float) -> Decimal:
    return Decimal(repr(value))


def _nonnegative(name: str, value: float) -> Decimal:
    number = _check.real(name, value)
    if number < 0:
        raise InvalidInput("must be at least 0", parameter=name, value=f"{number:g}")
    return _decimal(number)


def _pi() -> Decimal:
    return _pi_to(decimal.getcontext().prec)


@functools.lru_cache(maxsize=64)
def _pi_to(digits: int) -> Decimal:
    """π by Machin's formula, 16 arctan(1/5) − 4 arctan(1/239), in integers."""
    unit: int = 10 ** (digits + 10)

    def arctan_inverse(n: int) -> int:
        power = total = unit // n
        odd, sign = 1, 1
        while power:
            power //= n * n
            odd, sign = odd + 2, -sign
            total += sign * (power // odd)
        return total

    return Decimal(f"{16 * arctan_inverse(5) - 4 * arctan_inverse(239)}e-{digits + 10}")
