"""Counts of ranges in the shuffle model: noisy counts of blocks of cells, in one round.

A histogram alone has the least noise a count, but a range of many cells adds up that of all of
them; with larger blocks beside the cells it takes few counts, each with more noise. How many sizes
of blocks are best follows from the promise and the number of cells. docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muhat.errors import InvalidInput
from muhat.privacy import Neighbors
from muhat.protocols.counts.range_protocols import RangesAsked
from muhat.protocols.encodings.tree_encoding import TreeEncoding
from muhat.protocols.estimators.block_tree import MOST_SIZES, BlockTree, best_sizes
from muhat.protocols.estimators.range_spreads import BlockSpread
from muhat.protocols.estimators.ranges_result import FOLLOWED, ROUNDED, CountedRanges, turnout
from muhat.protocols.means.shuffle_mean import HONEST_SHARE, TRUSTED, approximate
from muhat.protocols.protocol import Protocol, least_users
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.share_randomizer import ShareRandomizer

if TYPE_CHECKING:
    from muhat.protocols.roles.collector import Received


@dataclass(frozen=True)
class ShuffleRanges(RangesAsked):
    """The counts of cells over n people, whose devices trust the shuffler to mix."""

    kind: ClassVar[str] = "shuffle-ranges"
    model: ClassVar[str] = "shuffle"

    def __post_init__(self) -> None:
        super().__post_init__()
        approximate(self.privacy)

    def first(self, minimum: int | None) -> Protocol:
        """The only round: the blocks of the least error over all ranges for the promise."""
        least = least_users(self.n, minimum, HONEST_SHARE)
        found = (best_sizes(self.grid.cells, count) for count in range(1, MOST_SIZES + 1))
        rounds = [
            Protocol(self, self._asks(tree, least), self.n, least)
            for tree in found
            if tree is not None
        ]
        return min(rounds, key=self.expected_error)

    def expected_error(self, protocol: Protocol) -> float:
        """The root mean square error of the counts of all ranges, whatever the records."""
        spread = self._spread(protocol, protocol.users)
        return float(np.sqrt(spread.variance * spread.tree.average))

    def after(self, protocol: Protocol, received: Received) -> CountedRanges:
        """The counts of the people who have answered."""
        people, payloads = received.users, received.payloads
        spread = self._spread(protocol, people)
        shares, encoding = self._asked(protocol)
        counted = [each[0] for each in encoding.counts(shares.totals(payloads))]
        ascending = [counted[encoding.blocks.index(size)] for size in spread.tree.sizes]
        return CountedRanges(
            columns=(self.column,),
            grid=self.grid,
            counts=tuple(spread.tree.smoothed(ascending, people).tolist()),
            spread=spread,
            mechanism=f"shuffle-{encoding.kind}",
            privacy=self.privacy,
            neighbors=Neighbors.SUBSTITUTE,
            n=people,
            contributions=1,
            assumptions=(*TRUSTED, ROUNDED, FOLLOWED, TAILS, *turnout(protocol.users, people)),
            plan_digest=protocol.digest,
        )

    def _asks(self, tree: BlockTree, honest: int) -> ShareRandomizer:
        return ShareRandomizer.of_tree(
            tree.padded,
            tree.sizes,
            Allowance(approximate(self.privacy)),
            honest=honest,
            users=self.n,
            look=self.grid,
        )

    def _spread(self, protocol: Protocol, people: int) -> BlockSpread:
        shares, encoding = self._asked(protocol)
        tree = BlockTree(self.grid.cells, tuple(sorted(encoding.blocks)))
        variance = shares.variance(people) * float(encoding.unit) ** 2
        return BlockSpread(tree, variance, shares.noise.law)

    def _asked(self, protocol: Protocol) -> tuple[ShareRandomizer, TreeEncoding]:
        shares = protocol.randomizer
        encoding = shares.encoding if isinstance(shares, ShareRandomizer) else None
        if not isinstance(shares, ShareRandomizer) or not isinstance(encoding, TreeEncoding):
            raise InvalidInput("the round's randomizer does not count blocks of cells.")
        largest = max(encoding.blocks)
        padded = -(-self.grid.cells // largest) * largest
        if (encoding.look, encoding.dim, encoding.cells) != (self.grid, 1, padded):
            raise InvalidInput("the round's randomizer is not about these cells.")
        return shares, encoding


TAILS = (
    "intervals treat the noise as normal or, if it is Laplace's, as that of a single count, "
    "whichever is wider"
)
