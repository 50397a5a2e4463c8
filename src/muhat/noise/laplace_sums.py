"""How far sums Σ_j a_j·z_j of independent Laplace variables reach: proved upper bounds.

S = Σ_j a_j·z_j has the characteristic function φ(s) = Π_j 1/(1 + a_j²s²). For a period P the
numbers within t of a multiple of P have the Fourier series 2t/P + Σ_k 2·sin(2πkt/P)/(πk)·cos(…),
whose mean over S needs φ alone:

    P(|S| ≤ t) ≥ 2t/P + Σ_{k≥1} (2/πk)·sin(2πkt/P)·φ(2πk/P) − P(|S| ≥ P − t)

It is a convolution of all the variables at once. What is cut off, what lies beyond the period and
what floats may round are bounded and counted as misses, so a reach found here misses at most as
often as asked. Proof: docs/proofs/noise.md.

|a_j| rounded up makes |S| larger in distribution (S is a normal of the random variance
2·Σa_j²·E_j, E_j exponential), so coefficients are kept as steps of a geometric scale.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput

STEP = 1 + 1 / 64
"""Coefficients are rounded up by at most this factor, and the largest not at all."""

LAST_STEP = 1024
"""Coefficients below STEP^−1024, 1.3·10^−7 of the largest, count as that much."""

MOST_SHAPES = 1024
"""More kinds of sums than this are joined, neighbours with neighbours."""

CUT = 2.0**-12
"""The part of the misses that may be lost to what is cut off."""

MOST_TERMS = 1 << 20

MOST_FEW = 10
"""So many coefficients have a tail in closed form."""

Shape = tuple[tuple[int, int], ...]
"""(step, number) pairs: so many coefficients are STEP^−step of the largest. Steps ascend."""


class NoiseSums(Plain, ABC):
    """The noise on answers that have several variables each; `peaks` is of shape (m,)."""

    peaks: Floats

    @abstractmethod
    def reaches(self, miss: float) -> Floats:
        """What |S| exceeds with probability `miss` at most, of shape (m,)."""

    @property
    def have_laws(self) -> bool:
        """Whether the law of every sum is known, and not a bound on it alone."""
        return True


@dataclass(frozen=True, eq=False)
class LaplaceSums(NoiseSums):
    """Sums of independent Laplace variables of scale 1, one an answer.

    `peaks`, of shape (m,), are the largest coefficients, and `shapes[which[i]]` says how large
    the others of answer i are beside it.

    >>> sums = LaplaceSums.of_rows([np.array([[2.0, 0.0], [1.0, 1.0]])])
    >>> sums.reaches(0.05).round(3)
    array([5.991, 4.113])
    """

    peaks: Floats
    shapes: tuple[Shape, ...]
    which: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.peaks.ndim != 1 or not (self.peaks >= 0).all() or np.isinf(self.peaks).any():
            raise InvalidInput("the peaks of noise are finite numbers of at least 0.")
        places = self.which
        if places.shape != self.peaks.shape or not (places >= 0).all():
            raise InvalidInput("every sum of noise has a shape.")
        if places.max(initial=0) >= len(self.shapes) or not all(map(_is_shape, self.shapes)):
            raise InvalidInput("the shape of a sum lists its coefficients, the largest first.")

    @classmethod
    def of_rows(cls, blocks: Iterable[Floats]) -> LaplaceSums:
        """The sums whose coefficients are the rows of matrices of shape (some, r)."""
        peaks: list[float] = []
        found: list[Shape] = []
        for block in blocks:
            for row in np.abs(block):
                peaks.append(float(row.max(initial=0.0)))
                found.append(shape_of(row, np.ones(len(row), np.int64)))
        return cls.of_shapes(peaks, found)

    @classmethod
    def of_shapes(cls, peaks: Sequence[float], found: Sequence[Shape]) -> LaplaceSums:
        """The sums of these shapes; many kinds are joined into fewer that reach farther."""
        kinds = {shape: place for place, shape in enumerate(dict.fromkeys(found))}
        together = -(-len(kinds) // MOST_SHAPES)
        listed = list(kinds)
        shapes = [
            _farthest(listed[start : start + together])
            for start in range(0, len(listed), together or 1)
        ]
        which = np.array([kinds[shape] // max(together, 1) for shape in found], np.int64)
        return cls(np.array(peaks, np.float64), tuple(shapes), which)

    def reaches(self, miss: float) -> Floats:
        units = np.array([unit_reach(shape, miss) for shape in self.shapes])
        return np.asarray(self.peaks * units[self.which])


def shape_of(sizes: Floats, numbers: NDArray[np.int64]) -> Shape:
    """The shape of a sum with so many coefficients of each size; sizes are at least 0."""
    used = (sizes > 0) & (numbers > 0)
    if not used.any():
        return ((0, 1),)
    sizes, numbers = sizes[used], numbers[used]
    # A step too few is on the safe side of what logarithms err by: it makes them larger.
    steps = np.floor(np.log(sizes.max() / sizes) / math.log(STEP) - 1e-9)
    steps = np.clip(steps, 0, LAST_STEP).astype(np.int64)
    found, places = np.unique(steps, return_inverse=True)
    totals = np.zeros(len(found), np.int64)
    np.add.at(totals, places, numbers)
    return tuple(zip(found.tolist(), totals.tolist(), strict=True))


@functools.lru_cache(maxsize=4096)
def unit_reach(shape: Shape, miss: float) -> float:
    """t with P(|S| > t) ≤ miss for a largest coefficient of 1.

    >>> round(unit_reach(((0, 1),), 0.05), 4)
    2.9957
    """
    if not 0 < miss < 1:
        raise InvalidInput("the probability of a miss lies strictly between 0 and 1.")
    if shape == ((0, 1),):
        return -math.log(miss) * (1 + 1e-10)
    sizes = STEP ** -np.array([step for step, _ in shape], np.float64) * (1 + 1e-13)
    numbers = np.array([number for _, number in shape], np.float64)
    high = _chernoff(sizes, numbers, miss)
    # Noise this far beyond the period is counted as missed, and hardly ever seen.
    beyond = _chernoff(sizes, numbers, miss * CUT)
    period = high + beyond
    terms, cut = _terms(sizes, numbers, period, miss * CUT)
    k: Floats = np.arange(1.0, terms + 1.0)
    waves = 2 / (math.pi * k) * _characteristic(sizes, numbers, 2 * math.pi / period * k)
    lost = cut + miss * CUT + (len(shape) + 100) * 2.0**-46
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        turn = middle / period
        held = 2 * turn + float(np.sum(waves * np.sin(2 * math.pi * turn * k)))
        if 1 - held + lost <= miss:
            high = middle
        else:
            low = middle
    return high * (1 + 1e-10)


def few_tail(reach: Floats, sizes: Floats) -> Floats:
    """At least P(|Σ_j a_j·z_j| > reach), elementwise, for sizes |a_j| of shape (j, …).

    For different coefficients that is Σ_i e^{−t/a_i}·Π_{j≠i} a_i²/(a_i² − a_j²), by partial
    fractions of the characteristic function. They are rounded up until they differ by a few
    hundredths, and what floats may lose of the sum is added. Of many it is Chernoff's bound.

    >>> few_tail(np.array([3.0, 4.1]), np.array([[1.0, 1.0], [0.0, 1.0]])).round(3)
    array([0.05 , 0.052])
    """
    ordered = np.sort(np.abs(sizes), axis=0)
    used = ordered.reshape(len(ordered), -1).any(axis=1)
    ordered = ordered[used] if used.any() else ordered[-1:]
    peak = ordered[-1]
    # No farther than any float's tail.
    t = np.minimum(np.maximum(reach, 0.0) / np.where(peak > 0, peak, 1.0), 1e3)
    t = np.where(peak > 0, t, np.where(reach > 0, 1e3, 0.0))
    ordered = np.maximum(ordered / np.where(peak > 0, peak, 1.0), STEP**-LAST_STEP)
    if len(ordered) > MOST_FEW:
        return _exponential(t, ordered)
    found, lost = _partial_fractions(t, ordered, STEP if len(ordered) <= MOST_FEW // 2 else STEP**2)
    tail = np.clip(found + lost, 0.0, 1.0)
    # Far out, where nobody asks for more, what is lost may be all there is.
    if (blurred := (lost > found / 64) & (lost > 1e-12)).any():
        tail[blurred] = np.minimum(tail, _exponential(t, ordered))[blurred]
    return tail


def _partial_fractions(t: Floats, ordered: Floats, step: float) -> tuple[Floats, Floats]:
    """The tail of coefficients in ascending order, apart by `step`, and what floats may lose."""
    apart = ordered.copy()
    for place in range(1, len(apart)):
        apart[place] = np.maximum(apart[place], apart[place - 1] * step)
    found, lost = np.zeros_like(t), np.zeros_like(t)
    for place, size in enumerate(apart):
        others = np.delete(apart, place, axis=0)
        term = np.exp(-t / size) * (size**2 / (size**2 - others**2)).prod(axis=0)
        found, lost = found + term, lost + np.abs(term)
    # A difference of squares loses at most six bits, and there are at most nine in a product.
    return found, lost * 2.0**-43


def _exponential(t: Floats, sizes: Floats) -> Floats:
    """Chernoff: 2·exp(−λt)·Π 1/(1 − λ²a_j²) for the best λ of a few below 1."""
    rates: Floats = np.linspace(0.02, 0.98, 49).reshape(-1, *[1] * t.ndim)
    exponent = -rates * t
    for size in sizes:
        exponent = exponent - np.log1p(-((rates * size) ** 2))
    return np.asarray(np.minimum(2 * np.exp(exponent.min(axis=0)), 1.0))


def _characteristic(sizes: Floats, numbers: Floats, s: Floats) -> Floats:
    """Π_j 1/(1 + a_j²s²)."""
    logarithm = np.zeros_like(s)
    for size, number in zip(sizes, numbers, strict=True):
        logarithm -= number * np.log1p((size * s) ** 2)
    return np.exp(logarithm)


def _terms(sizes: Floats, numbers: Floats, period: float, most: float) -> tuple[int, float]:
    """K so that the terms beyond K add up to `most` at most, if it can be; and their bound.

    Every factor of φ falls in s, and that of the largest coefficient, 1, as 1/s²: for k > K
    φ(s_k) ≤ φ(s_K)·(1 + 1/s_K²)·(K/k)², and Σ_{k>K} (2/πk)·(K/k)² ≤ 1/π.
    """
    terms = 64
    while True:
        s = 2 * math.pi * terms / period
        first = float(_characteristic(sizes, numbers, np.array([s]))[0])
        cut = first * (1 + 1 / s**2) / math.pi * (1 + 1e-6)
        if cut <= most or terms >= MOST_TERMS:
            return terms, cut
        terms *= 2


def _chernoff(sizes: Floats, numbers: Floats, miss: float) -> float:
    """t with P(|S| > t) ≤ miss: 2·exp(−λt)·Π 1/(1 − λ²a_j²) for the best λ below 1."""
    rates = np.linspace(0.001, 0.999, 999)
    logarithm = np.zeros_like(rates)
    for size, number in zip(sizes, numbers, strict=True):
        logarithm -= number * np.log1p(-((size * rates) ** 2))
    return float(((math.log(2 / miss) + logarithm) / rates).min() * (1 + 1e-12))


def _farthest(shapes: Sequence[Shape]) -> Shape:
    """A shape that has as many coefficients above every step as any of these."""
    if len(shapes) == 1:
        return shapes[0]
    steps = sorted({step for shape in shapes for step, _ in shape})
    above = np.zeros(len(steps), np.int64)
    for shape in shapes:
        given = dict(shape)
        above = np.maximum(above, np.cumsum([given.get(step, 0) for step in steps]))
    numbers = np.diff(above, prepend=0)
    return tuple(
        (step, number) for step, number in zip(steps, numbers.tolist(), strict=True) if number
    )


def _is_shape(shape: Shape) -> bool:
    steps = [step for step, _ in shape]
    return (
        steps[:1] == [0]
        and steps == sorted(set(steps))
        and steps[-1] <= LAST_STEP
        and all(number > 0 for _, number in shape)
    )
