"""Where to begin with the weights of pairs of many cells: at those of a coarser histogram.

Neighbouring cells are pooled, their pools are solved for, and the weight of a pair of pools is
spread over its pairs of cells. What that leaves out of the floor is of second order, so that a few
steps remain for thousands of cells. Nothing is proved here: any weights give a floor.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.ellipsoids.moment_spectra import ManyRows, Pairs, Rows, TotalOfRows
from muhat.ellipsoids.multiplicative import ascend
from muhat.workloads.base import Workload

Start = tuple[Floats, Floats]
"""Weights of the pairs i < j of cells, and of the queries."""

FEWEST = 256
"""So many cells are solved for from equal weights."""

POOLED = 4
STEPS, NEAR = 12, 1e-3
LARGEST_BLOCK = 1 << 24
"""The most entries of a matrix of answers to pools, where the queries have weights."""


def pooled_start(W: Workload, gram: Floats, p: float) -> Start | None:
    """Weights to begin with for the pairs of cells of W; None where equal ones will do."""
    pools = [np.arange(W.shape[1])]
    shape = W.cells
    while math.prod(shape) > FEWEST:
        inside, shape = _quarter(shape)
        pools.append(inside[pools[-1]])
    if len(pools) == 1:
        return None
    if p > 2 and W.shape[0] * (int(pools[1].max()) + 1) > LARGEST_BLOCK:
        return None
    start: Start | None = None
    for finer, labels in zip(pools[-2::-1], pools[:0:-1], strict=True):
        try:
            start = _spread(_solved(W, gram, p, labels, start), finer, labels)
        except (FloatingPointError, np.linalg.LinAlgError):
            start = None
    return start


def _quarter(shape: tuple[int, ...]) -> tuple[NDArray[np.intp], tuple[int, ...]]:
    """The pool of every cell, and the shape of the pools: the longest axes are halved first."""
    divided, small = [1] * len(shape), list(shape)
    while math.prod(small) * POOLED > math.prod(shape) + POOLED and max(small) > 1:
        axis = small.index(max(small))
        divided[axis] *= 2
        small[axis] = -(-shape[axis] // divided[axis])
    axes = np.meshgrid(
        *(np.arange(size) // by for size, by in zip(shape, divided, strict=True)), indexing="ij"
    )
    return np.ravel_multi_index([axis.ravel() for axis in axes], small), tuple(small)


def _solved(
    W: Workload, gram: Floats, p: float, labels: NDArray[np.intp], start: Start | None
) -> Start:
    """The weights of pairs of pools, and of the queries."""
    sizes = np.bincount(labels)
    means = np.zeros((len(labels), len(sizes)))
    means[np.arange(len(labels)), labels] = 1 / sizes[labels]
    rows: Rows
    if p == 2:
        rows = TotalOfRows(np.asarray(np.linalg.cholesky(means.T @ gram @ means).T, np.float64))
    else:
        block = W.apply(means)
        rows = ManyRows(
            len(block), lambda u: (block.T * u) @ block, lambda X: np.sum((block @ X) ** 2, axis=1)
        )
    count = len(sizes)
    ascent = ascend(Pairs(count), rows, count - 1, p, NEAR, limit=STEPS, start=start)
    u = ascent.row_weights
    if len(u) == len(labels):
        # Pools do not tell their queries apart, if there is one for every cell.
        u = (np.bincount(labels, u) / sizes)[labels]
    return ascent.weights, u


def _spread(start: Start, finer: NDArray[np.intp], labels: NDArray[np.intp]) -> Start:
    """The weight of a pair of pools, in equal parts, on the pairs of finer pools within."""
    weights, u = start
    inside = np.zeros(int(finer.max()) + 1, dtype=np.intp)
    inside[finer] = labels
    sizes = np.bincount(inside)
    table = np.zeros((len(sizes), len(sizes)))
    table[np.triu_indices(len(sizes), 1)] = weights
    table = (table + table.T) / sizes[:, None] / sizes
    return np.asarray(table[np.ix_(inside, inside)][np.triu_indices(len(inside), 1)]), u
