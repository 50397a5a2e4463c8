"""Whole numbers and orders, each as likely as any other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Integers
from muhat.noise.entropy import WORD_BITS, Words, system_words


def uniform_numbers(bound: int, size: int, words: Words) -> Integers:
    """Independent uniform whole numbers below the bound, by rejection."""
    if bound == 1:
        return np.zeros(size, np.int64)
    unused = np.uint64(WORD_BITS - (bound - 1).bit_length())
    found = words(size) >> unused
    while len(again := np.flatnonzero(found >= bound)):
        found[again] = words(len(again)) >> unused
    return found.astype(np.int64)


def random_order(size: int, words: Words = system_words) -> NDArray[np.intp]:
    """A uniformly random order of `size` things.

    That of random keys: given that no two of them are equal, all orders are equally likely.
    """
    while True:
        keys = words(size)
        order = np.argsort(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order
