"""A sum and the number of records in it: how far neighbours move the pair, and what it costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from muhat.domains import Ball, Domain, Ellipsoid
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.ellipsoidal import ellipsoid_norm, gaussian
from muhat.mechanisms.sums.recipe import Recipe
from muhat.mechanisms.sums.recorded_query import RecordedQuery, recorded_sum
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

BALLS = [Ball(3.0, 1, [7.0]), Ball(0.25, 4), Ellipsoid(np.diag([4.0, 9.0]), [1.0, 2.0])]


def made(ball: Domain, *, pure: bool, contributions: int = 1, strength: float = 0.7) -> Recipe:
    kind = NoiseKind.PURE if pure else NoiseKind.NORMAL
    share = Strength(kind, Fraction(strength) ** 2)
    protection = Protection(share, Neighbors.SUBSTITUTE, contributions)
    body = Body.of(ball, 2.0, np.ones(ball.dim), Neighbors.SUBSTITUTE)
    return recorded_sum(body, protection, kind)


@pytest.mark.parametrize("ball", BALLS, ids=["interval", "ball", "ellipsoid"])
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("contributions", [1, 3])
def test_no_neighbours_are_farther_apart_than_the_promise(
    ball: Domain, pure: bool, contributions: int
) -> None:
    recipe = made(ball, pure=pure, contributions=contributions)
    query, law = recipe.query, recipe.law
    lattice = query.lattice
    assert lattice is not None
    norm = law.sensitivity_norm
    radius = lattice.reach[0] if ball.dim == 1 and hasattr(lattice, "reach") else lattice.radius
    generator = np.random.default_rng(5)
    most = 0.0
    for _ in range(2000):
        # Records at the ends of the ball, each recorded or not, before and after.
        before, after = [0] * lattice.dim, [0] * lattice.dim
        counts = [50, 50]
        for _ in range(contributions):
            for totals, place in ((before, 0), (after, 1)):
                if generator.random() < 0.6:
                    direction = generator.standard_normal(lattice.dim)
                    direction /= np.linalg.norm(direction)
                    for axis, part in enumerate(direction):
                        totals[axis] += int(part * radius)
                    counts[place] += 1
        one, other = query.answer(before, counts[0]), query.answer(after, counts[1])
        moved = np.array([float(a - b) for a, b in zip(one, other, strict=True)])
        most = max(most, float(np.linalg.norm(moved, norm)))
    limit = 0.7 * (1 << FRACTION_BITS)
    assert 0.5 * limit < most <= limit * (1 + 1e-12)


def test_one_multiplier_more_would_break_the_promise() -> None:
    recipe = made(BALLS[1], pure=False)
    query = recipe.query
    assert isinstance(query, RecordedQuery)
    total, number = query.parts
    larger = number.__class__(None, (number.multipliers[0] + 4,), 0)
    with pytest.raises(AssertionError, match="more sensitive"):
        Recipe(
            "planted", recipe.law, RecordedQuery((total, larger)), recipe.protection, center=None
        )


@pytest.mark.parametrize("ball", BALLS, ids=["interval", "ball", "ellipsoid"])
def test_the_number_costs_the_sum_nothing_under_normal_noise(ball: Domain) -> None:
    recipe = made(ball, pure=False)
    body = Body.of(ball, 2.0, np.ones(ball.dim), Neighbors.SUBSTITUTE)
    alone = gaussian(body, 2.0, np.ones(ball.dim), recipe.protection)
    assert recipe.scales == pytest.approx(alone.scales, rel=1e-9)
    assert recipe.row_scales[-1] == pytest.approx(math.sqrt(4 / 3) / 0.7, rel=1e-6)


def test_laplace_noise_in_one_dimension_has_the_scale_of_the_sum_alone() -> None:
    recipe = made(BALLS[0], pure=True)
    alone = ellipsoid_norm(
        Body.of(BALLS[0], 2.0, np.ones(1), Neighbors.SUBSTITUTE), 2.0, np.ones(1), recipe.protection
    )
    assert recipe.law.name == "laplace"
    assert recipe.scales == pytest.approx(alone.scales, rel=1e-9)
    assert recipe.row_scales[-1] == pytest.approx(2 / 0.7, rel=1e-6)
