"""Searches or choices that share one promise, and the counts of recorded values beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from muhat.data.grids import UniformGrid
from muhat.mechanisms.quantiles.choice import Choice, ColumnChoice
from muhat.mechanisms.quantiles.joint_choice import (
    JointChoice,
    joint_count_least,
    joint_count_share,
)
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.recorded_count import RecordedCount, count_beside, room_beside
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import IndependentFamily
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

ENDS = (0, 1)
"""The fractions whose ranks are known: the least record and the greatest."""

HALVINGS_A_QUESTION = 5
"""A question for the ends of an interval for so many halvings. They widen the noise by a tenth,
and make most intervals several times shorter, whatever the halvings happened to ask about."""

CHOICE_A_QUESTION = {NoiseKind.PURE: Fraction(5, 2), NoiseKind.NORMAL: Fraction(2)}
"""The same where a choice is in place of the halvings: nothing was asked before, and with twice as
many questions intervals are about as short. Counted in μ² they cost the choice less."""

Rows = tuple[tuple[NoisySearch, ...], ...]
"""A row a fraction and a column a grid."""


@dataclass(frozen=True)
class QuantileShares:
    """Quantiles of every column, which share what it has of the promise evenly.

    `finder` is what finds a cell: a search or a choice. If values are `recorded`, their number is
    counted; a joint choice counts a secret number of records, too. `n` is a public number.
    """

    fractions: Sequence[Fraction]
    law: IndependentFamily
    protection: Protection
    finder: type[NoisySearch]
    recorded: bool
    intervals: bool
    groups: bool
    n: int | None = None

    @property
    def _secret(self) -> bool:
        return self.protection.neighbors is Neighbors.ADD_REMOVE

    @property
    def _joint(self) -> bool:
        return issubclass(self.finder, JointChoice)

    @property
    def _counted(self) -> bool:
        return self.recorded or self.groups or (self._joint and self._secret)

    def among(self, grids: Sequence[UniformGrid]) -> tuple[Rows, tuple[RecordedCount, ...] | None]:
        """The searches of all columns, and their counts if there are any."""
        promise = Strength.of(self.protection.promise, self.law.kind)
        column = promise.part(Fraction(1, len(grids)))
        found = [self._column(grid, column) for grid in grids]
        rows = tuple(zip(*(each for each, _ in found), strict=True))
        counts = tuple(count for _, count in found if count is not None)
        return rows, counts or None

    def _column(
        self, grid: UniformGrid, column: Strength
    ) -> tuple[list[NoisySearch], RecordedCount | None]:
        each = self._searches(grid, column)
        if not self._counted:
            return each, None
        # A count noisier than a round is of little use: it has the share of one more.
        share = Fraction(1, 1 + sum(search.questions for search in each))
        least = min(search.multiplier for search in each)
        if self._joint:
            share = joint_count_share(len(self.fractions))
            least = joint_count_least(column.part(share), each[0], groups=self.groups)
        if room_beside(each, column.squared, groups=self.groups) < least:
            each = self._searches(grid, column.part(1 - share))
        count = count_beside(each, column.squared, groups=self.groups)
        return [one.beside(count) if isinstance(one, ColumnChoice) else one for one in each], count

    def _searches(self, grid: UniformGrid, column: Strength) -> list[NoisySearch]:
        """One for every fraction."""
        rounds = (grid.cells - 1).bit_length()
        halvings: Fraction | int = HALVINGS_A_QUESTION
        make: Callable[..., NoisySearch] = self.finder
        if issubclass(self.finder, Choice):
            halvings = CHOICE_A_QUESTION[self.law.kind]
        if issubclass(self.finder, ColumnChoice):
            column_of = self.finder.of_column(
                self.fractions,
                self.law.kind,
                moves=1 if self._secret else 2,
                counted=self._counted,
                n=self.n,
            )
            make = partial(make, **column_of)
        further = math.ceil(rounds / halvings) if self.intervals else 0
        found = []
        for fraction in self.fractions:
            share = Fraction(1, len(self.fractions))
            if self.groups and not self._secret:
                # What a record moves in two groups together, if that is more than in one.
                share /= max(Fraction(1), 2 * self._gone(fraction, rounds, further))
            known = fraction in ENDS or not (self._secret or self._counted)
            found.append(
                make(
                    grid.cells,
                    self.law,
                    column.part(share).squared,
                    self.protection.contributions,
                    None if known else fraction,
                    self._counted and not self._secret,
                    further,
                )
            )
        return found

    def _gone(self, fraction: Fraction, rounds: int, further: int) -> Fraction:
        """What a record that goes spends, of what one that is replaced does."""
        power = int(self.law.sensitivity_norm)
        if not issubclass(self.finder, ColumnChoice):
            return max(fraction, 1 - fraction) ** power
        # The quantiles that share a choice are alike.
        weight = max(max(each, 1 - each) for each in self.fractions) ** power
        found = rounds * self.finder.gone(self.fractions, power) + further * weight
        return found / max(rounds + further, 1)
