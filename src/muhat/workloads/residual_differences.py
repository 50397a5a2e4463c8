"""How far apart two columns of a residual strategy are, when one record is replaced.

The squared distance of two cells depends on the set D of attributes in which they differ:

    Σ_A c_A·2a_A·(1 − Π_{i∈A∩D} −1/(n_i − 1)),

where the empty set costs nothing: the number of records is public. Attributes that may be
exchanged are counted, not listed, so a pattern is how many attributes of each class differ.
Where even so there are too many patterns, those of the classes with the fewest categories are
listed and the others are bounded: the bound is proved, and the gap is the price.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.workloads.residual_basis import Axes, Orbits
from muhat.workloads.residual_certificate import Optimum
from muhat.workloads.residual_optimum import LARGEST_SYSTEM, best_weights

LARGEST_LISTING = 1 << 22
"""Patterns up to which all are evaluated, exactly, by one transform a class."""

LARGEST_BOUNDED = 1 << 16
LARGEST_TABLE = 1 << 25
"""Patterns listed where others are bounded, and the most entries of their matrix."""

CUTS, CUTS_AT_ONCE = 40, 40
LARGE_SYSTEM = 600
"""Parts beyond which a gap of 10^−6 will do."""


@dataclass(frozen=True, eq=False)
class ResidualDifferences:
    """The patterns in which cells may differ, for parts given by their labels.

    Class l has `members[l]` attributes of `sizes[l]` categories. `listed` classes are counted
    in a pattern, the others are bounded. Patterns are numbered in C order of the counts.
    """

    members: Integers
    sizes: Integers
    parts: tuple[Axes, ...]
    listed: tuple[int, ...]

    @classmethod
    def of(cls, members: Integers, sizes: Integers, parts: Sequence[Axes]) -> ResidualDifferences:
        """List all classes if that fits, else those with the fewest categories."""
        labels = np.argsort(sizes, kind="stable").tolist()
        room = LARGEST_LISTING
        if math.prod(int(count) + 1 for count in members) > room:
            room = max(1, min(LARGEST_BOUNDED, LARGEST_TABLE // max(1, len(parts))))
        listed: list[int] = []
        for label in labels:
            room //= int(members[label]) + 1
            if room == 0:
                break
            listed.append(label)
        return cls(members, sizes, tuple(parts), tuple(sorted(listed)))

    @property
    def exact(self) -> bool:
        """Whether every pattern is listed, so that the largest cost is the sensitivity."""
        return len(self.listed) == len(self.members)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of counts of each listed class."""
        return tuple(int(self.members[label]) + 1 for label in self.listed)

    @cached_property
    def largest(self) -> Floats:
        """4a_A summed over a part, (R,): no pattern costs more."""
        return np.array([2 * scale * sets for scale, sets in map(self._scale, self.parts)])

    def patterns(self, numbers: Integers) -> Integers:
        """How many attributes of each class differ, (Q, L); 0 in classes that are not listed."""
        patterns = np.zeros((len(numbers), len(self.members)), np.int64)
        if self.listed:
            patterns[:, list(self.listed)] = np.array(np.unravel_index(numbers, self.shape)).T
        return patterns

    def simplest(self) -> Integers:
        """The patterns in which all attributes differ, none, or one: they bound every part."""
        steps = [math.prod(self.shape[place + 1 :], start=1) for place in range(len(self.listed))]
        return np.unique([math.prod(self.shape) - 1, *steps, *([] if self.exact else [0])])

    def spent(self, weights: Floats) -> Floats:
        """costs·weights for all listed patterns, (Q,)."""
        if not self.exact:
            return self._bounds @ weights
        # Σ_A c_A·2a_A·(1 − Π): the products of all patterns, one class after the other.
        table = np.zeros(self.shape)
        constant = 0.0
        for part, weight in zip(self.parts, weights, strict=True):
            scale, sets = self._scale(part)
            counts = [part.count(label) for label in self.listed]
            table[tuple(counts)] = scale * weight
            constant += scale * sets * weight
        for place, label in enumerate(self.listed):
            members, size = int(self.members[label]), int(self.sizes[label])
            sums = np.array([_symmetric_sums(order, members, size) for order in range(members + 1)])
            table = np.moveaxis(np.tensordot(sums, table, axes=(0, place)), 0, place)
        return constant - table.ravel()

    def costs(self, numbers: Integers) -> Floats:
        """2a_A·(1 − Π) summed over the sets of each part, (Q, R), or an upper bound on it."""
        return self.costs_of(self.patterns(numbers), set(self.listed))

    def costs_of(self, patterns: Integers, listed: set[int] | None = None) -> Floats:
        """The same for patterns that are written out; exact if no class is left out."""
        known = set(range(len(self.members))) if listed is None else listed
        costs = np.empty((len(patterns), len(self.parts)))
        for column, part in enumerate(self.parts):
            inner = np.ones(len(patterns))
            others, least = 1.0, math.inf
            for label, group in itertools.groupby(part):
                order = len(list(group))
                members, size = int(self.members[label]), int(self.sizes[label])
                if label in known:
                    inner *= _symmetric_sums(order, members, size)[patterns[:, label]]
                else:
                    others *= math.comb(members, order)
                    least = min(least, size)
            if least < math.inf:
                # The products over bounded attributes lie between −1/(least − 1) and 1.
                inner = np.minimum(inner * others, -inner * others / (least - 1))
            scale, sets = self._scale(part)
            costs[:, column] = scale * np.maximum(sets - inner, 0.0)
        return costs

    def completed(self, patterns: Integers) -> Integers:
        """Patterns in which all the attributes that were bounded differ as well."""
        others = [label for label in range(len(self.members)) if label not in self.listed]
        full = patterns.copy()
        full[:, others] = self.members[others]
        return full

    @cached_property
    def _bounds(self) -> Floats:
        return self.costs(np.arange(math.prod(self.shape)))

    def _scale(self, part: Axes) -> tuple[float, float]:
        """2a_A, and the number of sets in a part."""
        scale = 2 * math.prod(1 - 1 / float(self.sizes[label]) for label in part)
        sets = math.prod(
            math.comb(int(self.members[label]), len(list(group)))
            for label, group in itertools.groupby(part)
        )
        return scale, float(sets)


