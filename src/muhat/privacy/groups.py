"""What a promise about one step between datasets says about several steps in a row.

A person with several records, or a record that is replaced instead of added or removed, is a few
steps away. The proofs are in docs/proofs/conversions.md, section 9.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from math import inf

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.gaussian_curve import context
from muhat.privacy.promises import GDP, ZCDP, ApproxDP, Privacy, PureDP
from muhat.privacy.rounding import MARGIN, as_typed, float_at_least


def for_groups(promise: Privacy, size: int) -> Privacy:
    """What holds for datasets that are `size` steps apart, rounded up. Never done silently.

    kε; (kε, δ·(e^{kε} − 1)/(e^ε − 1)); k²ρ; kμ.

    >>> for_groups(ZCDP(rho=0.1), 2), for_groups(PureDP(epsilon=0.1), 3)
    (ZCDP(rho=0.4), PureDP(epsilon=0.3))
    """
    size = _check.count("the size of a group", size)
    if size == 1:
        return promise
    if isinstance(promise, GDP):
        return GDP(mu=float_at_least(size * as_typed(promise.mu)))
    if isinstance(promise, ZCDP):
        return ZCDP(rho=float_at_least(size**2 * as_typed(promise.rho)))
    epsilon = float_at_least(size * as_typed(promise.epsilon))
    if isinstance(promise, PureDP):
        return PureDP(epsilon=epsilon)
    delta = group_delta(promise.epsilon, promise.delta, size)
    if delta >= 1:
        raise InvalidInput(
            f"{promise.describe()} says nothing about datasets {size} steps apart: their delta is "
            "1 or more. Use a smaller epsilon or delta."
        )
    return ApproxDP(epsilon=epsilon, delta=delta)


def group_delta(epsilon: float, delta: float, size: int) -> float:
    """δ·(1 + e^ε + … + e^{(k−1)ε}), rounded up; infinite where it is certainly above 1."""
    loss, probability = Decimal(repr(epsilon)), Decimal(repr(delta))
    if loss * (size - 1) > 1000:
        return inf  # e^1000 is above 1/δ for every float δ
    # Both e^{kε} − 1 and e^ε − 1 lose the digits of ε.
    with decimal.localcontext(context(small=loss, large=loss * size)):
        steps = ((loss * size).exp() - 1) / (loss.exp() - 1)
        return float_at_least(steps * probability * MARGIN)
