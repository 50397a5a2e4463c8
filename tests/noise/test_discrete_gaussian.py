"""Discrete Gaussian noise: its decisions, its law, and how close a sum of parts comes to one.

A χ² test has a false-alarm rate of 1e-7, at most 1e-6 for all of this file; a wrong law has to
be told apart by a p-value below 1e-20.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import noise_reference as reference
import numpy as np
import pytest
from noise_reference import Replay, mpf
from numpy.typing import NDArray
from scipy import stats

from muhat.errors import InvalidInput
from muhat.noise import discrete_gaussian as module
from muhat.noise.discrete_gaussian import closeness, discrete_gaussian

FALSE_ALARM = 1e-7
CAUGHT = 1e-20
ONES = 2**64 - 1


def gaussian_law(variance: Fraction, ends: int) -> list[mpmath.mpf]:
    """P(−ends), …, P(ends) in 50 digits."""
    with mpmath.workdps(50):
        total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpf(variance))))
        weights = [mpmath.exp(-mpmath.mpf(k * k) / (2 * mpf(variance))) for k in range(ends + 1)]
        return [weights[abs(k)] / total for k in range(-ends, ends + 1)]


def p_value(draws: NDArray[np.int64], variance: Fraction, ends: int) -> float:
    """χ² against N_Z(0, variance), the two ends standing for all beyond them."""
    law = np.array([float(p) for p in gaussian_law(variance, ends)])
    law[[0, -1]] = (1 - law[1:-1].sum()) / 2
    counts = np.bincount(np.clip(draws, -ends, ends) + ends, minlength=2 * ends + 1)
    return float(stats.chisquare(counts, law / law.sum() * draws.size).pvalue)


@pytest.mark.parametrize(
    ("variance", "ends", "wrong"),
    [
        (Fraction(1, 16), 1, Fraction(1, 13)),
        (Fraction(1, 3), 2, Fraction(3, 8)),
        (Fraction(1), 4, Fraction(21, 20)),
        (Fraction(10, 3), 6, Fraction(7, 2)),
        (Fraction(100), 25, Fraction(105)),
    ],
)
@pytest.mark.parametrize("tabled", [True, False])
def test_draws_have_their_law_and_a_slightly_wrong_variance_is_told_apart(
    variance: Fraction, ends: int, wrong: Fraction, tabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not tabled:
        monkeypatch.setattr(module, "OFTEN", 1 << 40)
    draws = discrete_gaussian(variance, 400_000)
    assert draws.dtype == np.int64
    assert p_value(draws, variance, ends) > FALSE_ALARM
    assert p_value(draws, wrong, ends) < CAUGHT


def test_a_rounded_normal_is_told_apart() -> None:
    draws = discrete_gaussian(Fraction(1), 400_000)
    edges = np.arange(-3.5, 4)
    rounded = np.diff(np.concatenate([[0.0], stats.norm.cdf(edges), [1.0]]))
    counts = np.bincount(np.clip(draws, -4, 4) + 4, minlength=9)
    assert stats.chisquare(counts, rounded * draws.size).pvalue < CAUGHT


def test_a_huge_variance_gives_a_normal_number() -> None:
    """Kolmogorov's test: rounding to whole numbers is invisible at a scale of 2^40."""
    draws = discrete_gaussian(Fraction(1 << 80), 50_000) / 2.0**40
    assert stats.kstest(draws, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(draws, "norm", args=(0, 1.2)).pvalue < CAUGHT


# Decisions, from words that are made to be close.


def words_of_exponential(floor: int) -> list[int]:
    """One word whose Laplace number is floor/2^55 and whatever follows, strips far from edges."""
    strip, within = divmod(floor, 2**49)
    low = reference.threshold("laplace", strip, 14)
    high = reference.boundary("laplace", strip, Fraction(1), 14)
    assert high - low > 2
    return reference.words_of((low + high) // 2, 14, within)[:1]


CLOSE = [
    (0, Fraction(1)),
    (1, Fraction(1)),
    (3, Fraction(10, 7)),
    (12, Fraction(100)),
    (10**6, Fraction(10**12)),
    (2**40 + 12345, Fraction(2**80)),
    (1, Fraction(1, 3)),
]


@pytest.mark.parametrize(("proposal", "variance"), CLOSE)
def test_a_close_decision_is_the_exact_one(proposal: int, variance: Fraction) -> None:
    scale = math.isqrt(math.floor(variance)) + 1
    centre = variance / scale
    exponent = (proposal - centre) ** 2 / (2 * variance)
    edge = math.floor(exponent * 2**55)
    verdicts = set()
    for floor in {max(0, edge + step) for step in (-(2**20), -64, -1, 0, 1, 64, 2**20)}:
        for more in (0, 1 << 63, ONES, math.floor(exponent * 2**119) % 2**64):
            for last in (0, ONES):
                words = [*words_of_exponential(floor), more, last, 1 << 63]
                kept = module._kept(np.array([-proposal]), centre, variance, Replay(words))
                known = Fraction(((floor << 64 | more) << 64 | last) << 64 | 1 << 63, 1 << 247)
                assert kept.tolist() == [known >= exponent]
                verdicts.add(known >= exponent)
    assert verdicts == {True, False}


def test_floats_decide_as_rationals_do() -> None:
    rng = np.random.default_rng(1)
    for variance in (Fraction(1, 16), Fraction(22, 7), Fraction(10**9 + 7, 3), Fraction(2**80)):
        scale = math.isqrt(math.floor(variance)) + 1
        proposed = np.rint(rng.laplace(size=200) * scale).astype(np.int64)
        first = rng.integers(1 << 63, ONES, size=200, dtype=np.uint64)
        kept = module._kept(proposed, variance / scale, variance, Replay([*first, *[7] * 500]))
        sample = module.draw(module.LAPLACE, 200, Replay([*first, *[7] * 500]))
        assert not sample.settled
        for one, floor, verdict in zip(proposed, sample.floors.tolist(), kept, strict=True):
            exponent = (abs(int(one)) - variance / scale) ** 2 / (2 * variance)
            assert bool(verdict) == (Fraction(~floor, 2**55) >= exponent)


def test_the_slack_covers_the_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The float exponent against the rational one, at proposals near and far."""
    seen: list[Fraction] = []

    def record(exponent: Fraction, number: object, words: object) -> bool:
        seen.append(exponent)
        return True

    monkeypatch.setattr(module, "_reaches", record)
    for proposal, variance in CLOSE:
        scale = math.isqrt(math.floor(variance)) + 1
        centre = variance / scale
        exponent = (proposal - centre) ** 2 / (2 * variance)
        gap = np.float64(proposal) - float(centre)
        error = abs(Fraction(float(gap * gap * float(1 / (2 * variance)))) - exponent)
        assert error < (exponent + 1) / 2**49
        floor = math.floor(exponent * 2**55)
        module._kept(np.array([proposal]), centre, variance, Replay(words_of_exponential(floor)))
        assert seen[-1] == exponent


def test_rejected_places_are_filled_again_over_many_blocks() -> None:
    for size in (0, 1, 2**15 - 1, 2**15 + 1, 70_000):
        draws = discrete_gaussian(Fraction(50), size)
        assert draws.shape == (size,)
        assert np.abs(draws).max(initial=0) < 100  # 14 standard deviations


def test_a_rejected_proposal_leaves_no_trace() -> None:
    """Two proposals for variance 1 at scale 2: the first is far out and refused, the second kept.

    A discrete Laplace number is the difference of two geometric ones, ⌊2·E⌋ at scale 2.
    """
    unit = 2**55
    far, near, zero = (words_of_exponential(f)[0] for f in (3 * unit, unit * 3 // 4, unit // 8))
    # 6 − 0 with E = 1/8 below γ(6); then 0 − 1, which any E from γ(1) = 1/8 upwards keeps.
    words = Replay([far, zero, zero, zero, near, zero])
    assert discrete_gaussian(Fraction(1), 1, words).tolist() == [-1]
    assert not words.words


def test_a_whole_number_is_a_variance_too(monkeypatch: pytest.MonkeyPatch) -> None:
    centres: list[object] = []

    def keep_all(proposed: NDArray[np.int64], centre: object, *others: object) -> NDArray[np.bool_]:
        centres.append(centre)
        return np.ones(proposed.size, bool)

    monkeypatch.setattr(module, "_kept", keep_all)
    discrete_gaussian(4, 1)  # type: ignore[arg-type]
    assert centres == [Fraction(4, 3)]
    assert closeness(1, 5) == closeness(Fraction(1), 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(1, 1 << 81), 2**81])
def test_a_variance_out_of_range_is_refused(variance: Fraction) -> None:
    with pytest.raises(InvalidInput, match="variance"):
        discrete_gaussian(variance, 1)


# Shares.


def log_ratios(part: Fraction, parts: int, ends: int) -> list[mpmath.mpf]:
    """ln of P(sum of parts = x)/P(N_Z(0, h·s²) = x) for |x| ≤ ends, by convolution."""
    with mpmath.workdps(50):
        reach = ends + 12
        single = gaussian_law(part, 2 * reach)
        total = single
        for _ in range(parts - 1):
            # What lies beyond 2·reach is below 1e-40 of everything that is compared.
            total = [
                mpmath.fdot(
                    (total[y + 2 * reach], single[x - y + 2 * reach])
                    for y in range(
                        max(-2 * reach, x - 2 * reach), min(2 * reach, x + 2 * reach) + 1
                    )
                )
                for x in range(-2 * reach, 2 * reach + 1)
            ]
        one = gaussian_law(part * parts, ends)
        middle = total[2 * reach - ends : 2 * reach + ends + 1]
        return [mpmath.log(p / q) for p, q in zip(middle, one, strict=True)]


@pytest.mark.parametrize(
    ("part", "parts"),
    [
        (Fraction(1, 8), 2),
        (Fraction(1, 4), 5),
        (Fraction(1, 2), 2),
        (Fraction(1, 2), 4),
        (Fraction(1), 2),
        (Fraction(1), 3),
        (Fraction(3, 2), 2),
        (Fraction(2), 2),
    ],
)
def test_closeness_bounds_every_ratio_of_a_direct_convolution(part: Fraction, parts: int) -> None:
    widest = max(abs(ratio) for ratio in log_ratios(part, parts, 8))
    assert widest <= closeness(part, parts)
    if parts == 2:
        # One step is nearly tight, and a part a quarter larger would claim too much.
        assert closeness(part, parts) < 1.7 * widest
        assert closeness(part * 5 / 4, parts) < widest


def test_far_out_many_parts_are_as_far_apart_as_the_bound_grows() -> None:
    """At x ≈ h/2 the ratio is about e^{−4h·e^{−2π²s²}}: τ cannot but grow with h."""
    part, parts = Fraction(1, 4), 8
    ratios = log_ratios(part, parts, 8)
    widest = max(abs(ratio) for ratio in ratios)
    assert widest <= closeness(part, parts) < 3 * widest


def test_closeness_is_rounded_up_and_close_to_its_formula() -> None:
    for part, parts in ((Fraction(1), 200), (Fraction(3), 77), (Fraction(5, 7), 1000)):
        with mpmath.workdps(40):
            single = ripple(mpf(part))
            steps = [ripple(mpf(part) * k / (k + 1)) for k in range(1, parts)]
            exact = parts * single + mpmath.fsum(step / (1 - step) for step in steps)
            assert exact <= closeness(part, parts) <= exact * mpmath.mpf("1.02")


def ripple(variance: mpmath.mpf) -> mpmath.mpf:
    return 2 * mpmath.fsum(mpmath.exp(-2 * mpmath.pi**2 * variance * j**2) for j in range(1, 9))


def test_closeness_grows_with_the_parts_and_never_vanishes() -> None:
    taus = [closeness(Fraction(1), parts) for parts in (1, 2, 3, 100, 10**4, 10**7)]
    assert taus[0] == 0
    assert taus == sorted(taus)
    assert taus[-1] < 0.11
    assert 0 < closeness(Fraction(2**80), 10**7) < 1e-300
    with pytest.raises(InvalidInput, match="1/8"):
        closeness(Fraction(1, 9), 2)
    with pytest.raises(InvalidInput, match="parts"):
        closeness(Fraction(1), 0)


@pytest.mark.parametrize("parts", [2, 12])
def test_parts_add_up_to_a_discrete_gaussian_number(parts: int) -> None:
    """At s² = 1 the sum is within a factor of 1 ± 1.1e-4: invisible in 100,000 sums."""
    drawn = discrete_gaussian(Fraction(1), 100_000 * parts).reshape(parts, -1)
    ends = math.isqrt(9 * parts)
    assert p_value(drawn.sum(axis=0), Fraction(parts), ends) > FALSE_ALARM
    assert p_value(drawn.sum(axis=0), Fraction(parts * 10, 11), ends) < CAUGHT


def test_small_parts_do_not_add_up_to_a_discrete_gaussian_number() -> None:
    """At s² = 1/8 two parts are far from N_Z(0, 1/4): why closeness has to be asked for."""
    sums = discrete_gaussian(Fraction(1, 8), 400_000).reshape(2, -1).sum(axis=0)
    assert p_value(sums, Fraction(1, 4), 2) < CAUGHT


# The promise.


def renyi(order: mpmath.mpf, shift: int, variance: Fraction) -> mpmath.mpf:
    """D_α(N_Z(shift, σ²) ‖ N_Z(0, σ²)) by summation."""
    ends = 40 + 20 * math.isqrt(math.ceil(variance)) * shift
    law = gaussian_law(variance, 2 * ends)
    with mpmath.workdps(50):
        total = mpmath.fsum(
            law[x - shift + 2 * ends] ** order * law[x + 2 * ends] ** (1 - order)
            for x in range(-ends, ends + 1)
        )
        return mpmath.log(total) / (order - 1)


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(7, 2)])
@pytest.mark.parametrize("shift", [1, 2])
def test_discrete_gaussian_noise_keeps_zcdp(variance: Fraction, shift: int) -> None:
    for order in (mpmath.mpf("1.01"), mpmath.mpf("1.5"), mpmath.mpf(2), mpmath.mpf("3.7")):
        found = renyi(order, shift, variance)
        with mpmath.workdps(50):
            bound = order * shift**2 / (2 * mpf(variance))
            assert found <= bound * (1 + mpmath.mpf("1e-40"))
            if order == 2:
                # A whole multiple of the shift is a whole number: equality.
                assert found >= bound * (1 - mpmath.mpf("1e-40"))


@pytest.mark.parametrize("rate", ["0.1", "1", "4"])
@pytest.mark.parametrize("shift", [1, 3, 12])
def test_discrete_laplace_noise_keeps_the_zcdp_of_its_pure_promise(rate: str, shift: int) -> None:
    """D_α ≤ α·ε·tanh(ε/2) ≤ α·ε²/2 with ε = rate·shift, which coordinates add up."""
    with mpmath.workdps(50):
        decay, loss = mpmath.exp(-mpmath.mpf(rate)), mpmath.mpf(rate) * shift
        for order in (mpmath.mpf("1.001"), mpmath.mpf(2), mpmath.mpf(20)):
            # P(x)^α·P(x − shift)^(1−α) up to x = 0, from x = shift on, and between.
            outside = (mpmath.exp((order - 1) * loss) + mpmath.exp(-order * loss)) / (1 - decay)
            between = mpmath.fsum(
                decay ** (order * x + (1 - order) * (shift - x)) for x in range(1, shift)
            )
            total = (outside + between) * (1 - decay) / (1 + decay)
            bound = order * loss * mpmath.tanh(loss / 2)
            assert mpmath.log(total) / (order - 1) <= bound <= order * loss**2 / 2
