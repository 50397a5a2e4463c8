"""Quantiles in the local model: one byte of everybody about where a number lies on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muhat.errors import InvalidInput
from muhat.privacy import Neighbors
from muhat.protocols.counts.quantile_protocols import QuantileAsked
from muhat.protocols.encodings.range_cells import Coordinates
from muhat.protocols.estimators.quantile_result import FOLLOWED, CountedQuantiles, rank_of, turnout
from muhat.protocols.estimators.range_choice import best_ranges
from muhat.protocols.means.one_round import NORMAL, TRUSTS_NOBODY
from muhat.protocols.protocol import Protocol, least_users
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer

if TYPE_CHECKING:
    from muhat.protocols.roles.collector import Received


@dataclass(frozen=True)
class LocalQuantile(QuantileAsked):
    """Quantiles over n people, whose devices trust nobody."""

    kind: ClassVar[str] = "local-quantile"
    model: ClassVar[str] = "local"

    def first(self, minimum: int | None) -> Protocol:
        """The only round: the answers of least error for the promise."""
        ranges = best_ranges(Coordinates(1), self.grid, self.privacy)
        return Protocol(self, ranges, self.n, least_users(self.n, minimum))

    def after(self, protocol: Protocol, received: Received) -> CountedQuantiles:
        """The quantiles of the people who have answered."""
        ranges = protocol.randomizer
        if not isinstance(ranges, RangeRandomizer) or ranges.grid != self.grid:
            raise InvalidInput("the round's randomizer is not about this grid.")
        counts = ranges.estimate(received.nonces, received.payloads)
        people, cells = received.users, self.grid.cells
        below, errors = people * counts.prefix()[1:cells], people * counts.standard_error()[1:cells]
        # A count of which nobody has told anything is as uncertain as can be.
        errors = np.where(np.isfinite(errors), errors, people)
        steady = np.rint(people * counts.monotone()[1:] * 2**20) / 2**20
        ranks = [rank_of(fraction, people) for fraction in self.fractions]
        return CountedQuantiles(
            q=self.q,
            columns=(self.column,),
            grid=self.grid,
            cuts=tuple(range(cells - 1)),
            below=tuple(below.tolist()),
            errors=tuple(errors.tolist()),
            found=tuple(np.searchsorted(steady, ranks).tolist()),
            mechanism=f"local-{ranges.kind}",
            privacy=self.privacy,
            neighbors=Neighbors.SUBSTITUTE,
            n=people,
            contributions=1,
            assumptions=(
                TRUSTS_NOBODY,
                ROUNDED,
                FOLLOWED,
                NORMAL,
                *turnout(protocol.users, people),
            ),
            plan_digest=protocol.digest,
        )


ROUNDED = (
    "records outside the bounds are clipped to them and all are rounded to the grid, a missing one "
    "to its middle; ranks are about these records"
)
