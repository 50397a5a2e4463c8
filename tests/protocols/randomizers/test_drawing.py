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
from muhat.protocols.randomizers.fragment_randomizer import (
    FragmentRandomizer,
    ascending,
    narrowed,
    widened,
)
from muhat.protocols.randomizers.randomizer import random_order

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


@pytest.mark.parametrize("people", [3, 100])
def test_what_is_handed_on_depends_on_which_fragments_there_are_and_on_nothing_else(
    randomizer, payloads, people
):
    """With few people values are sorted, with many they are counted."""
    some = np.concatenate([payloads] * 40)[: people * people]
    rng = np.random.default_rng(1)
    other = randomizer.unpacked(some).swapaxes(0, 1).reshape(randomizer.numbers, -1).copy()
    for fragments in other:
        rng.shuffle(fragments)
    shape = randomizer.numbers, len(some), randomizer.noise.fragments
    shuffled = randomizer.packed(other.reshape(shape).swapaxes(0, 1))
    assert (shuffled != some).any()
    assert (mixed_payloads(shuffled, randomizer) == mixed_payloads(some, randomizer)).all()
    rows = rows_of(randomizer, mixed_payloads(some, randomizer))
    assert (np.diff(rows.astype(np.int64), axis=1) >= 0).all()


def test_counted_fragments_are_those_that_are_sorted(randomizer):
    fragments = np.random.default_rng(2).integers(0, randomizer.noise.modulus, 1 << 16, np.uint32)
    assert randomizer.noise.modulus <= 8 * len(fragments)
    found = ascending(fragments, randomizer)
    assert found.dtype == fragments.dtype
    assert (found == np.sort(fragments)).all()


@pytest.mark.parametrize("width", range(1, 9))
def test_words_of_any_width_are_packed_and_unpacked(width):
    numbers = np.random.default_rng(width).integers(0, 1 << min(8 * width, 63), 50, np.uint64)
    packed = narrowed(numbers, width)
    assert packed.shape == (50, width)
    assert packed.tobytes() == b"".join(int(x).to_bytes(width, "little") for x in numbers)
    assert (widened(packed) == numbers).all()


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
    sums = randomizer.totals(payloads, 100)
    assert randomizer.totals(mixed, 100) == sums
    assert randomizer.totals(mixed_payloads(mixed, randomizer), 100) == sums
    expected = randomizer.mean(np.zeros((100, 16), np.uint8), payloads)
    assert (randomizer.mean_of(sums, 100) == expected).all()


def test_nobody_is_mixed_with_nobody(randomizer):
    nobody = np.empty((0, randomizer.payload_bytes), np.uint8)
    assert mixed_payloads(nobody, randomizer).shape == nobody.shape


def test_more_people_than_the_modulus_can_count_are_refused(randomizer, payloads):
    many = np.repeat(payloads, 50, axis=0)
    with pytest.raises(InvalidInput, match="too small for 5000 people"):
        randomizer.totals(mixed_payloads(many, randomizer), 5000)
