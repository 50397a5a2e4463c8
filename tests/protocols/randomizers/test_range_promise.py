"""The promise of a message, over every nonce and every answer of small trees."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.privacy import GDP, ZCDP, ApproxDP, PureDP, pure_within
from muhat.protocols.encodings.range_cells import Coordinates
from muhat.protocols.encodings.range_levels import LevelMix
from muhat.protocols.estimators.range_choice import best_mix, best_ranges
from muhat.protocols.randomizers.frequency import SubsetResponse
from muhat.protocols.randomizers.range_promise import calibrated, concentrated, exposure, kept
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer

ORDERS = 1 + np.geomspace(1e-4, 1e3, 200)
WHOLE = 1 << 32


def law(mix: LevelMix, response: SubsetResponse) -> list[list[Fraction]]:
    """For each leaf, the exact probability of every message: set of levels, rows, answer."""
    leaves = np.arange(1 << mix.levels)
    table: list[list[Fraction]] = [[] for _ in leaves]
    for which, levels in enumerate(mix.sets):
        free_bits = sum(levels) - len(levels)
        chance = Fraction(mix.weights[which], WHOLE << free_bits)
        for free in range(1 << free_bits):
            words = np.array([0, sum(mix.weights[:which]), free & 0xFFFFFFFF, free >> 32], "<u4")
            nonces = np.repeat(words.view(np.uint8)[None], len(leaves), axis=0)
            for leaf, bucket in enumerate(mix.buckets(leaves, nonces).tolist()):
                table[leaf] += [
                    chance * response.likelihood(answer, bucket)
                    for answer in range(response.answers)
                ]
    return table


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """D_α(p‖q); sums are taken relative to 1, so that orders near 1 lose no digits."""
    loss = (order - 1) * np.log(p / q)
    if loss.max() > 100:
        return float(logsumexp(loss, b=p) / (order - 1))
    return float(np.log1p(p @ np.expm1(loss)) / (order - 1))


CASES = [(8, 1, 1), (8, 2, 1), (16, 2, 1), (8, 3, 3), (8, 3, 1)]


@pytest.mark.parametrize(("cells", "bits", "chosen"), CASES)
def test_every_message_is_pure_for_every_pair_of_cells(cells, bits, chosen):
    response = SubsetResponse(bits, chosen, 1.0)
    table = law(best_mix(cells, bits), response)
    assert all(sum(row) == 1 for row in table)
    worst = max(max(column) / min(column) for column in zip(*table, strict=True))
    assert worst == response.ratio <= Fraction("2.718281828459045235361")


@pytest.mark.parametrize("rho", [0.01, 0.5, 3.0])
@pytest.mark.parametrize(("cells", "bits", "chosen"), CASES)
def test_a_concentrated_promise_is_kept_at_every_order_and_nothing_is_wasted(
    cells, bits, chosen, rho
):
    mix = best_mix(cells, bits)
    response = calibrated(ZCDP(rho=rho), mix, chosen)
    table = np.array(law(mix, response), float)
    first = table[0]
    spent = max(
        renyi(p, q, order) / order
        for order in ORDERS
        for p, q in [(first, row) for row in table[1:]] + [(row, first) for row in table[1:]]
    )
    assert spent <= rho * (1 + 1e-9)
    if exposure(mix, response) > Fraction(1, 2):
        # The bound is attained as the order tends to 1.
        assert spent >= rho * (1 - 1e-3)
    assert response.epsilon > 1.05 * pure_within(ZCDP(rho=rho)) or exposure(mix, response) > 0.9


def test_counting_a_small_exposure_in_full_proportion_would_break_the_promise():
    """Below the least τ the largest D_α/α is not at α = 1: τ·ε·tanh(ε/2) is too little."""
    epsilon, tau = 6.0, 0.02
    p = 1 / (1 + np.exp(-epsilon))
    law_p = np.array([tau * p, tau * (1 - p), 1 - tau])
    law_q = law_p[[1, 0, 2]]
    spent = max(renyi(law_p, law_q, order) / order for order in ORDERS)
    proportion = tau * epsilon * np.tanh(epsilon / 2)
    assert spent > 1.2 * proportion
    assert spent < float(concentrated(epsilon, Fraction(tau)))


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 10.0, 49.0])
@pytest.mark.parametrize("tau", [0.05, 0.3, 0.4, 0.6, 0.9, 1.0])
def test_the_bound_on_mixtures_holds_at_every_order(epsilon, tau):
    common = np.log1p(np.exp(-epsilon))
    for order in ORDERS:
        y = (order - 1) * epsilon
        larger = np.logaddexp(y, -epsilon - y) - common
        spent = np.logaddexp(np.log(tau) + larger, np.log1p(-tau)) if tau < 1 else larger
        bound = order * (order - 1) * float(concentrated(epsilon, Fraction(tau)))
        assert spent <= bound * (1 + 1e-7) + 1e-11


@pytest.mark.parametrize(
    "promise", [PureDP(epsilon=1.0), ApproxDP(epsilon=1.0, delta=1e-6), GDP(mu=1.0), ZCDP(rho=0.1)]
)
def test_every_kind_of_promise_has_its_largest_epsilon(promise):
    mix = best_mix(64, 2)
    response = calibrated(promise, mix, 1)
    assert kept(promise, mix, response)
    assert not kept(promise, mix, SubsetResponse(2, 1, response.epsilon * (1 + 1e-9)))


def test_a_randomizer_with_too_large_an_epsilon_cannot_be_made():
    grid = UniformGrid(0.0, 15.0, 1.0)
    best = best_ranges(Coordinates(1), grid, ZCDP(rho=0.1))
    with pytest.raises(InvalidInput, match="too large"):
        RangeRandomizer(best.look, grid, ZCDP(rho=0.0999), best.mix, best.response)
    with pytest.raises(InvalidInput, match="too large"):
        RangeRandomizer(best.look, grid, PureDP(epsilon=0.1), best.mix, best.response)
