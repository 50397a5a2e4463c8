"""Errors, intervals and certificates of queries are what they are said to be.

Releases are simulated with the real noise. Every check has a false-alarm rate below 4·10⁻⁸, all
of them together one below 10⁻⁵; planted errors are caught.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import muhat as mh

W = mh.workloads
WIDE = 7.0
"""Standard errors. Mean squares of Laplace noise are skewed: that of 6,000 is so far above with a
probability of 1e-10, where normal noise would have 1e-12."""

FALSE_ALARM = 1e-8
"""Of each count of hits, all answers together; a test has at most ten of them."""

PURE = mh.PureDP(epsilon=0.7)

SIMULATED = {
    "identity": (W.identity(3), "add-remove"),
    "parity": (W.parity(3, 2), "add-remove"),
    "dense": (W.prefix(4), "add-remove"),
    "dense, replaced": (W.prefix(4), "substitute"),
    "product": (W.kron(W.prefix(2), W.identity(2)), "add-remove"),
    "product with marginals": (W.kron(W.marginals((2, 2), order=1), W.identity(2)), "add-remove"),
    "tables": (W.marginals((2, 3), order=[1, 2]), "add-remove"),
    "residuals": (W.marginals((2, 3), order=1), "substitute"),
    "weighted": (W.stack([W.identity(3), W.prefix(3)], [1, 5]), "add-remove"),
}


def simulated(plan, times):
    """Errors of so many releases of an empty histogram, of shape (times, m)."""
    query = plan.recipe.query
    margins = {
        axes: np.zeros([plan.workload.cells[axis] for axis in axes], np.int64)
        for axes in query.sets
    }
    total = 0 if plan.neighbors is mh.Neighbors.SUBSTITUTE else None
    return np.array([query.release(margins, plan.recipe.law.sample, total) for _ in range(times)])


def deviation_of_variance(errors, stated):
    """How many standard errors the mean square is off; noise like Laplace's has E z⁴ ≤ 6(E z²)²."""
    random = stated > 1e-9 * stated.max()
    ratios = np.mean(errors[:, random] ** 2, axis=0) / stated[random] ** 2
    return float(np.abs(ratios - 1).max()) / math.sqrt(5 / len(errors))


def chance_of_so_few(hits, level):
    """That hits at this level are as few as those of some answer: binomial, not nearly normal."""
    few = np.sum(hits, axis=0)
    return float(np.min(stats.binom.cdf(few, len(hits), level))) * np.size(few)


def check_pure_noise(name, times):
    """Of the noise that is taken, and of the best Laplace noise where that is another."""
    workload, neighbors = SIMULATED[name]
    plan = mh.plan_queries(workload, privacy=PURE, neighbors=neighbors)["queries"]
    found = {each.recipe.law.name: each for each in (*plan.rivals[::-1], plan)}
    assert set(found) == {"laplace", "stairs" if neighbors == "add-remove" else "balanced"}
    for each in found.values():
        check_noise(each, times)


def check_noise(plan, times):
    stepped = plan.recipe.law.name != "laplace"
    errors = simulated(plan, times)
    noise = plan.noise
    assert deviation_of_variance(errors, noise.standard_error) < WIDE
    assert deviation_of_variance(errors, noise.standard_error * 1.25) > WIDE
    for level in (0.5, 0.95, 0.999):
        reach = noise.half_widths(level, joint=False)
        inside = np.abs(errors) <= reach + 1e-9
        assert chance_of_so_few(inside, level) > FALSE_ALARM
        if noise.independent and not stepped:
            # Exact, and not only wide enough: whole numbers have but some levels.
            assert chance_of_so_few(~inside, 1 - level) > FALSE_ALARM
        together = noise.half_widths(level, joint=True)
        assert (together >= reach).all()
        both = (np.abs(errors) <= together + 1e-9).all(axis=1)
        assert chance_of_so_few(both, level) > FALSE_ALARM
    # A normal quantile would be too short for Laplace noise: 57 misses of 6,000, where 6 are due.
    short = 3.2905 * noise.standard_error
    if noise.independent:
        assert chance_of_so_few(np.abs(errors) <= short, 0.999) < FALSE_ALARM
    total = np.sum(errors**2, axis=1)
    spread = total.std() / math.sqrt(times)
    assert abs(total.mean() - plan.expected_error**2) < WIDE * spread + 1e-9


@pytest.mark.parametrize("name", SIMULATED)
def test_pure_noise_has_the_stated_errors_and_intervals(name):
    check_pure_noise(name, 6000)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_pure_noise_has_the_stated_errors_and_intervals_in_many_releases(name):
    check_pure_noise(name, 40_000)


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [mh.ZCDP(rho=0.5), PURE])
def test_intervals_of_groups_hold(privacy):
    rows = {"g": ["a"] * 40 + ["b"] * 90, "x": [1.0] * 40 + [3.0] * 90}
    hits = []
    for _ in range(400):
        means = mh.mean(rows, domain={"x": (0, 4)}, privacy=privacy, by="g", groups=["a", "b"])
        lower, upper = means.interval(0.9)
        hits.append((lower[:, 0] <= [1, 3]) & (upper[:, 0] >= [1, 3]))
    assert chance_of_so_few(np.array(hits), 0.9) > FALSE_ALARM
    # Intervals somewhere else would be seen.
    missed = [~hit for hit in hits]
    assert chance_of_so_few(np.array(missed), 0.9) < FALSE_ALARM


