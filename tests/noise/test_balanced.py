"""Balanced noise: what it keeps, draws and reaches, against an enumeration of its weights."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.errors import InvalidInput
from muhat.noise.balanced import MOST_CELLS, Balanced, BalancedSums, least_balanced
from muhat.noise.entropy import system_words
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import SHAPES

SMALL = [Balanced(2, Fraction(1, 2)), Balanced(3, Fraction(2, 5)), Balanced(4, Fraction(1, 10))]


def chances(law: Balanced, reach: int) -> dict[tuple[int, ...], Fraction]:
    """P(z) for all z with every |z_j| ≤ reach, from the definition."""
    free = product(range(-reach, reach + 1), repeat=law.cells - 1)
    points = [(*z, -sum(z)) for z in free if abs(sum(z)) <= reach]
    weights = {z: law.ratio ** sum(map(abs, z)) for z in points}
    total = sum(weights.values())
    return {z: each / total for z, each in weights.items()}


@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_it_keeps_the_largest_ratio_of_an_enumeration(law: Balanced) -> None:
    """One that is replaced takes 1 of a cell and gives it to another; people with two do it twice.

    Rationals, and no noise: it never fails by chance.
    """
    p = chances(law, 6)
    once = [
        tuple((j == up) - (j == down) for j in range(law.cells))
        for up, down in permutations(range(law.cells), 2)
    ]
    twice = [tuple(map(sum, zip(a, b, strict=True))) for a, b in product(once, once)]
    for moves, moved in ((once, 2), (twice, 4)):
        ratios = [
            here / there
            for z, here in p.items()
            for move in moves
            if (there := p.get(tuple(map(sum, zip(z, move, strict=True)))))
        ]
        assert max(ratios) == law.ratio**-moved
        enough = mpmath.log(1 / mpmath.mpf(str(float(law.ratio)))) * moved
        assert law.keeps(mh.PureDP(epsilon=float(enough) * (1 + 1e-9)), Fraction(moved))
        assert not law.keeps(mh.PureDP(epsilon=float(enough) * (1 - 1e-9)), Fraction(moved))
    assert not law.keeps(Strength(NoiseKind.NORMAL, Fraction(10**6)), Fraction(1))


@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_draws_are_those_of_the_weights(law: Balanced) -> None:
    """False alarms: 5e-8. Planted: the last cell takes what is left, as often as it may."""
    from scipy.stats import chi2

    number = 6000
    expected = {z: float(p) * number for z, p in chances(law, 8).items()}
    bins = {z: each for z, each in expected.items() if each >= 20}
    table = np.array([*bins.values(), number - sum(bins.values())])

    def statistic(drawn: list[tuple[int, ...]]) -> float:
        seen = [drawn.count(one) for one in bins]
        counts = np.array([*seen, number - sum(seen)])
        return float(np.sum((counts - table) ** 2 / table))

    drawn = [tuple(law.drawn(system_words).tolist()) for _ in range(number)]
    assert all(sum(z) == 0 for z in drawn)
    limit = chi2.isf(5e-8, len(bins))
    assert statistic(drawn) < limit
    free = law.cell.drawn(number * (law.cells - 1), system_words).reshape(number, -1)
    planted = [(*z, -sum(z)) for z in free.tolist()]
    assert statistic(planted) > 2 * limit


@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_variances_and_tails_are_those_of_an_enumeration(law: Balanced) -> None:
    p = chances(law, 22 if law.cells < 4 else 9)
    one = sum(float(each) * z[0] ** 2 for z, each in p.items())
    two = sum(float(each) * (z[0] - z[1]) ** 2 for z, each in p.items())
    variance = law.variance(law.cells) * law.unit**2
    assert variance * (1 - 1 / law.cells) == pytest.approx(one, rel=1e-7)
    assert 2 * variance == pytest.approx(two, rel=1e-7)
    for reach in range(4):
        beyond = sum(float(each) for z, each in p.items() if abs(z[0]) > reach)
        assert law.tail(reach / law.unit, law.cells) == pytest.approx(beyond, abs=1e-8)
        assert law.joint_tail(reach / law.unit, law.cells) >= sum(
            float(each) for z, each in p.items() if max(map(abs, z)) > reach
        )


@pytest.mark.parametrize("law", SMALL, ids=repr)
@pytest.mark.parametrize("miss", [0.2, 0.05, 1e-3])
def test_sums_of_cells_reach_just_as_far_as_they_must(law: Balanced, miss: float) -> None:
    p = chances(law, 22 if law.cells < 4 else 9)
    for part in range(1, law.cells // 2 + 1):
        row = np.array([[5.0] * part + [2.0] * (law.cells - part)])  # 3 times the sum of a part
        sums = law.sums([row * law.unit])
        assert sums is not None
        (reach,) = sums.reaches(miss)
        sizes = {z: abs(float(row[0] @ z)) for z in p}
        assert sum(float(p[z]) for z, size in sizes.items() if size > reach * (1 + 1e-12)) <= miss
        assert sum(float(p[z]) for z, size in sizes.items() if size > reach - 3) > miss


def test_what_hardly_ever_happens_is_bounded() -> None:
    """Beyond what floats can tell, Chernoff's bound over the chance of adding up to nothing."""
    law = Balanced(3, Fraction(1, 2))
    sums = law.sums([np.array([[1.0, 0.0, 0.0]]) * law.unit])
    assert sums is not None
    p = chances(law, 60)
    for miss in (1e-9, 1e-14):
        (reach,) = sums.reaches(miss)
        assert sum(each for z, each in p.items() if abs(z[0]) > reach) <= miss
        assert sum(each for z, each in p.items() if abs(z[0]) > reach / 3) > miss


