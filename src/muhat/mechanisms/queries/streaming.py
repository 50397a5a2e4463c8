"""Running sums with the noise of the square-root factorisation, in integers.

Terms are integers q_t with |q_t| ≤ Q, in units of h = 2^e. With the matrices of
`workloads.toeplitz` and integers D_j ≥ (c·Q/(μ·ω))·‖column j of F‖, the real vector

    y = F·D⁻¹·q + z,   z standard normal,

is the Gaussian mechanism: one of c terms moves it by at most Q·‖column j of F‖/D_j ≤ μ·ω/c. What
is released is round(A·D·F⁻¹·y) = A·q + round(A·D·F⁻¹·z), a fixed function of y because A·q is an
integer vector; so it is μ·ω-GDP, exactly. Sums of d coordinates share the promise: Σ_j ω_j² ≤ 1.
All matrices are lower triangular, so later terms may be chosen in view of earlier answers.
docs/proofs/streams.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.mechanisms.arithmetic.certified_rounding import rounded_noise
from muhat.mechanisms.queries.event_weights import Weights
from muhat.mechanisms.queries.linear_query import LinearQuery
from muhat.noise import FRACTION_BITS
from muhat.noise.entropy import Words, system_words
from muhat.noise.kinds import NoiseKind
from muhat.noise.normal import absolute_moment
from muhat.privacy import Neighbors, Privacy, gaussian_mu_squared
from muhat.workloads.toeplitz import LARGEST_SIZE, answer_deviations, column_lengths, square_root
from muhat.workloads.toeplitz_floor import prefix_floor

NOISE_BITS = 36
"""The noise on one term is between 2^36 and 2^37 units: n terms are rounded by n·2^−37 of it."""

TERM_BITS = 40
"""A term is at most 2^40 units, so that 2^22 of them fit into 64 bits."""

_LEAST_NOISE_BITS = 10


@dataclass(frozen=True, eq=False)
class RunningNoise(
    Plain,
    keys=(
        "mechanism",
        "size",
        "exponents",
        Key("reaches", text=True),
        "shares",
        "strength_squared",
        "contributions",
        "apart",
    ),
):
    """The noise of n running sums of d coordinates.

    `exponents` are those of the units h_j = 2^e_j, `reaches` the most that a term can be in
    units, `shares` the squares ω_j² of the parts of the promise that the coordinates get. The
    events of a person are at least `apart` steps apart.
    """

    mechanism: ClassVar[str] = "square-root-prefix"
    kind: ClassVar[NoiseKind] = NoiseKind.NORMAL
    name: ClassVar[str] = "square-root factorisation"
    size: int
    exponents: tuple[int, ...]
    reaches: tuple[int, ...]
    shares: tuple[Fraction, ...]
    strength_squared: Fraction
    contributions: int
    apart: int = 1

    def __post_init__(self) -> None:
        _check.count("size", self.size, most=LARGEST_SIZE)
        _check.count("contributions", self.contributions)
        _check.count("apart", self.apart)
        if sum(self.shares) > 1:
            raise AssertionError("the coordinates share more than the whole promise")

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.exponents)

    @property
    def events(self) -> Weights:
        """What events count in the sums after them."""
        return Weights()

    def floor(self, p: float) -> float:
        """What ‖√variances‖_p cannot be below, with unit sensitivity."""
        return prefix_floor(self.size, p)

    def made_for(self, promise: Privacy) -> bool:
        """Whether it is as strong as the promise allows."""
        return promise.admits_normal and self.strength_squared == gaussian_mu_squared(promise)

    @cached_property
    def together(self) -> float | None:
        """‖F_0 + F_b + … + F_(k−1)b‖, rounded up: how far k events move F·q at most.

        None where c times the longest column of F·D⁻¹, each of its own length, is less.
        """
        if min(self.contributions, self.apart) == 1:
            return None
        moved = moved_together(self.size, self.contributions, self.apart)
        lengths = column_lengths(self.size)[::-1]
        apiece = self.contributions * float(np.linalg.norm(answer_deviations(self.size)))
        return moved if moved * float(np.linalg.norm(lengths)) < apiece else None

    def factor(self, coordinate: int) -> float:
        """c·Q/(μ·ω), rounded up: the noise on one term alone, in units."""
        square = Fraction(self.contributions * self.reaches[coordinate]) ** 2
        square /= self.strength_squared * self.shares[coordinate]
        return math.sqrt(float(square) * (1 + 2.0**-50)) * (1 + 2.0**-50)

    def weights(self, coordinate: int) -> Integers:
        """The integers D of one coordinate, of shape (n,)."""
        scale = self.factor(coordinate) * (1 + 2.0**-50)
        if self.together is not None:
            scale *= self.together / self.contributions * (1 + 2.0**-50)
            return np.full(self.size, math.ceil(scale), np.int64)
        return np.ceil(scale * column_lengths(self.size)).astype(np.int64)

    def draw(self, source: Words = system_words) -> Integers:
        """The noise on every sum in units, exactly rounded, of shape (n, d)."""
        return self.rounded(source)

    def rounded(self, source: Words) -> Integers:
        """The same, of one factorisation or another."""
        return rounded_noise([self.weights(j) for j in range(self.dim)], source)

    def moment(self, order: float) -> float:
        """(E|x|^q)^{1/q} of the noise x of every answer, in its deviations."""
        return absolute_moment(order)

    @cached_property
    def standard_deviations(self) -> Floats:
        """Of the noise on every sum, of shape (n, d), at most 10^−6 of it too large."""
        scales = [math.ldexp(self.factor(j), e) for j, e in enumerate(self.exponents)]
        # A weight is rounded up by at most one unit in 2^10.
        spread = 1 + max(1 / self.factor(j) for j in range(self.dim))
        rows = answer_deviations(self.size)
        if self.together is not None:
            rows = column_lengths(self.size)[::-1] * (self.together / self.contributions)
        return np.multiply.outer(rows, np.array(scales) * spread)


def moved_together(size: int, contributions: int, apart: int) -> float:
    """‖F_0 + F_b + …‖ for up to k columns of F, b apart; rounded up as lengths of columns are."""
    moved, part = np.zeros(size), square_root(size)
    # f(t) + f(t − b) + … of 1, 2, 4, … terms; nothing is subtracted.
    taken, count = 0, 1
    while taken < contributions and taken * apart < size:
        if contributions & count:
            moved[taken * apart :] += part[: size - taken * apart]
            taken += count
        longer = part.copy()
        longer[min(count * apart, size) :] += part[: max(size - count * apart, 0)]
        part, count = longer, 2 * count
    return float(np.linalg.norm(moved)) * (1 + (8 * size + 64) * 2.0**-53)


def shares_of(reaches: Sequence[float], p: float) -> tuple[Fraction, ...]:
    """ω_j² ∝ r_j^{2p/(p+2)}: the smallest ellipsoid around the box of half-widths r in ℓ_p.

    The noise then has the variances M_jj = r_j²/ω_j² ∝ r_j^{4/(p+2)}; at p = 2, ∝ r_j.
    """
    power = 2.0 if math.isinf(p) else 2 * p / (p + 2)
    largest = max(reaches)
    parts = [max((reach / largest) ** power, 2.0**-60) for reach in reaches]
    if len(parts) == 1:
        return (Fraction(1),)
    total = sum(map(Fraction, parts))
    return tuple(
        Fraction(math.floor(Fraction(part) / total * (1 << 80)), 1 << 80) for part in parts
    )


def unit_exponent(
    reach: Fraction,
    share: Fraction,
    strength_squared: Fraction,
    contributions: int,
    bits: int = NOISE_BITS,
) -> int:
    """The exponent of the unit h: noise of 2^36 units, or terms of 2^40 if that is coarser."""
    square = (contributions * reach) ** 2 / (strength_squared * share)
    noise = math.floor(_log2(square) / 2) - bits
    term = math.ceil(_log2(reach)) - TERM_BITS
    if term - noise > bits - _LEAST_NOISE_BITS:
        raise InvalidInput(
            "the promise is too weak for exact arithmetic: the noise would be less than 10^-9 of "
            "one term. Choose a smaller epsilon, rho or mu."
        )
    return max(noise, term)


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)


@dataclass(frozen=True, eq=False)
class PrefixQuery(LinearQuery):
    """All running sums of a histogram of n cells at once.

    `strength_squared` is μ² for one of `contributions` records of a person added or removed. The
    answers come out multiplied by `factor`, as everything that follows the noise.

    >>> query = PrefixQuery(1000, strength_squared=Fraction(1, 5))
    >>> query.answers(np.ones(1000, int)).shape
    (1000,)
    """

    size: int
    strength_squared: Fraction
    contributions: int = 1
    factor: float = 1.0

    @property
    def rows(self) -> int:
        """How many numbers are released: one a cell."""
        return self.size

    def __post_init__(self) -> None:
        _check.count("cells", self.size, most=LARGEST_SIZE)
        if self.noise.factor(0) > 2.0**37:
            raise InvalidInput(
                "the promise is too strong for exact arithmetic: the noise on one count would be "
                "more than 10^11. Choose a larger epsilon, rho or mu."
            )

    @classmethod
    def fit(
        cls,
        size: int,
        *,
        strength_squared: Fraction,
        neighbors: Neighbors,
        contributions: int,
        factor: float = 1.0,
    ) -> PrefixQuery:
        """The query for a promise; a record that is replaced moves two columns, √2 as far."""
        if neighbors is Neighbors.SUBSTITUTE:
            strength_squared *= Fraction((1 << 60) - 1, 1 << 61)
        return cls(size, strength_squared, contributions, factor)

    @cached_property
    def noise(self) -> RunningNoise:
        """The noise; the unit is a power of two of at most 1, so that counts are whole."""
        one = Fraction(1)
        exponent = unit_exponent(one, one, self.strength_squared, self.contributions)
        exponent = min(exponent, 0)
        reach = 1 << -exponent
        return RunningNoise(
            self.size, (exponent,), (reach,), (one,), self.strength_squared, self.contributions
        )

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The table of counts that is read: that of all cells."""
        return ((0,),)

    @cached_property
    def scales(self) -> Floats:
        """The standard deviation of the noise on every answer, of shape (n,)."""
        return self.noise.standard_deviations[:, 0] * abs(self.factor)

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """How far neighbours' y = F·D⁻¹·q lie apart at most, in units of 2^−54.

        Columns of F have no negative entries: two of them are at most √2 of the longest apart.
        """
        if norm != 2:
            raise InvalidInput("running sums have normal noise alone.")
        longest = column_lengths(self.size) / self.noise.weights(0) * (1 + 2.0**-52)
        moved = Fraction(float(longest.max())) * self.noise.reaches[0] * contributions
        if neighbors is Neighbors.SUBSTITUTE:
            moved *= Fraction(math.isqrt(2 << 120) + 1, 1 << 60)
        return moved * (1 << FRACTION_BITS)

    def answers(self, counts: ArrayLike, source: Words = system_words) -> Floats:
        """factor·(x₀ + … + x_t + noise), for t < n, from whole numbers x of shape (n,)."""
        exponent = self.noise.exponents[0]
        sums = _running(np.asarray(counts), self.size, -exponent)
        noisy = (sums + self.noise.draw(source)[:, 0]).astype(np.float64)
        return np.asarray(np.ldexp(noisy, exponent) * self.factor)

    def release(
        self,
        margins: Mapping[tuple[int, ...], Integers],
        sample: Callable[[int], NDArray[Any]],
        total: int | None,
    ) -> Floats:
        """The noisy answers; the noise is drawn here, with as many bits as rounding it takes."""
        return self.answers(margins[self.sets[0]])


def _running(counts: NDArray[Any], size: int, shift: int) -> NDArray[Any]:
    """2^shift·(running sums), as int64 where that suffices and as Python integers else."""
    if counts.shape != (size,) or counts.dtype.kind not in "iuO":
        raise InvalidInput(f"the counts must be {size} whole numbers, one a cell.")
    exact = counts.astype(object)
    if sum(map(abs, exact.tolist())) < 1 << (62 - shift):
        return np.cumsum(counts.astype(np.int64)) << np.int64(shift)
    return np.cumsum(exact) * (1 << shift)
