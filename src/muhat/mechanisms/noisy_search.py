"""A noisy binary search on exact counts: the cell that holds a record of a given rank.

Cells 0 … u are in order and F(c) is the number of records in cells up to c. T = ⌈log₂(u + 1)⌉
rounds halve an interval of cells, and each asks whether F(middle) lies below the rank m:

    ⌊S·(F(middle) − m + ½)⌋ + round(2^54·z) < 0   →   go right, else left

with S the largest whole number that keeps the promise and z normal (each round has μ²/T) or
Laplace (ε/T). All T rounds are paid and carried out on every path. If a record's rank is asked
for as a fraction q of a secret number N of records, the round asks about F(middle) − q·N, which
adding or removing a record moves by at most max(q, 1 − q): no count is released or paid for.

Huang, Liang and Yi (2021), Algorithm 1, with ⌈log₂(u + 1)⌉ rounds instead of log u, `<` instead
of `≤`, and a rank error that holds. Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.errors import InvalidInput
from muhat.noise import FRACTION_BITS
from muhat.noise.law import LAWS, Law

Counts = NDArray[np.int64]
Sampler = Callable[[int], NDArray[Any]]

MOST_ROUNDS = 62
_SAFE = 1 + 1e-12
_UNIT = 2.0**-50
"""Far more than what rounding noise to 2^-54 and the integer ⌊·⌋ move a comparison by."""


@dataclass(frozen=True)
class NoisySearch:
    """A search over `cells` cells, for the strength μ² (normal) or ε² (Laplace) of all rounds.

    `contributions` is the most records of a person. With a `quantile` q the rank is q·N, N the
    secret number of records, and neighbours add or remove records; without, the rank is public
    (`rank`) or counted from the top (`above`), and neighbours are of either kind.

    >>> import numpy as np
    >>> from muhat.noise.law import LAWS
    >>> search = NoisySearch(1024, LAWS["normal"], Fraction(1))
    >>> search.rounds, round(search.scale, 4), search.rank_error(0.99)
    (10, 3.1623, 10)
    >>> counts = np.zeros(1024, np.int64)
    >>> counts[[300, 700]] = 1000
    >>> search.find(counts, rank=500), search.find(counts, rank=1500)
    (300, 700)
    """

    cells: int
    law: Law
    strength_squared: Fraction
    contributions: int = 1
    quantile: Fraction | None = None

    def __post_init__(self) -> None:
        _check.count("cells", self.cells, most=1 << MOST_ROUNDS)
        _check.count("contributions", self.contributions)
        _check.one_of("law", self.law.name, ("normal", "laplace"))
        if self.quantile is not None and not 0 < self.quantile < 1:
            raise InvalidInput("a quantile must lie strictly between 0 and 1.")
        if self.multiplier < 1:
            raise InvalidInput("the promise is so strong that its noise drowns every count.")
        moved = self.sensitivity * self.rounds ** (1 if self._is_normal else 2) * self.sensitivity
        if moved > self.strength_squared * (1 << 2 * FRACTION_BITS):
            raise AssertionError("the search is more sensitive than the promise allows")

    @property
    def rounds(self) -> int:
        """T = ⌈log₂ cells⌉: how many comparisons are charged and made."""
        return (self.cells - 1).bit_length()

    @property
    def _is_normal(self) -> bool:
        return self.law.name == "normal"

    @property
    def record_weight(self) -> Fraction:
        """How far a single record moves the count that is compared, at most."""
        if self.quantile is None:
            return Fraction(1)
        return max(self.quantile, 1 - self.quantile)

    @cached_property
    def multiplier(self) -> int:
        """S, the units of 2^-54 noise that a record is worth."""
        rounds = max(self.rounds, 1)
        whole = self.strength_squared * (1 << 2 * FRACTION_BITS)
        if self._is_normal:
            moved = math.isqrt(math.floor(whole / rounds))
        else:
            moved = math.isqrt(math.floor(whole)) // rounds
        return math.floor(moved / (self.record_weight * self.contributions))

    @property
    def sensitivity(self) -> int:
        """The most that a person moves the integer of one round: ⌈S·weight·contributions⌉."""
        return math.ceil(self.multiplier * self.record_weight * self.contributions)

    @property
    def noise_unit(self) -> float:
        """The scale of the noise in records: σ for normal noise, b for Laplace."""
        return float(Fraction(1 << FRACTION_BITS, self.multiplier))

    @property
    def scale(self) -> float:
        """The standard deviation of the noise of one round, in records."""
        return self.noise_unit * math.sqrt(self.law.variance(1))

    def rank_error(self, confidence: float = 0.95) -> int:
        """τ: the cell found lies between those of the ranks m − τ and m + τ, at this confidence.

        Ranks below 1 stand for cell 0 and ranks above N for the last one. Each comparison can
        fail one way only, with probability p at most, so all T hold with (1 − p)^T at least.
        """
        return max(0, math.ceil(self._reach(confidence) - self._slack))

    def rank_error_but_for(self, failure: float) -> int:
        """`rank_error` at the confidence 1 − failure, which may be too close to 1 for a float."""
        reach = self._reach_at(math.log1p(-_check.probability("failure", failure)))
        return max(0, math.ceil(reach - self._slack))

    def enclosing(
        self, comparisons: Iterable[Comparison], confidence: float = 0.95
    ) -> tuple[int, int]:
        """Cells, the first and the last, between which the rank's true cell lies: for free.

        Noisy counts that lie further from the target than the noise reaches decide on which side
        of them it is. Each can mislead one way only, so the confidence is that of `rank_error`.
        """
        clear = max(0.0, self._reach(confidence) - self._slack)
        first, last = 0, self.cells - 1
        for round_ in comparisons:
            if round_.excess < -clear:
                first = max(first, min(round_.cell + 1, self.cells - 1))
            elif round_.excess > clear:
                last = min(last, round_.cell)
        # Noise beyond its reach may contradict itself; then nothing is known.
        return (first, last) if first <= last else (0, self.cells - 1)

    @property
    def _slack(self) -> float:
        """How far whole numbers of records stay from the target: ½ between two ranks."""
        return 0.5 if self.quantile is None else 0.0

    def _reach(self, confidence: float) -> float:
        """What the noise of no round exceeds on its bad side, in records, at this confidence."""
        return self._reach_at(math.log(_check.probability("confidence", confidence)))

    def _reach_at(self, log_confidence: float) -> float:
        failure = -math.expm1(log_confidence / max(self.rounds, 1)) / _SAFE
        return self.noise_unit * (_upper_quantile(self.law, failure) * _SAFE + _UNIT)

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
        noise = (sample or self.law.sample)(self.rounds)
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

    def to_dict(self) -> dict[str, Any]:
        """All that decides the search, in integers."""
        return {
            "cells": self.cells,
            "rounds": self.rounds,
            "law": self.law.name,
            "multiplier": str(self.multiplier),
            "strength_squared": str(self.strength_squared),
            "contributions": self.contributions,
            "quantile": None if self.quantile is None else str(self.quantile),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> NoisySearch:
        """The search that `to_dict` described, checked again."""
        quantile = fields["quantile"]
        return cls(
            fields["cells"],
            LAWS[fields["law"]],
            Fraction(fields["strength_squared"]),
            fields["contributions"],
            None if quantile is None else Fraction(quantile),
        )


@dataclass(frozen=True)
class Comparison:
    """A round, as it may be shown: F(cell) minus the target, with its noise, in records."""

    cell: int
    excess: float


class Walk:
    """A search under way: an interval of 2^rounds_left cells that begins at `left`.

    What it is depends on the data through noisy comparisons alone, so it may decide which counts
    are taken next.
    """

    def __init__(self, search: NoisySearch, target: Fraction, noise: list[int]) -> None:
        self.left = 0
        self.rounds_left = search.rounds
        self._last = search.cells - 1
        self._multiplier = search.multiplier
        self._target = target
        self._noise = iter(noise)
        self._rounds: list[Comparison] = []

    def __repr__(self) -> str:
        return f"Walk(left={self.left}, rounds_left={self.rounds_left})"

    @property
    def cell(self) -> int:
        """The first cell of the interval: the answer once no rounds are left."""
        return min(self.left, self._last)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rounds carried out so far, with their noisy counts: all that was paid for."""
        return tuple(self._rounds)

    def descend(self, before: int, counts: Counts, rounds: int) -> None:
        """Carry out the next rounds, given exact counts of 2^rounds equal parts of the interval.

        `before` is the number of records in cells before the interval. Parts beyond the last
        cell have no records and may be left out.
        """
        if not 0 <= rounds <= self.rounds_left or not 0 < len(counts) <= 1 << rounds:
            raise AssertionError("the counts do not fit the interval")
        below = np.cumsum(counts, dtype=np.int64)
        behind = self.rounds_left - rounds
        part = 0
        for level in reversed(range(rounds)):
            middle = part + (1 << level) - 1
            # On paths beyond the last cell every record lies below: F stays N.
            records = before + int(below[min(middle, len(below) - 1)])
            excess = math.floor(self._multiplier * (records - self._target)) + next(self._noise)
            cell = self.left + ((middle + 1) << behind) - 1
            self._rounds.append(Comparison(min(cell, self._last), excess / self._multiplier))
            if excess < 0:
                part += 1 << level
        self.rounds_left = behind
        self.left += part << behind


def _upper_quantile(law: Law, failure: float) -> float:
    """The reach that z exceeds on one side with this probability."""
    if law.name == "normal":
        return -NormalDist().inv_cdf(failure)
    return -math.log(2 * failure) if failure < 0.5 else math.log(2 - 2 * failure)
