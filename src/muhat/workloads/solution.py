"""What the solvers of this room hand over: a strategy of any scale, and a proved floor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from muhat._arrays import Floats


@dataclass(frozen=True, eq=False)
class Solution:
    """R of shape (k, N), a proved `floor` on γ_(p), and the `value` that R is likely to have."""

    strategy: Floats
    value: float
    floor: float
    method: str

    @property
    def gap(self) -> float:
        return self.value / self.floor - 1 if self.floor > 0 else math.inf

    def better_of(self, other: Solution | None) -> Solution:
        """The better strategy with the better floor: both belong to the same problem."""
        if other is None:
            return self
        best = self if self.value <= other.value else other
        return Solution(best.strategy, best.value, max(self.floor, other.floor), best.method)


INTERIOR, CLIMB = "optimised by interior point", "optimised by multiplicative steps"


def steps_for(size: int, *, started: bool = False) -> int:
    """How many eigendecompositions of this size are worth waiting for.

    `started`: the weights begin where those of pools of cells ended.
    """
    least = 12288 // size if started else 24 if size <= 1024 else 8
    return min(1000, max(least, int(1.2e10 / max(size, 1) ** 3)))
