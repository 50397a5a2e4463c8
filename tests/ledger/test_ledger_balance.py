"""Exact amounts: sums, comparisons, floats on the safe side, and the proved conversions."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat import GDP, ZCDP, ApproxDP, InvalidInput, PureDP
from muhat.ledger.balance import Balance, from_text, to_text
from muhat.ledger.converting import convert

PROMISES = {
    "pure": PureDP(epsilon=0.5),
    "approx": ApproxDP(epsilon=0.5, delta=1e-6),
    "zcdp": ZCDP(rho=0.5),
    "gdp": GDP(mu=0.5),
}
ALLOWED = {("pure", "zcdp"), ("gdp", "zcdp"), ("pure", "approx")}

positive_floats = st.floats(min_value=1e-300, max_value=1e300, exclude_min=True)


def test_a_million_charges_add_up_without_drift():
    step = Balance.of(ZCDP(rho=0.1))
    total = Balance.zero("zcdp")
    for _ in range(1_000_000):
        total = total + step
    assert total.amounts == (Fraction(100_000),)
    assert sum([0.1] * 1_000_000) != 100_000, "floats would have drifted"


def test_each_kind_has_its_own_numbers_and_no_others():
    assert Balance.of(PROMISES["pure"]).epsilon == 0.5
    approx = Balance.of(PROMISES["approx"])
    assert (approx.epsilon, approx.delta) == (0.5, 1e-6)
    assert Balance.of(PROMISES["zcdp"]).rho == 0.5
    assert Balance.of(PROMISES["gdp"]).mu == 0.5
    assert not hasattr(approx, "rho")
    assert not hasattr(Balance.of(PROMISES["zcdp"]), "delta")


def test_balances_print_as_promises_are_written():
    assert [repr(Balance.of(promise)) for promise in PROMISES.values()] == [
        "0.5-DP",
        "(0.5, 1e-06)-DP",
        "0.5-zCDP",
        "0.5-GDP",
    ]
    assert repr(Balance.zero("zcdp")) == "0-zCDP"
    assert str(Balance("zcdp", (Fraction(1, 3),))) == "0.3333333333333333-zCDP"
    assert f"{Balance('zcdp', (Fraction(1, 3),)):.3g}" == "0.333-zCDP"


def test_comparisons_are_exact_with_numbers_promises_and_balances():
    spent = Balance("zcdp", (Fraction(3, 10),))
    assert spent == 0.3
    assert spent == ZCDP(rho=0.3)
    assert spent < 0.30000000000000004
    assert spent > Fraction(299, 1000)
    assert spent <= 1
    assert spent >= Balance.zero("zcdp")
    assert not spent < 0.3
    assert not spent > 0.3
    assert float(spent) == 0.3
    assert Balance.of(GDP(mu=0.3)) == 0.3
    assert Balance.of(GDP(mu=0.3)) > -0.3


def test_other_kinds_and_other_things_are_unequal_and_unordered():
    spent = Balance("zcdp", (Fraction(3, 10),))
    for other in (PureDP(epsilon=0.3), Balance.of(GDP(mu=0.3)), "0.3", True, float("nan"), None):
        assert spent != other
        with pytest.raises(TypeError):
            assert spent < other
        with pytest.raises(TypeError):
            assert spent >= other
    with pytest.raises(TypeError):
        spent + Balance.of(GDP(mu=0.3))
    with pytest.raises(TypeError):
        hash(spent)


def test_epsilon_and_delta_are_ordered_only_together():
    less = Balance.of(ApproxDP(epsilon=0.5, delta=1e-6))
    more = Balance.of(ApproxDP(epsilon=0.6, delta=1e-6))
    aside = Balance.of(ApproxDP(epsilon=0.7, delta=1e-9))
    assert less < more
    assert not more <= aside
    assert not aside <= more
    assert less > 0
    assert Balance.zero("approx") == 0
    assert less != 0.5
    with pytest.raises(TypeError):
        assert less < 0.6


@given(st.sampled_from(list(PROMISES)), positive_floats, positive_floats)
def test_a_promise_made_of_the_rest_never_exceeds_the_rest(kind, first, second):
    total = Balance(kind, (Fraction(first),) * len(PROMISES[kind].amounts))
    part = Balance(kind, (Fraction(second) / 3,) * len(total.amounts))
    rest = total - part if part < total else total + part
    if kind == "approx":
        rest = Balance(kind, (rest.amounts[0], rest.amounts[1] / (rest.amounts[1] + 1)))
        promise = ApproxDP(epsilon=rest.epsilon, delta=rest.delta)
    else:
        promise = type(PROMISES[kind])(
            **{{"zcdp": "rho", "gdp": "mu"}.get(kind, "epsilon"): float(rest)}
        )
    exact = Balance.of(promise)
    assert exact <= rest
    assert float(exact) >= float(rest) * (1 - 1e-15)


@pytest.mark.parametrize("mu", [1e-200, 0.3, 1e200, 1.7e308])
def test_mu_survives_squares_outside_the_range_of_floats(mu):
    assert Balance.of(GDP(mu=mu)).mu == mu


@given(st.fractions(min_value=0))
def test_exact_amounts_survive_their_text(amount):
    assert from_text(to_text(amount)) == amount


@pytest.mark.parametrize(
    "text",
    ["1e999999999", "1/0", "2/4", "-1/2", "1", "1/2/3", "٣/1", "", None, 1, "9" * 5000 + "/1"],
)
def test_a_text_that_is_no_exact_amount_is_a_value_error(text):
    with pytest.raises(ValueError):
        from_text(text)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 0.1, 0.5, 1.0, 3.0, 20.0, 1e4])
def test_pure_is_charged_to_zcdp_by_epsilon_tanh_rounded_up(epsilon):
    promise = PureDP(epsilon=epsilon)
    charged, how = convert(promise, "zcdp")
    with mpmath.workdps(400):
        exact_epsilon = mpmath.mpf(promise.amounts[0].numerator) / promise.amounts[0].denominator
        least = exact_epsilon * mpmath.tanh(exact_epsilon / 2)
        (amount,) = charged.amounts
        rho = mpmath.mpf(amount.numerator) / amount.denominator
        assert least <= rho
        assert rho <= least * (1 + mpmath.mpf(10) ** -12) + mpmath.mpf(10) ** -300
    assert how == "pure → zCDP: ρ = ε·tanh(ε/2)"


def test_gaussian_is_charged_to_zcdp_exactly_and_pure_to_approximate_without_delta():
    charged, how = convert(GDP(mu=0.3), "zcdp")
    assert charged.amounts == (Fraction(9, 200),)
    assert how == "GDP → zCDP: ρ = μ²/2"
    charged, how = convert(PureDP(epsilon=0.3), "approx")
    assert charged.amounts == (Fraction(3, 10), Fraction(0))
    assert how == "pure → approximate: δ = 0"


@pytest.mark.parametrize("kind", PROMISES)
def test_the_same_kind_is_charged_as_promised(kind):
    assert convert(PROMISES[kind], kind) == (Balance.of(PROMISES[kind]), "as promised")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (source, target)
        for source in PROMISES
        for target in PROMISES
        if source != target and (source, target) not in ALLOWED
    ],
)
def test_every_other_conversion_is_refused_and_names_a_promise_that_is_taken(source, target):
    with pytest.raises(InvalidInput) as refusal:
        convert(PROMISES[source], target)
    hint = str(refusal.value).split("ask for ")[1]
    assert type(PROMISES[target]).__name__ in hint
    assert type(PROMISES[source]).__name__ not in hint
