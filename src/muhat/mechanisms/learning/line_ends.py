"""Where to clip records on a line: two ends, chosen from one noisy curve of counts.

Around a centre c and a radius r that most records have, public edges lie on both sides, close to c
finely, then coarsely up to the magnitude. How many records lie beyond each of them is released at
once, by the best strategy for prefix sums, and everything else is read off that curve:

    tails    the curve on either side, made monotone, is followed outwards while it is clearly
             above its noise, further as far as the other one goes, and one edge more if it seems
             to go on
    loss     what clipping at an edge takes from a side is the area under the tail beyond it
    ends     those two that make noise² + (loss on the right − loss on the left)² least, with what
             the losses may be off by

The ends need not be as far from c as each other, so a long tail on one side costs no noise on the
other. The curve, and how many records lie to the left and to the right of the interval, rest on
one pass: how many lie between neighbouring public edges. Records that are not there lie at the
centre. Proof: docs/proofs/unbounded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.mechanisms.learning.outside_count import OutsideCount, Sides
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.steps import Step, Steps
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
from muhat.noise.laws import INDEPENDENT, LAWS
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors
from muhat.workloads.factorization import Factorization
from muhat.workloads.factorize import factorize
from muhat.workloads.prefix import Prefix

Counts = NDArray[np.int64]

CURVE_SHARE = Fraction(1, 5)
"""Of the curve: for long tails on one side more would be better, for normal records less."""

NEAR = 4.0
"""Edges begin at r and are a quarter of an octave apart up to so many times r; half an octave
beyond."""

CLEAR, ALIKE, LIKELY = 3.0, 2.0, 0.5
"""How many deviations of its noise a tail must have to go on, to go on as far as the other one, and
to be followed an edge more."""

LARGEST_DEVIATION = 3.1
"""That of a count of the curve for strength 1 is below this for as many cells as there can be."""

GAP = 1e-2
"""The strategy may be so far from the best one; what that costs is half of it."""


def offsets_around(radius: float, reach: float) -> Floats:
    """How far the edges on one side lie from the centre, ascending; none beyond the reach.

    >>> offsets_around(1.0, 12.0)[[0, 4, 8]].tolist(), len(offsets_around(1.0, 12.0))
    ([1.0, 2.0, 4.0], 12)
    >>> offsets_around(8.0, 12.0).round(1).tolist()
    [8.0, 9.5, 11.3]
    """
    steps = 4 * round(math.log2(NEAR))
    near = radius * 2.0 ** (np.arange(steps + 1) / 4)
    near = near[near <= max(reach, radius)]
    octaves = max(math.log2(reach / near[-1]), 0.0)
    far = near[-1] * 2.0 ** (np.arange(1, math.floor(2 * octaves) + 1) / 2)
    return np.concatenate([near, far])


@lru_cache(maxsize=256)
def best_prefix(cells: int) -> Factorization:
    """The strategy for counts up to each of so many cells, n public."""
    return factorize(Prefix(cells), math.inf, Neighbors.SUBSTITUTE, GAP)


def prefix_recipe(sharing: Sharing, cells: int, share: Fraction) -> LinearRecipe:
    """Noisy counts of the records up to each cell, for a share of the promise."""
    return _prefix_recipe(cells, sharing.protect(share))


@lru_cache(maxsize=64)
def _prefix_recipe(cells: int, protection: Protection) -> LinearRecipe:
    return LinearRecipe.of(best_prefix(cells), INDEPENDENT["normal"], protection)


def most_beyond(sharing: Sharing) -> int:
    """The most records that the ends are meant to leave outside: as many as may not be clear."""
    deviation = LARGEST_DEVIATION / sharing.step_strength(float(CURVE_SHARE))
    return math.ceil(2 * CLEAR * deviation)


@dataclass(frozen=True, eq=False)
class LineTail:
    """How many records seem to lie beyond each edge of a side.

    `offsets`, of shape (m,), begin with 0, the centre; `beyond` falls from each to the next.
    `scale` is the noise of every count, and `last` the edge where the tail ends.
    """

    offsets: Floats
    beyond: Floats
    scale: float
    last: int

    @classmethod
    def of(cls, offsets: Floats, beyond: Floats, scale: float) -> LineTail:
        """The tail that ends at the first edge beyond which not clearly any records lie."""
        return cls(offsets, beyond, scale, 1).followed(CLEAR, len(offsets) - 1)

    def followed(self, deviations: float, most: int) -> LineTail:
        """The tail up to an edge at most, while it exceeds so many deviations."""
        stays = np.append(self.beyond[self.last : most] <= deviations * self.scale, True)
        return replace(self, last=self.last + int(np.argmax(stays)))

    def loss(self) -> Floats:
        """What clipping at every edge up to the last takes from the sum: the area beyond it."""
        end = self.last
        seen = np.append(self.beyond[:end], 0.0)
        areas = (seen[:-1] + seen[1:]) / 2 * np.diff(self.offsets[: end + 1])
        return np.append(np.cumsum(areas[::-1])[::-1], 0.0)

    def doubt(self) -> Floats:
        """How far off every loss may be: the noise of a count, all the way to the last edge."""
        ends = self.offsets[: self.last + 1]
        return np.asarray(self.scale * (ends[-1] - ends))


def best_ends(left: LineTail, right: LineTail, noise: float) -> tuple[int, int]:
    """The edges, on the left and on the right, with the least error of the sum.

    `noise` is that of the sum for every unit of the distance between the ends. No end is the
    centre itself.
    """
    widths = np.add.outer(left.offsets[: left.last + 1], right.offsets[: right.last + 1])
    bias = np.subtract.outer(left.loss(), right.loss())
    doubt = np.hypot.outer(left.doubt(), right.doubt())
    error = ((noise * widths) ** 2 + bias**2 + doubt**2)[1:, 1:]
    first, second = np.unravel_index(np.argmin(error), error.shape)
    return int(first) + 1, int(second) + 1


def falling(values: Floats) -> Floats:
    """The closest sequence that never rises, in squares: neighbours that rise are averaged.

    >>> falling(np.array([5.0, 1.0, 3.0, 0.0])).tolist()
    [5.0, 2.0, 2.0, 0.0]
    """
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, size = value, 1
        while blocks and blocks[-1][0] < mean:
            before, length = blocks.pop()
            mean, size = (before * length + mean * size) / (length + size), length + size
        blocks.append((mean, size))
    means, sizes = zip(*blocks, strict=True)
    return np.repeat(np.array(means), sizes)


def tails(up_to: Floats, offsets: Floats, total: int, scale: float) -> tuple[LineTail, LineTail]:
    """Both tails, given noisy counts of the records up to every edge, the centre in the middle.

    `offsets`, of shape (m,), are those of one side; `up_to` has 2m + 1 entries.
    """
    middle, whole = len(offsets), np.append(0.0, offsets)

    def tail(beyond: Floats) -> LineTail:
        return LineTail.of(whole, np.clip(falling(beyond), 0, total), scale)

    one, two = tail(up_to[middle::-1]), tail(total - up_to[middle:])
    # Records that are alike on both sides would be pulled to the side whose noise was luckier.
    one, two = one.followed(ALIKE, two.last), two.followed(ALIKE, one.last)
    one, two = (each.followed(LIKELY, min(each.last + 1, middle)) for each in (one, two))
    return one, two


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

        Those that are left out are counted in the cell below the centre.
        """
        edges = np.concatenate([-self.offsets[::-1], [0.0], self.offsets, [np.inf]])
        counts = steps.line_counts(self.center, edges)
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
    first, second = best_ends(left, right, sharing.mean_noise(float(mean_share)))
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
