"""Parities of sets of bits."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.workloads.base import Workload
from muhat.workloads.cells import product, writable

LARGEST_DIM = 62


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Parity(Workload):
    """Σ_x (−1)^{Σ_{i∈S} bit i of x} for every set S of exactly `width` of `dim` bits.

    The histogram has 2^dim cells, of shape (2, …, 2); rows are in lexicographic order of S.
    Width 0 is the total.

    >>> Parity(dim=2, width=1).dense()
    array([[ 1.,  1., -1., -1.],
           [ 1., -1.,  1., -1.]])
    """

    kind = "parity"
    dim: int
    width: int
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, dim: int, width: int) -> None:
        dim = _check.count("dim", dim, most=LARGEST_DIM)
        width = _check.count("width", width, least=0, most=dim)
        rows = product("the number of parities", [math.comb(dim, width)])
        self._set(dim=dim, width=width, cells=(2,) * dim, shape=(rows, 1 << dim))

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of bits, one a row; bit 0 is the first axis of the histogram."""
        writable("the sets", self.shape[0] * max(self.width, 1))
        return tuple(itertools.combinations(range(self.dim), self.width))

    def apply(self, x: Floats) -> Floats:
        writable("the histogram", self.shape[1])
        return walsh_hadamard(x)[self._frequencies()]

    def transposed(self, y: Floats) -> Floats:
        writable("the histogram", self.shape[1])
        spectrum = np.zeros((self.shape[1], *y.shape[1:]))
        spectrum[self._frequencies()] = y
        return walsh_hadamard(spectrum)

    def gram(self) -> Floats:
        """(WᵀW)_xy = Σ_S (−1)^{|S ∩ (x xor y)|}, a Krawtchouk polynomial of the distance."""
        self._refuse_large_gram()
        dim, width = self.dim, self.width
        values = np.array(
            [
                sum(
                    (-1) ** odd * math.comb(distance, odd) * math.comb(dim - distance, width - odd)
                    for odd in range(width + 1)
                )
                for distance in range(dim + 1)
            ],
            dtype=np.float64,
        )
        cells = np.arange(self.shape[1])
        return values[np.bitwise_count(np.bitwise_xor.outer(cells, cells))]

    def row_norms(self) -> Floats:
        writable("the row norms", self.shape[0])
        return np.full(self.shape[0], math.sqrt(self.shape[1]))

    def column_norms(self) -> Floats:
        writable("the column norms", self.shape[1])
        return np.full(self.shape[1], math.sqrt(self.shape[0]))

    def describe(self) -> str:
        return f"the {self.shape[0]:,} parities of {self.width} of {self.dim} bits"

    def _frequencies(self) -> NDArray[np.int64]:
        """Where in the transform each row is: the sets as numbers, the first axis highest."""
        codes = [sum(1 << (self.dim - 1 - bit) for bit in chosen) for chosen in self.sets]
        return np.array(codes, dtype=np.int64)


def walsh_hadamard(x: Floats) -> Floats:
    """H·x with H_uv = (−1)^{popcount(u and v)}, for x of shape (2^d,) or (2^d, k)."""
    result = np.array(x, dtype=np.float64)
    half = 1
    while half < len(result):
        pairs = result.reshape(-1, 2, half, *result.shape[1:])
        first = pairs[:, 0].copy()
        pairs[:, 0] += pairs[:, 1]
        np.subtract(first, pairs[:, 1], out=pairs[:, 1])
        half *= 2
    return result