@pytest.mark.parametrize("memory", ["full", "few-buffers"])
def test_a_stream_has_the_stated_errors(memory):
    answers = []
    for _ in range(1200):
        counter = mh.stream.prefix_counter(6, mh.ZCDP(rho=0.5), -1, 2, memory=memory)
        answers.append(counter.push_many([1.0] * 6) - np.arange(1, 7))
    # Normal noise: E z⁴ = 3(E z²)², less than the 6 allowed for.
    assert deviation_of_variance(np.array(answers), counter.standard_errors) < WIDE
    assert deviation_of_variance(np.array(answers), counter.standard_errors * 2) > WIDE
    correlated = np.corrcoef(np.array(answers).T)[0, 1]
    assert correlated > 0.2


# Certificates.


CERTIFIED = {
    "identity": W.identity(5),
    "prefix": W.prefix(6),
    "one cell": W.prefix(1),
    "ranges": W.ranges(4),
    "parity": W.parity(3, 2),
    "total": W.parity(3, 0),
    "tables": W.marginals((2, 3), order=1),
    "more tables": W.marginals((2, 1, 3), order=[0, 1, 2]),
    "matrix": W.matrix(np.random.default_rng(0).normal(size=(4, 6))),
    "equal columns": W.matrix([[1.0, 1, 0], [2, 2, 0]]),
    "product": W.kron(W.prefix(3), W.identity(2)),
    "product of parities": W.kron(W.parity(2, 1), W.prefix(3)),
    "stack": W.stack([W.identity(4), W.prefix(4)], [1, 2]),
    "weighted tables": W.stack(
        [W.marginals((2, 3), order=1), W.marginals((2, 3), order=2)], [1, 0.1]
    ),
    "large": W.matrix(1e140 * np.eye(3)),
    "small": W.matrix(1e-140 * np.tri(3)),
    "uneven": W.matrix(np.diag([1e-8, 1, 1e8])),
    "a table of many": W.marginals((2,) * 12, sets=[tuple(range(12))]),
}
PROMISES = [
    mh.PureDP(epsilon=0.01),
    mh.PureDP(epsilon=1),
    mh.PureDP(epsilon=20),
    mh.ZCDP(rho=1e-4),
    mh.ZCDP(rho=0.1),
    mh.ZCDP(rho=50),
    mh.GDP(mu=1),
    mh.ApproxDP(epsilon=0.1, delta=1e-9),
    mh.ApproxDP(epsilon=1, delta=1e-6),
    mh.ApproxDP(epsilon=5, delta=0.1),
    mh.ApproxDP(epsilon=1e-4, delta=1e-3),
]


def check_certificate(plan):
    certificate = plan.certificate
    applied = [
        bound
        for bound in certificate.bounds
        if bound.value is not None and not bound.is_conditional
    ]
    for bound in applied:
        assert 0 <= bound.value <= certificate.error, bound
    if certificate.power_error is not None:
        assert certificate.error <= certificate.power_error * (1 + 1e-9)
    assert certificate.ratio is None or certificate.ratio >= 1
    assert plan.factorization.floor <= plan.factorization.value
    assert np.isfinite(plan.standard_error).all()
    assert plan.to_dict()


@pytest.mark.parametrize("name", [name for name in CERTIFIED if name != "a table of many"])
def test_no_bound_exceeds_the_error_that_is_achieved(name):
    ways = itertools.product(PROMISES, (2, math.inf), ("add-remove", "substitute"), (1, 3))
    for privacy, p, neighbors, contributions in itertools.islice(ways, 0, None, 7):
        plan = mh.plan_queries(
            CERTIFIED[name],
            privacy=privacy,
            p=p,
            neighbors=neighbors,
            contributions=contributions,
        )
        check_certificate(plan)


@pytest.mark.slow
@pytest.mark.parametrize("name", CERTIFIED)
def test_no_bound_exceeds_the_error_that_is_achieved_in_any_setting(name):
    ways = itertools.product(
        PROMISES, (2, 2.5, 4, 20, math.inf), ("add-remove", "substitute"), (1, 2, 7)
    )
    for privacy, p, neighbors, contributions in ways:
        plan = mh.plan_queries(
            CERTIFIED[name],
            privacy=privacy,
            p=p,
            neighbors=neighbors,
            contributions=contributions,
        )
        check_certificate(plan)


def test_a_certificate_that_claims_too_much_would_be_caught():
    plan = mh.plan_queries(W.prefix(6), privacy=mh.ZCDP(rho=0.1))
    claimed = mh.bounds.linear_queries(
        W.prefix(6), mh.ZCDP(rho=0.1), floor=1.1 * plan.factorization.value
    )
    assert max(bound.value for bound in claimed) > plan.certificate.error


@pytest.mark.parametrize("memory", ["full", "few-buffers"])
def test_no_bound_exceeds_the_error_of_a_stream(memory):
    ways = itertools.product(
        (1, 2, 50),
        (mh.ZCDP(rho=0.1), mh.GDP(mu=3), mh.ApproxDP(epsilon=1, delta=1e-6)),
        ((0, 1), (-5, 2), ([0, 0], [1, 7]), ([-1, -1e-3], [1e3, 2])),
        (1, 4),
        (2, 3, math.inf),
    )
    for horizon, privacy, (lower, upper), contributions, p in ways:
        counter = mh.stream.prefix_counter(
            horizon, privacy, lower, upper, contributions=contributions, p=p, memory=memory
        )
        for bound in counter.certificate.bounds:
            if bound.value is not None and not bound.is_conditional:
                assert bound.value <= counter.certificate.error
        assert counter.certificate.ratio is None or counter.certificate.ratio >= 1
