"""What nobody can beat in the local model: known numbers, exact scores, nothing achieved below."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.bounds import LowerBound, local
from muhat.bounds.divergences import log_two_sided_pure, log_two_sided_zcdp
from muhat.bounds.local import cap_share, corner_error, largest_shrinkage
from muhat.ellipsoids import gamma
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.subset_randomizer import SubsetRandomizer

EPSILONS = [1e-3, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0]
DOMAINS = [
    mh.Ball(2.0, dim=1),
    mh.Ball(2.0, dim=2, center=[5, 5]),
    mh.Ball(1.0, dim=8) + [1] * 8,
    mh.Box([0, -5], [1, 5]),
    mh.Box([0] * 6, [1] * 6),
    mh.Ellipsoid([1, 4, 100]),
    mh.Ellipsoid([[2, 1], [1, 2]]),
    np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]]) @ mh.Ball(1.0, dim=2),
    np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]]) @ mh.Ellipsoid([[2, 1], [1, 2]]),
    mh.LpBall(p=1, radius=1.0, dim=3),
    mh.LpBall(p=4, radius=1.0, dim=3),
    mh.Simplex(dim=4),
    mh.Points(np.array([[0.0, 0.0], [1.0, 0.5], [0.2, 2.0]])),
]


def named(bounds: tuple[LowerBound, ...]) -> dict[str, float]:
    return {bound.theorem: bound.value for bound in bounds}


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_best_cap_has_its_closed_forms(epsilon):
    assert largest_shrinkage(1, epsilon) == pytest.approx(math.tanh(epsilon / 2), rel=1e-14)
    # On the sphere of R³ ⟨v, y⟩ is uniform: (e^ε − 1)(1 − t)²/4 = t.
    assert largest_shrinkage(3, epsilon) == pytest.approx(math.tanh(epsilon / 4), rel=1e-12)
    # In the plane a cap of share q has the mean sin(πq)/πq.
    growth = math.expm1(epsilon)
    shares = np.linspace(1e-6, 0.5, 200_001)
    plane = growth * np.sin(math.pi * shares) / math.pi / (1 + growth * shares)
    assert largest_shrinkage(2, epsilon) == pytest.approx(plane.max(), rel=1e-8)


@pytest.mark.parametrize("dim", [2, 3, 8, 784, 100_000])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_best_cap_is_right_to_twelve_digits(dim, epsilon):
    found = largest_shrinkage(dim, epsilon)
    with mpmath.workdps(40):
        power, t = mpmath.mpf(dim - 1) / 2, mpmath.mpf(found)
        growth = mpmath.expm1(mpmath.mpf(repr(epsilon)))
        tail = mpmath.betainc(power, mpmath.mpf(1) / 2, 0, 1 - t * t, regularized=True) / 2
        mean = mpmath.gammaprod([power + 0.5], [power]) / (mpmath.sqrt(mpmath.pi) * (dim - 1))
        above = mean * (1 - t * t) ** power
        excess = growth * (above - t * tail) - t
        # h falls with the slope 1 + (e^ε − 1)·P_t at least, so this is how far the root is.
        assert abs(excess / (1 + growth * tail)) < 1e-12 * t
        # γ* = F(γ*): the threshold is the mean of its own cap, as M14 maximises it.
        assert float(growth * above / (1 + growth * tail)) == pytest.approx(found, rel=1e-11)
        for other in (found * 0.9, min(found * 1.1, (1 + found) / 2)):
            s = mpmath.mpf(other)
            part = mpmath.betainc(power, mpmath.mpf(1) / 2, 0, 1 - s * s, regularized=True) / 2
            assert growth * mean * (1 - s * s) ** power / (1 + growth * part) < found
    assert cap_share(dim, found) == pytest.approx(float(tail), rel=1e-11)


def test_the_best_cap_falls_with_the_dimension_and_grows_with_epsilon():
    table = [[largest_shrinkage(dim, e) for e in EPSILONS] for dim in (1, 2, 3, 5, 20, 1000)]
    assert (np.diff(table, axis=0) < 0).all()
    assert (np.diff(table, axis=1) > 0).all()
    assert largest_shrinkage(5, 1e4) == 1.0
    assert largest_shrinkage(3, 1e-300) == pytest.approx(1e-300 / 4, rel=1e-12)


@pytest.mark.parametrize("n", [1, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 10.0])
def test_randomised_response_attains_the_bound_of_the_interval(epsilon, n):
    deviation = 2 / (math.sinh(epsilon / 2) * math.sqrt(n))
    found = named(local(mh.Ball(2.0, dim=1), n, mh.PureDP(epsilon=epsilon)))
    assert found["B10 on a sphere"] < deviation
    assert found["B10 on a sphere"] == pytest.approx(deviation, rel=2e-6)
    assert found["B10"] <= found["B10 on a sphere"] * (1 + 1e-9)


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_a_message_that_is_sometimes_open_attains_the_bound_of_delta(epsilon, delta):
    """With probability δ the sign itself, else randomised response: E[sign | message]/κ²."""
    kappa = delta + (1 - delta) * math.tanh(epsilon / 2) ** 2
    deviation = 3 * math.sqrt((1 / kappa - 1) / 50)
    privacy = mh.ApproxDP(epsilon=epsilon, delta=delta)
    (bound,) = local(mh.Box([-3], [3]), 50, privacy)
    assert bound.value < deviation
    assert bound.value == pytest.approx(deviation, rel=1e-9)
    assert bound.datasets == "some"


def test_all_coordinates_count_for_approximate_privacy_and_500_settings_are_below_mechanisms():
    rng = np.random.default_rng(5)
    for setting in range(500):
        dim, n = int(rng.integers(1, 300)), int(rng.integers(1, 1000))
        epsilon, delta = 10 ** rng.uniform(-2, 0.9), 10 ** rng.uniform(-10, -2)
        (bound,) = local(mh.Ball(2.0, dim=dim), n, mh.ApproxDP(epsilon=epsilon, delta=delta))
        # Pure messages keep (ε, δ) too, and err most at the centre.
        best = 2 / largest_shrinkage(dim, epsilon) / math.sqrt(n)
        if setting < 50:
            best = min(best, 4 * math.sqrt(dim / n) / mh.privacy.gaussian_mu(epsilon, delta))
        assert 0 < bound.value <= best
    (bound,) = local(mh.Ball(1.0, dim=100), 1, mh.ApproxDP(epsilon=1.0, delta=1e-6))
    assert 1 / largest_shrinkage(100, 1.0) / bound.value < 1.54
    (leaky,) = local(mh.Ball(1.0, dim=100), 1, mh.ApproxZCDP(rho=0.1, delta=1e-9))
    assert leaky.value > 5 * 0.5 / math.sinh(math.sqrt(0.2))


@pytest.mark.parametrize("rho", [1e-4, 1e-2, 0.5, 3.0])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_normal_noise_is_never_below_the_bound(domain, rho):
    (bound,) = local(domain, 100, mh.ZCDP(rho=rho))
    achieved = gamma(domain) / math.sqrt(2 * rho * 100)
    assert bound.value <= achieved
    # Within 1 % of it where little is told, up to the floor of the solver.
    if rho == 1e-4:
        assert bound.value > 0.99 * achieved
    (twin,) = local(domain, 100, mh.GDP(mu=math.sqrt(2 * rho)))
    assert twin.value == pytest.approx(bound.value, rel=1e-9)


def error_of(randomizer: CapRandomizer, record: np.ndarray, n: int) -> float:
    """The exact root mean square error if all n people have this record (docs/proofs/local.md)."""
    (t,), (u,) = randomizer.map.polar(record[None])
    shrinkage, second = randomizer.moments
    axes = randomizer.map.axes
    squares = np.diag(axes**2) if axes.ndim == 1 else axes.T @ axes
    rank, along = len(squares), float(u @ squares @ u)
    base = 1 / (rank * shrinkage**2)
    excess = second / shrinkage**2 - base
    total = float(np.trace(squares))
    across = (total - along) / max(rank - 1, 1)
    return math.sqrt((base * total + t * excess * (along - across) - t * t * along) / n)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0, 9.0])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_the_cap_randomizer_is_never_below_the_bounds(domain, epsilon):
    n = 100
    randomizer = CapRandomizer.of(domain, epsilon)
    random = np.random.default_rng(1)
    source = domain.preimage().domain
    records = source.record_center + random.normal(size=(50, randomizer.record_dim)) * 5
    errors = [error_of(randomizer, record, n) for record in (*records, source.record_center)]
    for bound in local(domain, n, mh.PureDP(epsilon=epsilon)):
        assert bound.value <= (min(errors) if bound.datasets == "every" else max(errors))
    assert max(errors) <= randomizer.expected_error(n) * (1 + 1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_on_the_sphere_the_cap_randomizer_is_within_half_a_per_cent(dim, epsilon):
    ball = mh.Ball(3.0, dim=dim)
    achieved = error_of(CapRandomizer.of(ball, epsilon), 3 * np.eye(dim)[0], 100)
    # Of one number more is known, about all of the interval: test_line_messages.py.
    every, some, paper = (
        each for each in local(ball, 100, mh.PureDP(epsilon=epsilon)) if "line" not in each.theorem
    )
    assert some.value <= achieved < 1.005 * some.value
    assert (some.source, paper.source) == ("derived", "paper")
    assert paper.value == some.value > every.value * (1 - 1e-6)


def test_sets_of_corners_are_never_below_the_bound_and_meet_it_for_categories():
    random = np.random.default_rng(3)
    for _ in range(500):
        m, d = int(random.integers(2, 12)), int(random.integers(1, 6))
        epsilon = float(random.choice([0.1, 0.7, 1.5, 3.0, 6.0, 12.0]))
        points = random.normal(size=(m, d)) * 10.0 ** random.integers(-3, 3, d)
        randomizer = SubsetRandomizer.of(mh.Points(points), epsilon)
        _, common, own = randomizer.moments
        squares = (randomizer.corners.offsets**2).sum(axis=1)
        # Over independent uniform corners, whose mean is the same for all datasets.
        average = math.sqrt((common * squares.sum() + own * squares.mean()) / 100)
        assert corner_error(mh.Points(points), epsilon, 2) / 10 <= average * (1 + 1e-12)
    for m in (2, 3, 10, 50):
        for epsilon in (0.01, 1.0, 5.0, 20.0):
            found = named(local(mh.Points(np.eye(m)), 100, mh.PureDP(epsilon=epsilon)))
            best = SubsetRandomizer.of(mh.Points(np.eye(m)), epsilon).expected_error(100)
            # At ε = 20 nearly all is told, and what is left is a difference of near numbers.
            assert best == pytest.approx(
                found["B10 on corners"], rel=1e-9 if epsilon < 20 else 0.01
            )


def test_no_law_on_corners_is_farther_from_uniform_than_the_bound_says():
    random = np.random.default_rng(4)
    for m, epsilon in ((2, 1.0), (5, 0.5), (5, 3.0), (9, 2.0)):
        g = math.exp(epsilon)
        h = g - 1
        most = max(k * (m - k) * h**2 / (m * (m + h * k) ** 2) for k in range(1, m))
        laws = np.exp(epsilon * random.beta(0.3, 0.3, (4000, m)))
        laws /= laws.sum(axis=1, keepdims=True)
        found = ((laws - 1 / m) ** 2).sum(axis=1).max()
        assert 0.5 * most < found <= most * (1 + 1e-12)
        # A little more than the promise would be above it.
        k = max(range(1, m), key=lambda k: k * (m - k) / (m + h * k) ** 2)
        louder = np.array([1.02 * g] * k + [1.0] * (m - k))
        louder /= louder.sum()
        assert ((louder - 1 / m) ** 2).sum() > most


def test_values_follow_the_written_formulas():
    ball = mh.Ball(2.0, dim=5)
    found = named(local(ball, 40, mh.PureDP(epsilon=1.0)))
    jump = math.exp(log_two_sided_pure(1.0) / 2)
    assert found["B10"] == pytest.approx(4 * math.sqrt(5 / 40) / jump, rel=1e-9)
    shrinkage = largest_shrinkage(5, 1.0)
    sphere = 2 * math.sqrt((1 / shrinkage**2 - 1) / 40)
    assert sphere * (1 - 1e-9) < found["B10 on a sphere"] < sphere
    (normal,) = local(ball, 40, mh.ZCDP(rho=0.3))
    jump = math.exp(log_two_sided_zcdp(0.3) / 2)
    assert normal.value == pytest.approx(4 * math.sqrt(5 / 40) / jump, rel=1e-9)
    axes = np.array([10.0, 2.0, 1.0])
    rank = {
        s: (axes[:s].sum() / s / largest_shrinkage(s, 1.0)) ** 2 - (axes[:s] ** 2).sum() / s
        for s in (1, 2, 3)
    }
    found = named(local(mh.Ellipsoid(axes**2), 1, mh.PureDP(epsilon=1.0)))
    assert found["B10 on a sphere"] == pytest.approx(math.sqrt(max(rank.values())), rel=1e-9)


@pytest.mark.parametrize("p", [2, 4, math.inf])
def test_other_norms_are_bounded_too(p):
    ball = mh.Ball(1.0, dim=16)
    scale = 16 ** ((0 if math.isinf(p) else 1 / p) - 0.5)
    two = named(local(ball, 10, mh.PureDP(epsilon=1.0)))
    other = named(local(ball, 10, mh.PureDP(epsilon=1.0), p))
    assert other["B10 on a sphere"] == pytest.approx(two["B10 on a sphere"] * scale, rel=1e-12)
    assert other["B10"] == pytest.approx(two["B10"] * scale, rel=1e-9)


def test_bounds_scale_with_the_domain_and_the_number_of_people():
    for privacy in (mh.PureDP(epsilon=1.0), mh.ZCDP(rho=0.1), mh.ApproxDP(epsilon=1.0, delta=0.01)):
        for one, other in zip(
            local(mh.Ball(1.0, dim=4), 25, privacy),
            local(mh.Ball(1e9, dim=4), 2500, privacy),
            strict=True,
        ):
            assert other.value == pytest.approx(1e8 * one.value, rel=1e-9)
            assert "local" in one.sentence()
            assert LowerBound.from_dict(one.to_dict()) == one


def test_extreme_promises_give_floats():
    for epsilon in (1e-300, 1e-9, 60.0, 1e4, 1e300):
        for bound in local(mh.Ball(1.0, dim=7), 3, mh.PureDP(epsilon=epsilon)):
            assert 0 <= bound.value < math.inf


# An interactive protocol of two devices with one bit each: the second is asked otherwise, and
# more discreetly, after a 1 of the first, and then the first once more.


def answer(truth: int, said: int, honest: Fraction) -> Fraction:
    return honest if truth == said else 1 - honest


def interactive(x: int, y: int, transcript: tuple[int, int, int]) -> Fraction:
    a, b, c = transcript
    first = answer(x, a, Fraction(2, 3))
    second = answer(y, b, Fraction(3, 5) if a else Fraction(4, 5))
    third = answer(x, c, Fraction(1, 2) if b == a else Fraction(5, 8))
    return first * second * third


def together(x: int, y: int, transcript: tuple[int, int, int]) -> Fraction:
    """Not local: the answer is about both bits at once."""
    return answer(x ^ y, transcript[0], Fraction(2, 3)) * Fraction(1, 4)


def score_product(law, x: int, y: int) -> Fraction:
    """E(u₁ − v₁)(u₂ − v₂) at the dataset (x, y), records replaced by 1 and by 0."""
    total = Fraction(0)
    for t in itertools.product((0, 1), repeat=3):
        here = law(x, y, t)
        total += (law(1, y, t) - law(0, y, t)) * (law(x, 1, t) - law(x, 0, t)) / here
    return total


def test_scores_of_different_devices_are_orthogonal():
    for x, y in itertools.product((0, 1), repeat=2):
        assert sum(interactive(x, y, t) for t in itertools.product((0, 1), repeat=3)) == 1
        assert score_product(interactive, x, y) == 0
        assert abs(score_product(together, x, y)) > Fraction(1, 10)


def test_posterior_means_of_different_records_are_uncorrelated():
    def correlation(law) -> Fraction:
        total = Fraction(0)
        for t in itertools.product((0, 1), repeat=3):
            laws = {(x, y): law(x, y, t) / 4 for x in (0, 1) for y in (0, 1)}
            mass = sum(laws.values())
            first = sum((2 * x - 1) * p for (x, _), p in laws.items())
            second = sum((2 * y - 1) * p for (_, y), p in laws.items())
            both = sum((2 * x - 1) * (2 * y - 1) * p for (x, y), p in laws.items())
            # Given the transcript the records are independent.
            total += abs(both * mass - first * second)
        return total

    assert correlation(interactive) == 0
    assert correlation(together) > Fraction(1, 100)


def test_impossible_arguments_are_refused():
    ball = mh.Ball(1.0, dim=2)
    for n, p in ((0, 2), (1.5, 2), (10, 1)):
        with pytest.raises(mh.InvalidInput):
            local(ball, n, mh.PureDP(epsilon=1.0), p)
    with pytest.raises(mh.InvalidInput):
        largest_shrinkage(0, 1.0)
    with pytest.raises(mh.InvalidInput):
        largest_shrinkage(3, -1.0)
