"""What shuffling adds to the privacy of mechanisms that each see one block of records.

Kamath, Mouzakis, Regehr, Singhal, Steinke and Ullman, "A Bias-Accuracy-Privacy Trilemma for
Statistical Estimation", 2024, Theorem 2.7, which carries Theorem 3.8 of Feldman, McMillan and
Talwar, "Hiding Among the Clones", FOCS 2021, from one record to blocks of records.
docs/proofs/shuffling.md.
"""

from __future__ import annotations

import decimal
from decimal import Decimal

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.approximate import ApproxDP
from muhat.privacy.gaussian_curve import context
from muhat.privacy.rounding import MARGIN, float_at_least

LARGEST_EPSILON = 40.0
"""Beyond it no number of blocks is enough: 16·e^ε·ln 2 is above the largest count."""


def shuffled(epsilon: float, delta: float, blocks: int, extra_delta: float) -> ApproxDP:
    """What m mechanisms promise together, each (ε₀, δ₀)-DP, on m blocks of shuffled records.

    The records stand in a table of m columns, the blocks; every row is permuted by a uniform
    permutation of its own, and the i-th mechanism sees the i-th column and what was published
    before. For δ₁ in [2·exp(−m/(16·e^ε₀)), 1] the outputs together are (ε₁, δ)-DP about replacing
    one record,

        ε₁ = ln(1 + 8·(e^ε₀ − 1)/(e^ε₀ + 1)·(√(e^ε₀·ln(4/δ₁)/m) + e^ε₀/m)),
        δ = δ₁ + (e^ε₁ + 1)·(1 + e^{−ε₀}/2)·m·δ₀,

    both rounded up. Without shuffling they are (ε₀, δ₀)-DP, which for few blocks is better.

    Args:
        epsilon: ε₀ of each mechanism.
        delta: δ₀ of each mechanism, 0 for pure privacy.
        blocks: m.
        extra_delta: δ₁; a larger one gives a smaller ε₁.

    >>> shuffled(1.0, 0.0, blocks=10_000, extra_delta=1e-6).epsilon
    0.21402565193083783
    """
    loss = _check.positive("epsilon", epsilon)
    leak = _check.real("delta", delta)
    if not 0 <= leak < 1:
        raise InvalidInput("must be at least 0 and below 1", parameter="delta", value=f"{leak:g}")
    m = _check.count("blocks", blocks)
    extra = Decimal(repr(_check.probability("extra_delta", extra_delta)))
    if loss > LARGEST_EPSILON:
        raise InvalidInput(
            f"must be at most {LARGEST_EPSILON:g}",
            parameter="epsilon",
            value=f"{loss:g}",
            hint="Beyond it there are never enough blocks.",
        )
    local = Decimal(repr(loss))
    # e^ε₀ − 1 and ln(1 + z) lose as many digits as ε₀ has zeros behind the point.
    with decimal.localcontext(context(small=local)):
        growth = local.exp()
        _require_range(m, growth, extra)
        spread = (growth * (4 / extra).ln() / m).sqrt() + growth / m
        excess = 8 * (growth - 1) / (growth + 1) * spread
        # δ grows with ε₁, so it is computed from the ε₁ that is returned.
        first = float_at_least((1 + excess).ln() * MARGIN)
        together = Decimal(repr(first)).exp() + 1
        total = extra + together * (1 + 1 / (2 * growth)) * m * Decimal(repr(leak))
        second = float_at_least(total * MARGIN if leak else total)
    if second >= 1:
        raise InvalidInput(
            f"extra_delta + (e^ε₁ + 1)(1 + e^-ε₀/2)·blocks·delta must be below 1; got {second:g}. "
            "Nothing is promised then: use a smaller delta or fewer blocks."
        )
    return ApproxDP(epsilon=first, delta=second)


def _require_range(m: int, growth: Decimal, extra: Decimal) -> None:
    """δ₁ ≥ 2·exp(−m/(16·e^ε₀)), that is m ≥ 16·e^ε₀·ln(2/δ₁)."""
    needed = 16 * growth * (2 / extra).ln()
    if needed * MARGIN > m:
        least = int(needed) + 1
        raise InvalidInput(
            f"must be at least 16·e^epsilon·ln(2/extra_delta), which is {least}",
            parameter="blocks",
            value=str(m),
            hint=(
                "Fewer blocks hide nobody: use more of them, a smaller epsilon or a larger "
                "extra_delta."
            ),
        )
