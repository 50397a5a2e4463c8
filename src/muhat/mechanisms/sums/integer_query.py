"""The integer answer to which noise is added, and its exact sensitivity.

A release sums the records' integers into S, and maps them by a fixed-point matrix B with t
fractional bits: v = (B·S + 2^(t−1)) >> t. B is diagonal here: a multiplier a coordinate (box),
or one for all coordinates (balls, images, shares, even moments). Everything is a Python integer;
floats only choose the proportions of B.

Sensitivity: rounding moves each of the r rows of v by less than ½ on either side, so two
neighbours differ by at most ‖B·(S − S')‖/2^t + ‖(1, …, 1)‖ in any norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from muhat.domains.lattice import (
    BallLattice,
    BoxLattice,
    ImageLattice,
    MomentLattice,
    SimplexLattice,
)
from muhat.errors import InvalidInput
from muhat.mechanisms.arithmetic.roots import whole_root_down, whole_root_up
from muhat.noise import FRACTION_BITS
from muhat.privacy import Neighbors

Lattice = BoxLattice | BallLattice | SimplexLattice | ImageLattice | MomentLattice
"""The lattices whose sums are multiplied by a diagonal B."""


class HasSensitivity(Protocol):
    """A query, as far as its promise is concerned."""

    def rounding(self, norm: float) -> int:
        """What rounding the rows adds to the distance of neighbours."""

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """How far neighbours can be apart."""


Measured = TypeVar("Measured", bound=HasSensitivity)

PRECISION_BITS = 50
"""The smallest multiplier has at least this many bits: B is off by less than 2^−50."""

TOO_STRONG = (
    "the promise is too strong for exact arithmetic: the noise on the sum would be more "
    "than 10^10 times the whole domain. Choose a larger epsilon, rho or mu."
)


@dataclass(frozen=True)
class IntegerQuery:
    """v = round(B·S/2^t), of r rows.

    `multipliers` holds one integer a coordinate of a box, or a single one for all coordinates.
    Without a `lattice` the only row is the number of records. Sums of a box are measured from its
    centre; those of a simplex have a row a corner, m times its share, measured from the centroid.
    `from_zero` measures both from 0, as a sum with a secret number of records needs it.
    """

    lattice: Lattice | None
    multipliers: tuple[int, ...]
    fraction_bits: int
    from_zero: bool = False

    @property
    def count_multiplier(self) -> int | None:
        """The multiplier of the number of records; None if it is not released."""
        return self.multipliers[0] if self.lattice is None else None

    @property
    def rows(self) -> int:
        """r, the number of integers released."""
        return len(self.row_multipliers)

    @property
    def sum_rows(self) -> int:
        """How many of the rows are sums of values: the first ones."""
        return 0 if self.lattice is None else self.rows

    @property
    def row_multipliers(self) -> tuple[int, ...]:
        """The diagonal of B, one a row."""
        match self.lattice:
            case None | BoxLattice():
                return self.multipliers
            case SimplexLattice():
                dim = self.lattice.dim
                return self.multipliers * (dim if self.from_zero else self.lattice.corners)
        return self.multipliers * self.lattice.dim

    def answer(self, totals: Sequence[int], count: int) -> list[int]:
        """v for the exact sums of the records' integers, and the number of records."""
        measured = self._measured(totals, count)
        return rounded_rows(self.row_multipliers, measured, self.fraction_bits)

    def _measured(self, totals: Sequence[int], count: int) -> Sequence[int]:
        """The sums from where they are measured, one a row."""
        lattice = self.lattice
        if lattice is None:
            return (count,)
        if isinstance(lattice, BoxLattice) and self.from_zero:
            centers = lattice.center_units
            return [total + count * c for total, c in zip(totals, centers, strict=True)]
        if isinstance(lattice, SimplexLattice):
            whole = count * lattice.total
            if lattice.origin and not self.from_zero:
                # The share of the corner 0 is what the others leave of the total.
                totals = [*totals, whole - sum(totals)]
            start = 0 if self.from_zero else whole
            return [lattice.corners * total - start for total in totals]
        return totals

    def units(self) -> list[Fraction]:
        """How much one unit of v is worth in each row, in the coordinates of the lattice."""
        match self.lattice:
            case None:
                steps = [Fraction(1)]
            case BoxLattice():
                steps = list(self.lattice.grid)
            case SimplexLattice():
                steps = [self.lattice.grid / self.lattice.corners] * self.rows
            case _:
                steps = [self.lattice.grid] * self.rows
        return row_units(steps, self.row_multipliers, self.fraction_bits)

    def to_dict(self) -> dict[str, Any]:
        """For the plan's digest."""
        return {
            "multipliers": [str(multiplier) for multiplier in self.row_multipliers],
            "fraction_bits": self.fraction_bits,
            "from_zero": self.from_zero,
        }

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖v − v'‖ over all neighbours, in the ℓ₁, ℓ₂ or ℓ_∞ norm."""
        replaced = neighbors is Neighbors.SUBSTITUTE
        match self.lattice:
            case None:
                moved = [0 if replaced else self.multipliers[0]]
            case BoxLattice():
                extents = _box_extents(self.lattice, replaced, self.from_zero)
                moved = [b * e for b, e in zip(self.multipliers, extents, strict=True)]
            case BallLattice() | ImageLattice():
                radius = self.multipliers[0] * self.lattice.radius * (2 if replaced else 1)
                # Of all s with ‖s‖₂ ≤ radius: ‖s‖₁ ≤ √d·radius and ‖s‖_∞ ≤ radius.
                moved = [whole_root_up(self.lattice.dim * radius**2) if norm == 1 else radius]
            case SimplexLattice():
                moved = [_corner_reach(self, norm, replaced)]
            case MomentLattice():
                moved = [_moment_reach(self, norm, replaced)]
        reach = Fraction(contributions * norm_up(moved, norm), 1 << self.fraction_bits)
        return reach + self.rounding(norm)

    def rounding(self, norm: float) -> int:
        """What rounding v adds to its distance from another: ½ a row and side."""
        return norm_up([1] * self.rows, norm)


