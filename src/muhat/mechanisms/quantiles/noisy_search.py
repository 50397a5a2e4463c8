"""A noisy binary search on exact counts: the cell that holds a record of a given rank.

Cells 0 … u are in order and F(c) is the number of records in cells up to c. T = ⌈log₂(u + 1)⌉
rounds halve an interval of cells, and each asks whether F(middle) lies below the rank m:

    ⌊S·(F(middle) − m + ½)⌋ + round(2^54·z) < 0   →   go right, else left

with S the largest whole number that keeps the promise and z normal (each round has μ²/T) or
Laplace (ε/T). All rounds are paid and carried out on every path. If a record's rank is asked for
as a fraction q of a secret number N of records, the round asks about F(middle) − q·N, which adding
or removing a record moves by at most max(q, 1 − q), and moving one by at most 1: no count needs to
be known. `further` questions after the T halvings say where an interval ends (`search_walk.py`);
they are paid for like halvings.

Huang, Liang and Yi (2021), Algorithm 1, with ⌈log₂(u + 1)⌉ rounds instead of log u, `<` instead
of `≤`, and a rank error that holds. Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from muhat import _check
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.search_walk import Comparison, Counts, Walk
from muhat.noise.kinds import Strength
from muhat.noise.law import IndependentFamily

Sampler = Callable[[int], NDArray[Any]]

MOST_ROUNDS = 62
_SAFE = 1 + 1e-12
_UNIT = 2.0**-50
"""Far more than what rounding noise to 2^-54 and the integer ⌊·⌋ move a comparison by."""


SEARCH_KEYS = (
    *("cells", "rounds", "law", Key("multiplier", text=True), "strength_squared"),
    *("contributions", "quantile", "replaced", "further"),
)
TYPICAL = 0.7
"""About how many deviations of a round the rank found is off where records lie evenly."""


@dataclass(frozen=True)
class NoisySearch(Plain, keys=SEARCH_KEYS):
    """A search over `cells` cells, for the strength μ² (normal) or ε² (Laplace) of all rounds.

    `contributions` is the most records of a person. With a `quantile` q the rank is q·N, N the
    secret number of records that are counted, and neighbours add or remove records, or replace them
    if `replaced`; without, the rank is public (`rank`) or counted from the top (`above`), and
    neighbours are of either kind.

    >>> import numpy as np
    >>> from muhat.noise.laws import INDEPENDENT
    >>> search = NoisySearch(1024, INDEPENDENT["normal"], Fraction(1))
    >>> search.rounds, round(search.scale, 4), search.rank_error(0.99)
    (10, 3.1623, 10)
    >>> counts = np.zeros(1024, np.int64)
    >>> counts[[300, 700]] = 1000
    >>> search.find(counts, rank=500), search.find(counts, rank=1500)
    (300, 700)
    """

    cells: int
    law: IndependentFamily
    strength_squared: Fraction
    contributions: int = 1
    quantile: Fraction | None = None
    replaced: bool = False
    further: int = 0

    finder = "noisy search"
    together = 1
    """How many quantiles of a column are found at once, and have one rank error."""

    def __post_init__(self) -> None:
        _check.count("cells", self.cells, most=1 << MOST_ROUNDS)
        _check.count("contributions", self.contributions)
        if not self.law.independent:
            raise InvalidInput("a search asks one question at a time: its noise is independent.")
        if self.quantile is not None and not 0 < self.quantile < 1:
            raise InvalidInput("a quantile must lie strictly between 0 and 1.")
        _check.count("further", self.further, least=0)
        if self.multiplier < 1:
            raise InvalidInput("the promise is so strong that its noise drowns every count.")
        if not self.law.keeps(self._question, Fraction(self.sensitivity)):
            raise AssertionError("the search is more sensitive than the promise allows")

    @property
    def rounds(self) -> int:
        """T = ⌈log₂ cells⌉: how many halvings find the cell."""
        return (self.cells - 1).bit_length()

    @property
    def questions(self) -> int:
        """How many comparisons are charged and made: the halvings and those after them."""
        return self.rounds + self.further

    @property
    def asked(self) -> int:
        """How many comparisons are made."""
        return self.questions

    @property
    def typical_error(self) -> float:
        """The root mean square of the rank error where records lie evenly, about."""
        return TYPICAL * self.scale

    def words(self) -> str:
        """What is done, in a few words."""
        noise = f"{self.law.name} noise of {self.scale:.3g} records"
        return f"{self.asked} noisy comparisons for each quantile, with {noise}"

    @property
    def _question(self) -> Strength:
        """What one question may reveal: all share the promise evenly."""
        whole = Strength(self.law.kind, self.strength_squared)
        return whole.part(Fraction(1, max(self.questions, 1)))

    @property
    def record_weight(self) -> Fraction:
        """How far a single record moves the count that is compared, at most."""
        return Fraction(1) if self.replaced else self.presence_weight

    @property
    def presence_weight(self) -> Fraction:
        """How far that count moves if a record comes or goes, at most."""
        if self.quantile is None:
            return Fraction(1)
        return max(self.quantile, 1 - self.quantile)

    @property
    def halving_weight(self) -> Fraction:
        """The same of what is spent on finding the cell, and not on questions after that."""
        return self.presence_weight

    @cached_property
    def multiplier(self) -> int:
        """S, the units of 2^-54 noise that a record is worth."""
        moved = math.isqrt(math.floor(self._question.squared * self.law.unit**2))
        return math.floor(moved / (self.record_weight * self.contributions))

    @property
    def sensitivity(self) -> int:
        """The most that a person moves the integer of one round: ⌈S·weight·contributions⌉."""
        return math.ceil(self.multiplier * self.record_weight * self.contributions)

    @property
    def noise_unit(self) -> float:
        """The scale of the noise in records: σ for normal noise, b for Laplace."""
        return float(Fraction(self.law.unit, self.multiplier))

    @property
    def scale(self) -> float:
        """The standard deviation of the noise of one round, in records."""
        return self.noise_unit * math.sqrt(self.law.variance(1))

    def rank_error(self, confidence: float = 0.95) -> int:
        """τ: the cell found lies between those of the ranks m − τ and m + τ, at this confidence.

        Ranks below 1 stand for cell 0 and ranks above N for the last one. Each comparison can
        fail one way only, with probability p at most, so all T hold with (1 − p)^T at least.
        """
        return self._ranks(math.log(_check.probability("confidence", confidence)))

    def rank_error_but_for(self, failure: float) -> int:
        """`rank_error` at the confidence 1 − failure, which may be too close to 1 for a float."""
        return self._ranks(math.log1p(-_check.probability("failure", failure)))

    def _ranks(self, log_confidence: float) -> int:
        # Halvings alone decide the cell.
        return max(0, math.ceil(self._reach(log_confidence, self.rounds) - self._slack))

    def clear(self, confidence: float, margin: float | None = None) -> float:
        """A noisy count farther than this from the target shows on which side of it F lies.

        All questions are right about that at this confidence. With a `margin` they show on which
        side of it the population lies, if a draw moves counts by no more than that.
        """
        log_confidence = math.log(_check.probability("confidence", confidence))
        reach = self._reach(log_confidence, self.asked)
        # Counts are whole; a share of the population may lie on the other side of the target.
        return max(0.0, reach - self._slack if margin is None else reach + self._slack + margin)

    def enclosing(
        self, comparisons: Iterable[Comparison], cell: int, clear: float
    ) -> tuple[int, int]:
        """Cells, the first and the last, between which the rank's true cell lies: for free.

        Noisy counts that lie further from the target than what is `clear` decide on which side
        of them it is. Each can mislead one way only, as in `rank_error`. The `cell` that was found
        is always inside, so that intervals of more confidence contain those of less.
        """
        first, last = 0, self.cells - 1
        for round_ in comparisons:
            if round_.excess < -clear:
                first = max(first, min(round_.cell + 1, self.cells - 1))
            elif round_.excess > clear:
                last = min(last, round_.cell)
        return min(first, cell), max(last, cell)

    @property
    def _slack(self) -> float:
        """How far whole numbers of records stay from the target: ½ between two ranks."""
        return 0.5 if self.quantile is None else 0.0

    def _reach(self, log_confidence: float, rounds: int) -> float:
        """What the noise of none of the rounds exceeds on its bad side, in records."""
        failure = -math.expm1(log_confidence / max(rounds, 1)) / _SAFE
        return self.noise_unit * (self.law.one_sided(failure) * _SAFE + _UNIT)

    def find(
        self,
        counts: Counts,
        rank: int | None = None,
        *,
        above: int | None = None,
        sample: Sampler | None = None,
    ) -> int:
        """The cell of the record with this rank, from the exact counts of all cells.

        `rank` is counted from 1 at the bottom; `above` says instead how many records are to lie
        above the one sought, so that the rank is N − above with N secret or not. A search for a
        quantile takes neither. `sample(T)` replaces the exact noise in tests.
        """
        if len(counts) != self.cells:
            raise InvalidInput(f"counts must have {self.cells} entries; got {len(counts)}.")
        walk = self.start(int(counts.sum()), rank, above=above, sample=sample)
        walk.descend(0, counts, self.rounds)
        return walk.cell

    def start(
        self,
        total: int,
        rank: int | None = None,
        *,
        above: int | None = None,
        sample: Sampler | None = None,
    ) -> Walk:
        """A search that is given its counts level by level; `total` is all records, N."""
        noise = (sample or self.law.sample)(self.questions)
        return Walk(self, self._target(total, rank, above), [int(value) for value in noise])

    def _target(self, total: int, rank: int | None, above: int | None) -> Fraction:
        """What F is compared with: between m − 1 and m, or q·N."""
        if self.quantile is not None:
            if rank is not None or above is not None:
                raise InvalidInput("a search for a quantile has no rank of its own.")
            return self.quantile * total
        if (rank is None) == (above is None):
            raise InvalidInput("a search needs exactly one of rank and above.")
        if rank is not None:
            return _check.count("rank", rank) - Fraction(1, 2)
        return total - _check.count("above", above, least=0) - Fraction(1, 2)
