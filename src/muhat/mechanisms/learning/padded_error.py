"""What the mean of records on an interval errs against the mean of their distribution, at most.

On ±magnitude and a pad, bias and sampling add up in squares. A learnt interval depends on the
records that are averaged on it: what they err on the interval about μ itself comes first, then
how far moving that interval to where it was found can move their mean, then what a search that
failed may do. All are about a column, without its noise. Proof: docs/proofs/tails.md.
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats
from muhat.mechanisms.learning.location import Location
from muhat.mechanisms.learning.tails import closed_bias, sampling_variance

ROUNDING = 2.0**-44
"""More than what the grid of a record is off, in half widths of its interval."""

PLACING = 2.0**-50
"""More than what floats move the ends of the interval and the value, in magnitudes."""

_SAFE = 1 + 1e-9


def wide_square(
    order: float, scale: float, pad: float, bias: float, *, n: int, magnitude: float
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


def learnt_squares(
    location: Location, order: float, scales: Floats, pads: Floats, n: int
) -> Floats:
    """E(value − μ)² of every column without noise, if the interval is learnt; of shape (d,)."""
    columns = zip(scales.tolist(), pads.tolist(), location.reaches.tolist(), strict=True)
    found = [
        learnt_square(order, scale, n=n, magnitude=location.magnitude, pad=pad, reach=reach)
        for scale, pad, reach in columns
    ]
    # A value is a mean of numbers between a record and what was found; and it is in its interval.
    if order >= 2:
        within = scales**2 * location.failed
    else:
        half_widths = location.reaches + pads
        within = half_widths**2 * location.failed + 2 * half_widths * location.astray(1)
    return np.array(found) + (within + location.astray(2)) * _SAFE


def astray_bias(location: Location, scales: Floats) -> Floats:
    """What a search that fails may add to the bias of every column; of shape (d,)."""
    return np.asarray((2 * scales * location.failed + location.astray(1)) * _SAFE)


def moved_part(order: float, scale: float, pad: float, reach: float, power: int) -> float:
    """E min((|X − μ| − pad)₊, reach)^power: what moving the interval does to a record.

    ψ^λ times the largest min((y − pad)₊, reach)^power/y^λ.
    """
    excess = min(reach, power * pad / (order - power)) if order > power else reach
    if not excess > 0:
        return reach**power
    part = math.exp(order * (math.log(scale) - math.log(pad + excess)))
    return float(min(excess**power * part, reach**power)) * _SAFE
