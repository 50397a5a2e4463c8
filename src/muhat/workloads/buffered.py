"""Running sums by a strategy that a few buffers can apply and undo.

The square root's coefficients f(k) are replaced by

    c(0) = 1,   c(k) = Σ_i ω_i·λ_i^k for k ≥ 1,

with a dozen terms: C·x is then known from as many numbers s_i ← λ_i·(s_i + x), and C⁻¹ from the
same (Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 call it a buffered linear Toeplitz
matrix). With d_j at least the length of column j of C, R = C·D⁻¹ and L = A·D·C⁻¹. As for the
square root, row t of L is Σ_{i<t} (d_i − d_{i+1})·H_i + d_t·H_t, with the rows H_i of H = A·C⁻¹.

λ and ω are multiples of 2^−48: the strategy is exactly what the integers say. H is as short an
exponential sum as C, h(0) = 1 and h(k) = Σ_i w_i·ρ_i^k for k ≥ 1; its multiples of 2^−128 are not
quite those of the inverse, and by how much is known in rationals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.workloads.toeplitz_deviations import DEVIATION_ERROR, deviations

SCALE_BITS = 48
INVERSE_BITS = 128
STEP = 2.0
"""Distance of the buffers' time constants, in ln: c is within 2 % of f."""

_RELATIVE_ERROR = 2.0**-36
"""More than the rounding of `lengths` for up to 2^22 cells."""

_FAR, _ALIKE = 1 << 12, 64
"""Columns so far from the end share the length of the first of 64."""

_PIECE = 1 << 12


class ExponentialSum(NamedTuple):
    """h(k) = Σ_i w_i·(1 − ξ_i)^k: ξ_i = rests[i]/2^128, w_i = weights[i]/2^128."""

    rests: tuple[int, ...]
    weights: tuple[int, ...]


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

        Far from the end a column is hardly longer than the next, and 64 of them are taken for as
        long as the first. With r = λ_i·λ_j, r + r² + … + r^m = r·(1 − r^m)/(1 − r). For
        a_i = 1 − λ_i^m, 1 − r^m is a_i + a_j − a_i·a_j, which adds up over all i and j as
        a_i·(2 − a_j) does: no term is negative.
        """
        number = self.size - 1 - np.arange(start, stop)
        number = np.where(number > _FAR, -(-number // _ALIKE) * _ALIKE, number)
        firsts = np.flatnonzero(np.diff(number, prepend=-1))
        pieces = range(0, len(firsts), _PIECE)
        found = [self._lengths(number[firsts[piece : piece + _PIECE]]) for piece in pieces]
        return np.repeat(np.concatenate(found), np.diff(firsts, append=len(number)))

    def _lengths(self, number: Integers) -> Floats:
        """Those of columns with so many entries below the diagonal."""
        fallen = -np.expm1(np.multiply.outer(np.log1p(-self._rests), number.astype(np.float64)))
        rest, squares = 2 - fallen, np.ones(len(number))
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
        """The length of every row of L, rounded up."""
        inverse = self.inverse
        rates = -np.log1p(-np.ldexp(np.array(inverse.rests, float), -INVERSE_BITS))
        weights = np.ldexp(np.array(inverse.weights, float), -INVERSE_BITS)
        k = np.arange(self.size)
        h = np.zeros(self.size)
        for rate, weight in zip(rates, weights, strict=True):
            h += weight * np.exp(-rate * k)
        found = deviations(h, self.lengths(0, self.size), (rates, weights))
        return np.asarray(found * (1 + 2 * DEVIATION_ERROR))

    @cached_property
    def inverse(self) -> ExponentialSum:
        """H = A·C⁻¹ for k ≥ 1, whose generating function is 1/((1 − x)·C(x)).

        With ξ = 1 − 1/x, C vanishes at the roots ξ_i of 1 = Σ_j p_j/(ξ − δ_j), p_j = ω_j·λ_j and
        δ_j = 1 − λ_j, one above each δ_j, and w_i = 1/(ξ_i·Σ_j p_j/(ξ_i − δ_j)²). The first rest is
        0: over the horizon its term stays.
        """
        one, whole = 1 << INVERSE_BITS, 1 << SCALE_BITS
        if sum(self.weights) >= whole:
            raise ArithmeticError("the buffers do not give a monotone inverse")
        shift = INVERSE_BITS - SCALE_BITS
        poles = sorted(
            ((whole - decay) << shift, (decay * weight) << (INVERSE_BITS - 2 * SCALE_BITS))
            for decay, weight in zip(self.decays, self.weights, strict=True)
        )
        rests = [0]
        for (low, _), high in zip(poles, [*(pole for pole, _ in poles[1:]), one], strict=True):
            while high - low > 1:
                middle = (low + high) // 2
                pulled = sum((pull << INVERSE_BITS) // (middle - pole) for pole, pull in poles)
                low, high = (middle, high) if pulled > one else (low, middle)
            rests.append(high)
        total = one + sum((pull << INVERSE_BITS) // pole for pole, pull in poles)
        weights = [one * one // total]
        for rest in rests[1:]:
            slope = sum(
                (pull << 2 * INVERSE_BITS) // ((rest - pole) * (rest - pole))
                for pole, pull in poles
            )
            weights.append((one << 2 * INVERSE_BITS) // (rest * slope))
        return ExponentialSum(tuple(rests), tuple(weights))

    @cached_property
    def discrepancy(self) -> Fraction:
        """At least |(H·C)(k) − 1| for every k ≥ 0, H as `inverse` has it, in rationals.

        (H·C)(k) = Σ_i w_i·ρ_i^k·(1 − Σ_j p_j/(ξ_i − δ_j)) + Σ_j ω_j·λ_j^k·(1 − Σ_i w_i·ρ_i/(δ_j −
        ξ_i)) for k ≥ 1, of which only 1 should be left, in the term that stays; and 1 for k = 0.
        """
        whole = 1 << SCALE_BITS
        decays = [Fraction(decay, whole) for decay in self.decays]
        omegas = [Fraction(weight, whole) for weight in self.weights]
        terms = [
            (1 - Fraction(rest, 1 << INVERSE_BITS), Fraction(weight, 1 << INVERSE_BITS))
            for rest, weight in zip(*self.inverse, strict=True)
        ]
        found = Fraction(0)
        for place, (rho, weight) in enumerate(terms):
            pulled = sum(w * x / (x - rho) for x, w in zip(decays, omegas, strict=True))
            found += abs(weight * (1 - pulled) - (place == 0))
        for decay, omega in zip(decays, omegas, strict=True):
            left = 1 - sum((w * rho / (rho - decay) for rho, w in terms), Fraction(0))
            found += omega * abs(left)
        return found


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
