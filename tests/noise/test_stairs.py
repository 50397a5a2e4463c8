"""Stairs: what they keep against an enumeration, what they draw against their weights."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import system_words
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import SHAPES
from muhat.noise.least_stairs import least_stairs
from muhat.noise.spread import Spread
from muhat.noise.stairs import HEIGHT, Stairs, falling
from muhat.privacy import Privacy, as_typed

HALF = Fraction(1, 2)
SMALL = [
    Stairs(1, 1, HALF),
    Stairs(3, 2, Fraction(2, 5)),
    Stairs(1, 1, Fraction(3, 4), 5),
    Stairs(1, 1, Fraction(3, 4), 5, HEIGHT // 9),
    Stairs(4, 3, Fraction(1, 3), 13),
    Stairs(4, 1, Fraction(1, 3), 6, HEIGHT // 12),
    Stairs(2, 2, Fraction(9, 10), 9),
]


def chances(law: Stairs, reach: int = 400) -> dict[int, Fraction]:
    """P(z) for |z| ≤ reach, from the definition."""

    def weight(size: int) -> Fraction:
        stair = 0 if size < law.inner else 1 + (size - law.inner) // law.step
        if law.end is None:
            return law.ratio**stair
        if size >= law.end:
            return Fraction(law.last or 0, HEIGHT) if size == law.end else Fraction(0)
        height = HEIGHT
        for _ in range(stair):
            height = math.ceil(height * law.ratio)
        return Fraction(height, HEIGHT)

    weights = {z: weight(abs(z)) for z in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {z: each / total for z, each in weights.items()}


def lost(law: Stairs, shift: int, epsilon: float) -> mpmath.mpf:
    """The least δ at ε, by enumeration."""
    p = chances(law)
    with mpmath.workdps(60):
        factor = mpmath.exp(mpmath.mpf(str(epsilon)))
        pairs = [(p[z], p.get(z + shift, Fraction(0))) for z in p]
        return mpmath.fsum(
            max(
                mpmath.mpf(0),
                mpmath.mpf(a.numerator) / a.denominator - factor * b.numerator / b.denominator,
            )
            for a, b in pairs
        )


@pytest.mark.parametrize("law", [law for law in SMALL if law.end], ids=repr)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0986, 2.5])
def test_cut_stairs_keep_the_delta_of_an_enumeration_and_no_less(
    law: Stairs, epsilon: float
) -> None:
    for shift in range(1, 2 * law.step + 2 if law.step > 1 else 2):
        delta = lost(law, shift, epsilon)
        if not 0 < delta < 0.9:
            continue
        for factor, kept in ((1 + 1e-12, True), (1 - 1e-12, False)):
            promise = mh.ApproxDP(epsilon=epsilon, delta=float(delta * factor))
            assert law.keeps(promise, Fraction(shift)) is kept
            assert law.keeps(promise, Fraction(shift) + Fraction(999, 1000)) is kept


@pytest.mark.parametrize("law", [law for law in SMALL if not law.end], ids=repr)
def test_endless_stairs_keep_the_largest_ratio_of_an_enumeration(law: Stairs) -> None:
    p = chances(law, 60)
    for shift in range(1, 2 * law.step + 2):
        inner = [z for z in p if abs(z) + shift <= 60]
        worst = max(p[z] / p[z + shift] for z in inner)
        epsilon = math.log(worst)
        moved = Fraction(shift)
        assert law.keeps(mh.PureDP(epsilon=epsilon * (1 + 1e-12)), moved)
        assert not law.keeps(mh.PureDP(epsilon=epsilon * (1 - 1e-12)), moved)
        squared = Fraction(epsilon) ** 2
        assert law.keeps(Strength(NoiseKind.PURE, squared * (1 + Fraction(1, 10**12))), moved)
        assert not law.keeps(Strength(NoiseKind.PURE, squared * (1 - Fraction(1, 10**12))), moved)


def test_what_is_proved_for_a_move_holds_for_every_smaller_one() -> None:
    for law, epsilon in product(SMALL[2:], (0.2, 1.0)):
        losses = [lost(law, shift, epsilon) for shift in range(1, 3 * law.step)]
        assert losses == sorted(losses)


@pytest.mark.parametrize(
    "promise",
    [
        mh.PureDP(epsilon=50),
        mh.GDP(mu=9),
        mh.ZCDP(rho=9),
        Strength(NoiseKind.PURE, Fraction(2500)),
        Strength(NoiseKind.NORMAL, Fraction(9)),
    ],
    ids=str,
)
def test_cut_stairs_keep_points_alone(promise: Privacy | Strength) -> None:
    assert not Stairs(1, 1, HALF, 80).keeps(promise, Fraction(1))


def test_endless_stairs_keep_what_pure_noise_keeps() -> None:
    law = least_stairs(mh.PureDP(epsilon=1.0), 1)
    assert law is not None
    one = Fraction(1)
    assert law.keeps(mh.ApproxDP(epsilon=1.0, delta=1e-9), one)
    # Of randomised response at ε = 1: ρ = ε·tanh(ε/2).
    assert law.keeps(mh.ZCDP(rho=0.4622), one)
    assert not law.keeps(mh.ZCDP(rho=0.462), one)
    assert not law.keeps(Strength(NoiseKind.NORMAL, Fraction(100)), one)


def test_several_numbers_share_epsilon_and_wide_steps_are_for_one() -> None:
    promise = mh.PureDP(epsilon=1.0)
    both = least_stairs(promise, 2, rows=7)
    assert both is not None
    assert both.step == 1
    assert both.most_rows is None
    assert both.keeps(promise, Fraction(2))
    assert not both.keeps(promise, Fraction(3))
    one = least_stairs(promise, 2)
    assert one is not None
    assert one.most_rows == 1
    with pytest.raises(AssertionError, match="single answer"):
        one.sample(2)
    # Cut, two numbers that move by one each lose more than one of them: not kept.
    cut = Stairs(1, 1, HALF, 9)
    assert not cut.keeps(mh.ApproxDP(epsilon=5.0, delta=0.5), Fraction(2))


@pytest.mark.parametrize("table", [None, 2], ids=["whole table", "two stairs at a time"])
@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_draws_are_those_of_the_weights(
    law: Stairs, table: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """χ² of 60,000 draws: its 1 − 5e-8 quantile, 14 times; 20 % more at 0 is far beyond it."""
    from scipy.stats import chi2

    if table is not None:
        monkeypatch.setattr(Stairs, "_table", table)
        law = replace(law)
    many = 60_000
    drawn = law.drawn(many, system_words)
    p = {z: float(each) for z, each in chances(law, 60).items()}
    bins = {z: many * each for z, each in p.items() if many * each >= 10}
    seen = [int((drawn == z).sum()) for z in bins]
    expected = np.array(list(bins.values()))
    rest, left = many - sum(seen), many - expected.sum()
    statistic = float(((seen - expected) ** 2 / expected).sum())
    if left > 10:
        statistic += (rest - left) ** 2 / left
    assert statistic < chi2.isf(5e-8, len(bins))
    assert 0.2**2 * bins[0] > 1.5 * chi2.isf(5e-8, len(bins))
    if law.end is not None:
        assert np.abs(drawn).max() <= law.end


def test_what_lies_beyond_the_table_is_drawn_from_there_on() -> None:
    law = Stairs(1, 1, HALF)
    table = law._table
    top = (1 << 64) - 1
    # Beyond the table twice, then the third stair (⅞ of the way), and a negative number.
    answers = iter([top, 7 << 61, top, 7 << 61, (7 << 61) + 1, 1 << 63])

    def words(count: int) -> np.ndarray:
        return np.array([next(answers) for _ in range(count)], np.uint64)

    drawn = law.drawn(1, words)
    assert drawn.tolist() == [-(2 * table + 3)]


@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_moments_tails_and_quantiles_are_those_of_the_weights(law: Stairs) -> None:
    p = chances(law)
    assert law.second_moment == pytest.approx(sum(z * z * each for z, each in p.items()), rel=1e-12)
    assert law.variance(1) * law.unit**2 == pytest.approx(float(law.second_moment))
    for size in range(30):
        exact = float(sum(each for z, each in p.items() if abs(z) > size))
        for reach in (size / law.unit, (size + 0.999) / law.unit):
            assert law.tail(reach, 1) == pytest.approx(exact, rel=1e-11, abs=1e-15)
    for confidence in (0.3, 0.5, 0.9, 0.95, 0.999):
        cells = law.quantile(confidence, 1) * law.unit
        assert cells == int(cells)
        inside = float(sum(each for z, each in p.items() if abs(z) <= cells))
        fewer = float(sum(each for z, each in p.items() if abs(z) < cells))
        assert fewer < confidence <= inside + 1e-12
    if law.end is not None:
        assert law.quantile(1.0, 1) * law.unit == law.end - (law.last is None)


def test_errors_of_several_cells_are_those_of_an_enumeration() -> None:
    law = Stairs(1, 1, Fraction(1, 4))
    spread = Spread(law, 2, np.array([1.0, 1.0]) * law.unit)
    p = {z: float(each) for z, each in chances(law, 30).items()}
    for order, within in ((3.0, 1e-5), (math.inf, 2e-2)):
        exact = math.sqrt(
            sum(
                a * b * np.linalg.norm([x, y], order) ** 2
                for (x, a), (y, b) in product(p.items(), p.items())
            )
        )
        assert spread.root_mean_square(order)[0] == pytest.approx(exact, rel=within)


def test_combinations_reach_no_farther_than_is_said() -> None:
    """Unit vectors of 1, 2 and 5 cells: exact tails by convolution, moments likewise."""
    law = Stairs(1, 1, Fraction(2, 5))
    one = np.array([float(each) for each in chances(law, 60).values()])
    whole = one
    for terms in range(1, 6):
        sizes = np.abs(np.arange(len(whole)) - len(whole) // 2) / math.sqrt(terms) / law.unit
        for confidence in (0.8, 0.95, 0.9999):
            reach = law.combined_quantile(confidence, 1, joint=False)
            assert whole[sizes > reach].sum() <= 1 - confidence
        for order in (2.0, 4.0, 8.0):
            exact = float(whole @ sizes**order) ** (1 / order)
            assert exact <= law.combined_moment(order, np.array([float(terms)]))[0]
        whole = np.convolve(whole, one)


def test_stairs_are_written_and_read() -> None:
    assert SHAPES["stairs"] is Stairs
    for law in SMALL:
        spread = Spread(law, 1, np.ones(1))
        assert Spread.from_dict(spread.to_dict()).law == law
    written = Spread(SMALL[3], 1, np.ones(1)).to_dict()
    for key, value in (("step", "0"), ("ratio", "3/2"), ("end", "0"), ("last", str(HEIGHT))):
        with pytest.raises(mh.InvalidInput):
            Spread.from_dict({**written, "law": {**written["law"], key: value}})


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 40.0])
def test_endless_stairs_have_the_least_variance_of_their_family(epsilon: float) -> None:
    promise = mh.PureDP(epsilon=epsilon)
    b = math.exp(-epsilon)
    count = least_stairs(promise, 1)
    assert count is not None
    assert float(count.second_moment) == pytest.approx(2 * b / (1 - b) ** 2, rel=1e-6)
    step = 1 << 46
    number = least_stairs(promise, step)
    assert number is not None
    exact = ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2
    assert float(number.second_moment) / step**2 == pytest.approx(exact, rel=1e-6)
    some = least_stairs(promise, 37)
    assert some is not None
    others = [replace(some, inner=inner).second_moment for inner in range(1, 38)]
    assert some.second_moment == min(others)
    for law in (count, number, some):
        assert law.keeps(promise, Fraction(law.step))
        tighter = replace(law, ratio=law.ratio - Fraction(2, 1 << 96))
        assert not tighter.keeps(promise, Fraction(law.step))
        assert not law.keeps(promise, Fraction(law.step + 1))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (0.5, 1e-2), (1.0, 1e-2), (1.0, 1e-3)])
def test_cut_stairs_of_a_count_are_those_of_the_closed_form(epsilon: float, delta: float) -> None:
    """p_k = c·b^k up to N and r beyond, c·b^N − r(1 − b)/b = δ: the least over falling laws."""
    law = least_stairs(mh.ApproxDP(epsilon=epsilon, delta=delta), 1)
    assert law is not None
    assert law.end is not None
    b = math.exp(-epsilon)

    def variance(last: int, part: float) -> tuple[float, float]:
        weights = np.append(b ** np.arange(last + 1), part)
        total = 2 * weights.sum() - 1
        spent = (b**last - part * (1 - b) / b) / total
        return spent, 2 * float(weights @ np.arange(last + 2) ** 2) / total

    from scipy.optimize import brentq

    last = next(n for n in range(10**4) if variance(n, b ** (n + 1))[0] <= delta)
    part = brentq(lambda x: variance(last, x)[0] - delta, 0, b ** (last + 1), xtol=1e-15)
    assert float(law.second_moment) == pytest.approx(variance(last, part)[1], rel=1e-6)


def test_cut_stairs_are_taken_where_they_gain_and_planted_ones_are_refused() -> None:
    step = 1 << 46
    for epsilon, delta, moved in product((0.1, 1.0), (1e-2, 1e-3), (1, 3, step)):
        promise = mh.ApproxDP(epsilon=epsilon, delta=delta)
        law = least_stairs(promise, moved)
        pure = least_stairs(mh.PureDP(epsilon=epsilon), moved)
        assert law is not None
        assert pure is not None
        assert law.end is not None
        assert law.second_moment < 0.98 * pure.second_moment
        assert law.keeps(promise, Fraction(moved))
        assert not law.keeps(mh.ApproxDP(epsilon=epsilon, delta=delta * 0.999), Fraction(moved))
        # Planted: a little sooner cut, a little steeper, a little farther moved.
        sooner = law.end - max(1, moved // 1000)
        planted = [
            replace(law, end=sooner, last=None),
            replace(law, ratio=law.ratio * Fraction(99, 100), last=None),
        ]
        assert not any(each.keeps(promise, Fraction(moved)) for each in planted)
        assert not law.keeps(promise, Fraction(moved + max(1, moved // 1000)))
    tiny = least_stairs(mh.ApproxDP(epsilon=1.0, delta=1e-6), 1)
    assert tiny is not None
    assert tiny.end is None
    for share in (mh.ZCDP(rho=1.0), mh.GDP(mu=1.0)):
        pure = least_stairs(share, 1)
        assert pure is None or pure.end is None


def test_where_stairs_are_not_worth_their_table_there_are_none() -> None:
    assert least_stairs(mh.PureDP(epsilon=1e-3), 1) is None
    assert least_stairs(Strength(NoiseKind.NORMAL, Fraction(1)), 1) is None
    assert least_stairs(mh.PureDP(epsilon=1.0), 1 << 61) is None


def test_what_pure_noise_may_reveal_is_rounded_to_the_safe_side() -> None:
    for epsilon in (0.1, 1.0, 3.3):
        allowed = falling(mh.PureDP(epsilon=epsilon))
        low, high = falling_exponential(as_typed(epsilon), 200)
        assert allowed is not None
        assert low <= allowed
        assert allowed - high < Fraction(1, 1 << 120)


@pytest.mark.parametrize("epsilon", [20, 60, 134, 200, 700, 5000])
@pytest.mark.parametrize("people", [1, 2, 3, 40])
def test_cells_have_stairs_under_promises_that_promise_next_to_nothing(epsilon, people):
    """e^−ε is rounded up to 128 bits: several stairs must fall by no more than that together."""
    law = least_stairs(mh.PureDP(epsilon=epsilon), people, rows=4)
    assert law.keeps(mh.PureDP(epsilon=epsilon), Fraction(people))
    assert law.second_moment < 1e-3 or epsilon / people < 10
