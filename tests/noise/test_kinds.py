"""What noise of a kind may reveal: shares that add up, and the exact edge of every promise."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muhat as mh
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import ScaleFamily
from muhat.noise.laws import LAWS, elliptic_law, independent_law
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors, Privacy, as_typed, gaussian_mu_squared, pure_within

PROMISES: list[Privacy] = [
    mh.PureDP(epsilon=0.1),
    mh.PureDP(epsilon=3),
    mh.ApproxDP(epsilon=1, delta=1e-6),
    mh.ZCDP(rho=0.1),
    mh.GDP(mu=0.7),
    mh.RDP(alpha=4, epsilon=0.5),
]
FRACTIONS = st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000)


def allowed(promise: Privacy, law: ScaleFamily) -> Fraction | None:
    """Worked out by hand: ε² or μ² of the noise that just keeps it."""
    if law.name != "normal":
        return as_typed(pure_within(promise)) ** 2
    return gaussian_mu_squared(promise) if promise.admits_normal else None


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.describe())
@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_a_law_keeps_a_promise_up_to_its_edge_and_no_farther(
    promise: Privacy, law: ScaleFamily
) -> None:
    square = allowed(promise, law)
    if square is None:
        assert not law.keeps(promise, Fraction(0))
        return
    # The edge in units of 2^54, between two rationals 2^-100 apart.
    low, high = Fraction(0), Fraction(1 << 60)
    while high - low > Fraction(1, 1 << 100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**2 <= square * (1 << 108) else (low, middle)
    assert law.keeps(promise, low)
    assert not law.keeps(promise, high)


@given(square=FRACTIONS, share=FRACTIONS, kind=st.sampled_from(NoiseKind))
def test_shares_of_a_strength_add_up_to_the_whole(
    square: Fraction, share: Fraction, kind: NoiseKind
) -> None:
    whole = Strength(kind, square)
    first, second = whole.part(share).squared, whole.part(1 - share).squared
    if kind is NoiseKind.NORMAL:
        assert first + second == square
    else:
        # √first + √second = √square, without roots.
        assert 4 * first * second == (square - first - second) ** 2
    assert kind.strength_of(float(share)) ** 2 * float(square) == pytest.approx(float(first))


@given(square=FRACTIONS, number=st.integers(1, 50), kind=st.sampled_from(NoiseKind))
def test_even_shares_together_keep_the_whole_and_no_less(
    square: Fraction, number: int, kind: NoiseKind
) -> None:
    whole = Strength(kind, square)
    each = whole.part(Fraction(1, number)).squared
    together = kind.together([each] * number)
    assert together.keeps(whole)
    assert not kind.together([each * Fraction(101, 100), *[each] * (number - 1)]).keeps(whole)


def test_a_share_of_one_kind_is_none_of_the_other() -> None:
    """Planted: ε² in the place of μ² would be far too little noise."""
    pure, normal = (Strength(kind, Fraction(1)) for kind in (NoiseKind.PURE, NoiseKind.NORMAL))
    assert not normal.keeps(pure)
    assert not pure.keeps(normal)
    assert not LAWS["normal"].keeps(pure, Fraction(1))
    with pytest.raises(AssertionError, match="another kind"):
        Strength.of(pure, NoiseKind.NORMAL)
    step = Protection(pure, Neighbors.SUBSTITUTE, 1)
    with pytest.raises(AssertionError, match="another kind"):
        step.part(NoiseKind.NORMAL, Fraction(1, 2))
    with pytest.raises(AssertionError, match="another kind"):
        step.check(LAWS["normal"], Fraction(1), 1)


@pytest.mark.parametrize("kind", NoiseKind)
def test_every_kind_has_a_law_for_numbers_and_one_for_ellipsoids(kind: NoiseKind) -> None:
    assert independent_law(kind).kind is elliptic_law(kind).kind is kind
    assert independent_law(kind).independent
    assert elliptic_law(kind).elliptic
    assert [law.name for law in LAWS.values() if law.stable] == ["normal"]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.describe())
def test_a_promise_is_named_for_noise_that_can_keep_it(promise: Privacy) -> None:
    kind = NoiseKind.named_by(promise)
    assert kind.can_keep(promise)
    assert Strength.of(promise, kind).keeps(promise)
    with_more = Strength(kind, Strength.of(promise, kind).squared * (1 + Fraction(1, 10**30)))
    assert not with_more.keeps(promise)
