"""Bodies that only an oracle knows: what is certified, and what a bad oracle is told."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable

import numpy as np
import pytest

import muhat as mh
from muhat import _progress
from muhat.ellipsoids.finite import around_columns

P = [2, 4, math.inf]
RNG = np.random.default_rng(5)
ROOTS = [RNG.normal(size=(4, 4)) for _ in range(3)]
CORNERS = np.array([[(i >> j) & 1 for j in range(4)] for i in range(16)]) @ np.diag([1.0, 2, 3, 4])


def ball(A):
    return np.linalg.eigh(A)[1][:, -1]


def ellipsoids(A):
    """Three ellipsoids at once: the longest axis of each, in the metric of A."""
    return np.array([root @ ball(root.T @ A @ root) for root in ROOTS])


def corners(A):
    return CORNERS[np.argmax(np.einsum("ij,jk,ik->i", CORNERS, A, CORNERS))]


@pytest.mark.parametrize("p", P)
def test_a_ball_by_its_oracle_is_the_ball(p):
    weights = [10.0, 1.0, 2.0]
    found = mh.smallest_ellipsoid(oracle=ball, dim=3, p=p, weights=weights)
    assert found.floor <= np.linalg.norm(weights, p) <= found.value
    assert found.gap <= 1e-6


@pytest.mark.parametrize("p", P)
def test_listed_corners_by_their_oracle_have_the_ellipsoid_of_the_list(p):
    found = mh.smallest_ellipsoid(oracle=corners, dim=4, p=p, tol=1e-9)
    assert found.value == pytest.approx(around_columns(CORNERS.T, p).value, rel=1e-8)
    assert found.gap <= 1e-9


@pytest.mark.parametrize("p", P)
def test_a_union_of_ellipsoids_is_contained_and_the_floor_is_below(p):
    found = mh.smallest_ellipsoid(oracle=ellipsoids, dim=4, p=p)
    inverse = np.linalg.inv(found.matrix)
    assert max(np.linalg.eigvalsh(root.T @ inverse @ root)[-1] for root in ROOTS) <= 1 + 1e-12
    assert found.gap <= 1e-6
    # More points of the body never need less.
    drawn = RNG.normal(size=(4, 500))
    inside = np.hstack([root @ (drawn / np.linalg.norm(drawn, axis=0)) for root in ROOTS])
    assert around_columns(inside, p, 1e-4).floor <= found.value


@pytest.mark.parametrize("part", [0.9, 2 / math.pi, 0.25])
def test_an_oracle_that_reaches_a_part_is_within_its_root(part):
    found = mh.smallest_ellipsoid(
        oracle=lambda A: math.sqrt(part) * ball(A), dim=4, approximation=part
    )
    assert found.floor <= 2 <= found.value * (1 + 1e-12)
    assert found.value <= 2 * (1 + 1e-6) / math.sqrt(part)
    assert found.gap == pytest.approx(1 / math.sqrt(part) - 1, rel=1e-3)


def test_a_bound_takes_the_place_of_a_part():
    def half(A):
        return ball(A) / 2, np.linalg.norm(A, 2)

    found = mh.smallest_ellipsoid(oracle=half, dim=3)
    assert found.value == pytest.approx(math.sqrt(3), rel=1e-5)
    assert found.floor == pytest.approx(math.sqrt(3) / 2, rel=1e-5)


def test_records_are_released_in_the_ellipsoid_whatever_the_oracle_says():
    around = mh.Ellipsoid(matrix=mh.smallest_ellipsoid(oracle=ellipsoids, dim=4).matrix)
    plan = mh.plan_mean(domain=around, n=1000, privacy=mh.ZCDP(0.5))
    assert plan.expected_error == pytest.approx(2 * mh.gamma(around) / 2 / 1000, rel=1e-3)


@pytest.mark.parametrize(
    ("oracle", "words"),
    [
        (lambda A: np.ones(2), "a point of 3 numbers"),
        (lambda A: "far", "a point of 3 numbers"),
        (lambda A: np.full(3, np.nan), "finite"),
        (lambda A: (ball(A), 0.5 * float(np.trace(A)) / 3), "below the value at its own point"),
        (lambda A: np.array([A[0, 0], A[1, 1], 0.0]), "along every axis"),
        (lambda A: np.ones(3), "flat"),
    ],
    ids=["too-short", "words", "nan", "low-bound", "no-third-axis", "segment"],
)
def test_a_bad_oracle_is_refused_in_words(oracle, words):
    with pytest.raises(mh.InvalidInput, match=words) as caught:
        mh.smallest_ellipsoid(oracle=oracle, dim=3)
    assert caught.value.parameter == "oracle"


def test_an_oracle_that_misses_its_own_points_is_refused():
    shown: list[int] = []

    def forgetful(A):
        shown.append(1)
        return ball(A) if len(shown) <= 3 else 0.5 * ball(A)

    with pytest.raises(mh.InvalidInput, match="returned before"):
        mh.smallest_ellipsoid(oracle=forgetful, dim=3, p=4)


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"oracle": ball}, "dim"),
        ({"oracle": ball, "dim": 0}, "dim"),
        ({"oracle": 3, "dim": 2}, "oracle"),
        ({"oracle": ball, "dim": 2, "body": "difference"}, "oracle"),
        ({"oracle": ball, "dim": 2, "K": mh.Ball(1, 2)}, "oracle"),
        ({"oracle": ball, "dim": 2, "approximation": 1.5}, "approximation"),
        ({"oracle": ball, "dim": 2, "tol": 0}, "tol"),
        ({"K": mh.Ball(1, 2), "dim": 2}, "dim"),
        ({"K": mh.Ball(1, 2), "approximation": 1.0}, "approximation"),
        ({}, "K"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments, parameter):
    with pytest.raises(mh.InvalidInput) as caught:
        mh.smallest_ellipsoid(**arguments)
    assert caught.value.parameter == parameter


def test_long_work_shows_how_near_the_gap_is(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        isatty: Callable[..., bool] = lambda self: True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(_progress, "PATIENCE_SECONDS", -1.0)
    mh.smallest_ellipsoid(oracle=ellipsoids, dim=4)
    assert "smallest ellipsoid" in shown.getvalue()
