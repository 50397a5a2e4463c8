"""The integer answer to which noise is added, and its exact sensitivity.

A release sums the records' integers into S, and maps them by a fixed-point matrix B with t
fractional bits: v = (B·S + 2^(t−1)) >> t. B is diagonal here: a multiplier a coordinate (box),
or one for all coordinates (ball, whitened ellipsoid), and one for the row count if it is
released too. Everything is a Python integer; floats only choose the proportions of B.

Sensitivity: rounding moves each of the r rows of v by less than ½ on either side, so two
neighbours differ by at most ‖B·(S − S')‖/2^t + ‖(1, …, 1)‖ in any norm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muhat.domains.lattice import BallLattice, BoxLattice, SimplexLattice, TensorLattice
from muhat.errors import InvalidInput
from muhat.noise import FRACTION_BITS
from muhat.privacy import Neighbors

Lattice = BoxLattice | BallLattice | SimplexLattice | TensorLattice
"""The lattices whose sums are multiplied by a diagonal B."""

PRECISION_BITS = 50
"""The smallest multiplier has at least this many bits: B is off by less than 2^−50."""


@dataclass(frozen=True)
class IntegerQuery:
    """v = round(B·(S, count)/2^t), of r rows.

    `multipliers` holds one integer a coordinate of a box, or a single one for a ball;
    `count_multiplier` is the row for the number of records, None if it is not released;
    `lattice` is None if nothing but the count is. `from_zero` measures the records of a box
    from 0 and not from its centre, as a sum with a secret number of records needs it.
    """

    lattice: Lattice | None
    multipliers: tuple[int, ...]
    count_multiplier: int | None
    fraction_bits: int
    from_zero: bool = False

    @property
    def rows(self) -> int:
        """r, the number of integers released."""
        return _sums(self.lattice) + (self.count_multiplier is not None)

    @property
    def row_multipliers(self) -> tuple[int, ...]:
        """The diagonal of B, one a row."""
        rows = self.multipliers
        if not isinstance(self.lattice, BoxLattice):
            rows = rows * _sums(self.lattice)
        return rows if self.count_multiplier is None else (*rows, self.count_multiplier)

    def answer(self, totals: Sequence[int], count: int) -> list[int]:
        """v for the exact sums of the records' integers, and the number of records."""
        if self.from_zero and isinstance(self.lattice, BoxLattice):
            centers = self.lattice.center_units
            totals = [total + count * c for total, c in zip(totals, centers, strict=True)]
        if isinstance(self.lattice, SimplexLattice) and self.lattice.origin:
            # The share of the corner 0 is what the others leave of the total.
            totals = [*totals, count * self.lattice.total - sum(totals)]
        sums = totals if self.count_multiplier is None else (*totals, count)
        half = (1 << self.fraction_bits) >> 1
        return [
            (multiplier * total + half) >> self.fraction_bits
            for multiplier, total in zip(self.row_multipliers, sums, strict=True)
        ]

    def units(self) -> list[Fraction]:
        """How much one unit of v is worth in each row, in the coordinates of the lattice."""
        steps = [] if self.lattice is None else [Fraction(2) ** e for e in _exponents(self.lattice)]
        if self.count_multiplier is not None:
            steps.append(Fraction(1))
        return [
            step * Fraction(1 << self.fraction_bits, multiplier)
            for step, multiplier in zip(steps, self.row_multipliers, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """For the plan's digest."""
        return {
            "multipliers": [str(multiplier) for multiplier in self.row_multipliers],
            "fraction_bits": self.fraction_bits,
            "from_zero": self.from_zero,
        }

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖v − v'‖ over all neighbours, in the ℓ₁, ℓ₂ or ℓ_∞ norm."""
        moved = [0 if neighbors is Neighbors.SUBSTITUTE else self.count_multiplier or 0]
        if isinstance(self.lattice, BoxLattice):
            extents = _box_extents(self.lattice, neighbors, self.from_zero)
            moved += [b * e for b, e in zip(self.multipliers, extents, strict=True)]
        elif isinstance(self.lattice, BallLattice | TensorLattice):
            sides = 2 if neighbors is Neighbors.SUBSTITUTE else 1
            radius = self.multipliers[0] * self.lattice.radius * sides
            # Of all s with ‖s‖₂ ≤ radius: ‖s‖₁ ≤ √d·radius and ‖s‖_∞ ≤ radius.
            moved.append(_root_up(self.lattice.dim * radius**2) if norm == 1 else radius)
        elif isinstance(self.lattice, SimplexLattice):
            # q ≥ 0 with the sum `total`: ‖q − q'‖² ≤ ‖q‖² + ‖q'‖² ≤ 2·total² by ⟨q, q'⟩ ≥ 0.
            corner = self.multipliers[0] * self.lattice.total
            moved += [corner] * (2 if neighbors is Neighbors.SUBSTITUTE else 1)
        reach = Fraction(contributions * _norm_up(moved, norm), 1 << self.fraction_bits)
        return reach + _norm_up([1] * self.rows, norm)


def fit(
    lattice: Lattice | None,
    proportions: Sequence[float],
    *,
    with_count: bool,
    from_zero: bool,
    norm: float,
    neighbors: Neighbors,
    strength_squared: Fraction,
    contributions: int,
) -> IntegerQuery:
    """The query in these proportions that is as large as the promise allows.

    `proportions` has an entry a multiplier, the count's last. The sensitivity of the result,
    in units of the noise (2^54), is at most √strength_squared: μ for normal noise, ε for pure.
    """

    def query(multipliers: Sequence[int], fraction_bits: int) -> IntegerQuery:
        body, count = (multipliers[:-1], multipliers[-1]) if with_count else (multipliers, None)
        return IntegerQuery(lattice, tuple(body), count, fraction_bits, from_zero)

    least = Fraction(min(proportions))
    relative = [int(Fraction(x) / least * (1 << 60)) for x in proportions]
    trial = query(relative, 0)
    slack = _norm_up([1] * trial.rows, norm)
    reach = int(trial.sensitivity(norm, neighbors, contributions)) - slack
    # 2^60·√strength·2^(54+t)/reach, the least multiplier, must have PRECISION_BITS bits.
    bits = PRECISION_BITS + 2 - 60 - FRACTION_BITS + math.log2(reach) - _log2(strength_squared) / 2
    t = max(0, math.ceil(bits))
    room = _root_down(strength_squared * (1 << 2 * (FRACTION_BITS + t))) - (slack << t)
    if room < slack << (t + 20):
        # Below this the rounding of v would cost more than a millionth of the noise.
        raise InvalidInput(
            "the promise is too strong for exact arithmetic: the noise on the sum would be more "
            "than 10^10 times the whole domain. Choose a larger epsilon, rho or mu."
        )
    return query([x * room // reach for x in relative], t)


def _box_extents(lattice: BoxLattice, neighbors: Neighbors, from_zero: bool) -> list[int]:
    """How far one record can move each coordinate."""
    if neighbors is Neighbors.SUBSTITUTE:
        return list(lattice.extent)
    origins = lattice.center_units if from_zero else (0,) * lattice.dim
    return [
        max(abs(low + origin), abs(high + origin))
        for low, high, origin in zip(lattice.lower, lattice.upper, origins, strict=True)
    ]


def _exponents(lattice: Lattice) -> Sequence[int]:
    if isinstance(lattice, BoxLattice):
        return lattice.exponents
    return (lattice.exponent,) * _sums(lattice)


def _sums(lattice: Lattice | None) -> int:
    """How many sums the records of a lattice have; a simplex with 0 has one more corner."""
    if lattice is None:
        return 0
    return lattice.dim + (isinstance(lattice, SimplexLattice) and lattice.origin)


def _norm_up(values: Sequence[int], norm: float) -> int:
    """The ℓ₁, ℓ₂ or ℓ_∞ norm of integers ≥ 0, rounded up."""
    if norm == 1:
        return sum(values)
    return max(values) if math.isinf(norm) else _root_up(sum(x * x for x in values))


def _root_up(square: int) -> int:
    return math.isqrt(square - 1) + 1 if square > 0 else 0


def _root_down(square: Fraction) -> int:
    return math.isqrt(square.numerator // square.denominator)


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)
