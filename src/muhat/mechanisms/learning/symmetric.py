"""Means without bias where the law of the records is symmetric, and nobody has bounded them.

    the first records, by row number, tell a coarse interval (`CoarseInterval`)
    the others are clipped to it, widened on both sides, and averaged with Laplace noise

The coarse interval's middle is symmetric about the centre μ of a symmetric law and independent of
the other records, so what clipping takes on one side it takes on the other: the mean stays
unbiased. A person is in one half or in the other, so each half may spend the whole promise. If no
bin passes the threshold nothing is released: an honest outcome, counted in the bounds.

Kamath, Mouzakis, Regehr, Singhal, Steinke and Ullman (2024), Algorithm 2, without its fallback,
which publishes records in the clear. Proof: docs/proofs/symmetric.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from muhat._words import Parameter, given_rows
from muhat.data.base import Source
from muhat.data.bin_counts import count_bins
from muhat.data.centered_sums import centered_sums
from muhat.data.halves import Halves, require_stable_order, split_rows
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.symmetric_column import SymmetricMean
from muhat.noise.spread import Spread
from muhat.privacy import Privacy


@dataclass(frozen=True)
class SymmetricStep:
    """A pass over one half: what it was, on how many rows, and what it spent."""

    name: str
    rows: int
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, eq=False)
class SymmetricOutcome:
    """What came out; all of it is private output. Without an interval there is no value: ⊥."""

    value: float | None
    interval: tuple[float, float] | None
    noise: Spread | None
    steps: tuple[SymmetricStep, ...]


@dataclass(frozen=True)
class SymmetricMeans:
    """Several columns, each with its own share of the promise; they are read together.

    The promises of the columns add up. All split the rows at the same place.
    """

    columns: tuple[SymmetricMean, ...]

    def __post_init__(self) -> None:
        if len({(each.n, each.first) for each in self.columns}) != 1:
            raise InvalidInput("must have the same n and first rows", parameter="columns")

    @classmethod
    def planned(
        cls,
        n: int,
        promise: Privacy,
        moments: Sequence[tuple[float, float]],
        shares: Sequence[tuple[Fraction, Fraction]],
        *,
        scales: Sequence[float] | None = None,
        offset: bool = True,
        first: int | None = None,
        contributions: int = 1,
        faithful: bool = False,
    ) -> SymmetricMeans:
        """A column for each of the moments, with its share of ε and of δ: exact, 1 in all at most.

        The first rows are as many as the column needs that needs most of them.
        """
        if len(shares) != len(moments) or (scales is not None and len(scales) != len(moments)):
            raise InvalidInput("moments, shares and scales must have one entry a column.")
        for part in zip(*shares, strict=True):
            if min(part) <= 0 or sum(part) > 1:
                raise InvalidInput(
                    "must be above 0 and add up to 1 at most, exactly", parameter="shares"
                )

        def column(index: int, head: int | None) -> SymmetricMean:
            return SymmetricMean.planned(
                n,
                promise,
                moments[index],
                scale=None if scales is None else scales[index],
                offset=offset,
                first=head,
                contributions=contributions,
                share=shares[index],
                faithful=faithful,
            )

        every = range(len(moments))
        if first is None:
            first = max(column(index, None).first for index in every)
        return cls(tuple(column(index, first) for index in every))

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """ε and δ of all columns together."""
        epsilons, deltas = zip(*((each.epsilon, each.delta) for each in self.columns), strict=True)
        return sum(epsilons, Fraction(0)), sum(deltas, Fraction(0))

    def split(self, source: Source) -> Halves:
        """The two halves of a source, or InvalidInput if it is not what was planned for.

        From what the source is and the number of its rows; to be called before anything is charged.
        """
        if source.dim != len(self.columns):
            raise InvalidInput(f"the data have {source.dim} columns, the plan {len(self.columns)}.")
        require_stable_order(source)
        if source.rows() != self.columns[0].n:
            raise InvalidInput(
                given_rows(self.columns[0].n),
                ", but the data have another number of rows.",
                hint=("Leave ", Parameter("n"), " out to have the rows counted."),
            )
        return split_rows(source, self.columns[0].first)

    def run(self, source: Source) -> tuple[SymmetricOutcome, ...]:
        """Two passes, one over each half; an outcome a column."""
        halves = self.split(source)
        centers = self._centers(halves.head)
        lattices = [each.lattice for each in self.columns]
        if all(center is None for center in centers):
            return tuple(outcome_of(each, None, 0) for each in self.columns)
        sums = centered_sums(halves.tail, centers, lattices)
        return tuple(outcome_of(*parts) for parts in zip(self.columns, centers, sums, strict=True))

    def _centers(self, head: Source) -> list[float | None]:
        """The middle of each column's fullest bin; None where none passes."""
        searches = [each.search for each in self.columns]
        shifts = [search.draw_shift() for search in searches]
        counted = count_bins(
            head,
            [search.grid for search in searches],
            shifts,
        )
        found = [search.choose(bins) for search, bins in zip(searches, counted, strict=True)]
        return [
            None if number is None else search.center(number, shift)
            for search, number, shift in zip(searches, found, shifts, strict=True)
        ]


def run_alone(mean: SymmetricMean, source: Source) -> SymmetricOutcome:
    """One column: read the first rows, then the others, and release the mean."""
    (outcome,) = SymmetricMeans((mean,)).run(source)
    return outcome


def outcome_of(mean: SymmetricMean, center: float | None, total: int) -> SymmetricOutcome:
    """Add the noise to an exact sum of offsets from the centre, and say what came out."""
    steps = [SymmetricStep("interval", mean.first, mean.epsilon, mean.delta)]
    if center is None:
        return SymmetricOutcome(None, None, None, tuple(steps))
    steps.append(SymmetricStep("mean", mean.second, mean.epsilon, Fraction(0)))
    (noisy,) = mean.recipe.run([total], mean.second)
    value = float(Fraction(center) + noisy / mean.second)
    return SymmetricOutcome(
        value, (center - mean.clip, center + mean.clip), mean.noise, tuple(steps)
    )
