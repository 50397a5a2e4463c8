"""The Newton system has one solution, whether it is factorised or iterated."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.ellipsoids import newton_system
from muhat.ellipsoids.interior_point import dual_order, solve_dual
from muhat.ellipsoids.newton_system import DualPoint, DualVariables, NewtonSystem


def system(p, seed=0, rank=6, count=40):
    rng = np.random.default_rng(seed)
    w, e = rng.uniform(0.1, 1, count), rng.uniform(0.5, 1, rank)
    e /= e.sum()
    q = dual_order(p)
    D = np.ones(rank) if p == 2 else e ** (1 / (2 * q))
    Y = rng.standard_normal((rank, count))
    V, c, _ = np.linalg.svd(D[:, None] * Y * np.sqrt(w), full_matrices=False)
    whitened = (V.T * D / np.sqrt(c)[:, None]) @ Y
    point = DualPoint(np.zeros(rank), V, c, whitened, np.sum(whitened**2, axis=0), V**2 @ c)
    x = DualVariables(w, rng.uniform(0.1, 1, count), e, rng.uniform(0.1, 1, rank), point.total)
    return lambda: NewtonSystem(x, point, q, shifted=False)


@pytest.mark.parametrize("p", [2, 4, np.inf])
def test_iterations_find_the_direction_of_the_factorisation(p, monkeypatch):
    make = system(p)
    monkeypatch.setattr(newton_system, "KERNEL_TOLERANCE", 1e-12)
    factorised = make().direction(0.01, 0.0, 0.0)
    monkeypatch.setattr(newton_system, "LEAST_COLUMNS", 0)
    monkeypatch.setattr(newton_system, "RESIDUAL", 1e-6)
    iterating = make()
    assert iterating._factorised is None
    for found, known in zip(iterating.direction(0.01, 0.0, 0.0), factorised, strict=True):
        assert np.allclose(found, known, rtol=1e-4, atol=1e-4 * np.abs(known).max(initial=0))
    assert iterating._factorised is None


def test_iterations_that_do_not_converge_end_in_a_factorisation(monkeypatch):
    make = system(2)
    known = make().direction(0.01, 0.0, 0.0)[0]
    monkeypatch.setattr(newton_system, "LEAST_COLUMNS", 0)
    monkeypatch.setattr(newton_system, "ITERATIONS", 2)
    assert np.array_equal(make().direction(0.01, 0.0, 0.0)[0], known)


@pytest.mark.parametrize("p", [2, 4, np.inf])
def test_good_weights_to_begin_with_save_steps_and_change_nothing(p):
    columns = np.random.default_rng(1).standard_normal((8, 60))
    cold = solve_dual(columns, p, 1e-10)
    near = solve_dual(columns, p, 1e-3)
    warm = solve_dual(columns, p, 1e-10, start=(near.weights, near.diagonal))
    assert warm.iterations < cold.iterations
    assert warm.value == pytest.approx(cold.value, rel=1e-9)
    assert warm.floor == pytest.approx(cold.floor, rel=1e-9)
    assert warm.value / warm.floor - 1 <= 1e-10
