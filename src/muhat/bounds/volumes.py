"""The least pure noise for a convex body, by its volume (B12).

Additive noise that hides every shift in a symmetric convex body D has a density whose level sets
grow: {p ≥ t} + D lies in {p ≥ bt}, b = e^−ε. By Brunn and Minkowski their volumes grow at least as
those of balls do, and of all sets of a volume the balls of a norm have the least second moment:

    E‖Z‖² ≥ (vol D/vol B)^{2/d}·s²,
    s² = d/(d + 2)·min over t in [0, 1] of Σ_j b^j(t + j)^{d+2}/Σ_j b^j(t + j)^d,

with the unit ball B of the norm. Where D is such a ball, noise whose density falls by b at each of
its multiples t + j attains it. Proof: docs/proofs/steps.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from muhat._arrays import Floats
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.steps import ADDITIVE
from muhat.bounds.unbiased import about
from muhat.domains import Domain
from muhat.domains.norms import log_ball_volume
from muhat.privacy import Privacy

LARGEST_SEARCHED = 64
"""The dimension up to which t is searched; above, the bound for all t together is as good."""

LEAST_EPSILON, LARGEST_EPSILON = 0.05, 60.0
LARGEST_LOGARITHM = 709.0
NODES, MORE_NODES = 128, 1024
"""Where t is searched; for a large ε, where the sum bends more and has few terms, more of them."""

LOST = tuple(1e-6 * 2**k for k in range(18))
"""What the bound may lose to the nodes: the least of these that will do."""
_OURS = "docs/proofs/steps.md"


def volume_bound(
    domain: Domain,
    size: float,
    given: str,
    *,
    privacy: Privacy,
    p: float = 2,
    weights: Floats | None = None,
    contributions: int = 1,
) -> tuple[LowerBound, ...]:
    """What additive noise errs at least if neighbours move answers by `size`·(K − K)/2; or ().

    (E‖weights·Z‖_p²)^½, for pure privacy and domains whose volume is known; in a flat one p is 2.
    """
    half = domain.half_volume(np.ones(domain.dim) if weights is None else weights)
    if privacy.implied_epsilon is None or half is None:
        return ()
    dim, log_volume = half
    if not dim or (dim < domain.dim and p != 2):
        return ()
    spread = log_volume - log_ball_volume(dim, p)
    log_size = spread / dim + math.log(size) + math.log(contributions)
    log_value = log_size + log_radial_square(dim, privacy.implied_epsilon) / 2 - 1e-11
    value = math.exp(min(log_value, LARGEST_LOGARITHM))
    assumptions = (given, *about(contributions), ADDITIVE, "Records may be any point of the set.")
    promise = privacy.describe()
    return (LowerBound(value, "additive", "every", "B12", "derived", assumptions, promise, _OURS),)


@lru_cache(maxsize=1024)
def log_radial_square(dim: int, epsilon: float) -> float:
    """ln s², rounded down.

    Noise that hides a body at ε hides k times the body at kε, so a small ε is taken k times.

    >>> round(math.exp(log_radial_square(10, 1.0)), 3)  # d(d + 1)/ε² of the ball's own K-norm noise
    110.0
    >>> round(math.exp(log_radial_square(1, 8.0)), 5)  # steps are better: 2/ε² is 0.03125
    0.00338
    """
    group = max(1, math.floor(min(LEAST_EPSILON / epsilon, 1e300)))
    loss = group * epsilon
    found = _by_waves(dim, loss)
    if _waves(dim, loss) > 1e-7 and dim <= LARGEST_SEARCHED and loss < LARGEST_EPSILON:
        found = max(found, _by_search(dim, loss))
    return found + 2 * math.log(group) - 1e-9


def _by_waves(dim: int, epsilon: float) -> float:
    """ln of d(d + 1)/ε²·(1 − η_{d+2})/(1 + η_d), η_k = 2Σ_m (1 + (2πm/ε)²)^{−(k+1)/2}."""
    most, least = _waves(dim, epsilon), _waves(dim + 2, epsilon)
    if least >= 1:
        return -math.inf
    rest = math.log1p(-least) - math.log1p(most)
    return math.log(dim) + math.log1p(dim) - 2 * math.log(epsilon) + rest


def _waves(power: int, epsilon: float) -> float:
    """η_k, rounded up: what the sum over the multiples differs from the integral, at most."""
    wave = 2 * math.pi * np.arange(1, 65) / epsilon
    ends = (power + 1) / 2
    # Beyond the 64th: ∫ of (2πm/ε)^{−(k+1)}.
    log_rest = -(power + 1) * math.log(2 * math.pi / epsilon) - power * math.log(64.0)
    if log_rest > 0:
        return math.inf
    rest = math.exp(log_rest) / power
    return (2 * float(np.sum(np.exp(-ends * np.log1p(wave * wave)))) + 2 * rest) * (1 + 1e-9)


def _by_search(dim: int, epsilon: float) -> float:
    """ln of d/(d + 2) times a λ such that Σ b^j((t+j)^{d+2} − λ(t+j)^d) ≥ 0 for all t in [0, 1].

    Between two nodes the sum is above its chord less w²/8 of its largest second derivative.
    """
    steps = math.ceil((dim + 2 + 12 * math.sqrt(dim + 2) + 60) / epsilon) + 2
    nodes = np.linspace(0, 1, NODES + 1)
    if epsilon > 2:  # The best t is of the order of e^{−ε/(d+2)}.
        start = 0.05 * math.exp(-epsilon / (dim + 2))
        nodes = np.union1d(nodes, np.geomspace(start, 1, MORE_NODES))
    with np.errstate(divide="ignore"):
        logs = np.log(nodes[:, None] + np.arange(steps))
    falls = -epsilon * np.arange(steps)
    peak = float(np.max(falls + (dim + 2) * logs[-1]))

    def sums(power: int) -> Floats:
        if power == 0:
            return np.full(len(nodes), math.exp(-peak) / -math.expm1(-epsilon))
        return np.asarray(np.sum(np.exp(falls + power * logs - peak), axis=1))

    high, low = sums(dim + 2), sums(dim)
    curved = dim * (dim - 1) * sums(dim - 2) if dim > 1 else 0.0 * low
    with np.errstate(divide="ignore"):
        ratio = float(np.min(np.where(low > 0, high / np.maximum(low, 1e-300), math.inf)))
    for lost in LOST:
        level = ratio * (1 - lost)
        values = high - level * low
        bend = (dim + 2) * (dim + 1) * low + level * curved
        room = np.minimum(values[:-1], values[1:]) - bend[1:] * np.diff(nodes) ** 2 / 8
        if float(np.min(room / (high[1:] + level * low[1:]))) > 1e-11:
            return math.log(level) + math.log(dim / (dim + 2))
    return -math.inf
