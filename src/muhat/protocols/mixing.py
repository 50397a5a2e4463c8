"""What a shuffler does with shares, and what is left for the server: the sums.

For each of the numbers that people were asked, all shares of all people are put in random order,
every order as likely as any other, independently of everything. The order among the numbers is
public, that among the people gone. docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.protocols.randomizer import Bytes
from muhat.protocols.share_randomizer import ShareRandomizer, Shares


def mix(payloads: Bytes, randomizer: ShareRandomizer, words: Words = system_words) -> Shares:
    """The shares of all people in random order, a row a number: (numbers, people·m)."""
    people = len(payloads)
    mixed = np.empty((randomizer.numbers, people * randomizer.noise.shares), np.uint64)
    shares = randomizer.unpacked(payloads)
    for index, row in enumerate(mixed):
        np.take(shares[:, index].ravel(), random_order(row.size, words), out=row)
    return mixed


def repacked(mixed: Shares, randomizer: ShareRandomizer) -> Bytes:
    """Mixed shares as payloads again, each of them made of shares of many people."""
    m = randomizer.noise.shares
    return randomizer.packed(mixed.reshape(len(mixed), -1, m).swapaxes(0, 1))


def total(mixed: Shares, randomizer: ShareRandomizer) -> list[int]:
    """The sums of all people's numbers, noise included, one a number.

    Right but for a chance of `modulus.WRAP`. More people than the modulus can count are refused.
    """
    m = randomizer.noise.shares
    if mixed.ndim != 2 or len(mixed) != randomizer.numbers or mixed.shape[1] % m:
        raise InvalidInput(
            f"mixed shares must have {randomizer.numbers} rows of {m} shares a person."
        )
    remainders = mixed.sum(axis=1) & np.uint64(randomizer.noise.modulus - 1)
    return randomizer.sums(remainders, mixed.shape[1] // m)


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
