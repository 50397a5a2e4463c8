"""Noise goes on integers in strategy space, and no neighbour moves them farther than allowed."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from muhat import workloads
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
from muhat.mechanisms.queries.strategy_query import fit_strategy
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors
from muhat.workloads.factorize import factorize

ADD, SWAP = Neighbors.ADD_REMOVE, Neighbors.SUBSTITUTE
CASES = {
    "prefix": workloads.prefix(9),
    "ranges": workloads.ranges(5),
    "identity": workloads.identity(6),
    "parity": workloads.parity(3, 2),
    "wide matrix": workloads.matrix([[1, 2, 0, -1, 3], [0.5, 0, 1, 1, 1]]),
    "rank deficient": workloads.matrix([[1, 1, 0], [2, 2, 0], [0, 0, 1]]),
    "product": workloads.kron(workloads.prefix(4), workloads.ranges(3)),
    "product with identity": workloads.kron(workloads.identity(3), workloads.prefix(4)),
    "stack": workloads.stack([workloads.identity(4), workloads.prefix(4)], [1, 3]),
}


def query(workload, neighbors=ADD, law="normal", strength=Fraction(1, 5), contributions=1, p=2):
    factorization = factorize(workload, p=p, neighbors=neighbors)
    return fit_strategy(
        factorization,
        LAWS[law],
        strength_squared=strength,
        neighbors=neighbors,
        contributions=contributions,
    )


def size(difference, norm):
    if norm == 1:
        return sum(map(abs, difference))
    return math.sqrt(sum(entry * entry for entry in difference))


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("name", CASES)
def test_one_record_more_moves_the_integers_no_farther_than_the_promise(name, law):
    workload = CASES[name]
    asked = query(workload, law=law)
    norm = LAWS[law].sensitivity_norm
    allowed = math.sqrt(Fraction(1, 5)) * 2**FRACTION_BITS
    moved = [size(asked.encode(cell), norm) for cell in np.eye(workload.shape[1], dtype=np.int64)]
    assert (
        max(moved) <= float(asked.sensitivity(norm, ADD, 1)) * (1 + 1e-15) <= allowed * (1 + 1e-15)
    )
    # Not much is given away either: the largest of them fills the room.
    assert max(moved) >= allowed * (1 - 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_one_record_replaced_moves_the_integers_no_farther_than_the_promise(name):
    workload = CASES[name]
    asked = query(workload, SWAP)
    allowed = math.sqrt(Fraction(1, 5)) * 2**FRACTION_BITS
    codes = [asked.encode(cell) for cell in np.eye(workload.shape[1], dtype=np.int64)]
    moved = [size(a - b, 2) for a, b in itertools.combinations(codes, 2)]
    assert max(moved) <= float(asked.sensitivity(2, SWAP, 1)) * (1 + 1e-15) <= allowed * (1 + 1e-15)


@pytest.mark.parametrize("neighbors", [ADD, SWAP])
@pytest.mark.parametrize("name", CASES)
def test_without_noise_the_answers_are_the_exact_ones(name, neighbors):
    workload = CASES[name]
    counts = (np.arange(workload.shape[1], dtype=np.int64) * 7919) % 1000
    asked = query(workload, neighbors)
    answers = asked.decode(asked.encode(counts), int(counts.sum()))
    assert np.allclose(answers, workload @ counts, rtol=1e-11, atol=1e-7)


@pytest.mark.parametrize("neighbors", [ADD, SWAP])
@pytest.mark.parametrize("name", CASES)
def test_the_stated_scales_are_those_of_the_decoder(name, neighbors):
    workload = CASES[name]
    asked = query(workload, neighbors)
    unit = np.eye(asked.rows, dtype=np.int64).astype(object) * (1 << FRACTION_BITS)
    zero = asked.decode(np.zeros(asked.rows, dtype=object), 0)
    columns = np.column_stack([asked.decode(row, 0) - zero for row in unit])
    actual = np.linalg.norm(columns, axis=1)
    assert np.allclose(asked.scales, actual, rtol=1e-5, atol=1e-6)
    assert (actual <= asked.scales * (1 + 1e-9)).all()


def test_a_planted_error_in_the_scale_is_caught():
    """A recipe checks itself: a strategy twice as large as the promise allows is refused."""
    factorization = factorize(workloads.prefix(8))
    protection = Protection(Strength(NoiseKind.NORMAL, Fraction(1)), ADD, 1)
    recipe = LinearRecipe.of(factorization, LAWS["normal"], protection)
    with pytest.raises(AssertionError):
        replace(recipe, query=replace(recipe.query, multiplier=2 * recipe.query.multiplier))
    with pytest.raises(AssertionError):
        replace(recipe, protection=Protection(Strength(NoiseKind.NORMAL, Fraction(1)), ADD, 2))


def test_contributions_multiply_the_noise():
    once, thrice = query(CASES["prefix"]), query(CASES["prefix"], contributions=3)
    assert np.allclose(thrice.scales, 3 * once.scales, rtol=1e-7)


def test_a_promise_too_strong_for_the_integers_is_refused():
    with pytest.raises(InvalidInput, match="too strong"):
        query(CASES["prefix"], strength=Fraction(1, 10**30))


@pytest.mark.parametrize("name", ["prefix", "product", "identity"])
def test_a_weak_promise_still_gets_the_least_noise(name):
    usual, weak = query(CASES[name]), query(CASES[name], strength=Fraction(10**30, 5))
    assert np.allclose(weak.scales * 1e15, usual.scales, rtol=1e-7)


def test_large_counts_stay_exact():
    counts = np.full(9, 2**60, dtype=np.int64)
    asked = query(CASES["prefix"])
    exact = sum(int(c) for c in counts)
    assert asked.decode(asked.encode(counts), None)[-1] == pytest.approx(exact, rel=1e-13)
