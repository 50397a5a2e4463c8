"""The integers of even moments: the powers of a record, and of its length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muhat import _check
from muhat.errors import InvalidInput


@dataclass(frozen=True)
class MomentLattice:
    """(x^{⊗ℓ}, |x|^ℓ) on a grid, ℓ even, x in the unit ball of R^d.

    The coordinates are √m(α)·x^α over the multisets α of ℓ indices, and |x|^ℓ last. Two records
    have ⟨x^{⊗ℓ}, y^{⊗ℓ}⟩ = ⟨x, y⟩^ℓ ≥ 0, so with a = |x|^ℓ and b = |y|^ℓ they are at most
    √(2(a² + b² − ab)) ≤ √2 apart, attained where x ⊥ y and where y = 0.

    The integers of a record are `steps` times the coordinates of some x of length at most
    1 + 2^−40, each up to `slack` (docs/proofs/integers.md).

    >>> MomentLattice(2, 3).dim
    7
    """

    order: int
    record_dim: int

    def __post_init__(self) -> None:
        _check.count("record_dim", self.record_dim)
        if _check.count("order", self.order) % 2:
            raise InvalidInput(f"order must be even; got {self.order}.")

    @property
    def dim(self) -> int:
        """The number of sums."""
        return math.comb(self.record_dim + self.order - 1, self.order) + 1

    @property
    def exponent(self) -> int:
        """The grid is 2^exponent."""
        return -44

    @property
    def grid(self) -> Fraction:
        """The step 2^exponent."""
        return Fraction(1, self.steps)

    @property
    def steps(self) -> int:
        """The length of x^{⊗ℓ} at |x| = 1, in steps."""
        return 1 << -self.exponent

    @property
    def longest(self) -> Fraction:
        """An upper bound on the length of x^{⊗ℓ} for an accepted x, in steps."""
        return self.steps * (1 + Fraction(1, 1 << 40)) ** self.order

    @property
    def slack(self) -> Fraction:
        """How far an integer may be from that of the exact power: ½, and the error of floats."""
        roundings = 2 * self.order + self.order // 2 * (self.record_dim + 1) + 8
        return 1 + Fraction(roundings * self.steps, 1 << 53)

    def to_dict(self) -> dict[str, Any]:
        """Integers only, so that a digest of it is stable."""
        return {
            "kind": "moments",
            "order": self.order,
            "record_dim": self.record_dim,
            "exponent": self.exponent,
        }
