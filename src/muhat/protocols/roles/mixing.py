"""What a shuffler does with shares: nothing but their order changes.

For each of the numbers that people were asked, all shares of all people are put in random order,
every order as likely as any other, independently of everything. The order among the numbers is
public, that among the people gone. docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muhat.noise.entropy import Words, system_words
from muhat.protocols.randomizers.joint_randomizer import JointRandomizer, shared_parts
from muhat.protocols.randomizers.randomizer import Bytes
from muhat.protocols.randomizers.share_randomizer import ShareRandomizer


def mixed_payloads(
    payloads: Bytes, randomizer: ShareRandomizer | JointRandomizer, words: Words = system_words
) -> Bytes:
    """The same shares in random order, those of each number of each part among themselves."""
    mixed, start = np.empty_like(payloads), 0
    for part in shared_parts(randomizer):
        width = part.payload_bytes // part.messages
        for _ in range(part.numbers):
            end = start + width * part.noise.shares
            shares = payloads[:, start:end].reshape(-1, width)
            order = random_order(len(shares), words)
            mixed[:, start:end] = shares[order].reshape(len(mixed), end - start)
            start = end
    return mixed


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
