"""How far one record moves the integers m_A·⊗_{i∈A}(n_i·I − J)·(marginal of A), exactly.

With x and y the cells of two records, and e the unit vectors, per attribute

    ‖n·e_x − 1‖₂² = n(n − 1),   ⟨n·e_x − 1, n·e_y − 1⟩ = −n if x ≠ y,   ‖n·e_x − 1‖₁ = 2(n − 1),

and norms and inner products of ⊗ multiply. Adding or removing a record moves all blocks; when it
is replaced, a block moves only if the records differ in one of its attributes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from muhat._integers import whole_root_up
from muhat.privacy import Neighbors
from muhat.workloads.residual_basis import Axes, orbits_of
from muhat.workloads.residual_differences import ResidualDifferences

LONGEST_LISTED = 6
"""Sets with more attributes have the ℓ₁ distance of their columns bounded, not computed."""


def euclidean(
    cells: Sequence[int],
    subsets: Sequence[Axes],
    multipliers: Sequence[int],
    neighbors: Neighbors,
) -> Fraction:
    """An upper bound, within 10^−10, on the Euclidean distance between neighbours."""
    if neighbors is Neighbors.ADD_REMOVE:
        square = sum(
            multiplier**2 * math.prod(cells[axis] * (cells[axis] - 1) for axis in axes)
            for axes, multiplier in zip(subsets, multipliers, strict=True)
        )
        return Fraction(whole_root_up(square))
    return _farthest(cells, subsets, multipliers)


def absolute(
    cells: Sequence[int],
    subsets: Sequence[Axes],
    multipliers: Sequence[int],
    neighbors: Neighbors,
) -> Fraction:
    """The ℓ₁ distance between neighbours: exact for add/remove, else a bound block by block."""
    return Fraction(
        sum(
            multiplier * block_length(cells, axes, neighbors)
            for axes, multiplier in zip(subsets, multipliers, strict=True)
        )
    )


def largest(
    cells: Sequence[int],
    subsets: Sequence[Axes],
    multipliers: Sequence[int],
    neighbors: Neighbors,
) -> Fraction:
    """The ℓ_∞ distance between neighbours: exact for add/remove, else twice that."""
    sides = 2 if neighbors is Neighbors.SUBSTITUTE else 1
    return Fraction(
        sides
        * max(
            (
                multiplier * math.prod(cells[axis] - 1 for axis in axes)
                for axes, multiplier in zip(subsets, multipliers, strict=True)
                if axes or neighbors is Neighbors.ADD_REMOVE
            ),
            default=0,
        )
    )


def block_length(cells: Sequence[int], axes: Axes, neighbors: Neighbors) -> int:
    """How far a record moves the block of a set at most, in the ℓ₁ norm, for a multiplier of 1."""
    sizes = tuple(sorted(cells[axis] for axis in axes))
    if neighbors is Neighbors.ADD_REMOVE:
        return math.prod(2 * (size - 1) for size in sizes)
    return _largest_block_distance(sizes)


@lru_cache(maxsize=4096)
def _largest_block_distance(sizes: tuple[int, ...]) -> int:
    """max over the differing attributes of ‖⊗(n·e_x − 1) − ⊗(n·e_y − 1)‖₁."""
    length = math.prod(2 * (size - 1) for size in sizes)
    if not sizes:
        return 0
    if len(sizes) > LONGEST_LISTED:
        return 2 * length
    return max(
        _distance(differing) * (length // math.prod(2 * (size - 1) for size in differing))
        for order in range(1, len(sizes) + 1)
        for differing in set(itertools.combinations(sizes, order))
    )


def _distance(sizes: tuple[int, ...]) -> int:
    """‖⊗(n·e_x − 1) − ⊗(n·e_y − 1)‖₁ if x and y differ in every attribute.

    Along an attribute an entry is at x (n − 1 and −1), at y (−1 and n − 1), or at one of the
    n − 2 others (−1 and −1).
    """
    total = 0
    for places in itertools.product("xyo", repeat=len(sizes)):
        pairs = list(zip(places, sizes, strict=True))
        count = math.prod(size - 2 for place, size in pairs if place == "o")
        first = math.prod(size - 1 if place == "x" else -1 for place, size in pairs)
        second = math.prod(size - 1 if place == "y" else -1 for place, size in pairs)
        total += count * abs(first - second)
    return total


def _farthest(
    cells: Sequence[int], subsets: Sequence[Axes], multipliers: Sequence[int]
) -> Fraction:
    """The largest distance of two columns, from the patterns in which cells may differ.

    Floats with a proved margin: each of the R products below is off by less than 64 roundings,
    and no sum exceeds four times the sum of the blocks' squared lengths.
    """
    moving = [
        (axes, multiplier) for axes, multiplier in zip(subsets, multipliers, strict=True) if axes
    ]
    if not moving:
        return Fraction(0)
    sets = [axes for axes, _ in moving]
    ranks = {multiplier: rank for rank, multiplier in enumerate(sorted({m for _, m in moving}), 1)}
    weights = np.array([float(ranks[multiplier]) for _, multiplier in moving])
    orbits = orbits_of(cells, sets, weights)
    chosen: dict[tuple[Axes, int], float] = {}
    for axes, multiplier in moving:
        # Sets of one orbit share a multiplier, because exchanges of attributes keep the ranks.
        chosen[orbits.part_of(axes), multiplier] = float(
            multiplier**2 * math.prod(cells[axis] ** 2 for axis in axes)
        )
    if len({part for part, _ in chosen}) < len(chosen):
        raise AssertionError("exchangeable sets have one multiplier")
    differences = ResidualDifferences.of(orbits.members, orbits.sizes, [part for part, _ in chosen])
    squares = np.array(list(chosen.values()))
    total = float(np.sum(squares * differences.largest))
    square = float(differences.spent(squares).max())
    square += 2.0**-50 * (len(squares) + 64) * total
    return Fraction(math.sqrt(square) * (1 + 2.0**-50))
