"""Factorisations that symmetry decides: histograms and parities. Proofs: docs/proofs/queries.md."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.verification import FUNCTION_ERROR
from muhat.privacy import Neighbors
from muhat.workloads.assembly import assemble, helmert, nothing_to_hide
from muhat.workloads.base import Scaled, Workload
from muhat.workloads.cells import writable
from muhat.workloads.factorization import Factorization
from muhat.workloads.identity import Identity
from muhat.workloads.parity import Parity

LARGEST_HELMERT = 1024
"""Larger histograms under substitution keep one noise variable a cell, for 1/(2N) more error."""

UP, DOWN = 1 + FUNCTION_ERROR, 1 - FUNCTION_ERROR


def factorize_identity(W: Identity, p: float, neighbors: Neighbors) -> Factorization:
    """Each cell by itself; under substitution, in the N − 1 dimensions that the total leaves.

    Add/remove: γ_(p) = N^{1/p}. Substitution: N^{1/p−½}·√(2(N − 1)): cells are √2 apart, and
    permutations of the cells leave nothing to choose.
    """
    N = W.shape[1]
    if neighbors is Neighbors.ADD_REMOVE:
        return _divided(W, p, neighbors, 1, _power(N, p) * DOWN)
    if N == 1:
        return nothing_to_hide(W, p, neighbors)
    floor = _power(N, p) * math.sqrt(2 * (1 - 1 / N)) * DOWN
    if N <= LARGEST_HELMERT:
        return assemble(W, p, neighbors, helmert(N), floor, "closed form")
    return _divided(W, p, neighbors, 2, floor)


def factorize_parity(W: Parity, p: float, neighbors: Neighbors) -> Factorization:
    """The parities themselves, divided by the length D of a column or difference of two.

    Flipping bits and exchanging them leave only multiples of the identity for M: γ_(p) = m^{1/p}·D,
    with D = √m under add/remove.

    >>> from muhat.workloads import parity
    >>> factorize_parity(parity(8, 2), 2.0, Neighbors.ADD_REMOVE).value.__round__(9)
    28.0
    """
    rows = W.shape[0]
    square = rows if neighbors is Neighbors.ADD_REMOVE else farthest_square(W)
    if square == 0:
        return nothing_to_hide(W, p, neighbors)
    return _divided(W, p, neighbors, square, _power(rows, p) * math.sqrt(square) * DOWN)


def _divided(
    W: Workload, p: float, neighbors: Neighbors, square: int, floor: float
) -> Factorization:
    """R = W/√square: every answer has a noise variable of its own, of deviation √square."""
    rows = W.shape[0]
    own = Identity(W.cells) if isinstance(W, Identity) else Identity(rows)
    strategy: Workload = W
    decoder: Workload = own
    deviation = 1.0
    if square != 1:
        part = 1 / math.sqrt(square)
        while Fraction(part) ** 2 * square > 1:
            part = math.nextafter(part, 0.0)
        strategy, decoder = Scaled(part, W), Scaled(1 / part, own)
        deviation = math.nextafter(1 / part, math.inf)
    value = _power(rows, p) * deviation * UP

    def deviations() -> Floats:
        writable("the standard deviations", rows)
        return np.full(rows, deviation)

    return Factorization(
        workload=W,
        p=p,
        neighbors=neighbors,
        strategy=strategy,
        decoder=decoder,
        deviations=deviations,
        value=value,
        floor=min(floor, value),
        method="closed form",
    )


def farthest_square(W: Parity) -> int:
    """The largest squared distance of two columns: 4 for every set that t flipped bits change."""
    dim, width = W.dim, W.width
    odd = range(1, width + 1, 2)
    return max(
        4 * sum(math.comb(flipped, k) * math.comb(dim - flipped, width - k) for k in odd)
        for flipped in range(1, dim + 1)
    )


def _power(count: int, p: float) -> float:
    """count^{1/p}."""
    return 1.0 if math.isinf(p) else float(count ** (1 / p))
