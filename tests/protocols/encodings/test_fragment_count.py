"""How much mixed shares tell: the bound against all that can be seen, counted exactly."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import comb, factorial, prod

import pytest

from muhat.errors import InvalidInput
from muhat.protocols.encodings.fragment_count import SHARP, distance, excess, least_fragments

SMALL = [
    (q, h, m)
    for q, h, m in product((2, 3, 4, 5), (1, 2, 3), (2, 3, 4))
    if comb(h * m + q - 1, q - 1) < 2000
]


def mixed_view(numbers, q, m):
    """The law of the multiset of all shares, as counts of each value."""
    views = {(0,) * q: Fraction(1)}
    for number in numbers:
        own = Counter()
        for first in product(range(q), repeat=m - 1):
            shares = (*first, (number - sum(first)) % q)
            own[tuple(shares.count(value) for value in range(q))] += 1
        after = Counter()
        for (seen, chance), (more, ways) in product(views.items(), own.items()):
            both = tuple(map(sum, zip(seen, more, strict=True)))
            after[both] += chance * ways / q ** (m - 1)
        views = after
    return views


def made_up(total, q, h, m):
    """Uniform shares with this sum, in any order: what `mixed_view` is compared with."""
    size, found = h * m, {}
    for ends in combinations(range(size + q - 1), q - 1):
        bars = (-1, *ends, size + q - 1)
        counts = tuple(after - before - 1 for before, after in pairwise(bars))
        if sum(value * count for value, count in enumerate(counts)) % q == total % q:
            orders = factorial(size) // prod(map(factorial, counts))
            found[counts] = Fraction(orders, q ** (size - 1))
    return found


def total_variation(first, second):
    return sum(abs(first.get(view, 0) - second.get(view, 0)) for view in first | second) / 2


def exact_moment(h, m, q):
    """E q^(components − 1) of the random graph behind the bound, with nothing left out."""
    connected, moments = {}, {}
    for k in range(1, h + 1):
        parts = {
            j: Fraction(comb(k - 1, j - 1) * comb(k, j), comb(m * k, m * j)) for j in range(1, k)
        }
        connected[k] = 1 - sum(part * connected[j] for j, part in parts.items())
        moments[k] = connected[k] + q * sum(
            part * connected[j] * moments[k - j] for j, part in parts.items()
        )
    return moments[h]


@pytest.mark.parametrize(("q", "h", "m"), SMALL)
def test_what_is_seen_is_as_near_to_a_function_of_the_sum_as_the_bound_says(q, h, m):
    bound = distance(h, m, q)
    models = {total: made_up(total, q, h, m) for total in range(q)}
    for numbers in product(range(q), repeat=h):
        if list(numbers) == sorted(numbers):
            seen = mixed_view(numbers, q, m)
            assert float(total_variation(seen, models[sum(numbers) % q])) <= bound


@pytest.mark.parametrize(("q", "h", "m"), SMALL)
def test_equal_numbers_have_the_chi_square_that_the_recursion_bounds(q, h, m):
    """χ² + 1 is the moment itself; with one share more the bound would be wrong."""
    seen, model = mixed_view([1] * h, q, m), made_up(h, q, h, m)
    chi_square = sum(chance**2 / model[view] for view, chance in seen.items()) - 1
    assert chi_square == exact_moment(h, m, q) - 1
    assert excess(h, m, q) >= chi_square
    if h > 1:
        assert excess(h, m + 1, q) < chi_square


def test_two_inputs_with_the_same_sum_are_told_apart_and_with_another_sum_at_once():
    """The bound is no emptier than it must be: the distance is above a fifth of it."""
    first, second = mixed_view([0, 0, 0], 2, 4), mixed_view([0, 1, 1], 2, 4)
    found = float(total_variation(first, second))
    assert distance(3, 4, 2) / 5 < found < 2 * distance(3, 4, 2) < 0.25
    assert total_variation(first, mixed_view([0, 0, 1], 2, 4)) == 1


@pytest.mark.parametrize(("m", "q"), [(6, 1 << 20), (8, 1 << 32), (12, 1000)])
def test_doubling_agrees_with_the_recursion_beyond_the_list(m, q):
    exact = {1: Fraction(1)}
    for k in range(2, 91):
        terms = (
            Fraction(q * comb(k - 1, j - 1) * comb(k, j), comb(m * k, m * j)) * exact[k - j]
            for j in range(1, k)
        )
        # Rounded up, or the denominators would fill the memory.
        exact[k] = Fraction(-(-(1 + sum(terms)) * (1 << 400) // 1), 1 << 400)
        if k in (2, 31, 32, 33, 64, 65, 90) and exact[k] < 2:
            assert exact[k] - 1 <= excess(k, m, q) * (1 + Fraction(1, 1 << 60))
            assert float(excess(k, m, q)) < 1.05 * float(exact[k] - 1)


@pytest.mark.parametrize("bits", [16, 24, 40])
def test_bounds_that_are_of_use_are_sharp(bits):
    """Within 5 % of what e_h − 1 is at least; (300, 6, 2²⁴) was off by a factor of 13,900."""
    for h in (33, 50, 100, 300, 1000, 1500, 10**4, 10**6, 10**9):
        for m in range(4, 18):
            if distance(h, m, 1 << bits) < 1e-3:
                assert excess(h, m, 1 << bits) <= SHARP * Fraction(h * h << bits, comb(m * h, m))


@pytest.mark.parametrize("h", [10, 1000, 10**5, 10**7])
def test_worst_inputs_bounded_directly_need_no_more_shares_than_average_ones(h):
    """The way by random inputs needs a share more to start with: hq/C((m − 1)h, m − 1)."""
    for m in range(8, 20, 3):
        q = 1 << 32
        average = q * h / comb((m - 1) * h, m - 1)
        direct = excess(h, m, q)
        if direct is not None and direct < 1:
            assert float(direct) < 0.5 * average
            assert float(direct) == pytest.approx(q * h * h / comb(m * h, m), rel=3 / h + 1e-3)


def test_several_sums_add_up_in_squares():
    x = excess(100, 12, 1 << 24)
    for r in (2, 8, 100):
        exact = ((1 + x) ** r - 1) / 4
        assert Fraction(distance(100, 12, 1 << 24, r)) ** 2 >= exact * (1 - Fraction(1, 1 << 50))
        assert distance(100, 12, 1 << 24, r) < 1.01 * r**0.5 * distance(100, 12, 1 << 24)


def test_the_least_number_of_shares_is_the_least():
    for h, bits, r, within in [(2, 8, 1, 1e-3), (50, 16, 4, 1e-9), (10**6, 32, 64, 1e-10)]:
        m = least_fragments(h, 1 << bits, r, within)
        assert distance(h, m, 1 << bits, r) <= within < distance(h, m - 1, 1 << bits, r)


def test_fewer_people_and_larger_moduli_need_more_shares():
    needed = [least_fragments(h, 1 << 32, 8, 1e-9) for h in (2, 10, 100, 10**4, 10**6)]
    assert needed == sorted(needed, reverse=True)
    needed = [least_fragments(10**4, 1 << bits, 8, 1e-9) for bits in (8, 16, 32, 62)]
    assert needed == sorted(needed)


def test_one_person_alone_shows_nothing_but_the_sum():
    assert distance(1, 2, 1 << 40) == 0.0


def test_too_few_shares_promise_nothing():
    assert distance(10**6, 2, 1 << 40) == 1.0
    assert distance(3, 4, 5, numbers=1000) == 1.0


@pytest.mark.parametrize(
    "arguments", [(0, 4, 8), (10, 1, 8), (10, 4, 1), (10, 4, 1 << 65), (10, 300, 8), (1.5, 4, 8)]
)
def test_impossible_arguments_are_refused(arguments):
    with pytest.raises(InvalidInput):
        excess(*arguments)


def test_a_distance_that_no_number_of_shares_reaches_is_refused():
    with pytest.raises(InvalidInput, match="honest people"):
        least_fragments(2, 1 << 62, 1, 1e-300)
