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
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery, block_query, length_up
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.integer_query import TOO_STRONG, IntegerQuery
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.law import ScaleFamily
from muhat.noise.laws import elliptic_law, independent_law
from muhat.noise.protection import Protection
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
        together = sum(gone, Fraction(0)) if norm == 1 else length_up(gone)
        if neighbors is Neighbors.ADD_REMOVE:
            return together
        return max(together, self.parts[0].sensitivity(norm, neighbors, contributions))


def recorded_sum(body: Body, protection: Protection, kind: NoiseKind) -> Recipe:
    """The noisy sum of the records of a body of one block, and their noisy number.

    The sum has the noise that it has alone; pure noise in several dimensions, which is shaped by
    a ball of one more, a little more.
    """
    (block,) = body.blocks
    # Fieller's interval needs one law for all combinations of a sum and the number.
    law = (independent_law if len(block.center) == 1 else elliptic_law)(kind)
    total = block_query(block, law, protection, Fraction(1))
    query = RecordedQuery((total, _number(total, law, protection)))
    return Recipe("recorded", law, query, protection, body.transform, body.center)


def _number(total: PartQuery, law: ScaleFamily, protection: Protection) -> IntegerQuery:
    """The number with the largest multiplier that the sum leaves room for."""
    norm, k = law.sensitivity_norm, protection.contributions
    gone = total.sensitivity(norm, Neighbors.ADD_REMOVE, k)
    whole = protection.strength_squared(law.kind) * law.unit**2
    if norm == 1:
        room = math.floor(math.isqrt(math.floor(whole)) - gone)
    else:
        room = math.isqrt(max(math.floor(whole - gone**2), 0))
    # One unit for what a row may round to, one for the root of the sum of squares.
    multiplier = (room - 2) // k
    if multiplier < 1:
        raise InvalidInput(TOO_STRONG)
    return IntegerQuery(None, (multiplier,), 0)
