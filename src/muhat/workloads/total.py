"""The number of all records as a combination of a workload's answers, where it is one."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.base import Scaled, Workload
from muhat.workloads.identity import Identity
from muhat.workloads.marginals import Marginals
from muhat.workloads.prefix import Prefix
from muhat.workloads.ranges import Ranges

LARGEST_SOLVED = 1 << 20
"""Matrices without structure are solved up to this many entries."""


@singledispatch
def total_weights(workload: Workload) -> Floats | None:
    """a with aᵀW = 1ᵀ, of shape (m,), or None: aᵀ·answers is the number of records.

    >>> from muhat import workloads
    >>> total_weights(workloads.prefix(3))
    array([0., 0., 1.])
    """
    rows, columns = workload.shape
    if rows * columns > LARGEST_SOLVED:
        return None
    transposed = workload.dense().T
    found = np.asarray(np.linalg.lstsq(transposed, np.ones(columns), rcond=None)[0], np.float64)
    return found if np.allclose(transposed @ found, 1, rtol=0, atol=1e-9) else None


@total_weights.register
def _(workload: Identity) -> Floats | None:
    return np.ones(workload.shape[0])


@total_weights.register
def _(workload: Prefix) -> Floats | None:
    return _one(workload, workload.shape[0] - 1)


@total_weights.register
def _(workload: Ranges) -> Floats | None:
    # Rows are ordered by start, then by end: the first start has the whole range last.
    return _one(workload, workload.cells[0] - 1)


@total_weights.register
def _(workload: Marginals) -> Floats | None:
    found = np.zeros(workload.shape[0])
    found[workload.offsets[0] : workload.offsets[1]] = 1
    return found


@total_weights.register
def _(workload: Scaled) -> Floats | None:
    inner = total_weights(workload.inner)
    return None if inner is None else inner / workload.factor


def _one(workload: Workload, row: int) -> Floats:
    found = np.zeros(workload.shape[0])
    found[row] = 1
    return found
