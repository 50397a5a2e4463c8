"""Noise vectors with density ∝ exp(−‖z‖), rounded to multiples of 2^−54, exactly distributed.

And vectors that are uniform in a ball or a cube, rounded to whole numbers. A vector is a product
of real numbers that are known only as far as they are drawn: each is an integer floor(2^b·t), and
drawing 64 more bits is appending a random word. The products are enclosed between integers; if
that leaves the rounding of a coordinate open, every factor gets 64 more bits, of the same sample,
and the enclosure is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isqrt

import numpy as np

from muhat import _check
from muhat.noise.density import FRACTION_BITS, LAPLACE, NORMAL, Density
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.integers import Integers, as_integers
from muhat.noise.strips import draw


def rounded_euclidean(dim: int) -> Integers:
    """round(2^54·z) coordinatewise, of shape (dim,), z with density ∝ exp(−‖z‖₂).

    z = ‖g'‖·g for independent standard normal g' ∈ R^{dim+1} and g ∈ R^dim: the direction is
    uniform, and ‖g'‖·‖g‖ has the law Gamma(dim) by the duplication formula.

    >>> from muhat.noise import rounded_euclidean
    >>> rounded_euclidean(4).shape
    (4,)
    """
    return euclidean(_check.count("dim", dim), system_words)


def rounded_maximum(dim: int) -> Integers:
    """round(2^54·z) coordinatewise, of shape (dim,), z with density ∝ exp(−‖z‖_∞).

    z = G·U with G ~ Gamma(dim + 1), a sum of dim + 1 exponentials, and U uniform on
    [−1, 1]^dim. Above dim = 500 or so a coordinate may pass 512 = 2^(63−54), and the array
    then holds Python integers.

    >>> from muhat.noise import rounded_maximum
    >>> rounded_maximum(4).shape
    (4,)
    """
    return maximum(_check.count("dim", dim), system_words)


@dataclass
class RealNumbers:
    """Real numbers known to so many fractional bits: floor(2^bits·t) for each.

    `waiting` has, by index, words that are already drawn and continue that number.
    """

    floors: list[int]
    bits: int
    waiting: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def from_density(cls, density: Density, size: int, words: Words) -> RealNumbers:
        """Independent samples of a density."""
        sample = draw(density, size, words)
        floors = sample.floors.tolist()
        waiting = {}
        for index, settled in sample.settled.items():
            floors[index] = settled.floor
            waiting[index] = list(settled.next_words)
        return cls(floors, FRACTION_BITS + 1, waiting)

    @classmethod
    def uniform(cls, size: int, words: Words) -> RealNumbers:
        """Independent uniform numbers in [−1, 1)."""
        return cls(words(size).view(np.int64).tolist(), WORD_BITS - 1)

    def refine(self, words: Words) -> None:
        """Draws 64 more bits of every number."""
        more = words(len(self.floors)).tolist()
        for index, queue in self.waiting.items():
            if queue:
                more[index] = queue.pop(0)
        self.floors = [
            floor << WORD_BITS | word for floor, word in zip(self.floors, more, strict=True)
        ]
        self.bits += WORD_BITS

    def magnitudes(self) -> list[int]:
        """floor(2^bits·|t|) for each: from t ∈ [a, a + 1] below zero, −(a + 1) = ~a."""
        return [max(floor, ~floor) for floor in self.floors]


def euclidean(dim: int, words: Words) -> Integers:
    """`rounded_euclidean` from a given source of words."""
    radial = RealNumbers.from_density(NORMAL, dim + 1, words)
    return _scaled(radial, _norm, RealNumbers.from_density(NORMAL, dim, words), words)


def maximum(dim: int, words: Words) -> Integers:
    """`rounded_maximum` from a given source of words."""
    radial = RealNumbers.from_density(LAPLACE, dim + 1, words)
    return _scaled(radial, _sum, RealNumbers.uniform(dim, words), words)


def in_ball(dim: int, radius: int, words: Words) -> Integers:
    """round(radius·u) coordinatewise, u uniform in the unit ball of R^dim.

    u is what a uniform point of the sphere in R^{dim+2} has in its first coordinates
    (Archimedes): g/‖(g, g')‖ with dim + 2 standard normals.
    """
    normals = RealNumbers.from_density(NORMAL, dim + 2, words)
    while True:
        normals.refine(words)
        lower, upper = _norm(normals.magnitudes())
        floors = normals.floors[:dim]
        # Where nothing is known of the length yet, no rounding is either.
        near = max(lower, 1)
        least = [_quotient(radius * v, upper if v >= 0 else near) for v in floors]
        most = [_quotient(radius * (v + 1), near if v >= 0 else upper) for v in floors]
        if lower and least == most:
            return as_integers(least)


def in_cube(dim: int, radius: int, words: Words) -> Integers:
    """round(radius·u) coordinatewise, u uniform in [−1, 1]^dim."""
    direction = RealNumbers.uniform(dim, words)
    while True:
        direction.refine(words)
        least = [_round(v * radius, direction.bits) for v in direction.floors]
        most = [_round((v + 1) * radius, direction.bits) for v in direction.floors]
        if least == most:
            return as_integers(least)


def _norm(least: Sequence[int]) -> tuple[int, int]:
    """Encloses the Euclidean norm of a vector whose absolute values are in [a, a + 1]."""
    lower = isqrt(sum(a * a for a in least))
    upper = isqrt(sum((a + 1) ** 2 for a in least)) + 1
    return lower, upper


def _sum(least: Sequence[int]) -> tuple[int, int]:
    """Encloses the sum of the absolute values of such a vector."""
    lower = sum(least)
    return lower, lower + len(least)


def _scaled(
    radial: RealNumbers,
    radius: Callable[[Sequence[int]], tuple[int, int]],
    direction: RealNumbers,
    words: Words,
) -> Integers:
    """round(2^54·r·v) for the radius r of one vector and each coordinate v of the other."""
    while True:
        radial.refine(words)
        direction.refine(words)
        lower, upper = radius(radial.magnitudes())
        shift = radial.bits + direction.bits - FRACTION_BITS
        least = [_round(v * (lower if v >= 0 else upper), shift) for v in direction.floors]
        most = [_round((v + 1) * (upper if v >= 0 else lower), shift) for v in direction.floors]
        if least == most:
            return as_integers(least)


def _round(numerator: int, shift: int) -> int:
    """The integer nearest to numerator/2^shift."""
    return (numerator + (1 << (shift - 1))) >> shift


def _quotient(numerator: int, denominator: int) -> int:
    """The integer nearest to numerator/denominator, for a positive denominator."""
    return (2 * numerator + denominator) // (2 * denominator)
