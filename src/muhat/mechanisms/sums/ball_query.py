"""The integer answers about a ball, with squares beside the sums, and their exact sensitivity.

Of a record q with ‖q‖ ≤ R the rows are a·x, squares times b and, where it is secret, the number of
records times c, with x = q/R. How far they move in ℓ₂, squares of each coordinate first, then the
square of the length (`together`):

    neighbours    rows                      farthest
    substitute    x_j²                      2a if b² ≤ 4a²/C, C = 8 (one coordinate: C* = 1.443)
    add–remove    1/d − x_j²                √(max(a² + b²(1 − 1/d), b²/d) + c²)
    add–remove    1 − |x|² (`together`)     √(max(a, b)² + c²)

Squares `apart` have pure noise of their own; then what they move is added to what the rest does.
The conditions are checked here, in integers. Proof: docs/proofs/ball-squares.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from muhat._integers import norm_up, whole_root_up
from muhat.domains.ball_lattice import SquaredBallLattice
from muhat.domains.box_kernel import SQUARE_ERROR, SQUARE_UNIT
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.columns_query import SQUARE_BOUND
from muhat.mechanisms.sums.sum_query import RowQuery
from muhat.privacy import Neighbors

PAIR_BOUND = 8
"""C for two coordinates or more; for one it is that of a box."""


@dataclass(frozen=True)
class BallQuery(RowQuery, keys=("sums", "squares", "count", "fraction_bits", "together", "apart")):
    """v = round(B·S/2^t): the rows of the sums, then those of the squares, then the count.

    One multiplier for all sums, one for all squares, and one for the number of records, 0 if that
    is not released.
    """

    lattice: SquaredBallLattice
    sums: int
    squares: int
    count: int
    fraction_bits: int
    together: bool = False
    apart: bool = False
    from_zero: bool = False

    @property
    def dim(self) -> int:
        """d, the number of coordinates."""
        return self.lattice.ball.dim

    @property
    def count_multiplier(self) -> int | None:
        """The multiplier of the number of records; None if it is not released."""
        return self.count or None

    @property
    def sum_rows(self) -> int:
        return self.dim

    @property
    def square_rows(self) -> int:
        return 1 if self.together else self.dim

    @property
    def row_multipliers(self) -> tuple[int, ...]:
        squares = (self.squares,) * self.square_rows
        return (*(self.sums,) * self.dim, *squares, *[self.count] * bool(self.count))

    @property
    def square_reach(self) -> list[Fraction]:
        """The radius, for every coordinate."""
        return [self.lattice.ball.radius * self.lattice.ball.grid] * self.dim

    @property
    def base(self) -> Fraction:
        """What squares are taken from, in units of R²: 1/d of the whole for each coordinate."""
        return Fraction(self._whole * SQUARE_UNIT, self.lattice.ball.radius**2)

    @property
    def _whole(self) -> int:
        return self.lattice.ball.radius**2 // (SQUARE_UNIT * (1 if self.together else self.dim))

    def measured(self, totals: Sequence[int], count: int) -> list[int]:
        values, squares = list(totals[: self.dim]), list(totals[self.dim :])
        if self.together:
            squares = [sum(squares)]
        lacking = [self._whole * count - total for total in squares]
        return [*values, *lacking, *[count] * bool(self.count)]

    def row_steps(self) -> list[Fraction]:
        """How much one sum is worth: of the lattice's coordinates, of x_j², of a record."""
        ball = self.lattice.ball
        steps = [ball.grid] * self.dim
        steps += [Fraction(SQUARE_UNIT, ball.radius**2)] * self.square_rows
        return steps + [Fraction(1)] * bool(self.count)

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖v − v'‖₂ over all neighbours; apart, of the two norms together."""
        if norm != 2:
            raise InvalidInput("a ball is released with its squares in the Euclidean norm.")
        replaced = neighbors is Neighbors.SUBSTITUTE
        moved = (self._between() if replaced else self._appearing()) + self._slack
        return Fraction(contributions * moved, 1 << self.fraction_bits) + self.rounding(norm)

    @property
    def _reaches(self) -> tuple[int, int]:
        """a and b: what a record on the sphere adds to the sums, and a whole square to its row."""
        radius = self.lattice.ball.radius
        return self.sums * radius, -(-self.squares * radius**2 // SQUARE_UNIT)

    @property
    def _slack(self) -> int:
        """Rounded squares, and the whole that they are taken from, are off by less than this."""
        if self.together:
            return self.squares * (2 * self.dim * SQUARE_ERROR + 2)
        return self.squares * (2 * SQUARE_ERROR + 2) * whole_root_up(self.dim)

    def _between(self) -> int:
        """How far the rows move when one record becomes another."""
        a, b = self._reaches
        # The squares alone: from one axis to another, or along the only one.
        farthest = [b] * (1 if self.together else min(self.dim, 2))
        if self.apart:
            return 2 * a + norm_up(farthest, 2)
        bound = SQUARE_BOUND if self.dim == 1 else PAIR_BOUND
        if not self.together and bound * b * b <= 4 * a * a:
            return 2 * a
        return norm_up([2 * a, *farthest], 2)

    def _appearing(self) -> int:
        """How far the rows move when a record comes or goes."""
        (a, b), c, d = self._reaches, self.count, self.dim
        alone = b * b if self.together else -(-b * b * max(d - 1, 1) // d)
        if self.apart:
            return norm_up([a, c], 2) + whole_root_up(alone)
        if self.together or d == 1:
            return norm_up([max(a, b), c], 2)
        on_the_sphere = a * a - (-b * b * (d - 1) // d)
        return whole_root_up(max(on_the_sphere, -(-b * b // d)) + c * c)
