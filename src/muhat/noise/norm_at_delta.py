"""The noise of the ball, measured by its own δ: (ε, δ)-private although it is purely more than ε.

Noise z in R^d of density ∝ exp(−‖z‖₂), moved by σ: the loss at z = r·u is √(r² − 2rσc + σ²) − r, c
the cosine of the angle between u and the move. It is σ at most, but in many dimensions that takes
a rare direction: δ(σ) = E(1 − e^{ε − loss})₊ is tiny for σ well above ε. r is a Gamma(d) number and
c has a density ∝ (1 − c²)^{(d−3)/2}, independent of r; the loss falls in both. So the value at the
lower ends of every cell of a grid, times an upper bound on the chance of the cell, adds up to an
upper bound on δ. Chances of r are rational, and all else is + − × ÷ √ of floats with a proved
error. Proof: docs/proofs/norms.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.enclosures import falling_exponential
from muhat.noise.euclidean_norm import EuclideanNorm
from muhat.noise.kinds import Strength
from muhat.noise.law import Integers
from muhat.privacy import Privacy, as_typed
from muhat.privacy.rounding import float_at_least, float_at_most

FEWEST, MOST = 4, 64
"""Dimensions in which it gains: below, losses near the largest one are too likely."""

_RADII, _ANGLES, _REST = 256, 512, 32
_PRECISION = 512
_SAFE = 1 + 1e-8
_TINY = 1e-290
_LOSS_ERROR = 1e-11
"""Above all that roundings take from a sum, what is too small for floats, and from a loss."""

_PI = Fraction(314159265358979, 10**14)  # rounded down


@dataclass(frozen=True)
class NormAtDelta(EuclideanNorm, Plain, keys=("name", "dim")):
    """Density ∝ exp(−‖z‖₂) in R^dim, which keeps points (ε, δ) with less of it than pure ε takes.

    >>> from muhat.privacy import ApproxDP
    >>> law, promise = NormAtDelta(16), ApproxDP(epsilon=1.0, delta=1e-6)
    >>> law.keeps(promise, Fraction(12, 10) * law.unit), EuclideanNorm().keeps(promise, law.unit)
    (True, True)
    """

    dim: int

    name = "norm-at-delta"

    def __post_init__(self) -> None:
        if not FEWEST <= self.dim <= MOST:
            raise InvalidInput(f"is known for {FEWEST} to {MOST} dimensions", parameter="dim")

    @property
    def most_rows(self) -> int:
        """Its own dimension."""
        return self.dim

    def sample(self, dim: int) -> Integers:
        if dim != self.dim:
            raise AssertionError("what the law keeps is proved for its own dimension")
        return super().sample(dim)

    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """As pure noise, or δ(moved) ≤ δ by upper sums."""
        if super().keeps(promise, moved):
            return True
        if isinstance(promise, Strength) or promise.point is None or moved < 0:
            return False
        epsilon, delta = map(as_typed, promise.point)
        return Fraction(delta_at_most(self.dim, moved / self.unit, epsilon)) <= delta


def delta_at_most(dim: int, moved: Fraction, epsilon: Fraction, coarse: int = 1) -> float:
    """An upper bound on δ at ε if the noise is moved by so much, in its own scale; 1 if too far.

    With so many times fewer cells each way it is a little more.
    """
    if moved <= epsilon:
        return 0.0
    if moved > 64 or epsilon < Fraction(1, 1000):
        return 1.0
    far, near = float_at_least(moved), float_at_most(epsilon)
    radii, chances = _radii(dim, _RADII // coarse)
    # Where the loss may pass ε for a radius of d/4 or more: a fine grid; a coarse one up to c = 0.
    r = dim / 4
    least = (r * r + far * far - (r + near) ** 2) / (2 * r * far)
    cut = min(max(least, -1.0), -1e-3)
    cosines = np.concatenate(
        [
            np.linspace(-1.0, cut, _ANGLES // coarse, endpoint=False),
            np.linspace(cut, 0.0, _REST + 1),
        ]
    )
    # The density grows up to c = 0, where the upper end of a cell bounds it; all beyond is a cell.
    densities = _power((1 - cosines[1:]) * (1 + cosines[1:]), dim - 3)
    sides = np.diff(cosines) * densities / float_at_most(_whole(dim))
    sides = np.append(sides, 0.5)
    total = 0.0
    for radius, chance in zip(radii, chances, strict=True):
        if chance > 0:
            total += chance * float(np.sum(sides * _lost(radius, cosines, far, near)))
    return total * _SAFE + _TINY


def _lost(radius: float, cosines: Floats, moved: float, epsilon: float) -> Floats:
    """At least (1 − e^{ε − loss})₊, by a Taylor polynomial that is above 1 − e^−t for t ≥ 0."""
    loss = np.sqrt(radius * radius - 2 * radius * moved * cosines + moved * moved) - radius
    t = np.maximum(loss - epsilon + _LOSS_ERROR, 0.0)
    series = t * (1 - t / 2 * (1 - t / 3 * (1 - t / 4 * (1 - t / 5))))
    return np.where(t < 1, series, 1.0)


def _power(base: Floats, twice: int) -> Floats:
    """base^{twice/2} by multiplications and a root."""
    found = np.sqrt(base) if twice % 2 else np.ones_like(base)
    for _ in range(twice // 2):
        found = found * base
    return found


def _whole(dim: int) -> Fraction:
    """At most ∫(1 − c²)^{(d−3)/2} dc over [−1, 1]."""
    if dim % 2:
        k = (dim - 3) // 2
        return Fraction(2 ** (2 * k + 1) * math.factorial(k) ** 2, math.factorial(2 * k + 1))
    m = (dim - 2) // 2
    return _PI * Fraction(math.factorial(2 * m), 4**m * math.factorial(m) ** 2)


@lru_cache(maxsize=64)
def _radii(dim: int, cells: int) -> tuple[list[float], list[float]]:
    """The lower ends of cells of r, and upper bounds on their chances: the last has no end."""
    step = Fraction(math.ceil(dim + 12 * math.sqrt(dim) + 12), cells)
    step = Fraction(math.ceil(step * 256), 256)
    ends = [step * k for k in range(cells + 1)]
    tails = [_beyond(dim, end) for end in ends]
    highs = [high for _, high in tails]
    lows = [low for low, _ in tails[1:]] + [Fraction(0)]
    chances = [float_at_least(high - low) for high, low in zip(highs, lows, strict=True)]
    return [float(end) for end in ends], chances


def _beyond(dim: int, radius: Fraction) -> tuple[Fraction, Fraction]:
    """Encloses P(r ≥ radius) = e^−radius·Σ_{k<d} radius^k/k!."""
    low, high = falling_exponential(radius, _PRECISION)
    total = term = Fraction(1)
    for k in range(1, dim):
        term = term * radius / k
        total += term
    return low * total, min(high * total, Fraction(1))


@lru_cache(maxsize=64)
def strength_at_delta(dim: int, promise: Privacy) -> Fraction | None:
    """σ, about as far as the noise may be moved in its own scale; None if no δ is allowed."""
    if promise.point is None or not FEWEST <= dim <= MOST:
        return None
    epsilon, delta = map(as_typed, promise.point)
    if delta == 0 or epsilon > 16:
        return None
    low, high, coarse = epsilon, 4 * epsilon + 4, 4
    for step in range(24):
        if step == 16:
            # The coarse grid is a little above: what it allows is the least.
            high, coarse = low * Fraction(21, 20), 1
        middle = (low + high) / 2
        fits = Fraction(delta_at_most(dim, middle, epsilon, coarse)) <= delta
        low, high = (middle, high) if fits else (low, middle)
    kept = Fraction(delta_at_most(dim, low, epsilon)) <= delta
    return low if low > epsilon and kept else None
