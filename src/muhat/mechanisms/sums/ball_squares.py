"""Recipes for a ball, or an ellipsoid along the axes, with squares beside the sums.

    noise      neighbours    squares                              noise on (Σx, squares), radius 1
    normal     substitute    of each coordinate, for nothing      variances (4, 8)/μ²
    normal     add–remove    of the length, for nothing           (1, 1)/μ² over the sums' share
    normal     add–remove    of each coordinate, if asked for     5 % of the squared budget
    Euclidean  both          of each coordinate, if asked for     5 % of ε, noise of their own

The sensitivity itself is checked in integers by `ball_query.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from muhat.domains.blocks import Block
from muhat.domains.lattice import BallLattice, SquaredBallLattice
from muhat.mechanisms.sums.ball_query import PAIR_BOUND, BallQuery
from muhat.mechanisms.sums.columns_query import SQUARE_BOUND
from muhat.mechanisms.sums.integer_query import scaled_to
from muhat.mechanisms.sums.recipe import SQUARES_SHARE, Recipe
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

_LESS = 1 - 2.0**-20
"""Proportions are rounded to integers before they are compared with what is free."""


def ball_recipe(
    name: str,
    law_name: str,
    block: Block,
    protection: Protection,
    *,
    count_share: float = 0.0,
    each: bool = True,
) -> Recipe:
    """Sums and squares of a ball's lattice; with a `count_share` the number of records too.

    Under adding and removing squares of `each` coordinate cost something in two dimensions or
    more, and the square of the length alone does not.
    """
    assert isinstance(block.lattice, BallLattice)
    lattice = SquaredBallLattice(block.lattice)
    law, d = LAWS[law_name], block.lattice.dim
    replaced = protection.neighbors is Neighbors.SUBSTITUTE
    together = not (replaced or each or d == 1)
    # Rows that share their noise with others have more of it.
    apart = not law.independent
    count = math.sqrt(count_share / (1 - count_share))
    ratio = _square_ratio(d, replaced, apart, together=together, count=count)

    def query(multipliers: Sequence[int], bits: int) -> BallQuery:
        a, b, *rest = multipliers
        return BallQuery(lattice, a, b, sum(rest), bits, together, apart)

    # b and c beside a = 1 on the sphere, for integers: a record there has ‖q‖ = R.
    radius = float(block.lattice.radius)
    proportions = [1.0, ratio * 2.0**45 / radius, *[count * radius] * bool(count)]
    made = scaled_to(query, proportions, law, protection)
    return Recipe(name, law, made, protection, block.transform, block.center)


def _square_ratio(d: int, replaced: bool, apart: bool, *, together: bool, count: float) -> float:
    """b/a: as large as is free, or as the share of squares allows."""
    share = SQUARES_SHARE / (1 - SQUARES_SHARE)
    longest = math.sqrt(max(d - 1, 1) / d)
    if apart and replaced:
        return 2 * share / math.sqrt(min(d, 2))
    if apart:
        return share * math.hypot(1, count) / longest
    if replaced:
        return 2 / math.sqrt(SQUARE_BOUND if d == 1 else PAIR_BOUND) * _LESS
    return 1.0 if together or d == 1 else math.sqrt(share) / longest
