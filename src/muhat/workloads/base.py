"""What every workload can say about itself."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.workloads.linear_map import LARGEST_DENSE, LinearMap


class Workload(LinearMap):
    """Linear queries on a histogram x of N cells: the answers are W·x, of shape (m,).

    `cells` is the shape of the histogram, whose product is N; cells are counted in C order.
    `V + W` adds matrices of one shape, `2 * W` multiplies all answers.
    """

    kind: ClassVar[str]
    cells: tuple[int, ...]

    def gram(self) -> Floats:
        """WᵀW, of shape (N, N), without building W; refused where it would not fit."""
        self._refuse_large_gram()
        return self.transposed(self.apply(np.eye(self.shape[1])))

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A description as JSON, stable enough to be hashed."""

    @classmethod
    @abstractmethod
    def from_fields(cls, fields: dict[str, Any]) -> Workload:
        """The workload that `to_dict` described."""

    @abstractmethod
    def describe(self) -> str:
        """The workload in a few words: "all 32,896 ranges of 256 cells"."""

    def _refuse_large_gram(self) -> None:
        N = self.shape[1]
        if N * N > LARGEST_DENSE:
            raise InvalidInput(f"a Gram matrix of {N} × {N} is not built.")

    def _set(self, **fields: Any) -> None:
        """Set fields of a frozen workload while it is made; arrays become read-only."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __add__(self, other: Any) -> Workload:
        from muhat.workloads.stack import SumOfWorkloads

        return SumOfWorkloads([self, other]) if isinstance(other, Workload) else NotImplemented

    def __sub__(self, other: Any) -> Workload:
        from muhat.workloads.stack import Scaled, SumOfWorkloads

        return (
            SumOfWorkloads([self, Scaled(-1.0, other)])
            if isinstance(other, Workload)
            else NotImplemented
        )

    def __mul__(self, factor: Any) -> Workload:
        from muhat.workloads.stack import Scaled

        return Scaled(float(factor), self) if isinstance(factor, Real) else NotImplemented

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))
