"""The law of choices one inside the other by its definition: all divisions of all tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from muhat.mechanisms.quantiles.nested_turns import turns_of

Weigh = Callable[[int, Fraction], Any]
"""The weight of a choice's error, by its number and how many ranks it is off."""


def nested_law(
    counts: Sequence[int], fractions: tuple[Fraction, ...], weigh: Weigh, *, lots: bool = True
) -> dict[tuple[int, ...], Any]:
    """The probabilities of all cells in order; without `lots` the ranks of a cell add up."""
    turns = {(turn.below, turn.above): (at, turn) for at, turn in enumerate(turns_of(fractions))}

    def law(first: int, mine: tuple[int, ...], ends: tuple[int, int]) -> dict:
        if ends not in turns:
            return {(): 1}
        at, turn = turns[ends]
        target, found, below = turn.target(sum(mine)), {}, 0
        for cell, count in enumerate(mine):
            for left in range(count + 1):
                weight = weigh(at, abs(below + left - target)) / (count + 1 if lots else 1)
                lower = law(first, (*mine[:cell], left), (ends[0], turn.place))
                rest = (count - left, *mine[cell + 1 :])
                for low, one in lower.items():
                    for high, other in law(first + cell, rest, (turn.place, ends[1])).items():
                        cells = (*low, first + cell, *high)
                        found[cells] = found.get(cells, 0) + weight * one * other
            below += count
        whole = sum(found.values())
        return {cells: weight / whole for cells, weight in found.items()}

    return law(0, tuple(counts), (0, len(turns) + 1))
