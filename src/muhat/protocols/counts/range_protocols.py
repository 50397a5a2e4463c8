"""Counts of ranges when nobody may see the records: `local_ranges` and `shuffle_ranges`.

    protocol = muhat.protocols.shuffle_ranges(lower=0, upper=100, cells=20, n=…, privacy=…)

Both are protocols like those of means, of one round, which gives `CountedRanges`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from muhat import _check, privacy
from muhat.planning.caution import warn_of_large_delta
from muhat.privacy import Privacy, check_promise
from muhat.protocols.encodings.equal_cells import EqualCells, read_cells
from muhat.protocols.protocol import MOST_USERS, Protocol


@dataclass(frozen=True)
class RangesAsked:
    """The counts of equal cells, and of all ranges of them, over n people."""

    grid: EqualCells
    privacy: Privacy
    n: int
    column: str = "0"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _check.count("n", self.n))

    def describe(self) -> str:
        """What is estimated, in a sentence."""
        return f"the counts of {self.n} people's numbers in {self.grid.describe()}"

    def to_dict(self) -> dict[str, Any]:
        """The description."""
        return {
            "grid": self.grid.to_dict(),
            "privacy": privacy.to_dict(self.privacy),
            "n": self.n,
            "column": self.column,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The estimator described."""
        return cls(
            read_cells(fields["grid"]),
            privacy.from_dict(fields["privacy"]),
            fields["n"],
            str(fields["column"]),
        )


def local_ranges(
    *,
    lower: float,
    upper: float,
    cells: int,
    n: int,
    privacy: Privacy,
    column: str = "0",
    minimum: int | None = None,
) -> Protocol:
    """Counts of cells and ranges of a number in the local model, in one round of a byte each.

    Args:
        lower: the least that numbers are; smaller ones count as that.
        upper: the largest.
        cells: how many cells of the same width there are between them, from 2 to 4096. The more
            there are, the larger is the noise.
        n: how many people are planned to take part.
        privacy: what every message promises about its record.
        column: what the number is called.
        minimum: with fewer answers no result is given; half of the users unless stated.

    >>> import muhat as mh
    >>> promise = mh.PureDP(epsilon=1.0)
    >>> protocol = local_ranges(lower=0, upper=100, cells=20, n=1000, privacy=promise)
    >>> protocol.bytes_per_user
    29
    """
    from muhat.protocols.counts.local_range_counts import LocalRanges

    check_promise(privacy)
    n = _check.count("n", n, most=MOST_USERS)
    grid = EqualCells(lower, upper, cells)
    warn_of_large_delta(privacy, n, stacklevel=2)
    return LocalRanges(grid, privacy, n, str(column)).first(minimum)


def shuffle_ranges(
    *,
    lower: float,
    upper: float,
    cells: int,
    n: int,
    privacy: Privacy,
    column: str = "0",
    minimum: int | None = None,
) -> Protocol:
    """Counts of cells and ranges of a number in the shuffle model, in one round.

    Args:
        lower: the least that numbers are; smaller ones count as that.
        upper: the largest.
        cells: how many cells of the same width there are between them, from 2 to 4096. What a
            device sends grows with them.
        n: how many people are planned to take part, at most.
        privacy: what the mixed messages promise about everybody's record: ApproxDP.
        column: what the number is called.
        minimum: how many people must take part honestly; nine in ten unless stated.

    >>> import muhat as mh
    >>> promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    >>> protocol = shuffle_ranges(lower=0, upper=100, cells=20, n=1000, privacy=promise)
    >>> protocol.round, protocol.randomizer.kind
    (1, 'shares')
    """
    from muhat.protocols.counts.shuffle_range_counts import ShuffleRanges

    check_promise(privacy)
    n = _check.count("n", n, most=MOST_USERS)
    grid = EqualCells(lower, upper, cells)
    warn_of_large_delta(privacy, n, stacklevel=2)
    return ShuffleRanges(grid, privacy, n, str(column)).first(minimum)
