"""A filter of a few exponentials, in integers, at once for all the steps of a block.

    past_t = Σ_{s<t} h(t − s)·z_s,   h(k) = Σ_i w_i·ρ_i^k,

for numbers z in units of 2^−55. Steps are columns of 64. What a column has of its own past is a
triangular table of h times it; what came before it is Σ_i ρ_i^k·S_i, where S_i ← ρ_i^64·S_i +
w_i·Σ_s ρ_i^(64−s)·z_s from column to column. Tables are rounded down to multiples of 2^−66 and cut
into limbs, so that products of float matrices add up whole numbers below 2^53: BLAS is allowed
here, because exact integers have one answer.

How far it is off. |z| < 2^8, and so are the columns' sums and all S (checked). A product with a
table of at most 76 columns is off by 76·2^8·2^−66 for the table and by 6·2^−55 for the shifts,
together less than 2^−50. Each of 12 S_i is off by 2^−55 when it is read, and by w_i·2^−50 for every
column, of which the part 1 + (1 + ρ_i + ρ_i² + …)/64 is still there. As Σw_i ≤ 1 all this is less
than 2^−48 + 2^−56·Σ_i w_i·(1 + ρ_i + ρ_i² + …), the sums over the steps so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.noise.entropy import WORD_BITS
from muhat.noise.real_normal import FIRST_BITS
from muhat.workloads.buffered import INVERSE_BITS, BufferedRoot, ExponentialSum

COLUMN = 64
"""Steps that one product of matrices takes together."""

MOST_TERMS = 12
"""Exponentials of h, so that no sum of products below leaves 2^53."""

TABLE_LIMBS, TABLE_LIMB = 3, 22
VALUE_LIMBS, VALUE_LIMB = 3, 24

_TABLE_BITS = TABLE_LIMBS * TABLE_LIMB
_LARGEST_TOP = 2.0 ** (8 + FIRST_BITS + TABLE_LIMB - VALUE_LIMB * (VALUE_LIMBS - 1)) * (1 - 2.0**-6)
"""Top limbs' products below this are of numbers below 2^8."""


class ExponentialFilter:
    """The tables of a sum of exponentials; what was seen is kept by whoever asks, as integers.

    >>> from muhat.workloads.buffered import buffered_root
    >>> past, state = ExponentialFilter(buffered_root(64).inverse).after([0] * 6, np.ones(64, int))
    >>> past[0]
    np.int64(0)
    """

    def __init__(self, terms: ExponentialSum) -> None:
        one = 1 << INVERSE_BITS
        if len(terms.rests) > MOST_TERMS:
            raise ArithmeticError("a filter of more exponentials needs shorter limbs")
        self.weights = terms.weights
        powers = []
        for rest in terms.rests:
            row = [one]
            for _ in range(COLUMN):
                row.append(row[-1] * (one - rest) >> INVERSE_BITS)
            powers.append(row)
        self.decays = [row[COLUMN] for row in powers]
        h = [
            sum(w * row[k] for w, row in zip(terms.weights, powers, strict=True)) >> INVERSE_BITS
            for k in range(COLUMN)
        ]
        own = [[h[k - s] if s < k else 0 for s in range(COLUMN)] for k in range(COLUMN)]
        self._read = _limbs_of_table(
            [[*line, *(row[k] for row in powers)] for k, line in enumerate(own)]
        )
        self._gather = _limbs_of_table([row[:0:-1] for row in powers])

    def after(self, state: Sequence[int], values: Integers) -> tuple[Integers, list[int]]:
        """past_t of the next steps, a multiple of 64, and the state after them.

        `values` are floor(2^55·z); the state are the S_i in units of 2^−128, 0 at first.
        """
        columns = np.ascontiguousarray(values.reshape(-1, COLUMN).T)
        sums = list(state)
        seen = []
        for gathered in _product(self._gather, columns).T.tolist():
            seen.append([x >> (INVERSE_BITS - FIRST_BITS) for x in sums])
            sums = [
                (x * decay >> INVERSE_BITS) + (more * weight >> FIRST_BITS)
                for x, decay, more, weight in zip(
                    sums, self.decays, gathered, self.weights, strict=True
                )
            ]
        inputs = np.concatenate([columns, np.array(seen, np.int64).T])
        return _product(self._read, inputs).T.reshape(-1), sums


@lru_cache(maxsize=4)
def inverse_filter(root: BufferedRoot) -> ExponentialFilter:
    """The filter of a strategy's H = A·C⁻¹."""
    return ExponentialFilter(root.inverse)


def _limbs_of_table(rows: list[list[int]]) -> Floats:
    """Numbers from 0 to 1 in units of 2^−128 as limbs of 22 bits, of shape (3, rows, columns)."""
    mask = (1 << TABLE_LIMB) - 1
    limbs = np.empty((TABLE_LIMBS, len(rows), len(rows[0])))
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            rest = entry >> (INVERSE_BITS - _TABLE_BITS)
            for level in range(TABLE_LIMBS - 1, 0, -1):
                limbs[level, i, j] = rest & mask
                rest >>= TABLE_LIMB
            # The first limb of 1 is 2^22.
            limbs[0, i, j] = rest
    return limbs


def _product(table: Floats, values: Integers) -> Integers:
    """table @ values in units of 2^−55, less than seven of them too small, of shape (rows, m)."""
    mask = np.int64((1 << VALUE_LIMB) - 1)
    cut: list[Floats] = []
    rest = values
    for _ in range(VALUE_LIMBS - 1):
        cut.append((rest & mask).astype(np.float64))
        rest = rest >> np.int64(VALUE_LIMB)
    cut.append(rest.astype(np.float64))
    if np.abs(table[0] @ cut[-1]).max() >= _LARGEST_TOP:
        raise ArithmeticError("noise of more than thirty standard deviations")
    total = np.zeros((table.shape[1], values.shape[1]), np.int64)
    # One product a pair of limbs: for larger ones BLAS would wake its threads.
    for i, entries in enumerate(table):
        for j, limb in enumerate(cut):
            shift = VALUE_LIMB * j - TABLE_LIMB * (i + 1)
            if shift > -WORD_BITS:
                part = (entries @ limb).astype(np.int64)
                total += part << np.int64(shift) if shift >= 0 else part >> np.int64(-shift)
    return total
