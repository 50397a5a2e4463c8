"""Pairs of points that the smallest ellipsoid around all differences is likely to touch.

Multiplicative steps with weights on all pairs (`multiplicative`) come within a per mille of the
optimum in thirty steps, each of which takes one Gram matrix of the points. By then most pairs have
lost their weight; further steps with the others come within 10⁻⁴, where Newton's method needs five.
"""

from __future__ import annotations

import numpy as np

from muhat.ellipsoids.interior_point import Start
from muhat.ellipsoids.moment_spectra import FewRows, Pairs, Rows, TotalOfRows
from muhat.ellipsoids.multiplicative import ascend
from muhat.ellipsoids.spans import Array, Indices

MOST_POINTS = 1000  # all their pairs carry weights
LEAST_RANK, POINTS_A_DIMENSION = 30, 6  # else few pairs matter, and a search finds these
STEPS, CLOSER_STEPS = 30, 50
CLOSE = 1e-5
LIGHT, LIGHTER = 1e-3, 1e-5  # parts of the largest weight below which pairs are left out


def pays(dim: int, count: int, rank: int) -> bool:
    """Whether many pairs of so many points will matter, and steps in so many rows are cheap."""
    few = min(MOST_POINTS, POINTS_A_DIMENSION * rank)
    return rank >= LEAST_RANK and count <= few and dim <= 2 * rank


def likely_pairs(points: Array, rank: int, p: float) -> tuple[Indices, Start] | None:
    """Pairs (k, 2) of columns of points (d, N), with weights (k,) and a D (d,), nearly the best.

    None where floats cannot tell that the points span their space.
    """
    dim, count = points.shape
    rows: Rows = TotalOfRows(points) if p == 2 else FewRows(points)
    pairs = Pairs(count)
    try:
        found = ascend(pairs, rows, rank, p, CLOSE, limit=STEPS)
        kept = found.weights > LIGHT * found.weights.max()
        heavy, start = pairs.chosen(kept), (found.weights[kept], found.row_weights)
        found = ascend(heavy, rows, rank, p, CLOSE, limit=CLOSER_STEPS, start=start)
    except FloatingPointError:
        return None
    kept = found.weights > LIGHTER * found.weights.max()
    diagonal = np.ones(dim) if p == 2 else np.sqrt(found.row_weights)
    labels = np.column_stack([heavy.first[kept], heavy.second[kept]])
    return labels, (found.weights[kept], diagonal)
