"""Products of integers of any size are those of Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat.mechanisms.arithmetic.exact_product import exact_product, largest_magnitude


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from([1, 20, 53, 62, 100]),
    st.sampled_from([1, 30, 63, 90]),
    st.randoms(use_true_random=False),
)
def test_the_product_is_that_of_python_integers(rows, columns, left_bits, right_bits, random):
    def integers(bits, *shape):
        flat = [random.randint(-(2**bits) + 1, 2**bits - 1) for _ in range(int(np.prod(shape)))]
        array = np.array(flat, dtype=object).reshape(shape)
        return array.astype(np.int64) if bits < 63 else array

    matrix, values = integers(left_bits, rows, columns), integers(right_bits, columns, 2)
    expected = matrix.astype(object).dot(values.astype(object))
    assert (exact_product(matrix, values) == expected).all()


def test_the_smallest_int64_is_not_lost():
    least = np.array([np.iinfo(np.int64).min])
    assert exact_product(np.array([[3]]), least).tolist() == [3 * -(2**63)]
    assert largest_magnitude(least) == 2**63


@pytest.mark.parametrize("columns", [1000, 4097])
def test_long_sums_of_the_largest_entries_are_exact(columns):
    matrix = np.full((2, columns), 2**61 - 1)
    values = np.full(columns, 2**40 - 1)
    assert exact_product(matrix, values).tolist() == [columns * (2**61 - 1) * (2**40 - 1)] * 2
