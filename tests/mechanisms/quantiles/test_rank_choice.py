"""The exponential mechanism over ranks: its exact law, its privacy, its rank error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, product

import numpy as np
import pytest
from scipy.stats import chi2

from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.rank_choice import RankChoice, chosen, levels_of
from muhat.mechanisms.quantiles.search_walk import Tally
from muhat.noise import FRACTION_BITS
from muhat.noise.laws import INDEPENDENT

PURE, ZCDP = INDEPENDENT["laplace"], INDEPENDENT["normal"]
HALF = Fraction(1, 2)
FAR = 1 << 200
SAFE = 1 + 1e-9


def exponents(counts: list[int], target: Fraction, rate: int) -> list[int]:
    """2^54·η·ℓ of every cell, as the choice has them."""
    cells = [-1] * len(counts)
    for level in chain(*levels_of(np.cumsum(counts), target, rate, FAR)):
        assert set(cells[level.first : level.behind]) == {-1}
        cells[level.first : level.behind] = [level.exponent] * (level.behind - level.first)
    assert -1 not in cells
    return cells


def law(choice: RankChoice, counts: list[int], target: Fraction, times: int = 1) -> np.ndarray:
    """The probability of every cell, at a multiple of the rate."""
    found = exponents(counts, target, times * choice.rate)
    weights = np.exp(-(np.array([one - min(found) for one in found], float) / 2.0**FRACTION_BITS))
    weights *= choice.weights or 1
    return np.asarray(weights / weights.sum())


def target_of(choice: RankChoice, counts: list[int], rank: int) -> Fraction:
    """What F is compared with."""
    return rank - HALF if choice.quantile is None else choice.quantile * sum(counts)


class Replay:
    """Words given beforehand, then ones that do not matter."""

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def __call__(self, count: int) -> np.ndarray:
        given = [self._words.pop(0) if self._words else 1 << 63 for _ in range(count)]
        return np.array(given, np.uint64)

    @property
    def left(self) -> int:
        """The words that nobody has asked for."""
        return len(self._words)


def test_the_loss_is_the_number_of_records_that_would_have_to_move() -> None:
    for counts in product(range(4), repeat=3):
        total = sum(counts)
        for rank in range(1, total + 1):
            records = np.repeat(np.arange(3), counts)
            losses = exponents(list(counts), rank - HALF, 1)
            assert losses[records[rank - 1]] == 0
            for cell, loss in enumerate(losses):
                needed = min(
                    moved for moved in range(total + 1) if can_hold(records, cell, rank, moved)
                )
                assert loss == needed


def can_hold(records: np.ndarray, cell: int, rank: int, moved: int) -> bool:
    """Whether so many records can move so that the cell has the record of the rank."""
    below, upto = int((records < cell).sum()), int((records <= cell).sum())
    return below - moved < rank <= upto + moved


def test_exponents_are_those_of_the_formula_for_every_target() -> None:
    draw = np.random.default_rng(5)
    for _ in range(300):
        counts = (draw.integers(0, 3, 9) * draw.integers(0, 2, 9)).tolist()
        target = Fraction(int(draw.integers(-4, 40)), int(draw.integers(1, 6)))
        rate = int(draw.integers(1, 50))
        up_to = np.cumsum(counts).tolist()
        before = [0, *up_to[:-1]]
        right = [math.floor(rate * (count + HALF - target)) for count in before]
        left = [math.floor(rate * (target + HALF - count)) for count in up_to]
        expected = [max(0, *both) for both in zip(left, right, strict=True)]
        assert exponents(counts, target, rate) == expected
        near = list(chain(*levels_of(np.array(up_to), target, rate, 60)))
        beyond = sum(one > min(expected) + 60 for one in expected)
        assert sum(level.behind - level.first for level in near) == 9 - beyond


def test_every_uniform_number_gives_the_level_of_the_exact_law() -> None:
    choice = RankChoice(5, PURE, Fraction(1))
    counts, steps = [3, 0, 5, 1, 2], 1 << 10
    expected = law(choice, counts, 4 - HALF)
    found = []
    for number in range(steps):
        # The second word decides between two cells that are alike, by its first bit.
        walk = choice.start(sum(counts), 4, words=Replay(number << 54, number % 2 << 63))
        walk.descend(0, np.array(counts), choice.rounds)
        found.append(walk.cell)
    share = np.bincount(found, minlength=5) / steps
    assert np.abs(share - expected).max() <= 2 / steps
    # A rate that is twice as large would show by far.
    assert np.abs(share - law(choice, counts, 4 - HALF, times=2)).max() > 20 / steps


def test_cells_are_drawn_as_often_as_their_law_says() -> None:
    # 4000 draws, one χ² at 10^-6; at twice the rate it would be a hundred times larger.
    choice = RankChoice(6, ZCDP, Fraction(1, 4), quantile=Fraction(3, 10), replaced=True)
    counts = [1, 0, 2, 0, 3, 1]
    target = Fraction(21, 10)
    drawn = np.bincount([choice.find(np.array(counts)) for _ in range(4000)], minlength=6)
    sizes = [
        float(np.sum((drawn - 4000 * p) ** 2 / (4000 * p)))
        for p in (law(choice, counts, target, times) for times in (1, 2))
    ]
    assert sizes[0] < chi2.isf(1e-6, 5) < sizes[1] / 10


def test_cells_of_more_weight_are_drawn_as_much_oftener() -> None:
    # 4000 draws, one χ² at 10^-6; without weights it would be a hundred times larger.
    counts, weights = [1, 0, 2, 0, 3, 1], (5, 1, 2, 40, 3, 7)
    choice = RankChoice(6, PURE, Fraction(1, 4), weights=weights)
    drawn = np.bincount([choice.find(np.array(counts), 3) for _ in range(4000)], minlength=6)
    sizes = [
        float(np.sum((drawn - 4000 * p) ** 2 / (4000 * p)))
        for p in (law(each, counts, 3 - HALF) for each in (choice, replace(choice, weights=None)))
    ]
    assert sizes[0] < chi2.isf(1e-6, 5) < sizes[1] / 10


def test_weights_move_with_nobody_and_are_in_the_rank_error() -> None:
    weights = (1, 64, 8, 1)
    choice = RankChoice(4, PURE, Fraction(1), weights=weights)
    plain = replace(choice, weights=None)
    assert choice.spent == plain.spent
    for counts in product(range(3), repeat=4):
        own = law(choice, list(counts), 2 - HALF)
        for other in relations(choice, list(counts)):
            ratio = np.log(own / law(choice, other, 2 - HALF))
            assert np.abs(ratio).max() <= SAFE
    # Cells of little weight are found only if the others are that much farther off.
    reach = choice.rank_error(0.99)
    assert reach > plain.rank_error(0.99)
    counts = [1, 9, 7, 8]
    records = np.repeat(np.arange(4), counts)
    for rank in range(1, 26):
        first, last = records[max(rank - reach, 1) - 1], records[min(rank + reach, 25) - 1]
        assert law(choice, counts, rank - HALF)[first : last + 1].sum() >= 0.99


def test_weights_are_positive_whole_numbers_for_all_cells() -> None:
    for weights in ((1, 2), (1, 0, 3), (1, 2.5, 3)):
        with pytest.raises(InvalidInput, match="weights"):
            RankChoice(3, PURE, Fraction(1), weights=weights)


def test_a_number_at_the_edge_between_two_levels_gets_more_bits() -> None:
    # Two records on both sides of the target: ½ decides nothing for the enclosures of two equal
    # weights, the bits after it do. The last word is for the cell within its level.
    up_to, target, rate = np.array([1, 2]), Fraction(1), 7 << FRACTION_BITS
    for given, cell in (((1 << 63, 1), 1), (((1 << 63) - 1, (1 << 64) - 1, 5), 0)):
        words = Replay(*given, 0)
        assert chosen(up_to, target, rate, words) == cell
        assert words.left == 0
    clear = Replay(1 << 62, 0, 0)
    assert chosen(up_to, target, rate, clear) == 0
    assert clear.left == 1
    # e^-100000 is nothing at the first precision; no uniform number is lost there.
    far = np.array([1, 100_000])
    assert chosen(far, Fraction(99_000), 1 << FRACTION_BITS, Replay((1 << 64) - 1)) == 1


def relations(choice: RankChoice, counts: list[int]) -> Iterator[list[int]]:
    """Neighbours with a record replaced, or whose value comes or goes."""
    cells = range(len(counts))
    places: list[int | None] = [*cells]
    if choice.quantile is not None:
        places.append(None)
    for source, to in product(places, repeat=2):
        if source == to or (source is not None and not counts[source]):
            continue
        if choice.quantile is not None and not choice.replaced and None not in (source, to):
            continue
        other = list(counts)
        if source is not None:
            other[source] -= 1
        if to is not None:
            other[to] += 1
        yield other


HARD = [1, *[0] * 20, 1, 1, 1]
"""If the first record moves to the end, twenty cells lose weight and one gains."""

DATA = ([3, 1, 4, 1], [0, 9, 0, 0], [1, 1, 1, 1], [40, 0, 0, 40], HARD)


@pytest.mark.parametrize("quantile", [None, Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("replaced", [False, True])
def test_neighbours_keep_what_is_promised(quantile: Fraction | None, replaced: bool) -> None:
    strength = Fraction(7, 10)
    worst = {"pure": 0.0, "zcdp": 0.0, "pure, doubled": 0.0, "zcdp, doubled": 0.0}
    for counts, (name, noise), times in product(DATA, (("pure", PURE), ("zcdp", ZCDP)), (1, 2)):
        choice = RankChoice(
            len(counts), noise, strength**2, 1, quantile, replaced and quantile is not None
        )
        for rank in (2, sum(counts)):
            mine = law(choice, counts, target_of(choice, counts, rank), times)
            for other in relations(choice, counts):
                theirs = law(choice, other, target_of(choice, other, rank), times)
                loss = np.log(mine / theirs)
                if name == "pure":
                    spent = float(np.abs(loss).max() / strength)
                else:
                    # D_α ≤ α·ρ for ρ = μ²/2.
                    spent = max(
                        float(np.log(theirs @ np.exp(order * loss)) / (order - 1) / order)
                        / float(strength**2 / 2)
                        for order in (1.01, 2.0, 8.0, 64.0)
                    )
                key = name if times == 1 else f"{name}, doubled"
                worst[key] = max(worst[key], spent)
    assert worst["pure"] <= SAFE
    assert worst["zcdp"] <= SAFE
    # It comes close; at twice the rate the promise would be broken, and this would show.
    assert worst["pure"] > 0.8
    assert worst["pure, doubled"] > 1.4
    assert worst["zcdp"] > 0.3
    assert worst["zcdp, doubled"] > 1.2


def test_a_choice_spends_what_the_halvings_would() -> None:
    for noise, rounds in ((PURE, 10), (ZCDP, 10)):
        choice = RankChoice(1000, noise, Fraction(1), further=4)
        search = NoisySearch(1000, noise, Fraction(1), further=4)
        assert (choice.questions, choice.multiplier) == (search.questions, search.multiplier)
        assert choice.asked == 4
        assert search.asked == 14
        per_round = search.multiplier / 2**FRACTION_BITS
        eta = choice.rate / 2**FRACTION_BITS
        expected = rounds * per_round / 2 if noise is PURE else math.sqrt(rounds) * per_round
        assert expected * (1 - 1e-12) < eta <= expected


def test_a_person_with_more_records_has_more_noise() -> None:
    one, three = (RankChoice(9, PURE, Fraction(1), records) for records in (1, 3))
    assert abs(three.rate - one.rate / 3) < 100
    assert three.rank_error(0.99) > 2.9 * one.rank_error(0.99)


@pytest.mark.parametrize("quantile", [None, Fraction(1, 2), Fraction(3, 10)])
def test_the_rank_error_holds_at_its_confidence(quantile: Fraction | None) -> None:
    least = 1.0
    for noise, near, total in product((PURE, ZCDP), (1, 5, 12), (30, 31)):
        choice = RankChoice(64, noise, Fraction(1), 1, quantile, quantile is not None)
        rank = math.ceil((quantile or HALF) * total)
        # As many records as fit around the rank in one cell, all others at the ends.
        counts = [0] * 64
        below = max(rank - near, 0)
        counts[0], counts[40], counts[63] = below, 2 * near, total - below - 2 * near
        chances = law(choice, counts, target_of(choice, counts, rank))
        records = np.repeat(np.arange(64), counts)
        for confidence in (0.5, 0.9, 0.99):
            error = choice.rank_error(confidence)
            low = records[rank - error - 1] if rank - error >= 1 else 0
            high = records[rank + error - 1] if rank + error <= total else 63
            inside = float(chances[low : high + 1].sum())
            assert inside * SAFE >= confidence
            least = min(least, inside / confidence)
    # Nowhere is there much to gain: the worst data come near to the bound.
    assert least < 1.5


@pytest.mark.slow
def test_a_choice_typically_errs_as_planned_where_records_lie_evenly() -> None:
    # The mean of 3,000 squares, of relative deviation √5: 5.5 standard errors are a quarter.
    choice = RankChoice(4096, PURE, Fraction(1, 4), further=4)
    counts = np.ones(4096, np.int64)
    squares = [(choice.find(counts, 2000) - 1999) ** 2 for _ in range(3000)]
    ratio = np.mean(squares) / choice.typical_error**2
    assert abs(ratio - 1) < 0.25


def test_bad_arguments_are_refused() -> None:
    choice = RankChoice(4, PURE, Fraction(1))
    with pytest.raises(InvalidInput, match="4 entries"):
        choice.find(np.array([1, 2]), 1)
    with pytest.raises(InvalidInput, match="rank"):
        choice.find(np.array([1, 2, 3, 4]), 0)
    with pytest.raises(InvalidInput, match="drowns"):
        RankChoice(4, PURE, Fraction(1, 1 << 120))
    assert choice.to_dict()["cells"] == 4
    assert RankChoice(1, PURE, Fraction(1)).find(np.array([5]), 3) == 0


@pytest.mark.slow
def test_error_times_interval_is_less_than_with_half_or_twice_as_many_questions() -> None:
    """The geometric mean over four datasets of 60 releases each: seven standard errors apart."""
    draw, cells = np.random.default_rng(0), 10**6 + 1
    products = {}
    shapes = [draw.uniform(0, cells - 1, n) for n in (1000, 10**4)]
    shapes += [np.clip(draw.normal(4e5, 5e4, n), 0, cells - 1) for n in (1000, 10**4)]
    for further in (4, 8, 16):
        choice = RankChoice(cells, PURE, Fraction(1), further=further)
        found = []
        for records in shapes:
            up_to = np.cumsum(np.bincount(records.astype(int), minlength=cells))
            lengths = []
            for _ in range(60):
                walk = choice.start(len(records), len(records) // 2)
                walk.follow(Tally(0, 0, up_to), choice.rounds)
                ends = choice.enclosing(walk.comparisons, walk.cell, choice.clear(0.95))
                lengths.append(up_to[ends[1]] - (up_to[ends[0] - 1] if ends[0] else 0))
            found.append(choice.typical_error * np.mean(lengths))
        products[further] = float(np.exp(np.mean(np.log(found))))
    assert products[8] < min(products[4], products[16])