def test_other_rows_have_no_law_and_equal_ones_no_noise() -> None:
    law = Balanced(3, Fraction(1, 2))
    assert law.sums([np.array([[1.0, 2.0, 3.0]])]) is None
    still = law.sums([np.array([[4.0, 4.0, 4.0], [1.0, 0.0, 0.0]])])
    assert still is not None
    assert still.reaches(0.05)[0] == 0.0


def test_rows_without_a_law_have_a_bound() -> None:
    law = Balanced(3, Fraction(1, 2))
    p, row = chances(law, 22), np.array([1.0, -3.0, 2.0])
    scale = np.linalg.norm(row) * law.unit
    for joint in (False, True):
        (reach, *_) = law.combined_half_widths(np.full(2, scale), None, 0.95, joint=joint)
        missed = sum(float(each) for z, each in p.items() if abs(row @ z) > reach)
        assert 0 < missed <= (0.025 if joint else 0.05)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0, 8.0])
def test_two_cells_have_the_noise_of_one(epsilon: float) -> None:
    law = least_balanced(mh.PureDP(epsilon=epsilon), 2, 2)
    assert law is not None
    b = math.exp(-epsilon)
    assert law.variance(2) * law.unit**2 / 2 == pytest.approx(2 * b / (1 - b) ** 2, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("cells", [2, 3, 10, 100])
def test_it_errs_less_than_noise_that_is_projected(epsilon: float, cells: int) -> None:
    law = least_balanced(mh.PureDP(epsilon=epsilon), 2, cells)
    assert law is not None
    assert law.variance(cells) < law.cell.variance(1)
    assert law.keeps(mh.PureDP(epsilon=epsilon), Fraction(2))
    assert not law.keeps(mh.PureDP(epsilon=epsilon * (1 - 1e-9)), Fraction(2))


def test_moments_are_not_above_what_is_said() -> None:
    law = Balanced(3, Fraction(2, 5))
    p = chances(law, 22)
    for order in (2.0, 4.0, 8.0):
        exact = sum(float(each) * abs(z[0]) ** order for z, each in p.items()) ** (1 / order)
        # z₁ is √(2/3) times a unit vector of the directions that add up to nothing.
        said = float(law.combined_moment(order, np.ones(1))[0]) * law.unit * math.sqrt(2 / 3)
        assert exact <= said


def test_balanced_noise_is_written_and_read() -> None:
    law = Balanced(7, Fraction(2, 5))
    assert SHAPES[law.name] is Balanced
    assert Balanced.from_dict(law.to_dict()) == law
    sums = law.sums([np.eye(7)])
    assert sums is not None
    again = BalancedSums.from_dict(sums.to_dict())
    assert (again.reaches(0.05) == sums.reaches(0.05)).all()


@pytest.mark.parametrize(
    ("cells", "ratio"),
    [(1, 0.5), (MOST_CELLS + 1, 0.5), (3, 1.0), (3, 1e-9), (3, 0.99999)],
)
def test_what_it_is_not_for_is_refused(cells: int, ratio: float) -> None:
    with pytest.raises(InvalidInput, match="balanced noise is for"):
        Balanced(cells, Fraction(ratio))
    with pytest.raises(InvalidInput, match="up to half"):
        BalancedSums(np.ones(1), np.ones(1, np.int64), cells, ratio, 1)


def test_there_is_none_where_it_is_not_worth_it() -> None:
    assert least_balanced(mh.ZCDP(rho=0.5), 2, MOST_CELLS + 1) is None
    assert least_balanced(mh.PureDP(epsilon=1e-6), 2, 5) is None
    assert least_balanced(mh.PureDP(epsilon=100.0), 2, 5) is None
    assert least_balanced(mh.PureDP(epsilon=1.0), 0, 5) is None
    with pytest.raises(AssertionError, match="all cells together"):
        Balanced(3, Fraction(1, 2)).sample(2)
