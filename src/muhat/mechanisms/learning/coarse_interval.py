"""The fullest bin of the real line, privately: where the records lie, without any bound on them.

    move the bins by a public random offset
    count the records of every occupied bin, add discrete Laplace noise to each count
    release the fullest of them, if its noisy count is above a threshold; else nothing

Bins that hold nobody take no part, so there may be infinitely many of them. A record by itself in
a bin passes the threshold with probability δ at most: that is all that distinguishes it. With the
random offset the middle of the bin found has a law that is symmetric about the centre of a
symmetric law of the records; without it (Karwa and Vadhan's histogram) it has not.

Kamath, Mouzakis, Regehr, Singhal, Steinke and Ullman (2024), Algorithm 1, with whole numbers and
the threshold that they allow; `faithful` keeps the paper's. Proof: docs/proofs/symmetric.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Integers
from muhat._plain import Key, Plain
from muhat.data.bin_counts import BinCounts, BinGrid
from muhat.errors import InvalidInput
from muhat.noise.discrete import LEAST_RATE, discrete_laplace, uniform_below

_DIGITS = 80
_SLACK = Decimal("1e-60")


@dataclass(frozen=True)
class CoarseInterval(
    Plain,
    keys=(
        "epsilon",
        "delta",
        "contributions",
        "grid",
        "offset",
        "threshold",
        Key("faithful", optional=True),
    ),
):
    """A private search for the fullest bin, (ε, δ)-differentially private under substitution.

    `width` is that of a bin, `contributions` the most records that a person has among those
    searched. A person with j < contributions of them loses (j·ε/contributions, δ) only. With
    `faithful` the threshold is the paper's, for one record a person.

    >>> promise = Fraction(1), Fraction(1, 10**6)
    >>> [CoarseInterval(*promise, 10.0, faithful=kept).threshold for kept in (False, True)]
    [27, 29]
    """

    epsilon: Fraction
    delta: Fraction
    width: float
    offset: bool = True
    contributions: int = 1
    faithful: bool = False

    def __post_init__(self) -> None:
        _check.count("contributions", self.contributions)
        if self.faithful and self.contributions != 1:
            raise InvalidInput("must be 1 where faithful is given", parameter="contributions")
        if not self.epsilon > 0 or not 0 < self.delta < 1:
            raise InvalidInput(
                "must be above 0, and delta strictly between 0 and 1", parameter="epsilon"
            )
        if self.rate < LEAST_RATE:
            raise InvalidInput("epsilon is too small: the noise on a count would not fit 64 bits.")
        object.__setattr__(self, "width", self.grid.width)

    @cached_property
    def grid(self) -> BinGrid:
        """The bins, before they are moved."""
        return BinGrid.of_width(self.width)

    @property
    def rate(self) -> Fraction:
        """ε/(2·contributions): a count's noise has P(k) ∝ e^{−rate·|k|}."""
        return self.epsilon / (2 * self.contributions)

    @cached_property
    def threshold(self) -> int:
        """t: a noisy count passes if it is above t.

        The least whole number for which the records of one person, alone in their bins, pass with
        probability at most δ, rounded up beyond doubt; or the paper's, which is never below it.
        """
        least = least_threshold(self.epsilon, self.delta, self.contributions)
        return max(least, printed_threshold(self.epsilon, self.delta)) if self.faithful else least

    def draw_shift(self) -> int:
        """A public random number: how many steps the bins are moved, uniform over a bin."""
        return uniform_below(self.grid.steps) if self.offset else self.grid.middle

    def leaders(self, counts: Integers, noise: Integers) -> NDArray[np.intp]:
        """The places of the largest noisy counts, all that are equal; none if they do not pass."""
        noisy = counts + noise
        if not len(noisy) or (most := noisy.max()) <= self.threshold:
            return np.empty(0, np.intp)
        return np.flatnonzero(noisy == most)

    def choose(self, bins: BinCounts) -> int | None:
        """The number of the fullest bin, with fresh noise; None if no bin passes.

        The bins are in ascending order, and equals are told apart by a fair draw: nothing but the
        counts decides, no order in which records came.
        """
        found = self.leaders(bins.counts, discrete_laplace(self.rate, len(bins.counts)))
        if not len(found):
            return None
        return int(bins.numbers[found[uniform_below(len(found))]])

    def center(self, number: int, shift: int) -> float:
        """The middle of a bin."""
        return float(self.grid.center(number, shift))


def least_threshold(epsilon: Fraction, delta: Fraction, contributions: int = 1) -> int:
    """max(k, ⌈(2k/ε)·ln(max(k, e^{ε(k−1)/(2k)})/(δ(1 + e^{−ε/(2k)})))⌉), k = contributions.

    Discrete Laplace noise has P(ξ ≥ r) = q^r/(1 + q), q = e^{−ε/(2k)}. Of k records, the ones of
    a single bin pass with probability q^{t+1−k}/(1 + q), those alone in k bins with at most
    k·q^t/(1 + q); every other way to lie is between these two.
    """
    k = contributions
    context = Context(prec=_DIGITS)
    rate = _decimal(epsilon / (2 * k), context)
    # Decimal's exp and ln are correctly rounded: 80 digits leave an error far below the slack.
    both_tails = context.add(Decimal(1), context.exp(context.minus(rate)))
    ways = max(context.ln(Decimal(k)), context.multiply(rate, Decimal(k - 1)))
    rare = context.ln(context.multiply(_decimal(delta, context), both_tails))
    exact = context.divide(context.subtract(ways, rare), rate)
    upper = context.add(exact, context.multiply(context.add(abs(exact), Decimal(1)), _SLACK))
    return max(k, int(upper.to_integral_value(ROUND_CEILING)))


def printed_threshold(epsilon: Fraction, delta: Fraction) -> int:
    """⌊2 + 2·ln(1/δ)/ε⌋: what a whole number exceeds exactly if it exceeds the paper's threshold.

    >>> printed_threshold(Fraction(1), Fraction(1, 10**6))
    29
    """
    context = Context(prec=_DIGITS)
    rare = context.ln(_decimal(1 / delta, context))
    exact = context.divide(rare, _decimal(epsilon / 2, context))
    return 2 + int(exact.to_integral_value(ROUND_FLOOR))


def _decimal(number: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))
