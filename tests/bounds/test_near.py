"""(ε, δ) on a dataset or on a neighbour of it: NT24 Theorem 4 with a constant."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.bounds import unbiased_mean, unbiased_sum
from muhat.bounds.divergences import log_one_sided_approx, log_two_sided_approx
from muhat.privacy import gaussian_mu


def least_delta(laws, grown):
    """The least δ that all ordered pairs of laws keep, one law a row."""
    pairs = laws[:, None] - grown * laws[None]
    return np.maximum(pairs, 0).sum(axis=-1).max()


def laws_and_values(rng, count):
    """Laws that are nearly as far apart as an ε allows, but for a few outputs."""
    size, epsilon = int(rng.integers(2, 7)), float(rng.uniform(0.01, 2.5))
    base = rng.dirichlet(np.full(size, rng.uniform(0.2, 2)))
    tilt = np.exp(epsilon * rng.choice([-0.5, 0, 0.5], size=(count, size)))
    laws = base * tilt
    if rng.uniform() < 0.8:
        laws = np.concatenate([laws, np.diag(10 ** rng.uniform(-6, -0.5, count))], axis=1)
        laws = laws[:, rng.permutation(laws.shape[1])]
    laws /= laws.sum(axis=1, keepdims=True)
    y = rng.standard_t(1.5, laws.shape[1])
    return laws, y, epsilon


def moments(law, y):
    mean = float(law @ y)
    return mean, math.sqrt(float(law @ (y - mean) ** 2))


def test_the_inequalities_hold_for_drawn_laws_and_are_nearly_attained():
    rng = np.random.default_rng(1)
    closest = {1: 0.0, 2: 0.0}
    for _ in range(4000):
        laws, y, epsilon = laws_and_values(rng, 3)
        grown = math.exp(epsilon)
        delta = max(least_delta(laws, grown), 1e-15) * (1 + 1e-9)
        (zero, here), (plus, above), (minus, below) = (moments(law, y) for law in laws)
        if delta >= 0.5:
            continue
        apart = max(abs(plus - minus), abs(plus - zero), abs(minus - zero))
        if apart == abs(plus - minus):
            bound = here * math.exp(log_two_sided_approx(epsilon, delta) / 2)
            bound += math.sqrt(delta) * (above + below)
            closest[2] = max(closest[2], (1 - 2 * delta) * apart / bound)
        delta = max(least_delta(laws[:2], grown), 1e-15) * (1 + 1e-9)
        bound = here * math.exp(log_one_sided_approx(epsilon, delta) / 2) + math.sqrt(delta) * above
        closest[1] = max(closest[1], math.sqrt(1 - delta) * abs(plus - zero) / bound)
    assert 0.9 < closest[1] <= 1 + 1e-9
    assert 0.7 < closest[2] <= 1 + 1e-9


def test_a_hard_coded_answer_is_paid_for_by_the_neighbours():
    """0 on one dataset, and on a neighbour 1/δ with probability δ: unbiased and (0, δ)-private."""
    delta = 1e-4
    privacy = mh.ApproxDP(epsilon=1e-9, delta=delta)
    (bound,) = (b for b in unbiased_sum(1.0, privacy=privacy, dim=1) if b.datasets == "near")
    there = math.sqrt((1 - delta) / delta)  # of a neighbour
    assert 0.45 * there < bound.value < there
    least = float(bound.assumptions[-1].split("a neighbour has ")[1].split(" ")[0])
    assert 0.45 * there < least < there


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "added"])
def test_500_settings_are_never_above_normal_or_laplace_noise(replaced):
    rng = np.random.default_rng(2)
    for _ in range(250):
        epsilon, delta = 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-12, -1)
        dim, privacy = int(rng.integers(1, 200)), mh.ApproxDP(epsilon=epsilon, delta=delta)
        # A ball of radius 1: differences are 2 long.
        gamma = math.sqrt(dim) * (2 if replaced else 1)
        if replaced:
            found = unbiased_mean(gamma, n=7, privacy=privacy, contact_pairs=dim, dim=dim)
            gamma /= 7
        else:
            found = unbiased_sum(gamma, privacy=privacy, dim=dim)
        (near,) = (bound for bound in found if bound.datasets == "near")
        laplace = math.sqrt(2) / epsilon if dim == 1 else math.inf
        assert 0 < near.value <= gamma * min(1 / gaussian_mu(epsilon, delta), laplace)


def test_it_is_in_the_certificates_and_says_what_it_is_about():
    privacy = mh.ApproxDP(epsilon=0.5, delta=1e-8)
    box = mh.Box([0.0, 0.0], [1.0, 1.0])
    plan = mh.plan_mean(domain=box, n=100, privacy=privacy, missing="none")
    (bound,) = (b for b in plan.certificate.bounds if b.datasets == "near")
    assert bound.sentence().endswith("on every dataset or on a neighbour of it.")
    assert bound.sentence() in plan.certificate.describe()
    pure = mh.bounds.unbiased(box, n=100, privacy=mh.PureDP(epsilon=0.5))[0]
    assert pure.datasets == "every"
    assert 0.999 < bound.value / pure.value < 1
    queries = mh.workloads.prefix(8)
    for neighbors in ("add-remove", "substitute"):
        found = mh.bounds.linear_queries(queries, privacy, neighbors=neighbors)
        assert [each.datasets for each in found].count("near") == 1
        assert found[0].value < max(each.value or 0 for each in found if each is not found[0])


def test_the_constant_of_additive_noise_that_follows_is_between_the_papers_and_ours():
    """ZLU25 Theorem 2.1, derived from one neighbour: √(1−δ)/(√(s+δ) + √δ)."""
    for epsilon, delta in ((0.1, 1e-6), (0.5, 1e-9), (1.0, 1e-3), (0.3, 0.0)):
        square, leak = 4 * math.sinh(epsilon / 2) ** 2, 2 * delta / -math.expm1(-epsilon)
        derived = math.sqrt(1 - delta) / (math.sqrt(square + delta) + math.sqrt(delta))
        paper = (1 - 8 * leak) / (16 * math.expm1(3 * epsilon))
        ours = math.sqrt(1 - delta) / math.sqrt(square + 4 * delta)
        assert paper < derived <= ours
