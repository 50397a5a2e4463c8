"""A law that is no scale family: a table of weights, which keeps (ε, δ) and nothing else.

All that muhat needs to know of it is in the class below. One count is released with it, by the
same recipe, plan and release as with any other noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.mechanisms.sums.integer_query import IntegerQuery
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise import laws
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import system_words
from muhat.noise.integers import as_integers
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import IndependentLaw, Integers
from muhat.noise.marginals import Marginal
from muhat.noise.protection import Protection
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors, Privacy, as_typed


@dataclass(frozen=True)
class TableMarginal(Marginal):
    weights: tuple[int, ...]

    @cached_property
    def chances(self) -> Floats:
        """P(|X| = k)."""
        doubled = np.array([self.weights[0], *[2 * w for w in self.weights[1:]]], np.float64)
        return doubled / doubled.sum()

    def tail(self, x: Floats) -> Floats:
        sizes = np.arange(len(self.weights))
        return (sizes > np.asarray(x)[..., None]) @ self.chances

    def _shortfall(
        self, p: float, reach: tuple[float, float], step: float
    ) -> Callable[[Floats], Floats]:
        sizes = np.arange(len(self.weights))
        return lambda y: -np.expm1(-((sizes / np.exp(y)[:, None]) ** p)) @ self.chances


@dataclass(frozen=True)
class Table(IndependentLaw, Plain, keys=("name", "weights")):
    """The integer k with probability weights[|k|]/total, weights falling."""

    weights: tuple[int, ...]

    name = "table"
    sensitivity_norm = 1.0
    unit = 1

    @property
    def total(self) -> int:
        return self.weights[0] + 2 * sum(self.weights[1:])

    @property
    def marginal(self) -> Marginal:  # type: ignore[override]
        return TableMarginal(self.weights)

    def sample(self, dim: int) -> Integers:
        return as_integers([self._draw() for _ in range(dim)])

    def _draw(self) -> int:
        least = (1 << 64) % self.total
        while (word := int(system_words(1)[0])) < least:
            pass
        place = word % self.total
        for k in range(1 - len(self.weights), len(self.weights)):
            place -= self.weights[abs(k)]
            if place < 0:
                return k
        raise AssertionError("weights add up to their total")

    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """Σ max(0, w_k − e^ε·w_{k+1}) ≤ δ·total, e^ε rounded down: for one step."""
        if isinstance(promise, Strength) or promise.point is None or moved >= 2:
            return False
        if moved < 1:
            return True
        epsilon, delta = map(as_typed, promise.point)
        factor = 1 / falling_exponential(epsilon, 128)[1]
        row = [*self.weights[::-1], *self.weights[1:], 0]
        lost = sum(max(Fraction(0), one - factor * other) for one, other in pairwise(row))
        return lost <= delta * self.total

    def variance(self, dim: int) -> float:
        return 2 * sum(k * k * w for k, w in enumerate(self.weights)) / self.total

    def tail(self, reach: float, dim: int) -> float:
        return 2 * sum(w for k, w in enumerate(self.weights) if k > reach) / self.total

    def combined_quantile(self, confidence: float, count: int, *, joint: bool) -> float:
        raise NotImplementedError

    def combined_moment(self, order: float, terms: Floats) -> Floats:
        raise NotImplementedError


LAW = Table((6, 4, 2, 1))
"""Of 20; at ε = 0.7 nothing but the ends is lost."""


def approximate(delta: float, epsilon: float = 0.7) -> mh.ApproxDP:
    return mh.ApproxDP(epsilon=epsilon, delta=delta)


def count_of(promise: Privacy, contributions: int = 1) -> Recipe:
    protection = Protection(promise, Neighbors.ADD_REMOVE, contributions)
    return Recipe("table", LAW, IntegerQuery(None, (1,), 0), protection)


def test_it_keeps_its_delta_and_no_less() -> None:
    one = Fraction(1)
    assert LAW.keeps(approximate(0.05), one)
    assert not LAW.keeps(approximate(0.049999999999999), one)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 0.5, 0.69, 0.7, 2.0])
def test_its_delta_is_that_of_the_table_at_every_epsilon(epsilon: float) -> None:
    with mpmath.workdps(60):
        p = [mpmath.mpf(LAW.weights[abs(k)]) / LAW.total for k in range(-3, 4)]
        moved = [0, *p]
        factor = mpmath.exp(mpmath.mpf(str(epsilon)))
        delta = sum(max(0, a - factor * b) for a, b in zip([*p, 0], moved, strict=True))
        above, below = float(delta * (1 + mpmath.mpf("1e-12"))), float(delta * (1 - 1e-12))
    assert LAW.keeps(approximate(above, epsilon), Fraction(1))
    assert not LAW.keeps(approximate(below, epsilon), Fraction(1))


@pytest.mark.parametrize(
    "promise",
    [
        mh.PureDP(epsilon=50),
        mh.GDP(mu=9),
        mh.ZCDP(rho=9),
        Strength(NoiseKind.PURE, Fraction(9)),
        Strength(NoiseKind.NORMAL, Fraction(9)),
    ],
    ids=str,
)
def test_what_is_not_proved_of_it_is_not_kept(promise: Privacy | Strength) -> None:
    assert not LAW.keeps(promise, Fraction(1))


def test_a_recipe_exists_only_where_the_law_keeps_its_promise() -> None:
    count_of(approximate(0.05))
    for promise in (approximate(0.0499), approximate(0.05, 0.69), mh.PureDP(epsilon=1)):
        with pytest.raises(AssertionError, match="more sensitive"):
            count_of(promise)
    with pytest.raises(AssertionError, match="more sensitive"):
        count_of(approximate(0.05), contributions=2)
    two = IntegerQuery(None, (2,), 0)
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(count_of(approximate(0.05)), query=two)


def test_one_count_is_released_with_it() -> None:
    """2,000 counts: each probability within 6 standard errors; ten percent more is seen."""
    recipe = count_of(approximate(0.05))
    found = [recipe.run([], 100)[0] for _ in range(2000)]
    shares = [sum(abs(x - 100) == k for x in found) / 2000 for k in range(4)]
    chances = TableMarginal(LAW.weights).chances
    allowed = 6 * np.sqrt(chances * (1 - chances) / 2000)
    assert (np.abs(shares - chances) < allowed).all()
    assert all(x.denominator == 1 for x in found)
    assert recipe.row_scales.tolist() == [1.0]
    assert recipe.to_dict()["law"] == {"name": "table", "weights": [6, 4, 2, 1]}


def test_its_errors_are_those_of_the_table() -> None:
    spread = Spread(LAW, 3, np.array([1.0, 2.0, 1.0]))
    assert spread.standard_error == pytest.approx(np.array([1, 2, 1]) * math.sqrt(42 / 20))
    assert spread.root_mean_square(2)[0] == pytest.approx(math.sqrt(6 * 42 / 20))
    values = np.arange(-3, 4)
    chances = np.array([LAW.weights[abs(k)] for k in values]) / LAW.total
    mesh = np.stack(np.meshgrid(values, 2 * values, values, indexing="ij"), -1).reshape(-1, 3)
    joint = np.prod(np.stack(np.meshgrid(*[chances] * 3, indexing="ij"), -1), -1).ravel()
    for p in (4.0, math.inf):
        exact = math.sqrt(float(joint @ np.linalg.norm(mesh, p, axis=1) ** 2))
        assert spread.root_mean_square(p)[0] == pytest.approx(exact, rel=1e-2)
    assert spread.half_widths(0.5, joint=False)[0] == pytest.approx(1.0, rel=1e-6)


def test_its_noise_is_written_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(laws.SHAPES, Table.name, Table)
    spread = Spread(LAW, 1, np.ones(1))
    assert Spread.from_dict(spread.to_dict()).law == LAW
    with pytest.raises(mh.InvalidInput):
        Spread.from_dict({**spread.to_dict(), "law": {"name": "tables", "weights": [1]}})


def test_a_plan_of_one_count_takes_it_as_any_other_noise() -> None:
    promise = approximate(0.05)
    plan = mh.plan_count(privacy=promise)
    (part,) = plan.parts
    mechanism = replace(part.mechanism, recipe=count_of(promise))
    plan = replace(plan, parts=(replace(part, mechanism=mechanism),))
    release = plan.release(np.zeros((100, 1)))
    assert abs(float(release.value[0]) - 100) <= 3
    assert plan.expected_error == pytest.approx(math.sqrt(42 / 20))
    assert float(release.standard_error[0]) == pytest.approx(math.sqrt(42 / 20))
    lower, upper = release.interval(0.99)
    assert upper - lower == pytest.approx(6)
