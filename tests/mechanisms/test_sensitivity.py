"""Observed sensitivity is at most the declared one, in integers, for every mechanism.

Pairs are adversarial: opposite ends of the domain, corners, points a hair inside and outside,
huge, tiny and non-finite values, added to a random rest so that every rounding occurs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.data.engine import record_integers
from muhat.domains.lattice import SimplexLattice
from muhat.mechanisms.sums.block_query import BlockQuery
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.box_norm import box_norm
from muhat.mechanisms.sums.ellipsoidal import ellipsoid_norm, gaussian, shifted_gaussian
from muhat.mechanisms.sums.joint import count_only, joint
from muhat.mechanisms.sums.laplace import laplace, plain_laplace
from muhat.mechanisms.sums.radial import box_stairs, ellipsoid_stairs
from muhat.mechanisms.sums.table_query import TableQuery
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors
from muhat.records.columns import Batch

A = np.array([[4.0, 1.0, 0.01], [1.0, 3.0, -0.01], [0.01, -0.01, 1e-3]])
DOMAINS = {
    "ball": mh.Ball(radius=0.7, dim=3, center=[1, -2, 3]),
    "tiny ball": mh.Ball(radius=1e-130, dim=3),
    "box": mh.Box(lower=[-1, 0, 1000], upper=[1, 200_000, 1100]),
    "ellipsoid": mh.Ellipsoid(A, center=[1, 2, 3]),
    "long ellipsoid": mh.Ellipsoid([1e6, 1.0, 1e-6], center=[0, 1, 2]),
    "l3 ball": mh.LpBall(p=3, radius=2, dim=3, center=[1, 0, -1], scale=[1, 10, 0.1]),
    "l1 ball": mh.LpBall(p=1, dim=3),
    "moved l1 ball": mh.LpBall(p=1, radius=3, dim=3, center=[1e6, 0, -2], scale=[1, 1e-3, 10]),
    "l1 balls and a box": mh.LpBall(p=1, dim=2, center=[3, 4])
    * mh.Box([5.0, 0], [6.0, 1e3])
    * mh.LpBall(p=1, dim=3, scale=[1, 2, 3]),
    "operator norm": mh.SchattenBall(p=np.inf, shape=(1, 3), radius=2),
    "nuclear norm": mh.SchattenBall(p=1, shape=(2, 2), radius=0.5),
}
SHARES = {"simplex": mh.Simplex(dim=3), "simplex with 0": mh.Simplex(dim=3, origin=True)}
LISTED = mh.Points(np.random.default_rng(3).normal(size=(60, 3)) * [1, 100, 1e-3] + 7)
SUBSTITUTE, ADD_REMOVE = Neighbors.SUBSTITUTE, Neighbors.ADD_REMOVE


def protection(
    neighbors: Neighbors = SUBSTITUTE, contributions: int = 1, kind: NoiseKind = NoiseKind.NORMAL
) -> Protection:
    return Protection(Strength(kind, Fraction(1, 4)), neighbors, contributions)


def recipes(K, neighbors=SUBSTITUTE, contributions=1):
    guard, w = protection(neighbors, contributions), np.ones(K.dim)
    pure = protection(neighbors, contributions, NoiseKind.PURE)
    body = Body.of(K, 2, w, neighbors)
    made = [gaussian(body, 2, w, guard), ellipsoid_norm(body, 4, w, pure)]
    if neighbors is SUBSTITUTE and not K.is_symmetric:
        made.append(shifted_gaussian(body, 2, w, guard))
    if K.has_l1:
        made.append(laplace(body, 2, w, pure))
    if isinstance(K, mh.Box):
        made += [box_norm(body, 2, w, pure), box_stairs(body, 2, w, pure)]
    if isinstance(K, mh.Ball | mh.Ellipsoid):
        made.append(ellipsoid_stairs(body, 2, w, pure))
    if isinstance(K, mh.Ball | mh.Box):
        made.append(plain_laplace(body, 2, w, pure))
    if neighbors is ADD_REMOVE:
        made += [joint(body, 2, w, asked, asked.promise.kind, share=0.6) for asked in (guard, pure)]
        if isinstance(K, mh.Box):
            made.append(gaussian(Body.from_origin(K, 2, w), 2, w, guard))
    return made


def hostile_rows(K, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Points on the boundary and beyond it, exactly on it, a hair off it, and nonsense."""
    direction = rng.normal(size=(rows, K.dim))
    kind = rng.integers(0, 6, rows)
    corner = np.sign(direction) * K.half_widths
    offset = np.where((kind == 0)[:, None], corner, direction * K.half_widths)
    offset *= np.choose(kind, [1, 1e3, 1e-3, 1e150, 1.0, 1e-290])[:, None]
    x = K.clip(K.center + np.clip(offset, -1e150, 1e150)) if rows < 10 else K.center + offset
    on_the_edge = kind == 4
    x[on_the_edge] = K.clip(K.center + 1e6 * direction[on_the_edge] * K.half_widths)
    nudge = rng.integers(0, 3, rows)
    x[nudge == 1] = np.nextafter(x[nudge == 1], np.inf)
    x[nudge == 2] = np.nextafter(x[nudge == 2], -np.inf)
    poison = rng.random((rows, K.dim)) < 0.01
    x[poison] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0], poison.sum())
    return x


