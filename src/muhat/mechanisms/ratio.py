"""A mean as the ratio of a noisy sum and a noisy count, with Fieller's interval.

A ratio has no moments, so its standard error is the asymptotic one, and infinite when the noisy
count is below five of its standard deviations. The interval is exact whatever the count: for the
true mean τ of one coordinate, A − τ·N̂ is centred noise of scale √(σ_A² + τ²σ_N²), so

    |A − τ·N̂| ≤ z·√(σ_A² + τ²σ_N²)

has the confidence of z; solved for τ that is an interval if N̂ > z·σ_N, and says nothing
otherwise (then the interval is the whole domain).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.noise.spread import Spread, check_covariance_size

Floats = NDArray[np.float64]

FEWEST_DEVIATIONS = 5


@dataclass(frozen=True, eq=False)
class Ratio:
    """A/N̂ from the noisy sum A, of shape (d,), and the noisy count N̂.

    A is measured from a point c of the domain, the answers from the domain's centre: `shift`, of
    shape (d,), is c as seen from there, and [`lower`, `upper`] what the domain covers.
    `sum_spread` and `count_scale` describe the noise.
    """

    sums: Floats
    count: float
    sum_spread: Spread
    count_scale: float
    lower: Floats
    upper: Floats
    shift: Floats

    @property
    def offset(self) -> Floats:
        """The mean as seen from the domain's centre, the count kept away from 0; clip it."""
        return self.shift + self._ratio

    @property
    def _ratio(self) -> Floats:
        return self.sums / max(self.count, 1.0)

    @property
    def _inside(self) -> Floats:
        """A/N̂, within the domain."""
        return np.clip(self._ratio, self.lower - self.shift, self.upper - self.shift)

    @property
    def standard_error(self) -> Floats:
        """√(σ_A² + τ̂²σ_N²)/N̂, or infinity when the count cannot be told from zero."""
        variance = math.sqrt(self.sum_spread.law.variance(self.sum_spread.rows))
        if self._is_hopeless():
            return np.full(len(self.sums), math.inf)
        scale = np.hypot(self.sum_spread.scales, self._inside * self.count_scale)
        return np.asarray(scale * variance / self.count)

    @property
    def covariance(self) -> Floats:
        """The asymptotic covariance, of shape (d, d)."""
        check_covariance_size(len(self.sums))
        if self._is_hopeless():
            return np.diag(np.full(len(self.sums), math.inf))
        mean = self._inside
        variance = self.sum_spread.law.variance(self.sum_spread.rows) * self.count_scale**2
        return np.asarray(
            (self.sum_spread.covariance + variance * np.outer(mean, mean)) / self.count**2
        )

    def interval(self, confidence: float, *, joint: bool) -> tuple[Floats, Floats]:
        """Fieller's interval for the mean, as seen from the domain's centre and within it."""
        spread = self.sum_spread
        z = spread.law.quantile(confidence, spread.rows, joint=joint)
        a, sum_scale, count_scale = self.sums, spread.scales, self.count_scale
        if self.count <= z * count_scale:
            return self.lower.copy(), self.upper.copy()
        scale = self.count**2 - (z * count_scale) ** 2
        root = z * np.sqrt(
            np.maximum(
                (sum_scale * self.count) ** 2
                + (count_scale * a) ** 2
                - (z * sum_scale * count_scale) ** 2,
                0.0,
            )
        )
        ends = [self.shift + (a * self.count + side * root) / scale for side in (-1, 1)]
        return np.clip(ends[0], self.lower, self.upper), np.clip(ends[1], self.lower, self.upper)

    def _is_hopeless(self) -> bool:
        deviation = self.count_scale * math.sqrt(self.sum_spread.law.variance(self.sum_spread.rows))
        return self.count < FEWEST_DEVIATIONS * deviation

    def to_dict(self) -> dict[str, Any]:
        """The ratio as JSON: all of it has been released."""
        fields = {
            "sums": self.sums.tolist(),
            "count": self.count,
            "sum_spread": self.sum_spread.to_dict(),
            "count_scale": self.count_scale,
        }
        if not self.shift.any() and (self.lower == -self.upper).all():
            return {**fields, "reach": self.upper.tolist()}
        ends = {"lower": self.lower.tolist(), "upper": self.upper.tolist()}
        return {**fields, **ends, "shift": self.shift.tolist()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Ratio:
        """The ratio that `to_dict` described; `reach` stands for lower, upper = ∓reach."""
        if "reach" in fields:
            upper = np.array(fields["reach"], np.float64)
            lower, shift = -upper, np.zeros(len(upper))
        else:
            lower, upper, shift = (
                np.array(fields[name], np.float64) for name in ("lower", "upper", "shift")
            )
        return cls(
            np.array(fields["sums"], np.float64),
            float(fields["count"]),
            Spread.from_dict(fields["sum_spread"]),
            float(fields["count_scale"]),
            lower,
            upper,
            shift,
        )
