"""The integers of a box: a grid of its own for every coordinate; squares and counts beside."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from muhat import _check
from muhat._integers import norm_up, power_of_two, round_half_even
from muhat._plain import Key
from muhat.domains.box_kernel import BITS, BoxKernel, Coordinate
from muhat.domains.integers import Lattice, SumLattice
from muhat.errors import InvalidInput

SMALLEST_EXPONENT = -1125
LARGEST_CENTER = 1 << 1000

Number = float | Fraction


@dataclass(frozen=True)
class BoxLattice(
    SumLattice, keys=("exponents", "center_units", "lower", "upper", Key("absent", optional=True))
):
    """Integers q with lower ≤ q ≤ upper that stand for the points center + q·2^exponents.

    Every coordinate has its own grid 2^exponent, fine enough that the farther end is between
    2^44 and 2^45 steps away from the centre, and a centre that is a whole multiple of the grid
    (`center_units`), so integers and short binary fractions are kept without any error. A
    coordinate of zero width has lower = upper = 0. `absent` is what a missing value becomes,
    within ±2^45 but not necessarily between the ends; left out it is 0, the centre.

    >>> lattice = BoxLattice.around([0.0], [1.0])
    >>> lattice.exponents, lattice.center, lattice.upper == (2**45,)
    ((-46,), (0.5,), True)
    """

    kind = "box"
    exponents: tuple[int, ...]
    center_units: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    absent: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        absents = self.absent or (0,) * self.dim
        parts = (self.exponents, self.center_units, self.lower, self.upper, absents)
        lengths = {len(part) for part in parts}
        if lengths == {0} or len(lengths) != 1:
            raise InvalidInput("a box lattice needs one exponent, centre and range a coordinate.")
        for low, high, absent in zip(self.lower, self.upper, absents, strict=True):
            inside = self.absent is not None or low <= 0 <= high
            if not -(1 << BITS) <= low <= high <= 1 << BITS or not inside:
                raise InvalidInput(
                    "lattice bounds must satisfy -2^45 <= lower <= 0 <= upper <= 2^45."
                )
            if abs(absent) > 1 << BITS:
                raise InvalidInput("what a missing value becomes must lie within ±2^45.")

    @classmethod
    def around(
        cls,
        lower: Iterable[Number],
        upper: Iterable[Number],
        origin: Iterable[Number] | None = None,
    ) -> BoxLattice:
        """The lattice of the box [lower, upper], centred on `origin` (default: the midpoint).

        Bounds are floats, integers of any size or fractions, one a coordinate; bounds that
        are not on the grid are rounded to it, half to even. The centre is the origin rounded
        to a float on the grid. Refused: bounds that are reversed or not finite, beyond the
        range of floats, closer together than 2^-1081, or closer than 2^-955 of their size.
        """
        lows = [_exact("lower", value) for value in lower]
        highs = [_exact("upper", value) for value in upper]
        if not lows or len(lows) != len(highs):
            raise InvalidInput("lower and upper must have one number a coordinate, at least one.")
        if origin is None:
            origins = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
        else:
            origins = [_exact("origin", value) for value in origin]
            if len(origins) != len(lows):
                raise InvalidInput(
                    "must have as many coordinates as the bounds", parameter="origin"
                )
        parts = [_coordinate(*ends) for ends in zip(lows, highs, origins, strict=True)]
        exponents, centers, lower_units, upper_units = zip(*parts, strict=True)
        return cls(exponents, centers, lower_units, upper_units)

    @classmethod
    def with_zero(cls, lower: Iterable[Number], upper: Iterable[Number]) -> BoxLattice:
        """The lattice of records clipped to [lower, upper] of which a missing value counts as 0.

        The centre is the middle of the interval that holds both, so that neither is far from it.

        >>> lattice = BoxLattice.with_zero([1.0], [2.0])
        >>> lattice.center, lattice.lower, lattice.absent == (-(2**45),)
        ((1.0,), (0,), True)
        """
        lows = [_exact("lower", value) for value in lower]
        highs = [_exact("upper", value) for value in upper]
        both = cls.around(
            [min(low, Fraction(0)) for low in lows], [max(x, Fraction(0)) for x in highs]
        )
        places = list(zip(both.exponents, both.center_units, strict=True))

        def steps(ends: list[Fraction]) -> tuple[int, ...]:
            return tuple(_steps(end, e) - c for end, (e, c) in zip(ends, places, strict=True))

        return cls(
            both.exponents,
            both.center_units,
            tuple(map(max, steps(lows), both.lower)),
            tuple(map(min, steps(highs), both.upper)),
            tuple(-center for center in both.center_units),
        )

    @property
    def dim(self) -> int:
        return len(self.exponents)

    @property
    def record_dim(self) -> int:
        return self.dim

    @property
    def plain_box(self) -> BoxLattice:
        return self

    @property
    def grid(self) -> tuple[Fraction, ...]:
        """The step 2^exponent of every coordinate."""
        return tuple(power_of_two(exponent) for exponent in self.exponents)

    @property
    def center(self) -> tuple[float, ...]:
        """The point that q = 0 stands for; exact, but for a constant integer beyond 2^53."""
        return tuple(
            float(units * power_of_two(exponent))
            for units, exponent in zip(self.center_units, self.exponents, strict=True)
        )

    @cached_property
    def extent(self) -> tuple[int, ...]:
        """How far one record can move a coordinate, in steps: upper − lower if none is absent."""
        absent = self.absent or self.lower
        ends = zip(self.lower, self.upper, absent, strict=True)
        return tuple(max(high, place) - min(low, place) for low, high, place in ends)

    @cached_property
    def reach(self) -> tuple[int, ...]:
        """The largest integer of every coordinate, in size."""
        absent = self.absent or self.lower
        ends = zip(self.lower, self.upper, absent, strict=True)
        return tuple(max(-low, high, abs(place)) for low, high, place in ends)

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return self.grid

    def row_multipliers(self, multipliers: Sequence[int], from_zero: bool) -> tuple[int, ...]:
        return tuple(multipliers)

    def row_steps(self, from_zero: bool) -> list[Fraction]:
        return list(self.grid)

    def measured(self, totals: Sequence[int], count: int, from_zero: bool) -> Sequence[int]:
        if not from_zero:
            return totals
        return [total + count * c for total, c in zip(totals, self.center_units, strict=True)]

    def largest(self, multipliers: Sequence[int]) -> int:
        ends = zip(multipliers, self.lower, self.upper, strict=True)
        return max(b * max(-low, high) for b, low, high in ends)

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        extents: Sequence[int] = self.extent
        if not replaced:
            origins = self.center_units if from_zero else (0,) * self.dim
            ends = zip(self.lower, self.upper, origins, strict=True)
            extents = [max(abs(low + start), abs(high + start)) for low, high, start in ends]
        return norm_up([b * e for b, e in zip(multipliers, extents, strict=True)], norm)

    def coordinates(self) -> list[Coordinate]:
        """What the kernel needs of every coordinate."""
        absent = self.absent or (0,) * self.dim
        parts = (self.exponents, self.center_units, self.lower, self.upper, absent)
        return [Coordinate(*place) for place in zip(*parts, strict=True)]

    def kernel(self) -> BoxKernel:
        return BoxKernel(self.coordinates())


@dataclass(frozen=True)
class ColumnsLattice(Lattice):
    """Σ q of every column; with `squares` Σ s, with `counts` the number of recorded values too.

    s is the integer nearest to q²/2^45, up to one rounding of q² to a float. A missing value adds
    nothing to any of them, or, if the box says where (`absent`), that integer and its square.

    >>> ColumnsLattice(BoxLattice.around([0, 0], [1, 2]), squares=True, counts=True).dim
    6
    """

    kind = "columns"
    by_column = True
    box: BoxLattice
    squares: bool = False
    counts: bool = False

    @property
    def dim(self) -> int:
        # First the sums of the values, then of the squares, then the counts.
        return self.box.dim * (1 + self.squares + self.counts)

    @property
    def record_dim(self) -> int:
        return self.box.dim

    @property
    def width(self) -> int:
        return self.box.dim

    @property
    def plain_box(self) -> BoxLattice:
        return self.box

    def kernel(self) -> BoxKernel:
        return BoxKernel(self.box.coordinates(), squares=self.squares, counts=self.counts)


@lru_cache(maxsize=4096)
def _coordinate(low: Fraction, high: Fraction, origin: Fraction) -> tuple[int, int, int, int]:
    """Exponent, centre, lower and upper of one coordinate, in steps."""
    if not low <= high:
        raise InvalidInput("must not exceed upper in any coordinate", parameter="lower")
    if not low <= origin <= high:
        raise InvalidInput(
            "must lie between lower and upper in every coordinate", parameter="origin"
        )
    if low == high:
        return _constant(low)
    exponent = _bit_length(max(high - origin, origin - low)) - BITS
    while True:
        if exponent < SMALLEST_EXPONENT:
            raise InvalidInput("lower and upper are too close together: less than 2^-1081 apart.")
        center = _on_grid(origin, exponent)
        if abs(center) > LARGEST_CENTER:
            raise InvalidInput("lower and upper are too close together for their size.")
        lower = min(_steps(low, exponent) - center, 0)
        upper = max(_steps(high, exponent) - center, 0)
        if max(-lower, upper) <= 1 << BITS:
            return exponent, center, lower, upper
        # Rounding a large origin to a float can push an end beyond 2^45: a coarser grid fits.
        exponent += 1


def _constant(value: Fraction) -> tuple[int, int, int, int]:
    """A coordinate of zero width: exact for integers and floats, else the nearest float."""
    if value.denominator & (value.denominator - 1):
        value = Fraction(float(value))
    exponent = 1 - value.denominator.bit_length()
    return exponent, value.numerator, 0, 0


def _on_grid(origin: Fraction, exponent: int) -> int:
    """The origin in steps, rounded to the grid and, where floats are coarser, to a float."""
    units = _steps(origin, exponent)
    excess = max(units.bit_length() - 53, -1074 - exponent)
    if excess > 0:
        units = round_half_even(units, 1 << excess) << excess
    if units.bit_length() + exponent > 1024:
        # Next to the largest float the grid goes on where floats end.
        units -= (1 if units > 0 else -1) << max(excess, 0)
    return units


def _steps(value: Fraction, exponent: int) -> int:
    scaled = value / power_of_two(exponent)
    return round_half_even(scaled.numerator, scaled.denominator)


def _bit_length(size: Fraction) -> int:
    """The smallest b with size ≤ 2^b, for a size above zero."""
    bits = size.numerator.bit_length() - size.denominator.bit_length() + 1
    while size <= power_of_two(bits - 1):
        bits -= 1
    return bits


def _exact(name: str, value: object) -> Fraction:
    """A public bound as the exact rational it is."""
    if isinstance(value, numbers.Integral):
        exact = Fraction(operator.index(value))
    elif isinstance(value, Fraction):
        exact = value
    else:
        exact = Fraction(_check.real(name, value))
    try:
        float(exact)
    except OverflowError:
        raise InvalidInput(
            "must lie within the range of floats, about ±1.8e308", parameter=name
        ) from None
    return exact
