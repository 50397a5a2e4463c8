"""Products of integer matrices, exact at any size.

Integers are cut into limbs so short that a product of float matrices adds up whole numbers below
2^53: BLAS is allowed here because exact integers have one answer. The limbs' products are then
shifted and added as Python integers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[Any]
"""int64, or Python integers in an object array."""


def exact_product(matrix: Integers, values: Integers) -> Integers:
    """matrix @ values for integers of any size, as Python integers of shape (k, …).

    >>> exact_product(np.array([[2**60, 1]]), np.array([2**40, 3])).tolist() == [2**100 + 3]
    True
    """
    terms = max(matrix.shape[1], 1)
    width = (53 - math.ceil(math.log2(terms))) // 2 if terms > 1 else 26
    total: Any = 0
    right = limbs(values, width)
    for i, left in enumerate(limbs(matrix, width)):
        for j, other in enumerate(right):
            product = (left @ other).astype(np.int64).astype(object)
            total = total + product * (1 << width * (i + j))
    return np.asarray(total, dtype=object)


def limbs(values: Integers, width: int) -> list[NDArray[np.float64]]:
    """Floats v_0, v_1, … with values = Σ v_i·2^(i·width), |v_i| ≤ 2^width."""
    # The last limb keeps the sign; the others lie in [0, 2^width).
    bits = largest_magnitude(values).bit_length()
    count = max(1, -(-bits // width))
    rest = values if values.dtype == object else values.astype(np.int64)
    found = []
    for _ in range(count - 1):
        found.append(np.asarray(rest & ((1 << width) - 1), np.float64))
        rest = rest >> width
    return [*found, np.asarray(rest, np.float64)]


def largest_magnitude(values: Integers) -> int:
    """The largest absolute value, 0 of none."""
    return max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0
