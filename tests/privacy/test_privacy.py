"""The promises themselves: validation, words, composition, filters, substitution."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat import privacy
from muhat.errors import BudgetExceeded, InvalidInput
from muhat.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    Filter,
    Neighbors,
    PureDP,
    as_typed,
    compose,
    rounding,
)

ONE_OF_EACH = [
    PureDP(epsilon=1.0),
    ApproxDP(epsilon=1.0, delta=1e-6),
    ZCDP(rho=0.1),
    GDP(mu=1.0),
]
positive_floats = st.floats(min_value=1e-300, max_value=1e150)


def test_a_promise_reads_well():
    words = [promise.describe() for promise in ONE_OF_EACH]
    assert words == ["1-DP (pure)", "(1, 1e-06)-DP", "0.1-zCDP", "1-GDP"]


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "much", None])
def test_a_promise_refuses_what_is_not_a_positive_number(bad):
    for make in (lambda x: PureDP(epsilon=x), lambda x: ZCDP(rho=x), lambda x: GDP(mu=x)):
        with pytest.raises(InvalidInput, match=r"epsilon|rho|mu"):
            make(bad)


@pytest.mark.parametrize("bad", [0, 1, -1e-9, 1.5, math.nan, math.inf])
def test_delta_lies_strictly_between_zero_and_one(bad):
    with pytest.raises(InvalidInput, match="delta"):
        ApproxDP(epsilon=1.0, delta=bad)


@pytest.mark.parametrize("promise", ONE_OF_EACH)
def test_a_promise_survives_json(promise):
    assert privacy.from_dict(privacy.to_dict(promise)) == promise


def test_an_unknown_kind_is_refused_with_the_nearest_one():
    with pytest.raises(InvalidInput, match="Did you mean 'zcdp'"):
        privacy.from_dict({"kind": "zcpd", "rho": 1.0})
    with pytest.raises(InvalidInput, match="Did you mean 'approx'"):
        ZCDP(rho=1.0).to("aprox", delta=1e-6)


def test_neighbors_are_parsed_from_their_names():
    assert Neighbors.parse("add-remove") is Neighbors.ADD_REMOVE
    assert Neighbors.parse(Neighbors.SUBSTITUTE) is Neighbors.SUBSTITUTE
    with pytest.raises(InvalidInput, match="substitute"):
        Neighbors.parse("substitution")
    with pytest.raises(InvalidInput, match="int"):
        Neighbors.parse(3)  # type: ignore[arg-type]


def test_promises_load_neither_numpy_nor_scipy():
    code = (
        "import sys, muhat.privacy as p; p.ZCDP(rho=1.0).to('approx', delta=1e-6); "
        "assert not {'numpy', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- composition -----------------------------------------------------------------------------


@given(st.lists(positive_floats, min_size=1, max_size=8))
def test_composition_is_never_below_the_exact_sum_and_at_most_one_float_above(values):
    total = sum(map(as_typed, values), Fraction(0))
    for make, field in ((ZCDP, "rho"), (PureDP, "epsilon")):
        result = getattr(compose([make(**{field: value}) for value in values]), field)
        assert as_typed(result) >= total > as_typed(math.nextafter(result, 0))


@given(st.lists(st.floats(min_value=1e-150, max_value=1e150), min_size=1, max_size=8))
def test_gaussian_composition_adds_the_squares(values):
    total = sum((as_typed(value) ** 2 for value in values), Fraction(0))
    mu = compose([GDP(mu=value) for value in values]).mu
    assert as_typed(mu) ** 2 >= total > as_typed(math.nextafter(mu, 0)) ** 2


def test_composition_of_typed_decimals_is_exact():
    assert compose([ZCDP(rho=0.1), ZCDP(rho=0.2)]) == ZCDP(rho=0.3)
    assert compose([GDP(mu=0.3), GDP(mu=0.4)]) == GDP(mu=0.5)
    assert compose([ApproxDP(epsilon=0.1, delta=1e-6)] * 3) == ApproxDP(epsilon=0.3, delta=3e-6)


def test_composition_refuses_mixed_kinds_nothing_and_a_delta_of_one():
    with pytest.raises(InvalidInput, match="one kind"):
        compose([ZCDP(rho=0.1), GDP(mu=0.1)])
    with pytest.raises(InvalidInput, match="none"):
        compose([])
    with pytest.raises(InvalidInput, match="delta"):
        compose([ApproxDP(epsilon=0.1, delta=0.5)] * 2)


@pytest.mark.parametrize("promise", ONE_OF_EACH)
def test_a_filter_takes_exactly_its_budget(promise):
    budget = Filter(promise)
    budget.charge(promise)
    assert budget.spent == promise.amounts
    assert not any(budget.remaining)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        budget.charge(promise)
    assert budget.spent == promise.amounts
    assert "remaining 0" in repr(budget)


def test_a_filter_has_no_float_drift():
    budget = Filter(ZCDP(rho=1.0))
    for _ in range(1000):
        budget.charge(ZCDP(rho=0.001))
    assert budget.remaining == (Fraction(0),)
    squares = Filter(GDP(mu=1.0))
    for mu in (0.6, 0.8):
        squares.charge(GDP(mu=mu))
    assert squares.remaining == (Fraction(0),)


def test_a_filter_watches_epsilon_and_delta_each():
    budget = Filter(ApproxDP(epsilon=1.0, delta=1e-6))
    with pytest.raises(BudgetExceeded):
        budget.charge(ApproxDP(epsilon=0.1, delta=2e-6))
    with pytest.raises(BudgetExceeded):
        budget.charge(ApproxDP(epsilon=1.1, delta=1e-7))
    assert budget.spent == (0, 0)


def test_a_filter_refuses_another_kind():
    with pytest.raises(InvalidInput, match="Convert"):
        Filter(ZCDP(rho=1.0)).charge(GDP(mu=0.1))


# --- groups ----------------------------------------------------------------------------------


def test_a_group_costs_what_the_theorems_say():
    assert privacy.for_groups(PureDP(epsilon=0.3), 2) == PureDP(epsilon=0.6)
    assert privacy.for_groups(ZCDP(rho=0.1), 2) == ZCDP(rho=0.4)
    assert privacy.for_groups(ZCDP(rho=0.1), 5) == ZCDP(rho=2.5)
    assert privacy.for_groups(GDP(mu=0.1), 3) == GDP(mu=0.3)
    for promise in (PureDP(epsilon=0.3), ApproxDP(epsilon=1, delta=1e-6)):
        assert privacy.for_groups(promise, 1) is promise


@pytest.mark.parametrize("epsilon", ["5e-324", "1e-300", "1e-9", "0.3", "1.0", "7.0"])
@pytest.mark.parametrize("size", [2, 3, 7, 100])
def test_the_delta_of_a_group_is_the_geometric_sum_rounded_up(epsilon, size):
    with mpmath.workdps(400):
        loss = mpmath.mpf(epsilon)
        exact = sum(mpmath.exp(k * loss) for k in range(size)) * mpmath.mpf("1e-320")
        pair = privacy.for_groups(ApproxDP(epsilon=float(epsilon), delta=1e-320), size)
        assert isinstance(pair, ApproxDP)
        assert Fraction(repr(pair.epsilon)) >= size * Fraction(epsilon)
        got = mpmath.mpf(repr(pair.delta))
        assert (
            exact * (1 - mpmath.mpf("1e-390"))
            <= got
            <= exact * (1 + mpmath.mpf("1e-15")) + mpmath.mpf("1e-323")
        )


@pytest.mark.parametrize("epsilon", [14.0, 1e4, 1e300])
def test_a_group_is_refused_a_delta_of_one_or_more(epsilon):
    with pytest.raises(InvalidInput, match="says nothing"):
        privacy.for_groups(ApproxDP(epsilon=epsilon, delta=1e-6), 2)


# --- rounding --------------------------------------------------------------------------------


def test_the_margin_for_roundings_is_not_itself_rounded_away():
    assert Fraction(rounding.MARGIN) == 1 + Fraction(1, 10**30)


@given(st.fractions(min_value=-(10**30), max_value=10**30))
def test_rounding_encloses_the_value_between_neighbouring_floats(value):
    below, above = rounding.float_at_most(value), rounding.float_at_least(value)
    assert as_typed(below) <= value <= as_typed(above)
    assert above in (below, math.nextafter(below, math.inf))


def test_rounding_goes_to_infinity_outside_the_floats():
    huge = Fraction(10) ** 400
    assert rounding.float_at_least(huge) == math.inf
    assert rounding.float_at_most(huge) == sys.float_info.max
    assert rounding.float_at_least(1 / huge) == 5e-324
    assert rounding.root_at_least(huge**2) == math.inf
    assert rounding.root_at_least(Fraction(0)) == 0
