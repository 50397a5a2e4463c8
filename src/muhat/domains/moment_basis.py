"""Symmetric tensors of order ℓ in an orthonormal basis: one coordinate for each multiset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._arrays import LARGEST_ARRAY, Floats, Integers
from muhat.domains.vectors import dimension, rows
from muhat.errors import InvalidInput

LARGEST_ORDER = 100
LARGEST_DIM = 1_000_000


@dataclass(frozen=True)
class TensorBasis:
    """The coordinates √m(α)·x^α of x^{⊗ℓ}, over the multisets α of ℓ of the d indices of x.

    `indices`, of shape (dim, ℓ), are the multisets in lexicographic order; `multiplicities`,
    m(α) = ℓ!/∏α_i!, count the entries of the full tensor that equal x^α. So lengths are those of
    the full tensor.
    """

    order: int
    record_dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", _check.count("order", self.order, most=LARGEST_ORDER))
        object.__setattr__(self, "record_dim", dimension(self.record_dim))
        if self.dim > LARGEST_DIM:
            raise InvalidInput(
                f"the tensors of order {self.order} have {self.dim:.3g} coordinates, at most "
                f"{LARGEST_DIM:,} are possible; choose a smaller order or dim."
            )

    @property
    def dim(self) -> int:
        """C(d + ℓ − 1, ℓ), the number of coordinates."""
        return math.comb(self.record_dim + self.order - 1, self.order)

    @cached_property
    def indices(self) -> Integers:
        """The multisets, a row each."""
        multisets = combinations_with_replacement(range(self.record_dim), self.order)
        listed = np.fromiter(chain.from_iterable(multisets), np.int64, self.dim * self.order)
        return listed.reshape(self.dim, self.order)

    @property
    def multiplicities(self) -> Floats:
        """m(α) of every multiset."""
        return self.tables[0]

    @cached_property
    def tables(self) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """For each multiset: m(α), the largest √m·x^α, its mean on the sphere, all exponents even?

        With r the running length of equal indices at place t, m = ∏ t/r_t, the mean of x^α is
        ∏ of the odd numbers r − 1 over d(d+2)…(d+ℓ−2), and x_i² = α_i/ℓ attains the largest value.
        """
        indices, size = self.indices, self.record_dim
        count, degree = indices.shape
        multiplicities, odd_products, is_even = (np.ones(count) for _ in range(3))
        run = np.zeros(count)
        log_powers = np.zeros(count)
        for place in range(degree):
            starts_anew = (
                np.ones(count, bool) if place == 0 else indices[:, place] != indices[:, place - 1]
            )
            is_even[starts_anew & (run % 2 == 1)] = 0
            log_powers += np.where(starts_anew, _power_log(run), 0.0)
            run = np.where(starts_anew, 1.0, run + 1)
            multiplicities = multiplicities * (place + 1) / run  # whole at every step
            odd_products *= np.where(run % 2 == 0, run - 1, 1.0)
        is_even[run % 2 == 1] = 0
        log_powers += _power_log(run)
        root = np.sqrt(multiplicities)
        largest = root * np.exp((log_powers - degree * math.log(degree)) / 2)
        spread = math.prod(size + 2 * i for i in range(degree // 2))
        mean = np.where(is_even > 0, root * odd_products / spread, 0.0)
        return multiplicities, np.minimum(largest, 1.0), mean, is_even > 0

    def lift(self, points: ArrayLike) -> Floats:
        """√m(α)·x^α for each point x, of shape (d,) or (n, d): shape (dim,) or (n, dim)."""
        x = rows(points, self.record_dim)
        monomials = np.sqrt(self.multiplicities) * x[..., self.indices[:, 0]]
        for place in range(1, self.order):
            monomials *= x[..., self.indices[:, place]]
        return np.asarray(monomials)

    def lift_columns(self, columns: Sequence[Floats]) -> list[Floats]:
        """√m(α)·x^α of records given by columns, each record by itself, a column a coordinate."""
        lifted = []
        for multiset, root in zip(self.indices.tolist(), self._roots, strict=True):
            product = columns[multiset[0]] * root
            for index in multiset[1:]:
                product = product * columns[index]
            lifted.append(product)
        return lifted

    @cached_property
    def _roots(self) -> list[float]:
        return list(np.sqrt(self.multiplicities).tolist())

    @property
    def is_buildable(self) -> bool:
        """Whether the full tensor may be built."""
        return bool(self.record_dim**self.order <= LARGEST_ARRAY)

    @cached_property
    def places(self) -> Integers:
        """For every entry of the full tensor, its multiset's row in `indices`."""
        shape = (self.record_dim,) * self.order
        entries = np.sort(np.indices(shape).reshape(self.order, -1), axis=0)
        digits = self.record_dim ** np.arange(self.order - 1, -1, -1)
        # Multisets in lexicographic order are sorted by their number in base d.
        return np.searchsorted(self.indices @ digits, digits @ entries)


def _power_log(run: Floats) -> Floats:
    """ln(r^r), with 0⁰ = 1."""
    return np.asarray(run * np.log(np.maximum(run, 1.0)))
