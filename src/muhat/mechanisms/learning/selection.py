"""Which values of a column are kept: those that enough people have, for a share of a promise.

A person has at most m values (twice as many count if all of them are replaced). Two rules decide,
value by value, from the number n of people who have it:

    optimal     kept with probability π(n), π(0) = 0 and, for ε/m and δ/m in the place of ε and δ,
                π(n) = min(e^ε·π(n−1) + δ, 1 − e^−ε·(1 − π(n−1) − δ), 1),
                the most that (ε, δ)-privacy allows (Desfontaines, Voss, Gipson and Mandayam 2022);
    threshold   kept if n with normal noise for √m is above a threshold that a value which one
                person alone has exceeds with probability δ/2m at most; the noise keeps (ε, δ/2).

The first is the best for one value a person, the second grows with √m and not with m. Under
δ-approximate ρ-zCDP it is the second: the noise keeps ρ-zCDP, and a value of one person alone, who
has k of them at most, exceeds the threshold with probability δ/k. All are decided in whole numbers.
Values that nobody has are never kept, and those that are come without their numbers. Proof:
docs/proofs/selection.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.noise.discrete import coins
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import Words, system_words
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import INDEPENDENT
from muhat.privacy import Privacy, as_typed
from muhat.privacy.approximate import ApproxDP
from muhat.privacy.concentrated import ZCDP
from muhat.privacy.rounding import float_at_most

Mask = NDArray[np.bool_]

MOST_STEPS = 1 << 20
"""Numbers of people up to which a value may be left out."""

_ROOT_OF_TWICE_PI = Fraction("2.50662827463100050241")  # rounded down
_SPARE_BITS = 128


@dataclass(frozen=True)
class OptimalRule(Plain, keys=("rule", "epsilon", "delta", "values")):
    """Keeps a value that n people have with probability π(n), exactly.

    >>> rule = OptimalRule(Fraction(1), Fraction(1, 10**6), 1)
    >>> rule.half, rule.certain, float(rule.probability(1))
    (14, 28, 1e-06)
    """

    epsilon: Fraction
    delta: Fraction
    values: int
    rule = "optimal"

    def __post_init__(self) -> None:
        _check.count("values", self.values)
        if not (self.epsilon > 0 and 0 < self.delta < 1):
            raise InvalidInput("a selection needs an epsilon and a delta above 0.")
        if 2 * math.log(self.values / self.delta) * self.values > MOST_STEPS * self.epsilon:
            raise InvalidInput(
                "the promise is so strong that only values of millions of people could be kept."
            )

    @cached_property
    def _bits(self) -> int:
        return _SPARE_BITS + math.ceil(self.values / self.delta).bit_length()

    @cached_property
    def _table(self) -> tuple[int, ...]:
        """π(0), π(1), … up to the first that is 1, in units of 2^-bits, rounded down."""
        bits, one = self._bits, 1 << self._bits
        _, factor = falling_exponential(self.epsilon / self.values, bits)
        fall = math.ceil(factor * one)
        delta = math.floor(self.delta / self.values * one)
        found = [0]
        while found[-1] < one:
            last = found[-1]
            rising = (last << bits) // fall + delta
            closing = one + (-fall * max(one - last - delta, 0) >> bits)
            found.append(min(rising, closing, one))
        return tuple(found)

    def probability(self, people: int) -> Fraction:
        """With which a value is kept that so many people have."""
        return Fraction(self._table[min(people, self.certain)], 1 << self._bits)

    @property
    def half(self) -> int:
        """The least number of people whose value is kept at least half of the time."""
        return next(n for n, part in enumerate(self._table) if part >> (self._bits - 1))

    @property
    def certain(self) -> int:
        """A value that so many people have is kept always."""
        return len(self._table) - 1

    def kept(self, people: Sequence[int], words: Words = system_words) -> Mask:
        """Which values are kept, from how many people have each."""
        counts = np.minimum(np.array(people, np.int64), self.certain)
        found = np.zeros(len(counts), bool)
        for number in np.unique(counts).tolist():
            alike = counts == number
            found[alike] = coins(self.probability(number), int(alike.sum()), words)
        return found


class Threshold(Plain):
    """Keeps a value that n people have if S·n + round(2^54·z) is above a threshold, z normal.

    The noise on values that others have, too, keeps `noise`, a person moving `values` of them; a
    value that one person alone has is kept with probability `chance` at most.
    """

    values: int
    law = INDEPENDENT["normal"]

    def __post_init__(self) -> None:
        _check.count("values", self.values)
        if self.multiplier < 1:
            raise InvalidInput("the promise is so strong that its noise drowns every count.")
        moved = Fraction(self.multiplier**2 * self.values, self.law.unit**2)
        if not Strength(NoiseKind.NORMAL, moved).keeps(self.noise):
            raise AssertionError("the numbers of people move farther than the noise hides")
        if self.alone > self.chance:
            raise AssertionError("a value of one person is kept too often")

    @property
    @abstractmethod
    def noise(self) -> Privacy:
        """What the noise on values of several people has to keep."""

    @property
    @abstractmethod
    def chance(self) -> Fraction:
        """How likely a value may be kept that one person alone has."""

    @cached_property
    def multiplier(self) -> int:
        """S, the units of 2^-54 noise that a person is worth."""
        squared = Strength.of(self.noise, NoiseKind.NORMAL).squared * self.law.unit**2
        return math.isqrt(math.floor(squared / self.values))

    @cached_property
    def threshold(self) -> int:
        """What S·n + round(2^54·z) has to exceed."""
        wanted = -math.log(self.chance)
        reach = math.sqrt(2 * max(wanted, 0.5))
        for _ in range(60):  # x²/2 + log x + log √(2π) = wanted, from above
            reach = math.sqrt(2 * max(wanted - math.log(reach) - 0.9189385, 0.5))
        return self.multiplier + math.ceil(Fraction(reach * (1 + 1e-6)) * self.law.unit) + 1

    @property
    def alone(self) -> Fraction:
        """At least the probability that a value is kept which one person has.

        round(2^54·z) > t only if z > x = (t − ½)/2^54, which has probability φ(x)/x at most.
        """
        x = (self.threshold - self.multiplier - Fraction(1, 2)) / self.law.unit
        bits = _SPARE_BITS + math.ceil(1 / self.chance).bit_length()
        _, density = falling_exponential(x * x / 2, bits)
        return density / (_ROOT_OF_TWICE_PI * x)

    @property
    def half(self) -> int:
        """The least number of people whose value is kept at least half of the time."""
        return -(-self.threshold // self.multiplier)

    def kept(self, people: Sequence[int]) -> Mask:
        """Which values are kept, from how many people have each."""
        noisy = np.array(people, object) * self.multiplier + self.law.sample(len(people))
        return np.asarray(noisy > self.threshold, bool)


_DECIDED = (Key("multiplier", text=True), Key("threshold", text=True))


@dataclass(frozen=True)
class ThresholdRule(Threshold, keys=("rule", "epsilon", "delta", "values", *_DECIDED)):
    """A threshold for a share of (ε, δ): a half of δ for the noise, the other for the threshold."""

    epsilon: Fraction
    delta: Fraction
    values: int
    rule = "threshold"

    @property
    def noise(self) -> Privacy:
        """ε, and a half of δ."""
        return ApproxDP(float_at_most(self.epsilon), float_at_most(self.delta / 2))

    @property
    def chance(self) -> Fraction:
        """δ/2m."""
        return self.delta / (2 * self.values)


@dataclass(frozen=True)
class ConcentratedRule(Threshold, keys=("rule", "rho", "delta", "values", "rows", *_DECIDED)):
    """A threshold for a share of approximate zCDP: all of ρ for the noise, all of δ for it.

    `rows` is how many values a person has, before or after; `values` how many it moves.

    >>> rule = ConcentratedRule(Fraction(1, 20), Fraction(1, 10**6), 1, 1)
    >>> rule.half, rule.kept([0, 1, 1_000]).tolist()
    (17, [False, False, True])
    """

    rho: Fraction
    delta: Fraction
    values: int
    rows: int
    rule = "threshold, zCDP"

    @property
    def noise(self) -> Privacy:
        """ρ."""
        return ZCDP(float_at_most(self.rho))

    @property
    def chance(self) -> Fraction:
        """δ/k."""
        return self.delta / self.rows


Rule = OptimalRule | ThresholdRule | ConcentratedRule


def selection_rule(promise: Privacy, rows: int, *, replaced: bool = False) -> Rule:
    """The rule for a promise with a δ that leaves fewer values out, for so many rows of a person.

    Where these are `replaced` a person moves twice as many values.
    """
    values = 2 * rows if replaced else rows
    if promise.point is None:
        assert promise.rho_within is not None
        return ConcentratedRule(promise.rho_within, promise.leak, values, rows)
    epsilon, delta = map(as_typed, promise.point)
    rules: list[Rule] = []
    for rule in (OptimalRule, ThresholdRule):
        try:
            rules.append(rule(epsilon, delta, values))
        except InvalidInput as error:
            refused = error
    if not rules:
        raise refused
    return min(rules, key=lambda rule: rule.half)
