"""Strategies for records that are replaced and may be in no cell.

A record without a cell is one in a further cell that no query asks about: W′ = [W, 0]. With
W′ = L·R′ + o·1ᵀ, columns of R′ at most 1 apart, and r the last column of R′, 0 = L·r + o, hence

    W = L·R,   R = (the other columns of R′) − r·1ᵀ,

whose columns are at most 1 long and at most 1 apart: nothing has to be known of how many records
have a cell.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats
from muhat.privacy import Neighbors
from muhat.workloads.base import Workload
from muhat.workloads.explicit import Explicit
from muhat.workloads.factorization import Factorization
from muhat.workloads.factorize import factorize
from muhat.workloads.linear_map import LinearMap

MOST_CELLS = 128
"""Without structure a solver takes seconds here, and minutes a little beyond."""

MOST_ENTRIES = 1 << 18


def factorize_with_absent(workload: Workload, p: float, tol: float) -> Factorization | None:
    """The best strategy, as one for adding and removing records; None if it takes too long.

    >>> from muhat import workloads
    >>> round(factorize_with_absent(workloads.prefix(5), 2, 1e-6).value, 3)
    3.258
    """
    rows, cells = workload.shape
    if cells > MOST_CELLS or rows * cells > MOST_ENTRIES:
        return None
    extended = Explicit(np.hstack([workload.dense(), np.zeros((rows, 1))]))
    found = factorize(extended, p=p, neighbors=Neighbors.SUBSTITUTE, tol=tol)
    strategy = _dense(found.strategy)
    return Factorization(
        workload=workload,
        p=p,
        neighbors=Neighbors.ADD_REMOVE,
        strategy=np.asarray(strategy[:, :-1] - strategy[:, -1:]),
        decoder=_dense(found.decoder),
        deviations=lambda: found.standard_deviations,
        value=found.value,
        floor=found.floor,
        method=found.method,
    )


def _dense(matrix: LinearMap | Floats) -> Floats:
    return matrix.dense() if isinstance(matrix, LinearMap) else matrix
