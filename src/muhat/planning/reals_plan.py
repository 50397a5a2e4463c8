"""What plans for records in `Reals` with a public n have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from muhat._arrays import Floats
from muhat.domains.reals import Reals
from muhat.ledger import LedgerLike
from muhat.mechanisms.learning.learning import Method
from muhat.planning.low_bias_method import LowBiasMethod
from muhat.planning.run import run
from muhat.planning.unbounded_execution import RealsWork
from muhat.privacy import Neighbors, Privacy
from muhat.release.release import Release


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RealsPlan(ABC):
    """A private mean of records in `Reals` by some method, ready to be released."""

    domain: Reals
    n: int
    privacy: Privacy
    weights: Floats
    contributions: int
    method: Method | LowBiasMethod
    assumptions: tuple[str, ...]
    missing: str = "center"

    statistic = "mean"
    neighbors = Neighbors.SUBSTITUTE
    columns = None

    @property
    def mechanism(self) -> str:
        """The name of the method."""
        return self.method.name

    @property
    def dim(self) -> int:
        """The number of values released."""
        return self.domain.dim

    @property
    @abstractmethod
    def bias(self) -> float | None:
        """No column's bias is larger, if the assumptions hold; None if no bound is known."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""

    @abstractmethod
    def describe(self) -> str:
        """The plan in words and tables."""

    def release(
        self,
        data: Any,
        columns: Sequence[str] | Sequence[int] | None = None,
        ledger: LedgerLike = None,
    ) -> Release:
        """Read the data, a few times if need be, and release the mean; see `planning.run`."""
        return run(RealsWork(self), data, columns, ledger)

    def assuming(self, *sentences: str) -> Self:
        """The same plan with more assumptions stated."""
        return replace(self, assumptions=(*self.assumptions, *sentences))

    def __repr__(self) -> str:
        return self.describe()
