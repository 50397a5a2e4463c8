"""Running sums by a strategy that a few buffers can apply and undo.

The square root's coefficients f(k) are replaced by

    c(0) = 1,   c(k) = Σ_i ω_i·λ_i^k for k ≥ 1,

with a dozen terms: C·x is then known from as many numbers s_i ← λ_i·(s_i + x), and C⁻¹ from the
same (Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 call it a buffered linear Toeplitz
matrix). With d_j at least the length of column j of C, R = C·D⁻¹ and L = A·D·C⁻¹. As for the
square root, row t of L is Σ_{i<t} (d_i − d_{i+1})·H_i + d_t·H_t, with the rows H_i of H = A·C⁻¹.

λ and ω are multiples of 2^−48: the strategy is exactly what the integers say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.toeplitz_deviations import DEVIATION_ERROR, deviations

SCALE_BITS = 48
STEP = 2.0
"""Distance of the buffers' time constants, in ln: c is within 2 % of f."""

_RELATIVE_ERROR = 2.0**-36
"""More than the rounding of `lengths` for up to 2^22 cells."""

_PIECE = 1 << 12


@dataclass(frozen=True)
class BufferedRoot:
    """C for `size` cells: λ_i = decays[i]/2^48, ω_i = weights[i]/2^48."""

    size: int
    decays: tuple[int, ...]
    weights: tuple[int, ...]

    @cached_property
    def _rests(self) -> Floats:
        """1 − λ_i, exactly."""
        return np.array([math.ldexp((1 << SCALE_BITS) - x, -SCALE_BITS) for x in self.decays])

    @cached_property
    def _omegas(self) -> Floats:
        return np.array([math.ldexp(x, -SCALE_BITS) for x in self.weights])

    def coefficients(self) -> Floats:
        """c(0), …, c(n − 1)."""
        k = np.arange(self.size)
        c = np.zeros(self.size)
        for rest, omega in zip(self._rests, self._omegas, strict=True):
            c += omega * np.exp(np.log1p(-rest) * k)
        c[0] = 1.0
        return c

    def lengths(self, start: int, stop: int) -> Floats:
        """d_j ≥ ‖column j of C‖ for start ≤ j < stop, from geometric sums, rounded up.

        With r = λ_i·λ_j, r + r² + … + r^m = r·(1 − r^m)/(1 − r). For a_i = 1 − λ_i^m, 1 − r^m is
        a_i + a_j − a_i·a_j, which adds up over all i and j as a_i·(2 − a_j) does: no term is
        negative.
        """
        places = range(start, stop, _PIECE)
        return np.concatenate([self._lengths(place, min(place + _PIECE, stop)) for place in places])

    def _lengths(self, start: int, stop: int) -> Floats:
        number = (self.size - 1 - np.arange(start, stop)).astype(np.float64)
        fallen = -np.expm1(np.multiply.outer(np.log1p(-self._rests), number))
        rest, squares = 2 - fallen, np.ones(stop - start)
        for one, row in zip(fallen, self._overlaps, strict=True):
            # Not by a matrix product: a length has the same bits in every block.
            squares += one * np.einsum("j,jm->m", row, rest)
        return np.asarray(np.sqrt(squares) * (1 + _RELATIVE_ERROR))

    @cached_property
    def _overlaps(self) -> Floats:
        """ω_i·ω_j·r/(1 − r), r = λ_i·λ_j, of shape (buffers, buffers)."""
        rest = np.add.outer(self._rests, self._rests) - np.outer(self._rests, self._rests)
        return np.asarray(np.outer(self._omegas, self._omegas) * (1 - rest) / rest)

    @cached_property
    def standard_deviations(self) -> Floats:
        """The length of every row of L, rounded up; H is checked against C."""
        rates, weights = self._inverse()
        if not (weights > 0).all():
            raise ArithmeticError("the buffers do not give a monotone inverse")
        k = np.arange(self.size)
        h = np.zeros(self.size)
        for rate, weight in zip(rates, weights, strict=True):
            h += weight * np.exp(-rate * k)
        if np.abs(_product(h, self.coefficients()) - 1).max() > DEVIATION_ERROR / 8:
            raise ArithmeticError("the inverse of the buffers is not accurate enough")
        found = deviations(h, self.lengths(0, self.size), (rates, weights))
        return np.asarray(found * (1 + 2 * DEVIATION_ERROR))

    def _inverse(self) -> tuple[Floats, Floats]:
        """Rates and weights of h(k) = Σ w·exp(−rate·k), H(x) = 1/((1 − x)·C(x)).

        With ξ = 1 − 1/x, C vanishes at the roots ξ_i of 1 = Σ ω_j·λ_j/(ξ − δ_j), δ_j = 1 − λ_j: one
        above each δ_j, found relative to 1 where λ is close to it.
        """
        from scipy.optimize import brentq

        order = np.argsort(self._rests)
        rests, omegas = self._rests[order], self._omegas[order]
        pulls = omegas * (1 - rests)

        def secular(log_distance: float, base: int) -> float:
            distance = math.exp(log_distance)
            gaps = rests[base] - rests + distance
            return 1 - float(np.sum(pulls / gaps))

        roots = []
        for i in range(len(rests)):
            ceiling = rests[i + 1] - rests[i] if i + 1 < len(rests) else 2 * float(np.sum(pulls))
            high = math.log(ceiling) - (1e-12 if i + 1 < len(rests) else 0.0)
            found = brentq(secular, math.log(ceiling) - 60, high, (i,), xtol=1e-15, rtol=1e-15)
            roots.append(rests[i] + math.exp(found))
        xi = np.array(roots)
        # 1/C = Π(1 − λ_j·x)/Π(1 − μ_j·x), μ = 1 − ξ, split into partial fractions with 1/(1 − x).
        weights = [float(np.prod(rests / xi))]
        for i, root in enumerate(xi):
            others = np.delete(xi, i)
            ratio = float(np.prod((root - rests[np.arange(len(xi)) != i]) / (root - others)))
            weights.append(ratio * (root - rests[i]) / root)
        return np.append(0.0, -np.log1p(-xi)), np.array(weights)


def _product(first: Floats, second: Floats) -> Floats:
    length = 1 << (2 * len(first) - 1).bit_length()
    spectrum = np.fft.rfft(first, length) * np.fft.rfft(second, length)
    return np.asarray(np.fft.irfft(spectrum, length)[: len(first)])


@lru_cache(maxsize=4)
def buffered_root(size: int) -> BufferedRoot:
    """The strategy for so many cells: time constants from one cell to twenty times all of them.

    >>> len(buffered_root(1_000_000).decays)
    10
    """
    # The fastest forgets at the rate 1: then Σω < 1, and the inverse decays without changing sign.
    steps = math.ceil((math.log(size) + 3.0) / STEP)
    lowest = -STEP * steps
    rates = np.exp(lowest + STEP * np.arange(steps + 1))
    weights = STEP / math.pi * rates * np.exp(-rates / 2) / np.sqrt(-np.expm1(-rates))
    # What lies below the lowest rate is added there: over the horizon it hardly decays.
    shrink = math.exp(-STEP / 2)
    weights[0] += STEP / math.pi * math.exp(lowest / 2) * shrink / (1 - shrink)
    whole = 1 << SCALE_BITS
    decays = tuple(min(round(whole * math.exp(-rate)), whole - 1) for rate in rates)
    return BufferedRoot(size, decays, tuple(round(whole * weight) for weight in weights))
