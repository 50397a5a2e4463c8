"""The best interval [a, b] for the trilemma, searched in floats and then evaluated safely.

    [v(b − a) − 2β] / ∫_a^b min{n√Q(p), √(n/(p(1 − p)))} dp

is a lower bound for every 0 ≤ a < b ≤ 1, so the search need not be trusted: only the last
evaluation is rounded, v down and the integral up. Angles stand for probabilities, p = sin²θ.

v is how far apart two points may lie whose Bernoulli mixtures all have a bounded moment:
v·Bernoulli(p) has the λ-th absolute central moment v^λ·h(p),

    h(p) = p(1 − p)·[p^{λ−1} + (1 − p)^{λ−1}],

symmetric about ½. On [0, ½] it rises to p* and falls from there (p* = ½ if λ ≤ 3), so its maximum
over an interval is at an end or at p* or 1 − p*. Proof: docs/proofs/trilemma.md.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from muhat._arrays import Floats
from muhat.bounds.score import QUARTER, Score

LEAST_LOG = -320.0
"""ln of the least angle: its square is far from the least floats."""

_NODES = 6000
_CANDIDATES = 240
_ZOOM = 15
_ROUNDS = 5


def log_moment(theta: Floats, order: float) -> Floats:
    """ln h(p)/λ at p = sin²θ; for λ = ∞ ln max(p, 1 − p)."""
    with np.errstate(divide="ignore"):
        low = 2 * np.log(np.minimum(np.sin(theta), np.cos(theta)))
    high: Floats = 2 * np.log(np.maximum(np.sin(theta), np.cos(theta)))
    if math.isinf(order):
        return high
    # p^{λ−1} + (1−p)^{λ−1}, the larger taken out.
    rest = np.log1p(np.exp((order - 1) * (low - high)))
    return np.asarray((low + order * high + rest) / order, dtype=np.float64)


def peak(order: float) -> float:
    """θ in (0, π/4] where h is largest.

    With p = 1/(1 + e^{2s}) h is stationary where λ·sinh((λ−2)s) = sinh(λs), that is
    λ·e^{−2s}(1 − e^{−2(λ−2)s}) = 1 − e^{−2λs}; the left side is larger below the root.
    """
    if order <= 3 or math.isinf(order):
        return math.pi / 4
    low, high = 0.0, math.log(order) / 2
    for _ in range(80):
        s = (low + high) / 2
        left = order * math.exp(-2 * s) * -math.expm1(-2 * (order - 2) * s)
        if left > -math.expm1(-2 * order * s):
            low = s
        else:
            high = s
    return math.atan(math.exp(-(low + high) / 2))


def distances(low: Floats, high: Floats, order: float, interval: float) -> Floats:
    """The largest v for all p between sin²`low` and sin²`high`, unrounded.

    The λ-th moment is at most 1, and the means, v(b − a) apart, lie in the interval.
    """
    top = peak(order)
    logs = np.maximum(log_moment(low, order), log_moment(high, order))
    if math.isfinite(order):
        highest = log_moment(np.array([top]), order)[0]
        inside = ((low <= top) & (top <= high)) | (
            (low <= math.pi / 2 - top) & (math.pi / 2 - top <= high)
        )
        logs = np.where(inside, highest, logs)
    width = np.sin(high - low) * np.sin(high + low)
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(np.exp(-logs), interval / width)


class Landscape:
    """The bound as a function of the interval, for one class of distributions and one promise.

    Args:
        score: n and the promise.
        order: λ, above 1 or ∞; the λ-th absolute central moment is at most 1.
        interval: the length of the interval of means.
        least_bias: the least positive bias that will be asked for.
    """

    def __init__(self, score: Score, order: float, interval: float, least_bias: float) -> None:
        self.score, self.order, self.interval = score, order, interval
        start = _least_angle(score, order, least_bias)
        self._nodes = np.linspace(math.log(start), math.log(QUARTER), _NODES)
        angles = np.exp(self._nodes)
        logs = score.log_speed(angles) + self._nodes
        pieces = np.logaddexp(logs[1:], logs[:-1]) + math.log((self._nodes[1] - self._nodes[0]) / 2)
        self._log_costs = np.logaddexp.accumulate(np.concatenate([logs[:1], pieces]))
        grid = np.exp(np.linspace(math.log(start), math.log(QUARTER), _CANDIDATES))
        mirrored = math.pi / 2 - np.linspace(QUARTER, 0, 40, endpoint=False)[1:][::-1]
        self._lows = np.concatenate([[0.0], grid])
        self._highs = np.concatenate([grid, np.sort(mirrored), [math.pi / 2]])
        self._moves, self._costs = self._movement_and_cost(self._lows, self._highs)

    def best(self, bias: float) -> float:
        """The largest lower bound on α found for a bias of at most `bias`, rounded down."""
        return self._best(-2 * bias, 0.0)

    def best_for_any_bias(self) -> float:
        """The same without a limit: a bias is at most α, so α ≥ v(b − a)/(∫ + 2)."""
        return self._best(0.0, 2.0)

    def _best(self, shift: float, extra: float) -> float:
        lows, highs = self._lows, self._highs
        moves, costs = self._moves, self._costs
        points = []
        for _ in range(_ROUNDS):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                heights = np.where(costs > 0, (moves + shift) / (costs + extra), -np.inf)
            i, j = map(int, np.unravel_index(np.argmax(heights), heights.shape))
            points.append((float(lows[i]), float(highs[j])))
            lows, highs = _around(lows, i), _around(highs, j)
            moves, costs = self._movement_and_cost(lows, highs)
        # The last is the best but for the errors of the table, which the first hardly feels.
        return max(self._certified(*point, shift, extra) for point in (points[0], points[-1]))

    def _certified(self, low: float, high: float, shift: float, extra: float) -> float:
        """The bound at one interval: everything above rounded down, everything below up."""
        ends = np.array([low]), np.array([high])
        distance = float(distances(*ends, self.order, self.interval)[0])
        width = math.sin(high - low) * math.sin(high + low)
        move = distance * width * (1 - 1e-11) + shift * (1 + 1e-15)
        if not move > 0:
            return 0.0
        cost = self.score.integral(low, high) + extra
        return min(move / cost * (1 - 1e-12), sys.float_info.max)

    def _movement_and_cost(self, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
        low, high = lows[:, None], highs[None, :]
        with np.errstate(invalid="ignore", over="ignore"):
            width = np.sin(high - low) * np.sin(high + low)
            moves = np.where(low < high, distances(low, high, self.order, self.interval) * width, 0)
        costs = np.where(low < high, self._cost(highs)[None, :] - self._cost(lows)[:, None], 0)
        return moves, costs

    def _cost(self, angles: Floats) -> Floats:
        """∫ from 0 to each angle, good to a part in 10⁴."""
        near = np.minimum(angles, math.pi / 2 - angles)
        with np.errstate(divide="ignore"):
            logs = np.log(near)
        inner = np.exp(np.interp(logs, self._nodes, self._log_costs))
        # Below the table the speed is nearly constant or falls with θ: never above proportional.
        inner = np.where(logs < self._nodes[0], inner * np.exp(logs - self._nodes[0]), inner)
        whole = 2 * math.exp(self._log_costs[-1])
        return np.where(angles > QUARTER, whole - inner, inner)


def _least_angle(score: Score, order: float, least_bias: float) -> float:
    """Far below every interval that can be best."""
    power = 1.0 if math.isinf(order) else order / (order - 1)
    logs = [-math.log(score.n) - min(max(score.log_gain, 0.0), 60.0)]
    if least_bias > 0:  # v·b > 2β needs b^{1 − 1/λ} > β, up to a constant
        logs.append(power * (math.log(least_bias) - math.log(4)))
    if score.leak > 0:
        logs.append(math.log(score.leak) - score.log_gain - 20)
    return math.exp(min(max((min(logs) - 12) / 2, LEAST_LOG), -4.0))


def _around(grid: Floats, index: int) -> Floats:
    """A finer grid between the neighbours of a point, with the point itself."""
    below, above = grid[max(index - 1, 0)], grid[min(index + 1, len(grid) - 1)]
    return np.unique(np.concatenate([np.linspace(below, above, _ZOOM), grid[index : index + 1]]))
