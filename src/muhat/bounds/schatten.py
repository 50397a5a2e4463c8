"""The Schatten bound on the factorisation norm: γ_(p)(A) ≥ m^{1/p−1/2}·‖A‖₁/√N.

‖A‖₁ is the sum of the singular values. It is the dual of γ_(p) at equal weights (Zou, Liu and
Upadhyay 2025, Lemma 2.10, after Henzinger, Upadhyay and Upadhyay 2023), and equals γ_(2) where
all cells look alike: identity, parity, marginals. Known singular values make it cheap at any size.
"""

from __future__ import annotations

import math

import numpy as np

from muhat import _check
from muhat.workloads import Scaled, Stack, Workload
from muhat.workloads.nuclear import nuclear_norm

LARGEST_MATRIX = 1 << 22
LARGEST_SIDE = 2048

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
