"""Substitution where the best is out of reach: the add/remove strategy, and how far its columns are
apart.

Every strategy of add/remove serves substitution too, divided by the largest distance D of two
columns: at most √2 if no two columns have a negative inner product, at most 2 in any case. The
floor comes from uniform weights on all pairs (`moment_floors.spread_floor`).
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.moment_floors import gram_floor
from muhat.ellipsoids.verification import UNIT, gamma
from muhat.privacy import Neighbors
from muhat.workloads.base import Scaled, Workload
from muhat.workloads.cells import writable
from muhat.workloads.explicit import Explicit
from muhat.workloads.factorization import Factorization
from muhat.workloads.gram_factors import gram_roundings
from muhat.workloads.identity import Identity
from muhat.workloads.kron import Kron
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.nuclear import nuclear_norm
from muhat.workloads.prefix import Prefix
from muhat.workloads.products import KroneckerMap, times
from muhat.workloads.proofs import sensitivity
from muhat.workloads.ranges import Ranges

LARGEST_GRAM = 2048
POSITIVE = (Prefix, Ranges, Identity)
"""Workloads whose add/remove strategies from a formula have no negative entries."""


def factorize_apart(f: Factorization) -> Factorization:
    """The substitution factorisation with the strategy of an add/remove one."""
    W, p = f.workload, f.p
    apart = column_distance(f.strategy, nonnegative=isinstance(W, POSITIVE))
    value = f.value * apart * (1 + 4 * UNIT)
    return Factorization(
        workload=W,
        p=p,
        neighbors=Neighbors.SUBSTITUTE,
        strategy=times((1 - 4 * UNIT) / apart, f.strategy),
        decoder=times(apart * (1 + 4 * UNIT), f.decoder),
        deviations=lambda: f.standard_deviations * (apart * (1 + 16 * UNIT)),
        value=value * (1 + 16 * UNIT),
        floor=min(value, uniform_floor(W, p)),
        method=f.method + ", columns apart",
    )


def column_distance(strategy: LinearMap | Floats, *, nonnegative: bool = False) -> float:
    """A proved bound on the distance of two columns of a strategy of unit columns."""
    if isinstance(strategy, np.ndarray):
        return sensitivity(strategy, pairs=True)
    if isinstance(strategy, KroneckerMap):
        low, high = 1.0, 1.0
        for factor in strategy.factors:
            least, most = _inner_products(factor)
            low, high = min(low * least, low * most, high * least), high * most
        return math.sqrt(2 - 2 * max(low - 1e-12, -1.0)) * (1 + 4 * UNIT)
    return (math.sqrt(2) if nonnegative else 2.0) * (1 + 4 * UNIT)


def _inner_products(factor: LinearMap | Floats) -> tuple[float, float]:
    """Bounds on ⟨r_i, r_j⟩ over all columns, i = j included; columns are at most 1 long."""
    if isinstance(factor, Identity):
        return 0.0, 1.0
    if isinstance(factor, np.ndarray):
        gram = factor.T @ factor
        return float(gram.min()) - gamma(len(factor) + 4), 1.0
    return -1.0, 1.0


def uniform_floor(W: Workload, p: float) -> float:
    """Γ_p of the differences of columns from equal weights on all pairs and rows, rounded down.

    √(2N/(N − 1))·(‖W‖_* − ‖W·1‖/√N)/√N·m^{1/p − ½}; 0 where ‖W‖_* is not known.
    """
    m, N = W.shape
    if N == 1:
        return 0.0
    nuclear = nuclear_floor(W)
    center = total_length(W) / math.sqrt(N)
    pairs = math.sqrt(2 / (N - 1)) * (nuclear - center)
    power: float = (0.0 if math.isinf(p) else 1 / p) - 0.5
    return max(0.0, pairs * math.pow(m, power) * (1 - 1e-12))


def nuclear_floor(W: Workload) -> float:
    """At most ‖W‖_*, without building W."""
    known = nuclear_norm(W)
    if known is not None:
        return known * (1 - 1e-11)
    if isinstance(W, Kron):
        return math.prod(nuclear_floor(factor) for factor in W.factors) * (1 - 1e-14)
    if isinstance(W, Scaled):
        return abs(W.factor) * nuclear_floor(W.inner) * (1 - 4 * UNIT)
    n = W.shape[1]
    if n <= LARGEST_GRAM:
        return gram_floor(W.gram(), np.ones(n), gram_roundings(W))
    if isinstance(W, Explicit) and W.shape[0] <= LARGEST_GRAM:
        return gram_floor(W.matrix @ W.matrix.T, np.ones(W.shape[0]), n + 2)
    return 0.0


def total_length(W: Workload) -> float:
    """At least ‖W·1‖."""
    if isinstance(W, Kron):
        return math.prod(total_length(factor) for factor in W.factors) * (1 + 1e-14)
    writable("the histogram", W.shape[1])
    ones = np.ones(W.shape[1])
    answers = W.apply(ones)
    size = float(W.row_norms().max()) * math.sqrt(W.shape[1] * len(answers))
    return float(np.linalg.norm(answers)) * (1 + gamma(len(answers) + 8)) + UNIT * size