def fit(
    lattice: Lattice | None,
    proportions: Sequence[float],
    *,
    from_zero: bool,
    norm: float,
    neighbors: Neighbors,
    strength_squared: Fraction,
    contributions: int,
) -> IntegerQuery:
    """The query in these proportions that is as large as the promise allows.

    `proportions` has an entry a multiplier. The sensitivity of the result, in units of the noise
    (2^54), is at most √strength_squared: μ for normal noise, ε for pure.
    """

    def query(multipliers: Sequence[int], bits: int) -> IntegerQuery:
        return IntegerQuery(lattice, tuple(multipliers), bits, from_zero)

    return scaled_to(query, proportions, norm, neighbors, strength_squared, contributions)


def scaled_to(
    query: Callable[[Sequence[int], int], Measured],
    proportions: Sequence[float],
    norm: float,
    neighbors: Neighbors,
    strength_squared: Fraction,
    contributions: int,
) -> Measured:
    """The query with multipliers in these proportions that is as large as the promise allows.

    `query` makes it of multipliers and fractional bits.
    """
    least = Fraction(min(proportions))
    relative = [int(Fraction(x) / least * (1 << 60)) for x in proportions]
    trial = query(relative, 0)
    slack = trial.rounding(norm)
    reach = math.ceil(trial.sensitivity(norm, neighbors, contributions)) - slack
    # 2^60·√strength·2^(54+t)/reach, the least multiplier, must have PRECISION_BITS bits.
    bits = PRECISION_BITS + 2 - 60 - FRACTION_BITS + math.log2(reach) - _log2(strength_squared) / 2
    t = max(0, math.ceil(bits))
    room = whole_root_down(strength_squared * (1 << 2 * (FRACTION_BITS + t))) - (slack << t)
    if room < slack << (t + 20):
        # Below this the rounding of v would cost more than a millionth of the noise.
        raise InvalidInput(TOO_STRONG)
    return query([x * room // reach for x in relative], t)


def _box_extents(lattice: BoxLattice, replaced: bool, from_zero: bool) -> list[int]:
    """How far one record can move each coordinate."""
    if replaced:
        return list(lattice.extent)
    origins = lattice.center_units if from_zero else (0,) * lattice.dim
    return [
        max(abs(low + origin), abs(high + origin))
        for low, high, origin in zip(lattice.lower, lattice.upper, origins, strict=True)
    ]


def _corner_reach(query: IntegerQuery, norm: float, replaced: bool) -> int:
    """How far one record moves m·(shares) from the centroid, or from 0.

    Shares q ≥ 0 that add up to T: ‖q − q'‖² ≤ ‖q‖² + ‖q'‖² ≤ 2T² by ⟨q, q'⟩ ≥ 0, and
    ‖m·q − T·1‖² = m²‖q‖² − mT² ≤ m(m − 1)T².
    """
    lattice = query.lattice
    assert isinstance(lattice, SimplexLattice)
    m, size = lattice.corners, query.multipliers[0] * lattice.total
    if replaced:
        return norm_up([m * size] * 2, norm)
    if query.from_zero:
        return m * size
    return norm_up([(m - 1) * size, *[size] * (m - 1)], norm)


def _moment_reach(query: IntegerQuery, norm: float, replaced: bool) -> int:
    """How far one record moves b·(x^{⊗ℓ}, |x|^ℓ), with x^{⊗ℓ} at most L long.

    One record is √2·L long, two are √(2(a² + a'² − aa')) ≤ √2·L apart for lengths a, a' ≤ L.
    """
    lattice = query.lattice
    assert isinstance(lattice, MomentLattice)
    if norm != 2:
        raise InvalidInput("even moments are released in the Euclidean norm.")
    exact = whole_root_up(math.ceil(2 * lattice.longest**2))
    rounding = math.ceil(whole_root_up(lattice.dim << 20) * lattice.slack / (1 << 10))
    return query.multipliers[0] * (exact + rounding * (2 if replaced else 1))


def rounded_rows(multipliers: Sequence[int], sums: Sequence[int], bits: int) -> list[int]:
    """round(B·S/2^bits), row by row."""
    half = (1 << bits) >> 1
    return [(b * total + half) >> bits for b, total in zip(multipliers, sums, strict=True)]


def row_units(steps: Sequence[Fraction], multipliers: Sequence[int], bits: int) -> list[Fraction]:
    """What one unit of every row is worth, if one of its sums is worth `steps`."""
    return [step * Fraction(1 << bits, b) for step, b in zip(steps, multipliers, strict=True)]


def norm_up(values: Sequence[int], norm: float) -> int:
    """The ℓ₁, ℓ₂ or ℓ_∞ norm of integers ≥ 0, rounded up."""
    if norm == 1:
        return sum(values)
    return max(values) if math.isinf(norm) else whole_root_up(sum(x * x for x in values))


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)
