"""Means as ratios of noisy sums and noisy counts, with Fieller's intervals.

A ratio has no moments, so its standard error is the asymptotic one, and infinite when the noisy
count is below five of its standard deviations. The interval is exact whatever the count: for the
true mean τ of one coordinate, A − τ·N̂ is noise alone, σ_A·z₁ − τσ_N·z₂, so

    |A − τ·N̂| ≤ q(σ_A, τσ_N),   q the quantile of |σ_A·z₁ + τσ_N·z₂|,

has the confidence of q; solved for τ that is an interval if N̂ > q(0, σ_N), and says nothing
otherwise (then the interval is the whole domain). For a population sampling adds to q.

Where the count is of an earlier step, which also decided from where A is measured, the two noises
are allowed for one by one: |A − R| ≤ q and |N̂ − N| ≤ q' for the exact R and N, and τ = R/N.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.noise.spread import Spread, check_covariance_size

FEWEST_DEVIATIONS = 5

_COUNT_MISS = 1 / 16
"""What the count may miss of all, where it has noise of an earlier step."""

_ROUNDS = (12, 24, 24)
"""Halvings of the rounds in which an interval is shortened, where one round is not enough."""

_HALVINGS = 48
"""Ends are found to this many bits of the domain, and rounded outwards."""


@dataclass(frozen=True, eq=False)
class Ratio(
    Plain,
    keys=(
        *("sums", "count", "sum_spread", "count_scale", "reach", "lower", "upper", "shift"),
        Key("count_spread", optional=True),
    ),
):
    """A/N̂ from the noisy sums A, of shape (d,), and noisy counts N̂: one a column, or one for all.

    `count` and `count_scale` have the shape (d,) or (1,). A is measured from a point c of the
    domain, the answers from the domain's centre: `shift`, of shape (d,), is c as seen from there,
    and [`lower`, `upper`] what the domain covers. `sum_spread` and `count_scale` describe the
    noise; `count_spread` that of the counts, if they are of an earlier step.
    """

    sums: Floats
    count: Floats
    sum_spread: Spread
    count_scale: Floats
    lower: Floats
    upper: Floats
    shift: Floats
    count_spread: Spread | None = None

    @property
    def offset(self) -> Floats:
        """The mean as seen from the domain's centre, the count kept away from 0; clip it."""
        return self.shift + self._ratio

    @property
    def _ratio(self) -> Floats:
        return self.sums / np.maximum(self.count, 1.0)

    @property
    def _inside(self) -> Floats:
        """A/N̂, within the domain."""
        return np.clip(self._ratio, self.lower - self.shift, self.upper - self.shift)

    @property
    def _counted(self) -> Spread:
        """The law of the noise on the counts."""
        return self.count_spread or self.sum_spread

    @property
    def count_error(self) -> Floats:
        """The standard deviation of the noise on the counts, of their shape."""
        return self.count_scale * math.sqrt(self._counted.law.variance(self._counted.rows))

    @property
    def standard_error(self) -> Floats:
        """√(σ_A² + τ̂²σ_N²)/N̂, or infinity when the count cannot be told from zero."""
        both = (self.sum_spread, self._counted)
        deviations = [math.sqrt(each.law.variance(each.rows)) for each in both]
        count_scale = self.count_scale * (deviations[1] / deviations[0])
        scale = np.hypot(self.sum_spread.scales, self._inside * count_scale)
        hopeless = self._is_hopeless()
        known = scale * deviations[0] / np.where(hopeless, 1.0, self.count)
        return np.asarray(np.where(hopeless, math.inf, known))

    @property
    def covariance(self) -> Floats:
        """The asymptotic covariance, of shape (d, d)."""
        check_covariance_size(len(self.sums))
        if self._is_hopeless().any():
            return np.diag(self.standard_error**2)
        mean = self._inside
        # One count for all columns moves them together, counts of their own do not.
        together = np.outer(mean, mean) if len(self.count) == 1 else np.diag(mean**2)
        noise = self.sum_spread.covariance + self.count_error**2 * together
        return np.asarray(noise / self.count[:, None] / self.count)

    def is_empty(self, confidence: float) -> NDArray[np.bool_]:
        """Where the count may be that of no values at all, of shape (d,)."""
        law, rows = self._counted.law, self._counted.rows
        if law.log_concave:
            few = self.count <= law.quantile(confidence, rows) * self.count_scale
        else:
            none = np.zeros(self.count.shape)
            few = law.pair_tail(self.count, none, self.count_scale, rows) > 1 - confidence
        return np.broadcast_to(few, self.sums.shape)

    def interval(
        self, confidence: float, *, joint: bool, sampling: Floats | float = 0.0
    ) -> tuple[Floats, Floats]:
        """The interval for the mean, as seen from the domain's centre and within it.

        `sampling` is what a draw of the records may add to A − τ·N̂, independent of the noise.
        """
        find = self._fieller if self.sum_spread.law.elliptic else self._searched
        if self.count_spread is not None:
            find = self._one_by_one
        lower, upper = find(confidence, joint, np.broadcast_to(sampling, self.sums.shape))
        return (
            np.clip(self.shift + lower, self.lower, self.upper),
            np.clip(self.shift + upper, self.lower, self.upper),
        )

    def _fieller(self, confidence: float, joint: bool, sampling: Floats) -> tuple[Floats, Floats]:
        """Where the noise of every combination has one law: the roots of a quadratic."""
        spread = self.sum_spread
        z = spread.law.quantile(confidence, spread.rows, joint=joint)
        a, n, count_scale = self.sums, self.count, self.count_scale
        reach, count_reach = np.hypot(z * spread.scales, sampling), z * count_scale
        known = n > count_reach
        scale = np.where(known, n**2 - count_reach**2, 1.0)
        squares = (reach * n) ** 2 + (count_reach * a) ** 2 - (reach * count_reach) ** 2
        root = np.sqrt(np.maximum(squares, 0.0))
        return (
            np.where(known, (a * n - root) / scale, -math.inf),
            np.where(known, (a * n + root) / scale, math.inf),
        )

    def _one_by_one(
        self, confidence: float, joint: bool, sampling: Floats
    ) -> tuple[Floats, Floats]:
        """Sum and count within their reaches, whatever the one has to do with the other."""
        spread, counted, miss = self.sum_spread, self._counted, 1 - confidence
        quantile = spread.law.quantile(1 - miss * (1 - _COUNT_MISS), spread.rows, joint=joint)
        share = _COUNT_MISS / (len(self.sums) if joint else 1)
        reach = np.hypot(quantile * spread.scales, sampling)
        away = counted.law.quantile(1 - miss * share, counted.rows) * self.count_scale
        fewest, most = self.count - away, self.count + away
        known, least = fewest > 0, np.where(fewest > 0, fewest, 1.0)
        low, high = self.sums - reach, self.sums + reach
        return (
            np.where(known, low / np.where(low < 0, least, most), -math.inf),
            np.where(known, high / np.where(high > 0, least, most), math.inf),
        )

    def _searched(self, confidence: float, joint: bool, sampling: Floats) -> tuple[Floats, Floats]:
        """Other noise: q is convex in τ and grows by at most q(0, σ_N) < N̂, so halving finds it.

        Of stairs it is known only that q grows with |τ|: it is taken at the end, and again at the
        nearer end that follows. Simultaneously by Bonferroni's inequality.
        """
        spread, count = self.sum_spread, np.broadcast_to(self.count, self.sums.shape)
        miss = (1 - confidence) / (len(self.sums) if joint else 1)

        def too_far(tau: Floats, place: Floats | None = None) -> NDArray[np.bool_]:
            reach = np.sqrt(np.maximum((self.sums - tau * count) ** 2 - sampling**2, 0.0))
            scales = spread.scales, (tau if place is None else place) * self.count_scale
            return spread.law.pair_tail(reach, *scales, spread.rows) < miss

        middle = self.sums / np.where(count > 0, count, 1.0)
        empty = self.is_empty(1 - miss)
        lowest = np.minimum(self.lower - self.shift, middle)
        highest = np.maximum(self.upper - self.shift, middle)
        ends = np.stack([lowest, highest])
        if spread.law.log_concave:
            ends = last_inside(too_far, middle, ends)
        for halvings in () if spread.law.log_concave else _ROUNDS:
            place = np.maximum(np.abs(ends), np.abs(middle))
            ends = last_inside(partial(too_far, place=place), middle, ends, halvings)
        lower, upper = ends
        return np.where(empty, -math.inf, lower), np.where(empty, math.inf, upper)

    def _is_hopeless(self) -> NDArray[np.bool_]:
        few = self.count < FEWEST_DEVIATIONS * self.count_error
        return np.broadcast_to(few, self.sums.shape)

    def to_dict(self) -> dict[str, Any]:
        """The ratio as JSON: all of it has been released. One count is a number, several a list."""
        fields = {
            "sums": self.sums.tolist(),
            "count": _one_or_more(self.count),
            "sum_spread": self.sum_spread.to_dict(),
            "count_scale": _one_or_more(self.count_scale),
        }
        if self.count_spread is not None:
            fields["count_spread"] = self.count_spread.to_dict()
        if not self.shift.any() and (self.lower == -self.upper).all():
            return {**fields, "reach": self.upper.tolist()}
        ends = {"lower": self.lower.tolist(), "upper": self.upper.tolist()}
        return {**fields, **ends, "shift": self.shift.tolist()}

    @classmethod
    def built(
        cls,
        sums: Floats,
        count: float | Floats,
        sum_spread: Spread,
        count_scale: float | Floats,
        reach: Floats | None = None,
        lower: Floats | None = None,
        upper: Floats | None = None,
        shift: Floats | None = None,
        count_spread: Spread | None = None,
    ) -> Ratio:
        """The ratio that `to_dict` described; `reach` stands for lower, upper = ∓reach."""
        if reach is not None:
            lower, upper, shift = -reach, reach, np.zeros(len(reach))
        if lower is None or upper is None or shift is None:
            raise ValueError("no domain")
        counts, scales = np.atleast_1d(count), np.atleast_1d(count_scale)
        return cls(sums, counts, sum_spread, scales, lower, upper, shift, count_spread)


def last_inside(
    too_far: Callable[[Floats], NDArray[np.bool_]],
    start: Floats,
    ends: Floats,
    halvings: int = _HALVINGS,
) -> Floats:
    """The last point from `start` to each of the ends that is not too far, rounded outwards.

    `ends` has shape (2, d); an end that is not too far itself is that point.
    """
    inside, outside, beyond = np.broadcast_to(start, ends.shape), ends, too_far(ends)
    for _ in range(halvings):
        middle = inside + (outside - inside) / 2
        far = too_far(middle)
        outside, inside = np.where(far, middle, outside), np.where(far, inside, middle)
    return np.where(beyond, outside, ends)


def _one_or_more(values: Floats) -> float | list[float]:
    return float(values[0]) if len(values) == 1 else list(values.tolist())
