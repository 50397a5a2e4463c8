"""Statistics that are quotients of two forms in noisy tables, and Fieller's intervals for them.

A mean is Σu/N, a variance (N·Σu² − (Σu)²)/(N·(N − 1)), a slope the quotient of a covariance and a
variance: all are X/Y with X and Y of the second degree in tables that have independent noise. For
the exact statistic θ, X − θ·Y is noise alone:

    Σ_t (∂X/∂t − θ·∂Y/∂t)·noise_t, and terms of second order in the noise, which have mean 0,

so the θ for which |X − θ·Y| lies within the reach of that are an interval, if Y cannot be 0. What
a draw of the records adds for a population is allowed for beside it.

Proof: docs/proofs/readings.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.mechanisms.sums.ratio import last_inside
from muhat.release.moments import NoisyMoments, Term

Allowance = Callable[[Floats], Floats]
"""θ ↦ the square of what sampling may add to X − θ·Y, of the shape of θ: (…, groups)."""

TooFar = Callable[[Floats], NDArray[np.bool_]]

DOUBLINGS = 64
"""An interval without bounds of its own is searched so far out."""


def normal_quantile(miss: float) -> float:
    """What the size of a standard normal exceeds with this chance."""
    return -NormalDist().inv_cdf(miss / 2)


@dataclass(frozen=True, eq=False)
class Form:
    """t ↦ c + aᵀt + tᵀAt of the tables t, in their order; A is symmetric."""

    constant: float
    linear: Floats
    matrix: Floats

    @classmethod
    def of(cls, moments: NoisyMoments, term: Term) -> Form:
        """One term."""
        linear = moments.row(term)
        return cls(0.0, linear, np.zeros((len(linear), len(linear))))

    def __add__(self, other: Form | float) -> Form:
        if not isinstance(other, Form):
            return Form(self.constant + other, self.linear, self.matrix)
        return Form(
            self.constant + other.constant, self.linear + other.linear, self.matrix + other.matrix
        )

    def __sub__(self, other: Form) -> Form:
        return self + other * -1.0

    def __mul__(self, other: Form | float) -> Form:
        """A multiple; or the product of two forms of the first degree without constants."""
        if not isinstance(other, Form):
            return Form(self.constant * other, self.linear * other, self.matrix * other)
        product = np.outer(self.linear, other.linear)
        return Form(0.0, np.zeros_like(self.linear), (product + product.T) / 2)

    def value(self, moments: NoisyMoments) -> Floats:
        """At the noisy tables, less what squares of noise add on average: without bias."""
        t = moments.values
        blurred = np.diag(self.matrix) @ moments.errors**2
        return np.asarray(
            self.constant + self.linear @ t + ((self.matrix @ t) * t).sum(axis=0) - blurred
        )

    def gradient(self, moments: NoisyMoments) -> Floats:
        """By every table, of shape (tables, groups)."""
        return np.asarray(self.linear[:, None] + 2 * self.matrix @ moments.values)

    def bent(self, other: Form, moments: NoisyMoments) -> float:
        """The covariance of what the two have of second order in the noise."""
        variances = moments.errors**2
        weights = 2 * np.outer(variances, variances)
        if moments.law == "laplace":
            # E z⁴ is 24 for Laplace noise of variance 2, not 12.
            np.fill_diagonal(weights, 5 * variances**2)
        return float((weights * self.matrix * other.matrix).sum())


@dataclass(frozen=True, eq=False)
class Quotient:
    """X/Y of every group. `top` and `bottom` are X and Y, of shape (groups,).

    `top_slopes` and `bottom_slopes` are their gradients, of shape (tables, groups), and `bent` the
    variances and covariance (XX, XY, YY) of what is of second order in the noise. Where `sure` is
    false, Y is no divisor for reasons of its own.
    """

    moments: NoisyMoments
    top: Floats
    bottom: Floats
    top_slopes: Floats
    bottom_slopes: Floats
    bent: tuple[Floats | float, Floats | float, Floats | float]
    sure: NDArray[np.bool_]

    @classmethod
    def of(cls, moments: NoisyMoments, top: Form, bottom: Form) -> Quotient:
        """The quotient of two forms."""
        return cls(
            moments,
            top.value(moments),
            bottom.value(moments),
            top.gradient(moments),
            bottom.gradient(moments),
            (top.bent(top, moments), top.bent(bottom, moments), bottom.bent(bottom, moments)),
            np.ones(moments.groups, bool),
        )

    def held(self, least: Floats) -> Quotient:
        """The same with Y no less than this, and no divisor where it was less."""
        sure = self.sure & (self.bottom > least)
        return replace(self, bottom=np.maximum(self.bottom, least), sure=sure)

    @property
    def value(self) -> Floats:
        """X/Y; whatever it is where Y is not above 0."""
        return self.top / np.where(self.bottom > 0, self.bottom, 1.0)

    def error(self, theta: Floats) -> Floats:
        """The standard deviation of X/Y to second order, at θ; infinite where Y is not above 0."""
        noise = self.moments.error(self._weights(theta))
        total = np.sqrt(noise**2 + self._bent(theta))
        known = self.bottom > 0
        return np.where(known, total / np.where(known, self.bottom, 1.0), np.inf)

    def is_certain(self, miss: float) -> NDArray[np.bool_]:
        """Where Y is above 0, whatever the noise but for a chance of `miss`."""
        z = normal_quantile(miss)
        reach = np.sqrt(np.maximum(self.bottom**2 - z**2 * self.bent[2], 0.0))
        far = self.moments.exceeds(reach, self.bottom_slopes, miss, z)
        return far & (self.bottom > 0) & self.sure

    def interval(
        self, miss: float, lower: float, upper: float, allowance: Allowance | None = None
    ) -> tuple[Floats, Floats]:
        """Ends within [lower, upper], which may be infinite; all of it where Y may be 0."""
        z = normal_quantile(miss)

        def too_far(theta: Floats) -> NDArray[np.bool_]:
            allowed = z**2 * self._bent(theta)
            if allowance is not None:
                allowed = allowed + allowance(theta)
            beyond = np.sqrt(np.maximum((self.top - theta * self.bottom) ** 2 - allowed, 0.0))
            return self.moments.exceeds(beyond, self._weights(theta), miss, z)

        middle, limits, certain = self.value, np.array([[lower], [upper]]), self.is_certain(miss)
        ends = np.stack([np.minimum(middle, lower), np.maximum(middle, upper)])
        if np.isinf(limits).any():
            ends = np.where(np.isinf(limits), self._brackets(too_far, middle, certain), ends)
        unbounded = np.isinf(ends)
        found = last_inside(too_far, middle, np.where(unbounded, middle, ends))
        found = np.clip(np.where(unbounded | ~certain, limits, found), lower, upper)
        return found[0], found[1]

    def _brackets(self, too_far: TooFar, middle: Floats, certain: NDArray[np.bool_]) -> Floats:
        """Points on both sides of the middle that are too far, of shape (2, groups); or ∓∞.

        Where Y may be 0 there are none to be found.
        """
        step = np.where(np.isfinite(self.error(middle)), self.error(middle), 1.0)
        step = np.maximum(step, np.abs(middle) * 1e-12 + 1e-300)
        sides = np.array([[-1.0], [1.0]])
        ends = middle + sides * step
        for _ in range(DOUBLINGS):
            near = certain & ~too_far(ends)
            if not near.any():
                break
            step = step * 2
            ends = np.where(near, middle + sides * step, ends)
        return np.where(too_far(ends), ends, sides * np.inf)

    def _weights(self, theta: Floats) -> Floats:
        """What each table's noise is multiplied by in X − θ·Y, of shape (tables, *θ's)."""
        shape = (len(self.top_slopes), *[1] * (np.ndim(theta) - 1), -1)
        return self.top_slopes.reshape(shape) - theta * self.bottom_slopes.reshape(shape)

    def _bent(self, theta: Floats) -> Floats:
        """The variance of what is of second order in the noise of X − θ·Y."""
        own, both, bottom = self.bent
        return np.maximum(own - 2 * theta * both + theta**2 * bottom, 0.0)
