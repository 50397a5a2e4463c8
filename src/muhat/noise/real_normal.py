"""Standard normals as real numbers, known to as many bits as somebody asks for.

`rounded_normal` draws what rounding to multiples of 2^−54 needs, and no more. A linear
combination of many normals needs more bits of each, and how many is known only while it is
computed. The bits that a sample's verdict left undrawn are still independent and fair
(docs/proofs/noise.md), so they can be drawn later, 64 at a time, of the same samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.noise.density import FRACTION_BITS, NORMAL
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.integers import fits
from muhat.noise.strips import Draw, draw

Word = NDArray[np.uint64]

FIRST_BITS = FRACTION_BITS + 1
"""Fractional bits of a sample before anything is refined."""


@dataclass
class RealNormals:
    """Independent standard normals z, of shape (size,), each known as floor(2^bits·z).

    `floors` are floor(2^55·z); `words[k]` holds the next 64 bits of every number. What the
    samplers of rare trials have drawn ahead waits in `waiting`, by index.

    >>> normals = RealNormals.draw(3)
    >>> normals.refine()
    >>> normals.bits, len(normals.words)
    (119, 1)
    """

    floors: NDArray[np.int64]
    source: Words
    words: list[Word] = field(default_factory=list)
    waiting: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def draw(cls, size: int, source: Words = system_words) -> RealNormals:
        """`size` samples, from the operating system's entropy unless a test replays words."""
        size = _check.count("size", size, least=0)
        sample = draw(NORMAL, size, source)
        if not all(fits(settled.floor) for settled in sample.settled.values()):
            # |z| ≥ 256 has a probability below 10^−14000: a broken source is likelier.
            raise ArithmeticError("a standard normal is 256 or more: check the source of entropy")
        return cls(sample.floors, source, waiting=_waiting(sample))

    @property
    def bits(self) -> int:
        """How many fractional bits of every number are known."""
        return FIRST_BITS + WORD_BITS * len(self.words)

    def refine(self) -> None:
        """Draw 64 more bits of every number."""
        more = self.source(self.floors.size).copy()
        for index, drawn in self.waiting.items():
            if len(drawn) > len(self.words):
                more[index] = drawn[len(self.words)]
        self.words.append(more)

    def integers(self) -> list[int]:
        """floor(2^bits·z) as Python integers: slow, for short vectors and for tests."""
        values: list[int] = self.floors.tolist()
        for more in self.words:
            values = [
                value << WORD_BITS | word for value, word in zip(values, more.tolist(), strict=True)
            ]
        return values


def _waiting(sample: Draw) -> dict[int, tuple[int, ...]]:
    settled = sample.settled.items()
    return {index: one.next_words for index, one in settled if one.next_words}
