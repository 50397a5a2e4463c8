"""What the mean of records on an interval errs against the mean of their distribution, at most.

On ±magnitude and a pad, bias and sampling add up in squares. A learnt interval depends on the
records that are averaged on it: what they err on the interval about μ itself comes first, then
how far moving that interval to where it was found can move their mean, then what a search that
failed may do. All are about a column, without its noise. Proof: docs/proofs/tails.md.
"""

from __future__ import annotations

import math

import numpy as np

from muhat.mechanisms.location import Location
from muhat.mechanisms.sharing import Floats
from muhat.mechanisms.tails import closed_bias, sampling_variance

ROUNDING = 2.0**-44
"""More than what the grid of a record is off, in half widths of its interval."""

PLACING = 2.0**-50
"""More than what floats move the ends of the interval and the value, in magnitudes."""

FAR_ERROR = 1e-3
"""The part of ψ²/n that a search which fails twice may add to the mean squared error."""

_SAFE = 1 + 1e-9


def wide_square(
    order: float, scale: float, *, n: int, magnitude: float, pad: float, bias: float
) -> float:
    """E(value − μ)², if the interval is ±magnitude and a pad."""
    return sampling_variance(order, scale, width=2 * magnitude, pad=pad) / n + bias**2


def learnt_square(
    order: float, scale: float, *, n: int, magnitude: float, pad: float, reach: float
) -> float:
    """E[(value − μ)²; the search succeeded]: the median found is within reach of μ."""
    half_width = reach + pad
    variance = sampling_variance(order, scale, width=0.0, pad=half_width)
    centered = math.hypot(math.sqrt(variance / n), closed_bias(half_width, order, scale))
    first, second = (moved_part(order, scale, pad, reach, power) for power in (1, 2))
    rounding = ROUNDING * half_width + PLACING * magnitude
    return (centered + math.hypot(first, math.sqrt(second / n)) + rounding) ** 2


def stray_squares(location: Location, half_widths: Floats, *, n: int, magnitude: float) -> Floats:
    """E[(value − μ)²; the search failed], of shape (d,).

    A value is in its interval, so half a width from the median found, which is farther than a
    second, larger reach only if the search fails much worse.
    """
    dim = len(half_widths)
    farthest = (2 * magnitude + half_widths) ** 2
    failed = location.failure / dim
    twice = min(failed, FAR_ERROR / n * float(np.min(location.scales**2 / farthest)))
    reaches = location.reaches_but_for(twice * dim)
    if reaches is None:
        return np.asarray(failed * farthest)
    return np.asarray(failed * (reaches + half_widths) ** 2 + twice * farthest)


def moved_part(order: float, scale: float, pad: float, reach: float, power: int) -> float:
    """E min((|X − μ| − pad)₊, reach)^power: what moving the interval does to a record.

    ψ^λ times the largest min((y − pad)₊, reach)^power/y^λ.
    """
    excess = min(reach, power * pad / (order - power)) if order > power else reach
    if not excess > 0:
        return reach**power
    part = math.exp(order * (math.log(scale) - math.log(pad + excess)))
    return float(min(excess**power * part, reach**power)) * _SAFE
