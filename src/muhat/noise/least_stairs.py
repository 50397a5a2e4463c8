"""The stairs with the least variance that keep a promise, for a number that moves so far at most.

    pure      ratio b = e^−ε; the inner radius t = γΔ with
              γ = −b/(1 − b) + ((b − 2b² + 2b⁴ − b⁵)/2)^{1/3}/(1 − b)²  (Geng and Viswanath 2012)
    (ε, δ)    cut where the last Δ numbers on a side weigh δ; t by a search

Floats choose the inner radius and nothing else: what is returned keeps the promise by the law's own
test. Cut stairs are taken where they gain enough; they keep nothing but their (ε, δ).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from muhat._arrays import Floats
from muhat.noise.enclosures import falling_exponential
from muhat.noise.kinds import Strength
from muhat.noise.stairs import (
    HEIGHT,
    LARGEST_STEP,
    MOST_STAIRS,
    RATIO_BITS,
    Stairs,
    falling,
    rounded_up,
)
from muhat.privacy import Privacy, as_typed

LEAST_EPSILON = 2.0**-8
"""Below it stairs gain less than a millionth over Laplace noise."""

LEAST_GAIN = 0.99
"""Cut stairs are taken if their deviation is at most so much of that of endless ones."""

MOST_DELTA = 0.25
"""Beyond it the last step of cut stairs would reach over 0."""

_FINEST = 1 << 10
_PRECISION = 128


@lru_cache(maxsize=64)
def least_stairs(promise: Privacy | Strength, moved: int, rows: int = 1) -> Stairs | None:
    """The least noise for one number, or for each of several that move so far together.

    None where stairs are not worth their table. Of several numbers each may take a step whenever
    it moves, so all of them share ε.

    >>> from muhat.privacy import PureDP
    >>> law = least_stairs(PureDP(epsilon=2.0), 1)
    >>> law.inner, round(law.second_moment**0.5, 3)
    (1, 0.602)
    """
    if not 1 <= moved <= LARGEST_STEP:
        return None
    step, stairs = (moved, 1) if rows == 1 else (1, moved)
    found = _endless(promise, step, stairs)
    cut = _cut(promise, step) if stairs == 1 else None
    if found is None or cut is None:
        return found or cut
    return cut if gains(cut, found) else found


def gains(cut: Stairs, endless: Stairs) -> bool:
    """Whether stairs err so much less than others that they are taken, although cut."""
    return cut.second_moment <= endless.second_moment * Fraction(LEAST_GAIN) ** 2


def _endless(promise: Privacy | Strength, step: int, stairs: int) -> Stairs | None:
    allowed = falling(promise, stairs)
    if allowed is None or allowed > math.exp(-LEAST_EPSILON):
        return None
    ratio = Fraction(rounded_up(allowed * (1 << RATIO_BITS)), 1 << RATIO_BITS)
    b = float(ratio)
    inner = (b - 2 * b**2 + 2 * b**4 - b**5) / 2
    gamma = math.cbrt(max(inner, 0.0)) / (1 - b) ** 2 - b / (1 - b)
    found = (Stairs(step, t, ratio) for t in _near(gamma * step + 0.5, step))
    return min(found, key=lambda law: law.second_moment)


def _near(inner: float, step: int) -> list[int]:
    """Whole radii about the best one on the line: |z| < t are 2t − 1 numbers."""
    middle = round(inner)
    spread = (-1, 0, 1) if step <= _FINEST else (0,)
    return sorted({min(max(middle + d, 1), step) for d in spread})


def _cut(promise: Privacy | Strength, step: int) -> Stairs | None:
    """The same stairs, cut; None if no δ is allowed, or too little for a gain."""
    if isinstance(promise, Strength) or promise.point is None:
        return None
    epsilon, delta = promise.point
    # Far below, at δ < ε/1000 or so, cutting gains less than one per cent.
    if not epsilon * 1e-5 < delta <= MOST_DELTA or not epsilon >= LEAST_EPSILON:
        return None
    allowed = falling_exponential(as_typed(epsilon), _PRECISION)[1]
    ratio = Fraction(rounded_up(allowed * (1 << RATIO_BITS)), 1 << RATIO_BITS)
    if ratio >= 1:
        return None
    inner = 1.0 if step == 1 else _best_inner(float(ratio), delta) * step + 0.5
    found = [_ended(step, t, ratio, allowed, as_typed(delta)) for t in _near(inner, step)]
    kept = [law for law in found if law is not None and law.keeps(promise, Fraction(step))]
    return min(kept, key=lambda law: law.second_moment, default=None)


def _ended(
    step: int, inner: int, ratio: Fraction, allowed: Fraction, delta: Fraction
) -> Stairs | None:
    """Cut at the least end whose last step weighs at most δ of all, up to a part of one size."""
    weights = [HEIGHT]
    while len(weights) < MOST_STAIRS:
        weights.append(rounded_up(weights[-1] * ratio))
    sums = list(accumulate([inner * HEIGHT, *(step * weight for weight in weights[1:])]))

    def weight_of(size: int) -> int:
        return weights[0 if size < inner else 1 + (size - inner) // step]

    def below(end: int) -> int:
        """The weight of all sizes below, 0 included once."""
        if end <= inner:
            return end * HEIGHT
        stair, rest = divmod(end - inner, step)
        return sums[stair] + rest * weights[stair + 1] if rest else sums[stair]

    def fits(end: int) -> bool:
        return below(end) - below(end - step) <= delta * (2 * below(end) - HEIGHT)

    most = inner + (MOST_STAIRS - 2) * step
    if not fits(most):
        return None
    end = _least(step, most, fits)
    law = Stairs(step, inner, ratio, end)
    size = end - 1
    if step > _FINEST or size <= step:
        return law
    # Of the largest size a part may do: what is one step below loses max(0, w − e^ε·part) then.
    full, before = weight_of(size), weight_of(size - step)
    rest, whole = below(end) - below(end - step) - full, 2 * below(end) - HEIGHT - 2 * full

    def enough(part: int) -> bool:
        lost = rest + part + max(Fraction(0), before - part / allowed)
        return lost <= delta * (whole + 2 * part)

    part = _least(0, full, enough)
    return replace(law, end=size, last=part) if part < full else law


def _least(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The least whole number from low on that something holds for, as it does for all above."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _best_inner(b: float, delta: float) -> float:
    """The inner radius, in steps, with the least variance once it is cut at δ: in floats."""
    radii = np.linspace(1 / 64, 1.0, 64)
    return float(radii[np.argmin([_cut_variance(t, b, delta) for t in radii])])


def _cut_variance(t: float, b: float, delta: float) -> float:
    """E z² of stairs of step 1 on the line, cut where the last step weighs δ."""

    def below(end: float) -> float:
        if end <= t:
            return end
        stair = math.floor(end - t)
        return t + b * (1 - b**stair) / (1 - b) + (end - t - stair) * b ** (stair + 1)

    low, high = 1.0, float(MOST_STAIRS)
    for _ in range(60):
        middle = (low + high) / 2
        fits = below(middle) - below(middle - 1) <= 2 * delta * below(middle)
        low, high = (low, middle) if fits else (middle, high)
    starts: Floats = np.append(0.0, t + np.arange(max(math.floor(high - t), 0) + 1))
    stops = np.minimum(np.append(starts[1:], np.inf), high)
    weights = b ** np.arange(len(starts))
    return float(np.sum(weights * np.maximum(stops**3 - starts**3, 0)) / 3 / below(high))
