"""Mixing: every order is as likely as any other, and nothing but the order changes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import muhat as mh
from muhat.errors import InvalidInput
from muhat.noise.entropy import system_words
from muhat.protocols.encodings.domain_encoding import DomainEncoding
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.randomizers.randomizer import in_random_order, random_order

FALSE_ALARM = 1e-7
PROMISE = Allowance(mh.ApproxDP(epsilon=1.0, delta=1e-6))


@pytest.fixture(scope="module")
def randomizer():
    return FragmentRandomizer.of(DomainEncoding(mh.Ball(1.0, dim=3)), PROMISE, honest=90, users=100)


@pytest.fixture(scope="module")
def payloads(randomizer):
    records = np.random.default_rng(0).normal(size=(100, 3))
    return randomizer.randomize(records, np.zeros((100, 16), np.uint8))


def mixed_payloads(payloads, randomizer):
    nonces, mixed = randomizer.mixed(np.zeros((len(payloads), 16), np.uint8), payloads)
    assert nonces.shape == (len(payloads), 16)
    return mixed


def order_p_value(order, times=24_000):
    names = {names: index for index, names in enumerate(permutations(range(4)))}
    counts = np.zeros(24)
    for _ in range(times):
        counts[names[tuple(order(4).tolist())]] += 1
    return stats.chisquare(counts).pvalue


def test_all_orders_are_equally_likely():
    assert order_p_value(random_order) > FALSE_ALARM


def test_orders_from_keys_that_may_be_equal_are_told_apart():
    assert order_p_value(lambda size: np.argsort(system_words(size) >> np.uint64(60))) < 1e-30


def test_equal_keys_are_drawn_again():
    drawn = [[5, 5, 1], [2, 9, 2], [7, 3, 8]]
    order = random_order(3, lambda count: np.array(drawn.pop(0), np.uint64))
    assert order.tolist() == [1, 0, 2]
    assert not drawn
    assert random_order(1).tolist() == [0]
    assert random_order(0).tolist() == []


def test_numbers_sorted_with_their_keys_are_in_any_order():
    numbers = np.arange(4, dtype=np.uint64)
    assert order_p_value(lambda size: in_random_order(numbers[:size], 24)) > FALSE_ALARM
    # A key that is the same is drawn again, and the number does not decide.
    drawn = [[5 << 24, 5 << 24 | 9, 1 << 24], [7 << 24, 3 << 24, 8 << 24 | 1]]
    found = in_random_order(numbers[:3], 24, lambda count: np.array(drawn.pop(0), np.uint64))
    assert found.tolist() == [1, 0, 2]
    assert not drawn
    assert in_random_order(numbers[:0], 24).tolist() == []
    assert in_random_order(numbers[3:], 62).tolist() == [3]
    # No room for keys that are all different: found by an order of their own.
    many = np.arange(1000, dtype=np.uint64)
    mixed = in_random_order(many, 50)
    assert sorted(mixed.tolist()) == many.tolist() != mixed.tolist()


def rows_of(randomizer, payloads):
    return randomizer.unpacked(payloads).swapaxes(0, 1).reshape(randomizer.numbers, -1)


def test_mixing_changes_nothing_but_the_order_of_each_number(randomizer, payloads):
    mixed = mixed_payloads(payloads, randomizer)
    assert mixed.shape == payloads.shape
    before, after = rows_of(randomizer, payloads), rows_of(randomizer, mixed)
    assert (np.sort(after, axis=1) == np.sort(before, axis=1)).all()
    assert (after != before).mean() > 0.9


def test_the_sums_are_the_same_before_and_after(randomizer, payloads):
    mixed = mixed_payloads(payloads, randomizer)
    assert randomizer.valid(mixed).all()
    sums = randomizer.totals(payloads)
    assert randomizer.totals(mixed) == randomizer.totals(mixed_payloads(mixed, randomizer)) == sums
    expected = randomizer.mean(np.zeros((100, 16), np.uint8), payloads)
    assert (randomizer.mean_of(sums, 100) == expected).all()


def test_nobody_is_mixed_with_nobody(randomizer):
    nobody = np.empty((0, randomizer.payload_bytes), np.uint8)
    assert mixed_payloads(nobody, randomizer).shape == nobody.shape


def test_more_people_than_the_modulus_can_count_are_refused(randomizer, payloads):
    many = np.repeat(payloads, 50, axis=0)
    with pytest.raises(InvalidInput, match="too small for 5000 people"):
        randomizer.totals(mixed_payloads(many, randomizer))
