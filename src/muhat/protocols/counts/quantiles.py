"""Quantiles of a number over people, whoever is trusted with what.

local     one byte of everybody about where a number lies on a grid
shuffle   counts below public cuts, which close in on the quantiles: every round asks, for a
          share of the promise, how many people lie below each of some dozen cuts. Cells that
          the counts leave possible are cut again; when they are as small as the grid's, or
          none of them holds many people, the rest of the promise is spent on the last counts.
          docs/proofs/shuffle-chain.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.protocols.counts.count_estimator import QuantileEstimator
from muhat.protocols.encodings.cut_encoding import CutEncoding, CutPlace, padded
from muhat.protocols.encodings.range_cells import Coordinates
from muhat.protocols.estimators.cut_counts import CutCounts
from muhat.protocols.estimators.false_messages import UNEXPLAINED
from muhat.protocols.estimators.quantile_result import CountedQuantiles, rank_of
from muhat.protocols.estimators.range_choice import best_ranges
from muhat.protocols.estimators.range_counts import range_counts
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.randomizers.randomizer import Received
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.protocols.roles.model import (
    LOCAL,
    NORMAL,
    SHUFFLE,
    Model,
    approximate,
    explained_before,
    spent_before,
)
from muhat.protocols.roles.protocol import Protocol
from muhat.release.release import Release

LEVELS = 6
"""2^6 cells for one quantile; twice as many for two or three, and so on."""

ZOOM_SHARE = Fraction(1, 25)
MOST_ZOOMS = 6

SURE = 5.0
"""Deviations within which counts are believed when cells are left out."""

LIGHT = 3.0
"""Cells with fewer people than so many deviations of a count are cut for the last time."""

LOOK = Coordinates(1)
"""What an answer of the local model is about."""

Window = tuple[int, int]


@dataclass(frozen=True)
class LocalQuantile(QuantileEstimator):
    """Quantiles over n people, whose devices trust nobody."""

    kind: ClassVar[str] = "local-quantile"
    model: ClassVar[Model] = LOCAL

    def first(self, minimum: int | None) -> Protocol:
        """The only round: the answers of least error for the promise."""
        ranges = best_ranges(LOOK, self.grid, self.privacy)
        return Protocol(self, ranges, self.n, self.model.least_users(self.n, minimum))

    def check_round(self, protocol: Protocol) -> None:
        """The only round is about the grid: see `Estimator`."""
        protocol.require_only()
        self._ranges(protocol)

    def _ranges(self, protocol: Protocol) -> RangeRandomizer:
        ranges = protocol.randomizer
        look = ranges.look if isinstance(ranges, RangeRandomizer) else None
        if not isinstance(ranges, RangeRandomizer) or (look, ranges.grid) != (LOOK, self.grid):
            raise InvalidInput("the round's randomizer is not about this grid.")
        return ranges

    def after(self, protocol: Protocol, received: Received) -> Release:
        """The quantiles of the people who have answered."""
        ranges = self._ranges(protocol)
        counts = range_counts(ranges, received.nonces, received.payloads)
        people, cells = received.users, self.grid.cells
        below, errors = people * counts.prefix()[1:cells], people * counts.standard_error()[1:cells]
        # A count of which nobody has told anything is as uncertain as can be.
        errors = np.where(np.isfinite(errors), errors, people)
        steady = np.rint(people * counts.monotone()[1:] * 2**20) / 2**20
        ranks = [rank_of(fraction, people) for fraction in self.fractions]
        answer = CountedQuantiles(
            q=self.q,
            grid=self.grid,
            cuts=tuple(range(cells - 1)),
            reached=tuple(below.tolist()),
            errors=tuple(errors.tolist()),
            found=tuple(np.searchsorted(steady, ranks).tolist()),
            **self.account(protocol, people, ranges.kind, NORMAL),
        )
        return protocol.released(answer)


@dataclass(frozen=True)
class ShuffleQuantile(QuantileEstimator):
    """Quantiles over n people, whose devices trust the shuffler to mix."""

    kind: ClassVar[str] = "shuffle-quantile"
    model: ClassVar[Model] = SHUFFLE

    @property
    def levels(self) -> int:
        """Of the tree of cells."""
        return LEVELS + len(self.fractions).bit_length() - 1

    def first(self, minimum: int | None, honest: int | None = None) -> Protocol:
        """The first round: cuts at even distances, or all that there are."""
        turnout = self.model.turnout(self.n, minimum, honest)
        cuts, is_last = self._cuts([(0, self.grid.cells - 1)])
        share = Fraction(1) if is_last else ZOOM_SHARE
        asks = self._asks(cuts, share, turnout.counted_on)
        return Protocol(self, asks, self.n, turnout.minimum, honest=turnout.honest)

    def check_round(self, protocol: Protocol) -> None:
        """Cuts of the grid, after windows that fit it: see `Estimator`."""
        _, encoding = self._asked(protocol)
        cuts = encoding.cuts
        inside = 0 <= cuts[0] <= cuts[-1] < self.grid.cells
        if (
            encoding.look != CutPlace(self.grid)
            or not inside
            or not all(map(float.is_integer, cuts))
        ):
            raise InvalidInput("the round's randomizer is not about this grid.")
        self._before(protocol)

    def _asked(self, protocol: Protocol) -> tuple[FragmentRandomizer, CutEncoding]:
        asked = protocol.randomizer
        encoding = asked.encoding if isinstance(asked, FragmentRandomizer) else None
        if not isinstance(asked, FragmentRandomizer) or not isinstance(encoding, CutEncoding):
            raise InvalidInput("the round's randomizer is not one of this protocol.")
        return asked, encoding

    def after(self, protocol: Protocol, received: Received) -> Protocol | Release:
        """Cuts that are closer together, or the quantiles."""
        asked, encoding = self._asked(protocol)
        (part,) = asked.summed(received)
        counts, share = CutCounts.of(part), asked.share
        spent = share + spent_before(protocol)
        if spent == 1:
            honest = part.is_explained and explained_before(protocol)
            return self._result(protocol, encoding, counts, () if honest else (UNEXPLAINED,))
        windows = self._windows(counts, self._before(protocol))
        cuts, is_last = self._cuts(windows, counts)
        zooms = len(protocol.learnt) + 1
        enough = is_last or zooms == MOST_ZOOMS or self._is_light(counts, windows)
        entry: dict[str, Any] = {
            "share": str(share),
            "people": received.users,
            "description": protocol.digest,
            "windows": [list(window) for window in windows],
            **({} if part.is_explained else {"unexplained": True}),
        }
        asks = self._asks(cuts, 1 - spent if enough else ZOOM_SHARE, protocol.counted_on)
        return protocol.following(asks, protocol.users, entry)

    def _before(self, protocol: Protocol) -> list[Window]:
        """The windows that the rounds before have left, one a quantile."""
        last_cell = self.grid.cells - 1
        if not protocol.learnt:
            return [(0, last_cell)] * len(self.fractions)
        told = protocol.learnt[-1].get("windows")
        try:
            found = [(int(first), int(last)) for first, last in told]  # type: ignore[union-attr]
        except (TypeError, ValueError):
            raise InvalidInput("the windows that were learnt are not well described.") from None
        fit = all(0 <= first <= last <= last_cell for first, last in found)
        if len(found) != len(self.fractions) or not fit:
            raise InvalidInput("the windows that were learnt do not fit the grid.")
        return found

    def _asks(self, cuts: Sequence[int], share: Fraction, honest: int) -> FragmentRandomizer:
        allowance = Allowance(approximate(self.privacy)).part(share)
        levels = len(cuts).bit_length()
        places = padded([float(cut) for cut in cuts], levels)
        encoding = CutEncoding(CutPlace(self.grid), places)
        return FragmentRandomizer.of(encoding, allowance, honest=honest, users=self.n)

    def _windows(self, counts: CutCounts, before: Sequence[Window]) -> list[Window]:
        """The cells (first, last) that can hold each quantile, as far as all rounds tell."""
        cuts, reach = counts.cuts.astype(np.int64), SURE * counts.errors
        found: list[Window] = []
        for fraction, (start, end) in zip(self.fractions, before, strict=True):
            rank = rank_of(fraction, counts.people)
            first = int(cuts[counts.below + reach < rank].max(initial=start - 1)) + 1
            last = int(cuts[counts.below - reach >= rank].min(initial=end))
            within = max(first, start), min(last, end)
            found.append(within if within[0] <= within[1] else (start, end))
        return found

    def _cuts(
        self, windows: Sequence[Window], counts: CutCounts | None = None
    ) -> tuple[list[int], bool]:
        """Cuts around and inside the windows, and whether they are all that there are.

        Half of them at even distances, half with as many people between them, as far as is known.
        """
        windows = _apart(windows)
        ends = {end for first, last in windows for end in (first - 1, last)}
        outside = {-1, self.grid.cells - 1}
        if len(ends) + sum(last - first for first, last in windows) < 1 << self.levels:
            every = {cut for first, last in windows for cut in range(first, last)}
            return sorted((ends | every) - outside) or [0], True
        places, below = self._known(counts)
        points = [
            np.unique([first - 1, *places[(places >= first) & (places < last)], last])
            for first, last in windows
        ]
        starts = np.concatenate([each[:-1] for each in points])
        widths = np.concatenate([np.diff(each) for each in points])
        people = np.concatenate([np.diff(np.interp(each, places, below)) for each in points])
        parts = widths / widths.sum() + people / max(float(people.sum()), 1e-9)
        way, most = np.concatenate([[0.0], np.cumsum(parts)]), (1 << self.levels) - 1
        count = most - len(ends)
        while True:
            levels = np.linspace(0, way[-1], count + 2)[1:-1]
            cell = np.minimum(np.searchsorted(way, levels, side="right") - 1, len(starts) - 1)
            chosen = np.floor(starts[cell] + widths[cell] * (levels - way[cell]) / parts[cell])
            # A single cell with many people keeps the cuts on both of its sides.
            single = starts[cell][widths[cell] == 1]
            inner = np.concatenate([chosen, single, single + 1]).astype(int)
            found = (ends | set(inner.tolist())) - outside
            if len(found) <= most:
                return sorted(found), False
            count -= len(found) - most

    def _is_light(self, counts: CutCounts, windows: Sequence[Window]) -> bool:
        """Whether no cell in the windows that could be cut again holds many people."""
        places, below = self._known(counts)
        people = np.where(np.diff(places) > 1, np.diff(below), 0.0)
        inside = np.zeros(len(people), bool)
        for first, last in windows:
            inside |= (places[1:] >= first) & (places[:-1] < last)
        return float(people[inside].max(initial=0.0)) <= LIGHT * float(np.median(counts.errors))

    def _known(self, counts: CutCounts | None) -> tuple[Floats, Floats]:
        """Cuts, ends included, and how many people seem to be up to each of them."""
        ends = np.array([-1.0, self.grid.cells - 1.0])
        if counts is None:
            return ends, np.zeros(2)
        places = np.concatenate([ends[:1], counts.cuts, ends[1:]])
        below = np.concatenate([[0.0], counts.monotone, [float(counts.people)]])
        return places, below

    def _result(
        self,
        protocol: Protocol,
        encoding: CutEncoding,
        counts: CutCounts,
        told: tuple[str, ...],
    ) -> Release:
        cuts, people = counts.cuts.astype(np.int64), counts.people
        places, below = self._known(counts)
        ranks = [rank_of(fraction, people) for fraction in self.fractions]
        answer = CountedQuantiles(
            q=self.q,
            grid=self.grid,
            cuts=tuple(cuts.tolist()),
            reached=tuple(counts.below.tolist()),
            errors=tuple(counts.errors.tolist()),
            found=tuple(_reached(places, below, rank) for rank in ranks),
            **self.account(protocol, people, encoding.kind, NORMAL, *told),
        )
        return protocol.released(answer)


def _apart(windows: Sequence[Window]) -> list[Window]:
    """The same cells in ascending windows that do not touch."""
    found: list[Window] = []
    for first, last in sorted(windows):
        if found and first <= found[-1][1] + 1:
            before = found.pop()
            first, last = before[0], max(last, before[1])
        found.append((first, last))
    return found


def _reached(places: Floats, below: Floats, rank: int) -> int:
    """The first cell up to which so many people are, if they are even between the cuts."""
    cut = int(np.searchsorted(below, rank))
    before, after = below[cut - 1], below[cut]
    part = (rank - before) / (after - before) if after > before else 1.0
    return int(np.ceil(places[cut - 1] + part * (places[cut] - places[cut - 1])))