def best_weights_of_differences(orbits: Orbits, p: float, tol: float) -> Optimum:
    """The best weights of the parts other than the total, for replaced records."""
    reduced = without_total(orbits)
    differences = ResidualDifferences.of(reduced.members, reduced.sizes, reduced.parts)
    if len(reduced.parts) > LARGEST_SYSTEM:
        differences = replace(differences, listed=())
        # One pattern bounds every other; two random cells have Π = 0 on average.
        found = best_weights(reduced, differences.costs(np.zeros(1, np.int64)), p, tol)
        average = 2 * reduced.part_cost * reduced.part_count
        floor = best_weights(reduced, average[None], p, tol).floor
        return replace(found, floor=floor)
    found, active = _cutting(reduced, differences, p, tol)
    if differences.exact:
        return found
    full = differences.completed(differences.patterns(active))
    singles = np.eye(len(differences.members), dtype=np.int64)
    true = np.unique(np.concatenate([full, singles]), axis=0)
    return replace(found, floor=best_weights(reduced, differences.costs_of(true), p, tol).floor)


def without_total(orbits: Orbits) -> Orbits:
    """The orbits without the part of the empty set, and without tables that have no other."""
    kept = orbits.columns > 0
    tables, rows = np.unique(orbits.rows[kept], return_inverse=True)
    return replace(
        orbits,
        multiplicity=orbits.multiplicity[tables],
        parts=orbits.parts[1:],
        part_count=orbits.part_count[1:],
        part_cost=orbits.part_cost[1:],
        rows=rows.ravel(),
        columns=orbits.columns[kept] - 1,
        values=orbits.values[kept],
    )


def _cutting(
    orbits: Orbits, differences: ResidualDifferences, p: float, tol: float
) -> tuple[Optimum, Integers]:
    """The best weights under all patterns, added as they are violated, and those that matter."""
    chosen = differences.simplest()
    if len(orbits.parts) > LARGE_SYSTEM:
        tol = max(tol, 1e-6)
    inner = 1e-3
    for _ in range(CUTS):
        inner = max(inner, tol / 4)
        found = best_weights(orbits, differences.costs(chosen), p, inner)
        spent = differences.spent(found.weights)
        # A cost is off by rounding in proportion to the largest possible one.
        slack = 2.0**-50 * (len(orbits.parts) + 64) * float(differences.largest @ found.weights)
        largest = float(spent.max()) + slack
        violated = np.setdiff1d(np.flatnonzero(spent > 1 + tol / 8), chosen)
        if inner <= tol / 4 and (largest <= 1 + tol / 4 or not len(violated)):
            break
        # Few patterns are settled by a coarse solution, the last ones need a fine one.
        inner = 0.1 * min(inner, largest - 1)
        order = np.argsort(-spent[violated], kind="stable")[:CUTS_AT_ONCE]
        active = chosen[found.difference_weights > 1e-12]
        chosen = np.union1d(active if len(chosen) > 8 * CUTS_AT_ONCE else chosen, violated[order])
    scaled = replace(found, weights=found.weights / largest, value=found.value * math.sqrt(largest))
    return scaled, chosen[found.difference_weights > 1e-9]


def _symmetric_sums(order: int, members: int, size: int) -> Floats:
    """Σ over the sets of `order` of `members` attributes of Π −1/(n − 1) over those that differ.

    Entry d is for d attributes that differ: Σ_j C(d, j)·C(members − d, order − j)·(−1/(n−1))^j.
    """
    return np.array(
        [
            math.fsum(
                math.comb(d, j) * math.comb(members - d, order - j) * (-1 / (size - 1)) ** j
                for j in range(order + 1)
            )
            for d in range(members + 1)
        ]
    )
