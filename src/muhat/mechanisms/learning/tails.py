"""How far beyond the mean's interval records are kept, so that clipping costs little bias.

Let E|X − μ|^λ ≤ ψ^λ, λ > 1, and let c be the distance from μ to the nearer end of the interval
that records are clipped to (the pad, if μ may lie anywhere in an interval that is padded by c).
Clipping moves the mean by at most

    B(c) = max_p ( ψ·m(p) − c·p ),    m(p) = (p^{1−λ} + (1−p)^{1−λ})^{−1/λ},

and two-point distributions attain it. It is a little below C·ψ^λ/c^{λ−1} with
C = (λ−1)^{λ−1}/λ^λ (Kamath et al. 2024, Lemma 3.2), and at λ = 2 it is (√(ψ² + c²) − c)/2. The
moment is an assumption that no data can verify: what follows from it holds *if* it holds.
Proof: docs/proofs/tails.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from muhat import _check
from muhat.errors import InvalidInput

_SAFE = 1 + 1e-12

_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 90
_LOG_HALF = -math.log(2)


def pad(bias: float, moment_order: float, scale: float) -> float:
    """The least c with B(c) ≤ bias, rounded up; 0 if the bias is ψ/2 or more.

    >>> round(pad(0.01, 2, 1.0), 6), round(paper_pad(0.01, 2, 1.0), 6)
    (24.99, 100.0)
    """
    bias, order, scale = _checked(bias, moment_order, scale)
    ratio = bias / scale
    if ratio >= 0.5:
        return 0.0
    # B(c) ≤ β for all p: c is the largest (ψ·m(p) − β)/p, a quotient of a concave function.
    guess = order / (order - 1) * math.log(order * ratio)
    low = min(guess, _LOG_HALF) - 10

    def log_quotient(log_p: float) -> float:
        height = math.exp(log_largest_part(log_p, order)) - ratio
        # Below the root of m(p) = β/ψ, keep to the right.
        return math.log(height) - log_p if height > 0 else log_p - 1e9

    return _finite(log_quotient(_highest(log_quotient, low)), order, scale)


def closed_pad(bias: float, moment_order: float, scale: float) -> float:
    """ψ·(C·ψ/bias)^{1/(λ−1)}: what Lemma 3.2 gives, rounded up; never below `pad`."""
    bias, order, scale = _checked(bias, moment_order, scale)
    constant = (order - 1) * math.log(order - 1) - order * math.log(order)
    return _finite((constant + math.log(scale / bias)) / (order - 1), order, scale)


def paper_pad(bias: float, moment_order: float, scale: float) -> float:
    """ψ·(ψ/bias)^{1/(λ−1)}: the pad of Proposition 3.5, for comparison."""
    bias, order, scale = _checked(bias, moment_order, scale)
    return _finite(math.log(scale / bias) / (order - 1), order, scale)


def bias_bound(pad: float, moment_order: float, scale: float) -> float:
    """B(c), rounded up: no distribution with this moment has more bias.

    >>> round(bias_bound(24.99, 2, 1.0), 9), bias_bound(0, 3, 2.0) < 1.0 + 1e-11
    (0.01, True)
    """
    order, scale = _order(moment_order), _check.positive("scale", scale)
    if not (pad >= 0 and math.isfinite(pad)):
        raise InvalidInput("a pad must be finite and not negative.")
    distance = pad / scale
    low = _LOG_HALF - 10
    if distance:
        low += min(0.0, order * (math.log((order - 1) / order) - math.log(distance)))

    def moved(log_p: float) -> float:
        return math.exp(log_largest_part(log_p, order)) - distance * math.exp(log_p)

    return max(moved(_highest(moved, low)), 0.0) * scale * _safe(order)


def closed_bias(pad: float, moment_order: float, scale: float) -> float:
    """C·ψ^λ/c^{λ−1}, rounded up, for a pad c > 0: what Lemma 3.2 gives; never below `bias_bound`.

    >>> round(closed_bias(25, 2, 1.0), 9)
    0.01
    """
    order, scale = _order(moment_order), _check.positive("scale", scale)
    log_distance = math.log(_check.positive("pad", pad)) - math.log(scale)
    constant = (order - 1) * math.log(order - 1) - order * math.log(order)
    exponent = constant - (order - 1) * log_distance
    return min(math.exp(min(exponent, 0.0)), 0.5) * scale * _safe(order)


def sampling_variance(moment_order: float, scale: float, *, width: float, pad: float) -> float:
    """A bound on the variance of a clipped record, for μ in an interval of this width.

    Clipping brings no two records further apart, so the variance is at most ψ² for λ ≥ 2. Below
    that a record is at most R = width + pad from μ, and ψ^λ·R^{2−λ} is above its mean square. No
    variable on an interval has a variance above a quarter of its squared length.
    """
    order, scale = _order(moment_order), _check.positive("scale", scale)
    farthest, length = width + pad, width + 2 * pad
    moment = scale**2 if order >= 2 else scale**order * farthest ** (2 - order)
    return min(moment, length**2 / 4) * _SAFE


def error_bound(
    moment_order: float,
    scale: float,
    *,
    n: int,
    width: float,
    pad: float,
    noise_per_width: float,
) -> float:
    """A bound on the root mean square error against μ: sampling, bias and noise in squares.

    `width` is that of the interval in which μ lies, `noise_per_width` the standard deviation of
    the mean's noise for records in an interval of length 1: √2/(εn) for Laplace noise.

    >>> laplace = math.sqrt(2) / 1000
    >>> for c in (paper_pad(0.01, 2, 1), pad(0.01, 2, 1)):
    ...     print(f"{error_bound(2, 1, n=1000, width=1, pad=c, noise_per_width=laplace):.3f}")
    0.286
    0.079
    """
    variance = sampling_variance(moment_order, scale, width=width, pad=pad) / _check.count("n", n)
    bias = bias_bound(pad, moment_order, scale)
    noise = noise_per_width * (width + 2 * pad)
    return math.sqrt(variance + bias**2 + noise**2) * _SAFE


def log_largest_part(log_p: float, order: float) -> float:
    """ln m(p), p = exp(log_p) ≤ ½: E[X − μ; A] is at most ψ·m(p) if P(A) = p."""
    rare = (1 - order) * log_p
    common = (1 - order) * math.log1p(-math.exp(log_p))
    # rare ≥ common, so nothing overflows.
    return -(rare + math.log1p(math.exp(common - rare))) / order


def _highest(function: Callable[[float], float], low: float, high: float = _LOG_HALF) -> float:
    """Where a function that rises and then falls is largest, by golden sections."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_STEPS):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
    return left if at_left > at_right else right


def _order(value: float) -> float:
    order = _check.real("moment order", value)
    if not order > 1:
        raise InvalidInput(f"the moment order must be greater than 1; got {order:g}.")
    return order


def _checked(bias: float, moment_order: float, scale: float) -> tuple[float, float, float]:
    return (
        _check.positive("bias", bias),
        _order(moment_order),
        _check.positive("scale", scale),
    )


def _safe(order: float) -> float:
    """More than what floats lose here and the search for a maximum leaves.

    Differences of nearly equal numbers lose more the nearer λ is to 1, or the larger it is.
    """
    return 1 + 1e-12 * (order + 1 / (order - 1))


def _finite(log_pad: float, order: float, scale: float) -> float:
    """scale·exp(log_pad), rounded up; refused if that is beyond the range of floats."""
    if log_pad + math.log(scale) > 700:
        raise InvalidInput(
            "so small a bias at so low a moment order needs an interval beyond the range of "
            "floats; allow more bias."
        )
    return math.exp(log_pad) * scale * _safe(order)
