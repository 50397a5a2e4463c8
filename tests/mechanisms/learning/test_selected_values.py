"""Values that enough people have: the rules keep their promise exactly, and are not far from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.mechanisms.learning.selection import (
    ConcentratedRule,
    OptimalRule,
    ThresholdRule,
    selection_rule,
)
from muhat.privacy import ApproxDP, ApproxZCDP

PROMISES = [("1", "1e-6"), ("0.1", "1e-7"), ("0.01", "0.001"), ("3", "0.3"), ("0.7", "1e-30")]


def exponential(epsilon: Fraction) -> Fraction:
    """e^ε to 90 digits, by another library than the one that is tested."""
    with localcontext(prec=100):
        return Fraction((Decimal(epsilon.numerator) / epsilon.denominator).exp())


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
@pytest.mark.parametrize("values", [1, 2, 5])
def test_probabilities_keep_every_constraint_and_waste_nothing(
    epsilon: str, delta: str, values: int
) -> None:
    rule = OptimalRule(Fraction(epsilon), Fraction(delta), values)
    factor = exponential(rule.epsilon / values) * (1 + Fraction(1, 10**80))
    share = rule.delta / values
    room = Fraction(1, 10**36)
    before = rule.probability(0)
    assert before == 0
    for people in range(1, rule.certain + 1):
        now = rule.probability(people)
        assert before <= now <= 1
        rising = factor * before + share - now
        closing = factor * (1 - now) + share - (1 - before)
        assert rising >= 0
        assert closing >= 0
        assert now == 1 or min(rising, closing) < room * factor
        before = now
    assert rule.probability(rule.certain) == 1 > rule.probability(rule.certain - 1)
    assert rule.probability(rule.certain + 7) == 1
    assert rule.probability(rule.half) >= Fraction(1, 2) > rule.probability(rule.half - 1)


Probability = Callable[[int], float]
People = tuple[frozenset[str], ...]


def tables(most: int, values: str) -> Iterator[People]:
    """Every table of up to two people, each with at most so many values."""
    sets = [
        frozenset(some) for size in range(most + 1) for some in itertools.combinations(values, size)
    ]
    for people in range(3):
        yield from itertools.product(sets, repeat=people)


def outcomes(people: People, values: str, kept: Probability) -> np.ndarray:
    """How likely every set of values is, among all there may be."""
    chances = [kept(sum(value in person for person in people)) for value in values]
    found = np.ones(1)
    for chance in chances:
        found = np.outer(found, [1 - chance, chance]).ravel()
    return found


def worst(most: int, kept: Probability, epsilon: float, *, replaced: bool) -> float:
    """The least δ for all neighbours, in all tables of three values or four, by enumeration."""
    values = "abcd" if most > 1 else "abc"
    sets = [
        frozenset(some) for size in range(most + 1) for some in itertools.combinations(values, size)
    ]
    found = 0.0
    for rest in tables(most, values):
        with_each = [outcomes((*rest, person), values, kept) for person in sets]
        pairs = itertools.product(with_each, repeat=2)
        if not replaced:
            without = outcomes(rest, values, kept)
            pairs = (pair for each in with_each for pair in ((each, without), (without, each)))
        for first, second in pairs:
            found = max(found, float(np.maximum(first - math.exp(epsilon) * second, 0).sum()))
    return found


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("most", [1, 2])
def test_all_neighbours_of_small_tables_by_enumeration(most: int, replaced: bool) -> None:
    epsilon, delta = 1.0, 0.05
    rule = OptimalRule(Fraction(1), Fraction("0.05"), most * (1 + replaced))
    found = worst(most, lambda n: float(rule.probability(n)), epsilon, replaced=replaced)
    assert delta / 4 < found <= delta * (1 + 1e-12)
    if rule.values == 1:
        assert found == pytest.approx(delta)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_rule_for_half_as_many_values_is_caught(replaced: bool) -> None:
    """The enumeration sees what would be wrong: a promise split among too few values."""
    most = 1 if replaced else 2
    wrong = OptimalRule(Fraction(1), Fraction("0.05"), 1)
    found = worst(most, lambda n: float(wrong.probability(n)), 1.0, replaced=replaced)
    assert found > 0.05 * 1.2


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("most", [1, 2])
def test_thresholds_keep_all_neighbours_of_small_tables(most: int, replaced: bool) -> None:
    rule = ThresholdRule(Fraction(1), Fraction("0.05"), most * (1 + replaced))
    deviation = rule.law.unit / rule.multiplier
    level = rule.threshold / rule.multiplier

    def kept(people: int) -> float:
        return 1 - NormalDist(people, deviation).cdf(level) if people else 0.0

    assert 0 < worst(most, kept, 1.0, replaced=replaced) <= 0.05


@pytest.mark.parametrize("values", [1, 4, 300])
@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_a_value_of_one_person_passes_a_threshold_as_seldom_as_was_meant(
    epsilon: str, delta: str, values: int
) -> None:
    rule = ThresholdRule(Fraction(epsilon), Fraction(delta), values)
    allowed = rule.delta / (2 * values)
    assert Fraction(99, 100) * allowed < rule.alone <= allowed
    reach = float((rule.threshold - rule.multiplier) / rule.law.unit)
    tail = math.erfc(reach / math.sqrt(2)) / 2
    assert tail <= float(allowed) * (1 + 1e-9)
    assert tail > float(allowed) / 3


@pytest.mark.parametrize("name", ["threshold", "multiplier"])
def test_a_threshold_that_is_too_low_or_too_little_noise_is_refused(name: str) -> None:
    class Careless(ThresholdRule):
        pass

    right = ThresholdRule(Fraction(1), Fraction(1, 10**6), 3)
    number = getattr(right, name)
    wrong = number * 99 // 100 if name == "threshold" else number * 101 // 100
    setattr(Careless, name, wrong)
    with pytest.raises(AssertionError):
        Careless(Fraction(1), Fraction(1, 10**6), 3)


def test_values_are_kept_as_often_as_the_rule_says() -> None:
    """40,000 values for each of six numbers of people: 5.5 deviations each, < 1e-6 in all."""
    rule = OptimalRule(Fraction(1), Fraction("0.01"), 1)
    size = 40_000
    for people in (1, 2, 3, rule.half, rule.half + 1, rule.certain):
        chance = float(rule.probability(people))
        seen = rule.kept([people] * size).mean()
        assert abs(seen - chance) <= 5.5 * math.sqrt(chance * (1 - chance) / size)
    # A rule that is one person too generous would be seen.
    wrong = float(rule.probability(rule.half + 1))
    assert abs(rule.kept([rule.half] * size).mean() - wrong) > 0.05
    assert not rule.kept([0] * 100).any()


def test_values_pass_a_threshold_as_often_as_noise_does() -> None:
    """5.5 deviations for each of three numbers of people: < 1e-6."""
    rule = ThresholdRule(Fraction(1), Fraction("0.01"), 4)
    size = 40_000
    for people in (1, rule.half - 3, rule.half + 2):
        distance = (people * rule.multiplier - rule.threshold) / rule.law.unit
        chance = NormalDist().cdf(distance)
        seen = rule.kept([people] * size).mean()
        assert abs(seen - chance) <= 5.5 * math.sqrt(chance * (1 - chance) / size) + 1e-9


def test_the_better_rule_is_taken() -> None:
    promise = ApproxDP(epsilon=1.0, delta=1e-6)
    assert isinstance(selection_rule(promise, 1), OptimalRule)
    assert isinstance(selection_rule(promise, 2), OptimalRule)
    assert isinstance(selection_rule(promise, 16), ThresholdRule)
    assert selection_rule(promise, 16).half < OptimalRule(Fraction(1), Fraction(1, 10**6), 16).half


def test_a_promise_that_keeps_nothing_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="millions of people"):
        OptimalRule(Fraction(1, 10**6), Fraction(1, 10**6), 1)


def test_rules_are_plain_data() -> None:
    for rule in (
        OptimalRule(Fraction(1), Fraction(1, 10**6), 2),
        ThresholdRule(Fraction(1), Fraction(1, 10**6), 2),
        ConcentratedRule(Fraction(1, 2), Fraction(1, 10**6), 4, 2),
    ):
        assert type(rule).from_dict(rule.to_dict()) == rule


def concentrated(most: int, rule: ConcentratedRule, *, replaced: bool) -> tuple[float, float]:
    """The largest failure and the largest D_α/α of all neighbours of small tables.

    A failure is that a value is kept which nobody else has; without one, what is kept is a choice
    among the values of others.
    """
    deviation, level = rule.law.unit / rule.multiplier, rule.threshold / rule.multiplier

    def kept(people: int) -> float:
        return 1 - NormalDist(people, deviation).cdf(level) if people else 0.0

    values = "abcd" if most > 1 else "abc"
    sets = [
        frozenset(some) for size in range(most + 1) for some in itertools.combinations(values, size)
    ]
    failure = divergence = 0.0
    for rest in tables(most, values):
        others = "".join(value for value in values if any(value in one for one in rest))
        sides = []
        for person in sets:
            alone = [kept(1) for value in person if value not in others]
            failure = max(failure, 1 - math.prod(1 - chance for chance in alone))
            sides.append(outcomes((*rest, person), others, kept))
        without = outcomes(rest, others, kept)
        pairs = [pair for each in sides for pair in ((each, without), (without, each))]
        for first, second in itertools.product(sides, repeat=2) if replaced else pairs:
            for alpha in (1.01, 2.0, 8.0):
                moment = float((first**alpha * second ** (1 - alpha)).sum())
                divergence = max(divergence, math.log(moment) / (alpha - 1) / alpha)
    return failure, divergence


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("most", [1, 2])
def test_thresholds_for_zcdp_fail_seldom_and_tell_little_otherwise(
    most: int, replaced: bool
) -> None:
    rho, delta = Fraction(1, 2), Fraction("0.05")
    rule = ConcentratedRule(rho, delta, most * (1 + replaced), most)
    failure, divergence = concentrated(most, rule, replaced=replaced)
    assert float(delta) / 3 < failure <= delta
    assert 0 < divergence <= rho
    # Rules for fewer values would be seen.
    failing = ConcentratedRule(rho, 4 * delta, most * (1 + replaced), most)
    assert concentrated(most, failing, replaced=replaced)[0] > delta


@pytest.mark.parametrize("rows", [1, 3, 300])
@pytest.mark.parametrize("replaced", [False, True])
def test_the_rule_of_approximate_zcdp_has_all_of_both_numbers(rows: int, replaced: bool) -> None:
    rule = selection_rule(ApproxZCDP(rho=0.1, delta=1e-6), rows, replaced=replaced)
    assert isinstance(rule, ConcentratedRule)
    assert (rule.values, rule.rows) == (rows * (1 + replaced), rows)
    moved = Fraction(rule.multiplier**2 * rule.values, rule.law.unit**2)
    assert Fraction(1, 5) * (1 - Fraction(1, 10**9)) < moved <= Fraction(1, 5)
    allowed = Fraction(1, 10**6) / rows
    assert Fraction(99, 100) * allowed < rule.alone <= allowed
