"""Means of records in a Euclidean ball: what muhat achieves, and what nobody can beat.

The place where pure and approximate privacy part: the error grows like d under pure privacy and
like √d under the others. Constants are explicit where they are proved; where only a rate is known
there is no number. Proofs: docs/proofs/ball.md and bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._plain import Plain
from muhat.bounds.lower_bound import BoundTable, LowerBound, rounded_down
from muhat.bounds.totals import mean
from muhat.domains import Ball
from muhat.privacy import (
    Privacy,
    PureDP,
    check_promise,
    gaussian_mu_squared,
    pure_within,
)
from muhat.privacy.rounding import float_at_least, root_at_least


def packing_error(n: int, dim: int, epsilon: float) -> float:
    """Code words in the unit ball: what no purely private mechanism can beat (B7), rounded down.

    Some dataset has an error E‖answer − mean‖₂ of at least

        max over m ≤ n and D ≤ d of  L·(m/n)·√(D/d)·G/(1 + G),   G = (P_D − 1)·e^{−mε},

    with P_D = ⌈2^d/Σ_{i<D} C(d, i)⌉ words of length d at Hamming distance D (Gilbert and
    Varshamov), and L = 1. Any m and D are valid, the best are searched.
    """
    log_others = _log_packing_sizes(dim)
    # m·G/(1+G) is log-concave in m and best where x = mε solves ln(x − 1) + x = ln(P_D − 1).
    low, high = np.ones(dim), np.maximum(2.0, log_others)
    with np.errstate(divide="ignore"):
        for _ in range(60):
            x = (low + high) / 2
            above = np.log(x - 1) + x > log_others
            low, high = np.where(above, low, x), np.where(above, x, high)
    middle = np.floor(np.minimum(high / epsilon, float(n)))
    best = 0.0
    distances = np.arange(1, dim + 1)
    for offset in (0, 1):
        m = np.clip(middle + offset, 1, n)
        share = np.exp(-np.logaddexp(0, m * epsilon - log_others))
        best = max(best, float(np.max(m / n * np.sqrt(distances / dim) * share)))
    return best * (1 - 1e-10)


def _log_packing_sizes(dim: int) -> NDArray[np.float64]:
    """ln(P_D − 1) for D = 1 … d, from exact integers; -inf where there is only one word."""
    words = 1 << dim
    choose, below = 1, 0
    logarithms = np.empty(dim)
    for distance in range(1, dim + 1):
        below += choose
        choose = choose * (dim - distance + 1) // distance
        others = -(-words // below) - 1
        logarithms[distance - 1] = math.log(others) if others else -math.inf
    return logarithms


def volume_error(n: int, dim: int, privacy: Privacy) -> float:
    """Volumes in the unit ball: what no private mechanism can beat, biased or not; rounded down.

    m of n records lie at an unknown point v of the ball of radius L = 1, the others at its centre.
    The answer must find m·v/n, yet it can differ by little from the answer to records that are all
    at the centre. Root mean square errors of some dataset, for every m ≤ n and with R = L·m/n:

        (ε, δ)-DP:  √(d/(d + 2))·R·(1 − δ_m)^{1/2 + 1/d}·e^{−mε/d},
                    δ_m = δ(e^{mε} − 1)/(e^ε − 1),
        ρ-zCDP:     √(d/(2πe))·V_d^{1/d}·R·e^{−m²ρ/d},  V_d the volume of the unit ball.
    """
    if privacy.point is not None:
        epsilon, delta = privacy.point
        log_delta = math.log(delta) if delta else -math.inf
        constant, most = -math.log1p(2 / dim) / 2, n

        def log_error(m: float) -> float:
            kept = _log_kept(m, epsilon, log_delta)
            return constant + math.log(m / n) + (0.5 + 1 / dim) * kept - m * epsilon / dim

        start = dim / epsilon
    else:
        rho, most = _divergence(privacy, n)
        log_volume = dim / 2 * math.log(math.pi) - math.lgamma(dim / 2 + 1)
        constant = (math.log(dim / (2 * math.pi)) - 1) / 2 + log_volume / dim

        def log_error(m: float) -> float:
            return constant + math.log(m / n) - m * (m * rho / dim)

        start = math.sqrt(dim / 2) / math.sqrt(rho)
    # Sums of logarithms no larger than a few thousand times the result's: a wide margin.
    best = max(log_error(m) for m in _candidates(log_error, most, start))
    return math.exp(best) * (1 - 1e-9)


def _divergence(privacy: Privacy, n: int) -> tuple[float, int]:
    """ρ, and for how many records together the relative entropy is known to be at most m²ρ."""
    first = privacy.renyi(Fraction(1))
    if first is None:
        raise AssertionError("a promise is a point, or bounds a divergence")
    return float_at_least(first), 1 if privacy.implied_rho is None else n


def _log_kept(m: float, epsilon: float, log_delta: float) -> float:
    """ln(1 − δ_m); −inf where so little is kept that its digits would be lost."""
    if log_delta == -math.inf:
        return 0.0
    log_group = log_delta + (m - 1) * epsilon
    log_group += math.log(-math.expm1(-m * epsilon)) - math.log(-math.expm1(-epsilon))
    return math.log1p(-math.exp(log_group)) if log_group < -1e-4 else -math.inf


def _candidates(log_error: Callable[[float], float], n: int, start: float) -> set[int]:
    """Whole numbers around the maximum of a concave function; every one of them is valid."""
    low, high = 1.0, float(max(1, min(n, start)))
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if log_error(left) < log_error(right):
            low = left
        else:
            high = right
    return {min(max(math.floor(low) + offset, 1), n) for offset in (-1, 0, 1, 2)}


LARGEST_DIMENSION = 1_000_000

CONSTANT = "the centre, always"
"""It reads no record and is at most a radius off: what noise must beat to be of use."""

MOST_LETTERS = 10_000
"""Of the code words; the bound of a ball in fewer dimensions holds in more."""

_CITATION = "Bassily, Smith and Thakurta 2014; Steinke and Ullman 2015"
_OURS = "docs/proofs/ball.md"
_SUBSTITUTION = "n is public and neighbours replace one record."
_WHERE = "Records lie in a Euclidean ball."
_WHOM = {"any": "any mechanism", "unbiased": "unbiased", "additive": "additive noise"}


@dataclass(frozen=True)
class Achieved(Plain):
    """What a mechanism achieves on the ball.

    Attributes:
        mechanism: its name in `plan_mean`, or CONSTANT.
        error: (E‖answer − mean‖₂²)^½, the same for every dataset; of a constant on the worst one.
        promise: what it promises, in words.
    """

    mechanism: str
    error: float
    promise: str

    @property
    def is_constant(self) -> bool:
        """Whether it answers the centre always."""
        return self.mechanism == CONSTANT


@dataclass(frozen=True, repr=False)
class BallBounds(BoundTable):
    """Errors (E‖answer − mean‖₂²)^½ on a ball: achieved ones, and lower bounds.

    Attributes:
        achieved: what muhat's mechanisms achieve, and a constant, the best first.
        bounds: for any mechanism first, then for unbiased ones and additive noise.
    """

    n: int
    dim: int
    radius: float
    privacy: Privacy
    achieved: tuple[Achieved, ...]
    bounds: tuple[LowerBound, ...]

    @property
    def upper(self) -> float:
        """The least error achieved."""
        return self.achieved[0].error

    @property
    def lower(self) -> float:
        """The largest proved bound that holds for any mechanism."""
        return max(b.value for b in self.bounds if b.mechanisms == "any" and b.value is not None)

    @property
    def ratio(self) -> float:
        """How far the best is from what nobody can beat, at most; ∞ if nothing is known."""
        return self.upper / self.lower if self.lower > 0 else math.inf

    def _title(self) -> str:
        return (
            f"Mean in a ball of radius {self.radius:g} · {self.privacy.describe()} · "
            f"n = {self.n} · dimension {self.dim}"
        )

    def _rows(self) -> list[list[str]]:
        rows = [["mechanism or theorem", "error", "of", "on", "constant"]]
        for entry in self.achieved:
            whose = ("anybody", "some dataset") if entry.is_constant else ("muhat", "every dataset")
            rows.append([entry.mechanism, f"{entry.error:.4g}", *whose, "exact"])
        for bound in self.bounds:
            number = "rate only"
            if bound.value is not None:
                number = f"≥ {rounded_down(bound.value)}"
            elif "rate" not in bound.assumptions[-1]:
                number = "not applicable"
            on = bound.where
            rows.append([bound.theorem, number, _WHOM[bound.mechanisms], on, bound.source])
        return rows

    def _notes(self) -> list[str]:
        useless = []
        if self.achieved[0].is_constant:
            useless = [
                "A constant, the centre of the ball, has no larger error than any noise here: with "
                "so few records nothing is learnt from them. Unbiased means may still be averaged."
            ]
        if math.isinf(self.ratio):
            return [*useless, "No bound for any mechanism says more than 0 here."]
        return [
            *useless,
            f"{self.achieved[0].mechanism} is within a factor of {self.ratio * 1.0005:.3g} of what "
            f"any {self.privacy.describe()} mechanism can achieve on all datasets.",
        ]


def ball(n: int, dim: int, radius: float, privacy: Privacy) -> BallBounds:
    """What is achieved and what is impossible for the mean of n records in a ball, n public.

    Errors are root mean square Euclidean errors against the mean of the records. Achieved, with
    the radius L and d dimensions: Laplace noise 2√2·Ld/(nε), K-norm noise 2L√(d(d+1))/(nε),
    Gaussian noise 2L√d/(nμ) with μ = √(2ρ) for ρ-zCDP and the root of the Gaussian curve for
    (ε, δ)-DP.

    >>> found = ball(n=10_000, dim=100, radius=1.0, privacy=PureDP(epsilon=1.0))
    >>> [entry.mechanism for entry in found.achieved]
    ['ellipsoid-norm', 'plain-laplace', 'the centre, always']
    >>> found[1].sentence()
    'Every 1-DP (pure) mechanism has error at least 0.003642 on some dataset.'
    """
    n, dim, radius = _checked(n, dim, radius, privacy)
    general = any_mean(n, dim, radius, privacy)
    limited = mean(Ball(radius=radius, dim=dim), n=n, privacy=privacy)
    achieved = sorted(_achieved(n, dim, radius, privacy), key=lambda entry: entry.error)
    return BallBounds(n, dim, radius, privacy, tuple(achieved), (*general, *limited))


def any_mean(n: int, dim: int, radius: float, privacy: Privacy) -> tuple[LowerBound, ...]:
    """Lower bounds on the error of any private mean of n records in a ball, biased or not.

    For pure privacy a packing of code words, which is on E‖answer − mean‖₂ and best for d = 1,
    and the rate of Bassily, Smith and Thakurta; for all promises a comparison of volumes.
    """
    n, dim, radius = _checked(n, dim, radius, privacy)
    promise = privacy.describe()

    def bound(
        value: float | None, theorem: str, source: str, citation: str, *more: str
    ) -> LowerBound:
        assumptions = (_SUBSTITUTION, _WHERE, *more)
        return LowerBound(value, "any", "some", theorem, source, assumptions, promise, citation)

    volumes = radius * volume_error(n, dim, privacy)
    if privacy.implied_epsilon is not None:
        # In high dimensions volumes are better, and the integers of the code words long.
        words = radius * packing_error(n, min(dim, MOST_LETTERS), privacy.implied_epsilon)
        rate = "Only the rate is known: L·min{1, d/(nε)} up to a constant."
        return (
            bound(words, "B7, an explicit packing", "derived", _OURS),
            bound(volumes, "B7 by volumes", "derived", _OURS),
            bound(None, "BST14 Lemma 5.1 and Theorem 5.4", "paper", _CITATION, rate),
        )
    if privacy.point is not None:
        # The rates of BST14 and SU15 for (ε, δ) stand with the bounds for unbiased mechanisms.
        return (bound(volumes, "B7 by volumes, (ε, δ)", "derived", _OURS),)
    return (bound(volumes, f"B7 by entropy, {privacy.spoken}", "derived", _OURS),)


def _checked(n: int, dim: int, radius: float, privacy: Privacy) -> tuple[int, int, float]:
    check_promise(privacy)
    dim = _check.count("dim", dim, most=LARGEST_DIMENSION)
    return _check.count("n", n), dim, _check.positive("radius", radius)


def _achieved(n: int, dim: int, radius: float, privacy: Privacy) -> list[Achieved]:
    """Pure mechanisms keep (ε, δ) too; which is better depends on d and δ."""
    found = [Achieved(CONSTANT, radius, "nothing is read")]
    if privacy.admits_pure:
        epsilon = pure_within(privacy) if privacy.point is None else privacy.point[0]
        scale = 2 * radius / (n * epsilon)
        promise = PureDP(epsilon=epsilon).describe()
        found += [
            Achieved("ellipsoid-norm", scale * math.sqrt(dim) * math.sqrt(dim + 1), promise),
            Achieved("plain-laplace", scale * math.sqrt(2) * dim, promise),
        ]
    if privacy.admits_normal:
        mu = root_at_least(gaussian_mu_squared(privacy))
        error = 2 * radius * math.sqrt(dim) / (n * mu)
        found.append(Achieved("gaussian", error, privacy.describe()))
    return found
