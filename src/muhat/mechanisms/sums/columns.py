"""Recipes for the columns of a box: sums with squares and counts beside them.

    law           where values may be missing, n public: noise on (Σu, Σ(1 − u²), count)
    normal        variances (4, 4, 4/3)/μ²; nothing missing: (4, 1.443)/μ²
    Laplace       scales (2, 4, 2)/ε; nothing missing: (2, 4)/ε
    cube          (Σ(1 + u), Σ(1 − u)) in place of (Σu, count): (2, –, 2)/ε in the diamond's norm
    n secret, normal: (2, 2, 2)/μ²; purely private: the norm of the cube

u is the value measured from the middle of its bounds, in half-widths. Several columns share the
squared sensitivity (or, for Laplace noise, the sensitivity) as they would without squares and
counts. In the cube's norm squares are not free: where they are asked for they have noise of their
own, for 5 % of ε. The sensitivity itself is checked in integers by `columns_query.py`.
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats
from muhat.domains.lattice import ColumnsLattice
from muhat.mechanisms.sums.columns_query import fit_columns
from muhat.mechanisms.sums.recipe import SQUARES_SHARE, Recipe
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

SUM_COUNT_SHARE = 0.05
"""Of the squared budget of a column's sum, what the number of its recorded values takes: the
error of the sum grows by 2.6 %."""


def columns_recipe(
    name: str,
    law_name: str,
    lattice: ColumnsLattice,
    axes: Floats,
    protection: Protection,
    *,
    count_share: float = 0.0,
    from_zero: bool = False,
) -> Recipe:
    """Noise in proportion to `axes`, of shape (d,), on the sums of the columns.

    With a `count_share` the number of all records is released too, for that share of the squared
    budget; in the cube's norm it needs none.
    """
    law, box = LAWS[law_name], lattice.box
    norm, replaced = law.sensitivity_norm, protection.neighbors is Neighbors.SUBSTITUTE
    sums = [2.0**e / float(s) for e, s in zip(box.exponents, axes, strict=True)]
    reaches = [
        b * float(m + (abs(c) if from_zero else 0))
        for b, m, c in zip(sums, box.reach, box.center_units, strict=True)
    ]
    squares, counts = [], []
    cube = math.isinf(norm)
    turned = cube and replaced and lattice.counts and box.absent is None
    if lattice.squares:
        ratio = _square_ratio(norm, replaced, missing=lattice.counts and box.absent is None)
        squares = [
            ratio * a * 2.0**45 / float(m) ** 2 for a, m in zip(reaches, box.reach, strict=True)
        ]
    if lattice.counts and not turned:
        ratio_of = _count_ratio if box.absent is None else _beside_a_sum
        beside = ratio_of(norm, replaced)
        counts = [beside * a for a in reaches]
    elif count_share:
        whole = math.sqrt(count_share / (1 - count_share)) * float(np.linalg.norm(reaches))
        counts = [max(reaches) if cube else whole]
    query = fit_columns(
        lattice,
        (sums, squares, counts),
        law,
        protection,
        from_zero=from_zero,
        turned=turned,
    )
    return Recipe(name, law, query, protection, None, np.array(box.center))


def _square_ratio(norm: float, replaced: bool, *, missing: bool) -> float:
    """b/a: how much of a row of squares is free beside its sum, a little less."""
    if norm == 1:
        return 0.5 * (1 - 2.0**-20)
    if math.isinf(norm):
        share = SQUARES_SHARE / (1 - SQUARES_SHARE)
        return share * (2.0 if replaced else 1.0)
    return 1.665 if replaced and not missing else 1.0


def _count_ratio(norm: float, replaced: bool) -> float:
    """c/a: as much of the count as is free if n is public, else the best at the worst mean."""
    return math.sqrt(3) if norm == 2 and replaced else 1.0


def _beside_a_sum(norm: float, replaced: bool) -> float:
    """c/a for a sum, of which the count is no part; one record moves the sum by a or by 2a."""
    share = SUM_COUNT_SHARE / (1 - SUM_COUNT_SHARE)
    whole = 2.0 if replaced else 1.0
    if math.isinf(norm):
        return whole
    return whole * (share if norm == 1 else math.sqrt(share))
