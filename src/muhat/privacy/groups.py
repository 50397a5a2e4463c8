"""What a promise about one step between datasets says about several steps in a row.

A person with several records, or a record that is replaced instead of added or removed, is a few
steps away. The proofs are in docs/proofs/conversions.md, section 9.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from math import inf

from muhat import _check
from muhat.privacy.gaussian_curve import context
from muhat.privacy.promise import Privacy
from muhat.privacy.rounding import MARGIN, float_at_least


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
