"""How statistics share a promise: what each portion of noise takes of it.

A portion is noise that takes a share s of the promise; at the whole of it its weighted error is Γ.
With normal noise the squared error is Γ²/s, with pure noise Γ²/s², and the sum over all portions
is least, among shares that add up to 1, for

    normal   s ∝ Γ          pure   s ∝ Γ^{2/3}.

Targets are limits on sums Σ c²/s (or c²/s²) over the portions that a statistic is read off; the
least total that meets all of them has s ∝ (Σ_targets λ·c²)^{1/2} (or ^{1/3}) for some λ ≥ 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from muhat._arrays import Floats
from muhat.noise.kinds import NoiseKind

DENOMINATOR = 10**9
"""Shares are fractions of so many parts."""

ROUNDS = 2_000
CLOSE = 1e-9


@dataclass(frozen=True)
class TargetedError:
    """A statistic's error may be at most `target`, in its own unit.

    `parts` are what the noise of each portion adds at the whole promise to its standard error, of
    a statistic of groups times `scale`, the size of a group.
    """

    name: str
    target: float
    scale: float
    parts: Mapping[int, float]

    def moved(self, places: int) -> TargetedError:
        """The same, of portions so many places farther on."""
        return replace(self, parts={place + places: part for place, part in self.parts.items()})

    def error(self, shares: Floats, kind: NoiseKind) -> float:
        """The standard error at these shares, times `scale`."""
        return math.hypot(
            *(part / kind.strength_of(float(shares[place])) for place, part in self.parts.items())
        )


def best_shares(errors: Sequence[float], kind: NoiseKind) -> Floats:
    """The shares of the whole with the least sum of squared errors."""
    portions = np.array(errors, np.float64) ** (1.0 if kind is NoiseKind.NORMAL else 2 / 3)
    return np.asarray(portions / portions.sum())


def needed_shares(wishes: Sequence[TargetedError], portions: int, kind: NoiseKind) -> Floats:
    """The least shares that meet every wish, in units of the promise; their sum may exceed 1."""
    if not wishes:
        return np.zeros(portions)
    squares = np.zeros((len(wishes), portions))
    for row, wish in enumerate(wishes):
        for place, part in wish.parts.items():
            squares[row, place] = (part / (wish.target * wish.scale)) ** 2
    power = 1 if kind is NoiseKind.NORMAL else 2
    prices = np.ones(len(wishes))
    used = squares.any(axis=0)
    shares = np.zeros(portions)
    for _ in range(ROUNDS):
        shares[used] = (prices @ squares[:, used]) ** (1 / (power + 1))
        missed = (squares[:, used] / shares[used] ** power).sum(axis=1)
        shares *= float(missed.max()) ** (1 / power)
        relative = missed / missed.max()
        if (np.abs(relative - 1) * (prices > CLOSE * prices.max())).max() < CLOSE:
            break
        prices = prices * relative
    return shares


def as_fractions(shares: Sequence[float]) -> list[Fraction]:
    """Exact shares, rounded down, so that they never add up to more than was meant."""
    return [Fraction(math.floor(share * DENOMINATOR), DENOMINATOR) for share in shares]
