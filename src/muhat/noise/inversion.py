"""Exact draws by inversion: one random word mostly tells which number it is.

A law is known by enclosures of P(X ≤ m), m = 0, 1, …. A uniform number u that begins with given
bits is below P(X ≤ m), or not, whatever follows, unless a bound lies in between; then more bits are
drawn, and the enclosures are made as narrow as that takes. So X is the least m with u < P(X ≤ m),
for a real number u that is uniform.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Integers
from muhat.noise.entropy import WORD_BITS, Words
from muhat.noise.exact import PRECISION

Cumulative = tuple[tuple[int, ...], tuple[int, ...]]
"""Integers that enclose 2^precision·P(X ≤ m), m = 0, 1, …: from below, and from above."""

CELL_BITS = 16
"""As many bits of a word are looked up first."""

_WITHIN = np.uint64(WORD_BITS - CELL_BITS)
_UNDECIDED = -1


class Enclosed(Protocol):
    """A law on 0, 1, 2, …, of which equals have the same hash."""

    def cumulative(self, precision: int) -> Cumulative:
        """Enclosures up to an m beyond which there is less than 2^(−precision/4)."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Table:
    """What a word tells: below least[m] it is at most m, above most[m] it is more.

    `cells` has what the first 16 bits tell, or −1.
    """

    least: NDArray[np.uint64]
    most: NDArray[np.uint64]
    cells: Integers


def inverted(law: Enclosed, size: int, words: Words) -> Integers:
    """Independent numbers of the law, of shape (size,)."""
    known = table(law)
    drawn = words(size)
    found = known.cells.take((drawn >> _WITHIN).view(np.int64))
    pending = np.flatnonzero(found == _UNDECIDED)
    rest = drawn[pending]
    places, undecided = _placed(known.least, known.most, rest, rest)
    found[pending] = places
    for index in pending[undecided].tolist():
        found[index] = _settle(law, int(drawn[index]), words)
    return found


@lru_cache(maxsize=64)
def table(law: Enclosed) -> Table:
    """That of a law; what is in it is public."""
    lower, upper = law.cumulative(PRECISION)
    shift = PRECISION - WORD_BITS
    least = np.array([level >> shift for level in lower], np.uint64)
    most = np.array([-(-level >> shift) - 1 for level in upper], np.uint64)
    first = np.arange(1 << CELL_BITS, dtype=np.uint64) << _WITHIN
    places, undecided = _placed(least, most, first, first | np.uint64((1 << int(_WITHIN)) - 1))
    cells = np.where(undecided, _UNDECIDED, places)
    for array in (least, most, cells):
        array.setflags(write=False)
    return Table(least, most, cells)


def _placed(
    least: NDArray[np.uint64],
    most: NDArray[np.uint64],
    first: NDArray[np.uint64],
    last: NDArray[np.uint64],
) -> tuple[Integers, NDArray[np.bool_]]:
    """The number of all words from `first` to `last`, and where they do not have the same."""
    found = least.searchsorted(last, side="right")
    beyond = found == least.size
    undecided = beyond | ((found > 0) & (first <= most[found - 1]))
    return found.astype(np.int64), undecided


def _settle(law: Enclosed, u: int, words: Words) -> int:
    """The number of a uniform number that begins with a given word, with as many as it takes."""
    bits = WORD_BITS
    while (number := _number(law, u, bits)) is None:
        u, bits = u << WORD_BITS | int(words(1)[0]), bits + WORD_BITS
    return number


def _number(law: Enclosed, u: int, bits: int) -> int | None:
    """The m with P(X < m) ≤ (all numbers that begin with these bits) < P(X ≤ m), if any."""
    precision = PRECISION
    while precision < 4 * bits:
        precision *= 2
    lower, upper = law.cumulative(precision)
    shift = precision - bits
    number = bisect_left(lower, u + 1 << shift)
    if number == len(lower) or (number > 0 and upper[number - 1] > u << shift):
        return None
    return number
