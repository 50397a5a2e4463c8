"""From a strategy to a factorisation: everything that is claimed of it is proved here."""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.verification import Unverified
from muhat.privacy import Neighbors
from muhat.workloads.base import Workload
from muhat.workloads.factorization import Factorization
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.products import Composition
from muhat.workloads.proofs import (
    Inverse,
    of_unit_sensitivity,
    right_inverse,
    standard_deviations,
    value_of,
)

LARGEST_DECODER = 1 << 23
"""A decoder of more entries is kept as the workload after the inverse of the strategy."""

THIN = 1e-6
"""Directions in which a strategy is thinner than this are widened."""

WIDENING = 1e-5
"""ε: the value grows by less than ε²."""


def assemble(
    W: Workload, p: float, neighbors: Neighbors, strategy: Floats, floor: float, method: str
) -> Factorization:
    """The factorisation with the strategy R (k, N) of any scale, whose rows span those of W.

    Under substitution they span W's rows together with the row of ones. Raises Unverified if R
    has no full row rank, or nearly so.
    """
    pairs = neighbors is Neighbors.SUBSTITUTE
    R = strategy - strategy.mean(axis=1)[:, None] if pairs else strategy
    R = of_unit_sensitivity(R, pairs=pairs)
    inverse = _inverse(R, pairs)
    if inverse is None or float(np.linalg.norm(inverse.matrix)) > 1 / THIN:
        R = of_unit_sensitivity(_widened(R, W, pairs), pairs=pairs)
        inverse = right_inverse(R, centred=pairs)
    offset = W.apply(np.ones(W.shape[1])) / W.shape[1] if pairs else None
    deviations = standard_deviations(W, R, inverse, offset)
    value = value_of(deviations, p)
    decoder: LinearMap | Floats = Composition(W, inverse.matrix)
    if decoder.shape[0] * decoder.shape[1] <= LARGEST_DECODER:
        decoder = W.apply(inverse.matrix)
    return Factorization(
        workload=W,
        p=p,
        neighbors=neighbors,
        strategy=R,
        decoder=decoder,
        deviations=lambda: deviations,
        value=value,
        floor=min(floor, value),
        method=method,
        common=None if offset is None else lambda: offset,
    )


def _inverse(R: Floats, pairs: bool) -> Inverse | None:
    try:
        return right_inverse(R, centred=pairs)
    except Unverified:
        return None


def _widened(R: Floats, W: Workload, pairs: bool) -> Floats:
    """R'ᵀR' = RᵀR + ε²·VVᵀ, V an orthonormal basis of the rows of W: condition at most 1/ε.

    No variance grows, and no column by more than ε²; the rows of R' lie where those of W do, which
    those of R may have left in directions that are drowned in rounding.
    """
    k, N = R.shape
    if k == N:
        basis = np.eye(N)
    elif pairs and k == N - 1:
        basis = helmert(N)
    else:
        if W.shape[0] * N > LARGEST_DECODER:
            raise Unverified("the strategy is too ill-conditioned for a proof.")
        rows = W.dense()
        rows = rows - rows.mean(axis=1)[:, None] if pairs else rows
        sizes = np.abs(rows).max(axis=1)
        used = sizes > 0
        basis = np.linalg.svd(rows[used] / sizes[used, None], full_matrices=False)[2][:k]
    wide = np.vstack([R @ basis.T, WIDENING * np.eye(k)])
    return np.asarray(np.linalg.qr(wide, mode="r") @ basis)


def helmert(N: int) -> Floats:
    """Orthonormal rows, orthogonal to the row of ones: (1, …, 1, −k, 0, …), (N − 1, N)."""
    k = np.arange(1, N)[:, None]
    index = np.arange(N)
    rows = np.where(index < k, 1.0, np.where(index == k, -k, 0.0))
    return np.asarray(rows / np.sqrt(k * (k + 1)))


def nothing_to_hide(W: Workload, p: float, neighbors: Neighbors) -> Factorization:
    """Under substitution, all columns equal: the answers are the number of records times one."""
    rows, cells = W.shape
    return Factorization(
        workload=W,
        p=p,
        neighbors=neighbors,
        strategy=np.zeros((0, cells)),
        decoder=np.zeros((rows, 0)),
        deviations=lambda: np.zeros(rows),
        value=0.0,
        floor=0.0,
        method="constant answers",
        common=lambda: W.apply(np.ones(cells)) / cells,
    )