def opposite(K, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For half of the rows the reflection through the centre, for the rest another row."""
    mirrored = 2 * K.center - x
    return np.where(rng.random(len(x))[:, None] < 0.5, mirrored, rng.permutation(x))


def integers(recipe, x: np.ndarray) -> np.ndarray:
    return record_integers(
        recipe.query.lattice, Batch(len(x), matrix=np.ascontiguousarray(x))
    ).astype(object)


def answers(recipe, sums: np.ndarray, count: int) -> np.ndarray:
    """v of every row of sums, as Python integers."""
    return np.column_stack(
        [np.full(len(sums), 0, object) + row for row in rows_of(recipe.query, sums, count)]
    )


def rows_of(query, sums: np.ndarray, count: int) -> list:
    """v row by row, for all the sums at once."""
    if isinstance(query, BlockQuery):
        rows, start = [], 0
        for part in query.parts:
            stop = start + (0 if part.lattice is None else part.lattice.dim)
            rows += rows_of(part, sums[:, start:stop], count)
            start = stop
        return rows
    if isinstance(query, TableQuery):
        table = np.array([[int(entry) for entry in row] for row in query.table], object)
        bits = 0
        if isinstance(query.lattice, SimplexLattice):
            bits = 44
            if query.lattice.origin:
                sums = np.column_stack([sums, (count << bits) - sums.sum(axis=1)])
        return list(((sums @ table + (1 << bits >> 1)) >> bits).T)
    return query.answer(list(sums.T), count)


def largest(recipe, difference: np.ndarray) -> float:
    """The largest norm of the rows, as an exact comparison would see it (floats only to report)."""
    size = np.abs(difference)
    if recipe.law.sensitivity_norm == 1:
        return Fraction(int(size.sum(axis=1).max())) ** 2
    if math.isinf(recipe.law.sensitivity_norm):
        return Fraction(int(size.max())) ** 2
    return Fraction(int((size**2).sum(axis=1).max()))


def observed_over_declared(recipe, K, pairs: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    guard = recipe.protection
    declared = recipe.query.sensitivity(
        recipe.law.sensitivity_norm, guard.neighbors, guard.contributions
    )
    worst = Fraction(0)
    with np.errstate(all="ignore"):
        for _ in range(max(1, pairs // 20_000)):
            x = hostile_rows(K, min(pairs, 20_000), rng)
            q = integers(recipe, x)
            rest = rng.integers(-(2**61), 2**61, q.shape).astype(object)
            count = int(rng.integers(0, 10**6))
            if guard.neighbors is SUBSTITUTE:
                other = integers(recipe, opposite(K, x, rng))
                after = answers(recipe, rest + guard.contributions * other, count)
            else:
                after = answers(recipe, rest, count - guard.contributions)
            before = answers(recipe, rest + guard.contributions * q, count)
            worst = max(worst, largest(recipe, before - after))
    return float(worst / declared**2) ** 0.5


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("name", DOMAINS)
def test_no_neighbour_moves_the_answer_beyond_the_declared_sensitivity(name, neighbors):
    K = DOMAINS[name]
    for recipe in recipes(K, neighbors):
        ratio = observed_over_declared(recipe, K, 20_000, seed=11)
        assert ratio <= 1, recipe.name
        own_ellipsoid = isinstance(K, mh.Ball | mh.Box | mh.Ellipsoid)
        if recipe.law.sensitivity_norm == 2 and neighbors is SUBSTITUTE and own_ellipsoid:
            assert ratio > 0.999, "the declared sensitivity is attained, not just safe"


@pytest.mark.parametrize("name", ["l1 ball", "moved l1 ball", "l1 balls and a box"])
def test_corners_of_l1_balls_attain_the_declared_sensitivity(name):
    K = DOMAINS[name]
    (recipe,) = (each for each in recipes(K) if each.name == "laplace")
    ends = np.concatenate([part.vertices()[0] for part, _ in K.factors()])
    with np.errstate(all="ignore"):
        one, other = integers(recipe, np.array([ends, 2 * K.center - ends]))
    moved = np.subtract(recipe.query.answer(list(one), 1), recipe.query.answer(list(other), 1))
    declared = recipe.query.sensitivity(1, SUBSTITUTE, 1)
    assert declared * 999 / 1000 < sum(map(abs, moved.tolist())) <= declared
    # One per cent more and the recipe does not exist.
    parts = recipe.query.parts if isinstance(recipe.query, BlockQuery) else (recipe.query,)
    part = parts[0]
    louder = replace(part, multipliers=tuple(b * 101 // 100 for b in part.multipliers))
    query = BlockQuery((louder, *parts[1:])) if parts[1:] else louder
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, query=query)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in DOMAINS if not name.startswith(("moved", "l1 balls"))]
)
def test_a_million_adversarial_pairs_stay_within_the_declared_sensitivity(name):
    K = DOMAINS[name]
    recipe = recipes(K)[0]
    assert 0.9 < observed_over_declared(recipe, K, 1_000_000, seed=12) <= 1


@pytest.mark.parametrize("name", DOMAINS)
def test_several_records_a_person_multiply_the_sensitivity(name):
    for recipe in recipes(DOMAINS[name], contributions=10):
        assert observed_over_declared(recipe, DOMAINS[name], 20_000, seed=13) <= 1


@pytest.mark.parametrize("name", ["ball", "tiny ball", "box", "ellipsoid", "long ellipsoid"])
def test_a_planted_error_of_two_percent_is_seen(name):
    K = DOMAINS[name]
    honest = recipes(K)[0]
    louder = tuple(multiplier * 102 // 100 for multiplier in honest.query.multipliers)
    query = replace(honest.query, multipliers=louder)
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(honest, query=query)
    planted = replace(
        honest,
        query=query,
        protection=Protection(Strength(NoiseKind.NORMAL, Fraction(9)), SUBSTITUTE, 1),
    )
    declared = honest.query.sensitivity(2.0, SUBSTITUTE, 1)
    ratio = observed_over_declared(planted, K, 20_000, seed=14)
    seen = ratio * planted.query.sensitivity(2.0, SUBSTITUTE, 1)
    assert seen > declared


def test_the_rounding_term_of_the_sensitivity_is_needed():
    """Without the +√r the declared sensitivity of a coarse query is exceeded."""
    K = mh.Box([0, 0], [1, 1])
    recipe = gaussian(
        Body.of(K, 2, np.ones(2)),
        2,
        np.ones(2),
        Protection(Strength(NoiseKind.NORMAL, Fraction(1, 10**14)), SUBSTITUTE, 1),
    )
    without = recipe.query.sensitivity(2.0, SUBSTITUTE, 1) - 2
    ratio = observed_over_declared(recipe, K, 20_000, seed=15)
    assert ratio <= 1
    assert ratio * float(recipe.query.sensitivity(2.0, SUBSTITUTE, 1)) > float(without)


def test_a_count_moves_by_one():
    recipe = count_only(protection(ADD_REMOVE, kind=NoiseKind.PURE), NoiseKind.PURE)
    moved = [recipe.query.answer((), n + 1)[0] - recipe.query.answer((), n)[0] for n in range(999)]
    assert max(moved) <= recipe.query.sensitivity(1.0, ADD_REMOVE, 1) <= 2**53


@pytest.mark.parametrize("strength", [Fraction(1, 10**12), Fraction(1), Fraction(100)])
@pytest.mark.parametrize("dim", [1, 7, 1000])
def test_the_noise_is_hardly_more_than_the_ideal(dim, strength):
    sides = np.logspace(-6, 6, dim) if dim > 1 else np.ones(1)
    box = mh.Box(np.zeros(dim), sides)
    recipe = gaussian(
        Body.of(box, 2, np.ones(dim)),
        2,
        np.ones(dim),
        Protection(Strength(NoiseKind.NORMAL, strength), SUBSTITUTE, 1),
    )
    ideal = sides.sum() / math.sqrt(strength)
    assert 1 - 1e-12 <= np.linalg.norm(recipe.scales) / ideal <= 1 + 5e-9


def test_a_promise_beyond_exact_arithmetic_is_refused():
    with pytest.raises(mh.InvalidInput, match="too strong"):
        mh.plan_mean(domain=mh.Box([0], [1]), n=10, privacy=mh.GDP(mu=1e-13))


@pytest.mark.parametrize("contributions", [1, 7])
@pytest.mark.parametrize("name", SHARES)
def test_parts_move_the_answer_at_most_from_corner_to_corner(name, contributions):
    K = SHARES[name]
    body, guard = Body.of(K, 2, np.ones(3)), protection(contributions=contributions)
    pure = protection(contributions=contributions, kind=NoiseKind.PURE)
    for recipe in (
        gaussian(body, 2, np.ones(3), guard),
        ellipsoid_norm(body, 2, np.ones(3), pure),
        laplace(body, 2, np.ones(3), pure),
    ):
        rng = np.random.default_rng(16)
        corners = K.vertices()[rng.integers(0, len(K.vertices()), 10_000)]
        x = np.vstack([corners, hostile_rows(K, 10_000, rng), rng.normal(size=(10_000, 3)) * 3])
        rest = rng.integers(0, 2**61, x.shape).astype(object)
        with np.errstate(all="ignore"):
            q = integers(recipe, x)
        other = q[rng.permutation(len(q))]
        before = np.array([recipe.query.answer(list(r), 10**6) for r in rest + contributions * q])
        after = np.array(
            [recipe.query.answer(list(r), 10**6) for r in rest + contributions * other]
        )
        norm = recipe.law.sensitivity_norm
        declared = recipe.query.sensitivity(norm, SUBSTITUTE, contributions)
        seen = largest(recipe, before.astype(object) - after.astype(object))
        assert seen <= declared**2
        assert seen > (0.999 * declared) ** 2


@pytest.mark.parametrize("contributions", [1, 7])
def test_points_move_the_answer_at_most_by_the_farthest_pair(contributions):
    body, guard = Body.of(LISTED, 2, np.ones(3)), protection(contributions=contributions)
    query = gaussian(body, 2, np.ones(3), guard).query
    table = [[int(entry) for entry in row] for row in query.table]
    farthest = max(
        sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
        for first in table
        for second in table
    )
    declared = query.sensitivity(2.0, SUBSTITUTE, contributions)
    assert contributions**2 * farthest <= declared**2
    assert contributions**2 * farthest > (declared * (1 - Fraction(1, 10**9))) ** 2
    counts = [0] * 60
    counts[4], counts[9] = 3, 2
    expected = [3 * a + 2 * b for a, b in zip(table[4], table[9], strict=True)]
    assert query.answer(counts, 5) == expected


@pytest.mark.parametrize("contributions", [1, 7])
@pytest.mark.parametrize(
    "points",
    [np.eye(6)[::-1], np.vstack([np.eye(3), -np.eye(3)]) * [1, 5, 1e-3] + 4, LISTED.points],
    ids=["categories", "l1 corners", "others"],
)
@pytest.mark.parametrize("neighbors", Neighbors)
def test_points_move_laplace_noise_by_at_most_two_rows(points, contributions, neighbors):
    K = mh.Points(points)
    pure = protection(neighbors, contributions, NoiseKind.PURE)
    recipe = laplace(Body.of(K, 2, np.ones(K.dim)), 2, np.ones(K.dim), pure)
    table = [[int(entry) for entry in row] for row in recipe.query.table]
    others = table if neighbors is SUBSTITUTE else [[0] * K.dim]
    farthest = contributions * max(
        sum(abs(a - b) for a, b in zip(first, second, strict=True))
        for first in table
        for second in others
    )
    declared = recipe.query.sensitivity(1, neighbors, contributions)
    assert farthest <= declared
    if K.dim != 3 or len(points) == 6:
        assert farthest > declared * (1 - Fraction(1, 10**9))
    louder = replace(recipe.query, table=recipe.query.table * 1.01)
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, query=louder)


def test_the_farthest_pair_is_found_among_many():
    from muhat.mechanisms.sums.table_query import largest_distance

    rng = np.random.default_rng(17)
    for points in (rng.normal(size=(3000, 4)), rng.random((3000, 1)), np.zeros((5, 2))):
        exact = max(float(np.linalg.norm(points - row, axis=1).max()) for row in points)
        assert exact <= largest_distance(points) <= exact * (1 + 1e-9) + 1e-300
