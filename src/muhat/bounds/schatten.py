"""The Schatten bound on the factorisation norm: γ_(p)(A) ≥ m^{1/p−1/2}·‖A‖₁/√N.

‖A‖₁ is the sum of the singular values. It is the dual of γ_(p) at equal weights (Zou, Liu and
Upadhyay 2025, Lemma 2.10, after Henzinger, Upadhyay and Upadhyay 2023), and equals γ_(2) where
all cells look alike: identity, parity, marginals. Known singular values make it cheap at any size.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from muhat import _check
from muhat.workloads import (
    Identity,
    Kron,
    Marginals,
    Parity,
    Prefix,
    Ranges,
    Scaled,
    Stack,
    Workload,
)

LARGEST_SUM = 1 << 22
"""Up to here singular values are added one by one."""

LARGEST_MATRIX = 1 << 22
LARGEST_SIDE = 2048
LARGEST_LATTICE = 1 << 20

_DOWN = 1 - 1e-11


def schatten_floor(W: Workload, p: float = 2) -> float | None:
    """A certified lower bound on γ_(p) for add/remove, or None where it is not computed.

    >>> from muhat.workloads import parity
    >>> round(schatten_floor(parity(8, 2)), 6)  # exactly m
    28.0
    """
    p = _check.norm_order(p)
    norm = nuclear_norm(W)
    if norm is not None:
        rows, columns = W.shape
        return math.exp((1 / p - 0.5) * math.log(rows)) * norm / math.sqrt(columns) * _DOWN
    if W.shape[0] * W.shape[1] <= LARGEST_MATRIX and min(W.shape) <= LARGEST_SIDE:
        return _dense_floor(W, p)
    if isinstance(W, Scaled):
        inner = schatten_floor(W.inner, p)
        return None if inner is None else abs(W.factor) * inner * _DOWN
    if isinstance(W, Stack):
        # Fewer rows have a smaller norm.
        floors = [schatten_floor(part, p) for part in W.parts]
        known = [w * f for w, f in zip(W.weights, floors, strict=True) if f is not None]
        return max(known) * _DOWN if known else None
    return None


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


def _dense_floor(W: Workload, p: float) -> float:
    from muhat.ellipsoids.threads import one_thread
    from muhat.ellipsoids.verification import dual_floor

    matrix = W.dense()
    scale = float(np.max(np.abs(matrix)))
    rows, columns = matrix.shape
    with one_thread():
        floor = dual_floor(
            matrix / scale, np.full(columns, 1 / columns), np.ones(rows), p, roundings=2
        )
    return floor * scale * (1 - 1e-15)
