"""The integer answer about one block of a body, and the scale of its noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from muhat._arrays import Floats
from muhat.domains.blocks import Block
from muhat.domains.integers import SumLattice, TableLattice
from muhat.mechanisms.sums.block_query import PartQuery
from muhat.mechanisms.sums.integer_query import fit
from muhat.mechanisms.sums.table_query import fit_table
from muhat.noise.law import ScaleFamily
from muhat.noise.protection import Protection


def block_query(
    block: Block, law: ScaleFamily, protection: Protection, share: Fraction
) -> PartQuery:
    """The integer answer that takes a share of the squared sensitivity."""
    if block.table is not None:
        assert isinstance(block.lattice, TableLattice)
        return fit_table(block.lattice, block.table, law, protection, share)
    assert isinstance(block.lattice, SumLattice)
    steps = [float(step) for step in block.lattice.steps]
    proportions = [step / float(axis) for step, axis in zip(steps, block.axes, strict=False)]
    return fit(block.lattice, proportions, law, protection, share, from_zero=block.from_zero)


def noise_scales(block: Block, query: PartQuery) -> Floats:
    """The scale of the query's noise on each coordinate of the domain, up to 2^54."""
    rows = np.array([float(unit) for unit in query.units()])
    if block.transform is None:
        return rows
    if block.transform.ndim == 1:
        return np.asarray(rows * block.transform)
    return np.asarray(np.linalg.norm(block.transform * rows, axis=1))
