"""Hierarchical histograms, as mixes of sets of levels, to compare the best mix with."""

from __future__ import annotations

import itertools

import numpy as np

from muhat import _check
from muhat.errors import InvalidInput
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.estimators.range_choice import _characters, _difficulty, _mixed, _weighed


def tree_mix(cells: int, branches: int, bits: int = 1, *, even: bool = False) -> LevelMix:
    """Hierarchical histograms: one level of a tree with 2, 4, 8 … branches, its nodes hashed.

    A node is hashed to `bits` bits by a random linear map onto them, which is Hadamard response
    for one bit. How often a level is drawn is optimised, or, if `even`, the same for all. A
    tree with as many branches as there are leaves is a flat histogram.
    """
    levels = CellTree(cells).levels
    step = _check.count("branches", branches, least=2).bit_length() - 1
    if 1 << step != branches:
        raise InvalidInput(f"branches must be a power of two; got {branches}.")
    depths = [*range(step, levels, step), levels]
    if not 1 <= bits <= depths[0]:
        raise InvalidInput(f"bits must be from 1 to {depths[0]} for {branches} branches.")
    sets = list(itertools.combinations(range(1, levels + 1), bits))
    # A random map onto b bits is as likely to have these last levels as there are such maps.
    maps = np.array([2.0 ** sum(level - rank for rank, level in enumerate(each)) for each in sets])
    within = np.array([[each[-1] <= depth for each in sets] for depth in depths])
    chances = within * maps / (within @ maps)[:, None]
    columns = chances @ _characters(levels, sets)
    weights = np.full(len(depths), 1 / len(depths))
    if not even:
        weights = _weighed(_difficulty(CellTree(cells)), columns, weights)
    return _mixed(levels, sets, weights @ chances)
