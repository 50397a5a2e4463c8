"""What is printed beside means of unbounded records holds, whatever their shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import muhat as mh

Generator = np.random.Generator
Draw = Callable[[Generator, int], Any]


def few(part: float, draw: Draw) -> Draw:
    """A part of the records is drawn, the others are 0."""
    return lambda g, n: np.where(np.arange(n) < part * n, draw(g, n), 0.0)


SHAPES: dict[str, Draw] = {
    "normal": lambda g, n: g.standard_normal(n) + 1000,
    "uniform": lambda g, n: g.random(n),
    "Bernoulli": few(0.3, lambda g, n: np.ones(n)),
    "1 % at 90": few(0.01, lambda g, n: np.full(n, 90.0)),
    "5 % lognormal": few(0.05, lambda g, n: np.exp(3 + g.standard_normal(n))),
    "20 % exponential": few(0.2, lambda g, n: g.exponential(50, n)),
    "lognormal": lambda g, n: np.exp(1.2 * g.standard_normal(n)),
    "Pareto 2.5": lambda g, n: g.pareto(2.5, n),
    "Pareto 1.5": lambda g, n: g.pareto(1.5, n),
    "two scales": lambda g, n: g.standard_normal(n) * np.where(np.arange(n) < n / 20, 1000, 1),
    "two groups": lambda g, n: g.standard_normal(n) + np.where(np.arange(n) < n / 2, 100, 0),
    "Student": lambda g, n: g.standard_t(3, n),
}
RUNS = 40
LIMIT = int(binom.isf(1e-6 / (12 * len(SHAPES)), RUNS, 0.05))
"""More misses than this have a probability below 1e-6 in all that is compared together."""


def misses(draw: Draw, n: int, promise: Any) -> tuple[int, int, int, int]:
    """How often statements were wrong, and that the interval held the mean of all records.

    About the clipped mean, the number outside, and the mean of all records if none is too far out.
    """
    rows = np.asarray(draw(np.random.default_rng(n), n), float)
    plan = mh.plan_mean(domain=mh.Reals(1, 1e6), n=n, privacy=promise)
    missed = [0, 0, 0, 0]
    for _ in range(RUNS):
        release = plan.release(rows)
        ball, outside = release.domain, release.outside
        assert isinstance(ball, mh.Ball)
        assert outside is not None
        offset = np.clip(rows - ball.center[0], -ball.radius, ball.radius)
        beyond = np.sum(np.abs(rows - ball.center[0]) > ball.radius * (1 + 1e-12))
        lower, upper = (end[0] for end in release.interval())
        missed[0] += not lower <= ball.center[0] + offset.mean() <= upper
        missed[1] += not outside.lower <= beyond <= outside.upper
        whole = release.record_mean
        assert (whole is not None) == outside.is_small
        if whole is not None and whole.least <= rows.min() <= rows.max() <= whole.most:
            missed[2] += not whole.lower <= rows.mean() <= whole.upper
        missed[3] += not lower <= rows.mean() <= upper
    return missed[0], missed[1], missed[2], missed[3]


@pytest.mark.slow
@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.5), mh.PureDP(epsilon=2)])
@pytest.mark.parametrize("n", [1000, 10_000])
def test_intervals_hold_the_clipped_mean_and_counts_the_number_outside(
    n: int, promise: Any
) -> None:
    found = {name: misses(draw, n, promise) for name, draw in SHAPES.items()}
    assert {name: one for name, one in found.items() if max(one[:3]) > LIMIT} == {}
    # The mean of the records is another matter, and so the label says which one it is.
    assert found["Pareto 1.5"][3] > LIMIT


def test_few_far_records_that_nothing_can_find_are_not_denied() -> None:
    # Five records of 500 at 90 cannot be told from none. Of 40 counts, at most LIMIT deny them.
    rows = few(0.01, lambda g, n: np.full(n, 90.0))(np.random.default_rng(0), 500)
    plan = mh.plan_mean(domain=mh.Reals(1, 1e6), n=500, privacy=mh.ZCDP(rho=0.5))
    releases = [plan.release(rows) for _ in range(RUNS)]
    assert sum(one.outside.upper < 5 for one in releases if abs(float(one)) < 0.5) <= LIMIT
    assert all("(clipped)" in repr(one) for one in releases)


@pytest.mark.slow
def test_a_far_group_of_one_in_twenty_is_not_lost_in_many_dimensions() -> None:
    # Each run loses it with a probability below 4e-4 (docs/proofs/unbounded.md), so two of 30 are
    # lost with one below 7e-5 and three with 2.6e-7. The group adds 8000 to the mean.
    rows = np.random.default_rng(0).standard_normal((4000, 256))
    rows[:200] += 10_000
    plan = mh.plan_mean(domain=mh.Reals(256, 1e6), n=4000, privacy=mh.ZCDP(rho=0.5))
    exact, lost = rows.mean(axis=0), 0
    for _ in range(30):
        release = plan.release(rows)
        error = np.linalg.norm(release.value - exact)
        lost += bool(error > 4 * np.linalg.norm(release.standard_error))
    assert lost <= 2
