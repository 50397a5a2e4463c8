"""The mean of complete records in a ball that was learnt: noisy sums over their noisy number."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.shrinking import together
from muhat.mechanisms.learning.steps import Step
from muhat.mechanisms.sums.ratio import Ratio

FEW = (
    "the noisy number of recorded values cannot be told from 0 (are these columns numbers, and are "
    "they the columns that were meant?)"
)

_CONFIDENCE = 0.95
"""At which it can."""


@dataclass(frozen=True, eq=False)
class Shell:
    """The noisy sums of what records have beyond a radius, those drawn towards 0, their noise."""

    sums: Floats
    shrunk: Floats
    scales: Floats


def ratio_mean(
    ratio: Ratio, ball: Domain, steps: tuple[Step, ...], beyond: Shell | None = None
) -> Learnt:
    """The mean that a ratio and what lies beyond its radius stand for; within the ball."""
    whole = replace(ratio, lower=-ball.half_widths, upper=ball.half_widths)
    drawn = whole
    if beyond is not None:
        spread = together(ratio.sum_spread, beyond.scales)
        whole = replace(whole, sums=ratio.sums + beyond.sums, sum_spread=spread)
        drawn = replace(whole, sums=ratio.sums + beyond.shrunk)
    if whole.is_empty(_CONFIDENCE).any():
        return Learnt(np.full(ball.dim, np.nan), None, None, steps, FEW)
    unshrunk = None if beyond is None else _inside(whole, ball)
    return Learnt(_inside(drawn, ball), whole, ball, steps, unshrunk=unshrunk)


def _inside(ratio: Ratio, ball: Domain) -> Floats:
    offset = np.clip(ratio.offset, -1e150, 1e150)
    return ball.nearest_in_hull(ball.center + offset)
