"""Several quantiles of a column by choices one inside the other, few of which a record moves.

The quantile in the middle is chosen first, and divides the records in two; the middle ones of the
two halves are chosen next, each among its own records (`nested_turns.py`). A record takes part in
one choice a level, and there are ⌈log₂(m + 1)⌉ levels: m choices that share a promise are moved m
times. No number of records is needed, public or noisy, since every choice aims at a fraction of the
records that it has: one that comes or goes moves it by w = max(q', 1 − q') of its own fraction q',
a half where records are halved. A record that is replaced may leave one half for the other, and
then moves two choices of each level below by w, or one choice by 1.

Equal records are divided as if by lot (`nested_draw.py`), so that each is in one half, whichever
the others are.

Kaplan, Schnapp and Stemmer (2022), on public cells, where many records may be equal, and with what
levels have of the promise chosen so that the largest error is least.
Proof: docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from muhat._plain import Key
from muhat.mechanisms.quantiles.choice import ColumnChoice
from muhat.mechanisms.quantiles.nested_draw import PRECISION, chosen_in_turn
from muhat.mechanisms.quantiles.nested_turns import Turn, deviation, level_shares, turns_of
from muhat.mechanisms.quantiles.noisy_search import SEARCH_KEYS
from muhat.mechanisms.quantiles.recorded_count import RecordedCount
from muhat.mechanisms.quantiles.search_walk import Counts
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind

MOST_RECORDS = 1 << 40
"""Rank errors hold for so many records, where their number is secret."""

HALF = Fraction(1, 2)
_SAFE = 1 + 1e-9


@dataclass(frozen=True)
class NestedChoice(
    ColumnChoice,
    keys=(
        *(*SEARCH_KEYS, "together", "moves"),
        *("fractions", "shares", "records", Key("rates", text=True)),
    ),
):
    """The part that one quantile has in choices one inside the other.

    `fractions` are all quantiles, ascending, without repetitions; `shares` what every level has of
    the privacy; `records` the most that there may be.

    >>> from muhat.noise.laws import INDEPENDENT
    >>> quartiles = tuple(Fraction(part, 4) for part in (1, 2, 3))
    >>> law = INDEPENDENT["normal"]
    >>> column = NestedChoice.of_column(quartiles, law.kind, moves=2, counted=False, n=1000)
    >>> part = NestedChoice(1024, law, Fraction(1, 3), **column)
    >>> round(part.typical_error, 2), part.rank_error(0.95)
    (2.16, 37)
    """

    fractions: tuple[Fraction, ...] = (HALF,)
    shares: tuple[Fraction, ...] = (Fraction(1),)
    records: int = MOST_RECORDS

    finder = "recursive exponential mechanism"
    name = "recursive-exponential"

    def __post_init__(self) -> None:
        if list(self.fractions) != sorted(set(self.fractions)) or not self.fractions:
            raise AssertionError("quantiles are divided in order")
        levels = self.turns[-1].level + 1
        if len(self.shares) != levels or min(self.shares) <= 0 or sum(self.shares) > 1:
            raise AssertionError("the levels have other shares than of one promise")
        super().__post_init__()

    @classmethod
    def of_column(
        cls,
        fractions: Sequence[Fraction],
        kind: NoiseKind,
        *,
        moves: int,
        counted: bool,
        n: int | None,
    ) -> dict[str, Any]:
        """Levels have the shares that make the largest error least."""
        ascending = tuple(sorted(set(fractions)))
        turns = turns_of(ascending)
        replaced = counted and moves == 2
        weights = tuple(_divisor(turn, kind, moves, replaced=replaced) for turn in turns)
        return {
            **super().of_column(fractions, kind, moves=moves, counted=counted, n=n),
            "fractions": ascending,
            "shares": level_shares(turns, weights, 1 if kind is NoiseKind.PURE else 2),
            "records": n or MOST_RECORDS,
        }

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The choices, in their order."""
        return turns_of(self.fractions)

    @cached_property
    def levels(self) -> list[int]:
        """M of every level: how far a record may move the exponents of its choices.

        2ΣM of ε, or ΣM² of 2ρ, is what halvings would spend that a record moves as far.
        """
        whole = self.halvings * self.halving_moved ** (1 if self._pure else 2)
        if self._pure:
            return [math.floor(share * whole / 2) for share in self.shares]
        return [math.isqrt(math.floor(share * whole)) for share in self.shares]

    @cached_property
    def rates(self) -> list[int]:
        """h = 2^54·η of every choice.

        A record that is replaced moves exponents by h; one that comes or goes by W = ⌈h·w⌉, and
        where records are replaced it may do so in two choices of a level, but not in the first.
        """
        found = []
        for turn in self.turns:
            most = self.levels[turn.level]
            if self.moves == 1:
                found.append(math.floor(most / turn.weight))
            elif self._whole(turn):
                found.append(most)
            else:
                each = most // 2 if self._pure else math.isqrt(most**2 // 2)
                found.append(min(most, math.floor(each / turn.weight)))
        return found

    def _whole(self, turn: Turn) -> bool:
        """Whether nobody comes or goes: all records are there, and their number is public."""
        return turn.level == 0 and self.moves == 2 and not self.replaced

    @property
    def _present(self) -> list[int]:
        """W of every choice."""
        pairs = zip(self.turns, self.rates, strict=True)
        return [math.ceil(rate * turn.weight) for turn, rate in pairs]

    @property
    def least_rate(self) -> int:
        """The least of all."""
        return min(self.rates)

    @property
    def spent(self) -> int:
        """Level by level, for what moves the most there."""
        worst: dict[int, int] = {}
        for turn, rate, present in zip(self.turns, self.rates, self._present, strict=True):
            here = self._spent_by(self.contributions * (present if self.moves == 1 else rate))
            if self.moves == 2 and not self._whole(turn):
                here = max(here, 2 * self._spent_by(self.contributions * present))
            worst[turn.level] = max(worst.get(turn.level, 0), here)
        return sum(worst.values())

    @property
    def halving_weight(self) -> Fraction:
        """What a record that comes or goes spends, of what one does that is replaced: W/M."""
        if self.moves == 1:
            return self.presence_weight
        pairs = zip(self.turns, self._present, strict=True)
        return max(Fraction(present, max(self.levels[turn.level], 1)) for turn, present in pairs)

    @classmethod
    def gone(cls, fractions: Sequence[Fraction], power: int) -> Fraction:
        """Half as much in each of two halves, or less where squares are counted."""
        if power == 1:
            return HALF
        turns = turns_of(tuple(sorted(set(fractions))))
        return min(HALF, max(turn.weight**2 for turn in turns))

    @property
    def typical_error(self) -> float:
        """The largest: of a choice √2/η, and the mixed errors of the two around it."""
        each = [math.sqrt(2) / self._per_rank(rate) for rate in self.rates]
        return deviation(self.turns, each)

    @staticmethod
    def _per_rank(rate: int) -> float:
        """η."""
        return rate / (1 << FRACTION_BITS)

    def words(self) -> str:
        """What is done, in a few words."""
        many, levels = len(self.fractions), len(self.shares)
        return self._described(f"{many} choices in {levels} levels, one inside the other")

    def _ranks(self, log_confidence: float) -> int:
        """All ranks of the column together: every choice is off by so much at most.

        The ranks of a cell share its weight, so that a rank that is sought weighs least in a cell
        that has all records.
        """
        if self.cells < 2:
            return 0
        each = log_confidence / len(self.turns)
        odds = math.exp(each) / -math.expm1(each)
        off = {0: 0.0, len(self.turns) + 1: 0.0}
        for turn, rate in zip(self.turns, self.rates, strict=True):
            per_rank, share = self._per_rank(rate), float(turn.share)
            ranks = self.records + 1
            crowd = ranks * math.expm1(-per_rank) / math.expm1(-per_rank * ranks)
            own = max(math.log(self.cells * crowd * odds) / per_rank, 0.0) + 0.5
            # The least record and the greatest are aimed at half a rank beside 0 and N.
            own += 0.5 * (turn.share in (0, 1))
            off[turn.place] = (1 - share) * off[turn.below] + share * off[turn.above] + own
        return math.floor(max(off.values()) * _SAFE) + 1

    def states(self, n: int | None) -> int:
        """About how many ranks a draw looks at, among n records or any number of them."""
        wide = [2 * (PRECISION << FRACTION_BITS) // rate for rate in self.rates]
        return sum(wide if n is None else [min(each, n + 1) for each in wide])

    def fits(self, fractions: Sequence[Fraction], n: int | None) -> bool:
        """Whether it divides records at these quantiles, and there are no more of them."""
        return super().fits(fractions, n) and (
            (set(fractions) == set(self.fractions)) and (n or 0) <= self.records
        )

    def beside(self, count: RecordedCount | None) -> Self:
        """No number of records decides anything."""
        return self

    def chosen(
        self, up_to: Counts, fractions: Sequence[Fraction], number: float | None
    ) -> list[int]:
        """The cells of all quantiles, in the order of `fractions`."""
        if self.cells < 2:
            return [0] * len(fractions)
        cells = chosen_in_turn(up_to, self.turns, self.rates)
        found = dict(zip(self.fractions, cells, strict=True))
        return [found[fraction] for fraction in fractions]


def _divisor(turn: Turn, kind: NoiseKind, moves: int, *, replaced: bool) -> float:
    """How far a record moves a choice of rate 1, or two choices of a level together."""
    weight = float(turn.weight)
    if moves == 1:
        return weight
    if turn.level == 0 and not replaced:
        return 1.0
    return 2 * weight if kind is NoiseKind.PURE else max(1.0, math.sqrt(2) * weight)
