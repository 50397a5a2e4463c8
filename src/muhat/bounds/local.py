"""What nobody can beat in the local model, where every device hides its own record.

The transcript of n devices, however often they are asked and whatever they were told before, has
a likelihood that is a product over the devices. Hence what it tells about one record is
uncorrelated with what it tells about another, and the errors are of order 1/√n.

B10 is about every dataset: Γ_p(K − K)/√(nJ) with the divergence J of the central bounds. On the
sphere more is known for pure privacy: an unbiased mean has a mean square error of at least
(1/γ² − 1)/n on some dataset, where γ is the largest length of the mean of a law on the sphere
whose density varies by e^ε at most. Asi, Feldman and Talwar, "Optimal Algorithms for Mean
Estimation under Local Differential Privacy", 2022, prove it for devices that are asked once.
Of one number the least is known for every ε, up to a part in a thousand (`line_messages.py`).
Proofs: docs/proofs/local.md.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache

import numpy as np

from muhat import _check
from muhat.bounds.divergences import log_two_sided_approx, pair, points, two_sided
from muhat.bounds.line_messages import line_floor
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.unbiased import contact_pairs, quotient
from muhat.domains import Domain
from muhat.domains.vectors import Vector
from muhat.ellipsoids import smallest_ellipsoid
from muhat.privacy import Privacy

_OURS = "docs/proofs/local.md"
_AFT22 = "Asi, Feldman and Talwar 2022, arXiv:2205.02466"
_LOCAL = "Every device randomises its own record; n is public."
_INTERACTIVE = "Devices may be asked in any order, any number of times; the promise is for all."
_ONCE = "Every device sends one message and is told nothing of the others'."
_UNBIASED = "The estimate is unbiased for the mean of every dataset of records in the domain."

MOST_CORNERS = 1024
"""Records that are one of more corners are not looked at."""

LARGEST_EPSILON = 64.0

_SHRINKAGE_ERROR = 1e-10
"""Far above the relative error of `largest_shrinkage` in floats."""


def local(domain: Domain, n: int, privacy: Privacy, p: float = 2) -> tuple[LowerBound, ...]:
    """What no unbiased mean of n devices' records can beat; (E‖answer − mean‖_p²)^½.

    >>> from muhat.domains import Ball
    >>> from muhat.privacy import PureDP
    >>> every, some, _ = local(Ball(1.0, dim=8), 10_000, PureDP(epsilon=1.0))
    >>> every.sentence()
    'Every unbiased local 1-DP (pure) mechanism has error at least 0.05056 on every dataset.'
    >>> some.sentence()
    'Every unbiased local 1-DP (pure) mechanism has error at least 0.06862 on some dataset.'
    """
    n, p = _check.count("n", n), _check.norm_order(p)
    promise, given = f"local {privacy.describe()}", (_LOCAL, _INTERACTIVE, _UNBIASED)
    two = two_sided(privacy)
    if two is None:
        width = 2 * float(domain.half_widths.max()) * (1 - 1e-12) / math.sqrt(n)
        value, theorem = max(
            (quotient(width, pair(privacy)), "B10 by coins, one coordinate"),
            (_mixed_error(domain, privacy, p) / math.sqrt(n), "B10 by draws from contact points"),
        )
        return (LowerBound(value, "unbiased", "some", theorem, "derived", given, promise, _OURS),)
    width = smallest_ellipsoid(domain, p).floor / math.sqrt(n)
    value = quotient(width, two)
    every = LowerBound(value, "unbiased", "every", "B10", "derived", given, promise, _OURS)
    epsilon = privacy.implied_epsilon
    if epsilon is None:
        return (every,)
    found, lower = [every], 1 - 1e-12
    value = corner_error(domain, epsilon, p) / math.sqrt(n) * lower
    if value > 0:
        theorem = "B10 on corners"
        found += [LowerBound(value, "unbiased", "some", theorem, "derived", given, promise, _OURS)]
    if domain.dim == 1:
        value = float(domain.half_widths[0]) * math.sqrt(line_floor(epsilon) / n) * lower
        theorem = "B10 on a line"
        found += [LowerBound(value, "unbiased", "some", theorem, "derived", given, promise, _OURS)]
    axes = domain.inner_axes()
    if axes is None:
        return tuple(found)
    value, theorem = (
        _sphere_error(axes, epsilon, p, domain.dim) / math.sqrt(n) * lower,
        "B10 on a sphere",
    )
    found += [LowerBound(value, "unbiased", "some", theorem, "derived", given, promise, _OURS)]
    if axes.max() == axes.min() and p == 2:
        theorem, given = "AFT22, PrivUnit is optimal", (_LOCAL, _ONCE, _UNBIASED)
        found += [LowerBound(value, "unbiased", "some", theorem, "paper", given, promise, _AFT22)]
    return tuple(found)


def _mixed_error(domain: Domain, privacy: Privacy, p: float) -> float:
    """(Γ_p(K − K)²/G − R²)^½, R the farthest record from a centre, G = J + (8e^ε + 6 + 4N)δ."""
    body = smallest_ellipsoid(domain, p)
    pairs = contact_pairs(body)
    log_square = min(log_two_sided_approx(*point, pairs=pairs) for point in points(privacy))
    box = float(np.linalg.norm(domain.half_widths, p)) * (1 + 1e-9)
    far = min(domain.farthest(np.ones(domain.dim)), box)
    whole = quotient(body.floor, log_square)
    share = far / whole if whole > 0 else 1.0
    return whole * math.sqrt(max((1 - share) * (1 + share) - 1e-14, 0.0)) * (1 - 1e-12)


@lru_cache(maxsize=1024)
def largest_shrinkage(dim: int, epsilon: float) -> float:
    """γ*: how far from 0 a law on the unit sphere can have its mean, if its density varies by e^ε.

    The density is e^ε times larger on a cap {⟨v, y⟩ ≥ t} than elsewhere, and the best t is γ*
    itself: the root of (e^ε − 1)·E(⟨v, y⟩ − t)₊ = t, v uniform. Right to one part in 10¹²; in
    one dimension tanh(ε/2).

    >>> round(largest_shrinkage(3, 2.0), 6)  # tanh(ε/4) in three dimensions
    0.462117
    """
    dim, epsilon = _check.count("dim", dim), _check.positive("epsilon", epsilon)
    if dim == 1:
        return math.tanh(epsilon / 2)
    from scipy.optimize import brentq

    # 1/(e^ε − 1), for an ε of any size
    share = math.exp(-epsilon) / -math.expm1(-epsilon)
    # The excess E(s − t)₊ − t·share falls with t; where E(s)₊ = t·share it is not positive.
    start = _mean_above(dim, 0.0)
    high = start / share if start < share else 1.0

    def excess(x: float) -> float:
        return _mean_above(dim, x * high) - x * high * share

    return high * float(brentq(excess, 0, 1, xtol=1e-300, rtol=1e-14))


def cap_share(dim: int, height: float) -> float:
    """P(⟨v, y⟩ ≥ t) for a uniform unit vector v, dim ≥ 2 and t in [0, 1]."""
    from scipy.special import betainc, betaincc

    # The smaller of t² and 1 − t² keeps its digits.
    if height < 0.5:
        return float(betaincc(0.5, (dim - 1) / 2, height * height)) / 2
    return float(betainc((dim - 1) / 2, 0.5, (1 - height) * (1 + height))) / 2


def _mean_above(dim: int, height: float) -> float:
    """E(⟨v, y⟩ − t)₊ for a uniform unit vector v."""
    # E max(⟨v, y⟩, 0) = Γ(d/2)/(2√π·Γ((d+1)/2)), times (1 − t²)^{(d−1)/2} above t.
    power = (dim - 1) / 2
    half_mean = _gamma_ratio(power) / (math.sqrt(math.pi) * (dim - 1))
    if height >= 1:
        return 0.0
    above = half_mean * math.exp(power * (math.log1p(-height) + math.log1p(height)))
    return above - height * cap_share(dim, height)


def _gamma_ratio(z: float) -> float:
    """Γ(z + ½)/Γ(z): moved up to where its asymptotic series is exact in floats."""
    ratio = 1.0
    while z < 24:
        ratio *= z / (z + 0.5)
        z += 1
    x = 1 / (z * z)
    series = -(1 / 8 - x * (1 / 192 - x * (1 / 640 - x * (17 / 14336 - x * 31 / 18432)))) / z
    return ratio * math.sqrt(z) * math.exp(series)


def _sphere_error(axes: Vector, epsilon: float, p: float, dim: int) -> float:
    """The largest root of (Σℓ/sγ)² − Σℓ²/s over the s longest half-axes ℓ, times d^{1/p − 1/2}.

    ‖z‖_p is at least d^{1/p − 1/2}·‖z‖₂.
    """
    lengths = np.sort(axes)[::-1]
    lengths = lengths[lengths > 0]
    rank = len(lengths)
    if not rank:
        return 0.0
    scale = float(lengths[0])
    counts = {rank, *(1 << power for power in range(rank.bit_length()) if 1 << power <= rank)}
    if lengths[0] == lengths[-1]:
        counts = {rank}
    best = 0.0
    for count in sorted(counts):
        some = lengths[:count] / scale
        gamma = largest_shrinkage(count, epsilon) * (1 + _SHRINKAGE_ERROR)
        mean = math.fsum(some.tolist()) / count
        square = math.fsum((some**2).tolist()) / count
        # Both are at most 1, so that a tiny γ is the only large number.
        rest = mean * mean - gamma * gamma * square
        best = max(best, math.sqrt(max(rest - 1e-14, 0.0)) / gamma)
    norms = math.pow(dim, (1 / p if p < math.inf else 0.0) - 0.5)
    return min(best * scale * norms, sys.float_info.max)


def corner_error(domain: Domain, epsilon: float, p: float) -> float:
    """√((Σs/m)²/γ² − Σs²/m), s the singular values of the m corners from their mean; 0 if unknown.

    γ² = max over k of k(m − k)h²/(m(m + hk)²), h = e^ε − 1, is the largest Σ(q − 1/m)² of a law q
    on the corners whose probabilities differ by e^ε at most.
    """
    corners = domain.vertices()
    if corners is None or not 2 <= len(corners) <= MOST_CORNERS or epsilon > LARGEST_EPSILON:
        return 0.0
    m = len(corners)
    offsets = corners - corners.mean(axis=0)
    scale = float(np.abs(offsets).max()) or 1.0
    found = np.linalg.svd(offsets / scale, compute_uv=False)
    square = math.fsum((found**2).tolist()) / m
    # Singular values err by less than this, and rounding of corners and their mean is smaller.
    mean = max(math.fsum(found.tolist()) / m - 1e-12 * math.sqrt(square * len(found)), 0.0)
    h = math.expm1(epsilon) * (1 + 1e-12)
    k = np.arange(1, m)
    gamma = float(np.sqrt(np.max(k * (m - k) / m * (h / (m + h * k)) ** 2))) * (1 + 1e-12)
    rest = mean * mean - gamma * gamma * square
    norms = math.pow(domain.dim, (1 / p if p < math.inf else 0.0) - 0.5)
    error = math.sqrt(max(rest - 1e-14, 0.0)) / gamma * scale * norms
    return min(error, sys.float_info.max)
