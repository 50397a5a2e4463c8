"""Stairs in the radius: what they keep against an enumeration, what they draw against their law."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import accumulate, product

import numpy as np
import pytest
from noise_reference import Replay
from scipy import stats

import muhat as mh
from keyed_entropy import drawn_once
from muhat.noise.entropy import system_words
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import SHAPES
from muhat.noise.radial_stairs import UNIT, EuclideanStairs, MaximumStairs, RadialStairs
from muhat.noise.spread import Spread

FALSE_ALARM = 1e-7  # of each of at most ten comparisons of a test
ONES = 2**64 - 1
KINDS = {"euclidean": EuclideanStairs, "maximum": MaximumStairs}
both_norms = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)

STEP, INNER, RATIO = 4, 3, Fraction(1, 3)


class SmallBall(EuclideanStairs):
    """Steps of four numbers."""

    unit = STEP


class SmallCube(MaximumStairs):
    """Steps of four numbers."""

    unit = STEP


def in_cube(x: int, y: int, radius: int) -> Fraction:
    """The area of the cell of a rounded point that lies in a square about 0."""
    half = Fraction(1, 2)
    sides = [max(min(z + half, radius) - max(z - half, -radius), 0) for z in (x, y)]
    return Fraction(sides[0] * sides[1])


def in_disc(x: int, y: int, radius: int) -> float:
    """The same for a disc, from the areas of [0, x] × [0, y] in it."""

    def below(x: float) -> float:
        return (x * math.sqrt(radius**2 - x * x) + radius**2 * math.asin(x / radius)) / 2

    def corner(x: float, y: float) -> float:
        a, b = min(abs(x), radius), min(abs(y), radius)
        area = a * b
        if a * a + b * b > radius**2:
            meets = math.sqrt(radius**2 - b * b)
            area = b * meets + below(a) - below(meets)
        return math.copysign(1, x) * math.copysign(1, y) * area

    return sum(s * t * corner(x + s / 2, y + t / 2) for s, t in product((-1, 1), repeat=2))


def mass(area, x: int, y: int):
    """P(round(z) = (x, y)) of two numbers, up to a factor: Σ_j b^j(1 − b)·area in the ball j."""
    found, stair = Fraction(0), 0
    while True:
        radius = INNER + stair * STEP
        if radius > abs(x) + abs(y) + 1:
            return found + RATIO**stair
        found += RATIO**stair * (1 - RATIO) * area(x, y, radius)
        stair += 1


@pytest.mark.parametrize(
    ("kind", "area", "size"),
    [
        (SmallCube, in_cube, lambda x, y: max(abs(x), abs(y))),
        (SmallBall, in_disc, math.hypot),
    ],
    ids=["maximum", "euclidean"],
)
def test_rounded_noise_keeps_the_largest_ratio_of_an_enumeration(kind, area, size):
    """No shift of a step loses more than ln(1/b), the longest ones just that, longer ones more."""
    places = range(-9, 10)
    masses = {(x, y): mass(area, x, y) for x, y in product(range(-15, 16), repeat=2)}

    def largest(shift: tuple[int, int]) -> float:
        return max(
            float(masses[x, y] / masses[x + shift[0], y + shift[1]])
            for x, y in product(places, repeat=2)
        )

    shifts = [s for s in product(range(-6, 7), repeat=2) if 0 < size(*s) <= STEP + 2]
    within = {s: largest(s) for s in shifts if size(*s) <= STEP}
    assert max(within.values()) == pytest.approx(3, rel=1e-9)
    assert within[STEP, 0] == pytest.approx(3, rel=1e-9)
    beyond = {s: largest(s) for s in shifts if size(*s) > STEP + 1}
    assert min(beyond.values()) > 3.1
    assert max(beyond.values()) <= 9 * (1 + 1e-9)
    law = kind(2, INNER, RATIO)
    for moved, epsilon in ((STEP, math.log(3)), (STEP + 1, math.log(9))):
        for factor, kept in ((1 + 1e-12, True), (1 - 1e-12, False)):
            promise = mh.PureDP(epsilon=epsilon * factor)
            assert law.keeps(promise, Fraction(moved)) is kept
            strength = Strength(NoiseKind.PURE, Fraction(epsilon * factor) ** 2)
            assert law.keeps(strength, Fraction(moved)) is kept


@both_norms
def test_moves_pass_no_more_stairs_than_they_have_steps(kind):
    """‖z‖ and ‖z + s‖ for whole numbers, in exact arithmetic; planted: half a step more does."""
    draws = np.random.default_rng(3)
    order = 2 if kind is EuclideanStairs else math.inf

    def stair(z: np.ndarray) -> int:
        if order == 2:
            length = sum(int(x) ** 2 for x in z)
            return sum(length >= (INNER + j * STEP) ** 2 for j in range(64))
        return sum(max(abs(int(x)) for x in z) >= INNER + j * STEP for j in range(64))

    passed = {2: 0, 3: 0}
    for _ in range(2000):
        z, s = draws.integers(-20, 21, (2, 3))
        steps = math.ceil(np.linalg.norm(s, order) / STEP - 1e-9)
        assert abs(stair(z) - stair(z + s)) <= steps
        if steps in passed:
            passed[steps] = max(passed[steps], abs(stair(z) - stair(z + s)))
    assert passed == {2: 2, 3: 3}


@both_norms
def test_it_keeps_what_pure_noise_keeps_and_no_more(kind):
    law, step = kind(3, UNIT // 2, Fraction(math.exp(-1.0))), Fraction(UNIT)
    assert law.keeps(mh.PureDP(epsilon=1 + 1e-15), step)
    assert not law.keeps(mh.PureDP(epsilon=1 - 1e-15), step)
    assert not law.keeps(mh.PureDP(epsilon=1 + 1e-15), step + Fraction(1, 1000))
    assert law.keeps(mh.PureDP(epsilon=2 + 1e-14), 2 * step)
    assert law.keeps(mh.PureDP(epsilon=1e-9), Fraction(0))
    assert law.keeps(mh.ApproxDP(epsilon=1 + 1e-15, delta=1e-9), step)
    assert law.keeps(mh.ZCDP(rho=0.4622), step)
    assert not law.keeps(mh.ZCDP(rho=0.46), step)
    assert not law.keeps(Strength(NoiseKind.NORMAL, Fraction(100)), step)


@cache
def weights(law: RadialStairs, count: int) -> list[int]:
    """b^j·(t + j)^d of the first balls, as whole numbers."""
    b, last = law.ratio, count - 1
    return [
        b.numerator**j * b.denominator ** (last - j) * (law.inner + j * law.unit) ** law.dim
        for j in range(count)
    ]


def chances(law: RadialStairs, count: int = 300) -> np.ndarray:
    found = weights(law, count)
    whole = sum(found)
    return np.array([each / whole for each in found])


@pytest.mark.parametrize(
    "law",
    [
        EuclideanStairs(2, UNIT // 4, Fraction(1, 50)),
        MaximumStairs(5, UNIT * 3 // 4, Fraction(1, 3)),
        EuclideanStairs(40, UNIT, Fraction(9, 10)),
    ],
    ids=repr,
)
def test_ends_enclose_the_chances_of_all_balls(law):
    sums = list(accumulate(weights(law, 3000)))
    for precision in (64, 192):
        ends = law._ends(precision)
        for (low, high), part in zip(ends, sums, strict=False):
            assert low * sums[-1] <= part << precision <= high * sums[-1]
            assert high <= low + 2
        assert ends[-1][1] == 1 << precision
    many = 40_000
    expected = many * chances(law, 3000)
    picked = np.bincount(law._picks.draw(many, system_words), minlength=3000)
    often = expected > 10
    statistic = float(((picked - expected)[often] ** 2 / expected[often]).sum())
    limit = stats.chi2.isf(FALSE_ALARM, int(often.sum()))
    assert statistic < limit
    # A third more or less of every other ball is far beyond that.
    assert 0.33**2 * expected[often][::2].sum() > 3 * limit


def test_the_rarest_balls_are_told_apart_by_more_words():
    law = EuclideanStairs(2, UNIT // 4, Fraction(1, 50))
    parts = list(accumulate(weights(law, 200)))
    sums = [Fraction(part, parts[-1]) for part in parts]
    table = len(law._ends(64))
    for last in (0, 1 << 63, ONES - 5):
        expected = bisect_right(sums, Fraction(2 * (ONES << 64 | last) + 1, 1 << 129))
        assert law._picks.draw(1, Replay([ONES, last])) == [expected]
    assert expected > table
    assert law._picks.draw(1, Replay([ONES, ONES, ONES - 9]))[0] > expected


LAWS = {
    "two": (2, UNIT * 2 // 5, Fraction(1, 50)),
    "five": (5, UNIT // 2, Fraction(1, 3)),
    "a constant radius": (3, UNIT, Fraction(1, 10**9)),
}


@drawn_once
def drawn(kind: type[RadialStairs], name: str) -> np.ndarray:
    law = kind(*LAWS[name])
    # Where rare noise is nearly all of the mean square, it takes more to tell 1.3 times that.
    count = 12_000 if name == "two" else 3000
    return np.array([law.sample(law.dim) for _ in range(count)]) / law.unit


def sizes(kind: type[RadialStairs], z: np.ndarray) -> np.ndarray:
    return np.linalg.norm(z, 2 if kind is EuclideanStairs else np.inf, axis=1)


def distribution(law: RadialStairs, x: np.ndarray) -> np.ndarray:
    """P(‖z‖ ≤ x) = Σ_j p_j·min(1, x/r_j)^d, from exact chances."""
    radii = law.inner / law.unit + np.arange(300)
    return np.minimum(np.asarray(x)[..., None] / radii, 1) ** law.dim @ chances(law)


@both_norms
@pytest.mark.parametrize("name", LAWS)
def test_lengths_and_directions_are_those_of_the_law(kind, name):
    law, z = kind(*LAWS[name]), drawn(kind, name)
    length = sizes(kind, z)
    assert stats.kstest(length, lambda x: distribution(law, x)).pvalue > FALSE_ALARM
    assert stats.kstest(1.15 * length, lambda x: distribution(law, x)).pvalue < FALSE_ALARM
    orthant = (z[:, :2] > 0) @ np.array([1, 2])
    assert stats.chisquare(np.bincount(orthant, minlength=4)).pvalue > FALSE_ALARM
    largest = np.argmax(np.abs(z), axis=1)
    assert stats.chisquare(np.bincount(largest, minlength=law.dim)).pvalue > FALSE_ALARM
    # One coordinate of a uniform point of a ball in R³, and of any cube, by itself.
    first = np.abs(z[:, 0])
    below = np.array([1 - law.tail(float(x), law.dim) for x in np.sort(first)])
    assert stats.kstest(below, stats.uniform.cdf).pvalue > FALSE_ALARM
    planted = np.array([1 - law.tail(float(x), law.dim) for x in np.sort(1.25 * first)])
    assert stats.kstest(planted, stats.uniform.cdf).pvalue < FALSE_ALARM


@both_norms
@pytest.mark.parametrize("name", LAWS)
def test_mean_squares_are_those_of_draws_and_of_the_formula(kind, name):
    law, z = kind(*LAWS[name]), drawn(kind, name)
    found, radii = weights(law, 300), [law.inner + j * law.unit for j in range(300)]
    sums = sum(w * r * r for w, r in zip(found, radii, strict=True))
    square = sums / (sum(found) * law.unit**2)
    assert law.mean_square == pytest.approx(square, rel=1e-13)
    share = law.dim + 2 if kind is EuclideanStairs else 3
    assert law.variance(law.dim) == pytest.approx(square / share, rel=1e-13)
    squares = (z**2).mean(axis=1)
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - law.variance(law.dim)) < 5.5 * error
    assert abs(1.3 * squares.mean() - law.variance(law.dim)) > 5.5 * error


def simulated(law: RadialStairs, count: int) -> np.ndarray:
    """Draws by floats, for what takes many of them."""
    draws = np.random.default_rng(11)
    radii = law.inner / law.unit + draws.choice(300, count, p=chances(law))
    if isinstance(law, MaximumStairs):
        return radii[:, None] * draws.uniform(-1, 1, (count, law.dim))
    g = draws.normal(size=(count, law.dim + 2))
    return radii[:, None] * g[:, : law.dim] / np.linalg.norm(g, axis=1, keepdims=True)


@both_norms
@pytest.mark.parametrize("name", ["two", "five"])
def test_errors_in_every_norm_and_intervals_are_those_of_simulations(kind, name):
    law = kind(*LAWS[name])
    z, count = simulated(law, 60_000), 60_000
    scales = np.linspace(1, 2, law.dim)
    spread = Spread(law, law.dim, scales)
    for p in (2, 3, math.inf):
        squares = np.linalg.norm(z * scales, p, axis=1) ** 2
        error = 5.5 * squares.std() / math.sqrt(count)
        assert abs(squares.mean() - spread.root_mean_square(p)[0] ** 2) < error
        assert abs(1.15 * squares.mean() - spread.root_mean_square(p)[0] ** 2) > error
    for confidence in (0.5, 0.95, 0.999):
        slack = 5.5 * math.sqrt(confidence * (1 - confidence) / count)
        one = np.mean(np.abs(z[:, 0]) <= law.quantile(confidence, law.dim))
        assert abs(one - confidence) < slack
        reach = law.quantile(confidence, law.dim, joint=True)
        all_of_them = np.mean(np.abs(z).max(axis=1) <= reach)
        assert all_of_them > confidence - slack
        if kind is MaximumStairs:
            assert all_of_them < confidence + slack
        else:
            # Turned by a shear of unit rows, the worst that correlations may do.
            rows = np.eye(law.dim) + 0.7
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            assert np.mean(np.abs(z @ rows.T).max(axis=1) <= reach) > confidence - slack


def test_the_mean_length_is_that_of_a_simulation():
    law = EuclideanStairs(*LAWS["two"])
    lengths = np.linalg.norm(simulated(law, 60_000), axis=1)
    normal = math.sqrt(math.pi / 2)
    error = 5.5 * lengths.std() / math.sqrt(60_000)
    assert abs(lengths.mean() - normal * law.mean_length(2)) < error
    # The root of the variance would be too small here: it is one of normals alone.
    assert EuclideanStairs(*LAWS["a constant radius"]).mean_length(3) > 1 / math.sqrt(5)


def test_it_is_drawn_written_and_read_for_its_own_dimension():
    for kind in KINDS.values():
        law = kind(5, UNIT // 3, Fraction(1, 7))
        assert SHAPES[law.name] is kind
        assert law.most_rows == 5
        with pytest.raises(AssertionError, match="own dimension"):
            law.sample(4)
        spread = Spread(law, 5, np.ones(5))
        assert Spread.from_dict(spread.to_dict()).law == law
        for wrong in (
            (0, UNIT, Fraction(1, 2)),
            (2, 0, Fraction(1, 2)),
            (2, 3 * UNIT, Fraction(1, 2)),
            (2, UNIT, Fraction(1)),
            (2, UNIT, Fraction(0)),
            (2, UNIT, Fraction(1, 1 << 400)),
            (2, UNIT, 1 - Fraction(1, 10**6)),
        ):
            with pytest.raises(mh.InvalidInput, match="stairs in a radius"):
                kind(*wrong)
