"""The least second moment of noise that hides a shift, and of whatever any mechanism errs.

Noise Z of one law hides a shift of 1 and of −1 if Z and Z ± 1 look alike. Functions λ that test
this, weighted by a dual solution, bound E Z² from below:

    ε-DP      E Z² ≥ V = 1/(2sinh²(ε/2)), which two-sided geometric noise attains,
    μ-GDP     E Z² ≥ c²/μ², 1 − c = 2e−8 at μ = 1 and 0.03 at μ = 2,
    (ε, δ)    E Z² ≥ V_T − 2δ·max λ, V_T a bound on E min(|Z|, T)²; the best T is searched,
    ρ-zCDP    E Z² ≥ c²/2ρ, 1 − c = 0.004 at ρ = ½ and 0.02 at ρ = 1 (`entropy`),
    others    E Z² ≥ ¼(1/κ² − 1), the pair inequality of `divergences`.

A mechanism that is not additive noise, nor unbiased, is tried on datasets with y = 0 … m copies of
one record in place of another (or added): on the average over y its errors hide the shift as noise
does, but for the two ends, which cost a share of about 1/m. So the same number, a little less, is
below the error of any mechanism on one of these datasets. Proofs: docs/proofs/steps.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from muhat.bounds.divergences import log_group_approx, log_one_sided_pure, pair
from muhat.bounds.entropy import log_entropy_square
from muhat.privacy import Privacy
from muhat.privacy.rounding import float_at_least

LARGEST_MU = 3.2
"""Above it the tests on half-lines say less than the pair inequality."""

MARGIN = 1e-9
"""Far above the rounding of any number here, relative to it."""

CELLS = 64
"""Of the integral for normal noise, which is too large by less than a part in 50."""

LEAST_EPSILON, LARGEST_EPSILON, MOST_STEPS = 1e-3, 500.0, 1 << 15
"""Where a reach is searched for (ε, δ)."""


ADDITIVE = "The law of the noise is the same for all datasets; it may be biased."


class Floor(NamedTuple):
    """ln of a number below E Z² for a shift of 1, and the theorem that says so."""

    log_square: float
    theorem: str


def noise_floor(privacy: Privacy) -> Floor:
    """What additive noise errs at least."""
    return max(_floors(privacy, math.inf))


@lru_cache(maxsize=4096)
def any_floor(privacy: Privacy, copies: float) -> Floor | None:
    """What any mechanism errs at least on some dataset, of `copies` + 1 that lie in a row.

    None where nothing is left of it.
    """
    return max(_floors(privacy, copies), default=None) if copies >= 1 else None


def _floors(privacy: Privacy, copies: float) -> list[Floor]:
    epsilon, mu = privacy.implied_epsilon, privacy.implied_mu
    if epsilon is not None:
        return _known([(_pure(epsilon, copies), "B11")])
    pairs = _pairs(-pair(privacy), copies)
    if privacy.point is not None:
        if math.isinf(copies):
            # A law that hides a shift hides k of them, whether there are k records or not.
            pairs = -log_group_approx(*privacy.point)
        return _known([(_approximate(*privacy.point, copies), "B11, (ε, δ)"), (pairs, "B5")])
    found = [(pairs, f"B5 for {privacy.spoken}")]
    if mu is not None:
        found.append((_normal(mu, copies), "B11, GDP"))
    elif (first := privacy.renyi(Fraction(1))) is not None:
        groups = privacy.implied_rho is not None
        entropy = log_entropy_square(float_at_least(first), copies, groups=groups)
        found.append((entropy, f"B11, {privacy.spoken}"))
    return _known(found)


def _known(found: list[tuple[float | None, str]]) -> list[Floor]:
    return [Floor(number, theorem) for number, theorem in found if number is not None]


def _share(kept: float) -> float | None:
    """The logarithm of what the ends of a row leave."""
    return math.log(kept) if kept > 0 else None


def _sum(logarithm: float, share: float | None) -> float | None:
    return None if share is None else logarithm + share


def _pairs(log_square: float, copies: float) -> float | None:
    """ln R·m²/((m + 1)(m + 4R)), R = ¼(1/κ² − 1)."""
    if math.isinf(copies):
        return log_square
    # 1 + 4R/m, for an R of any size
    ends = max(0.0, log_square + math.log(4 / copies))
    ends += math.log(math.exp(-ends) + math.exp(log_square + math.log(4 / copies) - ends))
    return log_square + math.log(copies / (copies + 1)) - ends


def _pure(epsilon: float, copies: float) -> float | None:
    """ln V = ln 2b/(1 − b)², times (m − √V)/(m + 1 + 2b/(1 − b) + √V), b = e^−ε."""
    log_square = math.log(2) - log_one_sided_pure(epsilon)
    if math.isinf(copies):
        return log_square
    root = math.exp(log_square / 2)
    odds = 2 * math.exp(-epsilon) / -math.expm1(-epsilon)
    return _sum(log_square, _share((copies - root) / (copies + 1 + odds + root)))


# --- normal noise ----------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _normal(mu: float, copies: float) -> float | None:
    """ln of c²/μ², less what the ends of a row cost.

    They cost 2∫ν/(m + 1), or with more weight on the ends √V·(√V·(m + 1) − ν − ν/√V) over
    m + 1 + ν/√V, ν the largest weight of a test.
    """
    if mu > LARGEST_MU:
        return None
    lost = normal_loss(mu)
    if lost >= 1:
        return None
    log_square = math.log1p(-lost) - 2 * math.log(mu)
    if math.isinf(copies):
        return log_square
    if mu < 1e-60:
        return None
    rows = copies + 1
    root = math.exp(log_square / 2)
    largest = math.exp(mu * mu / 8) * (2 / mu + 2) / (mu * root)  # ν/√V
    weighted = (rows - largest - largest / root) / (rows + largest)
    share = weighted
    if mu > 0.05:
        share = max(share, 1 - 2 * total_weight(mu) / (rows * root * root))
    return _sum(log_square, _share(share * (1 - MARGIN)))


def normal_loss(mu: float) -> float:
    """1 − c², rounded up: 2∫ erfcx(μx/√2)·(−θ'(x)) dx over [0, ½], θ(x) = Σ_j e^{−μ²(x+j)²/2}.

    erfcx falls and so does θ, which is (√2π/μ)·(1 + 2Σ_k q^{k²}·cos 2πkx), q = e^{−2π²/μ²}.

    >>> normal_loss(1.0) < 5e-8, round(normal_loss(2.0), 3)
    (True, 0.052)
    """
    if mu < 0.2:
        return 1e-200
    from scipy.special import erfcx

    x = np.arange(CELLS) / (2 * CELLS)
    k = np.arange(1, 12)[:, None]
    powers = np.exp(-2 * (math.pi * k / mu) ** 2)
    halves = np.sin(math.pi * k * (2 * x + 1 / (2 * CELLS))) * np.sin(math.pi * k / (2 * CELLS))
    falls = 4 * math.sqrt(2 * math.pi) / mu * np.sum(powers * halves, axis=0)
    return 2 * float(np.sum(erfcx(mu * x / math.sqrt(2)) * falls)) * (1 + MARGIN)


def total_weight(mu: float) -> float:
    """∫ν, rounded up: Σ_j e^{−μ²j(j−1)/2}·2(1/(μ²j)² + (j − ½)/(μ²j)).

    >>> round(2 * total_weight(1.0), 2)
    7.67
    """
    j = np.arange(1.0, math.ceil(10 / mu) + 3)
    slope = mu * mu * j
    terms = np.exp(-slope * (j - 1) / 2) * 2 * (1 / slope**2 + (j - 0.5) / slope)
    return float(np.sum(terms)) * (1 + MARGIN)


# --- (ε, δ) ----------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _approximate(epsilon: float, delta: float, copies: float) -> float | None:
    """ln of V_T − 2δΛ for the best T = N + ½, less what the ends of a row cost.

    V_T is the bound on E min(|Z|, T)², whose tests are bounded: λ(x) = Σ_j b^j·(min(x+j, T)² − V_T)
    rises from x = −½, where it may not be negative, to Λ = b/(1 − b)·(T² − V_T).
    """
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        return None
    b = math.exp(-epsilon) * (1 - 1e-14)
    odds = b / (1 - b)
    j = np.arange(1.0, min(MOST_STEPS, math.ceil((6 - math.log(delta)) / epsilon) + 2))
    weights = np.exp(j * math.log(b))
    rest = weights * odds  # Σ of b^i over i > j
    reach = j + 0.5
    square = 2 * (np.cumsum(weights * j * j) + rest * reach**2) * (1 - b) / (1 + b)
    start = np.cumsum(weights * (j - 0.5) ** 2) + rest * reach**2 - odds * square
    largest = odds * (reach**2 - square)
    if math.isinf(copies):
        found = square - 2 * delta * largest
    else:
        inner = (copies + 1) * square - 2 * copies * delta * largest
        # At the ends λ is at most `largest`, and also at most what it would be without a T.
        root = math.sqrt(2 * b)
        ends = odds * ((root + 1 + b) / (1 - b) ** 2 - square)
        weighted = (inner - 2 * ends) / (copies + 1 + 2 * odds * (1 + 1 / root))
        found = np.maximum(weighted, (inner - 2 * largest) / (copies + 1))
    # Rounding is far below this share of either term of `start`.
    best = float(np.max(found, where=start > 1e-11 * odds * square, initial=0.0)) * (1 - MARGIN)
    return math.log(best) if best > 0 else None
