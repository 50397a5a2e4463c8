"""Pairs of columns that look the same from both ends, at a quarter of the cost.

If the centred Gram matrix G of the columns stays what it is when their order is reversed, as for
prefix sums and ranges, a pair (i, j) and its mirror image (N−1−j, N−1−i) have the same weight at
some optimum, because the dual is concave. Every matrix that commutes with the reversal falls into
two blocks, M₊ on the even vectors (e_i + e_{N−1−i})/√2 and M₋ on the odd ones, each of half the
size. With roots S± of G±, S±ᵀS± = G±, the second moment of the weights is S₊Λ₊S₊ᵀ ⊕ S₋Λ₋S₋ᵀ, Λ the
Laplacian of the weights, and the strategy is R₊ on the even vectors beside R₋ on the odd ones.
"""

from __future__ import annotations

import numpy as np

from muhat.ellipsoids.moment_spectra import Spectrum, roots_of
from muhat.ellipsoids.spans import Array

ALIKE = 1e-12  # of the largest entry
THIN = 1e-12  # of the largest eigenvalue of an even block: the direction of ones has none


def is_mirrored(gram: Array) -> bool:
    """Whether a centred Gram matrix (N, N) stays what it is when it is turned around."""
    return bool(np.abs(gram - gram[::-1, ::-1]).max() <= ALIKE * np.abs(gram).max())


def centred(gram: Array) -> Array:
    """The Gram matrix of the columns less their mean."""
    means = gram.mean(axis=0)
    return np.asarray(gram - means - means[:, None] + means.mean())


class MirroredPairs:
    """Weights on the pairs i < j of N columns and their images together; p = 2.

    `first` and `second` (count,) are the pairs that stand for both, i + j ≤ N − 1; a pair that is
    its own image, i + j = N − 1, stands for itself. The Gram matrix is centred and mirrored.
    """

    row_count = 1

    def __init__(self, gram: Array) -> None:
        self.columns = len(gram)
        first, second = np.triu_indices(self.columns, 1)
        here = first + second <= self.columns - 1
        self.first, self.second = first[here], second[here]
        self.count = len(self.first)
        self.images = np.where(self.first + self.second == self.columns - 1, 1.0, 2.0)
        self._roots = [_root(block) for block in self._blocks(gram)]

    def every(self, weights: Array) -> Array:
        """The weights of all pairs as a symmetric table (N, N), from those of `first, second`."""
        last = self.columns - 1
        table = np.zeros((self.columns, self.columns))
        table[self.first, self.second] = weights / self.images
        table[last - self.second, last - self.first] = weights / self.images
        return table + table.T

    def together(self, weights: Array) -> Array:
        """The weights of pairs and their images together, from those of all pairs i < j."""
        table = np.zeros((self.columns, self.columns))
        table[np.triu_indices(self.columns, 1)] = weights
        table += table[::-1, ::-1].T
        return np.asarray(table[self.first, self.second] * self.images / 2)

    def laplacian(self, weights: Array) -> Array:
        """Λ = Σ w_ij (e_i − e_j)(e_i − e_j)ᵀ over all pairs, of shape (N, N)."""
        table = self.every(weights)
        return np.diag(table.sum(axis=0)) - table

    def evaluate(self, w: Array, u: Array) -> Spectrum:
        floor, total, strategies, grams = 0.0, 0.0, [], []
        for S, block in zip(self._roots, self._blocks(self.laplacian(w)), strict=True):
            squares, Q = np.linalg.eigh(S @ block @ S.T)
            c = roots_of(squares)
            R = (Q / np.sqrt(c)).T @ S
            floor += float((squares / c).sum())
            total += float(c.sum())
            strategies.append(R)
            grams.append(R.T @ R)
        gram = self._unfolded(*grams)
        lengths = np.diag(gram)
        lengths = np.concatenate([lengths, lengths[: self.columns - len(lengths)][::-1]])
        apart = lengths[self.first] + lengths[self.second] - 2 * gram[self.first, self.second]
        return Spectrum(
            floor, apart, np.array([total]), lambda: self._spread(*strategies), lambda: None
        )

    def _blocks(self, M: Array) -> tuple[Array, Array]:
        """M₊ and M₋ of a matrix (N, N) that commutes with the reversal."""
        half, odd = divmod(self.columns, 2)
        near, far = M[:half, :half], M[:half, ::-1][:, :half]
        even = np.empty((half + odd, half + odd))
        even[:half, :half] = near + far
        if odd:
            even[:half, half] = even[half, :half] = np.sqrt(2) * M[:half, half]
            even[half, half] = M[half, half]
        return even, near - far

    def _unfolded(self, even: Array, odd: Array) -> Array:
        """The upper rows, of shape (⌈N/2⌉, N), of the matrix that has these blocks."""
        half, middle = len(odd), len(even) - len(odd)
        M = np.empty((half + middle, self.columns))
        M[:half, :half] = (even[:half, :half] + odd) / 2
        M[:half, ::-1][:, :half] = (even[:half, :half] - odd) / 2
        if middle:
            M[:half, half] = M[half, :half] = M[half, ::-1][:half] = even[:half, half] / np.sqrt(2)
            M[half, half] = even[half, half]
        return M

    def _spread(self, even: Array, odd: Array) -> Array:
        """R (N − 1, N) from R₊ and R₋."""
        half, middle = odd.shape[1], even.shape[1] - odd.shape[1]
        R = np.zeros((len(even) + len(odd), self.columns))
        above, below = R[: len(even)], R[len(even) :]
        above[:, :half] = above[:, ::-1][:, :half] = even[:, :half] / np.sqrt(2)
        below[:, :half] = odd / np.sqrt(2)
        below[:, ::-1][:, :half] = -odd / np.sqrt(2)
        if middle:
            above[:, half] = even[:, half]
        return R


def _root(gram: Array) -> Array:
    """S of full row rank with SᵀS = gram."""
    squares, V = np.linalg.eigh(gram)
    kept = squares > THIN * squares[-1]
    return np.asarray((V[:, kept] * np.sqrt(squares[kept])).T)
