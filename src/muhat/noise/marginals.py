"""One coordinate of noise by itself: what errors in every norm are computed from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from muhat._arrays import Floats

Curve = Callable[[Floats], Floats]


class Marginal(ABC):
    """A symmetric random number X of unit scale."""

    variance: ClassVar[float]

    @abstractmethod
    def tail(self, x: Floats) -> Floats:
        """P(|X| > x)."""

    def shortfall(self, p: float, reach: tuple[float, float], step: float) -> Curve:
        """y ↦ 1 − ψ(e^y), ψ(v) = E exp(−(|X|/v)^p), for y between the ends of `reach`.

        Small values have full relative precision; `step` is how finely p lets it bend.
        """
        if math.isinf(p):
            return lambda y: self.tail(np.exp(y))
        return self._shortfall(p, reach, step)

    def largest_square(self, count: int) -> float | None:
        """E max X² of so many independent numbers; None where that takes an integral."""
        return None

    @abstractmethod
    def _shortfall(self, p: float, reach: tuple[float, float], step: float) -> Curve:
        """`shortfall` for a finite p."""


class ForeseenMarginal(Marginal):
    """A law of which fixed draws can be made."""

    def fixed(self, rows: int, columns: int, start: int = 0) -> Floats:
        """Draws for predictions, never for noise: the same on every run, from row `start` on."""
        return self.of_uniforms(fixed_uniforms(rows, columns, start))

    @abstractmethod
    def of_uniforms(self, uniform: Floats) -> Floats:
        """What numbers within (0, 1) become, elementwise; uniform ones have the law."""


class SmoothMarginal(ForeseenMarginal):
    """A law with a density."""

    @abstractmethod
    def density(self, x: Floats) -> Floats:
        """The density of |X| at x ≥ 0."""

    def _shortfall(self, p: float, reach: tuple[float, float], step: float) -> Curve:
        """By quadrature: Σ_k mass_k·κ(x_k − y_j), κ(t) = 1 − exp(−e^{pt}), is one correlation."""
        from scipy.interpolate import make_interp_spline

        x = np.arange(-32.0, 7.0, step)
        y = np.arange(reach[0] - step, reach[1] + 2 * step, step)
        mass = self.density(np.exp(x)) * np.exp(x) * step
        differences = np.arange(len(x) + len(y) - 1) * step + (x[0] - y[-1])
        with np.errstate(over="ignore", under="ignore"):
            kernel = -np.expm1(-np.exp(p * differences))
        values = np.maximum(np.correlate(kernel, mass, mode="valid")[::-1], 1e-300)
        spline = make_interp_spline(y, np.log(values), k=7)
        return lambda at: np.asarray(np.exp(spline(at)), np.float64)


class NormalMarginal(SmoothMarginal):
    """A standard normal."""

    variance = 1.0

    def density(self, x: Floats) -> Floats:
        return np.asarray(math.sqrt(2 / math.pi) * np.exp(-x * x / 2), np.float64)

    def tail(self, x: Floats) -> Floats:
        from scipy.special import erfc

        return np.asarray(erfc(x / math.sqrt(2)), np.float64)

    def of_uniforms(self, uniform: Floats) -> Floats:
        from scipy.special import ndtri

        return np.asarray(ndtri(uniform), np.float64)


class LaplaceMarginal(SmoothMarginal):
    """A Laplace variable of scale 1."""

    variance = 2.0

    def density(self, x: Floats) -> Floats:
        return np.exp(-x)

    def tail(self, x: Floats) -> Floats:
        return np.exp(-x)

    def of_uniforms(self, uniform: Floats) -> Floats:
        return np.asarray(np.sign(uniform - 0.5) * -np.log(2 * np.minimum(uniform, 1 - uniform)))


class UniformMarginal(Marginal):
    """Uniform on [−1, 1]."""

    variance = 1 / 3

    def tail(self, x: Floats) -> Floats:
        return np.maximum(1 - x, 0.0)

    def _shortfall(self, p: float, reach: tuple[float, float], step: float) -> Curve:
        """1 − ∫₀¹ exp(−(x/v)^p) dx at v = e^y: an incomplete gamma function, or its series."""
        from scipy.special import gammainc

        def at(y: Floats) -> Floats:
            a = np.exp(np.minimum(-p * y, 600.0))
            b = np.minimum(a, 1e-4)
            series = b / (p + 1) - b**2 / (2 * (2 * p + 1)) + b**3 / (6 * (3 * p + 1))
            closed = 1 - np.exp(y) * math.gamma(1 + 1 / p) * gammainc(1 / p, a)
            return np.where(a < 1e-4, series, closed)

        return at


NORMAL, LAPLACE, UNIFORM = NormalMarginal(), LaplaceMarginal(), UniformMarginal()


def fixed_uniforms(rows: int, columns: int, start: int) -> Floats:
    """SplitMix64 of a counter, of shape (rows, columns), from row `start` on; within (0, 1)."""
    index = np.arange(start * columns, (start + rows) * columns, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    uniform = ((z >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniform.reshape(rows, columns)
