"""What a message about ranges promises, and the largest ε that keeps a promise.

The payload alone is ε-DP whatever the nonce is. Promises that are averages, ρ-zCDP, also gain
from the nonce: it is uniform and drawn before the record is looked at, and often it gives two
records the same bucket, or an answer that holds both or neither. If the answer tells any two
records apart with probability at most τ, then it is as hard to tell them apart as with randomised
response that is carried out with probability τ only, which is

    τ·ε·tanh(ε/2)-zCDP,    if (1 − τ)·cosh(ε/2) ≤ τ·R(ε/2),
                           R(z) = (sinh z·cosh z − z)/(z·cosh z − sinh z) ≥ 2,

and a smaller τ may be counted as the least one that meets the condition, at most about 1/3 for
small ε. One bit on h levels has τ = ½(1 + the chance of level 1), so that ρ-zCDP allows almost
twice the ε² that ε·tanh(ε/2) ≤ ρ does: half the variance. docs/proofs/local-ranges.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

from muhat.privacy import Privacy, as_typed, pure_within
from muhat.privacy.conversions import pure_rho
from muhat.protocols.encodings.range_levels import LevelMix
from muhat.protocols.randomizers.frequency import SubsetResponse

_LARGE = 50.0
"""Above this ε every τ counts as 1."""

_MARGIN = 1 + 1e-9
"""Far more than the rounding of two sums of positive terms."""


def exposure(mix: LevelMix, response: SubsetResponse) -> Fraction:
    """τ: the chance that an answer tells the two records apart that it tells best."""
    apart = max(mix.apart(level) for level in range(1, mix.levels + 1))
    return apart * response.exposure


def concentrated(epsilon: float, tau: Fraction) -> Fraction:
    """A ρ for which the mixture of randomised response (chance τ) and silence is ρ-zCDP.

    >>> [f"{float(concentrated(1.0, tau)):.6f}" for tau in (Fraction(1), Fraction(1, 2))]
    ['0.462117', '0.231059']
    """
    counted = min(Fraction(1), max(tau, Fraction(_least_tau(epsilon))))
    return counted * as_typed(pure_rho(epsilon))


def kept(promise: Privacy, mix: LevelMix, response: SubsetResponse) -> bool:
    """Whether messages keep the promise; in doubt, no."""
    rho = promise.rho_within
    if rho is not None and concentrated(response.epsilon, exposure(mix, response)) <= rho:
        return True
    return response.epsilon <= pure_within(promise)


def calibrated(promise: Privacy, mix: LevelMix, chosen: int) -> SubsetResponse:
    """The answers with the largest ε, to twelve digits, that keep the promise."""
    least = SubsetResponse(mix.bits, chosen, pure_within(promise))
    if promise.rho_within is None:
        return least
    low, high = least.epsilon, 2 * least.epsilon
    while kept(promise, mix, SubsetResponse(mix.bits, chosen, high)):
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if kept(promise, mix, SubsetResponse(mix.bits, chosen, middle)):
            low = middle
        else:
            high = middle
    return SubsetResponse(mix.bits, chosen, low)


def _least_tau(epsilon: float) -> float:
    """The least τ that meets the condition above, cosh z/(cosh z + R(z)), rounded up."""
    if epsilon > _LARGE:
        return 1.0
    z = epsilon / 2
    term, above, below = z, 0.0, 0.0
    # R = Σ 4^k·z^(2k+1)/(2k+1)! over Σ 2k·z^(2k+1)/(2k+1)!, without any difference.
    for k in range(1, 200):
        term *= z * z / (2 * k * (2 * k + 1))
        above += 4.0**k * term
        below += 2 * k * term
    hyperbolic = math.cosh(z)
    return _MARGIN * hyperbolic / (hyperbolic + above / below)
