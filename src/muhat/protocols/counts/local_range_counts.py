"""Counts of ranges in the local model: one byte of everybody about the cell of a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors
from muhat.protocols.counts.range_protocols import RangesAsked
from muhat.protocols.estimators.range_choice import best_ranges, range_difficulty
from muhat.protocols.estimators.range_spreads import AnswerSpread
from muhat.protocols.estimators.ranges_result import FOLLOWED, ROUNDED, CountedRanges, turnout
from muhat.protocols.means.one_round import NORMAL, TRUSTS_NOBODY
from muhat.protocols.protocol import Protocol, least_users
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer

if TYPE_CHECKING:
    from muhat.protocols.roles.collector import Received


@dataclass(frozen=True)
class LocalRanges(RangesAsked):
    """The counts of cells over n people, whose devices trust nobody."""

    kind: ClassVar[str] = "local-ranges"
    model: ClassVar[str] = "local"

    def first(self, minimum: int | None) -> Protocol:
        """The only round: the answers of least error over all ranges for the promise."""
        ranges = best_ranges(self.grid, self._numbered, self.privacy, two_sided=True)
        return Protocol(self, ranges, self.n, least_users(self.n, minimum))

    def expected_error(self, protocol: Protocol) -> float:
        """The root mean square error of the counts of all ranges, for records spread evenly."""
        ranges = self._ranges(protocol)
        known = ranges.response.information * ranges.mix.shares
        noise = float(np.sum(range_difficulty(ranges.tree) / known))
        # Who is asked about which level is drawn at random, but the records are not.
        width = np.arange(1, self.grid.cells + 1)
        share = width / self.grid.cells
        own = float(np.average(share * (1 - share), weights=self.grid.cells + 1 - width))
        return float(np.sqrt(protocol.users * max(noise - own, 0.0)))

    def after(self, protocol: Protocol, received: Received) -> CountedRanges:
        """The counts of the people who have answered."""
        ranges = self._ranges(protocol)
        found = ranges.estimate(received.nonces, received.payloads)
        people = received.users
        spread = AnswerSpread(
            ranges.mix,
            ranges.response,
            tuple(found.messages.tolist()),
            tuple(np.maximum(found.density(), 0.0).tolist()),
        )
        return CountedRanges(
            columns=(self.column,),
            grid=self.grid,
            counts=tuple((people * found.histogram()).tolist()),
            spread=spread,
            mechanism=f"local-{ranges.kind}",
            privacy=self.privacy,
            neighbors=Neighbors.SUBSTITUTE,
            n=people,
            contributions=1,
            assumptions=(
                TRUSTS_NOBODY,
                ROUNDED,
                FOLLOWED,
                ESTIMATED,
                NORMAL,
                *turnout(protocol.users, people),
            ),
            plan_digest=protocol.digest,
        )

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


ESTIMATED = (
    "who is asked about which cells is random; standard errors are exact for given shares of the "
    "cells, and the estimated ones are put in"
)
