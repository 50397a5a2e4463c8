"""The least noise that hides a shift if relative entropies are bounded: zCDP, Rényi privacy.

If D(Z‖Z + 1) and D(Z‖Z − 1) are at most ρ, then for every positive function r, by Young,

    E[ln r(Z) + 1 − r(Z + 1)] ≤ ρ,     E[ln r(−Z) + 1 − r(1 − Z)] ≤ ρ,

and E Z² ≥ inf H − 2wρ with H(x) = x² + w(2 + ln r(x) + ln r(−x) − r(x + 1) − r(1 − x)), w > 0.
With r(x) = e^{−A(x)} for x ≥ ½ and 1/r(1 − x) below, H is equal to a number h for all |x| ≥ ½ if
A is found backwards from far out, and nearly so between. Every w and h are valid; those taken are
nearly the best. Proof: docs/proofs/steps.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from muhat._arrays import Floats

LEAST_RHO, LARGEST_RHO = 0.02, 20.0
GROUPED_RHO = 0.1
"""Where groups are allowed a smaller ρ is taken k times, up to this."""

NODES = 64
MARGIN = 1e-9
_NEWTON_STEPS = 6


def log_entropy_square(rho: float, copies: float, *, groups: bool) -> float | None:
    """ln of a number below E Z², or below what any mechanism errs on some of `copies` + 1 datasets.

    None outside of the range of ρ where it is computed. With `groups`, k shifts have at most k²ρ.

    >>> round(1 / math.sqrt(math.exp(log_entropy_square(0.5, math.inf, groups=True))), 4)
    1.0042
    """
    count = max(1, math.floor(math.sqrt(GROUPED_RHO / rho))) if groups and rho > 1e-300 else 1
    if math.isfinite(copies):
        count = min(count, max(1, math.isqrt(math.floor(copies))))
    loss = count * count * rho
    if not LEAST_RHO <= loss <= LARGEST_RHO:
        return None
    best = nearly_best(loss).square(loss, copies if math.isinf(copies) else copies // count)
    return math.log(best) + 2 * math.log(count) if best > 0 else None


class EntropyDual:
    """w, h, the largest A, and A at the offsets from 1 that decide."""

    def __init__(self, weight: float, level: float, nodes: int) -> None:
        self.weight, self.level = weight, level
        # Beyond X, A is constant and H ≥ h.
        last = math.ceil(4 + math.sqrt(level) + 6 * math.sqrt(weight))
        self.top = math.acosh(1 + max((last + 0.5) ** 2 - level, 0.0) / (2 * weight))
        self.offsets = np.linspace(0, 0.5, nodes + 1)
        x = 1 + np.concatenate([-self.offsets[::-1], self.offsets[1:]])
        values, bend = np.full(len(x), self.top), 0.0
        for k in range(last - 1, -1, -1):
            # e^A + A = 2 + (x² − h)/w + A⁺ − e^{−A⁺}, A⁺ that of x + 1.
            solved = _solved(2 + ((x + k) ** 2 - level) / weight + values - np.exp(-values))
            # A rises, so its least value is the first; `bend` is above its second derivative.
            bend = (2 / weight + (1 + math.exp(-values[0])) * bend) / (1 + math.exp(solved[0]))
            values = solved
        self.values, self.bend = values, bend * (1 + math.exp(-values[0]))

    def between(self) -> Floats:
        """H at the offsets in [0, ½]."""
        inner = self.values - np.exp(-self.values)
        middle = len(self.offsets) - 1
        both = inner[middle::-1] + inner[middle:]
        return np.asarray(self.offsets**2 + self.weight * (2 + both))

    def square(self, rho: float, copies: float) -> float:
        """inf H − 2wρ, less what the two ends of a row of datasets cost."""
        step = float(self.offsets[1])
        bent = (2 + 2 * self.weight * self.bend) * step * step / 8
        least = min(float(np.min(self.between())) - bent, self.level)
        ends = 0.0 if math.isinf(copies) else 2 * self.weight * (1 + self.top) / (copies + 1)
        large = least + 2 * self.weight * rho
        return least - 2 * self.weight * rho - ends - MARGIN * large


def _solved(right: Floats) -> Floats:
    """A with e^A + A = right, the logarithm of Wright's ω, up to rounding.

    The left side is convex and rises: from a number that is not below A, Newton's steps fall to it,
    and each about squares what is left.
    """
    found = np.where(right > 1, np.log(np.maximum(right, 1.0)), right)
    for _ in range(_NEWTON_STEPS):
        power = np.exp(found)
        found = found - (power + found - right) / (power + 1)
    return np.asarray(found)


@lru_cache(maxsize=256)
def nearly_best(rho: float) -> EntropyDual:
    """w = (1 + 0.07ρ²)/(4ρ²), and the largest h that H reaches between, too."""
    weight = (1 + 0.07 * min(rho, 2.0) ** 2) / (4 * rho * rho)
    low, high = 0.0, 4 * rho * weight + 1
    for _ in range(24):
        level = (low + high) / 2
        if float(np.min(EntropyDual(weight, level, 4).between())) >= level:
            low = level
        else:
            high = level
    return EntropyDual(weight, low, NODES)
