"""What a person moves in noisy tables of weighted records, seen in the integers that get noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from muhat.data.moments import Family
from muhat.mechanisms.queries.moment_block import COUNT, SQUARES, SUM, MomentBlock
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.planning.moments import free_count
from muhat.privacy import Neighbors

CELLS = (3, 2)
SETS = [
    {(0,): 1.0},
    {(0, 1): 2.0},
    {(): 1.0},
    {(): 1.0, (0,): 3.0},
    {(0,): 1.0, (1,): 1.0, (0, 1): 2.0},
]
REACH = 1 << 10
UNIT = 1 << 54
STRENGTH = Fraction(1, 3)


def made(
    groupings: dict[tuple[int, ...], float],
    kind: NoiseKind,
    neighbors: Neighbors,
    *,
    term: tuple[str, ...] = ("age",),
    rows: int = 1,
    squares: bool = True,
    strength: Strength | None = None,
    counted: bool = False,
) -> MomentBlock:
    squares = squares and bool(term)
    protection = Protection(strength or Strength(kind, STRENGTH), neighbors, rows)
    reach = REACH if term else 1
    family = Family((), term)
    counts = [1.0] * len(groupings) if counted else None
    own = {"squares": squares, "counts": counts}
    return MomentBlock.of(family, CELLS, groupings, reach, protection, kind, **own)


def encoded(block: MomentBlock, records: list[tuple[int, int, int]]) -> np.ndarray:
    """The integers before the noise, of records (cell of axis 0, cell of axis 1, weight)."""
    used = sorted({axis for axes in block.groupings for axis in axes})
    margins: dict[Any, Any] = {}
    for axes in block.groupings:
        table = np.zeros([CELLS[axis] for axis in axes], object)
        for *cell, weight in records:
            table[tuple(cell[axis] for axis in axes)] += weight
        margins[tuple(used.index(axis) for axis in axes)] = np.array(table, object)
    query: Any = block.recipe.query
    if len(block.groupings) == 1:
        (table,) = margins.values()
        return np.array(query.encode(table.reshape(-1)), object)
    return np.array(query.encode({axes: margins[axes] for axes in query.sets}), object)


def moved(block: MomentBlock, before: list[Any], after: list[Any]) -> int:
    """How far all strands of the block move: in ℓ₁, or squared in ℓ₂."""
    pure = block.recipe.law.kind is NoiseKind.PURE
    total = 0
    for ones, sums, squares in (strand.made for strand in block.strands):
        first, second = (
            encoded(block, [(x, y, ones + sums * k + squares * lack) for x, y, k, lack in records])
            for records in (before, after)
        )
        difference = first - second
        total += int(np.abs(difference).sum() if pure else (difference**2).sum())
    return total


def random_record(rng: np.random.Generator, counts: bool) -> tuple[int, int, int, int]:
    k = int(rng.choice([-REACH, REACH, 0, int(rng.integers(-REACH, REACH + 1))]))
    lack = (REACH * REACH - k * k) // REACH
    weight = 1 if counts else k
    return int(rng.integers(CELLS[0])), int(rng.integers(CELLS[1])), weight, lack


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("kind", list(NoiseKind))
@pytest.mark.parametrize("term", [(), ("age",)])
@pytest.mark.parametrize("groupings", SETS)
def test_neighbours_move_the_integers_no_farther_than_the_noise_is_for(
    groupings: dict[tuple[int, ...], float],
    kind: NoiseKind,
    neighbors: Neighbors,
    term: tuple[str, ...],
) -> None:
    if kind is NoiseKind.PURE and len(groupings) > 1:
        groupings = dict(list(groupings.items())[-1:])
    rng, rows = np.random.default_rng(7), 2
    block = made(groupings, kind, neighbors, term=term, rows=rows)
    allowed = STRENGTH * UNIT**2
    most = 0
    for _ in range(60):
        before = [random_record(rng, not term) for _ in range(int(rng.integers(rows + 1)))]
        after = []
        if neighbors is Neighbors.SUBSTITUTE:
            after = [random_record(rng, not term) for _ in range(int(rng.integers(rows + 1)))]
        distance = moved(block, before, after)
        most = max(most, distance if kind is NoiseKind.NORMAL else distance**2)
        assert most <= allowed
    worst = [(0, 0, 1 if not term else REACH, 0)] * rows
    other = [(0, 0, -REACH, 0)] * rows if term else [(1, 1, 1, 0)] * rows
    distance = moved(block, worst, other if neighbors is Neighbors.SUBSTITUTE else [])
    nearly = Fraction(1) if len(block.groupings) == 1 else Fraction(9, 10)
    if not (neighbors is Neighbors.SUBSTITUTE and groupings.keys() == {()} and not term):
        squared = distance if kind is NoiseKind.NORMAL else distance**2
        assert squared >= allowed * nearly * Fraction(999, 1000)


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("groupings", [{(0,): 1.0}, {(): 1.0}, {(0, 1): 2.0}])
def test_a_count_that_rides_with_sums_in_pure_noise_moves_nothing_farther(
    groupings: dict[tuple[int, ...], float], squares: bool, neighbors: Neighbors
) -> None:
    rng, rows, kind = np.random.default_rng(13), 2, NoiseKind.PURE
    block = made(groupings, kind, neighbors, rows=rows, squares=squares, counted=True)
    allowed, most = STRENGTH * UNIT**2, 0
    replaced = neighbors is Neighbors.SUBSTITUTE
    for _ in range(100):
        before, after = (
            [random_record(rng, False) for _ in range(int(rng.integers(rows + 1)))] * times
            for times in (1, int(replaced))
        )
        most = max(most, moved(block, before, after) ** 2)
    worst = [(0, 0, REACH, 0)] * rows, [(2, 1, -REACH, 0)] * rows * replaced
    most = max(most, moved(block, *worst) ** 2)
    assert allowed * Fraction(999, 1000) <= most <= allowed


@pytest.mark.parametrize("squares", [True, False])
def test_the_count_and_the_sums_are_read_off_the_ends(squares: bool) -> None:
    """The exact ones where noise is small; and variances as stated: 6 deviations of 600 draws."""
    groupings, kind, relation = {(0,): 1.0}, NoiseKind.PURE, Neighbors.ADD_REMOVE
    own = {"squares": squares, "counted": True}
    exact = {COUNT: [5, 2, 0], SUM: [3 * REACH, -REACH, 0], SQUARES: [REACH // 2, REACH, 0]}
    expected = {COUNT: [5, 2, 0], SUM: [3, -1, 0], SQUARES: [0.5, 1, 0]}
    tables = {what: {(0,): np.array(each)} for what, each in exact.items()}
    for strength, draws in ((Fraction(10**20), 1), (Fraction(1), 600)):
        block = made(groupings, kind, relation, strength=Strength(kind, strength), **own)
        found = [block.noisy(tables) for _ in range(draws)]
        for what in block.held.values():
            read = [strand.read[what] for strand in block.strands]
            values = np.array(
                [
                    sum(times * each[0,] for times, each in zip(read, one, strict=True))
                    for one in found
                ]
            )
            off, deviation = values - expected[what], block.deviation((0,), what)
            if draws == 1:
                assert np.abs(off).max() < 1e-7
            else:
                ratio = (off**2).mean() / deviation**2
                assert abs(ratio - 1) < 6 * math.sqrt(5 / (3 * draws))


@pytest.mark.parametrize("groupings", [{(0,): 1.0}, {(): 1.0}])
def test_a_count_beside_sums_of_the_same_groups_is_free_where_records_are_replaced(
    groupings: dict[tuple[int, ...], float],
) -> None:
    """Everything together moves no farther than the sums' strengths are for."""
    rows, groups = 3, math.prod(CELLS[axis] for axis in next(iter(groupings)))
    kind, relation = NoiseKind.NORMAL, Neighbors.SUBSTITUTE
    strengths = [Strength(kind, Fraction(1, 3)), Strength(kind, Fraction(1, 5))]
    sums = [made(groupings, kind, relation, rows=rows, strength=each) for each in strengths]
    beside = free_count([each.protection for each in sums], groups)
    count = MomentBlock.of(Family((), ()), CELLS, groupings, 1, beside, kind)
    allowed = sum(each.squared for each in strengths) * UNIT**2
    rng, most = np.random.default_rng(11), Fraction(0)
    ends = [(-REACH, 0), (REACH, 0), (0, REACH)]
    for _ in range(400):
        sides = []
        for _ in range(2):
            people = [
                (int(rng.integers(CELLS[0])), 0, [ends[int(rng.integers(3))] for _ in sums])
                for _ in range(int(rng.integers(rows + 1)))
            ]
            sides.append(people)
        total = 0
        for place, block in enumerate(sums):
            before, after = (
                [(*record[:2], *record[2][place]) for record in side] for side in sides
            )
            total += moved(block, before, after)
        before, after = ([(*record[:2], 1, 0) for record in side] for side in sides)
        total += moved(count, before, after)
        most = max(most, Fraction(total) / allowed)
        assert most <= 1
    assert most > Fraction(1, 2)


