"""What an event counts in the sums after it: all of it, for a while, or less and less."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.workloads.base import Workload
from muhat.workloads.explicit import Explicit
from muhat.workloads.prefix import Prefix

DECAY_BITS = 24
"""The weights of sums that decay are multiples of 2^−24."""


class Weights(NamedTuple):
    """Of the last `window` events, or of all, each counting `decay` times as much as the next.

    >>> Weights(window=2).whole(4), Weights(decay=Fraction(1, 2)).shares(3)
    ([1, 1, 0, 0], array([1.  , 1.5 , 1.75]))
    """

    window: int | None = None
    decay: Fraction | None = None

    @property
    def shift(self) -> int:
        """The weights are whole numbers over 2^shift."""
        return 0 if self.decay is None else DECAY_BITS

    def whole(self, size: int) -> list[int]:
        """The weights of the last event, the one before, …, times 2^shift."""
        if self.decay is not None:
            return [round(self.decay**k * (1 << self.shift)) for k in range(size)]
        kept = size if self.window is None else min(size, self.window)
        return [1] * kept + [0] * (size - kept)

    def sums(self, terms: list[int]) -> list[int]:
        """The sums after each term, times 2^shift: whole numbers of any size.

        >>> Weights(window=2).sums([1, 10, 100])
        [1, 11, 110]
        """
        if self == Weights():
            return list(accumulate(terms))
        weights = self.whole(len(terms))
        return [sum(map(mul, weights[t::-1], terms)) for t in range(len(terms))]

    def matrix(self, size: int) -> NDArray[np.int64]:
        """W·2^shift, of shape (n, n)."""
        column = np.array(self.whole(size), np.int64)
        index = np.subtract.outer(np.arange(size), np.arange(size))
        return np.where(index >= 0, column[index], 0)

    def inverse_norm(self, size: int) -> Fraction:
        """At least ‖W⁻¹‖: that of (1 − x)/(1 − x^w), or of 1 − γx up to the rounding of weights."""
        if self.decay is None:
            return Fraction(2 if self.window is None else 2 * -(-size // self.window))
        exact = 1 + self.decay
        return exact / (1 - exact * Fraction(size, 1 << (self.shift + 1)))

    def workload(self, size: int) -> Workload:
        """W."""
        if self == Weights():
            return Prefix(size)
        return Explicit(np.ldexp(self.matrix(size).astype(np.float64), -self.shift), (size,))

    def shares(self, size: int) -> Floats:
        """How many events the sums after 1, …, n pushes count, each by its weight."""
        return np.ldexp(np.cumsum(self.whole(size)).astype(np.float64), -self.shift)

    def words(self, size: int) -> str:
        """What is summed up, of up to so many events."""
        if self.window is not None:
            return f"sums of the last {self.window:,} of up to {size:,} events"
        if self.decay is not None:
            return f"sums of up to {size:,} events that decay to {float(self.decay):g} a step"
        return f"running sums of up to {size:,} events"
