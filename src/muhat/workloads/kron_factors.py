"""Factorisations of Kronecker products: γ_(p)(A ⊗ B) = γ_(p)(A)·γ_(p)(B), factor by factor.

Strategies multiply: columns of R ⊗ S are products of columns, rows of the decoder products of rows.
So do dual weights, because the nuclear norm is multiplicative. Proof: docs/proofs/queries.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from muhat._arrays import Floats
from muhat.ellipsoids.verification import gamma
from muhat.privacy import Neighbors
from muhat.workloads.base import Workload
from muhat.workloads.cells import writable
from muhat.workloads.factorization import Factorization
from muhat.workloads.kron import Kron
from muhat.workloads.products import KroneckerMap, kronecker


def factorize_kron(
    W: Kron, p: float, tol: float, solve: Callable[[Workload, float, float], Factorization]
) -> Factorization:
    """The product of the factors' own factorisations under add/remove; gaps add up.

    `solve(factor, p, tol)` factorises one factor; equal factors are solved once.
    """
    known: dict[Workload, Factorization] = {}
    for factor in W.factors:
        if factor not in known:
            known[factor] = solve(factor, p, tol / len(W.factors))
    parts = [known[factor] for factor in W.factors]
    roundings = 2 * len(parts)
    value = math.prod(part.value for part in parts) * (1 + gamma(roundings))
    floor = math.prod(part.floor for part in parts) * (1 - gamma(roundings))

    def deviations() -> Floats:
        """The products of the factors' standard deviations, rounded up."""
        writable("the standard deviations", W.shape[0])
        first, *others = (part.standard_deviations for part in parts)
        return kronecker([first * (1 + gamma(roundings)), *others])

    return Factorization(
        workload=W,
        p=p,
        neighbors=Neighbors.ADD_REMOVE,
        strategy=KroneckerMap([part.strategy for part in parts]),
        decoder=KroneckerMap([part.decoder for part in parts]),
        deviations=deviations,
        value=value,
        floor=min(floor, value),
        method="product of " + ", ".join(dict.fromkeys(part.method for part in parts)),
    )
