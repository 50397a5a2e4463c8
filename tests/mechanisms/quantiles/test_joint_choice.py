"""Several quantiles in one choice: its promise by enumeration, its rank error, what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations, product

import numpy as np
import pytest
from joint_losses import doubled_losses
from quartile_recipes import quartile_recipe

from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.joint_choice import JointChoice
from muhat.mechanisms.quantiles.quantile import QuantileRecipe, rank_errors
from muhat.mechanisms.quantiles.rank_choice import RankChoice
from muhat.mechanisms.quantiles.recorded_count import spent_beside
from muhat.noise.laws import INDEPENDENT
from muhat.privacy import GDP, ZCDP, Neighbors, PureDP

PURE, NORMAL = INDEPENDENT["laplace"], INDEPENDENT["normal"]
QUARTILES = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
BASE = Fraction(9, 10)
"""e^(−h/2^54), as a rational number."""


def probabilities(counts: tuple[int, ...], ranks: tuple[int, ...], end: int) -> dict:
    """The law of all cells, exactly."""
    weights = {cells: BASE**loss for cells, loss in doubled_losses(counts, ranks, end).items()}
    whole = sum(weights.values())
    return {cells: weight / whole for cells, weight in weights.items()}


def neighbours(counts: tuple[int, ...], *, replaced: bool) -> Iterator[tuple[int, ...]]:
    """All tables that differ by one record, one way."""
    for cell in range(len(counts)):
        more = tuple(count + (i == cell) for i, count in enumerate(counts))
        if not replaced:
            yield more
            continue
        for other in range(len(counts)):
            if other != cell and counts[other]:
                yield tuple(count - (i == other) for i, count in enumerate(more))


def largest_ratio(*, replaced: bool) -> Fraction:
    """The most that a neighbour changes a probability by, over all small tables and ranks."""
    largest = Fraction(1)
    for counts in product(range(3), repeat=3):
        for ranks in combinations(range(1, 5), 2):
            mine = probabilities(counts, ranks, 4)
            for near in neighbours(counts, replaced=replaced):
                theirs = probabilities(near, ranks, 4)
                ratios = [mine[cells] / theirs[cells] for cells in mine]
                largest = max(largest, *ratios, *(1 / ratio for ratio in ratios))
    return largest


def test_the_promise_holds_in_rationals_for_both_relations() -> None:
    # The range of a choice: an exponent moves by 2h for a count, and so does the whole.
    assert largest_ratio(replaced=False) <= BASE**-4
    moved = largest_ratio(replaced=True)
    assert moved <= BASE**-8
    # Planted: a choice for records that come and go does not hide one that is replaced.
    assert moved > BASE**-4


def test_every_loss_moves_by_one_for_a_record_that_comes_and_two_for_one_replaced() -> None:
    for counts in product(range(3), repeat=3):
        for ranks in ((1,), (2, 3), (1, 2, 4)):
            mine = doubled_losses(counts, ranks, 5)
            for replaced, most in ((False, 2), (True, 4)):
                for near in neighbours(counts, replaced=replaced):
                    theirs = doubled_losses(near, ranks, 5)
                    assert max(abs(mine[cells] - theirs[cells]) for cells in mine) <= most


@pytest.mark.parametrize("law", [PURE, NORMAL])
@pytest.mark.parametrize("moves", [1, 2])
def test_the_rate_is_the_largest_that_the_halvings_pay_for(law, moves) -> None:
    part = JointChoice(1 << 20, law, Fraction(1, 9), 2, Fraction(1, 4), moves == 2, 8, 3, moves)

    @dataclass(frozen=True)
    class Greedy(JointChoice):
        @cached_property
        def half_rate(self) -> int:
            return part.half_rate * 1000 // 999

    with pytest.raises(AssertionError, match="more sensitive"):
        Greedy(1 << 20, law, Fraction(1, 9), 2, Fraction(1, 4), moves == 2, 8, 3, moves)
    assert JointChoice.from_dict(part.to_dict()) == part


recipe = partial(quartile_recipe, JointChoice)


@pytest.mark.parametrize(("law", "promise"), [(PURE, PureDP(1.0)), (NORMAL, ZCDP(0.5))])
@pytest.mark.parametrize("groups", [None, 4])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_choice_questions_and_count_keep_the_promise_together(law, promise, groups, neighbors):
    public = neighbors is Neighbors.SUBSTITUTE
    made = recipe(law, promise, neighbors, 1000 if public else None, recorded=True, groups=groups)
    power = int(law.sensitivity_norm)
    spent = 0
    for parts, count in zip(zip(*made.searches, strict=True), made.counts, strict=True):
        rate = min(part.half_rate for part in parts)
        # What one record moves, counted by hand: pure privacy in ε, normal in μ² = 2ρ.
        chosen = (2 if power == 1 else 1) * 2 * rate
        changed = sum(part.further * part.multiplier**power for part in parts)
        gone = sum(
            part.further * math.ceil(part.multiplier * part.presence_weight) ** power
            for part in parts
        )
        within = (2 * chosen) ** power + changed if public else 0
        across = chosen**power + gone + count.multiplier**power
        across *= 2 if public and groups else 1
        spent += max(within, across)
        accounted = spent_beside(parts, count, groups=groups is not None)
        assert max(within, across) ** (2 // power) <= accounted * law.unit**2
    allowed = Fraction(1) if power == 2 else promise.epsilon
    assert spent <= allowed * law.unit**power
    assert spent >= 0.8 * allowed * law.unit**power


def test_parts_of_other_choices_are_refused() -> None:
    made = recipe(PURE, PureDP(1.0))

    def with_parts(**changes) -> QuantileRecipe:
        rows = [[replace(part, **changes) for part in row] for row in made.searches]
        return replace(made, searches=tuple(map(tuple, rows)))

    with_parts()
    for changes in ({"together": 2}, {"moves": 1}):
        with pytest.raises(AssertionError, match="other quantiles or other neighbours"):
            with_parts(**changes)
    secret = recipe(PURE, PureDP(1.0), Neighbors.ADD_REMOVE, None)
    with pytest.raises(AssertionError, match="another number of records"):
        replace(secret, counts=secret.counts[::-1])
    with pytest.raises(AssertionError, match="Gaussian"):
        recipe(NORMAL, GDP(1.0))
    with pytest.raises(InvalidInput, match="too many ranks"):
        recipe(PURE, PureDP(0.0001), n=10**9)


def test_rank_errors_hold_on_the_worst_data_by_enumeration() -> None:
    # Records at both ends of the grid, and equal ones in the cells that are sought.
    cells = 6
    part = JointChoice(cells, PURE, Fraction(4), together=2)
    confidence = 0.8
    error = part.rank_error(confidence)
    assert 0 < error < 10
    for counts in (
        (9, 1, 0, 0, 1, 9),
        (5, 0, 10, 0, 0, 5),
        (0, 20, 0, 0, 0, 0),
        (10, 0, 0, 0, 0, 10),
    ):
        ranks, records = (5, 15), np.repeat(np.arange(cells), counts)
        losses = doubled_losses(counts, ranks, 20)
        weights = {
            each: math.exp(-part.half_rate / part.law.unit * loss) for each, loss in losses.items()
        }
        bad = sum(
            weight
            for each, weight in weights.items()
            if any(
                not records[max(rank - error, 1) - 1] <= cell <= records[min(rank + error, 20) - 1]
                for rank, cell in zip(ranks, each, strict=True)
                if rank - error >= 1 and rank + error <= 20
            )
        )
        assert bad <= (1 - confidence) * sum(weights.values())


def test_a_column_has_one_rank_error_which_grows_with_the_confidence() -> None:
    for made in (recipe(PURE, PureDP(1.0)), recipe(PURE, PureDP(1.0), Neighbors.ADD_REMOVE, None)):
        errors = [rank_errors(made.searches, level, simultaneous=False) for level in (0.5, 0.95)]
        assert (errors[0] < errors[1]).all()
        assert (errors[1] == errors[1][0]).all()
        together = rank_errors(made.searches, 0.95, simultaneous=True)
        assert (together >= errors[1]).all()


def test_it_errs_less_than_choices_that_share_the_promise() -> None:
    for many, times in ((2, 1.5), (3, 1.75), (9, 3)):
        share = Fraction(1, many**2)
        joint = JointChoice(1 << 20, PURE, share, together=many)
        apart = RankChoice(1 << 20, PURE, share)
        assert joint.typical_error * times < apart.typical_error


def test_quantiles_of_one_rank_have_one_cell_and_any_order_is_kept() -> None:
    part = JointChoice(100, PURE, Fraction(1), together=3)
    up_to = np.cumsum(np.ones(100, np.int64))
    fractions = [Fraction(9, 10), Fraction(1, 10), Fraction(1, 2)]
    high, low, middle = part.chosen(up_to, fractions, 100)
    assert low <= middle <= high
    # Of two records, or of fewer than none, as far as is known.
    assert len(set(part.chosen(up_to, fractions[1:], 2))) == 1
    assert len(set(part.chosen(up_to, fractions, -3))) == 1
