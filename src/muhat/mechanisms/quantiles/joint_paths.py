"""The weights of all lists of cells for several ranks at once, summed step by step.

Cells c_1 ≤ … ≤ c_m are sought for the ranks m_1 < … < m_m of about `end` records, with the targets
a_j = m_j − ½, a_0 = 0 and a_{m+1} = end. Cell c has the ranks F(c − 1) to F(c), and the loss is the
least that the numbers of records between neighbouring quantiles can be off together:

    Λ(c_1, …, c_m) = min Σ_j |(r_j − r_{j−1}) − (a_j − a_{j−1})|,   F(c_j − 1) ≤ r_j ≤ F(c_j),

r_0 = 0 and r_{m+1} = N. With s_j = r_j − a_j that is the length of a path from 0 to N − end, and a
shortest one is lazy: s_j is the point of its interval next to s_{j−1}. So weights exp(−2h·Λ/2^54)
add up step by step over *states*, a rank and where it lies: the last rank of a cell, one between
two cells that have records, where empty cells may lie, the first of a cell, or within one; or s_j =
0, where the path began. A lazy path of cells in order has r_j ≥ r_{j−1}, and equality only within
cells that end there. Sums are rounded down, or up, to whole numbers over 2^precision.
Proof: docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from muhat.mechanisms.quantiles.search_walk import Counts
from muhat.noise import FRACTION_BITS
from muhat.noise.exact import exponential

LAST, EMPTY, FIRST, WITHIN, START = range(5)
"""Where a rank lies: at the end of a cell, in empty cells, at the beginning of a cell, between
equal records; START is a path that has not moved yet."""

FIRST_REACH = 48
"""The windows around ranks leave out about e^−48 of all, at first."""


def window(most: int, cells: float, half_rate: int, distance: int = 0, times: int = 1) -> int:
    """How far from its target a rank may be, so that all else hardly weighs anything.

    2s − |N − end| is the least loss of a path that goes s away. `most` quantiles have as many
    lists of cells near their ranks as there are `cells` between two records, to that power.
    """
    nats = times * (FIRST_REACH + most * math.log(max(cells, 1)))
    return math.ceil(nats / (4 * half_rate) * (1 << FRACTION_BITS) + distance / 2) + 1


class PathState(NamedTuple):
    """A rank and where it lies."""

    rank: int
    place: int


@dataclass(frozen=True)
class PathStep:
    """The ranks that are looked at for one target, and how many empty cells lie at each."""

    target: int
    """m_j; a_j is ½ less."""
    first: int
    edge: list[bool]
    """Whether no cell has records on both sides of the rank."""
    empty: list[int]

    @classmethod
    def of(cls, up_to: Counts, target: int, reach: int) -> PathStep:
        """All ranks that are nearer to the target than `reach`."""
        total = int(up_to[-1])
        first = min(max(target - reach, 0), total)
        ranks = np.arange(first, max(min(target + reach, total + 1), first + 1))
        begin = np.searchsorted(up_to, ranks, "left")
        behind = np.searchsorted(up_to, ranks, "right")
        empty = np.where(ranks == 0, behind, behind - begin - 1)
        edge = (behind > begin) | (ranks == 0)
        return cls(target, first, edge.tolist(), np.maximum(empty, 0).tolist())

    @property
    def ranks(self) -> range:
        return range(self.first, self.first + len(self.edge))


@dataclass
class PathSums:
    """Weights of all paths up to each state of a step: a list a place, and START's."""

    places: tuple[list[int], ...]
    start: int
    whole: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.whole = [sum(each) for each in zip(*self.places, strict=True)]


