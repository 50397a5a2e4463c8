"""The integers of even moments: the powers of a record.

The kernel clips to the unit ball, multiplies out and rounds. A record that is accepted has a
computed x of length at most 1 + 2^−40, and its integers are those of that very x up to `slack`.
Sums of them are mixed by a matrix of whole numbers, and how far two records are apart after that
is proved in whole numbers: docs/proofs/integers.md.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain

import numpy as np

from muhat import _check
from muhat._integers import whole_root_down, whole_root_up
from muhat._plain import Key, Plain
from muhat.domains.integers import ClipFunction, StepsKernel, SumLattice
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.moment_differences import WeightedSets
from muhat.errors import InvalidInput
from muhat.records.columns import Column, FloatArray
from muhat.records.exact import Steps, read
from muhat.records.norms import in_unit_ball
from muhat.records.tiles import sum_of_squares

_LIMIT = 1 + 2.0**-42

BITS, SHARE_BITS, ROOT_BITS = 44, 60, 100
"""Rows are 2^BITS long where the forms are 1; of whole shares; of roots in the proof."""


@dataclass(frozen=True)
class MomentLattice(
    SumLattice, keys=("order", "record_dim", "exponent", "sets", "shares", "alone", "mixed")
):
    """x^{⊗ℓ} on a grid, ℓ even, x in the unit ball of R^d, and rows C·x^{⊗ℓ} of whole numbers.

    The coordinates are √m(α)·x^α over the multisets α of ℓ indices. Those that are squares of
    coordinates of X = x^{⊗ℓ/2} are `mixed` by a matrix, a row each, and each other one has a
    multiplier of its own, `alone`. `sets` of coordinates of X and their `shares` are the forms
    that bound how far two records are apart (docs/proofs/ellipsoids.md): about 2^BITS.

    The integers of a record are `unit` times the coordinates of some x of length at most
    1 + 2^−40, each up to `slack` (docs/proofs/integers.md).

    >>> MomentLattice.of(WeightedSets.whole(TensorBasis(2, 3))).dim
    6
    """

    kind = "moments"
    order: int
    variables: int
    sets: tuple[tuple[int, ...], ...]
    shares: tuple[int, ...]
    alone: tuple[int, ...]
    mixed: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        _check.count("record_dim", self.variables)
        if _check.count("order", self.order) % 2:
            raise InvalidInput(f"order must be even; got {self.order}.")

    @classmethod
    def of(cls, found: WeightedSets) -> MomentLattice:
        """Rows in which the ellipsoid of these sets is a ball, rounded to whole numbers."""
        diagonal, block = found.form
        root = np.linalg.cholesky(block).T
        alone = np.delete(np.sqrt(diagonal), found.half.doubled)
        return cls(
            found.K.order,
            found.K.record_dim,
            found.sets,
            tuple(max(1, round(share * (1 << SHARE_BITS))) for share in found.shares.tolist()),
            tuple(_whole(alone)),
            tuple(tuple(_whole(row)) for row in root),
        )

    @property
    def dim(self) -> int:
        return self.basis.dim

    @cached_property
    def places(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where the coordinates are that are multiplied alone, and those that are mixed."""
        where = {tuple(row): place for place, row in enumerate(self.basis.indices.tolist())}
        mixed = [where[tuple(sorted(row + row))] for row in self.half.indices.tolist()]
        return tuple(sorted(set(range(self.dim)) - set(mixed))), tuple(mixed)

    @property
    def transform(self) -> FloatArray:
        """What maps rows back to coordinates, (dim, dim)."""
        rows = np.zeros((self.dim, self.dim))
        alone, mixed = map(list, self.places)
        rows[alone, alone] = self.alone
        rows[np.ix_(mixed, mixed)] = np.array(self.mixed, float)
        return np.asarray(np.linalg.inv(rows / (1 << BITS)))

    @property
    def record_dim(self) -> int:
        return self.variables

    @cached_property
    def basis(self) -> TensorBasis:
        """The coordinates of x^{⊗ℓ}."""
        return TensorBasis(self.order, self.variables)

    @cached_property
    def half(self) -> TensorBasis:
        """The coordinates of X = x^{⊗ℓ/2}."""
        return TensorBasis(self.order // 2, self.variables)

    @property
    def exponent(self) -> int:
        """The grid is 2^exponent."""
        return -44

    @property
    def grid(self) -> Fraction:
        """The step 2^exponent."""
        return Fraction(1, self.unit)

    @property
    def unit(self) -> int:
        """The length of x^{⊗ℓ} at |x| = 1, in steps."""
        return 1 << -self.exponent

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return (self.grid / (1 << BITS),)

    def measured(self, totals: Sequence[int], count: int, from_zero: bool) -> Sequence[int]:
        alone, mixed = self.places
        rows = [0] * self.dim
        for place, times in zip(alone, self.alone, strict=True):
            rows[place] = times * totals[place]
        held = [totals[place] for place in mixed]
        for place, row in zip(mixed, self.mixed, strict=True):
            rows[place] = sum(map(operator.mul, row, held))
        return rows

    @property
    def longest(self) -> Fraction:
        """An upper bound on the length of x^{⊗ℓ} for an accepted x, in steps."""
        return self.unit * (1 + Fraction(1, 1 << 40)) ** self.order

    @property
    def slack(self) -> Fraction:
        """How far an integer may be from that of the exact power: ½, and the error of floats."""
        return 1 + Fraction((2 * self.order + 8) * self.unit, 1 << 53)

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        if norm != 2:
            raise InvalidInput("even moments are released in the Euclidean norm.")
        # One record has no longer rows than two can be apart: 0 is a record.
        apart, size = self._reach
        return multipliers[0] * (apart + size * (2 if replaced else 1))

    @cached_property
    def _reach(self) -> tuple[int, int]:
        """How far rows of two exact records are apart, and what rounding adds to one."""
        squares = sum(n * n for n in chain(self.alone, *self.mixed))
        apart = whole_root_up(math.ceil(self.form_bound * self.longest**2))
        size = whole_root_up(self.dim * squares << 20)
        return apart, math.ceil(size * self.slack / (1 << 10))

    @cached_property
    def form_bound(self) -> Fraction:
        """At least ‖C·(x^{⊗ℓ} − y^{⊗ℓ})‖² for |x|, |y| ≤ 1.

        The form Q = Σ_A share_A·q_A is at most Σ shares. C may have a little more than its part of
        it, CᵀC ⪯ (1 + e)·c·Q, which is shown by row sums: Q has at least its diagonal δ without
        the lengths, and a symmetric matrix E whose rows have Σ_j|E_ij| ≤ e·δ_i is at most e·diag δ.
        """
        whole = sum(self.shares)
        scale = Fraction(1 << 2 * BITS, whole)
        delta = [
            sum(map(operator.mul, self.shares, parts)) / 2
            for parts in zip(*self._covered, strict=True)
        ]
        if not all(delta):
            raise InvalidInput("a coordinate is in no set, and would have no end.")
        alone, mixed = self.places
        excess = max(
            (
                Fraction(n * n) / (scale * delta[place]) - 1
                for place, n in zip(alone, self.alone, strict=True)
            ),
            default=Fraction(0),
        )
        columns = list(zip(*self.mixed, strict=True))
        together = self._together
        for i, place in enumerate(mixed):
            off = Fraction(0)
            for j, column in enumerate(columns):
                form = delta[place] * (i == j) + together[i][j] / 2
                off += abs(sum(map(operator.mul, columns[i], column)) - scale * form)
            # Roots of whole numbers are known up to 2^−ROOT_BITS.
            off += scale * whole * len(mixed) * Fraction(2, 1 << ROOT_BITS)
            excess = max(excess, off / (scale * delta[place]))
        return (1 + max(excess, Fraction(0))) * (1 << 2 * BITS)

    @cached_property
    def _covered(self) -> list[list[Fraction]]:
        """Of each set A, and each coordinate γ: the part of z_γ² that is of pairs not both outside.

        X_aX_b has the part m(a)·m(b)/m(γ) of z_γ² for γ = a + b; the parts of γ add up to 1.
        """
        place = {tuple(row): index for index, row in enumerate(self.basis.indices.tolist())}
        rows = self.half.indices.tolist()
        counts, whole = [_multiplicity(row) for row in rows], [0] * self.dim
        parts = [[0] * self.dim for _ in self.sets]
        inside = [frozenset(listed) for listed in self.sets]
        for a, first in enumerate(rows):
            for b, second in enumerate(rows):
                gamma = place[tuple(sorted(first + second))]
                size = counts[a] * counts[b]
                whole[gamma] += size
                for part, listed in zip(parts, inside, strict=True):
                    if a in listed or b in listed:
                        part[gamma] += size
        return [[Fraction(*pair) for pair in zip(part, whole, strict=True)] for part in parts]

    @property
    def _together(self) -> list[list[Fraction]]:
        """Σ_A share_A·r_a·r_b for a, b in A, X_a² = r_a·z_2a: up to 2^−ROOT_BITS times Σ shares."""
        rows = self.half.indices.tolist()
        squares = [Fraction(_multiplicity(row) ** 2, _multiplicity(row + row)) for row in rows]
        inside = [frozenset(listed) for listed in self.sets]
        common = [
            [
                sum(
                    share
                    for share, listed in zip(self.shares, inside, strict=True)
                    if a in listed and b in listed
                )
                for b in range(len(rows))
            ]
            for a in range(len(rows))
        ]
        return [
            [times * _root(squares[a] * squares[b]) for b, times in enumerate(line)]
            for a, line in enumerate(common)
        ]

    def kernel(self) -> MomentKernel:
        return MomentKernel(self)


def _multiplicity(multiset: Sequence[int]) -> int:
    """How many entries of the full tensor are the same."""
    times = Counter(multiset).values()
    return math.factorial(len(multiset)) // math.prod(map(math.factorial, times))


def _root(square: Fraction) -> Fraction:
    """√square for a square of at most 1, rounded down by at most 2^−ROOT_BITS."""
    return Fraction(whole_root_down(square * (1 << 2 * ROOT_BITS)), 1 << ROOT_BITS)


def _whole(values: FloatArray) -> list[int]:
    """In units of 2^−BITS."""
    return [round(value * (1 << BITS)) for value in values.tolist()]


class MomentKernel(StepsKernel):
    """Puts blocks of records on a moment lattice. One of which nothing is there is 0."""

    def __init__(self, lattice: MomentLattice) -> None:
        self._lattice = lattice

    def steps(self, columns: Sequence[Column]) -> Steps:
        """q, one row a coordinate."""
        inside = in_unit_ball([read(column, 0.0) for column in columns])
        square = sum_of_squares(inside)
        accepted = square <= _LIMIT
        if not accepted.all():
            inside = [np.where(accepted, values, 0.0) for values in inside]
        steps = np.empty((self._lattice.dim, len(square)), np.int64)
        powers = self._lattice.basis.lift_columns(inside)
        for place, values in zip(steps, powers, strict=True):
            place[:] = np.rint(values * float(self._lattice.unit))
        return steps


@dataclass(frozen=True)
class LiftClip(
    Plain, keys=("kind", "order", "record_dim", Key("offset", optional=True)), exact=True
):
    """To the unit ball, and then lifted: √m(α)·x^α for every multiset α of `order` indices.

    The lifted tensor is moved by `offset`, if there is one.
    """

    kind = "lift"
    order: int
    record_dim: int
    offset: tuple[float, ...] | None = None

    @property
    def clipped_dim(self) -> int:
        """The number of coordinates it gives."""
        return TensorBasis(self.order, self.record_dim).dim

    def clip_function(self) -> ClipFunction:
        """What moves blocks of records."""
        basis = TensorBasis(self.order, self.record_dim)
        offset = self.offset or (0.0,) * basis.dim

        def function(columns: Sequence[Column]) -> list[FloatArray]:
            lifted = basis.lift_columns(in_unit_ball([read(column, 0.0) for column in columns]))
            return [values + shift for values, shift in zip(lifted, offset, strict=True)]

        return function
