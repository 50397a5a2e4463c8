"""Tables over sets of attributes: summing attributes out, splitting into residuals and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.workloads.residual_basis import Axes, closure


def summed(table: NDArray[Any], axes: Axes, onto: Axes) -> NDArray[Any]:
    """The table over `axes`, as the table over its subset `onto`; further axes stay."""
    gone = tuple(place for place, axis in enumerate(axes) if axis not in onto)
    return np.asarray(table.sum(axis=gone)) if gone else table


def centred(table: Floats, order: int) -> Floats:
    """⊗(I − J/n) along the first `order` axes: every mean along them becomes 0."""
    for axis in range(order):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def assembled(axes: Axes, cells: Sequence[int], residuals: Mapping[Axes, Floats]) -> Floats:
    """The table over `axes` from the residuals of its subsets.

    x_S = Σ_{A⊆S} r_A ⊗ (1/n_i along i ∈ S∖A), where r_A = ⊗_{i∈A}(I − J/n_i)·x_A has shape
    (n_i, i ∈ A) and maybe further axes. Subsets that are not given count as 0.
    """
    live = tuple(axis for axis in axes if cells[axis] > 1)
    further = next(iter(residuals.items()))
    tail = further[1].shape[len(further[0]) :]
    table = _assembled((), live, cells, residuals)
    shape = tuple(cells[axis] for axis in axes)
    return np.zeros(shape + tail) if table is None else table.reshape(shape + tail)


def rows_of(cells: Sequence[int], sets: Sequence[Axes]) -> list[int]:
    """How many cells the table over each set has."""
    return [math.prod(cells[axis] for axis in axes) for axes in sets]


class TableFamily:
    """Several tables of one histogram, over their attributes with two categories or more."""

    def __init__(self, cells: Sequence[int], tables: Sequence[Axes]) -> None:
        self.cells = cells
        self.sets = [tuple(axis for axis in axes if cells[axis] > 1) for axes in tables]
        self.shapes = [tuple(cells[axis] for axis in axes) for axes in self.sets]
        self.subsets = {axes: closure(cells, [axes])[::-1] for axes in set(self.sets)}

    def margins(self, axes: Axes, table: Floats) -> dict[Axes, Floats]:
        """The marginals of a table over all its subsets, each summed from the smallest above."""
        found = {axes: table}
        for subset in self.subsets[axes][1:]:
            above = min(
                (tuple(sorted((*subset, axis))) for axis in axes if axis not in subset),
                key=lambda larger: found[larger].size,
            )
            found[subset] = np.asarray(summed(found[above], above, subset))
        return found

    def shares(self, weights: Sequence[float]) -> dict[Axes, float]:
        """Σ_S ω_S/Π_{S∖A} n for every subset A: how surely its residual is known."""
        found: dict[Axes, float] = {}
        for axes, shape, weight in zip(self.sets, self.shapes, weights, strict=True):
            whole = math.prod(shape)
            for subset in self.subsets[axes]:
                share = weight * math.prod(self.cells[axis] for axis in subset) / whole
                found[subset] = found.get(subset, 0.0) + share
        return found

    def agreeing(
        self, tables: Iterable[Floats], weights: Sequence[float], total: float | None
    ) -> list[Floats]:
        """The nearest tables that agree on every marginal they share.

        Table S counts ω_S times. The part of A in it is r_A/Π_{S∖A} n, of squared length
        ‖r_A‖²/Π_{S∖A} n, so r_A is the mean of the tables' residuals with the weights
        ω_S/Π_{S∖A} n. The tables are used one after the other.
        """
        sums: dict[Axes, Floats] = {}
        for axes, weight, table in zip(self.sets, weights, tables, strict=True):
            for subset, margin in self.margins(axes, table).items():
                part = (weight * margin.size / table.size) * margin
                sums[subset] = sums[subset] + part if subset in sums else part
        shares = self.shares(weights)
        residuals = {
            subset: centred(margin / shares[subset], len(subset)) for subset, margin in sums.items()
        }
        if total is not None:
            residuals[()] = np.array(float(total))
        return [assembled(axes, self.cells, residuals) for axes in self.sets]


def _assembled(
    chosen: Axes, open_axes: Axes, cells: Sequence[int], residuals: Mapping[Axes, Floats]
) -> Floats | None:
    """Σ over the A with chosen ⊆ A ⊆ chosen ∪ open_axes, a table over chosen and open_axes."""
    if not open_axes:
        found = residuals.get(chosen)
        return None if found is None else found.copy()
    first, rest = open_axes[0], open_axes[1:]
    with_first = _assembled((*chosen, first), rest, cells, residuals)
    without = _assembled(chosen, rest, cells, residuals)
    if without is None:
        return with_first
    spread = np.expand_dims(without / cells[first], len(chosen))
    if with_first is None:
        return np.repeat(spread, cells[first], axis=len(chosen))
    with_first += spread
    return with_first
