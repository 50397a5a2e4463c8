"""Sums of singular values, where a workload's structure tells them."""

from __future__ import annotations

import itertools
import math

import numpy as np

from muhat.workloads.base import Scaled, Workload
from muhat.workloads.identity import Identity
from muhat.workloads.kron import Kron
from muhat.workloads.marginals import Marginals
from muhat.workloads.parity import Parity
from muhat.workloads.prefix import Prefix
from muhat.workloads.ranges import Ranges

LARGEST_SUM = 1 << 22
"""Up to here singular values are added one by one."""

LARGEST_LATTICE = 1 << 20


def nuclear_norm(W: Workload) -> float | None:
    """‖W‖₁ from known singular values, accurate to a part in 10¹², or None."""
    rows, columns = W.shape
    if isinstance(W, Identity):
        return float(rows)
    if isinstance(W, Parity):
        return rows * math.sqrt(columns)
    if isinstance(W, Prefix):
        return _inverse_sines(W.n, 2 * W.n + 1)
    if isinstance(W, Ranges):
        return math.sqrt(W.n + 1) * _inverse_sines(W.n, W.n + 1, odd=False)
    if isinstance(W, Marginals):
        return _marginals(W)
    if isinstance(W, Scaled):
        inner = nuclear_norm(W.inner)
        return None if inner is None else abs(W.factor) * inner
    if isinstance(W, Kron):
        norms = [nuclear_norm(factor) for factor in W.factors]
        known = [norm for norm in norms if norm is not None]
        return math.prod(known) if len(known) == len(norms) else None
    return None


def _inverse_sines(n: int, parts: int, *, odd: bool = True) -> float:
    """Σ_{j≤n} 1/(2 sin θ_j), θ_j = (2j−1)π/(2·parts) if odd, else jπ/(2·parts).

    Beyond LARGEST_SUM terms from below: 1/sin θ ≥ 1/θ, and the sum of 1/θ_j by its integral.
    """
    number = min(n, LARGEST_SUM)
    j = np.arange(1, number + 1, dtype=np.float64)
    angles = (2 * j - 1 if odd else j) * (math.pi / (2 * parts))
    total = float(np.sum(0.5 / np.sin(angles)))
    if n > number:
        rest = (
            math.log((2 * n + 1) / (2 * number + 1)) / 2
            if odd
            else math.log((n + 1) / (number + 1))
        )
        total += parts / math.pi * rest
    return total


def _marginals(W: Marginals) -> float | None:
    """The eigenvalues of WᵀW: Σ of N/N_S over S ⊇ T, Π_{i∈T}(n_i − 1) times, for every T."""
    if sum(1 << len(axes) for axes in W.sets) > LARGEST_LATTICE:
        return None
    eigenvalues: dict[tuple[int, ...], int] = {}
    for axes, shape in zip(W.sets, W.table_shapes, strict=True):
        share = W.shape[1] // math.prod(shape)
        for order in range(len(axes) + 1):
            for inner in itertools.combinations(axes, order):
                eigenvalues[inner] = eigenvalues.get(inner, 0) + share
    return math.fsum(
        math.prod(W.cells[axis] - 1 for axis in axes) * math.sqrt(eigenvalue)
        for axes, eigenvalue in eigenvalues.items()
    )
