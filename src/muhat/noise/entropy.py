"""Random words from the operating system, and from nowhere else.

Nothing is kept between two calls: there is no generator to seed, copy, pickle or inherit
through a fork. Tests hand the private samplers another source, which replays given words.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 64

Words = Callable[[int], NDArray[np.uint64]]
"""A source of random words: asked for n, it gives n independent uniform 64-bit integers."""


def system_words(count: int) -> NDArray[np.uint64]:
    """`count` independent uniform 64-bit words, of shape (count,)."""
    return np.frombuffer(os.urandom(count * WORD_BITS // 8), dtype=np.uint64)
