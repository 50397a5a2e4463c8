"""How many public vectors a message chooses from, and how many of them are favoured.

A device favours the k of M vectors that are nearest to its record's direction y: each of them is
sent with probability g/Z, each other with 1/Z, Z = M + (g − 1)k, and g is as near to e^ε as a
rational should be. The vector sent has the mean γ·y,

    γ = (g − 1)/Z·E[the sum of the k largest inner products],

so that v/γ estimates y without bias and with the variance 1/γ² − 1. As M grows with k/M the
part of the best cap, γ tends to the largest possible one. docs/proofs/local.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.bounds.local import cap_share, largest_shrinkage
from muhat.errors import InvalidInput
from muhat.noise.enclosures import falling_exponential
from muhat.privacy.rounding import as_typed
from muhat.protocols.randomizers.codebook import Codebook

LEAST_EPSILON = 1e-9
LARGEST_EPSILON = 64
"""A device that promises more promises no less than this: nothing is gained above it."""

ENOUGH = 0.01
"""A larger codebook is not worth its time once its variance is so close to the least."""

LEAST_SIZE = 32
POLYGON = 256
"""Corners cost nothing: as many as one byte tells apart."""

LARGEST_SIZE = 1 << 12
MOST_NUMBERS = 1 << 19
"""Coordinates of all vectors of a message, unless dim alone asks for more."""

PANELS = 16
NODES = 32
"""Of every panel; there are more panels for more vectors, whose number above t turns sharper."""


class CapMoments(NamedTuple):
    """What the inner product s = ⟨v, y⟩ of the vector sent with a unit y has on average.

    Attributes:
        shrinkage: E s = γ.
        second: E s².
    """

    shrinkage: float
    second: float


@lru_cache(maxsize=256)
def gain(epsilon: float) -> Fraction:
    """g: at most e^ε, and less by no more than one part in 2^60, as is g − 1.

    >>> float(gain(1.0))
    2.718281828459045
    """
    amount = as_typed(epsilon)
    if not amount >= as_typed(LEAST_EPSILON):
        raise InvalidInput(
            f"must be at least {LEAST_EPSILON:g}", parameter="epsilon", value=f"{epsilon:g}"
        )
    amount = min(amount, Fraction(LARGEST_EPSILON))
    # 1 − e^-ε is at least ε/2 or ½, and e^-ε at least 2^(−1.5ε).
    precision = 66 + max(0, math.ceil(-math.log2(amount))) + math.ceil(1.5 * amount)
    return 1 / falling_exponential(amount, precision)[1]


def moments(codebook: Codebook, cap: int, epsilon: float) -> CapMoments:
    """γ and E s², right to one part in 10¹⁰."""
    g, size = gain(epsilon), codebook.size
    total = size + (g - 1) * cap
    first, second = nearest_sums(codebook, cap)
    # All vectors together have no mean, and the second moment size/dim.
    rest = float(size / total) / codebook.dim
    favour = float((g - 1) / total)
    return CapMoments(favour * first, rest + favour * second)


def excess_variance(codebook: Codebook, cap: int, epsilon: float) -> float:
    """How much more variance than the least possible: 0.01 is one per cent.

    For records on the sphere, against (1/γ*² − 1) of `muhat.bounds.local`.

    >>> round(excess_variance(Codebook(dim=8, size=128), 46, 1.0), 3)
    0.006
    """
    found = moments(codebook, cap, epsilon).shrinkage
    best = largest_shrinkage(codebook.dim, epsilon)
    # (1/f² − 1)/(1/b² − 1) − 1 = (b² − f²)/(f²(1 − b²))
    gap = (best - found) * (best + found)
    return max(gap, 0.0) / (found * found * (1 - best) * (1 + best)) if best < 1 else math.inf


@lru_cache(maxsize=256)
def best_cap(dim: int, epsilon: float) -> tuple[Codebook, int]:
    """The smallest codebook within one per cent of the least variance, and its best cap.

    At most 4096 vectors and about half a million coordinates, so that a device takes a few
    milliseconds: the one per cent may be missed above ε = 4 in many dimensions, and above ε = 8.

    >>> best_cap(8, 1.0)
    (Codebook(dim=8, size=128), 46)
    """
    if dim == 1:
        return Codebook(dim=1, size=2), 1
    most = min(LARGEST_SIZE, max(LEAST_SIZE, MOST_NUMBERS // dim))
    part = cap_share(dim, min(largest_shrinkage(dim, epsilon), 1 - 1e-12))
    size = POLYGON if dim == 2 else LEAST_SIZE
    while True:
        codebook = Codebook(dim=dim, size=size)
        cap = _best_count(codebook, part, epsilon)
        if 2 * size > most or excess_variance(codebook, cap, epsilon) <= ENOUGH:
            return codebook, cap
        size *= 2


def _best_count(codebook: Codebook, part: float, epsilon: float) -> int:
    """Uphill from the part of the best cap; γ rises and then falls with k."""
    half = codebook.size // 2

    def shrinkage(count: int) -> float:
        return moments(codebook, count, epsilon).shrinkage if 1 <= count <= half else 0.0

    count = min(max(round(part * codebook.size), 1), half)
    value = shrinkage(count)
    for step in (-1, 1):
        while (next_value := shrinkage(count + step)) > value:
            count, value = count + step, next_value
    return count


@lru_cache(maxsize=4096)
def nearest_sums(codebook: Codebook, count: int) -> tuple[float, float]:
    """E of the sums of ⟨v, y⟩ and of ⟨v, y⟩² over the `count` nearest vectors, for a unit y.

    Polygon: over a random turn every place within count/2 steps of y is as likely as any other.
    Pairs: of the half·2 vectors, N_t are above t, a binomial number, and the sums are the
    integrals of E min(count, N_t) dt and of E min(count, N_t) dt².
    """
    dim, size = codebook.dim, codebook.size
    if dim == 1:
        return 1.0, 1.0
    if dim == 2:
        angle = math.pi * count / size
        wide = size / (4 * math.pi) * math.sin(2 * angle)
        return size / math.pi * math.sin(angle), count / 2 + wide
    angles, weights = _nodes(dim, size // 2)
    heights = np.sin(angles)
    number = _expected_minimum(size // 2, count, _tails(dim, heights))
    steps = number * weights * np.cos(angles)
    return math.fsum(steps.tolist()), 2 * math.fsum((steps * heights).tolist())


def _tails(dim: int, heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(|⟨v, y⟩| > t)."""
    from scipy.special import betaincc

    return np.asarray(betaincc(0.5, (dim - 1) / 2, heights**2))


def _nodes(dim: int, half: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss and Legendre's, in panels of φ, t = sin φ, up to where no vector is expected."""
    from scipy.special import betainccinv

    square = float(betainccinv(0.5, (dim - 1) / 2, 1e-17 / half))
    panels = PANELS * math.ceil(math.sqrt(half / 128))
    edges = np.linspace(0.0, math.asin(math.sqrt(square)), panels + 1)
    points, weights = np.polynomial.legendre.leggauss(NODES)
    width = edges[1] / 2
    angles = (edges[:-1, None] + width * (points + 1)).ravel()
    return angles, np.tile(width * weights, panels)


def _expected_minimum(half: int, count: int, tails: NDArray[np.float64]) -> NDArray[np.float64]:
    """E min(count, N) for binomial N of `half` trials: E[N; N < count] + count·P(N ≥ count)."""
    from scipy.special import betainc

    many = betainc(count, half - count + 1, tails)
    if count == 1:
        return np.asarray(many)
    few = betainc(half - count + 1, count - 1, 1 - tails)
    return np.asarray(half * tails * few + count * many)
