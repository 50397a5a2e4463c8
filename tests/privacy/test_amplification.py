"""Amplification of one message a user, against enumeration and against other arithmetic."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.privacy import ApproxDP, PureDP, amplification, as_typed, blanket, shuffled
from muhat.privacy.amplification import amplified, local_epsilon
from muhat.privacy.blanket import Blanket

F = Fraction


def amplified_delta(loss, users, central, *, share=None):
    """The δ for which the shuffled messages are (`central`, δ)-DP, rounded up: the other way."""
    excess, part = amplification._excess(loss), amplification._share(share)
    ratio = amplification._ratio(central, excess)
    for tail in (1e-30, 1e-89):
        found = Blanket(excess, users, part, tail).divergence(ratio)
        if found * 1e-9 >= tail:
            break
    return min(1.0, found / (1 - 2.0**-50))


def mean_positive_part(values, n):
    """E[(V₁ + … + V_n)₊]/n, exactly; `values` maps the values of V to their probabilities."""
    law = {F(0): F(1)}
    for _ in range(n):
        sums = {}
        for total, chance in law.items():
            for value, weight in values:
                sums[total + value] = sums.get(total + value, 0) + chance * weight
        law = sums
    return sum(total * chance for total, chance in law.items() if total > 0) / n


def worst_pair(g, e, n, share):
    """The pair of the proofs; share = 1/2 is that of every randomiser."""
    z = 1 + (g - 1) * share
    values = [(g - e, share / z), (1 - g * e, share / z), (1 - e, (1 - 2 * share) / z)]
    return mean_positive_part([*values, (F(0), (g - 1) * share / z)], n)


def merged_pair(g, e, n, share):
    """The same with all third outcomes merged into one: the planted error."""
    z = 1 + (g - 1) * share
    rest = 1 - 2 * share / z
    values = [(g - e, share / z), (1 - g * e, share / z)]
    return mean_positive_part([*values, ((1 - e) * (1 - 2 * share) / z / rest, rest)], n)


def with_message(counts, law):
    """The law of the shuffled messages with one more."""
    result = {}
    for seen, chance in counts.items():
        for outcome, weight in enumerate(law):
            more = (*seen[:outcome], seen[outcome] + 1, *seen[outcome + 1 :])
            result[more] = result.get(more, 0) + chance * weight
    return result


def shuffling(laws, n, e):
    """The largest divergence of n shuffled messages over all neighbouring datasets, exactly."""
    worst = F(0)
    for others in itertools.combinations_with_replacement(laws, n - 1):
        nobody = {(0,) * len(laws[0]): F(1)}
        rest = functools.reduce(with_message, others, nobody)
        for p, q in itertools.permutations([with_message(rest, law) for law in laws], 2):
            worst = max(worst, sum(max(F(0), p[seen] - e * q[seen]) for seen in p))
    return worst


def choices(outcomes, chosen, g):
    """The laws of a choice of k of M outcomes, for all sets."""
    z = outcomes + (g - 1) * chosen
    sets = itertools.combinations(range(outcomes), chosen)
    return [[(g if y in some else F(1)) / z for y in range(outcomes)] for some in sets]


def log_up(g):
    return math.nextafter(math.log(g), math.inf)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("h", [2**-10, 0.25, 1.0, 7.0, 100.0])
@pytest.mark.parametrize("share", [0.5, 0.375, 0.0625])
def test_the_sum_is_the_exact_divergence_rounded_up(n, h, share):
    pair = Blanket(h, n, share, 1e-30)
    for r in (0.0, 0.0625, 0.5, 0.875, 1 - 2**-10):
        exact = worst_pair(1 + F(h), 1 + F(r) * F(h), n, F(share))
        found = F(pair.divergence(r))
        assert exact <= found <= exact * (1 + F(1, 10**10)) + F(2, 10**30)


@pytest.mark.parametrize(
    ("outcomes", "chosen", "n"),
    [
        *[(2, 1, 1), (2, 1, 5), (3, 1, 2), (3, 1, 4), (4, 1, 3), (4, 2, 2), (4, 2, 3)],
        *[(5, 2, 2), (3, 2, 3), (4, 3, 3)],
    ],
)
def test_shuffled_choices_keep_the_promise_on_all_datasets(outcomes, chosen, n):
    share = F(chosen, outcomes)
    for g in (F(3, 2), F(3), F(12)):
        for e in (F(1), (3 + g) / 4, (1 + g) / 2, (1 + 9 * g) / 10):
            true = shuffling(choices(outcomes, chosen, g), n, e)
            assert true <= worst_pair(g, e, n, min(share, F(1, 2)))
            loss, central = log_up(g), math.log(e) * (1 - 1e-15)
            assert true <= F(amplified_delta(loss, n, central, share=share))


def test_the_pair_is_attained_and_the_merged_pair_is_too_small():
    """The planted error, off by a tenth, is seen by enumeration of three users."""
    g, e, n, share = F(3), F(2), 3, F(1, 3)
    true = shuffling(choices(3, 1, g), n, e)
    assert true == worst_pair(g, e, n, share) == F(8, 100)
    assert merged_pair(g, e, n, share) == F(72, 1000)


def test_every_randomiser_is_covered_by_the_share_of_one_half():
    """Random laws on four outcomes, and extreme ones, whose ratios are 1/g, 1 and g only."""
    rng = np.random.default_rng(20)
    cases = [[[F(int(w)) for w in rng.integers(1, 9, 4)] for _ in range(3)] for _ in range(12)]
    cases += [[[F(3 ** int(w)) for w in rng.integers(0, 2, 4)] for _ in range(3)] for _ in range(8)]
    tight = F(0)
    for case in cases:
        laws = [[w / sum(weights) for w in weights] for weights in case]
        pairs = itertools.permutations(laws, 2)
        g = max(x / y for p, q in pairs for x, y in zip(p, q, strict=True))
        if g == 1:
            continue
        for n, e in itertools.product((2, 3), ((3 + g) / 4, (1 + 3 * g) / 4)):
            true, bound = shuffling(laws, n, e), worst_pair(g, e, n, F(1, 2))
            assert true <= bound
            tight = max(tight, true / bound)
    assert tight > F(2, 5)


def reference(h, n, r):
    """The pair of every randomiser with logarithms of factorials, to 40 digits."""
    with mpmath.workdps(40):
        h, r = mpmath.mpf(h), mpmath.mpf(r)
        q = 2 / (2 + h)

        def binomial(m, k, p):
            return mpmath.binomial(m, k) * p**k * (1 - p) ** (m - k)

        total = mpmath.mpf(0)
        for j in range(n):
            few = int(mpmath.ceil((j + 1) * (1 - r) / (2 + r * h))) - 1
            half = mpmath.mpf(1) / 2
            point = binomial(j, few, half)
            term, tail = point, mpmath.mpf(0)
            for k in range(few, 0, -1):
                term = term * k / (j - k + 1)
                tail += term
            total += binomial(n - 1, j, q) * ((1 - r) * point - r * (2 + h) * tail)
        return h / (2 + h) * total


@pytest.mark.parametrize(
    ("h", "r"), [(0.1, 0.3), (1.7, 0.3), (1.7, 0.9), (20.0, 0.5), (400.0, 0.9)]
)
def test_hundreds_of_users_agree_with_forty_digits(h, r):
    exact = reference(h, 300, r)
    ratio = mpmath.mpf(Blanket(h, 300, 0.5, 1e-60).divergence(r)) / exact
    assert 1 <= ratio <= 1 + 1e-9


@pytest.mark.parametrize(("h", "most"), [(0.1, 0.005), (1.7, 0.005), (20.0, 0.002)])
def test_a_million_users_agree_with_scipy(h, most):
    from scipy.stats import binom

    n = 10**6
    middle, width = n * 2 / (2 + h), 10 * math.sqrt(n * 2 * h) / (2 + h)
    draws = np.arange(int(middle - width), int(middle + width))
    for r in (0.0, most):
        few = np.ceil(draws * (1 - r) / (2 + r * h)) - 1
        gains = (1 - r) * binom.pmf(few, draws - 1, 0.5)
        gains -= r * (2 + h) * binom.cdf(few - 1, draws - 1, 0.5)
        exact = h / (2 + h) * np.sum(binom.pmf(draws - 1, n - 1, 2 / (2 + h)) * gains)
        found = Blanket(h, n, 0.5, 1e-30).divergence(r)
        assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-5)


@pytest.mark.parametrize(("share", "h"), [(0.1, 1.7), (0.2, 20.0)])
def test_groups_cost_little_and_are_on_the_safe_side(share, h, monkeypatch):
    """160 users with every number told apart, in another order of summation, and then not."""
    from scipy.stats import binom

    n, r = 160, 0.3
    z = 1 + h * share
    total = 0.0
    for a in range(n + 1):
        b, c = np.meshgrid(np.arange(n + 1 - a), np.arange(n + 1 - a), indexing="ij")
        chance = binom.pmf(a, n, share / z) * binom.pmf(b, n - a, share / (z - share))
        left = np.maximum(n - a - b, 0)
        chance = chance * binom.pmf(c, left, (1 - 2 * share) / (z - 2 * share))
        gain = h * (a * (1 - r) - b * (1 + r + r * h) - c * r)
        total += float(np.sum(np.where(gain > 0, gain * chance, 0.0)))
    exact = total / n
    assert Blanket(h, n, share, 1e-30).divergence(r) / exact == pytest.approx(1, abs=1e-9)
    monkeypatch.setattr(blanket, "_MOST_GROUPS", 40)
    assert 1.0001 < Blanket(h, n, share, 1e-30).divergence(r) / exact < 1.5


def test_it_is_never_above_the_closed_form_or_the_local_promise():
    for epsilon, users, delta in itertools.product(
        (0.01, 1.0, 3.0), (30, 10**4, 10**7), (1e-9, 0.01)
    ):
        promise = amplified(epsilon, users, delta)
        assert promise.delta == delta
        assert promise.epsilon <= epsilon
        try:
            closed = shuffled(epsilon, 0.0, users, delta).epsilon
        except InvalidInput:
            continue
        assert promise.epsilon < closed / 2


def test_it_is_monotone():
    def epsilons(points):
        return [amplified(e, n, d, share=s).epsilon for e, n, d, s in points]

    base = (1.0, 1_000, 1e-6, F(1, 20))
    grows = epsilons([(e, *base[1:]) for e in (0.01, 0.5, 1.0, 2.0, 5.0, 9.0)])
    assert grows == sorted(grows)
    falls = epsilons([(base[0], n, *base[2:]) for n in (1, 2, 10, 100, 1_000, 10**5)])
    assert falls == sorted(falls, reverse=True)
    falls = epsilons([(*base[:2], d, base[3]) for d in (1e-70, 1e-6, 1e-3, 0.1)])
    assert falls == sorted(falls, reverse=True)
    grows = epsilons([(*base[:3], s) for s in (1e-6, 0.01, F(1, 20), 0.2, 0.4, None)])
    assert grows == sorted(grows)
    deltas = [amplified_delta(1.0, 5_000, e) for e in (0.0, 0.01, 0.05, 0.2, 0.5, 0.9)]
    assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize("share", [None, F(1, 10)])
def test_the_two_directions_agree(share):
    for epsilon, users in ((0.3, 200), (1.0, 3_000), (4.0, 20_000)):
        promise = amplified(epsilon, users, 1e-6, share=share)
        again = amplified_delta(epsilon, users, promise.epsilon, share=share)
        # With other tails the groups are others too.
        assert again <= 1e-6 if share is None else again == pytest.approx(1e-6, rel=0.02)
        less = promise.epsilon * (1 - 1e-6 if share is None else 0.99)
        assert amplified_delta(epsilon, users, less, share=share) > 1e-6


@pytest.mark.parametrize("share", [None, 0.01, lambda loss: 1 / (1 + math.exp(loss))])
def test_the_local_epsilon_is_the_largest_that_keeps_the_promise(share):
    for epsilon, users in ((0.1, 1_000), (1.0, 10_000)):
        promise = ApproxDP(epsilon=epsilon, delta=1e-7)
        local = local_epsilon(promise, users, share=share)

        def central(loss, users=users):
            part = share(loss) if callable(share) else share
            return amplified(loss, users, 1e-7, share=part).epsilon

        assert local > epsilon
        assert central(local) <= epsilon * (1 + 1e-6)
        assert central(local * 1.001) > epsilon
        part = share(local) if callable(share) else share
        assert amplified_delta(local, users, epsilon, share=part) <= 1.02e-7


def test_one_user_hides_among_nobody():
    """D = (g − E)/(g + 1), so e^ε = g − δ(g + 1)."""
    for epsilon, delta in ((1.0, 1e-6), (0.5, 0.1), (5.0, 0.3)):
        g = math.exp(epsilon)
        expected = math.log(g - delta * (g + 1))
        found = amplified(epsilon, 1, delta).epsilon
        assert expected <= found <= min(epsilon, expected * (1 + 1e-6))
    assert local_epsilon(ApproxDP(epsilon=1.0, delta=1e-6), 1) == pytest.approx(1.0, abs=1e-5)


def test_extreme_arguments_have_answers():
    assert amplified(1e-300, 1000, 1e-6).epsilon < 1e-300
    assert amplified(1e-300, 1000, 1e-79, share=1e-300).epsilon < 1e-300
    assert amplified(1e-70, 1000, 1e-79, share=1e-3).epsilon < 1e-70
    assert local_epsilon(ApproxDP(epsilon=1e-300, delta=1e-6), 100, share=1e-300) > 10
    assert amplified(50.0, 10**6, 1e-6).epsilon == 50.0
    assert amplified(1.0, 10**6, 1e-200).epsilon == shuffled(1.0, 0.0, 10**6, 1e-200).epsilon
    assert amplified(1.0, 100, 1e-200).epsilon == 1.0
    assert amplified(30.0, 50, 0.5, share=5e-324).epsilon < 1e-9
    assert 0 < amplified_delta(1.0, 10**5, 0.9) < 1e-80
    assert local_epsilon(ApproxDP(epsilon=41.0, delta=1e-6), 10) == 41.0
    assert local_epsilon(ApproxDP(epsilon=1e-322, delta=1e-200), 10) == 1e-322
    assert amplified(5e-324, 1, 1e-80).epsilon == 5e-324
    assert local_epsilon(ApproxDP(epsilon=0.5, delta=1e-200), 10) == pytest.approx(0.5, rel=1e-6)


def test_more_users_than_are_summed_are_no_worse():
    most = blanket.LARGEST_USERS
    for epsilon in (9.0, 15.0):
        promise = amplified(epsilon, 2**53 - 1, 1e-9)
        assert promise.epsilon <= amplified(epsilon, most, 1e-9).epsilon
        assert promise.epsilon <= shuffled(epsilon, 0.0, 2**53 - 1, 1e-9).epsilon


def test_numbers_are_read_as_typed():
    assert as_typed(amplified(0.1, 7, 0.001).delta) == F(1, 1000)
    assert amplified(1.0, 500, 1e-6, share=0.1) == amplified(1.0, 500, 1e-6, share=F(1, 10))


@pytest.mark.parametrize(
    "point",
    [
        (0.0, 10, 1e-6, None),
        (-1.0, 10, 1e-6, None),
        (math.nan, 10, 1e-6, None),
        (math.inf, 10, 1e-6, None),
        ("1", 10, 1e-6, None),
        (1.0, 0, 1e-6, None),
        (1.0, 10.5, 1e-6, None),
        (1.0, True, 1e-6, None),
        (1.0, 2**53, 1e-6, None),
        (1.0, 10, 0.0, None),
        (1.0, 10, 1.0, None),
        (1.0, 10, 1e-6, 0.0),
        (1.0, 10, 1e-6, -0.25),
        (1.0, 10, 1e-6, F(3, 2)),
        (1.0, 10, 1e-6, math.nan),
        (1.0, 10, 1e-6, "half"),
    ],
)
def test_what_is_no_argument_is_refused(point):
    epsilon, users, delta, share = point
    with pytest.raises(InvalidInput):
        amplified(epsilon, users, delta, share=share)


def test_the_other_functions_refuse_as_well():
    promise = ApproxDP(epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidInput, match="privacy must be ApproxDP; got PureDP"):
        local_epsilon(PureDP(epsilon=1.0), 10)
    with pytest.raises(InvalidInput, match="users"):
        local_epsilon(promise, 0)
    with pytest.raises(InvalidInput, match="share must be greater than 0 and at most 1; got 2"):
        local_epsilon(promise, 10, share=lambda _: 2.0)
