"""The mean of records with a bounded moment, clipped so far out that the bias stays small.

An interval that holds the mean μ is widened by a pad c on both sides, records are clipped to it,
and their mean gets noise for its width. If E|X − μ|^λ ≤ ψ^λ, what clipping takes is bounded by
the pad (`tails`). The interval is ±magnitude, or, if that is far too wide, one that is learnt
privately from the same records first (`location`). What clipping takes from a record is then
still at most (|x − μ| − c)₊, whatever interval came out, unless the search failed.

Kamath, Mouzakis, Regehr, Singhal, Steinke and Ullman (2024), Proposition 3.5, with a tighter pad;
the learnt interval and the normal twin are ours. Proof: docs/proofs/tails.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat.domains import Box
from muhat.errors import DataChanged
from muhat.mechanisms.body import Body
from muhat.mechanisms.box_norm import box_norm
from muhat.mechanisms.ellipsoidal import ellipsoid_norm, gaussian
from muhat.mechanisms.laplace import laplace
from muhat.mechanisms.learning import Learnt
from muhat.mechanisms.location import Location
from muhat.mechanisms.padded_error import (
    PLACING,
    ROUNDING,
    learnt_square,
    stray_squares,
    wide_square,
)
from muhat.mechanisms.recipe import Protection, Recipe
from muhat.mechanisms.sharing import Floats, Sharing
from muhat.mechanisms.steps import Step
from muhat.mechanisms.tails import closed_pad, pad
from muhat.noise.spread import Spread

if TYPE_CHECKING:
    from muhat.data import Source

LOCATION_SHARES = tuple(Fraction(part, 100) for part in (1, 2, 3, 5, 8, 12, 18, 25, 35, 50))
"""What the search for the interval may take; the share with the least error in the end wins."""

SEARCH_BIAS = 0.1
"""The part of the bias that is set aside for a search that fails."""

_SAFE = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Moment:
    """E|X_j − μ_j|^order ≤ scales_j^order for every column j; an assumption nobody can check."""

    order: float
    scales: Floats

    def describe(self) -> str:
        """The assumption, as a condition."""
        sizes = [f"{scale:g}" for scale in self.scales]
        shown = (
            sizes[0]
            if len(set(sizes)) == 1
            else f"({', '.join(sizes[:5])}{', …' * (len(sizes) > 5)})"
        )
        if self.order == 2:
            return f"the standard deviation is at most {shown}"
        return f"E|X − μ|^{self.order:g} ≤ ψ^{self.order:g} with ψ = {shown}"


@dataclass(frozen=True, eq=False)
class PaddedMean:
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

    @classmethod
    def wide(cls, sharing: Sharing, moment: Moment, biases: Floats) -> PaddedMean | None:
        """On the whole of ±magnitude; None if that is too wide for the grid of the records."""
        reaches = np.full(sharing.dim, sharing.magnitude)
        pads = _pads(pad, moment, biases, reaches, sharing.magnitude)
        return None if pads is None else cls(sharing, moment, pads, biases, None, Fraction(0))

    @classmethod
    def located(cls, sharing: Sharing, moment: Moment, biases: Floats) -> PaddedMean | None:
        """On an interval that is learnt first; None if there are too few records for that."""
        failure = len(biases) * _failure(sharing.magnitude, moment, biases)
        found = []
        for share in LOCATION_SHARES:
            location = Location.of(
                sharing.magnitude,
                moment.scales,
                moment.order,
                sharing.n,
                sharing.protect(share),
                pure=sharing.pure,
                failure=failure,
            )
            if location is None:
                continue
            # It is learnt from the same records, so only the pad of E(|X − μ| − c)₊ will do.
            allowed = (1 - SEARCH_BIAS) * biases
            pads = _pads(closed_pad, moment, allowed, location.reaches, sharing.magnitude)
            if pads is not None:
                found.append(cls(sharing, moment, pads, biases, location, share))
        return min(found, key=lambda method: method.rmse, default=None)

    @property
    def name(self) -> str:
        """What users call it."""
        return "clipped-laplace" if self.sharing.pure else "clipped-normal"

    @property
    def label(self) -> str:
        """The name, and whether an interval is learnt."""
        return self.name if self.location is None else f"{self.name}, learnt interval"

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        if self.location is None:
            return "records are clipped to ±magnitude and a pad"
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
        mechanisms = (laplace, box_norm, ellipsoid_norm) if sharing.pure else (gaussian,)
        recipes = [each(body, 2.0, sharing.weights, protection) for each in mechanisms]
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
        known: dict[str, Any] = {"n": sharing.n, "magnitude": sharing.magnitude}
        columns = list(zip(self.moment.scales.tolist(), self.pads.tolist(), strict=True))
        if self.location is None:
            squares = [
                wide_square(order, scale, pad=each, bias=bias, **known)
                for (scale, each), bias in zip(columns, self.biases.tolist(), strict=True)
            ]
        else:
            strays = stray_squares(self.location, self.half_widths, **known)
            squares = [
                learnt_square(order, scale, pad=each, reach=reach, **known) + stray
                for (scale, each), reach, stray in zip(
                    columns, self.location.reaches.tolist(), strays.tolist(), strict=True
                )
            ]
        weighted = float(sharing.weights**2 @ np.array(squares))
        return math.sqrt(weighted + self.noise_error**2) * _SAFE

    @property
    def assumes_symmetry(self) -> bool:
        """The bias is bounded for every distribution with the moment."""
        return False

    def keeps(self, protection: Protection, n: int) -> bool:
        """Whether these are the promise and the number of records it was made for."""
        return self.sharing.protection == protection and self.sharing.n == n

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
        return Learnt(value, self._spread(recipe), interval, tuple(steps))

    def to_dict(self) -> dict[str, Any]:
        """All that decides the release."""
        return {
            **self.sharing.to_dict(),
            "half_widths": [float(width).hex() for width in self.half_widths],
            "location_share": str(self.location_share),
            "location": None if self.location is None else self.location.to_dict(),
        }

    def _spread(self, recipe: Recipe) -> Spread:
        spread = Spread(recipe.law, recipe.query.rows, recipe.scales, recipe.factor)
        return spread.shrunk(self.sharing.n)


def _error(spread: Spread, weights: Floats) -> float:
    return spread.weighted(weights).root_mean_square(2.0)[0]


def _pads(
    pad_of: Callable[[float, float, float], float],
    moment: Moment,
    biases: Floats,
    reaches: Floats,
    magnitude: float,
) -> Floats | None:
    """The pads for these biases, of which rounding takes a little first; None if it takes all."""
    pads = []
    for bias, scale, reach in zip(biases, moment.scales, reaches, strict=True):
        widest = pad_of(float(bias) / 2, moment.order, float(scale))
        rounding = ROUNDING * (float(reach) + widest) + PLACING * magnitude
        if rounding > bias / 2:
            return None
        pads.append(pad_of(float(bias) - rounding, moment.order, float(scale)))
    return np.array(pads)


def _failure(magnitude: float, moment: Moment, biases: Floats) -> float:
    """How rarely the search of a column may fail: ψ·η^{1−1/λ} + 2·magnitude·η ≤ its bias.

    A search that failed may clip to an interval 2·magnitude away; Hölder's inequality bounds
    what the records themselves add on that event.
    """
    allowed = SEARCH_BIAS * biases
    exponent = moment.order / (moment.order - 1)
    tails = min(1.0, float(np.min(allowed / (2 * moment.scales))))
    return min(math.exp(exponent * math.log(tails)), float(allowed.min()) / (4 * magnitude), 0.5)
