"""At most k of d things: projection, integers, exact sensitivity, ellipsoids, releases."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.data.engine import Accumulator, record_integers
from muhat.domains.choices import ChoicesLattice
from muhat.ellipsoids import smallest_ellipsoid
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.ellipsoidal import gaussian
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors
from muhat.records.columns import Batch

UNIT = 1 << 44
POISON = [math.nan, math.inf, -math.inf, -0.0, 5e-324, -1e-310, 1e308, -1.7976931348623157e308]
SIZES = [(2, 1), (3, 2), (5, 2), (6, 3), (7, 6), (40, 5), (60, 31)]


def corners(dim: int, most: int) -> np.ndarray:
    listed = [row for row in itertools.product([0, 1], repeat=dim) if sum(row) <= most]
    return np.array(listed, np.int64)


def is_inside(integers: np.ndarray, most: int) -> bool:
    sums = integers.astype(object).sum(axis=1)
    return bool((integers >= 0).all() and (integers <= UNIT).all() and max(sums) <= most * UNIT)


def hostile(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    made = rng.normal(size=(rows, dim)) * 10.0 ** rng.uniform(-20, 20, (rows, 1))
    made[: rows // 2] = rng.uniform(-1, 2, (rows // 2, dim))
    poison = rng.random(made.shape) < 0.02
    made[poison] = rng.choice(POISON, int(poison.sum()))
    return made


@pytest.mark.parametrize(("dim", "most"), SIZES)
def test_no_record_leaves_the_integer_polytope(dim, most):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**64, (20_000, dim), dtype=np.uint64).view(np.float64)
    for made in (bits, hostile(rng, 20_000, dim)):
        assert is_inside(
            record_integers(ChoicesLattice(dim, most), Batch(20_000, matrix=made)), most
        )


@pytest.mark.parametrize(("dim", "most"), SIZES)
def test_ones_and_zeros_are_kept_to_the_last_bit(dim, most):
    rng = np.random.default_rng(2)
    made = np.zeros((500, dim))
    for row in made:
        row[rng.choice(dim, rng.integers(0, most + 1), replace=False)] = 1.0
    integers = record_integers(ChoicesLattice(dim, most), Batch(500, matrix=made))
    assert np.array_equal(integers, made.astype(np.int64) << 44)


@pytest.mark.parametrize(("dim", "most"), SIZES)
def test_records_are_clipped_as_the_domain_says_wherever_they_stand(dim, most):
    rng = np.random.default_rng(3)
    K, made = (
        mh.Choices(dim, most),
        rng.normal(size=(900, dim)) * 10.0 ** rng.uniform(-2, 3, (900, 1)),
    )
    lattice = ChoicesLattice(dim, most)
    integers = record_integers(lattice, Batch(900, matrix=made))
    assert np.abs(integers / UNIT - K.clip(made)).max() < 1e-11
    alone = record_integers(lattice, Batch(1, matrix=np.ascontiguousarray(made[7:8])))
    assert np.array_equal(alone[0], integers[7])


@pytest.mark.parametrize(("dim", "most"), SIZES)
def test_a_clipped_record_is_the_nearest_point(dim, most):
    """⟨x − y, z − y⟩ ≤ 0 for every z of K: the support function in the direction x − y."""
    rng = np.random.default_rng(4)
    K, made = mh.Choices(dim, most), rng.normal(size=(300, dim)) * 3
    for x, y in zip(made, K.clip(made), strict=True):
        assert min(y.min(), 1 - y.max(), most + 1e-12 - y.sum()) >= 0
        assert K.support(x - y) <= (x - y) @ y + 1e-12 * np.abs(x).sum()


def test_nothing_at_all_is_the_centre_or_is_dropped():
    lattice = ChoicesLattice(4, 2)
    missing = np.full((2, 4), np.nan)
    for way, counted in (("center", 5), ("drop", 0)):
        accumulator = Accumulator(lattice, way)
        accumulator.add(Batch(2, matrix=missing, absent=3))
        assert accumulator.total == [counted * (UNIT // 4)] * 4
        assert (accumulator.rows, accumulator.counted) == (5, counted)


def test_a_projection_that_is_wrong_cannot_push_a_record_out(monkeypatch):
    """Privacy rests on the integer check alone."""
    rng = np.random.default_rng(5)
    wrong = rng.normal(size=(5, 20_000)) * 10.0 ** rng.uniform(-3, 300, (1, 20_000))
    wrong[:, :5000] = rng.choice(POISON, (5, 5000))
    wrong[:, 5000:6000] = 1.0
    monkeypatch.setattr("muhat.domains.choices.nearest_choices", lambda x, most: wrong)
    lattice = ChoicesLattice(5, 2)
    assert is_inside(record_integers(lattice, Batch(20_000, matrix=np.zeros((20_000, 5)))), 2)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("with_total", [False, True])
@pytest.mark.parametrize(("dim", "most"), [(2, 1), (4, 1), (5, 2), (5, 3), (6, 3), (6, 5)])
def test_the_sensitivity_is_that_of_the_farthest_corners(dim, most, with_total, norm):
    """All pairs of corners, in whole numbers, for multipliers that make each move the farthest."""
    lattice = ChoicesLattice(dim, most, with_total=with_total)
    points = corners(dim, most)
    for multipliers in ([7, 1], [7, 3], [5, 5], [1, 9]):
        used = multipliers[: 1 + with_total]
        rows = points * used[0]
        if with_total:
            rows = np.column_stack([rows, points.sum(axis=1) * used[1]])
        for replaced in (False, True):
            others = rows if replaced else np.zeros_like(rows[:1])
            moved = np.abs(rows[:, None] - others)
            power = {1: moved.sum(-1), 2: (moved**2).sum(-1), math.inf: moved.max(-1)}[norm]
            farthest = int(power.max()) * UNIT ** (2 if norm == 2 else 1)
            found = lattice.sensitivity(used, norm, replaced, from_zero=False)
            exact = math.isqrt(farthest - 1) + 1 if norm == 2 else farthest
            assert found == exact


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize(("dim", "most"), [(2, 1), (5, 2), (6, 3), (7, 6), (9, 8)])
def test_no_neighbour_moves_the_answer_beyond_the_declared_sensitivity(dim, most, neighbors):
    K, w = mh.Choices(dim, most), np.ones(dim)
    protection = Protection(mh.ZCDP(rho=0.5), neighbors, 1)
    body = Body.of(K, 2, w, neighbors)
    query = gaussian(body, 2, w, protection).query
    points = corners(dim, most).astype(float)
    made = np.vstack([points, K.clip(hostile(np.random.default_rng(6), 300, dim))])
    q = record_integers(query.lattice, Batch(len(made), matrix=made)).tolist()
    declared = query.sensitivity(2, neighbors, 1)
    base = [12345] * query.lattice.dim
    answers = np.array(
        [query.answer([a + b for a, b in zip(base, row, strict=True)], 10) for row in q], object
    )
    before = np.array(query.answer(base, 9), object)
    others = answers if neighbors is Neighbors.SUBSTITUTE else before[None]
    moved = ((answers[:, None] - others[None]) ** 2).sum(axis=-1).max()
    assert 0.99 < float(Fraction(int(moved)) / declared**2) <= 1


@pytest.mark.parametrize("body", ["difference", "shifted", "symmetric"])
@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6, 7])
def test_ellipsoids_are_those_that_the_solver_finds(dim, body):
    rng = np.random.default_rng(7)
    for most, p in itertools.product(range(1, dim), (2, 4, math.inf)):
        K, listed = mh.Choices(dim, most), mh.Points(corners(dim, most))
        found, best = (smallest_ellipsoid(each, p, body) for each in (K, listed))
        assert found.floor <= best.value * (1 + 1e-9)
        assert best.floor * (1 - 1e-9) <= found.value
        # Where the hardest numbers to hide are between two whole ones, a little is given away.
        assert found.value <= best.value * (1.015 if body == "symmetric" else 1 + 1e-8)
        w = np.exp(rng.normal(size=dim))
        found, best = (smallest_ellipsoid(each, p, body, weights=w) for each in (K, listed))
        assert found.floor <= best.value * (1 + 1e-9)
        assert best.floor * (1 - 1e-9) <= found.value


@pytest.mark.parametrize(("dim", "most"), [(300, 7), (300, 150), (300, 160), (2500, 20)])
def test_many_things_have_a_certified_ellipsoid(dim, most):
    found = smallest_ellipsoid(mh.Choices(dim, most))
    assert found.gap < (0.01 if dim > 2000 else 1e-9)


@pytest.mark.parametrize(
    "promise", [mh.ZCDP(rho=0.5), mh.PureDP(epsilon=1.0), mh.ApproxDP(epsilon=1.0, delta=1e-6)]
)
def test_means_and_sums_are_released_under_both_relations(promise):
    rng = np.random.default_rng(8)
    x = np.zeros((3000, 6))
    for row in x:
        row[rng.choice(6, 2, replace=False, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1])] = 1.0
    K = mh.Choices(dim=6, most=2)
    known = mh.mean(x, domain=K, n=len(x), privacy=promise)
    secret = mh.mean(x, domain=K, n=None, privacy=promise)
    total = mh.sum(x, domain=K, n=None, privacy=promise)
    for release, truth in ((known, x.mean(0)), (secret, x.mean(0)), (total, x.sum(0))):
        # 5.5 standard errors and more: pure noise has longer tails.
        assert np.abs(release.value - truth).max() < 12 * np.asarray(release.standard_error).max()


def test_the_error_of_a_mean_is_that_of_the_smallest_ellipsoid():
    K = mh.Choices(dim=6, most=2)
    plan = mh.plan_mean(domain=K, n=2000, privacy=mh.ZCDP(rho=0.5))
    assert plan.expected_error == pytest.approx(math.sqrt(21) / 2000, rel=1e-6)


def test_what_is_no_choice_is_refused():
    with pytest.raises(mh.InvalidInput, match=r"most must be less than dim; got 3\. Use a Box"):
        mh.Choices(dim=3, most=3)
    with pytest.raises(mh.InvalidInput, match="more than 5000 things"):
        mh.plan_mean(domain=mh.Choices(dim=5001, most=3), n=10, privacy=mh.ZCDP(rho=0.5))
    with pytest.raises(mh.InvalidInput, match="dim must be"):
        ChoicesLattice(1 << 20, 3)
