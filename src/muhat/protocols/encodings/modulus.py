"""How large a modulus must be for a sum to be read from what is left of it.

A sum of n numbers from low to high with noise that stays within ±W is known from its remainder
modulo q if q ≥ n·(high − low) + 2W + 1. W is such that noise leaves it with a chance of at most
`WRAP` over all sums together: a wrong sum then, which is a matter of error and not of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from muhat.errors import InvalidInput

WRAP = 2.0**-40
"""The chance that any of the sums is read wrongly."""

MOST_BITS = 62
"""So that sums of fragments and noise are exact in 64 bits."""

_MARGIN = 1 + 2.0**-30
_STEPS = np.arange(1, 256) / 256


def gaussian_reach(variance: float, numbers: int) -> int:
    """W for sums of discrete Gaussian numbers: no heavier tails than normal ones.

    P(|Z| > W) ≤ 2·exp(−W²/(2·variance)), as E e^{tZ} ≤ e^{t²·variance/2}.
    """
    return math.ceil(math.sqrt(2 * variance * math.log(2 * numbers / WRAP)) * _MARGIN)


def laplace_reach(rate: float, copies: float, numbers: int) -> int:
    """W for sums of `copies` discrete Laplace numbers; copies need not be whole.

    Chernoff: P(|Z| > W) ≤ 2·e^{−tW}·M(t)^copies for 0 < t < rate, with
    M(t) = (1 − a)²/((1 − a·e^t)(1 − a·e^−t)), a = e^−rate.
    """
    t = rate * _STEPS
    moments = 2 * np.log(-np.expm1(-rate))
    moments = moments - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
    reach = (copies * moments + math.log(2 * numbers / WRAP)) / t
    return math.ceil(float(reach.min()) * _MARGIN) + 1


def modulus_bits(people: int, low: int, high: int, reach: int) -> int:
    """The least k for which q = 2^k is large enough."""
    return (people * (high - low) + 2 * reach).bit_length()


def check_modulus(bits: int, people: int, low: int, high: int, reach: int) -> None:
    """Refuse a sum that could not be read."""
    needed = modulus_bits(people, low, high, reach)
    if bits < needed:
        raise InvalidInput(
            f"the modulus 2^{bits} is too small for {people} people: their sum and its noise need "
            f"2^{needed}. Plan for as many people as there can be."
        )


def signed(
    remainders: Sequence[int] | NDArray[np.uint64], bits: int, people: int, low: int, high: int
) -> list[int]:
    """The sums that have these remainders, as far as possible from both ends of their range.

    >>> signed([3, 250], 8, people=2, low=-5, high=5)
    [3, -6]
    """
    # The range is centred: what q has to spare is left for noise, the same on both sides.
    start = (people * (low + high) - (1 << bits)) // 2 + 1
    return [start + (int(rest) - start) % (1 << bits) for rest in remainders]
