"""Choices one inside the other: their promise by enumeration, their rank error, what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product

import numpy as np
import pytest
from nested_law import nested_law
from quartile_recipes import quartile_recipe

from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.nested_choice import NestedChoice
from muhat.mechanisms.quantiles.nested_turns import turns_of
from muhat.mechanisms.quantiles.quantile import QuantileRecipe, rank_errors
from muhat.mechanisms.quantiles.recorded_count import spent_beside
from muhat.noise.laws import INDEPENDENT
from muhat.privacy import GDP, ZCDP, Neighbors, PureDP

PURE, NORMAL = INDEPENDENT["laplace"], INDEPENDENT["normal"]
QUARTILES = tuple(Fraction(part, 4) for part in (1, 2, 3))
SKEWED = (Fraction(1, 3), Fraction(1, 2))
"""The shares of their choices are 1/3 and 1/4."""
HALF = Fraction(1, 2)
SMALL = [*product(range(3), repeat=3)]
TABLES = [*SMALL, (2, 6, 2), (1, 1, 1, 1, 1, 1), (3, 0, 4, 0, 3)]


def neighbours(counts: Sequence[int], *, replaced: bool) -> Iterator[tuple[int, ...]]:
    """All tables that differ by one record, one way."""
    for cell in range(len(counts)):
        more = tuple(count + (i == cell) for i, count in enumerate(counts))
        if not replaced:
            yield more
            continue
        for other in range(len(counts)):
            if other != cell and counts[other]:
                yield tuple(count - (i == other) for i, count in enumerate(more))


def largest_ratio(
    fractions: tuple[Fraction, ...], base: Fraction, *, replaced: bool, lots: bool = True
) -> float:
    """By how much a neighbour changes the probability of a list of cells at most, in exponents.

    Every choice has the weight base^(12·error), so that exponents are whole.
    """
    found: dict[tuple[int, ...], dict] = {}

    def law(counts: tuple[int, ...]) -> dict:
        if counts not in found:
            found[counts] = nested_law(
                counts, fractions, lambda _, off: base ** int(12 * off), lots=lots
            )
        return found[counts]

    largest = Fraction(1)
    # Rationals near 1 are long: the small tables are enough there.
    for counts in TABLES if base <= HALF else SMALL:
        mine = law(counts)
        for near in neighbours(counts, replaced=replaced):
            ratios = [mine[cells] / theirs for cells, theirs in law(near).items()]
            largest = max(largest, *ratios, *(1 / ratio for ratio in ratios))
    return -math.log(largest) / math.log(base)


@pytest.mark.parametrize("fractions", [QUARTILES, SKEWED])
@pytest.mark.parametrize("base", [Fraction(99, 100), HALF])
def test_the_promise_holds_in_rationals_for_both_relations(fractions, base) -> None:
    weights: dict[int, Fraction] = {}
    for turn in turns_of(fractions):
        weights[turn.level] = max(weights.get(turn.level, Fraction(0)), turn.weight)
    # The range of a choice is 2w for a record that comes or goes; two choices of a level have it
    # for one that is replaced, or one has 2, and the first level has one choice.
    gone, moved = (largest_ratio(fractions, base, replaced=replaced) for replaced in (False, True))
    allowed = 12 * 2 * sum(weights.values())
    assert gone <= allowed
    assert moved <= 12 * (2 + sum(max(2, 4 * weight) for level, weight in weights.items() if level))
    if base == HALF:
        # Quartiles give hardly less away; and choices for records that come and go do not hide
        # one that is replaced.
        assert fractions == SKEWED or (gone > 0.9 * allowed and moved > allowed)
    else:
        # Planted: ranks of a cell that do not share its weight.
        assert largest_ratio(fractions, base, replaced=False, lots=False) > 2 * allowed


def test_renyi_divergences_stay_below_those_of_zero_concentrated_privacy() -> None:
    most = {False: 0.0, True: 0.0}
    for rate in (0.3, 1.0, 3.0):
        laws = {}
        for counts, replaced in product(TABLES, (False, True)):
            # Halves: W = h/2 at both levels, or h for a record that is replaced; ρ = ΣW²/2.
            rho = rate**2 if replaced else rate**2 / 4
            for pair in ((counts, near) for near in neighbours(counts, replaced=replaced)):
                for each in pair:
                    if each not in laws:
                        law = nested_law(
                            each, QUARTILES, lambda _, off, rate=rate: math.exp(-rate * float(off))
                        )
                        laws[each] = np.array([law[cells] for cells in sorted(law)])
                for (mine, theirs), order in product((pair, pair[::-1]), (1.1, 2.0, 8.0)):
                    ratios = (laws[mine] / laws[theirs]) ** (order - 1)
                    found = math.log(laws[mine] @ ratios) / (order - 1)
                    most[replaced] = max(most[replaced], found / (order * rho))
    assert max(most.values()) <= 1
    # Planted: choices for records that come and go do not hide one that is replaced.
    assert 4 * most[True] > 1


def part(law, *, moves=2, counted=False, n=None, contributions=1, fractions=QUARTILES, **options):
    """A part of a column."""
    column = NestedChoice.of_column(fractions, law.kind, moves=moves, counted=counted, n=n)
    own = Fraction(1, 4) if counted or moves == 1 else None
    return NestedChoice(
        **{
            "cells": 1 << 20,
            "law": law,
            "strength_squared": Fraction(1, 9),
            "contributions": contributions,
            "quantile": own,
            "replaced": counted and moves == 2,
            "further": 8,
            **column,
            **options,
        }
    )


@pytest.mark.parametrize("law", [PURE, NORMAL])
@pytest.mark.parametrize("moves", [1, 2])
@pytest.mark.parametrize("counted", [False, True])
def test_the_rates_are_the_largest_that_the_halvings_pay_for(law, moves, counted) -> None:
    for fractions in (QUARTILES, SKEWED, (Fraction(0), Fraction(7, 10), Fraction(1))):
        made = part(law, moves=moves, counted=counted, contributions=2, fractions=fractions)

        @dataclass(frozen=True)
        class Greedy(NestedChoice):
            @cached_property
            def rates(self, made: NestedChoice = made) -> list[int]:
                return [rate * 1005 // 1000 for rate in made.rates]

        given = {field.name: getattr(made, field.name) for field in fields(made)}
        with pytest.raises(AssertionError, match="more sensitive"):
            Greedy(**given)
        assert NestedChoice.from_dict(made.to_dict()) == made
        power = int(law.sensitivity_norm)
        # By hand: what one record spends at every level, in whole numbers.
        spent = 0
        for level in range(len(made.shares)):
            mine = [
                (rate, math.ceil(rate * turn.weight))
                for turn, rate in zip(made.turns, made.rates, strict=True)
                if turn.level == level
            ]
            gone = max((3 - power) * present for _, present in mine) ** power
            within = max((3 - power) * rate for rate, _ in mine) ** power
            first = level == 0 and not counted
            spent += gone if moves == 1 else within if first else max(within, 2 * gone)
        assert (2**power * spent) ** (2 // power) == made.spent ** (2 // power)


recipe = partial(quartile_recipe, NestedChoice)


@pytest.mark.parametrize(("law", "promise"), [(PURE, PureDP(1.0)), (NORMAL, ZCDP(0.5))])
@pytest.mark.parametrize("groups", [None, 4])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_choices_questions_and_count_keep_the_promise_together(law, promise, groups, neighbors):
    public = neighbors is Neighbors.SUBSTITUTE
    made = recipe(law, promise, neighbors, 1000 if public else None, recorded=True, groups=groups)
    power = int(law.sensitivity_norm)
    spent = 0
    for parts, count in zip(zip(*made.searches, strict=True), made.counts, strict=True):
        least = min(parts, key=lambda one: one.halving_moved)
        # Halves are halved: a record that comes or goes moves each of two levels by half a rate.
        rates = [least.rates[0], max(least.rates[1:])]
        times = 2 if power == 1 else 1
        changed = sum((times * rate) ** power for rate in rates)
        chosen = sum((times * -(-rate // 2)) ** power for rate in rates)
        changed += sum(one.further * one.multiplier**power for one in parts)
        gone = sum(
            one.further * math.ceil(one.multiplier * one.presence_weight) ** power for one in parts
        )
        within = changed if public else 0
        across = chosen + gone + count.multiplier**power
        across *= 2 if public and groups else 1
        spent += max(within, across)
        accounted = spent_beside(parts, count, groups=groups is not None)
        assert max(within, across) ** (2 // power) <= accounted * law.unit**2
    allowed = Fraction(1) if power == 2 else promise.epsilon
    assert spent <= allowed * law.unit**power
    assert spent >= 0.8 * allowed * law.unit**power


def test_parts_of_other_choices_are_refused() -> None:
    made = recipe(NORMAL, ZCDP(0.5))

    def with_parts(**changes) -> QuantileRecipe:
        rows = [[replace(one, **changes) for one in row] for row in made.searches]
        return replace(made, searches=tuple(map(tuple, rows)))

    with_parts()
    other = (Fraction(1, 5), Fraction(1, 2), Fraction(3, 4))
    for changes in ({"together": 2}, {"moves": 1}, {"fractions": other}, {"records": 999}):
        with pytest.raises(AssertionError, match="other quantiles or other neighbours"):
            with_parts(**changes)
    for changes in (
        {"shares": (Fraction(1, 2), Fraction(51, 100))},
        {"shares": (Fraction(1),)},
        {"fractions": other[::-1]},
        {"fractions": ()},
    ):
        with pytest.raises(AssertionError, match=r"shares|order"):
            with_parts(**changes)
    with pytest.raises(AssertionError, match="Gaussian"):
        recipe(NORMAL, GDP(1.0))
    with pytest.raises(InvalidInput, match="too many ranks"):
        recipe(PURE, PureDP(0.0001), n=10**9)


def test_rank_errors_hold_on_the_worst_data_by_enumeration() -> None:
    # Records at both ends of the grid, and equal ones in the cells that are sought.
    cells, confidence = 6, 0.8
    for moves, fractions in ((2, SKEWED), (1, (Fraction(1, 4), Fraction(3, 4)))):
        made = part(
            PURE,
            moves=moves,
            n=20,
            cells=cells,
            strength_squared=Fraction(20),
            further=0,
            fractions=fractions,
        )
        error = made.rank_error(confidence)
        assert 0 < error < 10
        assert error <= replace(made, records=10**9).rank_error(confidence)
        per_rank = [rate / made.law.unit for rate in made.rates]

        def weigh(at: int, off: Fraction, per_rank: list[float] = per_rank) -> float:
            return math.exp(-per_rank[at] * float(off))

        for counts in (
            (9, 1, 0, 0, 1, 9),
            (5, 0, 10, 0, 0, 5),
            (0, 20, 0, 0, 0, 0),
            (10, 0, 0, 0, 0, 10),
        ):
            records = np.repeat(np.arange(cells), counts)
            ranks = [math.ceil(20 * fraction) for fraction in fractions]
            bad = sum(
                chance
                for each, chance in nested_law(counts, fractions, weigh).items()
                if any(
                    (rank - error >= 1 and cell < records[rank - error - 1])
                    or (rank + error <= 20 and cell > records[rank + error - 1])
                    for rank, cell in zip(ranks, each, strict=True)
                )
            )
            assert bad <= 1 - confidence


def test_a_column_has_one_rank_error_which_grows_with_the_confidence() -> None:
    for made in (recipe(PURE, PureDP(1.0)), recipe(PURE, PureDP(1.0), Neighbors.ADD_REMOVE, None)):
        errors = [rank_errors(made.searches, level, simultaneous=False) for level in (0.5, 0.95)]
        assert (errors[0] < errors[1]).all()
        assert (errors[1] == errors[1][0]).all()


def test_repeated_quantiles_have_one_cell_any_order_is_kept_and_one_cell_is_enough() -> None:
    fractions = [Fraction(9, 10), Fraction(1, 10), Fraction(1, 2), Fraction(1, 10)]
    made = part(PURE, fractions=fractions, cells=100, strength_squared=Fraction(9))
    up_to = np.cumsum(np.ones(100, np.int64))
    high, low, middle, again = made.chosen(up_to, fractions, None)
    assert low == again <= middle <= high
    assert part(PURE, cells=1).chosen(np.array([7]), QUARTILES, 7) == [0, 0, 0]
    with pytest.raises(InvalidInput, match="drowns"):
        part(PURE, strength_squared=Fraction(1, 1 << 120))


def test_ranks_err_as_much_as_is_said_where_records_lie_evenly() -> None:
    """400 draws: five and a half standard errors of a two-sided exponential law are .31 of it."""
    cells = 1 << 10
    made = part(PURE, moves=1, cells=cells, further=0, strength_squared=Fraction(1, 4))
    up_to = np.cumsum(np.ones(cells, np.int64))
    drawn = np.array([made.chosen(up_to, QUARTILES, None) for _ in range(400)])
    targets = np.array([float(one) for one in QUARTILES]) * cells
    errors = np.sqrt(np.mean(np.square(drawn + 0.5 - targets), axis=0))
    # At twice the rate it would be half of that.
    assert errors.max() == pytest.approx(made.typical_error, rel=0.33)
