"""Mistakes of the blog post of 2024 on pure and approximate privacy (B24), by numbers."""

from __future__ import annotations

import math

from muhat.bounds import ball
from muhat.privacy import PureDP
from muhat.privacy.gaussian_curve import gaussian_mu
from muhat.studies.mistakes import Numbers, least_sigma, mistake


@mistake(
    "B24",
    "Laplace noise (1.1)",
    says="noise of scale 2L√d/ε on the mean has error L·d/(nε)",
    means="the scale is 2L√d/(nε)",
    sign="=",
)
def laplace_scale() -> Numbers:
    n, d, epsilon = 10**6, 100, 1.0
    moved = 2 * math.sqrt(d) / n
    printed = 2 * math.sqrt(d) / epsilon
    return Numbers(
        moved / epsilon, printed, printed / n, "scale for n = 10⁶, d = 100, L = 1, ε = 1"
    )


@mistake(
    "B24",
    "Gaussian noise (1.3)",
    says="σ² = 8L²·ln(1.25/δ)/(n²ε²)",
    means="valid for ε ≤ 1, undefined at ε = 0; the exact curve needs less",
    sign="≤",
    kind="loose",
)
def gaussian_noise() -> Numbers:
    epsilon, delta = 1.0, 1e-6
    exact = 1 / gaussian_mu(epsilon, delta)
    printed = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    corrected = least_sigma(epsilon, delta)
    return Numbers(exact, printed, corrected, "σ per unit of sensitivity, ε = 1, δ = 10⁻⁶")


@mistake(
    "B24",
    "the best pure mechanism (1.2)",
    says="Laplace noise is the mechanism for pure privacy",
    means="noise shaped like the ball errs √2 less",
    sign="≤",
    kind="loose",
)
def laplace_is_not_best() -> Numbers:
    d, n = 100, 1000
    exact = ball(n=n, dim=d, radius=1.0, privacy=PureDP(epsilon=1.0)).upper
    printed, corrected = 2 * math.sqrt(2) * d / n, 2 * math.sqrt(d * (d + 1)) / n
    return Numbers(exact, printed, corrected, "root mean square error, d = 100, n = 1000, ε = 1")


MISTAKES = (laplace_scale, gaussian_noise, laplace_is_not_best)
