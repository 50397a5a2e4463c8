"""How many people lie below each of several public cuts, from sums over a tree's nodes.

A node's sum is how many more of the people are in its left half than in its right half, with
noise. From the number of all people, which is public, the counts of all cells follow, level by
level, without bias; the noise of a count below a cut is that of the nodes on the way to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.protocols.encodings.cut_encoding import CutEncoding
from muhat.protocols.randomizers.fragment_randomizer import PartSums


@dataclass(frozen=True, eq=False)
class CutCounts:
    """Counts of `people` below cuts; every node has noise of the standard deviation `noise`.

    >>> counts = CutCounts(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, -2.0]), 10, 0.0)
    >>> counts.below.tolist()
    [5.0, 6.0, 7.0]
    """

    cuts: Floats
    differences: Floats
    """Left half less right half of every node, the root first, of shape (cuts,)."""
    people: int
    noise: float

    @classmethod
    def of(cls, part: PartSums) -> CutCounts:
        """What the sums of a part of a round tell."""
        encoding, people = part.asked.encoding, part.people
        if not isinstance(encoding, CutEncoding):
            raise InvalidInput("the round's numbers are not about cuts.")
        noise = float(np.sqrt(part.asked.variance(people))) / encoding.scale
        differences = np.array(part.totals, np.float64) / encoding.scale
        return cls(np.array(encoding.cuts), differences, people, noise)

    @property
    def levels(self) -> int:
        """Of the tree."""
        return len(self.cuts).bit_length()

    @cached_property
    def below(self) -> Floats:
        """How many people have a number of at most each cut, without bias, of shape (cuts,)."""
        return self._below(repaired=False)

    @cached_property
    def monotone(self) -> Floats:
        """The same, never falling, from 0 to all of them.

        From the root down, a half that would have less than nothing, or more than its node, gets
        nothing, or all. Where people are few this takes most of the noise away.
        """
        return self._below(repaired=True)

    @cached_property
    def errors(self) -> Floats:
        """The standard deviation of the noise of `below`, of shape (cuts,)."""
        cells = len(self.cuts) + 1
        cut, variance = np.arange(1, cells), np.zeros(cells - 1)
        for level in range(self.levels):
            width = cells >> level
            part = (cut % width) / width
            variance += np.minimum(part, 1 - part) ** 2
        return np.asarray(self.noise * np.sqrt(variance))

    @property
    def beyond(self) -> Floats:
        """How many people have more than each cut, never rising, of shape (cuts,)."""
        return self.people - self.monotone

    def value_beyond(self, people: float) -> float:
        """The number that about so many people exceed, between cuts by a constant ratio."""
        beyond = self.beyond
        cell = int(np.argmax(beyond <= people)) if beyond[-1] <= people else len(beyond) - 1
        if cell == 0 or beyond[cell] > people:
            return float(self.cuts[cell])
        before, after = float(self.cuts[cell - 1]), float(self.cuts[cell])
        part = float((beyond[cell - 1] - people) / (beyond[cell - 1] - beyond[cell]))
        return float(before * (after / before) ** part)

    def _below(self, *, repaired: bool) -> Floats:
        counts = np.array([float(self.people)])
        for level in range(self.levels):
            moved = self.differences[(1 << level) - 1 : (2 << level) - 1]
            if repaired:
                moved = np.clip(moved, -counts, counts)
            counts = np.stack([counts + moved, counts - moved], axis=1).reshape(-1) / 2
        return np.cumsum(counts)[:-1]
