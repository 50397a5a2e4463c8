"""Several quantiles of a column in one choice, whose privacy they do not have to share.

The numbers of records between neighbouring quantiles are a table of counts: a record that comes or
goes changes one of them by one, a record that is replaced two. Cells c_1 ≤ … ≤ c_m have the loss Λ
by which these m + 1 counts are off together (`joint_paths.py`), and are chosen with probability
∝ exp(−λΛ): a range of 2λ for one that comes or goes and of 4λ for one that is replaced, whatever m
is. m choices that share the same promise have m, or √m, times the noise of one; of one joint choice
ranks err like a random walk of m + 1 steps that ends where it began.

Where the number of records is secret, quantiles are those of a noisy number of them. (With their
exact number a record would move all counts.)

Gillenwater, Joseph and Kulesza (2021), on public cells, where many records may be equal.
Proof: docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Self

from muhat._plain import Key
from muhat.mechanisms.quantiles.choice import ColumnChoice
from muhat.mechanisms.quantiles.joint_draw import chosen_together
from muhat.mechanisms.quantiles.joint_paths import window
from muhat.mechanisms.quantiles.noisy_search import SEARCH_KEYS, NoisySearch
from muhat.mechanisms.quantiles.recorded_count import RecordedCount
from muhat.mechanisms.quantiles.sampling import NOISE_SHARES
from muhat.mechanisms.quantiles.search_walk import Counts
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import Strength

_SAFE = 1 + 1e-9


@dataclass(frozen=True)
class JointChoice(
    ColumnChoice, keys=(*SEARCH_KEYS, "together", "moves", Key("half_rate", text=True), "size")
):
    """The part that one quantile has in one choice of several.

    `size` is the noisy number of records that ranks are fractions of, where it is secret.

    >>> from muhat.noise.laws import INDEPENDENT
    >>> part = JointChoice(1024, INDEPENDENT["laplace"], Fraction(1, 9), together=3)
    >>> round(part.typical_error, 2), part.rank_error(0.95)
    (4.73, 44)
    """

    size: RecordedCount | None = None

    finder = "joint exponential mechanism"
    name = "joint-exponential"

    @property
    def spent(self) -> int:
        """Exponents are multiples of `half_rate` and move by twice that for a count."""
        return self._spent_by(2 * self.half_rate * self.moves * self.contributions)

    @property
    def least_rate(self) -> int:
        """Half of λ, since losses are multiples of ½."""
        return self.half_rate

    @property
    def halving_weight(self) -> Fraction:
        """A record that comes or goes moves one count of two that a replaced one moves."""
        return Fraction(1, 2) if self.moves == 2 else self.presence_weight

    @cached_property
    def half_rate(self) -> int:
        """2^54·λ/2: halvings of all quantiles would spend as much, for every pair of neighbours."""
        if self._pure:
            return self.halvings * self.halving_moved // (4 * self.moves)
        return math.isqrt(self.halvings * self.halving_moved**2) // (2 * self.moves)

    @property
    def _per_rank(self) -> float:
        """λ."""
        return self.half_rate / (1 << (FRACTION_BITS - 1))

    @property
    def typical_error(self) -> float:
        """Of the quantile in the middle: a random walk that ends where it began.

        Where the end is off by D, so that m + 1 steps lead there, about D²/4(m + 1) is added to
        the variance.
        """
        walk = walk_deviation(self.together) / self._per_rank
        noise = 0.0 if self.size is None else self.size.scale
        return math.hypot(walk, noise / math.sqrt(4 * (self.together + 1)))

    def words(self) -> str:
        """What is done, in a few words."""
        return self._described(f"one choice of {self.together} cells")

    def _ranks(self, log_confidence: float) -> int:
        """All ranks of the column together: some cells have no loss but that of the number.

        Cells of which one is too far off lose 2τ + 1 more, or 2(τ − ½ − w·D) if the number of
        records is off by D, and are at most as many as there are lists of cells.
        """
        if self.cells < 2:
            return 0
        miss = -math.expm1(log_confidence)
        if self.size is None:
            return max(0, math.ceil((self._reach_but_for(miss) - 1) / 2))
        weight = float(self.presence_weight)
        reach = min(
            self._reach_but_for((1 - share) * miss) / 2
            + weight * (self.size.half_width(1 - share * miss) + 0.5)
            for share in NOISE_SHARES
        )
        return max(0, math.ceil(reach + 0.5))

    def _reach_but_for(self, miss: float) -> float:
        """The loss, above the least, that is not exceeded but for this chance."""
        lists = math.comb(self.cells + self.together - 1, self.together)
        return (math.log(lists) + math.log((1 - miss) / miss)) / self._per_rank * _SAFE

    def states(self, n: int | None) -> int:
        """About how many ranks a draw looks at, among n records or any number of them."""
        wide = 2 * window(self.together, self.cells / ((n or 0) + 1), self.half_rate)
        return self.together * (wide if n is None else min(wide, n + 1))

    def fits(self, fractions: Sequence[Fraction], n: int | None) -> bool:
        """A secret number of records is counted, since it decides ranks."""
        return super().fits(fractions, n) and (self.moves == 2 or self.size is not None)

    @classmethod
    def gone(cls, fractions: Sequence[Fraction], power: int) -> Fraction:
        """A record that goes moves one count of two."""
        return Fraction(1, 2) ** power

    def beside(self, count: RecordedCount | None) -> Self:
        """Ranks are fractions of what was counted."""
        return replace(self, size=count)

    def chosen(
        self, up_to: Counts, fractions: Sequence[Fraction], number: float | None
    ) -> list[int]:
        """The cells of the quantiles of about so many records, in the order of `fractions`.

        Quantiles of the same rank have the same cell.
        """
        if number is None:
            raise AssertionError("a secret number of records must not decide a rank")
        end = max(round(number), 1)
        ranks = [max(1, math.ceil(fraction * end)) for fraction in fractions]
        different = sorted(set(ranks))
        cells = chosen_together(up_to, different, end, self.half_rate)
        found = dict(zip(different, cells, strict=True))
        return [found[rank] for rank in ranks]


def joint_count_share(together: int) -> Fraction:
    """The part of a promise that the noisy number of records has, at least.

    That with the least typical error, to within 2 %, where records are added or removed: a
    quarter for two quantiles, a tenth for fifteen.
    """
    return Fraction(2, together + 6)


def joint_count_least(share: Strength, part: NoisySearch, *, groups: bool) -> int:
    """The multiplier of a count that has this share, of a person's records in all groups."""
    moved = math.isqrt(math.floor(share.squared * part.law.unit**2))
    return moved // (part.contributions * (2 if groups and part.replaced else 1))


@lru_cache
def walk_deviation(together: int) -> float:
    """The deviation in the middle of a walk of m + 1 Laplace steps of scale 1 that ends at 0.

    The density of the sum of k steps is e^−|x| times a polynomial of |x|; its value after j steps
    has the density f_j·f_{m+1−j}.

    >>> [round(4 * walk_deviation(many), 2) for many in (1, 3, 9)]
    [2.83, 4.73, 8.31]
    """
    steps = together + 1
    one, other = _density(steps // 2), _density(steps - steps // 2)
    moments = []
    for power in (0, 2):
        moments.append(
            sum(
                Fraction(a * b * math.factorial(i + j + power), 2 ** (i + j + power))
                for i, a in enumerate(one)
                for j, b in enumerate(other)
            )
        )
    return math.sqrt(moments[1] / moments[0])


def _density(steps: int) -> list[int]:
    """Coefficients of the polynomial, but for a factor."""
    return [
        math.factorial(2 * steps - 2 - i) * 2**i * math.comb(steps - 1, i) for i in range(steps)
    ]