def test_noise_has_the_scale_that_is_stated() -> None:
    """Chi-squared of 4,000 draws, 6 deviations: false alarm below 1e-8."""
    groupings = {(0,): 1.0, (0, 1): 2.0}
    block = made(groupings, NoiseKind.NORMAL, Neighbors.ADD_REMOVE, squares=False)
    tables = {(0,): np.zeros(3, np.int64), (0, 1): np.zeros((3, 2), np.int64)}
    drawn: dict[tuple[int, ...], list[float]] = {axes: [] for axes in tables}
    for _ in range(1000):
        (sums,) = block.noisy({SUM: tables})
        for axes, values in sums.items():
            drawn[axes].append(float(values[0]))
    for axes, values in drawn.items():
        ratio = np.mean(np.square(values)) / block.scales[axes] ** 2
        assert abs(ratio - 1) < 6 * math.sqrt(2 / 1000)


def test_exact_sums_come_back_when_the_noise_is_small() -> None:
    strength = Strength(NoiseKind.NORMAL, Fraction(10**12))
    own: Any = {"strength": strength, "squares": False}
    block = made({(): 1.0, (1,): 1.0}, NoiseKind.NORMAL, Neighbors.ADD_REMOVE, **own)
    tables = {(): np.array(5 * REACH), (1,): np.array([2 * REACH, 3 * REACH])}
    (found,) = block.noisy({SUM: tables})
    assert found[()] == pytest.approx([5], abs=1e-4)
    assert found[1,] == pytest.approx([2, 3], abs=1e-4)
