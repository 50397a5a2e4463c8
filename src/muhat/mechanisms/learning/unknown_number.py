"""A secret number of records for mechanisms that must know it: run them on a random part.

    N = n + Z − v,   Z discrete Laplace of scale 1/ε, cut to [−v, v];
    N < n0: nothing (⊥); else the mechanism for N records, on N of them in random order.

N never exceeds n, and may be shown. If the mechanism for every N ≥ n0 is (ε', δ')-private where a
record is replaced, the whole is (ε + ε', δ + δ')-private where one is added, removed or replaced
(Kamath et al. 2024, Proposition E.1; v is the least possible, below the paper's). Records drawn
independently stay so: the bias is the mechanism's own, at most 2v of them are lost.

The records must be at hand: an array, or a file read into one, all of it, since every record has
the same chance. Rows of a cluster that have numbers are left out by them instead; their order is
then not random, so the mechanism must not depend on it. Records that are not to count (missing
values) must be left out before they are counted. Secret: n, N − n, how long this takes. Proof:
docs/proofs/unknown-n.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.noise.discrete import discrete_laplace
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.privacy import ApproxDP, Privacy
from muhat.privacy.rounding import float_at_least

Records = NDArray[Any]


@dataclass(frozen=True)
class UnknownNumber(
    Plain, keys=("epsilon", "delta", "n0", "margin", Key("faithful", optional=True))
):
    """The number N and the N records, for the promise (ε, δ) of N alone.

    `faithful` keeps the paper's margin, ⌈ln(2/δ)/ε⌉: the least for which 2e^{−εv} ≤ δ.

    >>> wrapper = UnknownNumber(Fraction(1, 2), Fraction(1, 10**6), n0=100)
    >>> wrapper.margin, wrapper.enough
    (27, 154)
    >>> 946 <= wrapper.draw(1000) <= 1000, wrapper.draw(99)
    (True, None)
    >>> wrapper.total(ApproxDP(epsilon=0.5, delta=1e-6))
    ApproxDP(epsilon=1.0, delta=2e-06)
    """

    epsilon: Fraction
    delta: Fraction
    n0: int = 1
    faithful: bool = False

    def __post_init__(self) -> None:
        if not self.epsilon >= Fraction(1, 1 << 40):
            raise InvalidInput("must be at least 2^-40", parameter="epsilon")
        if not Fraction(1, 1 << 1074) <= self.delta < 1:
            raise InvalidInput("must lie strictly between 0 and 1", parameter="delta")
        _check.count("n0", self.n0)

    @cached_property
    def margin(self) -> int:
        """v, the least whole number whose `leak` is at most δ; certified."""
        below, margin = 0, 1
        while self.leak(margin) > self.delta:
            below, margin = margin, 2 * margin
        while margin - below > 1:
            middle = (below + margin) // 2
            below, margin = (middle, margin) if self.leak(middle) > self.delta else (below, middle)
        return margin

    def leak(self, margin: int) -> Fraction:
        """An upper bound, as good as equal, on the δ of N if Z is cut to ±margin ≥ 1.

        With q = e^{−ε}: q^v·max(1, 2 − (1 − q)/q²)/(1 + q). The paper's bound is more, 2q^v.
        """
        precision = 128 + 2 * (self.delta.denominator // self.delta.numerator).bit_length()
        least, most = falling_exponential(self.epsilon, precision)
        cut = falling_exponential(self.epsilon * margin, precision)[1]
        if self.faithful:
            return 2 * cut
        ends = max(2 - (1 - most) / most**2, Fraction(1))
        return cut * ends / (1 + least)

    @property
    def enough(self) -> int:
        """n0 + 2v: with so many records or more there is always an answer."""
        return self.n0 + 2 * self.margin

    def draw(self, n: int, source: Words = system_words) -> int | None:
        """N for n records, or None (⊥) if it is below n0."""
        noise = int(discrete_laplace(self.epsilon, 1, source)[0])
        number = n + max(-self.margin, min(noise, self.margin)) - self.margin
        return None if number < self.n0 else number

    def subset(
        self, records: Records, number: int, filler: ArrayLike, source: Words = system_words
    ) -> Records:
        """`number` of the records, of shape (n,) or (n, d), uniformly, in random order.

        If there are fewer records (which `draw` never asks for), the public `filler` stands in:
        it makes the whole a private function of the records for every number.
        """
        return random_part(records, number, filler, source)

    def select(
        self, records: Records, filler: ArrayLike, source: Words = system_words
    ) -> Records | None:
        """N of the records in random order, or None (⊥): what the mechanism for N is run on."""
        number = self.draw(len(records), source)
        return None if number is None else self.subset(records, number, filler, source)

    def left_out(self, n: int, source: Words = system_words) -> tuple[int, ...] | None:
        """The places of the n − N of n records that are left out, uniformly, or None (⊥)."""
        number = self.draw(n, source)
        return None if number is None else _distinct(n, n - number, source)

    def total(self, inner: Privacy) -> ApproxDP:
        """What the wrapper and the mechanism inside promise together, under add or remove."""
        if inner.point is None:
            raise InvalidInput(
                "the mechanism inside must promise ApproxDP or PureDP; convert it by "
                'privacy.to("approx", delta=...).'
            )
        epsilon, *deltas = inner.amounts
        return ApproxDP(
            epsilon=float_at_least(self.epsilon + epsilon),
            delta=float_at_least(sum(deltas, self.delta)),
        )


def random_part(
    records: Records, number: int, filler: ArrayLike, source: Words = system_words
) -> Records:
    """`number` of the records, of shape (n,) or (n, d), uniformly, in random order.

    If there are fewer, the public `filler` stands in.
    """
    rows = len(records)
    chosen = _random_order(max(rows, number), source)[:number]
    if rows >= number:
        return np.asarray(records[chosen])
    present = chosen < rows
    part = np.empty((number, *records.shape[1:]), records.dtype)
    part[present] = records[chosen[present]]
    part[~present] = filler
    return part


def _random_order(size: int, source: Words) -> NDArray[np.intp]:
    """0, …, size − 1 in uniformly random order: sorted by distinct random keys.

    Independent uniform keys, given that no two are equal, have every order with the same chance.
    """
    while True:
        keys = source(size)
        order = np.argsort(keys)
        ordered = keys[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order


def _distinct(size: int, count: int, source: Words) -> tuple[int, ...]:
    """`count` of 0, …, size − 1, every set of so many with the same chance; ascending."""
    chosen: set[int] = set()
    shift = WORD_BITS - size.bit_length()
    while len(chosen) < count:
        place = int(source(1)[0]) >> shift
        if place < size:
            chosen.add(place)
    return tuple(sorted(chosen))
