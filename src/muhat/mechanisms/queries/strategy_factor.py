"""The integer matrices that a strategy is a Kronecker product of.

A factor multiplies integer vectors exactly, knows the exact size of its columns, and undoes
itself in floats. What rounding did to the strategy does not matter: sensitivity and decoding are
those of the integers.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._integers import root_up
from muhat._plain import Plain
from muhat.mechanisms.arithmetic.exact_product import Integers, exact_product, limbs
from muhat.mechanisms.sums.table_query import largest_distance
from muhat.workloads.cells_and_sums import CellsAndSums
from muhat.workloads.closed_factors import farthest_square
from muhat.workloads.parity import Parity


class StrategyFactor(Protocol):
    """An integer matrix of shape (k, N), about `scale` times the strategy it stands for."""

    @property
    def shape(self) -> tuple[int, int]:
        """(k, N)."""

    @property
    def scale(self) -> float:
        """About G/R."""

    def apply(self, values: Integers) -> Integers:
        """G·values, exactly, for integers of shape (N, …)."""

    def undo(self, values: Floats) -> Floats:
        """G⁺·values, for floats of shape (k, M)."""

    def column_size(self, norm: float) -> Fraction:
        """An upper bound on the largest column in the ℓ₁ or ℓ₂ norm."""

    def column_distance(self, norm: float) -> Fraction:
        """An upper bound on the largest distance of two columns in the ℓ₁ or ℓ₂ norm."""

    def least_inner_product(self) -> Fraction:
        """A lower bound on the inner product of two columns, or of one with itself."""

    @property
    def inflation(self) -> float:
        """By which fraction rounding may have made the noise on an answer larger."""

    def to_dict(self) -> dict[str, Any]:
        """For a digest."""


@dataclass(frozen=True)
class IdentityFactor(Plain):
    """Every cell by itself."""

    size: int
    scale: float = 1.0

    inflation = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """(N, N)."""
        return self.size, self.size

    def apply(self, values: Integers) -> Integers:
        """The values themselves."""
        return values

    def undo(self, values: Floats) -> Floats:
        """The values themselves."""
        return values

    def column_size(self, norm: float) -> Fraction:
        """1 in every norm."""
        return Fraction(1)

    def column_distance(self, norm: float) -> Fraction:
        """2 in ℓ₁, √2 rounded up in ℓ₂; nothing differs from a single cell."""
        if self.size == 1:
            return Fraction(0)
        return Fraction(2) if norm == 1 else root_up(Fraction(2))

    def least_inner_product(self) -> Fraction:
        """Different cells are orthogonal."""
        return Fraction(0)


@dataclass(frozen=True)
class ParityFactor(Plain):
    """The parities themselves: entries ±1, m orthogonal rows of N entries."""

    workload: Parity
    scale: float

    inflation = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """(m, N)."""
        return self.workload.shape

    def apply(self, values: Integers) -> Integers:
        """W·values by the Walsh–Hadamard transform of limbs, in which floats are exact."""
        total: Any = 0
        width = 52 - self.workload.dim
        flat = values.reshape(len(values), -1)
        for index, limb in enumerate(limbs(flat, width)):
            product = self.workload.apply(limb).astype(np.int64).astype(object)
            total = total + product * (1 << width * index)
        return np.asarray(total, dtype=object).reshape(self.shape[0], *values.shape[1:])

    def undo(self, values: Floats) -> Floats:
        """Wᵀ·values/N."""
        return self.workload.transposed(values) / self.shape[1]

    def column_size(self, norm: float) -> Fraction:
        """m in ℓ₁, √m in ℓ₂."""
        rows = Fraction(self.shape[0])
        return rows if norm == 1 else root_up(rows)

    def column_distance(self, norm: float) -> Fraction:
        """Two columns differ by 2 in some rows."""
        square = farthest_square(self.workload)
        return Fraction(square, 2) if norm == 1 else root_up(Fraction(square))

    def least_inner_product(self) -> Fraction:
        """‖a − b‖² = 2m − 2⟨a, b⟩."""
        return self.shape[0] - Fraction(farthest_square(self.workload), 2)


@dataclass(frozen=True, eq=False)
class SumsFactor:
    """Cells and sums of them: whole numbers, none of them negative, as they are."""

    strategy: CellsAndSums
    scale: float

    inflation = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """(N + p, N)."""
        return self.strategy.shape

    def apply(self, values: Integers) -> Integers:
        """G·values as Python integers."""
        flat = values.reshape(len(values), -1)
        own = flat.astype(object) * self.strategy.own.astype(object)[:, None]
        found = np.concatenate([own, exact_product(self.strategy.sums, flat)])
        return np.asarray(found, dtype=object).reshape(self.shape[0], *values.shape[1:])

    def undo(self, values: Floats) -> Floats:
        """G⁺·values."""
        return self.strategy.undo(values)

    def column_size(self, norm: float) -> Fraction:
        """Added up in whole numbers; the ℓ₁ norm is above the ℓ₂ norm."""
        return Fraction(int((self.strategy.own + self.strategy.sums.sum(axis=0)).max()))

    def column_distance(self, norm: float) -> Fraction:
        """No more than two columns are long."""
        return 2 * self.column_size(norm)

    def least_inner_product(self) -> Fraction:
        """No entry is negative."""
        return Fraction(0)

    def to_dict(self) -> dict[str, Any]:
        """For a digest."""
        numbers = self.strategy.own, self.strategy.sums
        words = b"".join(np.ascontiguousarray(each, "<i8").tobytes() for each in numbers)
        digest = hashlib.sha256(words).hexdigest()
        return {"cells and sums": list(self.shape), "sha256": digest}


@dataclass(frozen=True, eq=False)
class MatrixFactor:
    """A matrix of int64, of full row rank."""

    matrix: NDArray[np.int64]
    scale: float

    @property
    def shape(self) -> tuple[int, int]:
        """(k, N)."""
        rows, columns = self.matrix.shape
        return rows, columns

    def apply(self, values: Integers) -> Integers:
        """G·values as Python integers."""
        shape = values.shape
        product = exact_product(self.matrix, values.reshape(shape[0], -1))
        return product.reshape(self.shape[0], *shape[1:])

    @cached_property
    def _factors(self) -> tuple[Floats, Floats]:
        """Q and T with (G/scale)ᵀ = Q·T, T upper triangular."""
        orthonormal, triangle = np.linalg.qr(self.matrix.T / self.scale)
        return np.asarray(orthonormal), np.asarray(triangle)

    def undo(self, values: Floats) -> Floats:
        """G⁺·values = Q·T⁻ᵀ·values/scale."""
        from scipy.linalg import solve_triangular

        if not len(values):
            return np.zeros((self.shape[1], values.shape[1]))
        orthonormal, triangle = self._factors
        solved = solve_triangular(triangle, values / self.scale, trans="T", check_finite=False)
        return np.asarray(orthonormal @ solved)

    def column_size(self, norm: float) -> Fraction:
        """Floats find the largest columns within a proved error; integers measure them."""
        sizes = _column_sizes(self.matrix, norm)
        # A sum of k squares in floats is off by less than (k + 2)·2^-52 of itself.
        slack = (self.shape[0] + 4) * 2.0**-51
        near = np.flatnonzero(sizes >= sizes.max() * (1 - slack))
        return max(_exact_size(self.matrix[:, j].tolist(), norm) for j in near[:64].tolist()) * (
            1 if len(near) <= 64 else Fraction(1 + 2 * slack)
        )

    def column_distance(self, norm: float) -> Fraction:
        """The farthest pair in ℓ₂; in ℓ₁ twice the largest column."""
        return 2 * self.column_size(1) if norm == 1 else self._farthest

    @cached_property
    def _farthest(self) -> Fraction:
        floats = self.matrix.T.astype(np.float64)
        # Each entry may be off by 2^-53 of itself once it is a float, hence each column too.
        rounding = float(_column_sizes(self.matrix, 2).max()) * 2.0**-51
        return Fraction(largest_distance(floats)) + Fraction(rounding)

    def least_inner_product(self) -> Fraction:
        """The least entry of GᵀG, less the error of floats."""
        floats = self.matrix.astype(np.float64)
        largest = float(np.einsum("ij,ij->j", floats, floats).max())
        error = (self.shape[0] + 8) * 2.0**-51 * largest
        return Fraction(float((floats.T @ floats).min()) - error)

    @cached_property
    def inflation(self) -> float:
        """First order: ‖rounding‖·‖(G/scale)⁺‖/scale, doubled for what is beyond."""
        from scipy.linalg import solve_triangular

        _, triangle = self._factors
        inverse = solve_triangular(triangle, np.eye(len(triangle)), check_finite=False)
        rows, columns = self.shape
        return float(np.linalg.norm(inverse)) * math.sqrt(rows * columns) / self.scale

    def to_dict(self) -> dict[str, Any]:
        """For a digest."""
        words = np.ascontiguousarray(self.matrix, "<i8").tobytes()
        return {"shape": list(self.shape), "sha256": hashlib.sha256(words).hexdigest()}


def rounded_factor(strategy: Floats, scale: float) -> MatrixFactor:
    """round(scale·strategy) in integers; scale·strategy must stay below 2^62."""
    matrix = np.rint(strategy * scale).astype(np.int64)
    matrix.setflags(write=False)
    return MatrixFactor(matrix, scale)


def _column_sizes(matrix: NDArray[np.int64], norm: float) -> Floats:
    return np.asarray(np.linalg.norm(matrix.astype(np.float64), ord=norm, axis=0))


def _exact_size(column: list[int], norm: float) -> Fraction:
    if norm == 1:
        return Fraction(sum(abs(entry) for entry in column))
    return Fraction(math.isqrt(sum(entry * entry for entry in column)) + 1)
