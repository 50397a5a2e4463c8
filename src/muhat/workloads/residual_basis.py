"""Marginals in the residual basis: which parts they have, and what each costs and earns.

R^N, the space of histograms with attributes of n_1, …, n_d categories, is the orthogonal sum of
one part for every set A of attributes: what the marginal of A says beyond the marginals of its
subsets. P_A = ⊗_{i∈A}(I − J/n_i) ⊗_{i∉A} J/n_i projects onto it. Relabelling categories changes
no marginal workload and acts irreducibly and differently on the parts, so a best strategy has
the Gram matrix Σ_A c_A·⊗_{i∈A}(I − J/n_i) ⊗_{i∉A} J, over the subsets A of the tables asked for:

    squared length of a column          Σ_A c_A·a_A,         a_A = Π_{i∈A}(1 − 1/n_i)
    variance of a cell of the table S   Σ_{A⊆S} b_AS/c_A,    b_AS = a_A·Π_{i∈S∖A} n_i^{−2}

Attributes of one size that may be exchanged without changing the workload have equal c_A, so
only orbits of sets are kept: 4 numbers for the 4,526 parts of all 3-way tables of 10^30 cells.

Proof: docs/proofs/queries.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats, Integers

Axes = tuple[int, ...]

LARGEST_CODE = 1 << 62


@dataclass(frozen=True, eq=False)
class Orbits:
    """The parts of a marginal workload, one representative for all that symmetry makes equal.

    Attribute i has `label[i]`, the number of its class (−1: it has a single category, or no
    table has it); class l has `members[l]` attributes of `sizes[l]` categories. An orbit of sets
    is the sorted labels of its members.

    - `table_orbit` (K,): the orbit of each table.
    - `multiplicity` (T,): how many answers, over all tables, an orbit of tables stands for.
    - `parts` (R of them): the orbits of residual sets; `part_count` and `part_cost` (R,): how
      many sets they have, and a_A.
    - `rows`, `columns`, `values`: the nonzero entries of the matrix (T, R) with which the
      squared weight times the variance of a cell is values·(1/c).
    """

    label: Integers
    members: Integers
    sizes: Integers
    table_orbit: Integers
    multiplicity: Floats
    parts: tuple[Axes, ...]
    part_count: Floats
    part_cost: Floats
    rows: Integers
    columns: Integers
    values: Floats

    def variances(self, inverse: Floats) -> Floats:
        """Squared weight times variance of a cell of each orbit of tables, (T,), from 1/c (R,)."""
        weighted = self.values * inverse[self.columns]
        return totals(self.rows, weighted, len(self.multiplicity))

    def gains(self, duals: Floats) -> Floats:
        """Σ_S duals_S·b_AS summed over the sets A of each part, (R,), from duals (T,)."""
        weighted = self.values * duals[self.rows]
        return totals(self.columns, weighted, len(self.parts))

    def part_of(self, axes: Axes) -> Axes:
        """The orbit of a set of attributes."""
        return tuple(sorted(int(self.label[axis]) for axis in axes))


def orbits_of(cells: Sequence[int], tables: Sequence[Axes], weights: Floats) -> Orbits:
    """The orbits of the tables over `tables`, whose rows have these weights, and of their parts."""
    size = np.array(cells, dtype=np.int64)
    by_order = _by_order(size, tables)
    label = _classes(size, by_order, weights)
    used = label >= 0
    members = np.bincount(label[used]) if used.any() else np.zeros(0, np.int64)
    class_size = np.zeros(len(members), np.int64)
    class_size[label[used]] = size[used]

    table_orbit = np.zeros(len(tables), np.int64)
    first: list[int] = []
    multisets: list[Integers] = []
    for order, (where, axes) in by_order.items():
        labels = np.sort(label[axes], axis=1) if order else np.zeros((len(where), 0), np.int64)
        keyed = np.column_stack([labels, _ranks(weights[where])])
        distinct, index = _unique_rows(keyed)
        table_orbit[where] = len(first) + index
        seen = np.full(len(distinct), len(where))
        np.minimum.at(seen, index, np.arange(len(where)))
        first += where[seen].tolist()
        multisets.append(distinct[:, :-1])
    table_cells = np.array(
        [float(math.prod(cells[axis] for axis in axes)) for axes in tables], np.float64
    )
    multiplicity = totals(table_orbit, table_cells, len(first))
    rows, columns, values, parts = _incidence(multisets, class_size)
    values = values * weights[first][rows] ** 2
    cost = np.array([math.prod(1 - 1 / float(class_size[k]) for k in part) for part in parts])
    count = np.array([_sets_in(part, members) for part in parts], np.float64)
    return Orbits(
        label,
        members,
        class_size,
        table_orbit,
        multiplicity,
        parts,
        count,
        cost,
        rows,
        columns,
        values,
    )


def closure(cells: Sequence[int], tables: Sequence[Axes]) -> tuple[Axes, ...]:
    """All subsets of the tables without attributes of one category: smaller ones first."""
    found: set[Axes] = set()
    for axes in tables:
        live = tuple(axis for axis in axes if cells[axis] > 1)
        if live not in found:
            for order in range(len(live) + 1):
                found.update(itertools.combinations(live, order))
    return tuple(sorted(found, key=lambda axes: (len(axes), axes)))


def _by_order(size: Integers, tables: Sequence[Axes]) -> dict[int, tuple[Integers, Integers]]:
    """The tables by their number of attributes with two categories or more: (where, axes)."""
    groups: dict[int, tuple[list[int], list[Axes]]] = {}
    for index, axes in enumerate(tables):
        live = tuple(axis for axis in axes if size[axis] > 1)
        where, kept = groups.setdefault(len(live), ([], []))
        where.append(index)
        kept.append(live)
    return {
        order: (np.array(where), np.array(kept, np.int64).reshape(len(where), order))
        for order, (where, kept) in sorted(groups.items())
    }


def _classes(
    size: Integers, by_order: dict[int, tuple[Integers, Integers]], weights: Floats
) -> Integers:
    """A label for every attribute, equal if exchanging the two changes nothing; −1 if unused.

    Exchangeability by a transposition is an equivalence: (i k) = (j k)(i j)(j k).
    """
    used = sorted({int(axis) for _, axes in by_order.values() for axis in np.unique(axes)})
    label = np.full(len(size), -1, np.int64)
    complete = all(
        len(where) == math.comb(len(used), order)
        and len(_unique_rows(axes)[0]) == len(where)
        and np.ptp(weights[where]) == 0
        for order, (where, axes) in by_order.items()
    )
    if complete:
        if used:
            label[used] = np.unique(size[used], return_inverse=True)[1]
        return label
    keyed = [
        (order, axes, _ranks(weights[where])) for order, (where, axes) in by_order.items() if order
    ]
    listed = [_sorted_rows(axes, rank) for _, axes, rank in keyed]
    representatives: list[int] = []
    for axis in used:
        for number, other in enumerate(representatives):
            if size[other] == size[axis] and _exchangeable(axis, other, keyed, listed, len(size)):
                label[axis] = number
                break
        else:
            label[axis] = len(representatives)
            representatives.append(axis)
    return label


def _exchangeable(
    first: int,
    second: int,
    keyed: list[tuple[int, Integers, Integers]],
    listed: list[Integers],
    dimensions: int,
) -> bool:
    swap = np.arange(dimensions)
    swap[[first, second]] = second, first
    for (_, axes, rank), before in zip(keyed, listed, strict=True):
        if np.count_nonzero(axes == first) != np.count_nonzero(axes == second):
            return False
        if not np.array_equal(_sorted_rows(np.sort(swap[axes], axis=1), rank), before):
            return False
    return True


def _sorted_rows(axes: Integers, rank: Integers) -> Integers:
    rows = np.column_stack([axes, rank])
    return rows[np.lexsort(rows.T[::-1])]


def _ranks(values: Floats) -> Integers:
    return np.asarray(np.unique(values, return_inverse=True)[1], np.int64)


def _unique_rows(rows: Integers) -> tuple[Integers, Integers]:
    """The distinct rows, sorted, and the index of each row among them."""
    if rows.shape[1] == 0:
        return rows[:1], np.zeros(len(rows), np.int64)
    base = int(rows.max(initial=0)) + 1
    if base ** rows.shape[1] < LARGEST_CODE:
        code = rows @ np.array([base**power for power in range(rows.shape[1])][::-1])
        _, first, index = np.unique(code, return_index=True, return_inverse=True)
        return rows[first], np.asarray(index, np.int64)
    distinct, index = np.unique(rows, axis=0, return_inverse=True)
    return distinct, np.asarray(index, np.int64).ravel()


def _incidence(
    multisets: list[Integers], class_size: Integers
) -> tuple[Integers, Integers, Floats, tuple[Axes, ...]]:
    """Entries (row, column, Σ b_AS over the sets A ⊆ S of a part) and the parts.

    Choosing columns of a sorted row of labels is choosing attributes of a set S, and gives the
    labels of a subset A, sorted: as many choices as there are sets A.
    """
    found: dict[int, list[tuple[Integers, Integers, Floats]]] = {}
    start = 0
    for labels in multisets:
        size = class_size[labels].astype(np.float64)
        cost = 1 - 1 / size
        rows = start + np.arange(len(labels))
        start += len(labels)
        order = labels.shape[1]
        for number in range(order + 1):
            for chosen in itertools.combinations(range(order), number):
                others = [column for column in range(order) if column not in chosen]
                gain = cost[:, chosen].prod(axis=1) * size[:, others].prod(axis=1) ** -2.0
                found.setdefault(number, []).append((rows, labels[:, chosen], gain))
    parts: list[Axes] = []
    entries: list[tuple[Integers, Integers, Floats]] = []
    for number in sorted(found):
        group = found[number]
        subsets, index = _unique_rows(np.concatenate([labels for _, labels, _ in group]))
        rows = np.concatenate([rows for rows, _, _ in group])
        gains = np.concatenate([gains for _, _, gains in group])
        entry, where = np.unique(rows * len(subsets) + index, return_inverse=True)
        summed = totals(where.ravel(), gains, len(entry))
        entries.append((entry // len(subsets), len(parts) + entry % len(subsets), summed))
        parts += [tuple(row) for row in subsets.tolist()]
    rows, columns, values = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
    return rows, columns, values, tuple(parts)


def totals(index: Integers, values: Floats, length: int) -> Floats:
    """The sums of the values with the same index, of shape (length,)."""
    return np.asarray(np.bincount(index, values, minlength=length), np.float64)


def _sets_in(part: Axes, members: Integers) -> int:
    """How many sets of attributes have these labels."""
    return math.prod(
        math.comb(int(members[label]), len(list(group))) for label, group in itertools.groupby(part)
    )
