"""Choices in place of halvings: what they have in common, whatever it is that they choose.

A choice releases cells with probability ∝ exp(−E/2^54), exponents E whole numbers that one person
moves by at most M. It has the range 2M/2^54: purely private for that, and for (M/2^54)²/2 of ρ. It
takes the place of the T halvings of a search, or of those of all m searches of a column, and may
spend what they would, T questions each with normal or Laplace noise. Questions after it, for an
interval, are those of a search. Proof: docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from muhat import _check
from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.noisy_search import NoisySearch, Sampler
from muhat.mechanisms.quantiles.recorded_count import RecordedCount
from muhat.mechanisms.quantiles.search_walk import Counts, Tally, Walk
from muhat.noise.entropy import Words, system_words
from muhat.noise.kinds import NoiseKind

MOST_TOGETHER = 32
"""So many quantiles of a column are chosen together at most."""

MOST_STATES = 1 << 20
"""The ranks that one release may have to look at, over all columns and groups: about 20 seconds."""


class Choosing(Walk):
    """A choice, then questions about where an interval ends."""

    def __init__(self, choice: Choice, target: Fraction, noise: list[int], words: Words) -> None:
        super().__init__(choice, target, noise)
        self._choice = choice
        self._words = words


@dataclass(frozen=True)
class Choice(NoisySearch):
    """A search whose halvings are a choice: for the strength μ² (zCDP, 2ρ) or ε² (pure).

    The law is that of the questions beside it, and says in what its privacy is counted.
    """

    name: ClassVar[str] = ""
    walk: ClassVar[type[Choosing]]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least_rate < 1 and self.rounds:
            raise InvalidInput("the promise is so strong that its noise drowns every count.")
        power = self.law.kind.power
        allowed = self._question.squared * self.halvings**power * self.law.unit**2
        if self.spent**power > allowed:
            raise AssertionError("the choice is more sensitive than the promise allows")

    @property
    def _pure(self) -> bool:
        return self.law.kind is NoiseKind.PURE

    @property
    def halvings(self) -> int:
        """Those of all quantiles that are chosen together, which the choice is in place of."""
        return self.together * self.rounds

    @property
    @abstractmethod
    def least_rate(self) -> int:
        """The least factor of an exponent; there is no choice if it is 0."""

    @property
    @abstractmethod
    def spent(self) -> int:
        """What a person makes of it at most, in units of 2^-54: 2M of ε, or M² of 2ρ."""

    def _spent_by(self, moved: int) -> int:
        """The same for exponents that move so far."""
        return 2 * moved if self._pure else moved**2

    @property
    def asked(self) -> int:
        """The questions with noise: those after the choice."""
        return self.further

    def _described(self, chosen: str) -> str:
        """What is done, and the questions after it."""
        return f"{chosen} and {NoisySearch.words(self)}" if self.further else chosen

    def start(
        self,
        total: int,
        rank: int | None = None,
        *,
        above: int | None = None,
        sample: Sampler | None = None,
        words: Words = system_words,
    ) -> Choosing:
        """As of a search; the counts come all at once. `words` replaces entropy in tests."""
        noise = (sample or self.law.sample)(self.further)
        target = self._target(total, rank, above)
        return self.walk(self, target, [int(value) for value in noise], words)


class Placed(Choosing):
    """Questions about where an interval ends, around a cell that was chosen with others."""

    chosen: int | None = None

    def _part(self, tally: Tally, rounds: int) -> int:
        if tally.block_bits or self.chosen is None:
            raise AssertionError("a choice is among all cells at once, and comes first")
        return self.chosen


@dataclass(frozen=True)
class ColumnChoice(Choice):
    """The part that one quantile has in a choice of several: all spend what halvings would.

    `together` is how many they are, `moves` how many counts a record moves: 2 if records are
    replaced, 1 if they are added or removed.
    """

    together: int = 2
    moves: int = 2

    walk = Placed

    def __post_init__(self) -> None:
        _check.count("together", self.together, most=MOST_TOGETHER)
        _check.count("moves", self.moves, most=2)
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
        """What the parts of a column have in common beside what a search has.

        `counted` says that the number of its records is released with noise, `n` that it is public
        how many there are at most.
        """
        return {"together": len(fractions), "moves": moves}

    @property
    def halving_moved(self) -> int:
        """How far a record would move a halving: by S if it is replaced.

        Where all records come or go it is S·max(q, 1 − q).
        """
        return math.floor(self.multiplier * (1 if self.moves == 2 else self.presence_weight))

    @abstractmethod
    def states(self, n: int | None) -> int:
        """About how many ranks a draw looks at, among n records or any number of them."""

    @classmethod
    @abstractmethod
    def gone(cls, fractions: Sequence[Fraction], power: int) -> Fraction:
        """What a record that goes spends on it, of what one that is replaced does, at most.

        Sizes are counted for pure privacy, the power 1, and squares for normal noise.
        """

    def fits(self, fractions: Sequence[Fraction], n: int | None) -> bool:
        """Whether it was made for these quantiles, of n records if that is public."""
        return self.together == len(fractions)

    @abstractmethod
    def beside(self, count: RecordedCount | None) -> Self:
        """The same where the records are counted, too."""

    @abstractmethod
    def chosen(
        self, up_to: Counts, fractions: Sequence[Fraction], number: float | None
    ) -> list[int]:
        """The cells of all quantiles of a column, in their order.

        `number` is how many records there are, or about how many, if that is known to all. Of the
        parts of a column, which differ by roundings, the one that is moved least is asked.
        """
