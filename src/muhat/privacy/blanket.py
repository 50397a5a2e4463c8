"""How well shuffled messages hide one record: the divergence of the pair that is worst.

With g = e^ε₀ the n messages together are (ln E, δ)-DP about replacing one record for

    δ = E[(V₁ + … + V_n)₊]/n,

where the V are independent: g − E or 1 − gE, each with probability κ/Z, 1 − E with (1 − 2κ)/Z and
0 else, Z = 1 + (g − 1)κ. Here κ is the share of all outcomes that a record makes g times as likely
as the others; κ = 1/2 covers every randomiser. Balle, Bell, Gascón and Nissim, "The Privacy
Blanket of the Shuffle Model", CRYPTO 2019, and docs/proofs/amplification.md, which also proves the
rounding.

Everything here is sums, products and quotients of floats, of which each is off by at most a unit
in the last place; the margins count them. No logarithm or exponential is trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats

LARGEST_USERS = 10**10
"""More users hide no less, so that a bound for this many holds for all above."""

_UNIT = 2.0**-53
_CELLS = 1_500_000  # of all windows together, which bounds memory and time
_MOST_GROUPS = 128
_LEAST_REACH = 24.0  # what a row of coins leaves out is then below a unit in the last place


@dataclass(frozen=True)
class _Group:
    """Sums with some numbers of terms alike, which count as the worst of them."""

    weight: float
    first: int
    chances: Floats
    """Of `first`, `first + 1`, … more terms that are g − E or 1 − gE, besides one."""
    constants: int
    """How many terms are 1 − E, apart from `filled`."""
    filled: bool
    """Whether `constants` counts those that are g − E or 1 − gE too."""


class Blanket:
    """The worst pair for g = 1 + `excess`, n = `users` and κ = `share` ≤ 1/2.

    What is left out of the sums has at most the mass `tail`, which every answer includes.
    """

    def __init__(self, excess: float, users: int, share: float, tail: float) -> None:
        self._excess = excess
        self._tail = tail
        # Six cuts, each of a mass of at most e^{−reach} that counts for at most min(excess, 1).
        self._reach = max(_LEAST_REACH, math.ceil(math.log(min(excess, 1.0) * 16 / tail)) + 1.0)
        self._steps = 0
        # Told apart are the numbers of constants, or of terms that are not 0: what varies less.
        if (1 - 2 * share) <= (2 + excess) * share * excess * share:
            self._groups = self._by_constants(users, share)
            self._scale = excess / (2 + excess)
        elif excess > tail:
            self._groups = self._by_filled(users, share)
            self._scale = excess * share
        else:  # even one message says less than the tail
            self._groups, self._scale = [], 0.0
        self._margin = 1 + 40 * (self._steps + 64) * _UNIT

    def divergence(self, ratio: float) -> float:
        """At least the divergence at E = 1 + ratio·excess, for a ratio in [0, 1)."""
        total = 0.0
        for group in self._groups:
            gains = _gains(group, ratio, self._excess, self._reach)
            total += group.weight * float(group.chances @ gains)
        return (self._scale * total + self._tail) * self._margin

    def _by_constants(self, users: int, share: float) -> list[_Group]:
        """By the number c of terms that are 1 − E: the fewer, the worse."""
        h = self._excess
        chance, odds = (1 - 2 * share) / (1 + h * share), (1 - 2 * share) / ((2 + h) * share)
        first, masses, stride = self._split(users, chance, odds, users * (1 - chance), 2 / (2 + h))
        groups = []
        for place, mass in enumerate(masses):
            constants = first + place * stride
            left = users - constants
            if left > 0:
                start, chances = self._window(left - 1, 2 / (2 + h), 2 / h)
                weight = float(mass) * (left / users)
                groups.append(_Group(weight, start, chances, constants, filled=False))
        return groups

    def _by_filled(self, users: int, share: float) -> list[_Group]:
        """By the number K of terms that are not 0: for each of them, the fewer, the worse."""
        h = self._excess
        chance, odds = 1 / (1 + h * share), 1 / (h * share)
        # Weighted by K/n, K − 1 is binomial with one trial fewer.
        first, masses, stride = self._split(users - 1, chance, odds, users * chance, 2 * share)
        groups = []
        for place, mass in enumerate(masses):
            others = first + place * stride
            start, chances = self._window(others, 2 * share, 2 * share / (1 - 2 * share))
            groups.append(_Group(float(mass) * chance, start, chances, others + 1, filled=True))
        return groups

    def _split(
        self, trials: int, chance: float, odds: float, left: float, drawn: float
    ) -> tuple[int, Floats, int]:
        """The window of a binomial count in pieces: where it starts, their masses, their length."""
        first, chances = (0, np.ones(1)) if chance == 0 else self._window(trials, chance, odds)
        width = 2 * math.sqrt(2 * self._reach * left * drawn * (1 - drawn)) + 16
        stride = math.ceil(len(chances) / min(max(_CELLS / width, 8), _MOST_GROUPS))
        starts = np.arange(0, len(chances), stride)
        return first, np.add.reduceat(chances, starts), stride

    def _window(self, trials: int, chance: float, odds: float) -> tuple[int, Floats]:
        """Chances of a window of binomial counts, each at least its own, and where it starts.

        By Bernstein's inequality each side leaves out at most e^{−reach}. The chances are divided
        by their sum over the window, which is at most 1.
        """
        mean = trials * chance
        variance = mean * (1 - chance)
        spread = self._reach / 3 + math.sqrt(self._reach**2 / 9 + 2 * self._reach * variance) + 2
        low, high = max(0, math.floor(mean - spread)), min(trials, math.ceil(mean + spread))
        mode = min(max(int(mean), low), high)
        above = np.arange(mode, high, dtype=np.float64)
        below = np.arange(mode, low, -1, dtype=np.float64)
        up = np.cumprod((trials - above) / (above + 1) * odds)
        down = np.cumprod(below / (trials - below + 1) / odds)
        weights = np.concatenate((down[::-1], [1.0], up))
        self._steps = max(self._steps, len(weights))
        return low, weights / weights.sum()


def _gains(group: _Group, ratio: float, excess: float, reach: float) -> Floats:
    """What each number of terms adds, rounded up: (a − o/C)·P(β) − (rh + 2(1 − a) + 2o/C)·G(β).

    With c constants a = 1 − r and o = cr; with K terms that are not 0, a = 1 and o = Kr. Of C
    terms at most β may be 1 − gE, the others being g − E, for a positive sum; P(β) is the chance
    of β among C − 1 fair coins, and G(β) that of fewer.
    """
    gains = np.zeros(len(group.chances))
    draws = group.first + 1 + np.arange(len(gains), dtype=np.float64)
    slope = 1.0 if group.filled else 1 - ratio
    burden = group.constants * ratio
    room = (draws * slope - burden) / (2 + ratio * excess)
    # Hoeffding: elsewhere the chance of a positive sum is below e^{−reach}. The set is an interval.
    near = np.flatnonzero((room > 0) & ((draws - 2 * room) ** 2 < 2 * reach * draws))
    if not len(near):
        return gains
    chosen = slice(near[0], near[-1] + 1)
    draws, room = draws[chosen], room[chosen]
    few = np.ceil(room) - 1
    cost = ratio * excess + (0.0 if group.filled else 2 * ratio)
    # The chance of a positive sum rises up to here and falls beyond; errors are to grow with it.
    peak = int(np.searchsorted(draws, 2 * burden / cost)) if burden > 0 else 0
    points, tails, margins = (np.empty(len(draws)) for _ in range(3))
    for part, backwards in ((slice(0, peak), False), (slice(peak, None), True)):
        if len(draws[part]):
            points[part], tails[part], margins[part] = _coins(
                draws[part] - 1, few[part], reach, backwards=backwards
            )
    per_draw = burden / draws
    lead = room * (2 + ratio * excess) / draws
    # Where room is a whole number but for rounding, `few` may be off by one; that term is tiny.
    doubt = 32 * _UNIT * (slope + per_draw) * np.maximum(1.0, draws / (2 * few + 2))
    gain = lead * points + (doubt * points + lead * margins)
    loss = (cost + 2 * per_draw) * np.maximum(0.0, tails - margins)
    gains[chosen] = np.maximum(0.0, gain - loss * (1 - 16 * _UNIT))
    return gains


def _coins(
    j: Floats, few: Floats, reach: float, *, backwards: bool
) -> tuple[Floats, Floats, Floats]:
    """P(β) and G(β) of j fair coins along a path on which β stays or rises by 1, and their error.

    One row of Pascal's triangle is summed, the first or the last, and the others follow from it.
    """
    anchor = -1 if backwards else 0
    point, tail, length = _row(int(j[anchor]), int(few[anchor]), reach)
    margin = 8 * (length + len(j) + 16) * _UNIT
    before, heads = j[:-1], few[:-1]
    rises = np.diff(few) > 0
    divisor = np.where(rises, heads + 1, before + 1 - heads)
    if backwards:
        ratios = divisor / (before + 1) * 2
        points = np.append(np.cumprod(ratios[::-1])[::-1], 1.0) * point
    else:
        ratios = (before + 1) / divisor / 2
        points = np.insert(np.cumprod(ratios), 0, 1.0) * point
    steps = points[:-1] / 2
    steps = np.where(rises, steps, -steps * heads / (before - heads + 1))
    if backwards:
        moved = np.append(np.cumsum(-steps[::-1])[::-1], 0.0)
        travelled = np.append(np.cumsum(np.abs(steps[::-1]))[::-1], 0.0)
    else:
        moved = np.insert(np.cumsum(steps), 0, 0.0)
        travelled = np.insert(np.cumsum(np.abs(steps)), 0, 0.0)
    return points, tail + moved, margin * (tail + travelled + points)


def _row(j: int, few: int, reach: float) -> tuple[float, float, int]:
    """P(few) and G(few) of j fair coins, few ≤ j/2, and the number of terms."""
    centre = j // 2
    low = max(0, centre - math.isqrt(math.ceil(j * reach)) - 2)
    heads = np.arange(centre, low, -1, dtype=np.float64)
    weights = np.concatenate(([1.0], np.cumprod(heads / (j - heads + 1))))
    total = 2 * float(weights.sum()) - (1.0 if j % 2 == 0 else 0.0)
    at = centre - few
    return float(weights[at]) / total, float(weights[at + 1 :].sum()) / total, len(weights)
