"""How fast the mean of a private answer can move with the parameter of Bernoulli data.

The records are v·Bernoulli(p), x = p(1 − p). A mechanism whose root mean square error is α has

    |d E[M]/dp| ≤ α·min{n√Q(p), √(n/x)},      Q = (1 − δ)·κ/(1 + κx) + δ/x,

κ = 4sinh²(ε/2) for ε- and (ε, δ)-DP, e^{2ρ} − 1 for ρ-zCDP, e^{μ²} − 1 for μ-GDP: the first for
privacy, the second for every estimator. With p = sin²θ, dp = 2√x dθ and the bound on the movement
is 2√n·min{√(n·w), 1} dθ, w = xQ = δ + (1 − δ)·κx/(1 + κx). Proofs: docs/proofs/trilemma.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from muhat._arrays import Floats
from muhat.bounds.divergences import log_one_sided_pure, one_sided
from muhat.privacy import Privacy

QUARTER = math.pi / 4
"""θ where p = ½; the movement is the same at θ and at π/2 − θ."""

PANELS = 8192
"""Of the certified integral: it is too large by less than two parts in a million."""

REACH = 18.0
"""Below e^{−18} of the upper end one panel covers the rest."""


class Score(NamedTuple):
    """n, ln κ and δ; κ = ∞ (`log_gain` = inf) leaves the bound of every estimator."""

    n: int
    log_gain: float
    leak: float

    @classmethod
    def of(cls, n: int, privacy: Privacy) -> Score:
        """For n records under a promise about replacing one of them."""
        if privacy.point is not None:
            epsilon, delta = privacy.point
            return cls(n, log_one_sided_pure(epsilon), delta)
        gain = one_sided(privacy)
        return cls(n, math.inf if gain is None else gain, 0.0)

    def log_root(self, theta: Floats) -> Floats:
        """ln √w, for θ in (0, π/4]; √w is what one record tells of itself, of all it could."""
        log_odds = self.log_gain + 2 * np.log(np.sin(2 * theta) / 2)
        log_share = math.log1p(-self.leak) - np.logaddexp(0, -log_odds)
        if self.leak:
            log_share = np.logaddexp(math.log(self.leak), log_share)
        return log_share / 2

    def log_speed(self, theta: Floats) -> Floats:
        """ln of 2√n·min{√(n·w), 1}, for θ in (0, π/4]."""
        log_n = math.log(self.n)
        return math.log(2) + log_n / 2 + np.minimum(log_n / 2 + self.log_root(theta), 0)

    @property
    def turning(self) -> float:
        """θ in [0, π/4] where n·w = 1: privacy binds below, and nothing but sampling above."""
        share = (1 / self.n - self.leak) / (1 - self.leak)
        if share <= 0:
            return 0.0
        if share >= 1:
            return QUARTER
        log_x = math.log(share) - math.log1p(-share) - self.log_gain
        return QUARTER if log_x > -math.log(4) else math.asin(2 * math.exp(log_x / 2)) / 2

    def integral(self, low: float, high: float) -> float:
        """∫ of the speed from θ = `low` to `high` in [0, π/2], rounded up, and at least 1e−290."""
        if high > QUARTER:
            right = self.integral(math.pi / 2 - high, min(math.pi / 2 - low, QUARTER))
            return right + (self.integral(low, QUARTER) if low < QUARTER else 0.0)
        # Either bound on the speed is valid everywhere, so the turning point may be inexact.
        turning = min(max(self.turning, low), high)
        sampling = 2 * math.sqrt(self.n) * (high - turning)
        # Far above the least floats, so that nothing that matters was lost among them.
        return max((self._private(low, turning) + sampling) * (1 + 1e-11), 1e-290)

    def _private(self, low: float, high: float) -> float:
        """2n·∫√w dθ from above: ln √w is nearly linear in ln θ, panel by panel.

        As a function of u = ln θ, ln √w rises with a slope of at most 1 and its second derivative
        is above −(½ + π²/4) > −3: on a panel of length h it is below its chord plus 3h²/8.
        """
        if not low < high:
            return 0.0
        start = max(low, high * math.exp(-REACH))
        nodes = np.linspace(math.log(start), math.log(high), PANELS + 1)
        theta = np.exp(nodes)
        theta[0], theta[-1] = start, high
        logs = self.log_root(theta)
        roots = np.exp(logs)
        step = (nodes[-1] - nodes[0]) / PANELS
        total = float(roots[0]) * (start - low)
        if step > 0:
            growth = np.diff(logs) + step
            pieces = theta[:-1] * roots[:-1] * np.expm1(growth) / growth * step
            total += float(np.sum(pieces)) * math.exp(3 * step * step / 8)
        return 2 * self.n * total
