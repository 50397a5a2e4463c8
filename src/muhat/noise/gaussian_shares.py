"""How far a sum of discrete Gaussian shares is from one discrete Gaussian number.

Whole numbers have no stable Gaussian law: the sum of h independent N_Z(0, s²) is not quite
N_Z(0, h·s²). It is so close, though, that the promise of N_Z(0, h·s²) holds up to a factor that
a careful sum of theta series bounds at every point. Proof: docs/proofs/shared-noise.md.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.rounding import MARGIN, float_at_least

LEAST_SHARE_VARIANCE = Fraction(1, 8)
"""Below it the first theta series is no longer safely less than 1."""

_DIGITS = 50
_TWICE_PI_SQUARE = Decimal("19.7392088021787172376689819997523022706")  # rounded down
_FARTHEST = Decimal(2000)  # e^−2000 is far below every float
_FINE = 64


def closeness(share_variance: Fraction, shares: int) -> float:
    """τ such that the sum of h shares is within e^{±τ} of one N_Z(0, h·s²) at every integer.

    With s² = share_variance, h = shares and η(v) = 2Σ_{j≥1} e^{−2π²·v·j²},

        τ = h·η(s²) + Σ_{k=1}^{h−1} η_k/(1 − η_k),   η_k = η(s²·k/(k + 1)),

    rounded up. The law itself is P(x) ∝ exp(−x²/(2s²)), as `discrete_gaussian` draws it. Among d
    independent coordinates the factor is e^{±dτ}: if N_Z(0, h·s²) is (ε, δ)-private, the sum of
    shares is (ε + 2dτ, e^{dτ}δ)-private.

    >>> closeness(Fraction(4), 1000) < 1e-16, closeness(Fraction(1), 1)
    (True, 0.0)
    """
    if not share_variance >= LEAST_SHARE_VARIANCE:
        raise InvalidInput("share_variance must be at least 1/8: smaller shares are not bounded.")
    shares = _check.count("shares", shares)
    if shares == 1:
        return 0.0
    context = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_HALF_EVEN, Emin=-99_999)
    with decimal.localcontext(context):
        exact = Fraction(share_variance)
        variance = Decimal(exact.numerator) / exact.denominator
        total = shares * _ripple(variance)
        k = 1
        while k < shares:
            # η_k falls with k, so the first of a few neighbours stands for all of them.
            alike = min(max(1, k // _FINE), shares - k)
            ripple = _ripple(variance * k / (k + 1))
            total += alike * ripple / (1 - ripple)
            k += alike
        # It covers the roundings of the few operations on each of about 1,500 terms too.
        return float_at_least(total * MARGIN)


def _ripple(variance: Decimal) -> Decimal:
    """η(variance), rounded up: with r = e^{−2π²·variance}, at most 2r/(1 − r³) as j² ≥ 3j − 2."""
    ratio = (-min(_TWICE_PI_SQUARE * variance, _FARTHEST)).exp()
    return 2 * ratio / (1 - ratio**3)
