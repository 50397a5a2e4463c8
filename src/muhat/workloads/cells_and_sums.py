"""Strategies for pure privacy: every cell, and a few weighted sums of cells beside them.

One person moves a strategy A by a column, in the ℓ₁ norm for Laplace noise. Of all strategies

    A = [D; S],   D diagonal and positive, S ≥ 0 of p rows, every column of ℓ₁ norm 1,

that with the least total squared error of W·A⁺·noise is looked for by a quasi-Newton method, from
sums of p blocks of cells: the p-identity strategies of McKenna, Miklau, Hay and Machanavajjhala
(2018). What is found need not be the best: it becomes whole numbers whose columns add up to 2^20
exactly, and errors are those of these numbers. Nothing of order N² is formed but the Gram matrix of
a workload, and for long prefixes not even that. Proof: docs/proofs/queries.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.domains.norms import p_norm
from muhat.ellipsoids.threads import one_thread
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors
from muhat.workloads.base import Scaled, Workload
from muhat.workloads.factorization import Factorization
from muhat.workloads.linear_map import BLOCK, LARGEST_DENSE, LinearMap
from muhat.workloads.prefix import Prefix
from muhat.workloads.products import Multiple, times

LEVEL = 1 << 20
"""What the entries of every column add up to."""

FEWEST_CELLS = 4
LARGEST_SOLVED = 1024
"""The most cells of a workload, or blocks of cells of a long prefix, whose sums are looked for."""

MOST_SUMS = 32
CELLS_A_SUM = 16
STEPS = 200
NEARLY = 1e-7
"""Steps end with so small a gain, as a fraction of the squared error."""

_SAFE = 1 + 1e-9


class CellsAndSums(LinearMap):
    """The matrix [D; S] of whole numbers: `own`, of shape (N,), and `sums`, of shape (p, N).

    >>> strategy = CellsAndSums(np.array([3, 2]), np.array([[1, 2]]))
    >>> strategy.dense()
    array([[3., 0.],
           [0., 2.],
           [1., 2.]])
    >>> np.round(strategy.undo(strategy @ [5.0, 7.0]), 12)
    array([5., 7.])
    """

    def __init__(self, own: NDArray[np.int64], sums: NDArray[np.int64]) -> None:
        self.own, self.sums = own, sums
        self.shape = (len(own) + len(sums), len(own))
        self._beside = sums / own
        self._core = np.linalg.inv(np.eye(len(sums)) + self._beside @ self._beside.T)

    def apply(self, x: Floats) -> Floats:
        return np.concatenate([(self.own * x.T).T, self.sums @ x])

    def transposed(self, y: Floats) -> Floats:
        cells = len(self.own)
        return np.asarray((self.own * y[:cells].T).T + self.sums.T @ y[cells:])

    def undo(self, y: Floats) -> Floats:
        """A⁺·y: with T = S·D⁻¹ it is D⁻¹(a + Tᵀ(I + TTᵀ)⁻¹(b − T·a)) for y = (a, b)."""
        own, beside = y[: len(self.own)], y[len(self.own) :]
        mended = own + self._beside.T @ (self._core @ (beside - self._beside @ own))
        return np.asarray((mended.T / self.own).T)

    def undo_transposed(self, x: Floats) -> Floats:
        """(A⁺)ᵀ·x."""
        own = (x.T / self.own).T
        beside = self._core @ (self._beside @ own)
        return np.concatenate([own - self._beside.T @ beside, beside])

    def __repr__(self) -> str:
        return f"<{self.shape[1]:,} cells and {len(self.sums)} sums of them>"


class Decoded(LinearMap):
    """W·A⁺: what the noise on a strategy is on the answers.

    With M = (AᵀA)⁻¹, a number of cells' records that is `public` mends them along g = M·1/(1ᵀM·1):
    W·(I − g·1ᵀ)·A⁺.
    """

    def __init__(self, workload: Workload, strategy: CellsAndSums, *, public: bool) -> None:
        self.workload, self.strategy = workload, strategy
        self.shape = (workload.shape[0], strategy.shape[0])
        along = strategy.undo(strategy.undo_transposed(np.ones(strategy.shape[1])))
        self._mended = along / along.sum() if public else np.zeros_like(along)
        self._gained = float(along.sum()) if public else 0.0

    @property
    def along(self) -> Floats:
        """W·g: what a record that is not among the cells adds to the answers, of shape (m,)."""
        return self.workload.apply(self._mended)

    def apply(self, x: Floats) -> Floats:
        cells = self.strategy.undo(x)
        return self.workload.apply(cells - np.multiply.outer(self._mended, cells.sum(axis=0)))

    def transposed(self, y: Floats) -> Floats:
        cells = self.workload.transposed(y)
        return self.strategy.undo_transposed(cells - self._mended @ cells)

    def row_norms(self) -> Floats:
        """√diag(W·M·Wᵀ), M = D⁻¹(I − Tᵀ(I + TTᵀ)⁻¹T)D⁻¹, less what g takes off; rounded up."""
        strategy = self.strategy
        alone = _squares_times(self.workload, 1 / strategy.own.astype(np.float64) ** 2)
        both = self.workload.apply(np.ascontiguousarray((strategy._beside / strategy.own).T))
        known = np.einsum("ij,ij->i", both @ strategy._core, both)
        known += self._gained * self.along**2
        left = alone - known
        # Of an answer that the number of records tells only rounding is left.
        return np.sqrt(np.where(left > alone * 2.0**-40, left + 1e-14 * alone, 0.0))

    def __repr__(self) -> str:
        return f"<{self.workload!r} from {self.strategy!r}>"


def _squares_times(workload: Workload, weights: Floats) -> Floats:
    """(W∘W)·weights, W∘W the squares of all entries."""
    if isinstance(workload, Scaled):
        return np.asarray(workload.factor**2 * _squares_times(workload.inner, weights))
    if isinstance(workload, Prefix):
        return workload.apply(weights)
    rows, cells = workload.shape
    found = np.zeros(rows)
    width = max(1, BLOCK // rows)
    for start in range(0, cells, width):
        units = np.eye(cells, min(width, cells - start), -start)
        block = workload.apply(units)
        found += (block * block) @ weights[start : start + width]
    return found


def with_sums(best: Factorization) -> Factorization | None:
    """The workload of a factorisation answered from cells and sums; None if it is not for that.

    >>> from muhat.workloads import prefix
    >>> from muhat.workloads.factorize import factorize
    >>> found = with_sums(factorize(prefix(64)))
    >>> round(math.sqrt(2) * found.value, 1)  # the noise at ε = 1; √(64·65) on every cell
    42.6
    """
    with one_thread():
        strategy = strategy_for(best.workload)
    if strategy is None:
        return None
    # Under substitution two columns are at most twice as far apart as one is long.
    public = best.neighbors is Neighbors.SUBSTITUTE
    reach = LEVEL * (2 if public else 1)
    decoded = Decoded(best.workload, strategy, public=public)
    deviations = decoded.row_norms() * (reach * _SAFE)
    return Factorization(
        workload=best.workload,
        p=best.p,
        neighbors=best.neighbors,
        strategy=Multiple(1 / reach, strategy),
        decoder=times(reach, decoded),
        deviations=lambda: deviations,
        value=float(p_norm(deviations, best.p)),
        floor=best.floor,
        method="cells and sums",
        common=(lambda: decoded.along) if public else None,
    )


class _Problem(NamedTuple):
    """What the squared error depends on, for sums that are the same on blocks of b cells.

    `gram` is P·WᵀW·Pᵀ/b for the blocks P, `squares` are the diagonal of WᵀW summed over each, and
    a sum of weight t on a block takes t/√b of what its columns may be.
    """

    gram: Floats
    squares: Floats
    block: int

    def value(self, flat: Floats) -> tuple[float, Floats]:
        """(E, ∂E) of the sums T: E = Σ s²·squares − tr((I + TTᵀ)⁻¹·T·s·gram·s·Tᵀ)."""
        sums = flat.reshape(-1, len(self.squares))
        part = 1 / math.sqrt(self.block)
        size = 1 + part * sums.sum(axis=0)
        core = np.linalg.inv(np.eye(len(sums)) + sums @ sums.T)
        scaled = sums * size
        seen = scaled @ self.gram
        inner = seen @ scaled.T
        mended = core @ seen
        error = size**2 @ self.squares - np.sum(core * inner)
        of_size = 2 * (size * self.squares - np.einsum("ki,ki->i", sums, mended))
        of_sums = 2 * ((core @ inner @ core) @ sums - mended * size)
        return float(error), (of_sums + part * of_size).ravel()


def strategy_for(workload: Workload) -> CellsAndSums | None:
    """The whole numbers of the best strategy that is found."""
    inner = workload.inner if isinstance(workload, Scaled) else workload
    cells = inner.shape[1]
    if cells < FEWEST_CELLS:
        return None
    if isinstance(inner, Prefix):
        problem = _of_prefix(cells)
    elif cells <= LARGEST_SOLVED and inner.shape[0] * cells <= LARGEST_DENSE:
        try:
            gram = inner.gram()
        except InvalidInput:
            return None
        unit = float(np.trace(gram)) or 1.0
        problem = _Problem(gram / unit, np.diag(gram) / unit, 1)
    else:
        return None
    sums = _solved(problem)
    part = sums / math.sqrt(problem.block)
    shares = part / (1 + part.sum(axis=0))
    # The last block of a long prefix may have fewer cells than the others.
    whole = np.floor(np.repeat(shares, problem.block, axis=1)[:, :cells] * (LEVEL - 1))
    kept = whole[whole.any(axis=1)].astype(np.int64)
    if not len(kept):
        return None
    # What the sums leave of every column is for the cell itself: 1 at least.
    return CellsAndSums(LEVEL - kept.sum(axis=0), kept)


def _of_prefix(cells: int) -> _Problem:
    """In closed form: (WᵀW)_ij = N − max(i, j), with N a multiple of the block."""
    block = -(-cells // LARGEST_SOLVED)
    count = -(-cells // block)
    total = count * block
    ends = total - block * np.arange(count, dtype=np.float64)
    # Σ_j (N − j) over a block; times b for pairs of blocks, whose later one decides.
    along = block * ends - block * (block - 1) / 2
    index = np.arange(count)
    gram = block * along[np.maximum.outer(index, index)]
    # Within a block N − max(i, j) sums to b²·N_block − Σ_k k·(2k + 1).
    within = block**2 * ends - sum(k * (2 * k + 1) for k in range(block))
    gram[index, index] = within
    unit = float(along.sum())
    return _Problem(gram / block / unit, along / unit, block)


def _solved(problem: _Problem) -> Floats:
    """Sums T ≥ 0 of little error, of shape (p, blocks)."""
    from scipy.optimize import minimize

    count = len(problem.squares)
    rows = max(1, min(MOST_SUMS, count // CELLS_A_SUM))
    index = np.arange(count)
    start = (index * rows // count == np.arange(rows)[:, None]).astype(np.float64)
    # Rows that are alike would stay alike.
    start += 0.1 * np.modf((1 + np.arange(rows * count)) * 0.6180339887498949)[0].reshape(rows, -1)
    value: Callable[[Floats], tuple[float, Floats]] = problem.value
    found = minimize(
        value,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * start.size,
        options={"maxiter": STEPS, "maxfun": 2 * STEPS, "ftol": NEARLY},
    )
    return np.asarray(found.x).reshape(rows, count)
