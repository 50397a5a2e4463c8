"""Learn an interval around records on a line, and count the records on either side of it.

Both steps rest on one pass: how many records lie between neighbouring public edges. Records that
are not there lie at the centre. Proof: docs/proofs/unbounded.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.mechanisms.learning.line_ends import (
    CURVE_SHARE,
    best_ends,
    offsets_around,
    prefix_recipe,
    tails,
)
from muhat.mechanisms.learning.outside_count import OutsideCount, Sides
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.steps import Step, Steps
from muhat.noise.laws import LAWS

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LineEdges:
    """Public edges around a centre, in weighted units: `offsets`, of shape (m,), on each side."""

    center: float
    offsets: Floats
    weight: float

    @classmethod
    def around(cls, center: float, radius: float, sharing: Sharing) -> LineEdges:
        """The edges for records of which most lie within a radius."""
        weight = float(sharing.weights[0])
        return cls(center, offsets_around(radius, sharing.largest_radius), weight)

    @property
    def cells(self) -> int:
        """One more than there are edges, of which the centre is one."""
        return 2 * len(self.offsets) + 2

    def counts(self, steps: Steps) -> Counts:
        """How many records lie in each cell, of shape (cells,).

        Those that are left out are counted in the cell below the centre. The distance from a point
        on the left of all edges says where a record lies.
        """
        reach = 2 * steps.sharing.largest_radius
        edges = np.concatenate([-self.offsets[::-1], [0.0], self.offsets, [reach]]) + reach
        counts = steps.counts(np.array([self.center - reach / self.weight]), edges)
        counts[len(self.offsets)] += steps.sharing.n - counts.sum()
        return counts

    def at(self, offset: float, magnitude: float) -> float:
        """The place of a signed offset, no farther than the magnitude."""
        return float(np.clip(self.center + offset / self.weight, -magnitude, magnitude))


@dataclass(frozen=True)
class LineInterval:
    """The ends between which records are clipped, and how many lie outside of them."""

    lower: float
    upper: float
    outside: OutsideCount


def line_interval(steps: Steps, center: float, radius: float, outside: Fraction) -> LineInterval:
    """Find an interval by a curve of counts, then count who is outside for a share of their own."""
    sharing = steps.sharing
    line = LineEdges.around(center, radius, sharing)
    steps.transcript.charge(CURVE_SHARE + outside)
    counts = line.counts(steps)
    recipe = prefix_recipe(sharing, line.cells, CURVE_SHARE)
    up_to = recipe.run({(0,): counts}, sharing.n)[:-1]
    left, right = tails(up_to, line.offsets, sharing.n, float(recipe.query.scales.max()))
    mean_share = 1 - steps.spent - CURVE_SHARE - outside
    first, second = best_ends(left, right, 1 / sharing.step_strength(float(mean_share)))
    lower, upper = -float(left.offsets[first]), float(right.offsets[second])
    steps.transcript.steps.append(Step("curve", CURVE_SHARE, (upper - lower) / 2))
    before, after = len(line.offsets) + 1 - first, len(line.offsets) + 1 + second
    split = np.array([counts[:before].sum(), counts[before:after].sum(), counts[after:].sum()])
    found = count_sides(sharing, split, outside)
    steps.transcript.steps.append(Step("outside", outside, (upper - lower) / 2))
    ends = [line.at(each, sharing.magnitude) for each in (lower, upper)]
    return LineInterval(ends[0], ends[1], found)


def count_sides(sharing: Sharing, split: Counts, share: Fraction) -> OutsideCount:
    """Noisy numbers of the records below, inside and above an interval, of shape (3,), n public."""
    recipe = prefix_recipe(sharing, len(split), share)
    below, up_to, _ = recipe.run({(0,): split}, sharing.n)
    scale, _ = recipe.total_noise(np.array([1.0, -1.0, 0.0]))
    sides = Sides(float(below), float(sharing.n - up_to), float(recipe.query.scales.max()))
    return OutsideCount(sides.left + sides.right, LAWS["normal"], scale, sides)
