"""Powers made of elementary operations: close to the truth, and the same bits everywhere."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.records.norms import power

EXPONENTS = [1.0, 1.0000001, 1.1, 4 / 3, 1.5, 2, 2.5, 3, 16, 16.5, 17, 33.3, 1e4, 1 / 3, 0.01]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_are_within_a_few_units_of_the_last_place(exponent: float) -> None:
    rng = np.random.default_rng(1)
    bases = np.concatenate(
        [rng.random(200), 1 - rng.random(100) / 1e3, 1 + rng.random(50), 10.0 ** -rng.random(50)]
    )
    with np.errstate(all="ignore"):
        found = power(bases, exponent)
    with mpmath.workdps(40):
        for base, got in zip(bases.tolist(), found.tolist(), strict=True):
            exact = mpmath.mpf(base) ** mpmath.mpf(exponent)
            if 1e-290 < exact < 1e290:
                bits = 1 + abs(mpmath.log(exact, 2))
                assert abs(got - exact) <= 2.0**-50 * bits * exact


@given(st.floats(0, 1), st.floats(1, 1e308))
@settings(max_examples=300, deadline=None)
def test_powers_of_relative_sizes_stay_between_zero_and_one(base: float, exponent: float) -> None:
    with np.errstate(all="ignore"):
        (found,) = power(np.array([base]), exponent).tolist()
    assert 0 <= found <= 1 + 1e-12
    if base < 1:
        assert math.isclose(found, base**exponent, rel_tol=1e-11, abs_tol=1e-290)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_zero_one_and_not_a_number_stay_themselves(exponent: float) -> None:
    with np.errstate(all="ignore"):
        found = power(np.array([0.0, 1.0, np.nan]), exponent).tolist()
    assert found[:2] == [0.0, 1.0]
    assert math.isnan(found[2])


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_bits_do_not_depend_on_place_or_stride(exponent: float) -> None:
    values = np.random.default_rng(2).random(203)
    together = power(values, exponent)
    assert [power(values[i : i + 1], exponent)[0] for i in range(203)] == together.tolist()
    assert power(values[::-3], exponent).tolist() == together[::-3].tolist()
