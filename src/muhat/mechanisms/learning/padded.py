"""The mean of records with a bounded moment, clipped so far out that the bias stays small.

An interval that holds the mean μ is widened by a pad c on both sides, records are clipped to it,
and their mean gets noise for its width. If E|X − μ|^λ ≤ ψ^λ, what clipping takes is bounded by
the pad (`tails`). The interval is ±magnitude, or, if that is far too wide, one that is learnt
privately from the same records first (`location`). What clipping takes from a record is then
still at most (|x − μ| − c)₊, whatever interval came out, unless the search failed.

Kamath, Mouzakis, Regehr, Singhal, Steinke and Ullman (2024), Proposition 3.5, with a tighter pad;
the learnt interval and the normal twin are ours. `faithful` keeps the paper's pad and its Laplace
noise. Proof: docs/proofs/tails.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.domains import Box
from muhat.errors import DataChanged
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.location import Location
from muhat.mechanisms.learning.moment_error import Moment, MomentError
from muhat.mechanisms.learning.names import AS_PRINTED, CLIPPED
from muhat.mechanisms.learning.padded_error import PLACING, ROUNDING, learnt_squares, wide_square
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.steps import Step
from muhat.mechanisms.learning.tails import bias_bound, pad, sampling_variance
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.laplace import LAPLACE
from muhat.mechanisms.sums.mechanisms import competing
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.protection import Protection
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors, Privacy

if TYPE_CHECKING:
    from muhat.data import Source

_SAFE = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class PaddedMean(
    Plain,
    keys=(
        "sharing",
        "half_widths",
        "location_share",
        "location",
        Key("faithful", optional=True),
    ),
):
    """Clip to an interval around the mean and a pad, then add noise.

    `pads`, of shape (d,). `biases`, of shape (d,), bound |E value − μ| in every column, if the
    moments are as assumed and the records independent draws. `location` is None if the interval
    is ±magnitude.
    """

    sharing: Sharing
    moment: Moment
    pads: Floats
    biases: Floats
    location: Location | None
    location_share: Fraction
    faithful: bool = False

    @property
    def name(self) -> str:
        """What users call it."""
        return CLIPPED[self.sharing.kind]

    @property
    def label(self) -> str:
        """The name, and whether an interval is learnt."""
        if self.faithful:
            return self.name + AS_PRINTED
        return self.name if self.location is None else f"{self.name}, learnt interval"

    @property
    def printed(self) -> tuple[str, str] | None:
        """What it is in the paper, and what ours has instead, if that was kept."""
        if not self.faithful:
            return None
        bias, scale = float(self.biases[0]), float(self.moment.scales[0])
        enough = pad(bias, self.moment.order, scale)
        pads = f"a pad of {enough:.3g} in place of {self.pads[0]:.3g} is enough for a bias"
        return "Proposition 3.5", f"{pads} of {bias:.3g}"

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        if self.location is None:
            what = "records are clipped to ±magnitude and a pad"
            return what + (AS_PRINTED if self.faithful else "")
        return "an interval that holds the mean is learnt privately; records are clipped near it"

    @property
    def half_widths(self) -> Floats:
        """Half the length of the last interval of every column, of shape (d,)."""
        reaches = self.sharing.magnitude if self.location is None else self.location.reaches
        return np.asarray(reaches + self.pads)

    def interval(self, centers: Floats) -> Box:
        """Where records are clipped to, about these centres."""
        return Box(centers - self.half_widths, centers + self.half_widths)

    def recipe(self, interval: Box) -> Recipe:
        """The noisy sum over the interval: of the mechanisms for the promise the best."""
        sharing = self.sharing
        protection = sharing.protect(1 - self.location_share)
        body = Body.of(interval, 2.0, sharing.weights, protection.neighbors)
        every = competing(sharing.kind, interval, protection)
        recipes = [
            each.make(body, 2.0, sharing.weights, protection)
            for each in ([LAPLACE] if self.faithful else every)
        ]
        return min(recipes, key=lambda recipe: _error(self._spread(recipe), sharing.weights))

    @cached_property
    def noise(self) -> Spread:
        """The noise on the mean; it is the same wherever the interval lies."""
        return self._spread(self.recipe(self.interval(np.zeros(self.sharing.dim))))

    @cached_property
    def noise_error(self) -> float:
        """The weighted root mean square ℓ₂ error of the noise."""
        return _error(self.noise, self.sharing.weights)

    @cached_property
    def rmse(self) -> float:
        """The weighted root mean square error against μ is at most this, under the assumption."""
        sharing, order = self.sharing, self.moment.order
        if self.location is None:
            columns = zip(self.moment.scales, self.pads, self.biases, strict=True)
            squares = np.array(
                [
                    wide_square(order, *column, n=sharing.n, magnitude=sharing.magnitude)
                    for column in columns
                ]
            )
        else:
            scales = self.moment.scales
            squares = learnt_squares(self.location, order, scales, self.pads, sharing.n)
        weighted = float(sharing.weights**2 @ squares)
        return math.sqrt(weighted + self.noise_error**2) * _SAFE

    @cached_property
    def error(self) -> MomentError:
        """What the clipped records err against μ, under the assumption."""
        order, magnitude = self.moment.order, self.sharing.magnitude
        learnt = self.location
        reaches = np.full(self.sharing.dim, magnitude) if learnt is None else learnt.reaches
        columns = list(zip(self.moment.scales, self.pads, reaches, strict=True))
        biases = np.array([bias_bound(float(pad), order, scale) for scale, pad, _ in columns])
        rounding = ROUNDING * self.half_widths + PLACING * magnitude
        return MomentError(
            self.moment,
            self.sharing.n,
            biases=biases + rounding,
            variances=np.array(
                [
                    sampling_variance(order, scale, width=2 * reach, pad=pad)
                    for scale, pad, reach in columns
                ]
            ),
            heights=2 * reaches + self.pads + biases + rounding,
            failed=np.full(self.sharing.dim, 0.0 if learnt is None else learnt.failed),
        )

    @property
    def assumes_symmetry(self) -> bool:
        """The bias is bounded for every distribution with the moment."""
        return False

    def keeps(self, promise: Privacy, contributions: int, n: int) -> bool:
        """Whether these are the promise and the number of records it was made for."""
        sharing = self.sharing
        asked = Protection(promise, Neighbors.SUBSTITUTE, contributions)
        return sharing.protection == asked and sharing.n == n

    @property
    def failure(self) -> float:
        """The probability that the interval does not hold the means and their pads."""
        return 0.0 if self.location is None else min(1.0, self.location.failure)

    def admit(self, source: Source) -> None:
        """Every source will do."""

    def run(self, source: Source) -> Learnt:
        """Read the records once or a few times; the whole promise has been charged."""
        from muhat.data import exact_sums

        sharing, steps = self.sharing, []
        centers = np.zeros(sharing.dim)
        if self.location is not None:
            centers = self.location.run(source)
            steps.append(Step("location", self.location_share, float(self.location.reaches.max())))
        interval = self.interval(centers)
        recipe = self.recipe(interval)
        lattice = recipe.query.lattice
        assert lattice is not None
        assert recipe.center is not None
        sums = exact_sums(source, lattice)
        if sums.rows != sharing.n:
            raise DataChanged("the number of rows changed between two passes.")
        noisy = [total / sharing.n for total in recipe.run(sums.total, sums.rows)]
        steps.append(Step("mean", 1 - self.location_share, float(self.half_widths.max())))
        value = recipe.center + recipe.to_domain(noisy)
        return Learnt(
            value,
            self._spread(recipe),
            interval,
            tuple(steps),
            error=self.error,
            rmse=self.rmse,
        )

    def _spread(self, recipe: Recipe) -> Spread:
        spread = Spread(recipe.law, recipe.query.rows, recipe.scales, recipe.factor)
        return spread.shrunk(self.sharing.n)


def _error(spread: Spread, weights: Floats) -> float:
    return spread.weighted(weights).root_mean_square(2.0)[0]
