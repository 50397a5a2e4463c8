"""A sum over the recorded records, and their number, which then costs the sum nothing.

Where records are replaced, a record that was recorded and still is moves the sum by 2r at most and
the number not at all; one that comes or goes moves the sum, measured from the centre, by r and the
number by 1. So the number may have what the sum leaves of the promise in the second case: normal
noise of variance (4/3)/μ², Laplace noise of scale 2/ε. Proof: docs/proofs/recorded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from muhat.errors import InvalidInput
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.integer_query import TOO_STRONG, IntegerQuery
from muhat.mechanisms.sums.recipe import Protection, Recipe
from muhat.noise import FRACTION_BITS
from muhat.noise.law import LAWS, Law
from muhat.privacy import Neighbors


@dataclass(frozen=True, eq=False)
class RecordedQuery(BlockQuery):
    """The rows of a sum, then the number of records that are in it.

    The number is multiplied by a whole number and never rounded, so what k records of a person
    move, b of which come or go, is a convex function of b: b = 0 and b = k are enough.
    """

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖v − v'‖ over all neighbours, in the ℓ₁ or ℓ₂ norm."""
        gone = [part.sensitivity(norm, Neighbors.ADD_REMOVE, contributions) for part in self.parts]
        together = sum(gone, Fraction(0)) if norm == 1 else _length(gone)
        if neighbors is Neighbors.ADD_REMOVE:
            return together
        return max(together, self.parts[0].sensitivity(norm, neighbors, contributions))


def recorded_sum(body: Body, protection: Protection) -> Recipe:
    """The noisy sum of the records of a body of one block, and their noisy number.

    The sum has the noise that it has alone; pure noise in several dimensions, which is shaped by
    a ball of one more, a little more.
    """
    (block,) = body.blocks
    law = _law(protection, len(block.center))
    norm = law.sensitivity_norm
    total = block.query(norm, protection, Fraction(1))
    query = RecordedQuery((total, _number(total, norm, protection)))
    return Recipe("recorded", law, query, protection, body.transform, body.center)


def _law(protection: Protection, dim: int) -> Law:
    if not protection.pure:
        return LAWS["normal"]
    # Fieller's interval needs one law for all combinations of a sum and the number.
    return LAWS["laplace" if dim == 1 else "euclidean-norm"]


def _number(total: PartQuery, norm: float, protection: Protection) -> IntegerQuery:
    """The number with the largest multiplier that the sum leaves room for."""
    k = protection.contributions
    gone = total.sensitivity(norm, Neighbors.ADD_REMOVE, k)
    whole = protection.strength_squared * (1 << 2 * FRACTION_BITS)
    if norm == 1:
        room = math.floor(math.isqrt(math.floor(whole)) - gone)
    else:
        room = math.isqrt(max(math.floor(whole - gone**2), 0))
    # One unit for what a row may round to, one for the root of the sum of squares.
    multiplier = (room - 2) // k
    if multiplier < 1:
        raise InvalidInput(TOO_STRONG)
    return IntegerQuery(None, (multiplier,), 0)


def _length(moved: list[Fraction]) -> Fraction:
    """The root of the sum of squares, rounded up."""
    scaled = math.ceil(sum(each**2 for each in moved) * (1 << 128))
    return Fraction(math.isqrt(scaled) + 1, 1 << 64)
