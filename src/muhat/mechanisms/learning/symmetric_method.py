"""The symmetric mean of one column or several, as a plan needs it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.data.halves import require_stable_order
from muhat.domains import Box
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.location import rarity
from muhat.mechanisms.learning.moment_error import Moment, MomentError
from muhat.mechanisms.learning.names import AS_PRINTED
from muhat.mechanisms.learning.padded_error import ROUNDING
from muhat.mechanisms.learning.sharing import short_fraction
from muhat.mechanisms.learning.steps import Step
from muhat.mechanisms.learning.symmetric import SymmetricMeans
from muhat.mechanisms.learning.symmetric_column import SymmetricMean
from muhat.mechanisms.learning.symmetric_error import IntervalMoments, Search
from muhat.noise.laws import LAWS
from muhat.noise.spread import Spread
from muhat.privacy import Privacy

if TYPE_CHECKING:
    from muhat.data import Source

EVEN_PARTS = (1.0, 0.3, 0.1, 0.0)
"""How much of ε is split evenly among columns; the part with the least error wins."""

_SAFE = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class SymmetricMethod(Plain, keys=(Key("columns", "means.columns"),)):
    """Symmetric means, column by column, that together keep a promise.

    `weights`, of shape (d,), scale the columns' errors.
    """

    means: SymmetricMeans
    promise: Privacy
    weights: Floats

    @classmethod
    def planned(
        cls,
        n: int,
        promise: Privacy,
        order: float,
        scales: Floats,
        weights: Floats,
        *,
        offset: bool,
        contributions: int,
        faithful: bool = False,
    ) -> SymmetricMethod:
        """The split of ε with the least error.

        Noise ∝ ψ_j/ε_j alone would give ε_j ∝ (w_j·ψ_j)^{2/3}; but every column must find its
        interval too, so some of ε may have to be split evenly.
        """

        def with_split(even: float) -> SymmetricMethod:
            means = SymmetricMeans.planned(
                n,
                promise,
                [(order, float(scale)) for scale in scales],
                _shares(weights * scales, even),
                offset=offset,
                contributions=contributions,
                faithful=faithful,
            )
            return cls(means, promise, weights)

        if len(scales) == 1:
            return with_split(1.0)
        # Where no split is enough, the even one needs the fewest records.
        return min(map(with_split, EVEN_PARTS), key=lambda method: method.rmse)

    def with_records(self, n: int) -> SymmetricMethod:
        """The same for another number of records, as many of which find the intervals.

        The probability of no value stays what it is; what `biases` add up rises or falls with n.
        """
        whole_epsilon, whole_delta = self.promise.amounts
        columns = tuple(
            SymmetricMean.planned(
                n,
                self.promise,
                (column.moments.order, column.moments.moment),
                offset=column.offset,
                first=column.first,
                contributions=column.contributions,
                share=(column.epsilon / whole_epsilon, column.delta / whole_delta),
                faithful=column.faithful,
            )
            for column in self.means.columns
        )
        return SymmetricMethod(SymmetricMeans(columns), self.promise, self.weights)

    @property
    def name(self) -> str:
        """What users call it."""
        return self.means.columns[0].mechanism

    @property
    def label(self) -> str:
        """The name among alternatives."""
        return self.name + (AS_PRINTED if self.printed else "")

    @property
    def printed(self) -> tuple[str, str] | None:
        """What it is in the paper, and what ours has instead, if that was kept."""
        search = self.means.columns[0].search
        if not search.faithful:
            return None
        least = replace(search, faithful=False).threshold
        passes = f"a bin passes above {least} noisy records in place of {search.threshold}"
        return "Algorithm 1", passes

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        first, printed = self.means.columns[0].first, AS_PRINTED if self.printed else ""
        return (
            f"the first {first} rows tell where the others are clipped; no value if they do not"
            f"{printed}"
        )

    @cached_property
    def biases(self) -> Floats:
        """Bounds on the bias of every column, given that there is a value; of shape (d,)."""
        return np.array([column.bias_bound for column in self.means.columns])

    @cached_property
    def noise(self) -> Spread:
        """The noise on the mean."""
        scales = np.concatenate([column.noise.scales for column in self.means.columns])
        return Spread(LAWS["laplace"], len(scales), scales)

    @property
    def noise_error(self) -> float:
        """The weighted root mean square ℓ₂ error of the noise."""
        return self.noise.weighted(self.weights).root_mean_square(2.0)[0]

    @cached_property
    def rmse(self) -> float:
        """The weighted root mean square error against μ at most, given a value, if all is assumed.

        The columns' own bounds, or `stray_square` in them where that is less.
        """
        released = 1 - self.failure
        if released <= 0:
            return math.inf
        squares = np.array([_square(column) for column in self.means.columns])
        return math.sqrt(float(self.weights**2 @ squares) / released)

    @cached_property
    def error(self) -> MomentError:
        """What the clipped records err against μ, given that there is a value."""
        columns = self.means.columns
        released = 1 - self.failure
        return MomentError(
            Moment(columns[0].moments.order, np.array([each.moments.moment for each in columns])),
            columns[0].second,
            biases=np.array([each.clipping_bias for each in columns]),
            variances=np.array([each.moments.scale**2 for each in columns]) * _SAFE,
            heights=np.array([2 * each.clip for each in columns]),
            failed=np.array(
                [each.astray_probability / released if released > 0 else 1.0 for each in columns]
            ),
        )

    @property
    def failure(self) -> float:
        """The probability that some column has no value, at most."""
        return min(1.0, sum(column.failure_probability for column in self.means.columns))

    @property
    def least_n(self) -> int:
        """The least n with which the first rows find the interval almost surely."""
        return max(column.least_n for column in self.means.columns)

    @property
    def reach(self) -> float:
        """How far from 0 the mean of every column may lie; the records may lie anywhere."""
        return min(column.reach for column in self.means.columns)

    @property
    def assumes_symmetry(self) -> bool:
        """The bias is bounded for symmetric distributions only."""
        return True

    def keeps(self, promise: Privacy, contributions: int, n: int) -> bool:
        """Whether these are the promise and the number of records it was made for."""
        spent = zip(self.means.spent, self.promise.amounts, strict=True)
        return (
            promise == self.promise
            and all(used <= amount for used, amount in spent)
            and {(column.n, column.contributions) for column in self.means.columns}
            == {(n, contributions)}
        )

    def admit(self, source: Source) -> None:
        """Refuse a source whose rows have no stable order; nothing is read."""
        require_stable_order(source)

    def run(self, source: Source) -> Learnt:
        """Read the first rows, then the others; no value if a column has no interval."""
        outcomes = self.means.run(source)
        # Every person is in one of the halves only, so each step may take the whole promise.
        longest = max((each.steps for each in outcomes), key=len)
        clip = max(column.clip for column in self.means.columns)
        steps = tuple(Step(step.name, Fraction(1), clip) for step in longest)
        found = [
            (each.value, each.interval)
            for each in outcomes
            if each.value is not None and each.interval is not None
        ]
        if len(found) < len(outcomes):
            nothing = np.full(len(outcomes), math.nan)
            return Learnt(nothing, None, None, steps, "the records have no common place")
        values, intervals = zip(*found, strict=True)
        lower, upper = zip(*intervals, strict=True)
        interval = Box(lower, upper)
        return Learnt(
            np.array(values), self.noise, interval, steps, error=self.error, rmse=self.rmse
        )


def _shares(sizes: Floats, even: float) -> list[tuple[Fraction, Fraction]]:
    """The shares of ε and of δ of every column; those of a single one are all there is."""
    equal = Fraction(1, len(sizes))
    if len(sizes) == 1:
        return [(equal, equal)]
    parts = sizes ** (2 / 3)
    mixed = even / len(sizes) + (1 - even) * parts / parts.sum()
    # Rounded down, so that all together are at most 1.
    return [(short_fraction(float(part)), equal) for part in mixed]


def _square(mean: SymmetricMean) -> float:
    """E[(value − μ)²; there is one], at most."""
    law, noise = mean.moments, mean.noise_error**2
    search = mean.search
    bounds = Search(mean.first, mean.width, float(search.rate), search.threshold)
    clipped = law.clipping(mean.clip - mean.width) + ROUNDING * mean.clip
    good = law.scale**2 / mean.second + noise + clipped**2
    bad = stray_square(bounds, law, mean.clip + mean.width / 2) + mean.astray_probability * noise
    return float(min(mean.mse_bound, good + bad)) * _SAFE


def stray_square(search: Search, law: IntervalMoments, near: float) -> float:
    """E[(near + max|X − μ|)²; no interval, or one whose middle is more than a bin from μ], at most.

    Noise that misleads the search does not depend on the records; if the records mislead it, more
    than m of them are far from μ, and m of the others, whichever is the farthest. Hölder's
    inequality would take a power 1 − 2/λ of the probability instead: all of it at λ = 2.
    """
    records, far = search.records, law.outside(search.width / 2)
    largest = law.scale * math.sqrt(records)

    def bound(m: int) -> float:
        half = -(-(records - m) // 2)
        level = max(math.ceil((half + m) / 2), search.threshold + 1)
        others = max(m * tail(level - 1), tail(level - m)) if m else 0.0
        misled = min(1.0, tail(half - level + 1) + others)
        crowd = near * math.exp(-rarity(m + 1, records, far) / 2)
        crowd += largest * math.exp(-rarity(m, max(records - 1, 1), far) / 2)
        return crowd**2 + misled * (near + largest) ** 2

    def tail(reach: int) -> float:
        return math.exp(-search.rate * reach) / (1 + math.exp(-search.rate)) if reach >= 0 else 1.0

    return min(bound(records * part // 100) for part in range(2, 50, 2)) * _SAFE
