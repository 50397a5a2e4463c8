"""Weights of the columns of a prefix workload, without a product of matrices.

W is the lower triangle of ones; its inverse takes differences. So K = W diag(w) Wᵀ has an inverse
with three diagonals, whose eigenvectors are found in a fraction of the time that a full matrix
takes, and products with W and W⁻¹ are sums and differences along an axis. p = 2, one record more
or less.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.moment_spectra import Spectrum
from muhat.ellipsoids.verification import paired_floor


class RunningTotals:
    """The dual of `size`·(prefix sums of n cells): as `moment_spectra.Explicitly` with W.

    >>> found = RunningTotals(2).evaluate(np.array([0.5, 0.5]), np.ones(1))
    >>> f"{found.floor:.6f}"  # ‖W‖_*/√2 = √5/√2
    '1.581139'
    """

    row_count = 1

    def __init__(self, n: int, size: float = 1.0) -> None:
        self.count, self.size = n, size

    def evaluate(self, w: Floats, u: Floats) -> Spectrum:
        c, Q = self._roots(w)
        R = (self.size * _sums_from(Q) / np.sqrt(c)).T
        g = np.einsum("ai,ai->i", R, R)

        def even() -> tuple[Floats, Floats]:
            lengths = np.sqrt(g)
            L = Q * np.sqrt(c)
            L[1:] -= L[:-1].copy()
            variances = np.sum(np.cumsum(lengths[:, None] * L, axis=0) ** 2)
            return R / lengths, np.array([variances])

        return Spectrum(float(c.sum()), g, np.array([c.sum()]), lambda: R, even)

    def floor(self, w: Floats) -> float:
        """At most ‖W diag(w)^½‖_*, proved; Q and diag(1/c)QᵀW diag(w)^½ are a guess that serves."""
        c, Q = self._roots(w)
        root = np.sqrt(w)
        Z = (self.size * _sums_from(Q) / c).T * root
        A = np.tril(np.broadcast_to(self.size * root, (self.count, self.count)))
        return paired_floor(A, Q, Z, 4)

    def _roots(self, w: Floats) -> tuple[Floats, Floats]:
        """c (n,) and Q (n, n) with size²·W diag(w) Wᵀ = Q diag(c²) Qᵀ."""
        from scipy.linalg.lapack import dstevd

        inverse = 1 / w
        diagonal = inverse.copy()
        diagonal[:-1] += inverse[1:]
        squares, Q, failed = dstevd(diagonal, -inverse[1:])
        if failed:
            raise np.linalg.LinAlgError("the eigenvectors were not found")
        return self.size / np.sqrt(squares), Q


def _sums_from(Q: Floats) -> Floats:
    """WᵀQ: of every column the sums from each entry on."""
    return np.asarray(np.cumsum(Q[::-1], axis=0)[::-1])
