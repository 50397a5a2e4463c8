"""The integers of even moments: the powers of a record, and of its length.

The kernel clips to the unit ball, multiplies out and rounds. A record that is accepted has a
computed x of length at most 1 + 2^−40, and its integers are those of that very x up to `slack`:
docs/proofs/integers.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat import _check
from muhat._integers import whole_root_up
from muhat._plain import Key, Plain
from muhat.domains.integers import ClipFunction, StepsKernel, SumLattice
from muhat.domains.moment_basis import TensorBasis
from muhat.errors import InvalidInput
from muhat.records.columns import Column, FloatArray
from muhat.records.exact import Steps, read
from muhat.records.norms import in_unit_ball
from muhat.records.tiles import sum_of_squares

_LIMIT = 1 + 2.0**-42


@dataclass(frozen=True)
class MomentLattice(SumLattice, keys=("order", "record_dim", "exponent")):
    """(x^{⊗ℓ}, |x|^ℓ) on a grid, ℓ even, x in the unit ball of R^d.

    The coordinates are √m(α)·x^α over the multisets α of ℓ indices, and |x|^ℓ last. Two records
    have ⟨x^{⊗ℓ}, y^{⊗ℓ}⟩ = ⟨x, y⟩^ℓ ≥ 0, so with a = |x|^ℓ and b = |y|^ℓ they are at most
    √(2(a² + b² − ab)) ≤ √2 apart, attained where x ⊥ y and where y = 0.

    The integers of a record are `unit` times the coordinates of some x of length at most
    1 + 2^−40, each up to `slack` (docs/proofs/integers.md).

    >>> MomentLattice(2, 3).dim
    7
    """

    kind = "moments"
    order: int
    variables: int

    def __post_init__(self) -> None:
        _check.count("record_dim", self.variables)
        if _check.count("order", self.order) % 2:
            raise InvalidInput(f"order must be even; got {self.order}.")

    @property
    def dim(self) -> int:
        return self.basis.dim + 1

    @property
    def record_dim(self) -> int:
        return self.variables

    @cached_property
    def basis(self) -> TensorBasis:
        """The coordinates of x^{⊗ℓ}."""
        return TensorBasis(self.order, self.variables)

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
        return (self.grid,)

    @property
    def longest(self) -> Fraction:
        """An upper bound on the length of x^{⊗ℓ} for an accepted x, in steps."""
        return self.unit * (1 + Fraction(1, 1 << 40)) ** self.order

    @property
    def slack(self) -> Fraction:
        """How far an integer may be from that of the exact power: ½, and the error of floats."""
        roundings = 2 * self.order + self.order // 2 * (self.record_dim + 1) + 8
        return 1 + Fraction(roundings * self.unit, 1 << 53)

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        # One record is √2·L long if x^{⊗ℓ} is at most L long, two are √(2(a² + a'² − aa')) ≤ √2·L
        # apart for lengths a, a' ≤ L.
        if norm != 2:
            raise InvalidInput("even moments are released in the Euclidean norm.")
        exact = whole_root_up(math.ceil(2 * self.longest**2))
        rounding = math.ceil(whole_root_up(self.dim << 20) * self.slack / (1 << 10))
        return multipliers[0] * (exact + rounding * (2 if replaced else 1))

    def kernel(self) -> MomentKernel:
        return MomentKernel(self)


class MomentKernel(StepsKernel):
    """Puts blocks of records on a moment lattice. One of which nothing is there is 0."""

    def __init__(self, lattice: MomentLattice) -> None:
        self._lattice = lattice

    def steps(self, columns: Sequence[Column]) -> Steps:
        """q, one row a coordinate, the power of the length last."""
        inside = in_unit_ball([read(column, 0.0) for column in columns])
        square = sum_of_squares(inside)
        accepted = square <= _LIMIT
        if not accepted.all():
            inside = [np.where(accepted, values, 0.0) for values in inside]
            square = np.where(accepted, square, 0.0)
        length = np.full(len(square), 1.0)
        for _ in range(self._lattice.order // 2):
            length = length * square
        steps = np.empty((self._lattice.dim, len(square)), np.int64)
        powers = [*self._lattice.basis.lift_columns(inside), length]
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
