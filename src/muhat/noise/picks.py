"""Exact picks among numbered things: a random word mostly decides, and more words if it does not.

The chances may be any real numbers that can be enclosed ever more closely. The things lie side by
side in [0, 1), each as long as it is likely, and a uniform number picks the one it falls into. Its
first 64 bits tell which, unless an end between two things may lie among the numbers that begin so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat.noise.entropy import WORD_BITS, Words
from muhat.noise.exact import Enclosure

Ends = Callable[[int], list[Enclosure]]
"""Encloses 2^precision times the ends between things, rising: one less than there are things."""


@dataclass(frozen=True, eq=False)
class Picks:
    """A choice among things that lie between these ends."""

    ends: Ends

    @cached_property
    def _first(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Both sides of the ends for one word; 2^64 itself is beyond every word but the last."""
        most = (1 << WORD_BITS) - 1
        pairs = [(min(low, most), min(high, most)) for low, high in self.ends(WORD_BITS)]
        lows, highs = zip(*pairs, strict=True)
        return np.array(lows, np.uint64), np.array(highs, np.uint64)

    def draw(self, size: int, words: Words) -> NDArray[np.int64]:
        """Independent picks, of shape (size,), each exactly as likely as it should be."""
        lows, highs = self._first
        drawn = words(size)
        found = np.searchsorted(highs, drawn, side="right").astype(np.int64)
        unsure = found != np.searchsorted(lows, drawn, side="right")
        unsure |= drawn == np.uint64((1 << WORD_BITS) - 1)
        for index in np.flatnonzero(unsure).tolist():
            found[index] = self._settled(int(drawn[index]), words)
        return found

    def _settled(self, prefix: int, words: Words) -> int:
        """The thing that a number beginning with this word falls into."""
        bits = WORD_BITS
        while True:
            prefix, bits = prefix << WORD_BITS | int(words(1)[0]), bits + WORD_BITS
            lows, highs = zip(*self.ends(bits), strict=True)
            found = bisect_right(highs, prefix)
            if found == bisect_right(lows, prefix):
                return found


def uniform_each(bounds: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
    """Independent whole numbers, each uniform below a bound of its own, of at most 2^62."""
    different, which = np.unique(bounds, return_inverse=True)
    bits = [max(int(bound - 1).bit_length(), 1) for bound in different]
    unused = np.uint64(WORD_BITS) - np.array(bits, np.uint64)[which]
    found = np.empty(bounds.shape, np.int64)
    missing = np.arange(bounds.size)
    while missing.size:
        found[missing] = (words(missing.size) >> unused[missing]).astype(np.int64)
        missing = missing[found[missing] >= bounds[missing]]
    return found
