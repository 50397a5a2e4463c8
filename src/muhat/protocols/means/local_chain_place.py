"""What is known about where people's records lie while a ball is sought, and what is asked next.

And which radius has the least error. Clipping to a ball moves the mean by at most the mean excess,
∫ P(distance > t) dt from the radius on. It is estimated from counted distances. Where they only
seem to reach further, by no more than the counts may err, a larger ball would buy noise for
nothing: the radius is the one for which

    (what the excess is at least)² + (noise of a mean in the ball)²

is least.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.protocols.estimators.range_counts import RangeCounts


class ChainStep(StrEnum):
    """What a round asks for."""

    FIRST = "first radius"
    CENTER = "center"
    RADIUS = "radius"
    FAR = "far outside"
    WIDE = "wide radius"
    FINE = "last center"
    LAST = "last radius"
    OUTSIDE = "outside"
    MEAN = "mean"

    @property
    def is_mean(self) -> bool:
        """Whether devices send their records, clipped and randomised; else their distances."""
        return self in (ChainStep.CENTER, ChainStep.FINE, ChainStep.MEAN)


@dataclass(frozen=True)
class Place(
    Plain,
    keys=(Key("next", "step"), "center", "radius", "noise", "asked", Key("outside", optional=True)),
):
    """What is known about where the records lie, and what is asked next.

    Attributes:
        step: what is asked next.
        center: a point near the records.
        radius: most records were seen within it, around this centre or the one before.
        noise: the root mean square error of the centre.
        asked: how many people have been asked so far.
        outside: the part of people far outside, later of those outside the last ball, and its
            standard error.
    """

    step: ChainStep
    center: tuple[float, ...]
    radius: float
    noise: float
    asked: int
    outside: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check.positive("radius", self.radius)
        _check.positive("noise", self.noise)
        _check.count("asked", self.asked, least=0)
        if self.outside is not None:
            _check.positive("the error of outside", self.outside[1])


SURE, SURER = 1.0, 2.0
"""An excess counts as far as it is above so many standard errors: where the grid ends close by, and
where it covers all scales, so that what only seems to be there could buy any amount of noise."""

PULL = 0.7
"""Records beyond the radius pull in different directions: such a part of the excess is bias."""


def least_radius(counts: RangeCounts, unit_noise: float, sure: float = SURE) -> float:
    """The edge of the grid with the least error, if a mean in the unit ball has that noise."""
    edges = np.array([counts.grid.value(cell) for cell in range(counts.grid.cells)])
    bias = PULL * sure_excess(counts, edges, sure)
    return float(edges[np.argmin(bias**2 + (unit_noise * edges) ** 2)])


def sure_excess(counts: RangeCounts, edges: Floats, sure: float = SURE) -> Floats:
    """What the mean excess beyond every edge is at least, but for bad luck, of shape (cells,).

    The integral from an edge up to any later one is a lower bound on the excess; each is lowered
    by so many standard errors, and the largest is taken.
    """
    beyond = 1 - counts.monotone()[1:]
    widths = np.append(np.diff(edges), 0.0)
    area = np.concatenate([[0.0], np.cumsum(beyond * widths)])
    errors = _area_errors(counts, widths)
    rows = range(len(edges))
    return np.array([(area[row:] - area[row] - sure * errors[row, row:]).max() for row in rows])


def _area_errors(counts: RangeCounts, widths: Floats) -> Floats:
    """Standard errors of the area between any two edges, of shape (cells + 1, cells + 1).

    An area is a sum of slopes times node differences; those of different nodes are uncorrelated
    for records that are spread evenly.
    """
    tree, size = counts.tree, len(widths) + 1
    known = counts.response.information * (counts.messages @ counts.mix.characters)
    if not known.all():
        # Too few answers: there is a level that nobody has spoken of.
        return np.where(np.eye(size) > 0, 0.0, np.inf)
    first = 1 << np.arange(tree.levels)
    weights = np.zeros((size, 1 << tree.levels))
    for cell, width in enumerate(widths.tolist(), start=1):
        weights[cell] = weights[cell - 1]
        weights[cell, tree.nodes[:, cell] + first] += width * tree.slopes[:, cell] / np.sqrt(known)
    squares = np.square(weights).sum(axis=1)
    between = squares[:, None] + squares - 2 * weights @ weights.T
    return np.asarray(np.sqrt(np.maximum(between, 0.0)))
