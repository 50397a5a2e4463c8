"""Counts of equal cells, and of all ranges of them, over people, whoever is trusted with what.

local     one byte of everybody about the cell of a number
shuffle   noisy counts of blocks of cells. A histogram alone has the least noise a count, but a
          range of many cells adds up that of all of them; with larger blocks beside the cells
          it takes few counts, each with more noise. How many sizes of blocks are best follows
          from the promise and the number of cells. docs/proofs/shuffle-sums.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.protocols.counts.count_estimator import RangesEstimator
from muhat.protocols.encodings.tree_encoding import TreeEncoding
from muhat.protocols.estimators.block_tree import MOST_SIZES, BlockTree, best_sizes
from muhat.protocols.estimators.false_messages import SURE, UNEXPLAINED
from muhat.protocols.estimators.range_choice import best_ranges, range_difficulty
from muhat.protocols.estimators.range_counts import range_counts
from muhat.protocols.estimators.range_spreads import AnswerSpread, BlockSpread, reach
from muhat.protocols.estimators.ranges_result import CountedRanges
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.randomizers.randomizer import Received
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.protocols.roles.model import LOCAL, NORMAL, SHUFFLE, Model, approximate
from muhat.protocols.roles.protocol import Protocol
from muhat.release.release import Release

ESTIMATED = (
    "who is asked about which cells is random; standard errors are exact for given parts of the "
    "people in the cells, and the estimated ones are put in"
)
TAILS = (
    "intervals treat the noise as normal or, if it is Laplace's, as that of a single count, "
    "whichever is wider"
)


@dataclass(frozen=True)
class LocalRanges(RangesEstimator):
    """The counts of cells over n people, whose devices trust nobody."""

    kind: ClassVar[str] = "local-ranges"
    model: ClassVar[Model] = LOCAL

    def first(self, minimum: int | None) -> Protocol:
        """The only round: the answers of least error over all ranges for the promise."""
        ranges = best_ranges(self.grid, self._numbered, self.privacy, two_sided=True)
        return Protocol(self, ranges, self.n, self.model.least_users(self.n, minimum))

    def expected_error(self, protocol: Protocol) -> float:
        """The root mean square error of the counts of all ranges, for records spread evenly."""
        ranges = self._ranges(protocol)
        known = ranges.response.information * ranges.mix.averages
        noise = float(np.sum(range_difficulty(ranges.tree) / known))
        # Who is asked about which level is drawn at random, but the records are not.
        width = np.arange(1, self.grid.cells + 1)
        part = width / self.grid.cells
        own = float(np.average(part * (1 - part), weights=self.grid.cells + 1 - width))
        return float(np.sqrt(protocol.users * max(noise - own, 0.0)))

    def check_round(self, protocol: Protocol) -> None:
        """The only round is about these cells: see `Estimator`."""
        protocol.require_only()
        self._ranges(protocol)

    def after(self, protocol: Protocol, received: Received) -> Release:
        """The counts of the people who have answered."""
        ranges, people = self._ranges(protocol), received.users
        found = range_counts(ranges, received.nonces, received.payloads)
        spread = AnswerSpread(
            ranges.mix,
            ranges.response,
            tuple(found.messages.tolist()),
            tuple(np.maximum(found.density(), 0.0).tolist()),
        )
        answer = CountedRanges(
            grid=self.grid,
            counts=tuple((people * found.histogram()).tolist()),
            spread=spread,
            **self.account(protocol, people, ranges.kind, ESTIMATED, NORMAL),
        )
        return protocol.released(answer)

    @property
    def _numbered(self) -> UniformGrid:
        """The numbers of the cells, which is what the randomizer sees of a record."""
        return UniformGrid(0.0, self.grid.cells - 1.0, 1.0)

    def _ranges(self, protocol: Protocol) -> RangeRandomizer:
        ranges = protocol.randomizer
        fits = isinstance(ranges, RangeRandomizer) and ranges.look == self.grid
        if not isinstance(ranges, RangeRandomizer) or not fits or ranges.grid != self._numbered:
            raise InvalidInput("the round's randomizer is not about these cells.")
        return ranges


@dataclass(frozen=True)
class ShuffleRanges(RangesEstimator):
    """The counts of cells over n people, whose devices trust the shuffler to mix."""

    kind: ClassVar[str] = "shuffle-ranges"
    model: ClassVar[Model] = SHUFFLE

    def first(self, minimum: int | None, honest: int | None = None) -> Protocol:
        """The only round: the blocks of the least error over all ranges for the promise."""
        turnout = self.model.turnout(self.n, minimum, honest)
        found = (best_sizes(self.grid.cells, count) for count in range(1, MOST_SIZES + 1))
        rounds = [
            Protocol(
                self,
                self._asks(tree, turnout.counted_on),
                self.n,
                turnout.minimum,
                honest=turnout.honest,
            )
            for tree in found
            if tree is not None
        ]
        return min(rounds, key=self.expected_error)

    def expected_error(self, protocol: Protocol) -> float:
        """The root mean square error of the counts of all ranges, whatever the records."""
        spread = self._spread(protocol, protocol.users)
        return float(np.sqrt(spread.variance * spread.tree.average))

    def check_round(self, protocol: Protocol) -> None:
        """The only round is about blocks of these cells: see `Estimator`."""
        protocol.require_only()
        self._spread(protocol, protocol.users)

    def after(self, protocol: Protocol, received: Received) -> Release:
        """The counts of the people who have answered."""
        people = received.users
        spread = self._spread(protocol, people)
        asked, encoding = self._asked(protocol)
        (part,) = asked.summed(received)
        counted = [each[0] for each in encoding.counts(part.totals)]
        # Whatever the records are, the blocks of a size hold everybody.
        lacking = np.abs([each.sum() - people for each in counted])
        errors = np.sqrt([spread.variance * len(each) for each in counted])
        whole = (lacking <= reach(spread.law, SURE, errors)).all()
        told = () if whole and part.is_explained else (UNEXPLAINED,)
        ascending = [counted[encoding.blocks.index(size)] for size in spread.tree.sizes]
        answer = CountedRanges(
            grid=self.grid,
            counts=tuple(spread.tree.smoothed(ascending, people).tolist()),
            spread=spread,
            **self.account(protocol, people, encoding.kind, TAILS, *told),
        )
        return protocol.released(answer)

    def _asks(self, tree: BlockTree, honest: int) -> FragmentRandomizer:
        encoding = TreeEncoding(tree.padded, tree.sizes, look=self.grid)
        allowance = Allowance(approximate(self.privacy))
        return FragmentRandomizer.of(encoding, allowance, honest=honest, users=self.n)

    def _spread(self, protocol: Protocol, people: int) -> BlockSpread:
        asked, encoding = self._asked(protocol)
        tree = BlockTree(self.grid.cells, tuple(sorted(encoding.blocks)))
        variance = asked.variance(people) * float(encoding.unit) ** 2
        return BlockSpread(tree, variance, asked.noise.law)

    def _asked(self, protocol: Protocol) -> tuple[FragmentRandomizer, TreeEncoding]:
        asked = protocol.randomizer
        encoding = asked.encoding if isinstance(asked, FragmentRandomizer) else None
        if not isinstance(asked, FragmentRandomizer) or not isinstance(encoding, TreeEncoding):
            raise InvalidInput("the round's randomizer does not count blocks of cells.")
        largest = max(encoding.blocks)
        padded = -(-self.grid.cells // largest) * largest
        if (encoding.look, encoding.dim, encoding.cells) != (self.grid, 1, padded):
            raise InvalidInput("the round's randomizer is not about these cells.")
        return asked, encoding