class Tables:
    """The sums of all steps, rounded down, or `up`, at a precision."""

    def __init__(
        self,
        steps: Sequence[PathStep],
        total: int,
        end: int,
        half_rate: int,
        precision: int,
        up: int,
    ) -> None:
        self.steps, self._total, self._end = steps, total, end
        self._rate, self._precision, self._up = half_rate, precision, up
        self._round = ((1 << precision) - 1) * up
        longest = max(len(step.edge) for step in steps) + abs(total - end) + 2
        ratio = self._power(2)
        self._powers = [1 << precision]
        for _ in range(longest):
            self._powers.append(self.times(self._powers[-1], ratio))
        self._root = self._power(1)
        self._fallen = [self._power(2 * self.gap(j)) for j in range(len(steps))]
        # The weights of 1, 2, … quantiles up to j at one rank: each lets the path fall by its gap.
        self._chains = [
            [*accumulate(self._fallen[j:0:-1], self.times, initial=1 << precision)]
            for j in range(len(steps))
        ]
        self._entered: list[list[int]] = []  # weights of coming to empty cells from elsewhere
        self.sums: list[PathSums] = []
        for j in range(len(steps)):
            self.sums.append(self._next(j))

    def times(self, one: int, other: int) -> int:
        """The product, rounded."""
        return (one * other + self._round) >> self._precision

    def _power(self, halves: int) -> int:
        """e^(−halves·h/2^54)."""
        return exponential(halves * self._rate, FRACTION_BITS, self._precision)[self._up]

    def apart(self, halves: int) -> int:
        """The weight of a move by so many halves of a rank."""
        whole, odd = divmod(halves, 2)
        far = self._powers[whole] if whole < len(self._powers) else self._power(2 * whole)
        return self.times(far, self._root) if odd else far

    def gap(self, j: int) -> int:
        """How many ranks lie between the targets of this step and of the one before."""
        return self.steps[j].target - (self.steps[j - 1].target if j else 0)

    def choices(self, j: int, rank: int) -> list[int]:
        """The weights of 1, 2, … quantiles up to j in the same empty cells."""
        cells = self.steps[j].empty[rank - self.steps[j].first]
        found, ways, falls = [], 1, self._chains[j]
        for many in range(1, j + 2):
            place = rank - self.steps[j - many + 1].first
            # Ranks within the first window and the last are within all.
            if place >= len(self._entered[j - many + 1]):
                break
            ways = ways * (cells + many - 1) // many
            found.append(self.times(self._entered[j - many + 1][place] * ways, falls[many - 1]))
        return found

    def _next(self, j: int) -> PathSums:
        step, start = self.steps[j], self.sums[j - 1].start if j else 1 << self._precision
        rises, stays, falls = self._moves(j)
        for place, rank in enumerate(step.ranks):
            begun = self.start_weight(j, PathState(rank, EMPTY))
            (rises if rank >= step.target else falls)[place] += begun
        self._entered.append([sum(each) for each in zip(rises, stays, falls, strict=True)])
        places: tuple[list[int], ...] = ([], [], [], [])
        for place, rank in enumerate(step.ranks):
            edge, stay = step.edge[place], stays[place]
            places[LAST].append(stay + falls[place] if edge and rank else 0)
            places[EMPTY].append(sum(self.choices(j, rank)) if step.empty[place] else 0)
            places[FIRST].append(stay + rises[place] if edge and rank < self._total else 0)
            places[WITHIN].append(0 if edge else stay)
        return PathSums(places, start if step.target <= self._total else 0)

    def start_weight(self, j: int, state: PathState) -> int:
        """The paths that have not moved before they come to a state."""
        if j and state.rank < self.steps[j - 1].target:
            return 0
        side = 2 * (state.rank - self.steps[j].target) + 1
        if state.place == WITHIN or side * (state.place - EMPTY) < 0:
            return 0
        begun = self.sums[j - 1].start if j else 1 << self._precision
        return self.times(begun, self.apart(abs(side)))

    def _moves(self, j: int) -> tuple[list[int], list[int], list[int]]:
        """From all states of the step before: paths that rise to a rank, stay, and fall to it."""
        step, size = self.steps[j], len(self.steps[j].edge)
        if not j:
            return [0] * size, [0] * size, [0] * size
        before, sums, gap = self.steps[j - 1], self.sums[j - 1], self.gap(j)
        whole, ratio = sums.whole, self._powers[1]
        count = len(whole)

        def at(place: int) -> int:
            return whole[place] if 0 <= place < count else 0

        shift = step.first - before.first - gap  # the place of the rank that stays at the first
        rises, rising = [], 0
        for place in range(min(shift, 0), shift):
            rising = self.times(rising + at(place), ratio)
        for place in range(shift, shift + size):
            rises.append(rising)
            rising = self.times(rising + at(place), ratio)
        stays = [at(place) for place in range(shift, shift + size)]
        falls = self._falls(whole, shift, gap, size)
        for place in range(size):
            # Another quantile in a cell that ends with this rank.
            if 0 <= (same := place + shift + gap) < count:
                falls[place] += self.times(sums.places[LAST][same], self._fallen[j])
        return rises, stays, falls

    def _falls(self, whole: list[int], shift: int, gap: int, size: int) -> list[int]:
        """Σ_d whole[i + d]·e^(−2hd) for 1 ≤ d < gap and i = shift, …: ranks must not fall.

        Sums over a sliding stretch, without differences: the stretch lies in two blocks of its
        length at most, the end of one and the beginning of the next (van Herk).
        """
        count, width, ratio = len(whole), gap - 1, self._powers[1]
        if not width:
            return [0] * size
        tails, heads = [0] * (count + 1), [0] * count
        for place in reversed(range(count)):
            after = 0 if (place + 1) % width == 0 else tails[place + 1]
            tails[place] = whole[place] + self.times(after, ratio)
        for place in range(count):
            begun = place % width
            more = self.times(whole[place], self._powers[begun])
            heads[place] = more + (heads[place - 1] if begun else 0)
        found = []
        for left in range(shift + 1, shift + 1 + size):
            begin, stop = max(left, 0), min(left + width, count)
            if begin >= stop:
                found.append(0)
                continue
            block = begin + width - begin % width
            if begin % width == 0 and stop < min(block, count):
                inside = heads[stop - 1]
            else:
                inside = tails[begin]
                if stop > block:
                    inside += self.times(heads[stop - 1], self.apart(2 * (block - begin)))
            found.append(self.times(inside, self.apart(2 * (begin - left + 1))))
        return found

    def ended(self, state: PathState) -> int:
        """The weight of all paths that end with a state."""
        sums, step = self.sums[-1], self.steps[-1]
        short = 2 * (self._total - self._end)
        if state.place == START:
            return self.times(sums.start, self.apart(abs(short)))
        side = 2 * (state.rank - step.target) + 1
        weight = sums.places[state.place][state.rank - step.first]
        return self.times(weight, self.apart(abs(short - side)))

    def came(self, j: int, state: PathState, before: PathState) -> int:
        """The weight of paths that came to a state of step j from one of the step before."""
        if before.place == START:
            return self.start_weight(j, state)
        rank, at = before
        weight = self.sums[j - 1].places[at][rank - self.steps[j - 1].first]
        if not weight:
            return 0
        moved = state.rank - rank - self.gap(j)
        allowed = rank < state.rank or (rank == state.rank and at == LAST)
        if not allowed or (moved and state.place == WITHIN) or moved * (state.place - EMPTY) < 0:
            return 0
        return self.times(weight, self.apart(abs(2 * moved)))

    def states(self, j: int) -> list[PathState]:
        """All states of a step."""
        places = (LAST, EMPTY, FIRST, WITHIN)
        ranks = self.steps[j].ranks
        return [
            PathState(0, START),
            *(PathState(rank, place) for place in places for rank in ranks),
        ]
