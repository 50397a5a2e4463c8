"""Which factorisation for which workload: by structure where there is some."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.ellipsoids.finite import check_tolerance
from muhat.ellipsoids.threads import one_thread
from muhat.ellipsoids.verification import Unverified, gamma
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors
from muhat.workloads.apart import factorize_apart
from muhat.workloads.assembly import assemble, helmert, nothing_to_hide
from muhat.workloads.base import Scaled, SumOfWorkloads, Workload
from muhat.workloads.cells import writable
from muhat.workloads.closed_factors import factorize_identity, factorize_parity
from muhat.workloads.dense_factors import LARGEST_PAIRED, SMALL, solve_dense
from muhat.workloads.explicit import LEAST_BESIDE, Explicit
from muhat.workloads.factorization import Factorization
from muhat.workloads.gram_factors import solve_gram
from muhat.workloads.identity import Identity
from muhat.workloads.kron import Kron
from muhat.workloads.linear_map import LARGEST_DENSE
from muhat.workloads.marginals import Marginals
from muhat.workloads.parity import Parity
from muhat.workloads.prefix import Prefix
from muhat.workloads.products import KroneckerMap, kronecker, times
from muhat.workloads.stack import Stack

LONGEST_SOLVED = 1024
"""Longer prefixes have the square-root Toeplitz factors; solving takes cubic time."""

LARGEST_SOLVED = 4096
"""The most cells (or queries, whichever is less) of a workload without structure."""

LARGEST_PAIRED_DENSE = 512
"""Under substitution so few cells are solved from equal weights, Kronecker products as a whole."""

LARGEST_SUM = 1 << 23
"""The most entries of a sum of workloads that is added up before it is factorised."""

LARGEST_TABLE = 1 << 22
"""The table of all k attributes has 2^k residual parts, each a sum over all of its cells. Where
that is more than this it is released cell by cell, with the same error."""

LARGEST_REPEATED = 128
"""The most cells of a workload that is solved a second way if the first did poorly."""

POOR = 1e-3
TOLERANCE = 1e-6


def factorize(
    W: Workload,
    p: float = 2,
    neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
    tol: float = TOLERANCE,
) -> Factorization:
    """The best Gaussian mechanism for a workload: W = L·R, noise on R·x, answers L·(R·x + noise).

    Among all factorisations with unit sensitivity it looks for the least ‖√variances‖_p: the norm
    γ_(p)(W), between `value` and `floor` of the result.

    Args:
        W: a workload of `muhat.workloads`, of shape (m, N).
        p: which norm of the standard deviations is small, from 2 (total squared error) to inf
            (largest error).
        neighbors: "add-remove" (columns of R of length at most 1), or "substitute" (columns of R
            at most 1 apart; the number of records is public).
        tol: the gap value/floor − 1 to reach where solving is iterative. Long prefixes, and
            Kronecker products under substitution, come with the gap that they have.

    A column of zeros is a cell that no query counts: it needs no noise and gets none.

    >>> from muhat.workloads import prefix
    >>> f = factorize(prefix(2))
    >>> f"{f.value:.6f}"  # the golden ratio
    '1.618034'
    >>> np.round(f.decoder @ f.strategy, 12)
    array([[1., 0.],
           [1., 1.]])
    """
    if not isinstance(W, Workload):
        raise InvalidInput(
            f"W must be a workload; got {type(W).__name__}. Wrap a matrix in workloads.matrix."
        )
    p, tol = _check.norm_order(p), check_tolerance(tol)
    with one_thread():
        return _factorize(W, p, Neighbors.parse(neighbors), tol)


def _factorize(W: Workload, p: float, neighbors: Neighbors, tol: float) -> Factorization:
    from muhat.workloads.residuals import (
        factorize_marginal_stack,
        factorize_marginals,
        is_marginal,
    )
    from muhat.workloads.toeplitz import factorize_prefix

    add_remove = neighbors is Neighbors.ADD_REMOVE
    if not add_remove and W.shape[1] == 1:
        return nothing_to_hide(W, p, neighbors)
    if isinstance(W, Identity):
        return factorize_identity(W, p, neighbors)
    if isinstance(W, Parity):
        return factorize_parity(W, p, neighbors)
    if isinstance(W, Marginals):
        attributes = sum(size > 1 for size in W.cells)
        if len(W.sets) == 1 and W.shape[0] == W.shape[1] > LARGEST_TABLE >> attributes:
            return replace(factorize_identity(Identity(W.cells), p, neighbors), workload=W)
        return factorize_marginals(W, p, neighbors, tol)
    if isinstance(W, Stack | Scaled) and is_marginal(W):
        return factorize_marginal_stack(W, p, neighbors, tol)
    if isinstance(W, Scaled):
        return _scaled(W, _factorize(W.inner, p, neighbors, tol))
    if isinstance(W, Prefix) and W.n > LONGEST_SOLVED:
        return _of_pairs(W, factorize_prefix(W, p), neighbors, tol)
    if isinstance(W, Kron):
        if not add_remove and W.shape[1] <= LARGEST_PAIRED_DENSE:
            return _solved(W, p, neighbors, tol)
        return _of_pairs(W, _factorize_kron(W, p, tol), neighbors, tol)
    if isinstance(W, SumOfWorkloads) and W.shape[0] * W.shape[1] <= LARGEST_SUM:
        # The parts may cancel, and then only their sum, entry by entry, is as exact as floats.
        return replace(_factorize(Explicit(W.dense(), W.cells), p, neighbors, tol), workload=W)
    if not add_remove and min(W.shape) > LARGEST_PAIRED:
        found = _solved_by_gram(W, p, neighbors, tol)
        return found or factorize_apart(_solved(W, p, Neighbors.ADD_REMOVE, tol))
    return _solved(W, p, neighbors, tol)


def _of_pairs(W: Workload, f: Factorization, neighbors: Neighbors, tol: float) -> Factorization:
    """Of add/remove factors from a formula f, or, under substitution, the best that is found."""
    if neighbors is Neighbors.ADD_REMOVE:
        return f
    with np.errstate(all="ignore"):
        return _better(factorize_apart(f), _solved_by_gram(W, f.p, neighbors, tol))


def _solved(W: Workload, p: float, neighbors: Neighbors, tol: float) -> Factorization:
    """The optimum by a solver, in the smaller of the two dimensions."""
    rows, cells = W.shape
    if min(rows, cells) > LARGEST_SOLVED:
        raise InvalidInput(
            f"a workload of {rows:,} × {cells:,} without structure is too large to factorise; "
            f"either side must be at most {LARGEST_SOLVED:,}. Kronecker products, marginals, "
            "prefix sums, histograms and parities may be of any size."
        )
    _refuse_uneven(W)
    with np.errstate(all="ignore"):
        many = rows >= cells > LARGEST_PAIRED_DENSE and neighbors is Neighbors.SUBSTITUTE
        totals = isinstance(W, Prefix) and p == 2 and cells > SMALL
        by_gram = many or totals or rows > cells
        found = _solved_by_gram(W, p, neighbors, tol) if by_gram else None
        small = cells <= LARGEST_REPEATED and rows * cells <= LARGEST_REPEATED**3
        if found is None or (small and found.gap > max(tol, POOR)):
            found = _better(_solved_dense(W, p, neighbors, tol), found)
        if found.gap > POOR and cells <= LARGEST_PAIRED:
            # Ill-conditioned beyond what floats can do; every cell by itself always serves.
            own = np.eye(cells) if neighbors is Neighbors.ADD_REMOVE else helmert(cells)
            cell_by_cell = assemble(W, p, neighbors, own, found.floor, "the cells themselves")
            found = _better(found, cell_by_cell)
        return found


def _refuse_uneven(W: Workload) -> None:
    """Squares of sizes that are farther apart than this leave the floats."""
    for what, lengths in (("queries", W.row_norms()), ("cells", W.column_norms())):
        used = lengths[lengths > 0]
        if not used.size or used.min() < LEAST_BESIDE * used.max():
            raise InvalidInput(
                f"the {what} of a workload must not be more than 10^100 times larger than others. "
                "Leave the smallest out, or measure them in another unit."
            )


def _solved_by_gram(
    W: Workload, p: float, neighbors: Neighbors, tol: float
) -> Factorization | None:
    pairs = neighbors is Neighbors.SUBSTITUTE
    rows, cells = W.shape
    # Weights of so many queries beside those of so many pairs take more steps than there is time.
    slow = pairs and cells > LARGEST_PAIRED and p > 2 and rows > cells
    if cells > LARGEST_SOLVED or slow:
        return None
    found = solve_gram(W, p, tol, pairs=pairs)
    if found is None:
        return None
    try:
        return assemble(W, p, neighbors, found.strategy, found.floor, found.method)
    except Unverified:
        return None


def _solved_dense(W: Workload, p: float, neighbors: Neighbors, tol: float) -> Factorization:
    rows, cells = W.shape
    if rows * cells > LARGEST_DENSE:
        raise InvalidInput(
            f"a workload of {rows:,} × {cells:,} of deficient rank is too large to factorise."
        )
    matrix = W.dense()
    unit = float(np.ldexp(1.0, int(np.frexp(np.abs(matrix).max())[1])))
    even = Explicit(matrix / unit, W.cells)
    found = solve_dense(even.matrix, p, tol, pairs=neighbors is Neighbors.SUBSTITUTE)
    if found is None:
        return nothing_to_hide(W, p, neighbors)
    try:
        f = assemble(even, p, neighbors, found.strategy, found.floor, found.method)
    except Unverified:
        own = np.eye(cells) if neighbors is Neighbors.ADD_REMOVE else helmert(cells)
        f = assemble(even, p, neighbors, own, found.floor, "the cells themselves")
    return _multiplied(W, unit, f)


def _better(first: Factorization, second: Factorization | None) -> Factorization:
    """The smaller value with the larger floor, of two factorisations of one workload."""
    if second is None:
        return first
    best = first if first.value <= second.value else second
    return replace(best, floor=min(best.value, max(first.floor, second.floor)))


def _scaled(W: Scaled, f: Factorization) -> Factorization:
    return _multiplied(W, W.factor, f)


def _multiplied(W: Workload, factor: float, f: Factorization) -> Factorization:
    """The factorisation of W = factor·(workload of f)."""
    size = abs(factor)
    up, down = 1 + 2.0**-51, 1 - 2.0**-51
    exact = float(np.frexp(size)[0]) == 0.5
    up, down = (1.0, 1.0) if exact else (up, down)
    offset = f.offset
    return Factorization(
        workload=W,
        p=f.p,
        neighbors=f.neighbors,
        strategy=f.strategy,
        decoder=times(factor, f.decoder) if factor != 1 else f.decoder,
        deviations=lambda: f.standard_deviations * (size * up),
        value=f.value * size * up,
        floor=f.floor * size * down,
        method=f.method,
        common=None if offset is None else lambda: offset * factor,
    )


def _factorize_kron(W: Kron, p: float, tol: float) -> Factorization:
    """The product of the factors' own factorisations under add/remove; gaps add up.

    γ_(p)(A ⊗ B) = γ_(p)(A)·γ_(p)(B). Strategies multiply: columns of R ⊗ S are products of columns,
    rows of the decoder products of rows. So do dual weights, because the nuclear norm is
    multiplicative. Proof: docs/proofs/queries.md. Equal factors are solved once.
    """
    least = max(tol / len(W.factors), 1e-10)
    known: dict[Workload, Factorization] = {}
    for factor in W.factors:
        if factor not in known:
            known[factor] = _factorize(factor, p, Neighbors.ADD_REMOVE, least)
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
